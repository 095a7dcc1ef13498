/* SPDX-License-Identifier: Apache-2.0
 * qwen4_exp.c: Qwen4ExpForCausalLM: several residual streams, of which each sub-layer takes a mix
 * and to which it gives shares; gated delta nets, and gated attention to blocks of keys that an
 * index of block means chooses; a memory of n-grams in some layers; mixtures with a gated shared
 * expert. */
#include <math.h>
#include <stdio.h>

#include "models/blocks/decoder.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/moe.h"
#include "models/blocks/ngrams.h"
#include "models/blocks/rope.h"
#include "models/qwen3_next.h"

static const struct key keys[] = {
    WHOLE("streams", NULL, "hc_count", OPTIONAL, 4, 2, 64),
    WHOLE("stream_rank", NULL, "hc_lowrank", OPTIONAL, 320, 1, 1 << 20),
    WHOLE("index_heads", NULL, "indexer_n_heads", REQUIRED, 0, 1, 1024),
    WHOLE("index_kv_heads", NULL, "indexer_kv_heads", REQUIRED, 0, 1, 1),
    WHOLE("index_dim", NULL, "indexer_head_dim", REQUIRED, 0, 2, 4096),
    WHOLE("index_budget", NULL, "indexer_budget", REQUIRED, 0, 1, 1 << 16),
    WHOLE("index_block", NULL, "indexer_compress_ratio", REQUIRED, 0, 1, SELECT_BLOCKS),
    WHOLE("ngram_conv", NULL, "ple_conv_kernel_size", OPTIONAL, 4, 1, 64),
    {0},
};

#define HIGH "streams*width"
#define STREAMS(ours, theirs)                                                                  \
    VECTOR(ours "_norm.weight", theirs "hc_norm.weight", HIGH, REQUIRED),                      \
    MATRIX(ours "_down.weight", theirs "input_mix_weight_down.weight", "stream_rank", HIGH,    \
           REQUIRED),                                                                          \
    MATRIX(ours "_up.weight", theirs "input_mix_weight_up.weight", HIGH, "stream_rank", REQUIRED)
#define SHARES(ours, theirs) \
    MATRIX(ours "_share.weight", theirs "block_inject_weight.weight", "streams", HIGH, REQUIRED)
#define LAYER "{m}layers.{i}."
#define INDEX LAYER "self_attn.indexer."
#define INDEX_QK INDEX "index_qk_proj.weight"
#define INDEX_ROWS "part(1,index_heads*index_dim+index_dim,"
#define DELTA(name) LAYER "linear_attn." name ".weight"
#define QKV_ROWS "part(1,2*key+value,"

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    STREAMS("hc_output", "{m}hyper_connection_mixer."),
    STREAMS("blk.{i}.hc_attn", LAYER "attn_hyper_connection."),
    SHARES("blk.{i}.hc_attn", LAYER "attn_hyper_connection."),
    STREAMS("blk.{i}.hc_ffn", LAYER "mlp_hyper_connection."),
    SHARES("blk.{i}.hc_ffn", LAYER "mlp_hyper_connection."),
    MATRIX("blk.{i}.indexer.attn_q.weight", INDEX_QK, "attends*index_heads*index_dim", "width",
           REQUIRED, .from_hf = INDEX_ROWS "0)"),
    MATRIX("blk.{i}.indexer.attn_k.weight", INDEX_QK, "attends*index_dim", "width", REQUIRED,
           .from_hf = INDEX_ROWS "index_heads*index_dim)"),
    VECTOR("blk.{i}.indexer.q_norm.weight", INDEX "q_layernorm.weight", "attends*index_dim",
           REQUIRED),
    VECTOR("blk.{i}.indexer.k_norm.weight", INDEX "k_layernorm.weight", "attends*index_dim",
           REQUIRED),
    MATRIX("blk.{i}.ssm_q.weight", DELTA("in_proj_qkv"), "recurrent*key", "width", REQUIRED,
           .from_hf = QKV_ROWS "0)"),
    MATRIX("blk.{i}.ssm_k.weight", DELTA("in_proj_qkv"), "recurrent*key", "width", REQUIRED,
           .from_hf = QKV_ROWS "key)"),
    MATRIX("blk.{i}.ssm_v.weight", DELTA("in_proj_qkv"), "recurrent*value", "width", REQUIRED,
           .from_hf = QKV_ROWS "2*key)"),
    MATRIX("blk.{i}.attn_gate.weight", DELTA("in_proj_z"), "recurrent*value", "width", REQUIRED),
    MATRIX("blk.{i}.ssm_beta.weight", DELTA("in_proj_b"), "recurrent*lin_v_heads", "width",
           REQUIRED),
    MATRIX("blk.{i}.ssm_alpha.weight", DELTA("in_proj_a"), "recurrent*lin_v_heads", "width",
           REQUIRED),
    MATRIX("blk.{i}.ngram_k.weight", LAYER "ple.key_proj.weight", "ngrams*" HIGH, "ngram_width",
           REQUIRED),
    MATRIX("blk.{i}.ngram_v.weight", LAYER "ple.value_proj.weight", "ngrams*width", "ngram_width",
           REQUIRED),
    VECTOR("blk.{i}.ngram_k_norm.weight", LAYER "ple.norm_key.weight", "ngrams*" HIGH, REQUIRED),
    VECTOR("blk.{i}.ngram_q_norm.weight", LAYER "ple.norm_query.weight", "ngrams*" HIGH, REQUIRED),
    VECTOR("blk.{i}.ngram_v_norm.weight", LAYER "ple.norm_conv.weight", "ngrams*" HIGH, REQUIRED),
    MATRIX("blk.{i}.ngram_conv1d.weight", LAYER "ple.conv1d.weight", "ngrams*" HIGH, "ngram_conv",
           REQUIRED, .from_hf = "f32"),
    {0},
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static ob_status check_index(struct build *b, ob_error *error) {
    uint32_t block = build_whole(b, "index_block"), budget = build_whole(b, "index_budget");
    if (SELECT_BLOCKS % block)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "indexer_compress_ratio", error,
                            "%u does not divide %d", block, SELECT_BLOCKS);
    if (budget % block)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "indexer_budget", error,
                            "%u is no multiple of indexer_compress_ratio", budget);
    if (build_whole(b, "index_dim") < 2 * b->hp->rope.half)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "indexer_head_dim", error,
                            "less than what the rotary embedding turns");
    return OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    enum act_kind gate = b->hp->act;
    struct str name;
    /* A text's positions are the same in all sections, in whatever order these are. */
    build_has(b, NULL, "rope_parameters.mrope_section");
    build_has(b, NULL, "rope_parameters.mrope_interleaved");
    if (build_str(b, NULL, "output_gate_type", &name) && !build_act_named(name, &gate))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "output_gate_type", error,
                            "activation \"%.*s\" is not supported", STR_ARG(name));
    ob_status s = build_set(b, "gate_act", gate, error);
    if (s == OB_OK) s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = deltanet_sizes(b, error);
    if (s == OB_OK) s = rope_read_default(b, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    if (s == OB_OK) s = check_index(b, error);
    return s == OB_OK ? ngrams_sizes(b, error) : s;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The norm of each stream. */
static value_id normed(struct build *b, value_id x, struct weight *w) {
    return graph_norm(b->g, x, w, NULL, NORM_RMS, b->hp->eps, b->hp->width);
}

/* The mean of the streams, each column by its own weight; share: what to give to each, or NULL. */
static value_id mix(struct build *b, value_id x, struct weight *norm, struct weight *const *down,
                    struct weight *up, value_id *share) {
    struct graph *g = b->g;
    uint32_t streams = build_whole(b, "streams"), width = b->hp->width;
    float part = 1 / (float)streams;
    value_id out[2], sum;
    x = normed(b, x, norm);
    graph_linear(g, x, share ? 2 : 1, down, NULL, out);
    value_id h = graph_act(g, graph_scale(g, out[0], part), ACT_SILU);
    x = graph_glu(g, graph_linear1(g, h, up, NULL), x, ACT_SIGMOID);
    sum = graph_slice(g, x, 1, streams * width, 0, width);
    for (uint32_t i = 1; i < streams; i++)
        sum = graph_add(g, sum, graph_slice(g, x, 1, streams * width, i * width, width));
    if (share) {
        *share = graph_act(g, graph_scale(g, out[1], part), ACT_SIGMOID);
        *share = graph_scale(g, *share, 2);
    }
    return graph_scale(g, sum, part);
}

static value_id take(struct build *b, value_id x, const char *name, value_id *share) {
    char norm[64], down[64], up[64], shares[64];
    snprintf(norm, sizeof norm, "%s_norm.weight", name);
    snprintf(down, sizeof down, "%s_down.weight", name);
    snprintf(up, sizeof up, "%s_up.weight", name);
    snprintf(shares, sizeof shares, "%s_share.weight", name);
    struct weight *w[2] = {build_weight(b, down), build_weight(b, shares)};
    return mix(b, x, build_weight(b, norm), w, build_weight(b, up), share);
}

static value_id give(struct build *b, value_id x, value_id h, value_id share) {
    h = graph_tile(b->g, h, 1, b->hp->width, build_whole(b, "streams"));
    return graph_add(b->g, x, graph_mul(b->g, h, share));
}

/* What n-grams remember, by how well it fits each stream, and a convolution of that. */
static value_id recall(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t width = b->hp->width;
    struct weight *w[2] = {build_weight(b, "ngram_k.weight"), build_weight(b, "ngram_v.weight")};
    value_id out[2];
    graph_linear(g, ngrams_embed(b), 2, w, NULL, out);
    value_id k = normed(b, out[0], build_weight(b, "ngram_k_norm.weight"));
    value_id q = normed(b, x, build_weight(b, "ngram_q_norm.weight"));
    value_id fit = graph_scale(g, graph_dot(g, k, q, width), 1 / sqrtf((float)width));
    value_id v = graph_tile(g, out[1], 1, width, build_whole(b, "streams"));
    v = graph_glu(g, graph_act(g, fit, ACT_ROOT), v, ACT_SIGMOID);
    value_id c = graph_conv1d_apart(g, normed(b, v, build_weight(b, "ngram_v_norm.weight")),
                                    build_weight(b, "ngram_conv1d.weight"), NULL,
                                    build_whole(b, "ngram_conv"), build_whole(b, "ngram_order"));
    return graph_add(g, x, graph_add(g, v, graph_act(g, c, ACT_SILU)));
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The mean of the last `block` tokens. */
static value_id mean_before(struct build *b, value_id x, uint32_t cols, uint32_t block) {
    size_t n = (size_t)cols * block;
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *tap = arena_array(b->arena, n, sizeof *tap);
    if (!w || !tap) {
        b->g->failed = true;
        return x;
    }
    for (size_t i = 0; i < n; i++) tap[i] = 1 / (float)block;
    *w = (struct weight){.name = "means",
                         .quant = quant_list[QUANT_f32],
                         .rows = cols,
                         .cols = block,
                         .row_bytes = block * sizeof *tap,
                         .data = tap};
    return graph_conv1d(b->g, x, w, NULL, block);
}

/* A block's key is the mean of its tokens' at the position of the first. */
static value_id choose(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t heads = build_whole(b, "index_heads"), dim = build_whole(b, "index_dim");
    uint32_t block = build_whole(b, "index_block"), used = build_whole(b, "index_budget") / block;
    struct weight *w[2] = {build_weight(b, "indexer.attn_q.weight"),
                           build_weight(b, "indexer.attn_k.weight")};
    value_id out[2];
    graph_linear(g, x, 2, w, NULL, out);
    value_id q = block_norm_named(b, out[0], "indexer.q_norm");
    value_id k = block_norm_named(b, mean_before(b, out[1], dim, block), "indexer.k_norm");
    q = graph_rope(g, q, block_rope_table(b, false), heads, dim, false);
    k = graph_rope(g, k, block_rope_back(b, &b->hp->rope, block - 1), 1, dim, false);
    return graph_whole_select(g, q, k, block, used);
}

static value_id attend(struct build *b, value_id x) {
    if (!b->hp->recurrent[b->layer])
        return decoder_attention(b, x, &(struct decoder_args){.select = choose});
    return deltanet_plain(
        b, x, &(struct deltanet_args){.norm_eps = b->hp->eps,
                                      .act = (enum act_kind)build_whole(b, "gate_act")});
}

static value_id layer(struct build *b, value_id x) {
    value_id share;
    if (b->hp->ngram_rows[b->layer]) x = recall(b, x);
    value_id h = attend(b, take(b, x, "hc_attn", &share));
    x = give(b, x, h, share);
    h = moe_mlp(b, take(b, x, "hc_ffn", &share));
    return give(b, x, h, share);
}

static value_id body(struct build *b, value_id x) {
    x = graph_tile(b->g, x, 1, b->hp->width, build_whole(b, "streams"));
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer(b, x);
    }
    struct weight *down = build_global(b, "hc_output_down.weight");
    return mix(b, x, build_global(b, "hc_output_norm.weight"), &down,
               build_global(b, "hc_output_up.weight"), NULL);
}

const struct recipe model_qwen4_exp_text = {
    .family = "qwen4_exp_text",
    .model_type = "qwen4_exp_text",
    .hf_class = "Qwen4ExpForCausalLM",
    .foreign = "routed_scaling_factor",
    .turns_parts = true,
    .norms_plus_one = true,
    KEYS(decoder_keys, moe_keys, deltanet_keys, ngrams_keys, keys),
    TENSORS(tensors, qwen3_next_attention, decoder_qk_norms, deltanet_tensors, deltanet_one_conv,
            moe_tensors, moe_shared_tensors, qwen3_next_shared_gate, ngrams_tensors),
    .derive = derive,
    .body = body,
};
