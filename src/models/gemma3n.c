/* SPDX-License-Identifier: Apache-2.0
 *
 * gemma3n.c: Gemma3nForCausalLM: Gemma with several streams, of which a layer computes one and
 * predicts and corrects the others (AltUp, arXiv 2301.13310), a low-rank path beside attention
 * (LAuReL, arXiv 2411.07501), embeddings for each layer, last layers that read others' keys, and
 * MLPs of which few activations stay. Norms' weights are not 1 + w. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/per_layer.h"
#include "models/blocks/rope.h"
#include "models/blocks/shared_kv.h"

enum { STREAMS_MAX = 8 };

static const struct key keys[] = {
    {"{arch}.final_logit_softcapping", "final_logit_softcapping", KEY_F32,
     offsetof(struct hparams, logit_softcap), OPTIONAL, 30, 0, 0, NULL},
    WHOLE("streams", "{arch}.altup.num_inputs", "altup_num_inputs", OPTIONAL, 4, 1, STREAMS_MAX),
    WHOLE("active", "{arch}.altup.active_idx", "altup_active_idx", OPTIONAL, 0, 0, STREAMS_MAX),
    WHOLE("correct_scale", NULL, "altup_correct_scale", OPTIONAL, 1, 0, 1),
    WHOLE("rank", NULL, "laurel_rank", OPTIONAL, 64, 1, 1 << 16),
    {0},
};

#define LAYER "{m}layers.{i}."
/* The streams but the first, a matrix each; GGUF has them in one tensor. */
#define STREAM(n)                                                                                \
    MATRIX("altup_proj." #n, "{m}altup_projections." #n ".weight", "stream_" #n "*width", "width", \
           REQUIRED, .gguf = "altup_proj.weight", .gguf_row = "width",                           \
           .from_gguf = "part(1,others*width," #n "*width)"),                                    \
    MATRIX("altup_unembd_proj." #n, "{m}altup_unembed_projections." #n ".weight",                \
           "stream_" #n "*width", "width", REQUIRED, .gguf = "altup_unembd_proj.weight",         \
           .gguf_row = "width", .from_gguf = "part(1,others*width," #n "*width)")

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", LAYER "self_attn.q_proj.weight", "heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", LAYER "self_attn.k_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED, .gguf_again = true),
    MATRIX("blk.{i}.attn_v.weight", LAYER "self_attn.v_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED, .gguf_again = true),
    MATRIX("blk.{i}.attn_output.weight", LAYER "self_attn.o_proj.weight", "width", "heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", LAYER "self_attn.q_norm.weight", "k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", LAYER "self_attn.k_norm.weight",
           "kv_heads/kv_heads*k_dim", REQUIRED, .gguf_again = true),
    MATRIX("blk.{i}.laurel_l.weight", LAYER "laurel.linear_left.weight", "rank", "width",
           REQUIRED),
    MATRIX("blk.{i}.laurel_r.weight", LAYER "laurel.linear_right.weight", "width", "rank",
           REQUIRED),
    VECTOR("blk.{i}.laurel_post_norm.weight", LAYER "laurel.post_laurel_norm.weight", "width",
           REQUIRED),
    MATRIX("blk.{i}.altup_correct_coef.weight", LAYER "altup.correction_coefs.weight", "streams",
           "streams", REQUIRED),
    MATRIX("blk.{i}.altup_predict_coef.weight", LAYER "altup.prediction_coefs.weight",
           "streams*streams", "streams", REQUIRED),
    VECTOR("blk.{i}.altup_correct_scale.weight", LAYER "altup.correct_output_scale", "width",
           REQUIRED),
    MATRIX("blk.{i}.altup_router.weight", LAYER "altup.modality_router.weight", "streams", "width",
           REQUIRED),
    VECTOR("blk.{i}.altup_router_norm.weight", LAYER "altup.router_norm.weight", "width",
           REQUIRED),
    STREAM(0), STREAM(1), STREAM(2), STREAM(3), STREAM(4), STREAM(5), STREAM(6),
    {0},
};

/* ---- keys ------------------------------------------------------------------------------------ */

static ob_status read_rope(struct build *b, const char *hf, const char *old, float base,
                           struct rope *out, ob_error *error) {
    return rope_read(b,
                     &(struct rope_source){.hf = hf,
                                           .base_key_hf = old,
                                           .base = base,
                                           .scaled = build_has(b, NULL, hf)},
                     out, error);
}

/* Which of the tables' streams the model has. */
static ob_status count_streams(struct build *b, ob_error *error) {
    static const char *const name[STREAMS_MAX - 1] = {"stream_0", "stream_1", "stream_2",
                                                      "stream_3", "stream_4", "stream_5",
                                                      "stream_6"};
    uint32_t n = build_whole(b, "streams");
    if (build_whole(b, "active") >= n)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.altup.active_idx", "altup_active_idx", error,
                            "%u, of %u streams", build_whole(b, "active"), n);
    ob_status s = build_set(b, "others", n - 1, error);
    for (uint32_t i = 0; s == OB_OK && i < STREAMS_MAX - 1; i++)
        s = build_set(b, name[i], i + 1 < n, error);
    return s;
}

/* The number of deviations above the mean beyond which a share of 1 - p of a normal distribution
 * lies: the p-quantile, by bisection of erfc. */
static double quantile(double p) {
    double low = -40, high = 40;
    for (int i = 0; i < 80; i++) {
        double mid = (low + high) / 2;
        if (0.5 * erfc(-mid / sqrt(2)) < p) low = mid;
        else high = mid;
    }
    return low;
}

static const char cuts[] = "{arch}.activation_sparsity_scale",
                  sparsity[] = "activation_sparsity_pattern";

/* How many deviations above the mean this layer's activations are cut off: -infinity where none
 * is. Files of Hugging Face have the share that is cut off. */
static double cut_of(struct build *b, uint32_t layer) {
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    double v = gguf ? -INFINITY : 0;
    if (build_count(b, cuts, sparsity) == 0) v = b->hp->layers > 10 && layer < 10 ? 0.95 : 0;
    else if (build_real_at(b, cuts, sparsity, layer, &v) && gguf) return v;
    return v > 0 ? quantile(v) : -INFINITY;
}

static ob_status check_sparsity(struct build *b, ob_error *error) {
    build_wants(b, NULL, sparsity, b->hp->layers);
    uint64_t n = build_count(b, cuts, sparsity);
    bool fits = n == 0 || n == b->hp->layers;
    for (uint32_t i = 0; i < b->hp->layers; i++) fits &= cut_of(b, i) < 39; /* no NaN */
    if (fits) return OB_OK;
    return build_refuse(b, OB_ERR_FORMAT, cuts, sparsity, error,
                        "is no good number for each layer");
}

/* GGUF has no key for it. */
static ob_status find_rank(struct build *b, ob_error *error) {
    const struct source_tensor *t =
        source_tensor_find(b->source, STR_LIT("blk.0.laurel_l.weight"));
    bool sane = t && t->dim[1] > 0 && t->dim[1] <= 1 << 16;
    return sane ? build_set(b, "rank", (double)t->dim[1], error) : OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {{NULL, "attention_bias", 0, 0, "biases of attention"},
                                         {0}};
    struct hparams *hp = b->hp;
    build_has(b, NULL, "altup_coef_clip"); /* of training alone */
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 5, false);
    hp->embed_scale = sqrtf((float)hp->width);
    hp->attention_scale = 1;
    s = read_rope(b, "rope_parameters.full_attention", "rope_theta", 1e6f, &hp->rope, error);
    if (s == OB_OK)
        s = read_rope(b, "rope_parameters.sliding_attention", "rope_local_base_freq", 10000,
                      &hp->rope_window, error);
    if (s != OB_OK) return s;
    if ((s = count_streams(b, error)) != OB_OK) return s;
    if ((s = check_sparsity(b, error)) != OB_OK) return s;
    if ((s = find_rank(b, error)) != OB_OK) return s;
    if ((s = shared_kv_sizes(b, error)) != OB_OK) return s;
    if (build_whole(b, "ple") == 0)
        return build_refuse(b, OB_ERR_FORMAT, "", "hidden_size_per_layer_input", error,
                            "is missing or 0");
    return per_layer_sizes(b, error);
}

/* ---- a layer's parts ------------------------------------------------------------------------- */

static value_id head_norm(struct build *b, value_id x, const char *name) {
    return graph_norm(b->g, x, name ? build_weight(b, name) : NULL, NULL, NORM_RMS, b->hp->eps,
                      b->hp->k_dim);
}

static value_id attend(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    uint32_t i = b->layer, dim = hp->k_dim;
    struct weight *w[3] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight")};
    value_id out[3], table = block_rope_table(b, hp->window[i] > 0), k = NO_VALUE, v = NO_VALUE;
    graph_linear(b->g, x, w[1] ? 3 : 1, w, NULL, out);
    value_id q = graph_rope(b->g, head_norm(b, out[0], "attn_q_norm.weight"), table, hp->heads[i],
                            dim, false);
    if (hp->kv_heads[i] > 0) {
        k = head_norm(b, out[1], "attn_k_norm.weight");
        k = graph_rope(b->g, k, table, hp->kv_heads[i], dim, false);
        v = head_norm(b, out[2], NULL);
    }
    return block_linear(b, shared_kv_attention(b, q, k, v), "attn_output");
}

static value_id feed(struct build *b, value_id x) {
    struct weight *w[2] = {build_weight(b, "ffn_up.weight"), build_weight(b, "ffn_gate.weight")};
    double cut = cut_of(b, b->layer);
    value_id out[2];
    graph_linear(b->g, x, 2, w, NULL, out);
    if (isfinite(cut)) out[1] = graph_sparsify(b->g, out[1], (float)cut);
    return block_linear(b, graph_glu(b->g, out[1], out[0], b->hp->act), "ffn_down");
}

static value_id laurel(struct build *b, value_id x) {
    value_id h = block_linear(b, block_linear(b, x, "laurel_l"), "laurel_r");
    return graph_add(b->g, x, block_norm_named(b, h, "laurel_post_norm"));
}

/* The active stream through the layer. */
static value_id compute(struct build *b, value_id x) {
    struct graph *g = b->g;
    value_id h = block_norm_named(b, x, "attn_norm");
    value_id attended = block_norm_named(b, attend(b, h), "post_attention_norm");
    x = graph_add(g, graph_add(g, x, attended), laurel(b, h));
    x = graph_scale(g, x, sqrtf(0.5f));
    h = feed(b, block_norm_named(b, x, "ffn_norm"));
    return graph_add(g, x, block_norm_named(b, h, "post_ffw_norm"));
}

/* ---- the streams ----------------------------------------------------------------------------- */

static value_id router(struct build *b, value_id x) {
    x = graph_scale(b->g, block_norm_named(b, x, "altup_router_norm"), 1 / (float)b->hp->width);
    return graph_act(b->g, block_linear(b, x, "altup_router"), ACT_TANH);
}

/* Each stream and a mixture of all. */
static void predict(struct build *b, const value_id *x, value_id *out) {
    struct graph *g = b->g;
    uint32_t n = build_whole(b, "streams");
    value_id coef = block_linear(b, router(b, x[build_whole(b, "active")]), "altup_predict_coef");
    for (uint32_t i = 0; i < n; i++) {
        out[i] = x[i];
        for (uint32_t k = 0; k < n; k++) {
            value_id by = graph_slice(g, coef, 1, n * n, i * n + k, 1);
            out[i] = graph_add(g, out[i], graph_mul(g, x[k], by));
        }
    }
}

/* What the layer found new of the active stream, added to each by 1 + its coefficient. */
static void correct(struct build *b, value_id found, value_id *x) {
    struct graph *g = b->g;
    uint32_t n = build_whole(b, "streams");
    value_id coef = block_linear(b, router(b, found), "altup_correct_coef");
    value_id news = graph_add(g, found, graph_scale(g, x[build_whole(b, "active")], -1));
    for (uint32_t i = 0; i < n; i++) {
        value_id by = graph_slice(g, coef, 1, n, i, 1);
        x[i] = graph_add(g, graph_add(g, x[i], news), graph_mul(g, news, by));
    }
}

static void layer(struct build *b, value_id *x, value_id inputs) {
    uint32_t n = build_whole(b, "streams"), active = build_whole(b, "active");
    value_id next[STREAMS_MAX];
    predict(b, x, next);
    correct(b, compute(b, next[active]), next);
    value_id first = next[active];
    if (build_whole(b, "correct_scale"))
        first = graph_affine(b->g, first, build_weight(b, "altup_correct_scale.weight"), NULL);
    first = per_layer_input(b, first, inputs);
    for (uint32_t i = 0; i < n; i++) x[i] = i == 0 ? next[0] : graph_add(b->g, next[i], first);
}

/* A projection of a stream, as large as the first. */
static value_id project(struct build *b, value_id x, value_id first, const char *name,
                        uint32_t stream) {
    char full[64];
    snprintf(full, sizeof full, "%s.%u", name, stream - 1);
    return graph_match_rms(b->g, graph_linear1(b->g, x, build_global(b, full), NULL), first, 1e-5f);
}

static value_id body(struct build *b, value_id first) {
    uint32_t n = build_whole(b, "streams");
    value_id x[STREAMS_MAX] = {first}, inputs = per_layer_inputs(b, first);
    for (uint32_t i = 1; i < n; i++) x[i] = project(b, first, first, "altup_proj", i);
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        layer(b, x, inputs);
    }
    value_id sum = x[0];
    for (uint32_t i = 1; i < n; i++)
        sum = graph_add(b->g, sum, project(b, x[i], x[0], "altup_unembd_proj", i));
    return graph_scale(b->g, sum, 1 / (float)n);
}

const struct recipe model_gemma3n_text = {
    .family = "gemma3n",
    .gguf = "gemma3n",
    .model_type = "gemma3n_text",
    .hf_class = "Gemma3nForCausalLM",
    .act = "gelu_pytorch_tanh",
    .act_key = "hidden_activation",
    KEYS(decoder_keys, decoder_window_keys, per_layer_keys, shared_kv_keys, keys),
    TENSORS(decoder_ends, decoder_sandwich, per_layer_tensors, decoder_mlp, tensors,
            shared_kv_unused),
    .derive = derive,
    .body = body,
};
