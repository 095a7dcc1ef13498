/* SPDX-License-Identifier: Apache-2.0
 * gemma2.c: Gemma2ForCausalLM: Gemma with norms before and after each sub-layer, soft caps on
 * scores and logits, and a window in every other layer. VaultGemmaForCausalLM lacks the norms
 * after. */
#include "models/blocks/decoder.h"
#include "models/gemma.h"

const struct key gemma2_keys[] = {
    {NULL, "query_pre_attn_scalar", KEY_F32, offsetof(struct hparams, attention_scalar), OPTIONAL,
     0, 1e-3, 1e6, NULL},
    {"{arch}.attn_logit_softcapping", "attn_logit_softcapping", KEY_F32,
     offsetof(struct hparams, attention_softcap), OPTIONAL, 0, 0, 0, NULL},
    {"{arch}.final_logit_softcapping", "final_logit_softcapping", KEY_F32,
     offsetof(struct hparams, logit_softcap), OPTIONAL, 0, 0, 0, NULL},
    {0},
};

static const struct tensor vault_norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.pre_feedforward_layernorm.weight", "width",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    gemma_scales(b);
    /* GGUF has no key for the scalar: the 27B's 46 layers use width / heads, all others k_dim. */
    if (hp->attention_scalar == 0 && hp->layers == 46) {
        hp->attention_scalar = (float)hp->width / (float)hp->heads[0];
        gemma_scales(b);
    }
    if (!decoder_layer_types(b))
        for (uint32_t i = 0; i < hp->layers; i += 2) hp->window[i] = hp->window_size;
    return OB_OK;
}

#define GEMMA2(norms)                                                                              \
    .norms_plus_one = true, .act = "gelu_pytorch_tanh", .act_key = "hidden_activation",            \
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, gemma2_keys),                       \
    TENSORS(decoder_ends, norms, decoder_attention_tensors, decoder_attention_biases,              \
            decoder_mlp),                                                                         \
    .derive = derive, .layer = decoder_plain_layer

const struct recipe model_gemma2 = {
    .family = "gemma2",
    .gguf = "gemma2",
    .model_type = "gemma2",
    .hf_class = "Gemma2ForCausalLM",
    GEMMA2(decoder_sandwich),
};

const struct recipe model_vaultgemma = {
    .family = "vaultgemma",
    .model_type = "vaultgemma",
    .hf_class = "VaultGemmaForCausalLM",
    GEMMA2(vault_norms),
};
