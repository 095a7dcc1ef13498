/* SPDX-License-Identifier: Apache-2.0
 * gemma.c: GemmaForCausalLM: Llama with norms whose weight means 1 + w (GGUF stores the sum), GELU
 * and embeddings scaled by sqrt(width). Files of 2024 say "gelu" and mean its tanh form. */
#include "models/gemma.h"

#include <math.h>

#include "models/blocks/decoder.h"

void gemma_scales(struct build *b) {
    struct hparams *hp = b->hp;
    hp->embed_scale = sqrtf((float)hp->width);
    if (hp->attention_scalar > 0) hp->attention_scale = 1.0f / sqrtf(hp->attention_scalar);
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) gemma_scales(b);
    if (b->hp->act == ACT_GELU_ERF) b->hp->act = ACT_GELU_TANH;
    return s;
}

const struct recipe model_gemma = {
    .family = "gemma",
    .gguf = "gemma",
    .model_type = "gemma",
    .hf_class = "GemmaForCausalLM",
    .norms_plus_one = true,
    .act = "gelu_pytorch_tanh",
    .act_key = "hidden_act",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp),
    .derive = derive,
    .layer = decoder_plain_layer,
};
