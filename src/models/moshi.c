/* SPDX-License-Identifier: Apache-2.0
 * moshi.c: MoshiForCausalLM: the text half of Moshi: Llama with gate and up in one tensor, whose
 * rows are what the file calls the width of its MLP, and a token that is read and never written. */
#include "models/blocks/decoder.h"

static const struct key written[] = {DECODER_WRITTEN("vocab_size"), {0}};

#define L "{m}layers.{i}."
static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", L "self_attn.q_proj.linear.weight", "heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "self_attn.k_proj.linear.weight", "kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "self_attn.v_proj.linear.weight", "kv_heads*v_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "self_attn.o_proj.linear.weight", "width",
           "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", L "mlp.fc1.weight", "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.fc1.weight", "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.fc2.weight", "width", "ffn", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (hp->ffn[i] % 2)
            return build_refuse(b, OB_ERR_FORMAT, NULL, "ffn_dim", error, "%u is odd", hp->ffn[i]);
        hp->ffn[i] /= 2;
    }
    ob_status s = decoder_written(b, error);
    return s == OB_OK ? decoder_derive_sliding(b, error) : s;
}

const struct recipe model_moshi = {
    .family = "moshi",
    .model_type = "moshi",
    .hf_class = "MoshiForCausalLM",
    KEYS(decoder_keys, decoder_window_keys, written),
    TENSORS(decoder_wide_ends, decoder_norms, tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
