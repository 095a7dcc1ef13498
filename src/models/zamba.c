/* SPDX-License-Identifier: Apache-2.0
 * zamba.c: ZambaForCausalLM (arXiv 2405.16712) and Zamba2ForCausalLM (arXiv 2411.15242): layers
 * of Mamba, before some of which a block of attention and MLP, that these layers share, sees the
 * stream beside the embedding. Zamba has one block, and heads in its Mamba; Zamba2 has
 * num_mem_blocks, in turn, with adapters of each use, and Mamba-2. */
#include <math.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mamba.h"
#include "models/blocks/mamba2.h"
#include "models/blocks/rope.h"

#define FIELD(name) offsetof(struct hparams, name)

static const struct key keys[] = {
    {NULL, "attention_head_dim", KEY_U32, FIELD(k_dim), OPTIONAL, 0, 1, 4096, NULL},
    WHOLE("blocks", NULL, "num_mem_blocks", OPTIONAL, 1, 1, 4096),
    WHOLE("adapters", NULL, "use_shared_attention_adapter", OPTIONAL, 0, 0, 1),
    WHOLE("rank", NULL, "adapter_rank", OPTIONAL, 128, 1, 1 << 16),
    WHOLE("mem_rope", NULL, "use_mem_rope", OPTIONAL, 0, 0, 1),
    WHOLE("mamba_heads", NULL, "n_mamba_heads", OPTIONAL, 1, 1, 4096),
    {0},
};

#define LAYER(name) "{m}layers.{i}." name ".weight"
#define SHARED(name) LAYER("shared_transf." name) "|" LAYER("shared_transformer." name)

static const struct tensor shared_tensors[] = {
    VECTOR("output_norm.weight", "{m}final_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight",
           LAYER("input_layernorm") "|" LAYER("mamba_decoder.input_layernorm"), "width", REQUIRED),
    MATRIX("blk.{i}.shared_linear.weight", LAYER("linear"), "shares*width", "width", REQUIRED),
    VECTOR("blk.{i}.shared_norm.weight", SHARED("input_layernorm"), "attends*2*width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", SHARED("pre_ff_layernorm"), "attends*width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", SHARED("self_attn.q_proj"), "heads*k_dim", "2*width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", SHARED("self_attn.k_proj"), "kv_heads*k_dim", "2*width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", SHARED("self_attn.v_proj"), "kv_heads*k_dim", "2*width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", SHARED("self_attn.o_proj"), "width", "heads*k_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", SHARED("feed_forward.down_proj"), "width", "ffn", REQUIRED),
    {0},
};

static const struct tensor zamba_tensors[] = {
    MATRIX("blk.{i}.ffn_gate.weight", SHARED("feed_forward.gate_proj"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", SHARED("feed_forward.up_proj"), "ffn", "width", REQUIRED),
    KNOWN("blk.{i}.shared_transf.*", "{m}layers.{i}.shared_transf.*", "the first one's again"),
    {0},
};

#define MAMBA(name) "{m}layers.{i}.mamba." name "|{m}layers.{i}.mamba_decoder.mamba." name

/* in_proj has a column's value, then its gate; x_proj and dt_proj are matrices of each head. */
static const struct tensor head_tensors[] = {
    MATRIX("blk.{i}.ssm_in.weight", MAMBA("in_proj.weight"), "inner", "width", REQUIRED,
           .from_hf = "part(inner,2,0)"),
    MATRIX("blk.{i}.ssm_gate.weight", MAMBA("in_proj.weight"), "inner", "width", REQUIRED,
           .from_hf = "part(inner,2,1)"),
    MATRIX("blk.{i}.ssm_conv1d.weight", MAMBA("conv1d.weight"), "inner", "conv", REQUIRED),
    VECTOR("blk.{i}.ssm_conv1d.bias", MAMBA("conv1d.bias"), "conv_bias*inner", REQUIRED),
    MATRIX("blk.{i}.ssm_x.weight", MAMBA("x_proj_weight"), "dt_rank+2*state", "inner/mamba_heads",
           REQUIRED, .from_hf = "heads(dt_rank+2*state,0,mamba_heads)"),
    MATRIX("blk.{i}.ssm_dt.weight", MAMBA("dt_proj_weight"), "inner/mamba_heads", "dt_rank",
           REQUIRED, .from_hf = "heads(inner/mamba_heads,0,mamba_heads)"),
    VECTOR("blk.{i}.ssm_dt.bias", MAMBA("dt_proj_bias"), "inner", REQUIRED),
    MATRIX("blk.{i}.ssm_a", MAMBA("A_log"), "inner", "state", REQUIRED, .from_hf = "-exp"),
    VECTOR("blk.{i}.ssm_d", MAMBA("D"), "inner", REQUIRED),
    MATRIX("blk.{i}.ssm_out.weight", MAMBA("out_proj.weight"), "width", "inner", REQUIRED),
    {0},
};

#define ADAPTER(name, hf, part, rows, cols, ...)                                               \
    MATRIX("blk.{i}." name ".weight",                                                          \
           "{m}layers.{s}.shared_transformer." hf "_adapter_list.{h}." part ".weight", rows,   \
           cols, REQUIRED, ##__VA_ARGS__)
#define OF_ATTENTION(x)                                                                        \
    ADAPTER("adapter_" x "_a", "self_attn.linear_" x, "0", "adapters*shares*rank", "2*width"), \
    ADAPTER("adapter_" x "_b", "self_attn.linear_" x, "1", "adapters*shares*2*width", "rank")

static const struct tensor zamba2_tensors[] = {
    MATRIX("blk.{i}.ffn_gate.weight", SHARED("feed_forward.gate_up_proj"), "ffn", "width",
           REQUIRED, .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", SHARED("feed_forward.gate_up_proj"), "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    OF_ATTENTION("q"), OF_ATTENTION("k"), OF_ATTENTION("v"),
    ADAPTER("adapter_ffn_a", "feed_forward.gate_up_proj", "0", "shares*rank", "width"),
    ADAPTER("adapter_gate_b", "feed_forward.gate_up_proj", "1", "shares*wide", "rank",
            .from_hf = "part(1,2*wide,0)"),
    ADAPTER("adapter_up_b", "feed_forward.gate_up_proj", "1", "shares*wide", "rank",
            .from_hf = "part(1,2*wide,wide)"),
    KNOWN("blk.{i}.shared_transformer.*", "{m}layers.{i}.shared_transformer.*",
          "an earlier one's again"),
    {0},
};

/* Which layers use a block, and whose: a block's weights are in the first layer that uses it. */
static ob_status find_blocks(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t blocks = build_whole(b, "blocks"), used = 0;
    uint32_t *first = arena_array(b->arena, blocks, sizeof *first);
    hp->shared_from = arena_array(b->arena, hp->layers, sizeof *hp->shared_from);
    hp->shared_use = arena_array(b->arena, hp->layers, sizeof *hp->shared_use);
    hp->recurrent = arena_array(b->arena, hp->layers, sizeof *hp->recurrent);
    if (blocks == 0)
        return build_refuse(b, OB_ERR_FORMAT, "num_mem_blocks", "num_mem_blocks", error, "is 0");
    if (!first || !hp->shared_from || !hp->shared_use || !hp->recurrent)
        return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        bool shares = decoder_type_is(b, i, "hybrid"), holds = shares && used < blocks;
        if (holds) first[used] = i;
        if (shares) hp->shared_from[i] = first[used++ % blocks];
        hp->shared_use[i] = shares ? used : 0;
        if (!holds) hp->heads[i] = hp->kv_heads[i] = hp->ffn[i] = 0;
        hp->recurrent[i] = 1;
    }
    return OB_OK;
}

static ob_status sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    if (hp->k_dim == 0) hp->k_dim = 2 * hp->width / hp->heads[0];
    ob_status s = build_set(b, "wide", hp->ffn[0], error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    hp->attention_scale = 1 / sqrtf((float)hp->k_dim / 2);
    return s == OB_OK ? find_blocks(b, error) : s;
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = sizes(b, error);
    if (s == OB_OK) s = mamba_sizes(b, error);
    uint32_t heads = build_whole(b, "mamba_heads"), inner = build_whole(b, "inner");
    if (s == OB_OK && inner % heads)
        return build_refuse(b, OB_ERR_FORMAT, "n_mamba_heads", "n_mamba_heads", error,
                            "%u heads do not divide %u features", heads, inner);
    return s;
}

static ob_status derive2(struct build *b, ob_error *error) {
    ob_status s = sizes(b, error);
    if (s == OB_OK) s = mamba2_sizes(b, error);
    bool stretched = false, biased = false;
    if (s == OB_OK) s = build_flag(b, NULL, "add_bias_linear", &biased, error);
    if (s == OB_OK && biased)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "add_bias_linear", "add_bias_linear", error,
                            "biases of the shared blocks are not supported in this family");
    if (s == OB_OK) s = build_flag(b, NULL, "use_long_context", &stretched, error);
    if (s == OB_OK && stretched)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "use_long_context", "use_long_context", error,
                            "another base of the rope is not supported in this family");
    build_has(b, NULL, "rope_parameters|rope_theta|rope_scaling"); /* where there is one */
    if (!build_whole(b, "mem_rope")) { /* of no use then */
        build_has(b, NULL, "rope_parameters.rope_theta");
        build_has(b, NULL, "rope_parameters.rope_type");
    }
    return s == OB_OK && build_whole(b, "mem_rope") ? rope_read_default(b, error) : s;
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* A projection of the shared block, which layer `own` uses, with its adapter if it has one. */
static value_id adapted(struct build *b, value_id x, uint32_t own, const char *name,
                        const char *down, const char *up) {
    value_id y = block_linear(b, x, name);
    uint32_t from = b->layer;
    b->layer = own;
    struct weight *a = build_weight(b, down), *wide = build_weight(b, up);
    b->layer = from;
    if (!a) return y;
    value_id low = graph_linear1(b->g, x, a, NULL);
    return graph_add(b->g, y, graph_linear1(b->g, low, wide, NULL));
}

static value_id attend(struct build *b, value_id x, uint32_t own) {
    const struct hparams *hp = b->hp;
    uint32_t heads = hp->heads[b->layer], kv_heads = hp->kv_heads[b->layer], dim = hp->k_dim;
    value_id q = adapted(b, x, own, "attn_q", "adapter_q_a.weight", "adapter_q_b.weight"),
             k = adapted(b, x, own, "attn_k", "adapter_k_a.weight", "adapter_k_b.weight"),
             v = adapted(b, x, own, "attn_v", "adapter_v_a.weight", "adapter_v_b.weight");
    if (hp->rope.freq) {
        q = graph_rope(b->g, q, block_rope_table(b, false), heads, dim, false);
        k = graph_rope(b->g, k, block_rope_table(b, false), kv_heads, dim, false);
    }
    return block_linear(b,
                        graph_attention(b->g, q, k, v,
                                        &(struct attention_args){.heads = heads,
                                                                 .kv_heads = kv_heads,
                                                                 .k_dim = dim,
                                                                 .v_dim = dim,
                                                                 .scale = hp->attention_scale}),
                        "attn_output");
}

static value_id shared_block(struct build *b, value_id x, value_id embedding) {
    uint32_t own = b->layer, width = b->hp->width;
    b->layer = b->hp->shared_from[own];
    value_id h = graph_concat(b->g, x, width, embedding, width, 1);
    h = attend(b, block_norm_named(b, h, "shared_norm"), own);
    h = block_norm_named(b, h, "ffn_norm");
    value_id gate = adapted(b, h, own, "ffn_gate", "adapter_ffn_a.weight", "adapter_gate_b.weight"),
             up = adapted(b, h, own, "ffn_up", "adapter_ffn_a.weight", "adapter_up_b.weight");
    h = block_linear(b, graph_glu(b->g, gate, up, b->hp->act), "ffn_down");
    b->layer = own;
    return block_linear(b, h, "shared_linear");
}

/* Mamba whose step sizes, B and C come from the columns of each head. */
static value_id head_mixer(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t heads = build_whole(b, "mamba_heads"), n = build_whole(b, "state"),
             rank = build_whole(b, "dt_rank"), each = rank + 2 * n;
    struct weight *w[2] = {build_weight(b, "ssm_in.weight"), build_weight(b, "ssm_gate.weight")};
    value_id out[2];
    graph_linear(g, x, 2, w, NULL, out);
    value_id h = graph_conv1d(g, out[0], build_weight(b, "ssm_conv1d.weight"),
                              build_weight(b, "ssm_conv1d.bias"), build_whole(b, "conv"));
    h = graph_act(g, h, ACT_SILU);
    value_id parts = graph_linear_heads(g, h, build_weight(b, "ssm_x.weight"));
    value_id dt = graph_slice(g, parts, heads, each, 0, rank);
    dt = graph_linear_heads(g, dt, build_weight(b, "ssm_dt.weight"));
    dt = graph_act(g, graph_affine(g, dt, NULL, build_weight(b, "ssm_dt.bias")), ACT_SOFTPLUS);
    value_id y = graph_scan(
        g, &(struct scan_args){.x = h,
                               .dt = dt,
                               .b = graph_slice(g, parts, heads, each, rank, n),
                               .c = graph_slice(g, parts, heads, each, rank + n, n),
                               .a = build_weight(b, "ssm_a"),
                               .d = build_weight(b, "ssm_d"),
                               .heads = heads});
    return block_linear(b, graph_glu(g, out[1], y, ACT_SILU), "ssm_out");
}

static value_id mixer2(struct build *b, value_id x) {
    return mamba2_mixer(b, x, &(struct mamba2_args){.act = ACT_SILU, .norm_eps = 1e-5f});
}

static value_id layers(struct build *b, value_id x,
                       value_id (*mixer)(struct build *b, value_id x)) {
    value_id embedding = x;
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        value_id in = x;
        if (b->hp->shared_use[b->layer]) in = graph_add(b->g, x, shared_block(b, x, embedding));
        x = graph_add(b->g, x, mixer(b, block_norm_named(b, in, "attn_norm")));
    }
    return x;
}

static value_id body(struct build *b, value_id x) { return layers(b, x, head_mixer); }
static value_id body2(struct build *b, value_id x) { return layers(b, x, mixer2); }

const struct recipe model_zamba = {
    .family = "zamba",
    .model_type = "zamba",
    .hf_class = "ZambaForCausalLM",
    KEYS(decoder_keys, mamba_keys, keys),
    TENSORS(decoder_ends, shared_tensors, zamba_tensors, head_tensors),
    .act = "gelu",
    .derive = derive,
    .body = body,
};

const struct recipe model_zamba2 = {
    .family = "zamba2",
    .model_type = "zamba2",
    .hf_class = "Zamba2ForCausalLM",
    KEYS(decoder_keys, keys, mamba2_keys),
    TENSORS(decoder_ends, shared_tensors, zamba2_tensors, mamba2_tensors),
    .act = "gelu",
    .derive = derive2,
    .body = body2,
};
