/* SPDX-License-Identifier: Apache-2.0
 *
 * mla.h: multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and values of all heads
 * come from one small latent a position, beside a rotated key that all heads share. Computed in the
 * absorbed form, for prompt and decode alike: what a head would multiply the latent by multiplies
 * its query, and what it attended to, instead. So the cache has one KV head:
 *
 *     c = norm(W_kv_a x), k_r = rope(the rest of W_kv_a x)        key [c; k_r], value c
 *     q = W_q x, or W_q_b norm(W_q_a x); of each head [q_n; q_r]  query [W_k_b q_n; rope(q_r)]
 *     out = W_o [W_v_b (softmax V) of each head]
 *
 * W_k_b [kv_lora, nope] and W_v_b [v_head, kv_lora] are matrices of a head. Where the file has an
 * attn_gate, its sigmoid multiplies each head or each feature before W_o; an attn_k_rope_norm norms
 * k_r before the rope. Windows and ropes are the layer's, as in decoder_attention. */
#ifndef MODELS_BLOCKS_MLA_H
#define MODELS_BLOCKS_MLA_H

#include "models/blocks/decoder.h"

/* Ranks and sizes of heads; whether pairs are interleaved; the temperature of queries. */
extern const struct key mla_keys[];
/* The projections, their norms and, where attention_bias says so, biases, as DeepSeek names them;
 * MLA_TENSORS(ours, theirs, their output's) gives the rows under other names. In layers whose
 * kv_heads are 0 there are none: mla_derive sets it to 1, a family changes it after. */
extern const struct tensor mla_tensors[];

#define MLA_TENSORS(ours, theirs, output)                                                          \
    MLA_REST(ours, theirs, output),                                                                \
    MATRIX("blk.{i}." ours "_q_b.weight", "{m}layers.{i}." theirs ".q_b_proj.weight",              \
           "kv_heads*heads*qk", "q_lora", REQUIRED)
/* All but the queries' second projection. */
#define MLA_REST(ours, theirs, output)                                                             \
    MATRIX("blk.{i}." ours "_q.weight", "{m}layers.{i}." theirs ".q_proj.weight",                  \
           "kv_heads*q_plain*heads*qk", "width", REQUIRED),                                        \
    MATRIX("blk.{i}." ours "_q_a.weight", "{m}layers.{i}." theirs ".q_a_proj.weight",              \
           "kv_heads*q_lora", "width", REQUIRED),                                                  \
    VECTOR("blk.{i}." ours "_q_a.bias", "{m}layers.{i}." theirs ".q_a_proj.bias",                  \
           "kv_heads*attention_bias*q_lora", REQUIRED),                                            \
    VECTOR("blk.{i}." ours "_q_a_norm.weight", "{m}layers.{i}." theirs ".q_a_layernorm.weight",    \
           "kv_heads*q_lora", REQUIRED),                                                           \
    MATRIX("blk.{i}." ours "_kv_a_mqa.weight",                                                     \
           "{m}layers.{i}." theirs ".kv_a_proj_with_mqa.weight",                                   \
           "kv_heads*kv_lora+kv_heads*rope", "width", REQUIRED),                                   \
    VECTOR("blk.{i}." ours "_kv_a_mqa.bias", "{m}layers.{i}." theirs ".kv_a_proj_with_mqa.bias",   \
           "kv_heads*attention_bias*kv_lora+kv_heads*attention_bias*rope", REQUIRED),              \
    VECTOR("blk.{i}." ours "_kv_a_norm.weight", "{m}layers.{i}." theirs ".kv_a_layernorm.weight",  \
           "kv_heads*kv_lora", REQUIRED),                                                          \
    MATRIX("blk.{i}." ours "_k_b.weight", "{m}layers.{i}." theirs ".kv_b_proj.weight",             \
           "kv_heads*kv_lora", "nope", REQUIRED, .from_hf = "heads(nope+v_head,0) T",              \
           .from_gguf = "heads(kv_lora,0)"),                                                       \
    MATRIX("blk.{i}." ours "_v_b.weight", "{m}layers.{i}." theirs ".kv_b_proj.weight",             \
           "kv_heads*v_head", "kv_lora", REQUIRED, .from_hf = "heads(nope+v_head,nope)",           \
           .from_gguf = "heads(v_head,0)"),                                                        \
    /* GGUF files that were written for the other form. */                                         \
    MATRIX("blk.{i}." ours "_k_b.weight", NULL, "kv_heads*kv_lora", "nope", OPTIONAL,              \
           .gguf = "blk.{i}." ours "_kv_b.weight", .from_gguf = "heads(nope+v_head,0) T f32"),     \
    MATRIX("blk.{i}." ours "_v_b.weight", NULL, "kv_heads*v_head", "kv_lora", OPTIONAL,            \
           .gguf = "blk.{i}." ours "_kv_b.weight", .from_gguf = "heads(nope+v_head,nope)"),        \
    MATRIX("blk.{i}." ours "_output.weight", "{m}layers.{i}." theirs "." output ".weight",         \
           "width", "kv_heads*heads*v_head", REQUIRED),                                            \
    VECTOR("blk.{i}." ours "_output.bias", "{m}layers.{i}." theirs "." output ".bias",             \
           "kv_heads*attention_bias*width", REQUIRED)

/* In place of decoder_derive: the sizes of the one KV head, the scale of scores, the rope. A layer
 * of hp.no_rope turns nothing. */
ob_status mla_derive(struct build *b, ob_error *error);

struct mla_args {
    bool halves;       /* rotary pairs (i, i + half), whatever the file says */
    const char *block; /* its tensors are <block>_q_a, ...; NULL: "attn" */
    float q_scale, latent_scale; /* of the normed latents of queries and keys; 0: 1 */
    float eps;         /* of the latents' norms; 0: 1e-6 */
    bool raw_beside;   /* W_q_b takes the latent twice, normed and as it is; so does the gate */
    /* Only the keys that an indexer chooses are attended to (DeepSeek-V3.2): a layer with one sets
     * it, others read what was set. NULL: all keys. */
    value_id *selection;
    bool has_indexer, index_interleaved;
    bool index_rope_last; /* the last dimensions of its heads turn, not the first */
    float index_eps;      /* of its norm; 0: 1e-6 */
};
/* Layers that are no "shared" ones in indexer_types, or as GGUF says. */
bool mla_has_indexer(struct build *b, uint32_t layer);
/* After mla_derive: checks sizes, sets hp.chooses. */
ob_status mla_indexers(struct build *b, bool (*has)(struct build *b, uint32_t layer),
                       ob_error *error);
/* Heads of the indexer, their size, the keys they choose; its tensors. */
extern const struct key mla_index_keys[];
#define MLA_INDEXER                                                                                \
    MATRIX("blk.{i}.indexer.attn_q_b.weight", "{m}layers.{i}.self_attn.indexer.wq_b.weight",       \
           "index_heads*index_dim", "q_lora", OPTIONAL, .needed = "chooses"),                      \
    MATRIX("blk.{i}.indexer.attn_k.weight", "{m}layers.{i}.self_attn.indexer.wk.weight",           \
           "index_dim", "width", OPTIONAL, .needed = "chooses"),                                   \
    VECTOR("blk.{i}.indexer.k_norm.weight", "{m}layers.{i}.self_attn.indexer.k_norm.weight",       \
           "index_dim", OPTIONAL, .needed = "chooses"),                                            \
    VECTOR("blk.{i}.indexer.k_norm.bias", "{m}layers.{i}.self_attn.indexer.k_norm.bias",           \
           "index_dim", OPTIONAL, .needed = "chooses"),                                            \
    MATRIX("blk.{i}.indexer.proj.weight", "{m}layers.{i}.self_attn.indexer.weights_proj.weight",   \
           "index_heads", "width", OPTIONAL, .needed = "chooses")

value_id mla_attention(struct build *b, value_id x, const struct mla_args *args);
/* decoder_args.mixer without arguments, and a layer with it. */
value_id mla_mixer(struct build *b, value_id x, const struct decoder_args *args);
value_id mla_layer(struct build *b, value_id x);

#endif
