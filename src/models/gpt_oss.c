/* SPDX-License-Identifier: Apache-2.0
 * gpt_oss.c: GptOssForCausalLM (arXiv 2508.10925): windows in every other layer, attention sinks,
 * yarn, and experts with biases and a clamped SwiGLU whose gate and up rows alternate. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {NULL, "swiglu_alpha", KEY_F32, offsetof(struct hparams, glu_clamp.alpha), OPTIONAL, 1.702,
     1e-6, 0, NULL},
    {NULL, "swiglu_limit", KEY_F32, offsetof(struct hparams, glu_clamp.limit), OPTIONAL, 7, 0, 0,
     NULL},
    {0},
};

#define MLP "{m}layers.{i}.mlp."

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED, .gguf = "blk.{i}.post_attention_norm.weight"),
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.sinks", "heads", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.weight", "experts", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_gate_inp.bias", MLP "router.bias", "experts", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "experts.gate_up_proj", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts T part(expert_ffn,2,0)"),
    VECTOR("blk.{i}.ffn_gate_exps.bias", MLP "experts.gate_up_proj_bias", "expert_ffn", REQUIRED,
           .from_hf = "experts part(expert_ffn,2,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "experts.gate_up_proj", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts T part(expert_ffn,2,1)"),
    VECTOR("blk.{i}.ffn_up_exps.bias", MLP "experts.gate_up_proj_bias", "expert_ffn", REQUIRED,
           .from_hf = "experts part(expert_ffn,2,1)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "experts.down_proj", "width", "expert_ffn", REQUIRED,
           .from_hf = "experts T"),
    VECTOR("blk.{i}.ffn_down_exps.bias", MLP "experts.down_proj_bias", "width", REQUIRED,
           .from_hf = "experts"),
    /* As OpenAI published them; GGUF has them as above. */
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "experts.gate_up_proj_blocks", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts mxfp4 part(expert_ffn,2,0)", .gguf = ""),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "experts.gate_up_proj_blocks", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts mxfp4 part(expert_ffn,2,1)", .gguf = ""),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "experts.down_proj_blocks", "width", "expert_ffn",
           REQUIRED, .from_hf = "experts mxfp4", .gguf = ""),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF; /* which has no key for it */
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    if (!decoder_layer_types(b))
        for (uint32_t i = 0; i < hp->layers; i += 2) hp->window[i] = hp->window_size;
    hp->glu_clamp.up_limit = hp->glu_clamp.limit;
    hp->glu_clamp.up_add = 1;
    s = rope_read(b,
                  &(struct rope_source){.hf = "rope_parameters",
                                        .base_key_hf = "rope_theta",
                                        .base_key_gguf = "{arch}.rope.freq_base",
                                        .base = 150000,
                                        .scaled = true,
                                        .between_pairs = gguf},
                  &hp->rope, error);
    if (s != OB_OK) return s;
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

const struct recipe model_gpt_oss = {
    .family = "gpt-oss",
    .gguf = "gpt-oss",
    .model_type = "gpt_oss",
    .hf_class = "GptOssForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_attention_tensors, decoder_attention_biases, tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
