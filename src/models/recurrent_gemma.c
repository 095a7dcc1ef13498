/* SPDX-License-Identifier: Apache-2.0
 * recurrent_gemma.c: RecurrentGemmaForCausalLM (Griffin, arXiv 2402.19427): layers with a gated
 * linear recurrence behind a short convolution, some with attention in a window; gated MLPs. */
#include <math.h>
#include <string.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("lru", NULL, "lru_width", OPTIONAL, 0, 1, 1 << 20),
    WHOLE("conv", NULL, "conv1d_width", OPTIONAL, 4, 1, 64),
    {NULL, "attention_window_size", KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 2048,
     1, 0, NULL},
    {NULL, "logits_soft_cap", KEY_F32, offsetof(struct hparams, logit_softcap), OPTIONAL, 30, 1e-6,
     0, NULL},
    {0},
};

#define LAYER "{m}layers.{i}."
#define BLOCK LAYER "temporal_block."
#define LRU BLOCK "rg_lru."
#define MLP LAYER "mlp_block."
#define OF_HEADS "heads(lru_head,0,lru_heads) T"

static const struct tensor tensors[] = {
    VECTOR("output_norm.weight", "{m}final_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", LAYER "temporal_pre_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", LAYER "channel_pre_norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", BLOCK "q_proj.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", BLOCK "k_proj.weight", "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", BLOCK "v_proj.weight", "kv_heads*v_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", BLOCK "q_proj.bias", "attention_bias*heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", BLOCK "k_proj.bias", "attention_bias*kv_heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", BLOCK "v_proj.bias", "attention_bias*kv_heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", BLOCK "o_proj.weight", "attends*width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", BLOCK "o_proj.bias", "attends*width", REQUIRED),
    MATRIX("blk.{i}.lru_x.weight", BLOCK "linear_x.weight", "recurrent*lru", "width", REQUIRED),
    VECTOR("blk.{i}.lru_x.bias", BLOCK "linear_x.bias", "recurrent*lru", REQUIRED),
    MATRIX("blk.{i}.lru_y.weight", BLOCK "linear_y.weight", "recurrent*lru", "width", REQUIRED),
    VECTOR("blk.{i}.lru_y.bias", BLOCK "linear_y.bias", "recurrent*lru", REQUIRED),
    MATRIX("blk.{i}.lru_out.weight", BLOCK "linear_out.weight", "recurrent*width", "lru",
           REQUIRED),
    VECTOR("blk.{i}.lru_out.bias", BLOCK "linear_out.bias", "recurrent*width", REQUIRED),
    MATRIX("blk.{i}.lru_conv1d.weight", BLOCK "conv_1d.weight", "recurrent*lru", "conv", REQUIRED,
           .from_hf = "f32"),
    VECTOR("blk.{i}.lru_conv1d.bias", BLOCK "conv_1d.bias", "recurrent*lru", REQUIRED),
    VECTOR("blk.{i}.lru_decay", LRU "recurrent_param", "recurrent*lru", REQUIRED),
    MATRIX("blk.{i}.lru_in.weight", LRU "input_gate_weight", "recurrent*lru_head", "lru_head",
           REQUIRED, .from_hf = OF_HEADS),
    VECTOR("blk.{i}.lru_in.bias", LRU "input_gate_bias", "recurrent*lru", REQUIRED),
    MATRIX("blk.{i}.lru_gate.weight", LRU "recurrent_gate_weight", "recurrent*lru_head",
           "lru_head", REQUIRED, .from_hf = OF_HEADS),
    VECTOR("blk.{i}.lru_gate.bias", LRU "recurrent_gate_bias", "recurrent*lru", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", MLP "gate_proj.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_gate.bias", MLP "gate_proj.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "up_proj.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", MLP "up_proj.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "down_proj.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", MLP "down_proj.bias", "width", REQUIRED),
    {0},
};

/* block_types is repeated; without it two of three layers are recurrent. */
static bool is_recurrent(struct build *b, uint32_t layer) {
    struct str type;
    uint64_t n = build_count(b, NULL, "block_types");
    if (n == 0) return layer % 3 != 2;
    return build_str_at(b, NULL, "block_types", layer % n, &type) && str_is(type, "recurrent");
}

/* What bfloat16 holds of it. */
static float rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    build_has(b, NULL, "w_init_variance_scale"); /* of weights before training */
    build_has(b, NULL, "final_w_init_variance_scale");
    uint32_t heads = hp->heads[0], width = build_whole(b, "lru") ? build_whole(b, "lru")
                                                                  : hp->width;
    if (width % heads)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "lru_width", error,
                            "%u is no multiple of the %u heads", width, heads);
    const uint32_t each = width / heads;
    if (hp->context == 0) hp->context = 1 << 20; /* a state has no end of its own */
    for (uint32_t i = 0; i < hp->layers; i++) hp->ffn[i] /= 2;
    ob_status s = build_set(b, "lru", width, error);
    if (s == OB_OK) s = build_set(b, "lru_heads", heads, error);
    if (s == OB_OK) s = build_set(b, "lru_head", each, error);
    if (s == OB_OK) s = hybrid_sizes(b, is_recurrent, error);
    if (s == OB_OK) s = rope_read_part(b, 0.5f, error);
    if (s != OB_OK) return s;
    hp->embed_scale = rounded(sqrtf((float)hp->width));
    for (uint32_t i = 0; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return OB_OK;
}

/* -8 * softplus(param): what the gate multiplies. */
static struct weight *decay(struct build *b) {
    const struct weight *param = build_weight(b, "lru_decay");
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *data = arena_array(b->arena, param->cols, sizeof *data);
    if (!w || !data) {
        b->g->failed = true;
        return NULL;
    }
    const float *p = param->data;
    for (uint32_t i = 0; i < param->cols; i++)
        data[i] = (float)(-8 * (fmax((double)p[i], 0) + log1p(exp(-fabs((double)p[i])))));
    *w = *param;
    w->data = data;
    return w;
}

/* sigmoid(W x + bias), a matrix for each head. */
static value_id gate(struct build *b, value_id x, const char *weight, const char *bias) {
    x = graph_linear_heads(b->g, x, build_weight(b, weight));
    return graph_act(b->g, graph_affine(b->g, x, NULL, build_weight(b, bias)), ACT_SIGMOID);
}

static value_id recur(struct build *b, value_id x) {
    struct graph *g = b->g;
    struct weight *w[2] = {build_weight(b, "lru_x.weight"), build_weight(b, "lru_y.weight")};
    struct weight *bias[2] = {build_weight(b, "lru_x.bias"), build_weight(b, "lru_y.bias")};
    value_id out[2];
    graph_linear(g, x, 2, w, bias, out);
    x = graph_conv1d(g, out[0], build_weight(b, "lru_conv1d.weight"),
                     build_weight(b, "lru_conv1d.bias"), build_whole(b, "conv"));
    value_id in = gate(b, x, "lru_in.weight", "lru_in.bias");
    value_id log_decay = gate(b, x, "lru_gate.weight", "lru_gate.bias");
    log_decay = graph_affine(g, log_decay, decay(b), NULL);
    value_id h = graph_rglru(g, graph_mul(g, x, in), log_decay);
    return block_linear(b, graph_glu(g, out[1], h, b->hp->act), "lru_out");
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    return b->hp->recurrent[b->layer] ? recur(b, x) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_recurrent_gemma = {
    .family = "recurrent_gemma",
    .model_type = "recurrent_gemma",
    .hf_class = "RecurrentGemmaForCausalLM",
    .turns_parts = true,
    .norms_plus_one = true,
    .act = "gelu_pytorch_tanh",
    .act_key = "hidden_activation",
    KEYS(decoder_keys, decoder_bias_keys, keys),
    TENSORS(decoder_ends, tensors),
    .derive = derive,
    .layer = layer,
};
