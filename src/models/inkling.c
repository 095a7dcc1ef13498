/* SPDX-License-Identifier: Apache-2.0
 * inkling.c: InklingForCausalLM: no rotary embedding, but biases on the scores by distance, which
 * each token mixes from a few profiles; short convolutions of keys, values and of what sub-layers
 * add; shared experts weighed together with the chosen ones. */
#include "models/inkling.h"

#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

const struct key inkling_keys[] = {
    {"{arch}.context_length", "max_position_embeddings|model_max_length", KEY_U32,
     offsetof(struct hparams, context), REQUIRED, 0, 1, 1 << 30, NULL},
    WHOLE("conv", NULL, "conv_kernel_size|sconv_kernel_size", OPTIONAL, 4, 1, 64),
    WHOLE("d_rel", NULL, "d_rel", OPTIONAL, 16, 1, 4096),
    WHOLE("window", NULL, "sliding_window_size|sliding_window", REQUIRED, 0, 1, 1 << 16),
    WHOLE("rel_extent", NULL, "rel_extent", OPTIONAL, 1024, 1, 1 << 16),
    WHOLE("swa_heads", NULL, "swa_num_attention_heads", REQUIRED, 0, 1, 1024),
    WHOLE("swa_kv_heads", NULL, "swa_num_key_value_heads", REQUIRED, 0, 1, 1024),
    WHOLE("swa_head_dim", NULL, "swa_head_dim", REQUIRED, 0, 1, 4096),
    REAL("log_floor", NULL, "log_scaling_n_floor", OPTIONAL, 0, 0, 1e9),
    REAL("log_alpha", NULL, "log_scaling_alpha", OPTIONAL, 0.1, -1e6, 1e6),
    WHOLE("unpadded", NULL, "unpadded_vocab_size", OPTIONAL, 0, 0, 1 << 24),
    {0},
};

/* ---- shared ---- */

static bool slides(struct build *b, uint32_t layer) {
    if (build_has(b, NULL, "layer_types")) return decoder_type_is(b, layer, "hybrid_sliding");
    uint64_t local, n = build_count(b, NULL, "local_layer_ids");
    for (uint64_t i = 0; i < n; i++)
        if (build_u64_at(b, NULL, "local_layer_ids", i, &local) && local == layer) return true;
    return n == 0 && (layer + 1) % 6 != 0;
}

ob_status inkling_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t unpadded = build_whole(b, "unpadded");
    if (unpadded > hp->vocab)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "unpadded_vocab_size", error,
                            "%u, the vocabulary has %u", unpadded, hp->vocab);
    ob_status s = build_set(b, "padded", hp->vocab, error);
    if (unpadded > 0) hp->vocab = unpadded;
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (!slides(b, i)) continue;
        hp->heads[i] = build_whole(b, "swa_heads");
        hp->kv_heads[i] = build_whole(b, "swa_kv_heads");
    }
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    if (build_whole(b, "swa_head_dim") != hp->k_dim)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "swa_head_dim", error,
                            "%u, heads of other layers have %u", build_whole(b, "swa_head_dim"),
                            hp->k_dim);
    for (uint32_t i = 0; i < hp->layers; i++)
        if (slides(b, i)) hp->window[i] = build_whole(b, "window");
    return OB_OK;
}

/* All heads mix the same profiles. */
static struct weight *for_heads(struct build *b, const struct weight *w, uint32_t heads) {
    struct weight *out = arena_alloc(b->arena, sizeof *out);
    const void **head = arena_array(b->arena, heads, sizeof *head);
    if (!out || !head) {
        b->g->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < heads; i++) head[i] = w->data;
    *out = *w;
    out->data = NULL;
    out->experts = heads;
    out->expert = head;
    out->heads = true;
    return out;
}

value_id inkling_by_distance(struct build *b, value_id states) {
    struct weight *w = for_heads(b, build_weight(b, "attn_rel.weight"), b->hp->heads[b->layer]);
    return w ? graph_linear_heads(b->g, states, w) : states;
}

value_id inkling_temper(struct build *b, value_id x) {
    float at = (float)build_number(b, "log_floor"), by = (float)build_number(b, "log_alpha");
    if (b->hp->window[b->layer] || at == 0) return x;
    return graph_log_position(b->g, x, by, 1, at);
}

value_id inkling_conv(struct build *b, value_id x, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    struct weight *w = build_weight(b, full);
    return graph_add(b->g, graph_conv1d(b->g, x, w, NULL, build_whole(b, "conv")), x);
}

/* ---- Inkling ---- */

static const struct key keys[] = {
    REAL("logit_divisor", NULL, "logits_mup_width_multiplier|embedding_multiplier", OPTIONAL, 24,
         1e-6, 0),
    WHOLE("dense_ffn", NULL, "dense_intermediate_size", OPTIONAL, 0, 0, 1 << 24),
    WHOLE("dense_first", NULL, "dense_mlp_idx", OPTIONAL, 0, 0, 4096),
    {0},
};

#define ATTENTION "{m}layers.{i}.self_attn."
#define SHARED "{m}layers.{i}.mlp.shared_experts."

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "padded", "width", REQUIRED),
    VECTOR("token_embd_norm.weight", "{m}embed_tokens.embed_norm.weight", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", REQUIRED,
           .from_hf = "part(1,padded,0)"),
    VECTOR("output_norm.weight", "{m}norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_r.weight", ATTENTION "r_proj.weight", "heads*d_rel", "width", REQUIRED),
    INKLING_DISTANCES(ATTENTION "rel_logits_proj.proj"),
    MATRIX("blk.{i}.attn_k_conv.weight", ATTENTION "k_sconv.conv1d.weight", "kv_heads*k_dim",
           "conv", REQUIRED),
    MATRIX("blk.{i}.attn_v_conv.weight", ATTENTION "v_sconv.conv1d.weight", "kv_heads*v_dim",
           "conv", REQUIRED),
    MATRIX("blk.{i}.attn_conv.weight", "{m}layers.{i}.attn_sconv.conv1d.weight", "width", "conv",
           REQUIRED),
    MATRIX("blk.{i}.ffn_conv.weight", "{m}layers.{i}.mlp_sconv.conv1d.weight", "width", "conv",
           REQUIRED),
    VECTOR("blk.{i}.ffn_scale", "{m}layers.{i}.mlp.global_scale", "ffn/ffn*width", REQUIRED,
           .from_hf = "repeat(width)"),
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.mlp.gate.weight",
           "sparse*experts+sparse*shared_experts", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_gate_inp.scale", "{m}layers.{i}.mlp.gate.global_scale",
           "sparse*experts+sparse*shared_experts", REQUIRED,
           .from_hf = "repeat(experts+shared_experts)"),
    MATRIX("blk.{i}.ffn_gate_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.mlp.experts.down_proj", "width",
           "expert_ffn", REQUIRED, .from_hf = "experts"),
    MATRIX("blk.{i}.ffn_gate_shexp.weight", SHARED "gate_proj", "sparse*shared_ffn", "width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up_shexp.weight", SHARED "up_proj", "sparse*shared_ffn", "width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", SHARED "down_proj", "sparse*width", "expert_ffn",
           REQUIRED, .from_hf = "heads(width,0,shared_experts)"),
    KNOWN("mtp.*", "{m}mtp.*", "predicts further tokens"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, "shared_expert_sink", 1, 1, "shared experts beside the router"}, {0}};
    struct hparams *hp = b->hp;
    struct route_args router = {.score = ROUTE_SIGMOID, .normalize = true, .scale = 8,
                                .always = build_whole(b, "shared_experts")};
    uint32_t dense = build_whole(b, "dense_ffn");
    if (router.always == 0)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "n_shared_experts", error,
                            "is missing or 0, this family has shared experts");
    if (dense > 0) hp->expert_ffn = hp->ffn[0]; /* then intermediate_size is the experts' */
    for (uint32_t i = 0; dense > 0 && i < hp->layers; i++) hp->ffn[i] = dense;
    if (!build_has(b, NULL, "mlp_layer_types")) hp->dense_layers = build_whole(b, "dense_first");
    ob_status s = build_plain(b, plain, error);
    if (s == OB_OK) s = inkling_sizes(b, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    if (s != OB_OK) return s;
    hp->attention_scale = 1.0f / (float)hp->k_dim;
    hp->logit_scale = 1 / (float)build_number(b, "logit_divisor");
    return OB_OK;
}

static value_id attend(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t i = b->layer;
    struct weight *w[4] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight"), build_weight(b, "attn_r.weight")};
    value_id out[4];
    graph_linear(g, x, 4, w, NULL, out);
    value_id q = inkling_temper(b, block_norm_named(b, out[0], "attn_q_norm"));
    value_id k = block_norm_named(b, inkling_conv(b, out[1], "attn_k_conv"), "attn_k_norm");
    value_id v = inkling_conv(b, out[2], "attn_v_conv");
    struct attention_args attention = {
        .heads = hp->heads[i], .kv_heads = hp->kv_heads[i], .k_dim = hp->k_dim,
        .v_dim = hp->v_dim, .window = hp->window[i], .scale = hp->attention_scale,
        .has_by_distance = true,
        .by_distance = inkling_by_distance(b, inkling_temper(b, out[3]))};
    value_id y = block_linear(b, graph_attention(g, q, k, v, &attention), "attn_output");
    return inkling_conv(b, y, "attn_conv");
}

/* The last of the route's experts, whose weights are columns of it, see all tokens. */
static value_id mixture(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t used = b->hp->route.used, shared = b->hp->route.always, width = b->hp->width;
    struct weight *w[2] = {build_weight(b, "ffn_up_exps.weight"),
                           build_weight(b, "ffn_gate_exps.weight")},
                  *down = build_weight(b, "ffn_down_exps.weight"),
                  *beside[2] = {build_weight(b, "ffn_up_shexp.weight"),
                                build_weight(b, "ffn_gate_shexp.weight")};
    struct route_args args = b->hp->route;
    args.bias = build_weight(b, "exp_probs_b.bias");
    args.expert_scale = build_weight(b, "ffn_gate_inp.scale");
    value_id route = graph_route(g, block_linear(b, x, "ffn_gate_inp"), &args), out[2];
    graph_linear_experts(g, x, route, 2, w, NULL, out);
    graph_linear_experts(g, graph_glu(g, out[1], out[0], b->hp->act), route, 1, &down, NULL, out);
    value_id y = graph_combine(g, out[0], route);
    graph_linear(g, x, 2, beside, NULL, out);
    value_id h = graph_mul(g, graph_glu(g, out[1], out[0], b->hp->act),
                           graph_slice(g, route, 1, 2 * used, used - shared, shared));
    h = graph_linear_heads(g, h, build_weight(b, "ffn_down_shexp.weight"));
    for (uint32_t i = 0; i < shared; i++)
        y = graph_add(g, y, graph_slice(g, h, 1, shared * width, i * width, width));
    return y;
}

static value_id mlp(struct build *b, value_id x, const struct decoder_args *args) {
    value_id y = b->hp->experts[b->layer] > 0
                     ? mixture(b, x)
                     : graph_affine(b->g, decoder_mlp_block(b, x, args),
                                    build_weight(b, "ffn_scale"), NULL);
    return inkling_conv(b, y, "ffn_conv");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = attend, .mlp = mlp});
}

const struct recipe model_inkling_text = {
    .family = "inkling",
    .model_type = "inkling_text",
    .hf_class = "InklingForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, moe_keys, inkling_keys, keys),
    TENSORS(tensors, decoder_norms, decoder_attention_tensors, decoder_qk_norms, decoder_mlp,
            moe_bias_tensors),
    .derive = derive,
    .layer = layer,
};
