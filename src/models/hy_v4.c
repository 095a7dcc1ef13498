/* SPDX-License-Identifier: Apache-2.0
 * hy_v4.c: HYV4ForCausalLM: sparse latent attention as DeepSeek-V3.2's with sinks and a gate; the
 * residual stream is several, of which each sub-layer takes a weighted sum and to each of which it
 * adds its output by another weight (hyper-connections, arXiv 2409.19606). */
#include "base/error.h"
#include "models/blocks/moe.h"
#include "models/blocks/streams.h"
#include "models/deepseek_v2.h"

static const struct key keys[] = {
    WHOLE("streams", NULL, "hc_mult", OPTIONAL, 4, 1, 64),
    REAL("hc_magnitude", NULL, "hc_magnitude", OPTIONAL, 2, 0, 0),
    REAL("hc_eps", NULL, "hc_eps", OPTIONAL, 1e-6, 0, 0),
    REAL("swiglu_limit", NULL, "swiglu_limit", OPTIONAL, 10, -1e30, 1e30),
    {0},
};

/* A sub-layer's weights: of its input's streams, then of its output's. */
#define STREAMS(ours, theirs)                                                                     \
    MATRIX("blk.{i}." ours "_fn.weight", "{m}layers.{i}.hc_pre." theirs ".hc_fn", "2*streams",     \
           "streams*width", REQUIRED),                                                            \
    VECTOR("blk.{i}." ours ".bias", "{m}layers.{i}.hc_pre." theirs ".hc_base", "2*streams",        \
           REQUIRED),                                                                             \
    VECTOR("blk.{i}." ours ".weight", "{m}layers.{i}.hc_pre." theirs ".hc_scale", "2*streams",     \
           REQUIRED, .from_hf = "repeat(streams)")
#define MLP "{m}layers.{i}.mlp."

static const struct tensor tensors[] = {
    STREAMS("hc_attn", "hc_attn_layer"),
    STREAMS("hc_ffn", "hc_mlp_layer"),
    MATRIX("hc_head_fn.weight", "{m}hc_pre.hc_head.hc_head_fn", "streams", "streams*width",
           REQUIRED),
    VECTOR("hc_head.bias", "{m}hc_pre.hc_head.hc_head_base", "streams", REQUIRED),
    VECTOR("hc_head.weight", "{m}hc_pre.hc_head.hc_head_scale", "streams", REQUIRED,
           .from_hf = "repeat(streams)"),
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.learnable_sink_param", "heads",
           REQUIRED),
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.linear_gate.weight",
           "heads*v_head", "width", REQUIRED),
    MLA_INDEXER,
    MATRIX("blk.{i}.ffn_gate.weight", MLP "linear_gate.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "down_proj.weight", "width", "ffn", REQUIRED),
    /* As plain MLPs: what limits the others' activations does not limit theirs. */
    MATRIX("blk.{i}.ffn_gate.weight", MLP "shared_experts.linear_gate.weight", "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "shared_experts.up_proj.weight", "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "shared_experts.down_proj.weight", "width",
           "sparse*shared_ffn", REQUIRED),
    KNOWN("mtp.*", "{m}mtp_layers.*", "predicts further tokens"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    float limit = (float)build_number(b, "swiglu_limit");
    ob_status s = deepseek_v3_derive(b, error);
    if (s == OB_OK) s = mla_indexers(b, mla_has_indexer, error);
    if (s == OB_OK && !mla_has_indexer(b, 0))
        return build_refuse(b, OB_ERR_FORMAT, NULL, "indexer_types", error,
                            "the first layer has none to share");
    if (limit > 0) b->hp->glu_clamp = (struct glu_clamp){.alpha = 1, .limit = limit,
                                                         .up_limit = limit};
    return s;
}

/* ---- the graph ---- */

/* A weight of each stream, and of what is added to each: sigmoids of the whole, as far as there
 * are any. */
static value_id weigh(struct build *b, value_id x, struct weight *fn, struct weight *scale,
                      struct weight *base) {
    float magnitude[128], eps[128];
    uint32_t streams = build_whole(b, "streams"), n = fn->rows;
    for (uint32_t i = 0; i < n; i++) {
        magnitude[i] = i < streams ? 1 : (float)build_number(b, "hc_magnitude");
        eps[i] = (float)build_number(b, "hc_eps");
    }
    value_id y = graph_act(b->g, streams_logits(b, x, fn, scale, base), ACT_SIGMOID);
    return graph_affine(b->g, y, streams_constant(b, n, magnitude), streams_constant(b, n, eps));
}

static value_id sum(struct build *b, value_id x, value_id weight) {
    return graph_mix(b->g, x, weight, b->hp->width);
}

static value_id join(struct build *b, value_id x, value_id h, value_id weight) {
    h = graph_tile(b->g, h, 1, b->hp->width, build_whole(b, "streams"));
    return graph_add(b->g, x, graph_mul(b->g, h, weight));
}

static value_id mlp(struct build *b, value_id x) {
    value_id h = graph_glu(b->g, block_linear(b, x, "ffn_gate"), block_linear(b, x, "ffn_up"),
                           b->hp->act);
    h = block_linear(b, h, "ffn_down");
    return b->hp->experts[b->layer] ? graph_add(b->g, moe_mlp(b, x), h) : h;
}

static value_id layer(struct build *b, value_id x, value_id *selection) {
    struct graph *g = b->g;
    uint32_t n = build_whole(b, "streams");
    struct mla_args args = {.halves = true,
                            .selection = selection,
                            .has_indexer = mla_has_indexer(b, b->layer),
                            .index_rope_last = true,
                            .index_eps = b->hp->eps};
    value_id w = weigh(b, x, build_weight(b, "hc_attn_fn.weight"),
                       build_weight(b, "hc_attn.weight"), build_weight(b, "hc_attn.bias"));
    value_id h = block_norm_named(b, sum(b, x, graph_slice(g, w, 1, 2 * n, 0, n)), "attn_norm");
    x = join(b, x, mla_attention(b, h, &args), graph_slice(g, w, 1, 2 * n, n, n));
    w = weigh(b, x, build_weight(b, "hc_ffn_fn.weight"), build_weight(b, "hc_ffn.weight"),
              build_weight(b, "hc_ffn.bias"));
    h = block_norm_named(b, sum(b, x, graph_slice(g, w, 1, 2 * n, 0, n)), "ffn_norm");
    return join(b, x, mlp(b, h), graph_slice(g, w, 1, 2 * n, n, n));
}

static value_id body(struct build *b, value_id x) {
    value_id selection = NO_VALUE;
    x = streams_open(b, x, build_whole(b, "streams"));
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer(b, x, &selection);
    }
    return sum(b, x, weigh(b, x, build_global(b, "hc_head_fn.weight"),
                           build_global(b, "hc_head.weight"), build_global(b, "hc_head.bias")));
}

const struct recipe model_hy_v4 = {
    .family = "hy_v4",
    .model_type = "hy_v4",
    .hf_class = "HYV4ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, mla_index_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, tensors, moe_fused_tensors,
            moe_bias_tensors),
    .derive = derive,
    .body = body,
};
