/* SPDX-License-Identifier: Apache-2.0
 * olmo.c: OlmoForCausalLM: Llama with layer norms without weights, whose epsilon is 1e-5, and q, k
 * and v cut to a range. */
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    {"{arch}.attention.clamp_kqv", "clip_qkv", KEY_F32, offsetof(struct hparams, attention_clamp),
     OPTIONAL, 0, 0, 0, NULL},
    {0},
};

static const struct tensor ends[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    b->hp->bare_norms = true;
    b->hp->eps = 1e-5f;
    return decoder_derive(b, error);
}

const struct recipe model_olmo = {
    .family = "olmo",
    .gguf = "olmo",
    .model_type = "olmo",
    .hf_class = "OlmoForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, keys),
    TENSORS(ends, decoder_paired, decoder_paired_biases, decoder_mlp_biases, decoder_mlp),
    .derive = derive,
    .layer = decoder_paired_layer,
};
