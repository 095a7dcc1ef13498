/* SPDX-License-Identifier: Apache-2.0
 * mistral.c: MistralForCausalLM: Llama with one sliding window for all layers. Its GGUF files say
 * "llama". */
#include "models/blocks/decoder.h"

/* Classes disagree on which of the two goes first. */
static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive_sliding(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        if (b->hp->window[i] && decoder_type_is(b, i, "full_attention"))
            return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "layer_types", error,
                                "layer %u has no window, and sliding_window is %u", i,
                                b->hp->window_size);
    return s;
}

const struct recipe model_mistral = {
    .family = "mistral",
    .written_as = "llama",
    .model_type = "mistral",
    .hf_class = "MistralForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_mlp),
    .derive = derive,
    .layer = decoder_paired_layer,
};
