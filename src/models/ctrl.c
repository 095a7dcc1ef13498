/* SPDX-License-Identifier: Apache-2.0
 * ctrl.c: CTRLLMHeadModel: positions of sines, scaled embeddings, layer norms whose epsilon is 1e-6
 * but for the last one's, biases, logits too. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/sinusoids.h"

static const struct key keys[] = {
    REAL("last_eps", NULL, "layer_norm_epsilon", OPTIONAL, 1e-6, 0, 1),
    {0},
};

#define L "{m}h.{i}."
#define ATTENTION L "multi_head_attention."
static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}w.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output.bias", "lm_head.bias", "vocab", REQUIRED),
    VECTOR("last_norm.weight", "{m}layernorm.weight", "width", REQUIRED),
    VECTOR("last_norm.bias", "{m}layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "layernorm1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "layernorm1.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "layernorm2.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "layernorm2.bias", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", ATTENTION "Wq.weight", "heads*k_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", ATTENTION "Wq.bias", "heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", ATTENTION "Wk.weight", "kv_heads*k_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", ATTENTION "Wk.bias", "kv_heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", ATTENTION "Wv.weight", "kv_heads*v_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", ATTENTION "Wv.bias", "kv_heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", ATTENTION "dense.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", ATTENTION "dense.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "ffn.0.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "ffn.0.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "ffn.2.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "ffn.2.bias", "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    b->hp->eps = 1e-6f;
    ob_status s = decoder_sizes(b, error);
    b->hp->embed_scale = sqrtf((float)b->hp->width);
    return s == OB_OK ? sinusoids_check(b, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    if (b->layer == 0) x = sinusoids_add(b, x, 0, (double)b->hp->width / 2);
    x = decoder_plain_layer(b, x);
    if (b->layer + 1 < b->hp->layers) return x;
    return graph_norm(b->g, x, build_global(b, "last_norm.weight"),
                      build_global(b, "last_norm.bias"), NORM_LAYER,
                      (float)build_number(b, "last_eps"), b->hp->width);
}

const struct recipe model_ctrl = {
    .family = "ctrl",
    .model_type = "ctrl",
    .hf_class = "CTRLLMHeadModel",
    .roots = "transformer.",
    .act = "relu",
    .act_key = "",
    KEYS(decoder_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = layer,
};
