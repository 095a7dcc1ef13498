/* SPDX-License-Identifier: Apache-2.0
 * diffllama.c: DiffLlamaForCausalLM: Llama with differential attention (arXiv 2410.05258): a head
 * of the first half less lambda times its partner in the second half, both over values of twice the
 * width: those of two key heads. */
#include <math.h>

#include "models/blocks/decoder.h"

#define L "{m}layers.{i}.self_attn."
static const struct tensor tensors[] = {
    VECTOR("blk.{i}.lambda_q1", L "lambda_q1", "k_dim", REQUIRED),
    VECTOR("blk.{i}.lambda_k1", L "lambda_k1", "k_dim", REQUIRED),
    VECTOR("blk.{i}.lambda_q2", L "lambda_q2", "k_dim", REQUIRED),
    VECTOR("blk.{i}.lambda_k2", L "lambda_k2", "k_dim", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        if (b->hp->kv_heads[i] % 2)
            s = build_refuse(b, OB_ERR_FORMAT, "num_key_value_heads", "num_key_value_heads", error,
                             "must be even");
    return s;
}

static float exp_of_dot(const struct weight *a, const struct weight *b) {
    const float *x = a->data, *y = b->data; /* vectors are F32 */
    float sum = 0;
    for (uint32_t i = 0; i < a->cols; i++) sum += x[i] * y[i];
    return expf(sum);
}

/* [kv_heads, 2 * d]: beside each other the values of heads k and half + k, k counted over again. */
static value_id pair_values(struct build *b, value_id v) {
    uint32_t heads = b->hp->kv_heads[b->layer], d = b->hp->v_dim, half = heads / 2 * d;
    value_id first = graph_slice(b->g, v, 1, 2 * half, 0, half);
    value_id second = graph_slice(b->g, v, 1, 2 * half, half, half);
    return graph_concat(b->g, graph_tile(b->g, first, 1, half, 2), d,
                        graph_tile(b->g, second, 1, half, 2), d, heads);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t heads = hp->heads[b->layer], kv_heads = hp->kv_heads[b->layer], wide = 2 * hp->v_dim;
    value_id table = block_rope_table(b, false);
    value_id q = graph_rope(g, block_linear(b, x, "attn_q"), table, heads, hp->k_dim, false);
    value_id k = graph_rope(g, block_linear(b, x, "attn_k"), table, kv_heads, hp->k_dim, false);
    value_id v = pair_values(b, block_linear(b, x, "attn_v"));
    value_id y = graph_attention(g, q, k, v,
                                 &(struct attention_args){.heads = heads,
                                                          .kv_heads = kv_heads,
                                                          .k_dim = hp->k_dim,
                                                          .v_dim = wide,
                                                          .scale = hp->attention_scale});
    float start = 0.8f - 0.6f * expf(-0.3f * (float)b->layer);
    float lambda = exp_of_dot(build_weight(b, "lambda_q1"), build_weight(b, "lambda_k1")) -
                   exp_of_dot(build_weight(b, "lambda_q2"), build_weight(b, "lambda_k2")) + start;
    uint32_t half = heads / 2 * wide;
    value_id less = graph_scale(g, graph_slice(g, y, 1, 2 * half, half, half), -lambda);
    y = graph_add(g, graph_slice(g, y, 1, 2 * half, 0, half), less);
    y = graph_norm(g, y, NULL, NULL, NORM_RMS, hp->eps, wide);
    return block_linear(b, graph_scale(g, y, 1 - start), "attn_output");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_diffllama = {
    .family = "diffllama",
    .model_type = "diffllama",
    .hf_class = "DiffLlamaForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            tensors, decoder_mlp),
    .derive = derive,
    .layer = layer,
};
