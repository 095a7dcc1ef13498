/* SPDX-License-Identifier: Apache-2.0
 * beam.c: BeamForCausalLM: gated attention, layers without rope that scale q by a power of its
 * position, norms before and after each sub-layer, and a residual sum whose shares depend on the
 * depth: after the n-th sub-layer all of them weigh the same. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {NULL, "final_logit_softcapping", KEY_F32, offsetof(struct hparams, logit_softcap), OPTIONAL, 0,
     0, 0, NULL},
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.gate_proj.weight", "heads*k_dim",
           "width", REQUIRED),
    VECTOR("blk.{i}.attn_gate.bias", "{m}layers.{i}.self_attn.gate_bias", "heads*k_dim", REQUIRED,
           .from_hf = "repeat(k_dim)"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID,
                                      .group = ROUTE_GROUP_TOP2,
                                      .normalize = true,
                                      .normalize_eps = 1e-20f};
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 6, false);
    if (!build_has(b, NULL, "layer_types")) b->hp->window[b->hp->layers - 1] = 0;
    s = rope_read_where_said(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

static value_id temper(struct build *b, value_id q) {
    return b->hp->no_rope[b->layer] ? graph_power_position(b->g, q, 0.1f, 1, 2048) : q;
}

/* The n-th sum: the stream so far has n - 1 parts. */
static value_id share(struct build *b, value_id x, value_id h, uint32_t n) {
    return graph_add(b->g, graph_scale(b->g, x, sqrtf((float)(n - 1) / (float)n)),
                     graph_scale(b->g, h, 1 / sqrtf((float)n)));
}

static value_id layer(struct build *b, value_id x) {
    const struct decoder_args args = {.query = temper};
    uint32_t n = 2 * (b->layer + 1);
    value_id h = decoder_attention(b, block_norm_named(b, x, "attn_norm"), &args);
    x = share(b, x, block_norm_named(b, h, "post_attention_norm"), n);
    h = decoder_mlp_block(b, block_norm_named(b, x, "ffn_norm"), &args);
    return share(b, x, block_norm_named(b, h, "post_ffw_norm"), n + 1);
}

const struct recipe model_beam = {
    .family = "beam",
    .model_type = "beam",
    .hf_class = "BeamForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_sandwich, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, tensors, decoder_mlp, moe_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = layer,
};
