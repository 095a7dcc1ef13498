/* SPDX-License-Identifier: Apache-2.0
 *
 * hrm_text.c: HrmTextForCausalLM (Hierarchical Reasoning Model, arXiv 2506.21734): two stacks of
 * layers, low and high. The low one runs several times on the sum of both states, then the high
 * one once; all this several times. Each run has keys and values of its own. Norms have no weights,
 * attention's output has a gate. Layers 0 .. n - 1 are the low stack, n .. 2n - 1 the high one. */
#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("runs", "{arch}.block_count", "num_hidden_layers", REQUIRED, 0, 1, 4096),
    WHOLE("stack", "{arch}.hrm.layers_per_stack", "num_layers_per_stack", OPTIONAL, 0, 0, 4096),
    WHOLE("high_cycles", "{arch}.hrm.h_cycles", "H_cycles", OPTIONAL, 2, 1, 64),
    WHOLE("low_cycles", "{arch}.hrm.l_cycles", "L_cycles", OPTIONAL, 3, 1, 64),
    REAL("embed_scale", "{arch}.embedding_scale", "embedding_scale", OPTIONAL, 0, 0, 0),
    REAL("spread", NULL, "initializer_range", OPTIONAL, 0.02, 0, 1),
    {0},
};

/* A row of the low stack, and one of the high, whose layers {h} counts. */
#define STACKS(ours, theirs, rows, cols, ...)                                                   \
    MATRIX("blk.{i}." ours ".weight", "{m}L_module.layers.{i}." theirs ".weight", "owns*" rows, \
           cols, REQUIRED, ##__VA_ARGS__),                                                      \
    MATRIX("blk.{i}." ours ".weight", "{m}H_module.layers.{h}." theirs ".weight",               \
           "shares*" rows, cols, REQUIRED, ##__VA_ARGS__)
#define GQKV "attn.gqkv_proj"

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("low_init", "{m}z_L_init", "width", REQUIRED, .gguf = "hrm.z_l_init|low_init"),
    STACKS("attn_gate", GQKV, "heads*k_dim", "width", .from_hf = "part(1,4*heads*k_dim,0)"),
    STACKS("attn_q", GQKV, "heads*k_dim", "width",
           .from_hf = "part(1,4*heads*k_dim,heads*k_dim)"),
    STACKS("attn_k", GQKV, "heads*k_dim", "width",
           .from_hf = "part(1,4*heads*k_dim,2*heads*k_dim)"),
    STACKS("attn_v", GQKV, "heads*k_dim", "width",
           .from_hf = "part(1,4*heads*k_dim,3*heads*k_dim)"),
    STACKS("attn_output", "attn.o_proj", "width", "heads*k_dim"),
    STACKS("ffn_gate", "mlp.gate_up_proj", "ffn", "width", .from_hf = GATE_OF_TWO),
    STACKS("ffn_up", "mlp.gate_up_proj", "ffn", "width", .from_hf = UP_OF_TWO),
    STACKS("ffn_down", "mlp.down_proj", "width", "ffn"),
    {0},
};

/* num_hidden_layers counts a layer as often as it runs; lists a layer are made for both stacks. */
static ob_status make_stacks(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t n = build_whole(b, "stack"), **list[] = {&hp->heads, &hp->kv_heads, &hp->ffn};
    if (n == 0) n = hp->layers;
    ob_status s = build_set(b, "stack", n, error);
    if (s != OB_OK) return s;
    hp->layers = 2 * n;
    hp->shared_use = arena_array(b->arena, hp->layers, sizeof *hp->shared_use);
    if (!hp->shared_use) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = n; i < hp->layers; i++) hp->shared_use[i] = i - n + 1;
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        uint32_t value = (*list[k])[0];
        *list[k] = arena_array(b->arena, hp->layers, sizeof(uint32_t));
        if (!*list[k]) return error_memory(error, "hyperparameters", hp->layers);
        for (uint32_t i = 0; i < hp->layers; i++) (*list[k])[i] = value;
    }
    return OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {{NULL, "attention_bias", 0, 0, "biases of attention"},
                                         {NULL, "mlp_bias", 0, 0, "biases of the MLP"},
                                         {0}};
    struct hparams *hp = b->hp;
    ob_status s = make_stacks(b, error);
    if (s == OB_OK) encoder_own_keys(b); /* as encoders */
    if (s == OB_OK) s = decoder_derive(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s != OB_OK) return s;
    hp->bare_norms = true;
    if (build_number(b, "embed_scale") == 0)
        s = build_set(b, "embed_scale", 1 / build_number(b, "spread"), error);
    hp->embed_scale = (float)build_number(b, "embed_scale");
    return s;
}

/* Without the norm at its end. */
static value_id run(struct build *b, value_id x, bool high) {
    uint32_t n = build_whole(b, "stack"), first = high ? n : 0;
    for (b->layer = first; b->layer < first + n; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = decoder_plain_layer(b, x);
    }
    return x;
}

static value_id body(struct build *b, value_id high) {
    uint32_t cycles = build_whole(b, "high_cycles"), low_cycles = build_whole(b, "low_cycles");
    value_id low = NO_VALUE;
    for (uint32_t i = 0; i < cycles; i++) {
        if (i > 0) high = block_norm(b, high, NULL, NULL);
        for (uint32_t k = 0; k < low_cycles; k++) {
            value_id sum = low == NO_VALUE
                               ? graph_affine(b->g, high, NULL, build_global(b, "low_init"))
                               : graph_add(b->g, low, high);
            low = block_norm(b, run(b, sum, false), NULL, NULL);
        }
        high = run(b, graph_add(b->g, high, low), true);
    }
    return high; /* the norm at its end is the model's last */
}

const struct recipe model_hrm_text = {
    .family = "hrm_text",
    .gguf = "hrm_text",
    .model_type = "hrm_text",
    .hf_class = "HrmTextForCausalLM",
    KEYS(decoder_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .body = body,
};
