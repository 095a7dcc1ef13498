/* SPDX-License-Identifier: Apache-2.0
 * doge.c: DogeForCausalLM: Llama with norms of q and k, residuals weighed by element, and a bias of
 * each key, made of its values (dynamic mask attention). The bias rides in one dimension more of
 * each head, where keys have it and queries what the scale of scores takes away again. Beyond
 * keep_window_size positions only the keys of the largest biases would count: longer sequences are
 * not taken. */
#include "base/error.h"
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    WHOLE("keep", NULL, "keep_window_size", OPTIONAL, 2048, 1, 0),
    {0},
};

#define L "{m}layers.{i}."
static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_residual.weight", L "input_residual", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_residual.weight", L "post_attention_residual", "width", REQUIRED),
    VECTOR("blk.{i}.attn_dt_scale.weight", L "self_attn.A", "kv_heads", REQUIRED),
    MATRIX("blk.{i}.attn_dt.weight", L "self_attn.dt_proj.weight", "kv_heads", "kv_heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_dt.bias", L "self_attn.dt_proj.bias", "attention_bias*kv_heads", REQUIRED),
    {0},
};

static const struct plain plain[] = {
    {NULL, "is_moe", 0, 0, "a mixture of experts by product keys"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = build_plain(b, plain, error);
    if (s == OB_OK) s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    hp->longest = build_whole(b, "keep");
    if (hp->context > hp->longest) hp->context = hp->longest;
    for (uint32_t i = 0; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return OB_OK;
}

/* A vector whose elements are all the same. */
static struct weight *same(struct build *b, uint32_t n, float value) {
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *data = arena_array(b->arena, n, sizeof *data);
    if (!w || !data) {
        b->g->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) data[i] = value;
    *w = (struct weight){.name = "a constant",
                         .quant = quant_list[QUANT_f32],
                         .rows = 1,
                         .cols = n,
                         .row_bytes = n * sizeof *data,
                         .data = data};
    return w;
}

/* Heads of q or k: normed, turned. */
static value_id prepare(struct build *b, value_id x, const char *name, const char *norm,
                        uint32_t heads) {
    const struct hparams *hp = b->hp;
    x = graph_norm(b->g, block_linear(b, x, name), build_weight(b, norm), NULL, NORM_RMS, hp->eps,
                   hp->k_dim);
    return graph_rope(b->g, x, block_rope_table(b, false), heads, hp->k_dim, false);
}

static value_id mixer(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t heads = hp->heads[b->layer], kv_heads = hp->kv_heads[b->layer], d = hp->k_dim;
    value_id q = prepare(b, x, "attn_q", "attn_q_norm.weight", heads);
    value_id k = prepare(b, x, "attn_k", "attn_k_norm.weight", kv_heads);
    value_id v = block_linear(b, x, "attn_v");
    value_id bias = graph_act(g, block_linear(b, v, "attn_dt"), ACT_SOFTPLUS);
    bias = graph_act(g, graph_affine(g, bias, build_weight(b, "attn_dt_scale.weight"), NULL),
                     ACT_EXP);
    value_id one = graph_affine(g, graph_slice(g, q, 1, heads * d, 0, heads), same(b, heads, 0),
                                same(b, heads, 1 / hp->attention_scale));
    value_id y = graph_attention(g, graph_concat(g, q, d, one, 1, heads),
                                 graph_concat(g, k, d, bias, 1, kv_heads), v,
                                 &(struct attention_args){.heads = heads,
                                                          .kv_heads = kv_heads,
                                                          .k_dim = d + 1,
                                                          .v_dim = hp->v_dim,
                                                          .window = hp->window[b->layer],
                                                          .scale = hp->attention_scale});
    return block_linear(b, y, "attn_output");
}

static value_id weigh(struct build *b, value_id x, const char *name) {
    return graph_affine(b->g, x, build_weight(b, name), NULL);
}

static value_id layer(struct build *b, value_id x) {
    value_id h = mixer(b, block_norm_named(b, x, "attn_norm"));
    x = graph_add(b->g, weigh(b, x, "attn_residual.weight"), h);
    h = decoder_mlp_block(b, block_norm_named(b, x, "ffn_norm"), &(struct decoder_args){0});
    return graph_add(b->g, weigh(b, x, "ffn_residual.weight"), h);
}

const struct recipe model_doge = {
    .family = "doge",
    .model_type = "doge",
    .hf_class = "DogeForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, tensors, decoder_mlp_biases, decoder_mlp),
    .derive = derive,
    .layer = layer,
};
