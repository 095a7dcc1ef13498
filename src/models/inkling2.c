/* SPDX-License-Identifier: Apache-2.0
 * inkling2.c: Inkling2ForCausalLM and Inkling2LoopForCausalLM: as Inkling (inkling.c), with lengths
 * of heads cut in place of norms, a sink that each token computes, convolutions with weights of the
 * token's own where a layer sees all positions, and in place of the residual stream a mean of what
 * earlier blocks of layers have left, weighed by learned queries. Inkling 2 Loop runs some layers
 * several times; of a pass after the first their inputs are mixed with what the one before left. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/inkling.h"

static const struct key keys[] = {
    {NULL, "moe_intermediate_size|intermediate_size", KEY_U32, offsetof(struct hparams, expert_ffn),
     REQUIRED, 0, 1, 1 << 24, NULL},
    WHOLE("block", NULL, "n_layers_per_attn_res_block", OPTIONAL, 6, 1, 4096),
    REAL("qk_clip", NULL, "qk_l2_clip_threshold", OPTIONAL, 22.627416997969522, 1e-6, 0),
    REAL("rel_clip", NULL, "rel_l2_clip_threshold", OPTIONAL, 8, 1e-6, 0),
    REAL("gate_cap", NULL, "mlp_gate_softcap", OPTIONAL, 4, 1e-6, 0),
    REAL("up_cap", NULL, "mlp_up_softcap", OPTIONAL, 25, 1e-6, 0),
    REAL("logit_cap", NULL, "final_logit_softcapping", OPTIONAL, 30, 1e-6, 0),
    WHOLE("loop_start", NULL, "loop_layer_index_start", OPTIONAL, 0, 0, 4096),
    WHOLE("loop_end", NULL, "loop_layer_index_end", OPTIONAL, 0, 0, 4096),
    WHOLE("passes", NULL, "loop_num_passes", OPTIONAL, 1, 1, 64),
    WHOLE("loop_rank", NULL, "loop_gate_rank", OPTIONAL, 0, 0, 1 << 16),
    {0},
};

#define LAYER "{m}layers.{i}."
#define ATTENTION LAYER "attn."
/* Keys or values: a convolution by weights of the file, to which those of a token may be added. */
#define CONV(letter)                                                                              \
    MATRIX("blk.{i}.attn_" letter "_conv.weight", ATTENTION letter "_sconv.weight",                \
           "slides*kv_heads*k_dim", "conv", REQUIRED),                                             \
    MATRIX("blk.{i}.attn_" letter "_taps.weight", ATTENTION letter "_sconv.static_w",              \
           "sees_all*conv", "kv_heads*k_dim", REQUIRED),                                           \
    MATRIX("blk.{i}.attn_" letter "_mix.weight", ATTENTION letter "_sconv.weight_proj",            \
           "sees_all*conv*kv_heads", "width", REQUIRED)
#define GATE(ours, theirs)                                                                       \
    MATRIX("blk.{i}." ours "_in.weight", LAYER "controllers." theirs ".down_weight",             \
           "loops*loop_rank", "2*width", REQUIRED),                                              \
    MATRIX("blk.{i}." ours "_forget.weight", LAYER "controllers." theirs ".forget_weight",       \
           "loops*width", "loop_rank", REQUIRED),                                                \
    MATRIX("blk.{i}." ours "_gain.weight", LAYER "controllers." theirs ".gain_weight",           \
           "loops*width", "loop_rank", REQUIRED)

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed.weight", "padded", "width", REQUIRED),
    VECTOR("token_embd_norm.weight", "{m}embed_norm.weight", "width", REQUIRED),
    MATRIX("output.weight", "{m}unembed.weight", "vocab", "width", REQUIRED,
           .from_hf = "part(1,padded,0)"),
    VECTOR("output_norm.weight", "{m}norm.weight", "width", REQUIRED),
    MATRIX("output_query.weight", "{m}attn_res.output_query", "1", "width", REQUIRED),
    MATRIX("blk.{i}.attn_query.weight", "{m}attn_res.attn_queries.{h}",
           "slides*shares+sees_all*3*shares", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_query.weight", "{m}attn_res.mlp_queries.{i}", "1", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", LAYER "attn_norm.weight", "slides*width", REQUIRED),
    VECTOR("blk.{i}.attn_q_in_norm.weight", LAYER "q_input_norm.weight", "sees_all*width",
           REQUIRED),
    VECTOR("blk.{i}.attn_k_in_norm.weight", LAYER "k_input_norm.weight", "sees_all*width",
           REQUIRED),
    VECTOR("blk.{i}.attn_v_in_norm.weight", LAYER "v_input_norm.weight", "sees_all*width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", LAYER "mlp_norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", ATTENTION "wq_du.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", ATTENTION "wk_dv.weight", "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", ATTENTION "wv_dv.weight", "kv_heads*v_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_r.weight", ATTENTION "wr_du.weight", "heads*d_rel", "width", REQUIRED),
    MATRIX("blk.{i}.attn_gate.weight", ATTENTION "gate_attn.weight", "heads*v_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_sink.weight", ATTENTION "attn_sink_proj.weight", "heads", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", ATTENTION "wo_ud.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_q_scale", ATTENTION "q_l2_clip.scale", "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_r_scale", ATTENTION "rel_l2_clip.scale", "heads*d_rel", REQUIRED),
    INKLING_DISTANCES(ATTENTION "rel_logits_proj.proj"),
    CONV("k"),
    CONV("v"),
    MATRIX("blk.{i}.attn_conv.weight", LAYER "attn_sconv.weight", "width", "conv", REQUIRED),
    MATRIX("blk.{i}.ffn_conv.weight", LAYER "mlp_sconv.weight", "width", "conv", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", LAYER "mlp.gate.weight", "experts", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", LAYER "mlp.gate.bias", "experts", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", LAYER "mlp.experts.w13_weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts part(expert_ffn,2,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", LAYER "mlp.experts.w13_weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts part(expert_ffn,2,1)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", LAYER "mlp.experts.w2_weight", "width", "expert_ffn",
           REQUIRED, .from_hf = "experts"),
    GATE("loop_q", "attn"),
    GATE("loop_k", "k"),
    GATE("loop_v", "v"),
    GATE("loop_ffn", "mlp"),
    MATRIX("loop_query.weight", "{m}middle_cycle_cross_pass_queries", "2*looped", "width",
           REQUIRED),
    MATRIX("loop_kv_query.weight", "{m}middle_cycle_cross_pass_kv_queries", "2*looped", "width",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {
        .score = ROUTE_SIGMOID, .normalize = true, .normalize_eps = 1e-20f, .scale = 8};
    struct hparams *hp = b->hp;
    struct str score = STR_LIT("sigmoid");
    uint32_t start = build_whole(b, "loop_start"), end = build_whole(b, "loop_end");
    build_str(b, NULL, "scoring_func", &score);
    if (!str_is(score, "sigmoid"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "scoring_func", error,
                            "\"%.*s\", this family's router has sigmoids", STR_ARG(score));
    if (end > 0 && (start < 1 || start >= end || end > hp->layers))
        return build_refuse(b, OB_ERR_FORMAT, NULL, "loop_layer_index_end", error,
                            "layers from %u to %u of %u are looped", start, end, hp->layers);
    ob_status s = inkling_sizes(b, error);
    if (s == OB_OK) s = build_set(b, "looped", end > 0 ? end - start : 0, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    /* The first layer has no query of its own; those of the others are numbered from 0. */
    hp->shared_use = arena_array(b->arena, hp->layers, sizeof *hp->shared_use);
    hp->shared_from = arena_array(b->arena, hp->layers, sizeof *hp->shared_from);
    if (!hp->shared_use || !hp->shared_from)
        return error_memory(error, "hyperparameters", hp->layers);
    hp->loops = arena_array(b->arena, hp->layers, sizeof *hp->loops);
    if (!hp->loops) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        hp->shared_use[i] = i;
        hp->loops[i] = i >= start && i < end;
    }
    hp->logit_softcap = (float)build_number(b, "logit_cap");
    return s;
}

/* ---- means of blocks ---- */

enum { QUERIES_MAX = 3 };

/* What blocks have left, each of length sqrt(width). */
struct stack {
    value_id *state;
    uint32_t count;
};

static value_id normed(struct build *b, value_id x) {
    return graph_norm(b->g, x, NULL, NULL, NORM_RMS, 1e-6f, b->hp->width);
}

static void push(struct build *b, struct stack *s, value_id x) {
    s->state[s->count++] = normed(b, x);
}

/* log(exp(a) + exp(b)) */
static value_id add_logs(struct graph *g, value_id a, value_id b) {
    value_id more = graph_add(g, b, graph_scale(g, a, -1));
    return graph_add(g, a, graph_act(g, more, ACT_SOFTPLUS));
}

/* For each of the `queries` rows of w a mean of the states and of x, by softmax. */
static void means(struct build *b, const struct stack *s, value_id x, struct weight *w,
                  value_id *out) {
    struct graph *g = b->g;
    uint32_t n = s->count + 1, queries = w->rows;
    value_id *score = arena_array(b->arena, n, sizeof *score), last = normed(b, x), sum = NO_VALUE;
    if (!score) {
        g->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        value_id state = i < s->count ? s->state[i] : last;
        score[i] = graph_linear1(g, state, w, NULL);
        score[i] = graph_scale(g, score[i], 1.0f / sqrtf((float)b->hp->width));
        sum = i == 0 ? score[i] : add_logs(g, sum, score[i]);
    }
    sum = graph_scale(g, sum, -1);
    for (uint32_t i = 0; i < n; i++) {
        value_id state = i < s->count ? s->state[i] : last;
        value_id weight = graph_act(g, graph_add(g, score[i], sum), ACT_EXP);
        for (uint32_t q = 0; q < queries; q++) {
            value_id part = graph_mul(g, state, graph_slice(g, weight, 1, queries, q, 1));
            out[q] = i == 0 ? part : graph_add(g, out[q], part);
        }
    }
}

/* ---- attention ---- */

/* Heads of `dim` columns that are longer than `limit` are cut to it. */
static value_id cut(struct build *b, value_id x, float limit, uint32_t dim) {
    x = graph_norm(b->g, x, NULL, NULL, NORM_L2, limit, dim);
    return graph_scale(b->g, x, limit);
}

/* The file's weights of what lies so many tokens back. */
static struct weight *tap(struct build *b, const struct weight *w, uint32_t back) {
    struct weight *out = arena_alloc(b->arena, sizeof *out);
    if (!out) {
        b->g->failed = true;
        return NULL;
    }
    *out = *w;
    out->rows = 1;
    out->data = (const char *)w->data + back * w->row_bytes;
    return out;
}

static value_id conv_by_token(struct build *b, value_id x, struct weight *taps, value_id mix) {
    struct graph *g = b->g;
    uint32_t kernel = build_whole(b, "conv"), heads = b->hp->kv_heads[b->layer];
    value_id sum = x;
    for (uint32_t i = 0; i < kernel; i++) {
        if (i > 0) x = graph_token_shift(g, x);
        sum = graph_add(g, sum, graph_affine(g, x, tap(b, taps, i), NULL));
        sum = graph_add(g, sum, graph_mul(g, x, graph_slice(g, mix, heads, kernel, i, 1)));
    }
    return graph_scale(g, sum, 1.0f / sqrtf((float)(2 * kernel + 1)));
}

/* Convolutions take what they sum by its number. */
static value_id conv(struct build *b, value_id x, const char *name) {
    return graph_scale(b->g, inkling_conv(b, x, name),
                       1.0f / sqrtf((float)(build_whole(b, "conv") + 1)));
}

/* Keys or values of x, convolved. */
static value_id project(struct build *b, value_id x, const char *name) {
    char conv_name[64], taps[64], mix[64];
    snprintf(conv_name, sizeof conv_name, "%s_conv", name);
    snprintf(taps, sizeof taps, "%s_taps.weight", name);
    snprintf(mix, sizeof mix, "%s_mix", name);
    value_id y = block_linear(b, x, name);
    struct weight *w = build_weight(b, taps);
    return w ? conv_by_token(b, y, w, block_linear(b, x, mix)) : conv(b, y, conv_name);
}

/* Of what queries, keys and values are made of. */
static value_id attend(struct build *b, const value_id x[3]) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t i = b->layer, d_rel = build_whole(b, "d_rel");
    float limit = (float)build_number(b, "qk_clip");
    struct weight *w[4] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_r.weight"),
                           build_weight(b, "attn_gate.weight"),
                           build_weight(b, "attn_sink.weight")};
    value_id out[4];
    graph_linear(g, x[0], 4, w, NULL, out);
    value_id q = graph_affine(g, out[0], build_weight(b, "attn_q_scale"), NULL);
    value_id r = graph_affine(g, out[1], build_weight(b, "attn_r_scale"), NULL);
    r = inkling_temper(b, cut(b, r, (float)build_number(b, "rel_clip"), d_rel));
    value_id k = cut(b, project(b, x[1], "attn_k"), limit, hp->k_dim);
    value_id v = graph_norm(g, project(b, x[2], "attn_v"), NULL, NULL, NORM_RMS, hp->eps,
                            hp->v_dim);
    struct attention_args args = {
        .heads = hp->heads[i], .kv_heads = hp->kv_heads[i], .k_dim = hp->k_dim,
        .v_dim = hp->v_dim, .window = hp->window[i], .scale = hp->attention_scale,
        .has_by_distance = true, .by_distance = inkling_by_distance(b, r),
        .has_token_sinks = true, .token_sinks = out[3]};
    q = inkling_temper(b, cut(b, q, limit, hp->k_dim));
    value_id y = graph_glu(g, out[2], graph_attention(g, q, k, v, &args), ACT_SIGMOID);
    return conv(b, block_linear(b, y, "attn_output"), "attn_conv");
}

/* ---- the layer ---- */

static value_id mixture(struct build *b, value_id x) {
    struct graph *g = b->g;
    struct weight *w[2] = {build_weight(b, "ffn_up_exps.weight"),
                           build_weight(b, "ffn_gate_exps.weight")},
                  *down = build_weight(b, "ffn_down_exps.weight");
    struct route_args args = b->hp->route;
    args.bias = build_weight(b, "exp_probs_b.bias");
    value_id route = graph_route(g, block_linear(b, x, "ffn_gate_inp"), &args), out[2];
    graph_linear_experts(g, x, route, 2, w, NULL, out);
    value_id h = graph_mul(g, graph_softcap(g, out[1], (float)build_number(b, "gate_cap")),
                           graph_softcap(g, out[0], (float)build_number(b, "up_cap")));
    h = graph_glu(g, out[1], h, ACT_SIGMOID);
    graph_linear_experts(g, h, route, 1, &down, NULL, out);
    return conv(b, graph_combine(g, out[0], route), "ffn_conv");
}

/* x less some of it, and some of the message. */
static value_id mix_in(struct build *b, value_id x, value_id message, const char *gate) {
    struct graph *g = b->g;
    uint32_t n = b->hp->width;
    char in[64], forget[64], gain[64];
    snprintf(in, sizeof in, "%s_in", gate);
    snprintf(forget, sizeof forget, "%s_forget", gate);
    snprintf(gain, sizeof gain, "%s_gain", gate);
    value_id a = graph_norm(g, x, NULL, NULL, NORM_RMS, b->hp->eps, n),
             c = graph_norm(g, message, NULL, NULL, NORM_RMS, b->hp->eps, n),
             h = block_linear(b, graph_concat(g, a, n, c, n, 1), in),
             less = graph_act(g, graph_scale(g, block_linear(b, h, forget), -1), ACT_TANH),
             more = graph_act(g, block_linear(b, h, gain), ACT_TANH);
    return graph_add(g, graph_add(g, x, graph_mul(g, x, less)), graph_mul(g, message, more));
}

/* message: to queries, keys, values and the MLP, or NULL. */
static value_id layer(struct build *b, value_id x, struct stack *s, const value_id *message) {
    static const char *const gate[] = {"loop_q", "loop_k", "loop_v"};
    static const char *const norm[] = {"attn_q_in_norm", "attn_k_in_norm", "attn_v_in_norm"};
    struct weight *query = build_weight(b, "attn_query.weight");
    bool slides = b->hp->window[b->layer] > 0;
    value_id in[QUERIES_MAX] = {x, x, x}, old = x;
    if (query) means(b, s, x, query, in);
    for (int i = 1; query && query->rows == 1 && i < QUERIES_MAX; i++) in[i] = in[0];
    for (int i = 0; i < QUERIES_MAX; i++) {
        if (message) in[i] = mix_in(b, in[i], message[i], gate[i]);
        else if (slides && i > 0) {
            in[i] = in[0];
            continue;
        }
        in[i] = block_norm_named(b, in[i], slides ? "attn_norm" : norm[i]);
    }
    x = attend(b, in);
    if (b->layer % build_whole(b, "block") == 0) push(b, s, old);
    else x = graph_add(b->g, old, x);
    value_id h;
    means(b, s, x, build_weight(b, "ffn_query.weight"), &h);
    if (message) h = mix_in(b, h, message[QUERIES_MAX], "loop_ffn");
    return graph_add(b->g, x, mixture(b, block_norm_named(b, h, "ffn_norm")));
}

/* Layers [from, to); messages: four a layer, or NULL. */
static value_id run(struct build *b, value_id x, struct stack *s, uint32_t from, uint32_t to,
                    value_id (*message)[QUERIES_MAX + 1]) {
    for (b->layer = from; b->layer < to; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer(b, x, s, message ? message[b->layer - from] : NULL);
    }
    return x;
}

/* Passes over the looped layers: each begins where the first did, with messages from the one
 * before. */
static value_id loop(struct build *b, value_id x, struct stack *s) {
    uint32_t start = build_whole(b, "loop_start"), end = build_whole(b, "loop_end"),
             n = end - start, before = s->count;
    value_id (*message)[QUERIES_MAX + 1] = arena_array(b->arena, n, sizeof *message),
             *got = arena_array(b->arena, 4 * (size_t)n, sizeof *got), first = x;
    if (!message || !got) {
        b->g->failed = true;
        return x;
    }
    x = run(b, x, s, start, end, NULL);
    for (uint32_t pass = 1; pass < build_whole(b, "passes"); pass++) {
        struct stack left = {s->state + before + 1, s->count > before ? s->count - before - 1 : 0};
        means(b, &left, x, build_global(b, "loop_query.weight"), got);
        means(b, &left, x, build_global(b, "loop_kv_query.weight"), got + 2 * n);
        for (uint32_t i = 0; i < n; i++) { /* queries and the MLP's; keys and values */
            message[i][0] = got[2 * i];
            message[i][QUERIES_MAX] = got[2 * i + 1];
            message[i][1] = got[2 * n + 2 * i];
            message[i][2] = got[2 * n + 2 * i + 1];
        }
        s->count = before;
        x = run(b, first, s, start, end, message);
    }
    return x;
}

static value_id body(struct build *b, value_id x) {
    uint32_t end = build_whole(b, "loop_end");
    struct stack s = {arena_array(b->arena, b->hp->layers, sizeof *s.state), 0};
    if (!s.state) {
        b->g->failed = true;
        return x;
    }
    if (end > 0) x = loop(b, run(b, x, &s, 0, build_whole(b, "loop_start"), NULL), &s);
    x = run(b, x, &s, end, b->hp->layers, NULL);
    means(b, &s, x, build_global(b, "output_query.weight"), &x);
    return x;
}

#define INKLING2(type, class)                                                                    \
    .family = "inkling2", .model_type = (type), .hf_class = (class), .roots = "model.llm.",      \
    KEYS(decoder_keys, moe_keys, inkling_keys, keys), TENSORS(tensors), .derive = derive,        \
    .body = body

const struct recipe model_inkling2_text = {INKLING2("inkling2_text", "Inkling2ForCausalLM")};
const struct recipe model_inkling2_loop_text = {
    INKLING2("inkling2_loop_text", "Inkling2LoopForCausalLM")};
