/* SPDX-License-Identifier: Apache-2.0
 * mixtral.c: MixtralForCausalLM: Mistral with a mixture of experts. Its GGUF files say "llama". */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive_sliding(b, error);
    if (s != OB_OK) return s;
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

const struct recipe model_mixtral = {
    .family = "mixtral",
    .written_as = "llama",
    .model_type = "mixtral",
    .hf_class = "MixtralForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, moe_mixtral_tensors),
    .derive = derive,
    .layer = decoder_paired_layer,
};
