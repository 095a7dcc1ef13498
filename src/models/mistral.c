/* SPDX-License-Identifier: Apache-2.0
 * mistral.c: MistralForCausalLM: Llama with one sliding window for all layers. Its GGUF files say
 * "llama". */
#include "models/blocks/decoder.h"
#include "models/llama.h"

const struct key mistral_keys[] = {
    {NULL, "sliding_window", KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 0, 0, 0},
    {0},
};

ob_status mistral_derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        b->hp->window[i] = b->hp->window_size;
    return s;
}

const struct recipe model_mistral = {
    .family = "mistral",
    .model_type = "mistral",
    .hf_class = "MistralForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, mistral_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, llama_tensors, NULL},
    .act = "silu",
    .derive = mistral_derive,
    .layer = llama_layer,
};
