/* SPDX-License-Identifier: Apache-2.0
 * moe.c: see moe.h. */
#include "models/blocks/moe.h"

#include "base/error.h"

#define FIELD(name) offsetof(struct hparams, name)

const struct key moe_keys[] = {
    {"{arch}.expert_count", "num_experts|num_local_experts", KEY_U32, FIELD(expert_count), OPTIONAL,
     0, 0, 4096},
    {"{arch}.expert_used_count", "num_experts_per_tok", KEY_U32, FIELD(expert_used), OPTIONAL, 0, 0,
     EXPERTS_USED_MAX},
    {"{arch}.expert_feed_forward_length", "moe_intermediate_size", KEY_U32, FIELD(expert_ffn),
     OPTIONAL, 0, 1, 1 << 24},
    {"{arch}.leading_dense_block_count", NULL, KEY_U32, FIELD(dense_layers), OPTIONAL, 0, 0, 4096},
    {0},
};

const struct tensor moe_tensors[] = {
    {"blk.{i}.ffn_gate_inp.weight", "model.layers.{i}.mlp.gate.weight", "experts", "width",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.ffn_gate_exps.weight", "model.layers.{i}.mlp.experts.{e}.gate_proj.weight",
     "expert_ffn", "width", REQUIRED, STACK, NULL},
    {"blk.{i}.ffn_up_exps.weight", "model.layers.{i}.mlp.experts.{e}.up_proj.weight", "expert_ffn",
     "width", REQUIRED, STACK, NULL},
    {"blk.{i}.ffn_down_exps.weight", "model.layers.{i}.mlp.experts.{e}.down_proj.weight", "width",
     "expert_ffn", REQUIRED, STACK, NULL},
    {0},
};

/* Other routers and shared experts. */
static const struct plain plain[] = {
    {"{arch}.expert_gating_func", NULL, 1, 1, "another gating function than softmax"},
    {"{arch}.expert_weights_scale", "routed_scaling_factor", 1, 0, "a scale of experts' weights"},
    {"{arch}.expert_group_count", "n_group", 0, 1, "a number of groups of experts"},
    {"{arch}.expert_shared_count", "n_shared_experts|num_shared_experts", 0, 0,
     "a number of shared experts"},
    {"{arch}.expert_shared_feed_forward_length", "shared_expert_intermediate_size", 0, 0,
     "the width of a shared expert"},
    {0},
};

/* Qwen's configurations name plain layers by a list and a step. */
static ob_status check_dense(struct build *b, uint64_t *step, ob_error *error) {
    static const char every[] = "decoder_sparse_step", list[] = "mlp_only_layers";
    uint64_t layer;
    *step = 1;
    if (source_kind(b->source) != SOURCE_HF) return OB_OK;
    if (source_has(b->source, every) &&
        (!source_u64(b->source, every, 0, step) || *step == 0))
        return build_refuse(b, OB_ERR_FORMAT, every, every, error, "is not a whole number >= 1");
    for (uint64_t i = 0; i < source_count(b->source, list); i++)
        if (!source_u64(b->source, list, i, &layer))
            return build_refuse(b, OB_ERR_FORMAT, list, list, error, "is no list of layers");
    return OB_OK;
}

static bool is_dense(const struct build *b, uint64_t step, uint32_t layer) {
    uint64_t named;
    if (layer < b->hp->dense_layers || (layer + 1) % step != 0) return true;
    if (source_kind(b->source) != SOURCE_HF) return false;
    for (uint64_t i = 0; i < source_count(b->source, "mlp_only_layers"); i++)
        if (source_u64(b->source, "mlp_only_layers", i, &named) && named == layer) return true;
    return false;
}

ob_status moe_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    if (hp->expert_count == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_count", moe_keys[0].hf, error,
                            "is missing or 0, this family has experts");
    if (hp->expert_used == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", moe_keys[1].hf, error,
                            "is missing or 0, a token needs an expert");
    if (hp->expert_used > hp->expert_count)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", "num_experts_per_tok",
                            error, "%u experts a token, the model has %u", hp->expert_used,
                            hp->expert_count);
    uint64_t step;
    ob_status s = build_plain(b, plain, error);
    if (s == OB_OK) s = check_dense(b, &step, error);
    if (s != OB_OK) return s;
    bool as_plain = hp->expert_ffn == 0; /* experts are as wide as the file says of all MLPs */
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (is_dense(b, step, i)) continue;
        if (hp->expert_ffn == 0) hp->expert_ffn = hp->ffn[i];
        if (as_plain && hp->ffn[i] != hp->expert_ffn)
            return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.feed_forward_length",
                                "intermediate_size", error,
                                "experts of %u in one layer, of %u in another", hp->expert_ffn,
                                hp->ffn[i]);
        hp->experts[i] = hp->expert_count;
        hp->ffn[i] = 0;
    }
    return OB_OK;
}

value_id moe_mlp(struct build *b, value_id x, enum act_kind act) {
    struct graph *g = b->g;
    struct weight *w[2] = {build_weight(b, "ffn_gate_exps.weight"),
                           build_weight(b, "ffn_up_exps.weight")},
                  *down = build_weight(b, "ffn_down_exps.weight");
    value_id logits = graph_linear1(g, x, build_weight(b, "ffn_gate_inp.weight"), NULL);
    value_id route = graph_route(g, logits, b->hp->route, b->hp->expert_used), out[2];
    graph_linear_experts(g, x, route, 2, w, out);
    graph_linear_experts(g, graph_glu(g, out[0], out[1], act), route, 1, &down, out);
    return graph_combine(g, out[0], route);
}
