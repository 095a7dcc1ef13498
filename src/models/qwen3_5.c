/* SPDX-License-Identifier: Apache-2.0
 * qwen3_5.c: Qwen3_5ForCausalLM and Qwen3_5MoeForCausalLM: Qwen3-Next with a projection for each of
 * q, k, v together, gate, beta and alpha; one with a plain MLP. */
#include "models/blocks/decoder.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/moe.h"
#include "models/qwen3_next.h"

#define AT(name) "{m}layers.{i}.linear_attn." name
#define QKV_ROWS "part(1,2*key+value,"

/* llama.cpp's converter writes value heads tiled over the key heads, and so are they here. */
#define TILED "tile(lin_k_heads,lin_v_heads)"

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ssm_q.weight", AT("in_proj_qkv.weight"), "recurrent*key", "width", REQUIRED,
           .from_hf = QKV_ROWS "0)", .gguf = ""),
    MATRIX("blk.{i}.ssm_k.weight", AT("in_proj_qkv.weight"), "recurrent*key", "width", REQUIRED,
           .from_hf = QKV_ROWS "key)", .gguf = ""),
    MATRIX("blk.{i}.ssm_v.weight", AT("in_proj_qkv.weight"), "recurrent*value", "width", REQUIRED,
           .from_hf = QKV_ROWS "2*key) " TILED, .gguf = ""),
    MATRIX("blk.{i}.ssm_conv1d_q.weight", AT("conv1d.weight"), "recurrent*key", "conv", REQUIRED,
           .from_hf = QKV_ROWS "0)", .gguf = ""),
    MATRIX("blk.{i}.ssm_conv1d_k.weight", AT("conv1d.weight"), "recurrent*key", "conv", REQUIRED,
           .from_hf = QKV_ROWS "key)", .gguf = ""),
    MATRIX("blk.{i}.ssm_conv1d_v.weight", AT("conv1d.weight"), "recurrent*value", "conv", REQUIRED,
           .from_hf = QKV_ROWS "2*key) " TILED, .gguf = ""),
    MATRIX("blk.{i}.attn_gate.weight", AT("in_proj_z.weight"), "recurrent*value", "width",
           REQUIRED, .from_hf = TILED),
    MATRIX("blk.{i}.ssm_beta.weight", AT("in_proj_b.weight"), "recurrent*lin_v_heads", "width",
           REQUIRED, .from_hf = TILED),
    MATRIX("blk.{i}.ssm_alpha.weight", AT("in_proj_a.weight"), "recurrent*lin_v_heads", "width",
           REQUIRED, .from_hf = TILED),
    VECTOR("blk.{i}.ssm_a", AT("A_log"), "recurrent*lin_v_heads", REQUIRED,
           .from_hf = TILED " -exp"),
    VECTOR("blk.{i}.ssm_dt.bias", AT("dt_bias"), "recurrent*lin_v_heads", REQUIRED,
           .from_hf = TILED),
    MATRIX("blk.{i}.ssm_out.weight", AT("out_proj.weight"), "recurrent*width", "value", REQUIRED,
           .from_hf = "tile_cols(lin_k_heads,lin_v_heads)"),
    {0},
};

/* A text's positions are the same in all sections, in whatever order these are. */
static void pass_sections(struct build *b) {
    build_has(b, NULL, "rope_parameters.mrope_section");
    build_has(b, NULL, "rope_parameters.mrope_interleaved");
}

static ob_status derive(struct build *b, ob_error *error) {
    pass_sections(b);
    return qwen3_next_sizes(b, error);
}

static ob_status derive_mixture(struct build *b, ob_error *error) {
    pass_sections(b);
    return qwen3_next_mixture(b, error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return decoder_attention(b, x, args);
    return deltanet_plain(b, x,
                          &(struct deltanet_args){.norm_eps = b->hp->eps, .k_tiled = true});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_qwen3_5_text = {
    .family = "qwen3_5_text",
    .gguf = "qwen35",
    .model_type = "qwen3_5_text",
    .hf_class = "Qwen3_5ForCausalLM",
    .turns_parts = true,
    .norms_plus_one = true,
    KEYS(decoder_keys, deltanet_keys),
    TENSORS(decoder_ends, qwen3_next_norms, qwen3_next_attention, decoder_qk_norms, tensors,
            deltanet_tensors, decoder_mlp),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_qwen3_5_moe_text = {
    .family = "qwen3_5_moe_text",
    .gguf = "qwen35moe",
    .model_type = "qwen3_5_moe_text",
    .hf_class = "Qwen3_5MoeForCausalLM",
    .foreign = "routed_scaling_factor",
    .turns_parts = true,
    .norms_plus_one = true,
    KEYS(decoder_keys, moe_keys, deltanet_keys),
    TENSORS(decoder_ends, qwen3_next_norms, qwen3_next_attention, decoder_qk_norms, tensors,
            deltanet_tensors, moe_tensors, moe_shared_tensors,
            qwen3_next_shared_gate),
    .derive = derive_mixture,
    .layer = layer,
};
