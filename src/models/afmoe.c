/* SPDX-License-Identifier: Apache-2.0
 * afmoe.c: AfmoeForCausalLM (Trinity): gated attention, window layers with rope and full ones
 * without, norms before and after each sub-layer, a sigmoid router and shared experts. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    WHOLE("mup", NULL, "mup_enabled", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.pre_mlp_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_mlp_layernorm.weight", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.gate_proj.weight", "heads*k_dim",
           "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {
        .score = ROUTE_SIGMOID, .normalize = true, .normalize_eps = 1e-20f};
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 4, false);
    decoder_rope_in_windows(b);
    if (build_whole(b, "mup")) b->hp->embed_scale = sqrtf((float)b->hp->width);
    return moe_sizes(b, &router, error);
}

const struct recipe model_afmoe = {
    .family = "afmoe",
    .gguf = "afmoe",
    .model_type = "afmoe",
    .hf_class = "AfmoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_mlp, moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
