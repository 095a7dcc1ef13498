/* SPDX-License-Identifier: Apache-2.0
 * moe.c: see moe.h. */
#include "models/blocks/moe.h"

#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"

#define FIELD(name) offsetof(struct hparams, name)

const struct key moe_keys[] = {
    {"{arch}.expert_count", "num_experts|num_local_experts|n_routed_experts|moe_num_experts",
     KEY_U32, FIELD(expert_count), OPTIONAL, 0, 0, 4096, NULL},
    {"{arch}.expert_used_count",
     "num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts", KEY_U32,
     FIELD(route.used), OPTIONAL, 0, 0, EXPERTS_USED_MAX, NULL},
    {"{arch}.expert_feed_forward_length", "moe_intermediate_size|expert_ffn_hidden_size", KEY_U32,
     FIELD(expert_ffn), OPTIONAL, 0, 1, 1 << 24, NULL},
    {"{arch}.leading_dense_block_count",
     "first_k_dense_replace|num_dense_layers|moe_layer_start_index", KEY_U32,
     FIELD(dense_layers), OPTIONAL, 0, 0, 4096, NULL},
    {"{arch}.nextn_predict_layers", "num_nextn_predict_layers", KEY_U32, FIELD(predictors),
     OPTIONAL, 0, 0, 64, NULL},
    WHOLE("shared_experts", "{arch}.expert_shared_count",
          "n_shared_experts|num_shared_experts|moe_num_shared_experts", OPTIONAL, 0, 0, 4096),
    WHOLE("shared_ffn", "{arch}.expert_shared_feed_forward_length",
          "shared_expert_intermediate_size|shared_experts_intermediate_size|"
          "moe_shared_expert_intermediate_size|shared_intermediate_size",
          OPTIONAL, 0, 0, 1 << 24),
    {0},
};

#define ROUTER                                                                                  \
    MATRIX("blk.{i}.ffn_gate_inp.weight",                                                       \
           "{m}layers.{i}.mlp.gate.weight|{m}layers.{i}.mlp.router.gate.weight", "experts",      \
           "width", REQUIRED)

const struct tensor moe_tensors[] = {
    ROUTER,
    MATRIX("blk.{i}.ffn_gate_exps.weight", "{m}layers.{i}.mlp.experts.{e}.gate_proj.weight",
           "expert_ffn", "width", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", "{m}layers.{i}.mlp.experts.{e}.up_proj.weight",
           "expert_ffn", "width", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.mlp.experts.{e}.down_proj.weight",
           "width", "expert_ffn", REQUIRED, .from_hf = "stack"),
    {0},
};

#define MIXTRAL "{m}layers.{i}.block_sparse_moe."

const struct tensor moe_mixtral_tensors[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", MIXTRAL "gate.weight", "experts", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MIXTRAL "experts.{e}.w1.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MIXTRAL "experts.{e}.w3.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MIXTRAL "experts.{e}.w2.weight", "width", "expert_ffn",
           REQUIRED, .from_hf = "stack"),
    {0},
};

const struct tensor moe_fused_tensors[] = {
    ROUTER,
    MATRIX("blk.{i}.ffn_gate_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.mlp.experts.down_proj", "width",
           "expert_ffn", REQUIRED, .from_hf = "experts"),
    {0},
};

#define SHARED(part)                                                                            \
    "{m}layers.{i}.mlp.shared_experts." part "|{m}layers.{i}.mlp.shared_expert." part           \
    "|{m}layers.{i}.mlp.shared_mlp." part

const struct tensor moe_shared_tensors[] = {
    MATRIX("blk.{i}.ffn_gate_shexp.weight", SHARED("gate_proj.weight"), "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up_shexp.weight", SHARED("up_proj.weight"), "sparse*shared_ffn", "width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", SHARED("down_proj.weight"), "width",
           "sparse*shared_ffn", REQUIRED),
    {0},
};

const struct tensor moe_bias_tensors[] = {
    VECTOR("blk.{i}.exp_probs_b.bias",
           "{m}layers.{i}.mlp.gate.e_score_correction_bias|"
           "{m}layers.{i}.mlp.e_score_correction_bias|"
           "{m}layers.{i}.mlp.experts.e_score_correction_bias|"
           "{m}layers.{i}.mlp.moe_statics.e_score_correction_bias|"
           "{m}layers.{i}.mlp.expert_bias|{m}layers.{i}.moe.router.expert_bias",
           "experts", REQUIRED),
    {0},
};

/* ---- the router ------------------------------------------------------------------------------ */

static const char group_keys[] = "n_group|num_expert_group",
    scale_keys[] =
        "routed_scaling_factor|router_scaling_factor|moe_routed_scaling_factor|route_scale";

/* Refuses what no route can have: of the experts, those of all tokens are some more. */
static ob_status check_router(struct build *b, ob_error *error) {
    const struct route_args *r = &b->hp->route;
    uint32_t experts = b->hp->expert_count + r->always;
    char scratch[64];
    const char *key;
    switch (graph_route_fault(r, experts)) {
    case ROUTE_FITS: return OB_OK;
    case ROUTE_FAULT_EXPERTS:
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.expert_count", moe_keys[0].hf, error,
                            "%u experts, at most %d", experts, ROUTE_EXPERTS_MAX);
    case ROUTE_FAULT_USED:
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", moe_keys[1].hf, error,
                            "%u experts a token, of %u and at most %d", r->used, experts,
                            EXPERTS_USED_MAX);
    case ROUTE_FAULT_GROUPS: break;
    }
    key = build_key(b, NULL, group_keys, scratch, sizeof scratch);
    return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_group_count", key ? key : group_keys,
                        error, "%u groups, of which %u are used, of %u experts, "
                        "num_experts_per_tok %u",
                        r->groups, r->groups_used, experts, r->used);
}

/* Groups that are used where there are none, or more than there are. */
static ob_status check_groups(struct build *b, const struct route_args *r, ob_error *error) {
    uint32_t groups = r->groups > 1 ? r->groups : 1;
    if (!build_has(b, NULL, "topk_group") || (r->groups_used > 0 && r->groups_used <= groups))
        return OB_OK;
    return build_refuse(b, OB_ERR_FORMAT, NULL, "topk_group", error,
                        "%u groups of experts are used, of %u", r->groups_used, groups);
}

/* What the file says of the router, over what the family has. */
static ob_status read_router(struct build *b, const struct route_args *family, ob_error *error) {
    struct route_args *r = &b->hp->route;
    uint32_t used = r->used, func = 0;
    *r = *family;
    r->used = used + r->always;
    build_u32(b, "{arch}.expert_group_count", group_keys, &r->groups);
    build_u32(b, "{arch}.expert_group_used_count", "topk_group", &r->groups_used);
    build_f32(b, "{arch}.expert_weights_scale", scale_keys, &r->scale);
    ob_status s = build_agree(b, scale_keys, error);
    if (s == OB_OK) s = check_groups(b, r, error);
    if (s == OB_OK) s = check_router(b, error);
    if (s != OB_OK) return s;
    if (build_u32(b, "{arch}.expert_gating_func", NULL, &func)) {
        if (func < 1 || func == 3 || func > 4)
            return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.expert_gating_func", "", error,
                                "%u, which is another gating function than softmax, sigmoid or "
                                "the root of softplus", func);
        if ((func == 2) != (r->score == ROUTE_SIGMOID) ||
            (func == 4) != (r->score == ROUTE_SQRT_SOFTPLUS))
            return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.expert_gating_func", "", error,
                                "%u, which is another gating function than this family's", func);
    }
    bool normalize = r->normalize || r->score == ROUTE_SOFTMAX_CHOSEN;
    s = build_flag(b, "{arch}.expert_weights_norm",
                   "norm_topk_prob|moe_renormalize|route_norm", &normalize, error);
    /* A softmax over the chosen is the one over all, normalized. */
    if (r->score == ROUTE_SOFTMAX_CHOSEN && !normalize) r->score = ROUTE_SOFTMAX;
    else if (r->score == ROUTE_SOFTMAX && normalize && r->normalize_eps == 0 && r->groups <= 1)
        r->score = ROUTE_SOFTMAX_CHOSEN;
    else
        r->normalize = normalize && r->score != ROUTE_SOFTMAX_CHOSEN;
    return s;
}

/* ---- which layers ---------------------------------------------------------------------------- */

/* Qwen's configurations name plain layers by a list and a step, ERNIE's by a range and a step. */
static ob_status check_dense(struct build *b, uint64_t *step, ob_error *error) {
    static const char gguf[] = "{arch}.interleave_moe_layer_step",
                      every[] = "decoder_sparse_step|moe_layer_interval|interleave_moe_layer_step",
                      list[] = "mlp_only_layers";
    uint64_t layer;
    *step = 1;
    if (build_has(b, gguf, every) && (!build_u64_at(b, gguf, every, 0, step) || *step == 0))
        return build_refuse(b, OB_ERR_FORMAT, gguf, every, error, "is not a whole number >= 1");
    for (uint64_t i = 0; i < build_count(b, NULL, list); i++)
        if (!build_u64_at(b, NULL, list, i, &layer))
            return build_refuse(b, OB_ERR_FORMAT, list, list, error, "is no list of layers");
    return OB_OK;
}

/* Whether a list of layers has this one. */
static bool is_listed(struct build *b, const char *list, uint32_t layer) {
    uint64_t named;
    for (uint64_t i = 0; i < build_count(b, NULL, list); i++)
        if (build_u64_at(b, NULL, list, i, &named) && named == layer) return true;
    return false;
}

static bool has_tensor(struct build *b, const char *name, uint32_t layer) {
    char full[64];
    int n = snprintf(full, sizeof full, "blk.%u.%s.weight", layer, name);
    return source_tensor_find(b->source, (struct str){full, (size_t)n});
}

static bool is_dense(struct build *b, uint64_t step, uint32_t layer) {
    uint64_t named;
    struct str type;
    /* Not all GGUF files have a key for it. */
    if (has_tensor(b, "ffn_gate", layer) && !has_tensor(b, "ffn_gate_inp", layer)) return true;
    if (build_str_at(b, NULL, "mlp_layer_types", layer, &type)) return str_is(type, "dense");
    if (build_has(b, NULL, "moe_layers")) return !is_listed(b, "moe_layers", layer);
    if (layer < b->hp->dense_layers || (layer + 1) % step != 0) return true;
    if (build_u64_at(b, NULL, "moe_layer_end_index", 0, &named) && layer > named) return true;
    return is_listed(b, "mlp_only_layers", layer);
}

/* Shared experts are as wide as so many of the others, where no key says it. */
static ob_status size_shared(struct build *b, ob_error *error) {
    if (build_number(b, "shared_ffn") > 0) return OB_OK;
    return build_set(b, "shared_ffn", build_number(b, "shared_experts") * b->hp->expert_ffn, error);
}

ob_status moe_sizes(struct build *b, const struct route_args *family, ob_error *error) {
    struct hparams *hp = b->hp;
    if (hp->expert_count == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_count", moe_keys[0].hf, error,
                            "is missing or 0, this family has experts");
    if (hp->route.used == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", moe_keys[1].hf, error,
                            "is missing or 0, a token needs an expert");
    if (hp->route.used > hp->expert_count)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", moe_keys[1].hf, error,
                            "%u experts a token, the model has %u", hp->route.used,
                            hp->expert_count);
    uint64_t step;
    ob_status s = read_router(b, family, error);
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
    return size_shared(b, error);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* act(gate) * up, or act(up) where there is no gate. */
static value_id activate(struct build *b, const value_id out[2], bool gated) {
    const struct hparams *hp = b->hp;
    if (!gated) return graph_act(b->g, out[0], hp->act);
    if (hp->glu_clamp.alpha > 0) return graph_glu_clamped(b->g, out[1], out[0], &hp->glu_clamp);
    return graph_glu(b->g, out[1], out[0], hp->act);
}

value_id moe_shared(struct build *b, value_id x) {
    struct weight *w[2] = {build_weight(b, "ffn_up_shexp.weight"),
                           build_weight(b, "ffn_gate_shexp.weight")},
                  *bias[2] = {build_weight(b, "ffn_up_shexp.bias"),
                              build_weight(b, "ffn_gate_shexp.bias")},
                  *gate = build_weight(b, "ffn_gate_inp_shexp.weight");
    value_id out[2];
    graph_linear(b->g, x, w[1] ? 2 : 1, w, bias, out);
    value_id y = block_linear(b, activate(b, out, w[1]), "ffn_down_shexp");
    return gate ? graph_glu(b->g, graph_linear1(b->g, x, gate, NULL), y, ACT_SIGMOID) : y;
}

value_id moe_experts(struct build *b, value_id x, value_id logits,
                     const struct route_args *router) {
    struct graph *g = b->g;
    struct weight *w[2] = {build_weight(b, "ffn_up_exps.weight"),
                           build_weight(b, "ffn_gate_exps.weight")},
                  *bias[2] = {build_weight(b, "ffn_up_exps.bias"),
                              build_weight(b, "ffn_gate_exps.bias")},
                  *down = build_weight(b, "ffn_down_exps.weight"),
                  *down_bias = build_weight(b, "ffn_down_exps.bias");
    struct route_args args = *router;
    args.bias = build_weight(b, "exp_probs_b.bias");
    struct weight *hash = build_weight(b, "ffn_gate_tid2eid.weight");
    args.has_chosen = hash != NULL;
    if (hash) args.chosen = graph_embed(g, hash, 1);
    value_id route = graph_route(g, logits, &args), out[2];
    graph_linear_experts(g, x, route, w[1] ? 2 : 1, w, bias, out);
    graph_linear_experts(g, activate(b, out, w[1]), route, 1, &down, &down_bias, out);
    return graph_combine(g, out[0], route);
}

value_id moe_mlp(struct build *b, value_id x) {
    value_id y = moe_experts(b, x, block_linear(b, x, "ffn_gate_inp"), &b->hp->route);
    return build_weight(b, "ffn_up_shexp.weight") ? graph_add(b->g, y, moe_shared(b, x)) : y;
}
