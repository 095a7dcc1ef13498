/* SPDX-License-Identifier: Apache-2.0
 *
 * llama.c: LlamaForCausalLM (Llama 1 to 3), and the classes that are the same mathematics under
 * another model type. In GGUF the rows of q and k are permuted so that rotary pairs are adjacent,
 * and files of Mixtral say "llama", too: they have experts. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK || !b->hp->expert_count) return s;
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

const struct recipe model_llama = {
    .family = "llama",
    .gguf = "llama",
    .model_type = "llama",
    .hf_class = "LlamaForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, decoder_mlp_biases,
            decoder_mlp, moe_tensors),
    .derive = derive,
    .layer = decoder_paired_layer,
};
