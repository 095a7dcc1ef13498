/* SPDX-License-Identifier: Apache-2.0
 *
 * gemma3.c: Gemma3ForCausalLM (text): norms before and after each sub-layer (weights mean 1 + w;
 * GGUF stores the sum), q and k norms, GELU, embeddings scaled by sqrt(width), five window layers
 * to one full layer, each kind with its own rotary base. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {"{arch}.attention.sliding_window", "sliding_window", KEY_U32,
     offsetof(struct hparams, window_size), OPTIONAL, 0, 0, 0},
    {NULL, "query_pre_attn_scalar", KEY_F32, offsetof(struct hparams, attention_scalar), OPTIONAL,
     0, 1e-3, 1e6},
    {"{arch}.attn_logit_softcapping", "attn_logit_softcapping", KEY_F32,
     offsetof(struct hparams, attention_softcap), OPTIONAL, 0, 0, 0},
    {"{arch}.final_logit_softcapping", "final_logit_softcapping", KEY_F32,
     offsetof(struct hparams, logit_softcap), OPTIONAL, 0, 0, 0},
    {0},
};

static const struct tensor tensors[] = {
    {"output_norm.weight", "model.norm.weight", NULL, "width", REQUIRED, ADD_ONE, NULL},
    {"blk.{i}.attn_norm.weight", "model.layers.{i}.input_layernorm.weight", NULL, "width", REQUIRED,
     ADD_ONE, NULL},
    {"blk.{i}.post_attention_norm.weight", "model.layers.{i}.post_attention_layernorm.weight", NULL,
     "width", REQUIRED, ADD_ONE, NULL},
    {"blk.{i}.ffn_norm.weight", "model.layers.{i}.pre_feedforward_layernorm.weight", NULL, "width",
     REQUIRED, ADD_ONE, NULL},
    {"blk.{i}.post_ffw_norm.weight", "model.layers.{i}.post_feedforward_layernorm.weight", NULL,
     "width", REQUIRED, ADD_ONE, NULL},
    {"blk.{i}.attn_q_norm.weight", "model.layers.{i}.self_attn.q_norm.weight", NULL, "k_dim",
     REQUIRED, ADD_ONE, NULL},
    {"blk.{i}.attn_k_norm.weight", "model.layers.{i}.self_attn.k_norm.weight", NULL, "k_dim",
     REQUIRED, ADD_ONE, NULL},
    {0},
};

static void windows(struct build *b) {
    struct hparams *hp = b->hp;
    uint32_t pattern = 6;
    if (decoder_layer_types(b)) return;
    build_u32(b, "{arch}.attention.sliding_window_pattern",
              "sliding_window_pattern|_sliding_window_pattern", &pattern);
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->window[i] = pattern && (i + 1) % pattern ? hp->window_size : 0;
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    windows(b);
    hp->embed_scale = sqrtf((float)hp->width);
    if (hp->attention_scalar > 0) hp->attention_scale = 1.0f / sqrtf(hp->attention_scalar);
    /* GGUF has no key for the scalar: the 27B's 62 layers use width / heads, all others k_dim. */
    else if (hp->layers == 62)
        hp->attention_scale = 1.0f / sqrtf((float)hp->width / (float)hp->heads[0]);
    bool nested = source_has(b->source, "rope_parameters.full_attention");
    s = rope_read(
        b,
        &(struct rope_source){.hf = nested ? "rope_parameters.full_attention" : "rope_parameters",
                              .base_key_hf = "rope_theta",
                              .base_key_gguf = "{arch}.rope.freq_base",
                              .base = 1e6f,
                              .scaled = true},
        &hp->rope, error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters.sliding_attention",
                                           .base_key_hf = "rope_local_base_freq",
                                           .base_key_gguf = "{arch}.rope.freq_base_swa",
                                           .base = 10000,
                                           .scaled = nested && source_kind(b->source) == SOURCE_HF},
                     &hp->rope_window, error);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.act = ACT_GELU_TANH});
}

const struct recipe model_gemma3 = {
    .family = "gemma3",
    .gguf = "gemma3",
    .model_type = "gemma3_text",
    .hf_class = "Gemma3ForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, decoder_qk_tensors, tensors, NULL},
    .act = "gelu_pytorch_tanh",
    .derive = derive,
    .layer = layer,
};
