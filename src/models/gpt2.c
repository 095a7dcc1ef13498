/* SPDX-License-Identifier: Apache-2.0
 * gpt2.c: GPT2LMHeadModel (GPT-2, GPT-SW3): learned positions, layer norms, biases everywhere, a
 * plain MLP; Hugging Face has all matrices [in, out]. OpenAIGPTLMHeadModel, its forerunner, has the
 * norms behind attention and MLP and none at the end. GPTBigCodeForCausalLM (SantaCoder,
 * StarCoder) has [out, in], and one head of k and v for all of q. */
#include "base/error.h"
#include "models/blocks/decoder.h"

#define L "{m}h.{i}."

static const struct key keys[] = {
    WHOLE("scaled", NULL, "scale_attn_weights", OPTIONAL, 1, 0, 1),
    WHOLE("scaled_by_layer", NULL, "scale_attn_by_inverse_layer_idx", OPTIONAL, 0, 0, 1),
    {0},
};

static const struct tensor block[] = {
    FUSED_QKV(L "attn.c_attn", "T " Q_OF_QKV, "T " K_OF_QKV, "T " V_OF_QKV),
    VECTOR("blk.{i}.attn_q.bias", L "attn.c_attn.bias", "heads*k_dim", REQUIRED,
           .from_hf = Q_OF_QKV),
    VECTOR("blk.{i}.attn_k.bias", L "attn.c_attn.bias", "kv_heads*k_dim", REQUIRED,
           .from_hf = K_OF_QKV),
    VECTOR("blk.{i}.attn_v.bias", L "attn.c_attn.bias", "kv_heads*v_dim", REQUIRED,
           .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", L "attn.c_proj.weight", "width", "heads*v_dim", REQUIRED,
           .from_hf = "T"),
    VECTOR("blk.{i}.attn_output.bias", L "attn.c_proj.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.c_fc.weight", "ffn", "width", REQUIRED,
           .from_hf = "T"),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.c_fc.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.c_proj.weight", "width", "ffn", REQUIRED,
           .from_hf = "T"),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.c_proj.bias", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    KNOWN("blk.{i}.attn_mask", L "attn.bias", "the mask is computed"),
    KNOWN("blk.{i}.attn_masked", L "attn.masked_bias", "the mask is computed"),
    {0},
};

#define QKV_FORM(flag_, q_, k_, v_)                                                              \
    MATRIX("blk.{i}.attn_q.weight", L "attn.c_attn.weight", flag_ "*heads*k_dim", "width",       \
           REQUIRED, .from_hf = (q_)),                                                           \
    MATRIX("blk.{i}.attn_k.weight", L "attn.c_attn.weight", flag_ "*kv_heads*k_dim", "width",    \
           REQUIRED, .from_hf = (k_)),                                                           \
    MATRIX("blk.{i}.attn_v.weight", L "attn.c_attn.weight", flag_ "*kv_heads*v_dim", "width",    \
           REQUIRED, .from_hf = (v_)),                                                           \
    VECTOR("blk.{i}.attn_q.bias", L "attn.c_attn.bias", flag_ "*heads*k_dim", REQUIRED,          \
           .from_hf = (q_)),                                                                     \
    VECTOR("blk.{i}.attn_k.bias", L "attn.c_attn.bias", flag_ "*kv_heads*k_dim", REQUIRED,       \
           .from_hf = (k_)),                                                                     \
    VECTOR("blk.{i}.attn_v.bias", L "attn.c_attn.bias", flag_ "*kv_heads*v_dim", REQUIRED,       \
           .from_hf = (v_))

static const struct key bigcode_keys[] = {
    WHOLE("one_kv", NULL, "multi_query", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor bigcode_block[] = {
    QKV_FORM("one_kv", Q_OF_QKV, K_OF_QKV, V_OF_QKV),
    QKV_FORM("each_kv", Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    MATRIX("blk.{i}.attn_output.weight", L "attn.c_proj.weight", "width", "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "attn.c_proj.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.c_fc.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.c_fc.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.c_proj.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.c_proj.bias", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    KNOWN("blk.{i}.attn_mask", L "attn.bias", "the mask is computed"),
    {0},
};

static const struct tensor gpt2_tensors[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("position_embd.weight", "{m}wpe.weight", "context", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "ln_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "ln_1.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "ln_2.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "ln_2.bias", "width", REQUIRED),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_f.bias", "width", REQUIRED),
    {0},
};

static const struct tensor openai_tensors[] = {
    MATRIX("token_embd.weight", "{m}tokens_embed.weight", "vocab", "width", REQUIRED),
    MATRIX("position_embd.weight", "{m}positions_embed.weight", "context", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.weight", L "ln_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.bias", L "ln_1.bias", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.weight", L "ln_2.weight", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.bias", L "ln_2.bias", "width", REQUIRED),
    {0},
};

static const struct plain plain[] = {
    {NULL, "add_cross_attention", 0, 0, "attention to an encoder"},
    {NULL, "scale_attention_softmax_in_fp32", 0, 1, "of a smaller precision"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    decoder_ffn_times(b, 4);
    ob_status s = build_plain(b, plain, error);
    return s == OB_OK ? decoder_sizes(b, error) : s;
}

static ob_status derive_gpt2(struct build *b, ob_error *error) {
    ob_status s = derive(b, error);
    if (s == OB_OK && !build_whole(b, "scaled")) b->hp->attention_scale = 1;
    return s == OB_OK ? build_set(b, "scale", (double)b->hp->attention_scale, error) : s;
}

static ob_status derive_bigcode(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool one = build_whole(b, "one_kv");
    for (uint32_t i = 0; source_kind(b->meta) != SOURCE_GGUF && i < hp->layers; i++)
        hp->kv_heads[i] = one ? 1 : hp->heads[i];
    ob_status s = build_set(b, "each_kv", !one, error);
    return s == OB_OK ? derive_gpt2(b, error) : s;
}

/* Its "gelu" is the one by tanh. */
static ob_status derive_openai(struct build *b, ob_error *error) {
    struct str act = STR_LIT("gelu");
    build_str(b, NULL, "afn", &act);
    if (str_is(act, "gelu")) b->hp->act = ACT_GELU_TANH;
    else if (!build_act_named(act, &b->hp->act))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "afn", "afn", error,
                            "activation \"%.*s\" is not known", STR_ARG(act));
    return derive(b, error);
}

static value_id layer(struct build *b, value_id x) {
    float scale = (float)build_number(b, "scale");
    b->hp->attention_scale =
        build_whole(b, "scaled_by_layer") ? scale / (float)(b->layer + 1) : scale;
    return decoder_plain_layer(b, x);
}

const struct recipe model_gpt2 = {
    .family = "gpt2",
    .gguf = "gpt2",
    .model_type = "gpt2",
    .hf_class = "GPT2LMHeadModel",
    .roots = "transformer.|",
    .act = "gelu_new",
    KEYS(decoder_keys, keys),
    TENSORS(gpt2_tensors, block, decoder_gguf_qkv),
    .derive = derive_gpt2,
    .layer = layer,
};

const struct recipe model_gpt_bigcode = {
    .family = "gpt_bigcode",
    .gguf = "starcoder",
    .model_type = "gpt_bigcode",
    .hf_class = "GPTBigCodeForCausalLM",
    .foreign = "scale_attn_by_inverse_layer_idx",
    .roots = "transformer.|",
    .act = "gelu_pytorch_tanh",
    KEYS(decoder_keys, keys, bigcode_keys),
    TENSORS(gpt2_tensors, bigcode_block, decoder_gguf_qkv),
    .derive = derive_bigcode,
    .layer = layer,
};

const struct recipe model_openai_gpt = {
    .family = "openai-gpt",
    .model_type = "openai-gpt",
    .hf_class = "OpenAIGPTLMHeadModel",
    .roots = "transformer.|",
    .act_key = "",
    KEYS(decoder_keys),
    TENSORS(openai_tensors, block),
    .derive = derive_openai,
    .layer = decoder_plain_layer,
};
