/* SPDX-License-Identifier: Apache-2.0
 * exaone.c: ExaoneForCausalLM (EXAONE 3.0 and 3.5): Llama's mathematics under GPT-2's names, and
 * InternLM3ForCausalLM and IQuestCoderForCausalLM, which have Llama's names, too: transformers runs
 * all three as LlamaForCausalLM. Emu3ForCausalLM is the same with another base. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

#define L "{m}h.{i}."
static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "ln_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "ln_2.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", L "attn.attention.q_proj.weight", "heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "attn.attention.k_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "attn.attention.v_proj.weight", "kv_heads*v_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "attn.attention.out_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", L "mlp.c_fc_0.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.c_fc_1.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.c_proj.weight", "width", "ffn", REQUIRED),
    KNOWN("rope_freqs.weight", NULL, "used through the rope frequencies"),
    {0},
};

/* No released file has these. */
static const struct plain exaone_plain[] = {
    {NULL, "attention_bias", 0, 0, "biases of attention"},
    {NULL, "mlp_bias", 0, 0, "biases of the MLP"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = build_plain(b, exaone_plain, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    return s == OB_OK ? rope_read_base(b, 500000, error) : s;
}

const struct recipe model_exaone = {
    .family = "exaone",
    .gguf = "exaone",
    .model_type = "exaone",
    .hf_class = "ExaoneForCausalLM",
    .roots = "transformer.",
    KEYS(decoder_keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};

/* InternLM3's files name attention_bias and mlp_bias so, too. */
static const struct key internlm3_keys[] = {
    WHOLE("attention_bias", NULL, "attention_bias|qkv_bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "mlp_bias|bias", OPTIONAL, 0, 0, 1),
    {0},
};

#define AS_LLAMA(derive_, keys_)                                                                   \
    .written_as = "llama", KEYS(decoder_keys, keys_),                                              \
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases,                    \
            decoder_mlp_biases, decoder_mlp),                                                      \
    .derive = (derive_), .layer = decoder_paired_layer

/* One key is of q, k and v, the other of all else. */
static ob_status derive_internlm3(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK || source_kind(b->meta) == SOURCE_GGUF) return s;
    return build_set(b, "by_config", build_number(b, "mlp_bias"), error);
}

const struct recipe model_internlm3 = {
    .family = "internlm3",
    .model_type = "internlm3",
    .hf_class = "InternLM3ForCausalLM",
    AS_LLAMA(derive_internlm3, internlm3_keys),
};

const struct recipe model_iquestcoder = {
    .family = "iquestcoder",
    .model_type = "iquestcoder",
    .hf_class = "IQuestCoderForCausalLM",
    AS_LLAMA(decoder_derive, decoder_bias_keys),
};

static ob_status derive_emu3(struct build *b, ob_error *error) {
    ob_status s = decoder_sizes(b, error);
    return s == OB_OK ? rope_read_base(b, 1000000, error) : s;
}

const struct recipe model_emu3_text = {
    .family = "emu3_text",
    .model_type = "emu3_text_model",
    .hf_class = "Emu3ForCausalLM",
    .roots = "model.|text_model.model.|model.text_model.",
    AS_LLAMA(derive_emu3, decoder_bias_keys),
};
