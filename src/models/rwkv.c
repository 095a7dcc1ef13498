/* SPDX-License-Identifier: Apache-2.0
 * rwkv.c: RwkvForCausalLM (RWKV-4, arXiv 2305.13048): no attention; a mean of past values whose
 * weights decay, and an MLP, both of a mix of a token with the one before it. rescale_every halves
 * the stream after so many layers, which FP16 needs; epsilons make it count. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

static const struct key keys[] = {
    WHOLE("attn", NULL, "attention_hidden_size", OPTIONAL, 0, 1, 1 << 20),
    WHOLE("wide", NULL, "intermediate_size", OPTIONAL, 0, 1, 1 << 24),
    WHOLE("rescale", NULL, "rescale_every", OPTIONAL, 6, 0, 4096),
    {0},
};

#define AT(name) "{m}blocks.{i}." name

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "head.weight", "vocab", "width", OPTIONAL),
    VECTOR("token_embd_norm.weight", "{m}blocks.0.pre_ln.weight", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}blocks.0.pre_ln.bias", "width", REQUIRED),
    VECTOR("output_norm.weight", "{m}ln_out.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_out.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", AT("ln1.weight"), "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", AT("ln1.bias"), "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", AT("ln2.weight"), "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", AT("ln2.bias"), "width", REQUIRED),
    VECTOR("blk.{i}.time_decay", AT("attention.time_decay"), "attn", REQUIRED),
    VECTOR("blk.{i}.time_first", AT("attention.time_first"), "attn", REQUIRED),
    VECTOR("blk.{i}.time_mix_k", AT("attention.time_mix_key"), "width", REQUIRED),
    VECTOR("blk.{i}.time_mix_v", AT("attention.time_mix_value"), "width", REQUIRED),
    VECTOR("blk.{i}.time_mix_r", AT("attention.time_mix_receptance"), "width", REQUIRED),
    MATRIX("blk.{i}.time_key.weight", AT("attention.key.weight"), "attn", "width", REQUIRED),
    MATRIX("blk.{i}.time_value.weight", AT("attention.value.weight"), "attn", "width", REQUIRED),
    MATRIX("blk.{i}.time_receptance.weight", AT("attention.receptance.weight"), "attn", "width",
           REQUIRED),
    MATRIX("blk.{i}.time_output.weight", AT("attention.output.weight"), "width", "attn", REQUIRED),
    VECTOR("blk.{i}.channel_mix_k", AT("feed_forward.time_mix_key"), "width", REQUIRED),
    VECTOR("blk.{i}.channel_mix_r", AT("feed_forward.time_mix_receptance"), "width", REQUIRED),
    MATRIX("blk.{i}.channel_key.weight", AT("feed_forward.key.weight"), "wide", "width", REQUIRED),
    MATRIX("blk.{i}.channel_receptance.weight", AT("feed_forward.receptance.weight"), "width",
           "width", REQUIRED),
    MATRIX("blk.{i}.channel_value.weight", AT("feed_forward.value.weight"), "width", "wide",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = recurrent_sizes(b, error);
    hp->norm = NORM_LAYER;
    hp->output_eps = 1e-5f; /* whatever the file says */
    if (s == OB_OK && build_whole(b, "attn") == 0) s = build_set(b, "attn", hp->width, error);
    if (s == OB_OK && build_whole(b, "wide") == 0) s = build_set(b, "wide", 4.0 * hp->width, error);
    return s;
}

/* A token and the one before it, by one share for each column. */
struct mix {
    value_id before, change;
};

static struct mix shift(struct build *b, value_id x) {
    value_id before = graph_token_shift(b->g, x);
    return (struct mix){before, graph_add(b->g, x, graph_scale(b->g, before, -1))};
}

static value_id project(struct build *b, const struct mix *m, const char *share, const char *name) {
    value_id part = graph_affine(b->g, m->change, build_weight(b, share), NULL);
    return block_linear(b, graph_add(b->g, m->before, part), name);
}

static value_id time_mix(struct build *b, value_id x) {
    const struct mix m = shift(b, x);
    value_id y = graph_wkv4(b->g, project(b, &m, "time_mix_k", "time_key"),
                            project(b, &m, "time_mix_v", "time_value"),
                            build_weight(b, "time_decay"), build_weight(b, "time_first"));
    value_id gate = project(b, &m, "time_mix_r", "time_receptance");
    return block_linear(b, graph_glu(b->g, gate, y, ACT_SIGMOID), "time_output");
}

static value_id channel_mix(struct build *b, value_id x) {
    const struct mix m = shift(b, x);
    value_id h = graph_act(b->g, project(b, &m, "channel_mix_k", "channel_key"), ACT_RELU2);
    value_id gate = project(b, &m, "channel_mix_r", "channel_receptance");
    return graph_glu(b->g, gate, block_linear(b, h, "channel_value"), ACT_SIGMOID);
}

static value_id layer(struct build *b, value_id x) {
    uint32_t every = build_whole(b, "rescale");
    b->hp->residual_scale = every ? ldexpf(1, -(int)(b->layer / every)) : 1;
    x = block_residual(b, x, time_mix(b, block_norm_named(b, x, "attn_norm")));
    x = block_residual(b, x, channel_mix(b, block_norm_named(b, x, "ffn_norm")));
    return every && (b->layer + 1) % every == 0 ? graph_scale(b->g, x, 0.5f) : x;
}

const struct recipe model_rwkv = {
    .family = "rwkv",
    .model_type = "rwkv",
    .hf_class = "RwkvForCausalLM",
    .roots = "rwkv.",
    KEYS(recurrent_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = layer,
};
