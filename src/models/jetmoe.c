/* SPDX-License-Identifier: Apache-2.0
 * jetmoe.c: JetMoeForCausalLM (arXiv 2404.07413): a mixture of experts and a mixture of attention
 * heads: each chosen expert has its own queries and output, all share the keys and values, and
 * query head h of an expert reads key head h. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    {NULL, "kv_channels", KEY_U32, offsetof(struct hparams, k_dim), REQUIRED, 0, 1, 4096, NULL},
    {0},
};

#define HEADS "{m}layers.{i}.self_attention."
#define MLP "{m}layers.{i}.mlp."

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_gate_inp.weight", HEADS "experts.router.layer.weight", "experts", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_q_exps.weight", HEADS "experts.input_linear.weight", "kv_heads*k_dim",
           "width", REQUIRED, .from_hf = "experts"),
    MATRIX("blk.{i}.attn_output_exps.weight", HEADS "experts.output_linear.weight", "width",
           "kv_heads*k_dim", REQUIRED, .from_hf = "experts"),
    VECTOR("blk.{i}.attn_output.bias", HEADS "experts.bias", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", HEADS "kv_proj.weight", "kv_heads*k_dim", "width", REQUIRED,
           .from_hf = "part(1,2*kv_heads*k_dim,0)"),
    MATRIX("blk.{i}.attn_v.weight", HEADS "kv_proj.weight", "kv_heads*k_dim", "width", REQUIRED,
           .from_hf = "part(1,2*kv_heads*k_dim,kv_heads*k_dim)"),
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.layer.weight", "experts", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "input_linear.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "input_linear.weight", "expert_ffn", "width", REQUIRED,
           .from_hf = "experts part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "output_linear.weight", "width", "expert_ffn",
           REQUIRED, .from_hf = "experts"),
    VECTOR("blk.{i}.ffn_down.bias", MLP "bias", "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    for (uint32_t i = 0; i < hp->layers; i++) hp->heads[i] = hp->route.used * hp->kv_heads[i];
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

/* Norms inside layers have an epsilon of their own; the file's is the last one's. */
static value_id norm(struct build *b, value_id x, const char *name) {
    struct weight *w = build_weight(b, name);
    return graph_norm(b->g, x, w, NULL, NORM_RMS, 1e-6f, w->cols);
}

/* From heads by expert, then key head, to heads by key head, then expert, which is how attention
 * shares keys; the other way. */
static value_id by_key(struct build *b, value_id x) {
    uint32_t used = b->hp->route.used, dim = b->hp->k_dim, kv = b->hp->kv_heads[b->layer];
    value_id out = graph_slice(b->g, x, 1, used * kv * dim, 0, kv * dim);
    for (uint32_t i = 1; i < used; i++) {
        value_id next = graph_slice(b->g, x, 1, used * kv * dim, i * kv * dim, kv * dim);
        out = graph_concat(b->g, out, i * dim, next, dim, kv);
    }
    return out;
}

static value_id by_expert(struct build *b, value_id x) {
    uint32_t used = b->hp->route.used, dim = b->hp->k_dim, kv = b->hp->kv_heads[b->layer];
    value_id out = graph_slice(b->g, x, kv, used * dim, 0, dim);
    for (uint32_t i = 1; i < used; i++) {
        value_id next = graph_slice(b->g, x, kv, used * dim, i * dim, dim);
        out = graph_concat(b->g, out, i * kv * dim, next, kv * dim, 1);
    }
    return out;
}

static value_id attention(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t heads = hp->heads[b->layer], kv = hp->kv_heads[b->layer];
    struct weight *q_exps = build_weight(b, "attn_q_exps.weight"),
                  *out_exps = build_weight(b, "attn_output_exps.weight");
    value_id route = graph_route(g, block_linear(b, x, "attn_gate_inp"), &hp->route), q, y;
    graph_linear_experts(g, x, route, 1, &q_exps, NULL, &q);
    q = by_key(b, graph_join_pairs(g, q, route));
    value_id table = block_rope_table(b, false), k = block_linear(b, x, "attn_k");
    y = graph_attention(g, graph_rope(g, q, table, heads, hp->k_dim, false),
                        graph_rope(g, k, table, kv, hp->k_dim, false), block_linear(b, x, "attn_v"),
                        &(struct attention_args){.heads = heads,
                                                 .kv_heads = kv,
                                                 .k_dim = hp->k_dim,
                                                 .v_dim = hp->v_dim,
                                                 .scale = hp->attention_scale});
    y = graph_split_pairs(g, by_expert(b, y), route);
    graph_linear_experts(g, y, route, 1, &out_exps, NULL, &y);
    return graph_affine(g, graph_combine(g, y, route), NULL, build_weight(b, "attn_output.bias"));
}

static value_id layer(struct build *b, value_id x) {
    x = graph_add(b->g, x, attention(b, norm(b, x, "attn_norm.weight")));
    value_id h = moe_mlp(b, norm(b, x, "ffn_norm.weight"));
    return graph_add(b->g, x, graph_affine(b->g, h, NULL, build_weight(b, "ffn_down.bias")));
}

const struct recipe model_jetmoe = {
    .family = "jetmoe",
    .model_type = "jetmoe",
    .hf_class = "JetMoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, tensors),
    .derive = derive,
    .layer = layer,
};
