/* SPDX-License-Identifier: Apache-2.0
 * nomic_bert.c: NomicBertModel (arXiv 2402.01613): BERT's norms on the sums, with rotary positions,
 * gated MLPs and no biases. The first files have GPT-2's names of keys. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"

#define LAYER "{m}encoder.layers.{i}."

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "width",
           OPTIONAL, .needed = "by_config"),
    VECTOR("token_embd_norm.weight", "{m}emb_ln.weight", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}emb_ln.bias", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", LAYER "attn.Wqkv.weight", "heads*k_dim", "width", REQUIRED,
           .from_hf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", LAYER "attn.Wqkv.weight", "kv_heads*k_dim", "width", REQUIRED,
           .from_hf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", LAYER "attn.Wqkv.weight", "kv_heads*v_dim", "width", REQUIRED,
           .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", LAYER "attn.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.weight", LAYER "norm1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.bias", LAYER "norm1.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", LAYER "mlp.fc11.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", LAYER "mlp.fc12.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", LAYER "mlp.fc2.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.weight", LAYER "norm2.weight", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.bias", LAYER "norm2.bias", "width", REQUIRED),
    KNOWN("mlm", "cls.*", "words in gaps are not guessed"),
    KNOWN("pooler", "{m}pooler.*", "not part of the embedding"),
    {0},
};

/* What the first files could ask for. */
static const struct plain plain[] = {
    {NULL, "rotary_emb_fraction", 1, 1, "a part of each head that is not rotated"},
    {NULL, "rotary_scaling_factor", 1, 1, "a scaling of positions"},
    {NULL, "moe_every_n_layers", 0, 0, "a mixture of experts"},
    {0},
};

static ob_status refuse(struct build *b, ob_error *error) {
    static const char *const keys[] = {"prenorm", "rotary_emb_interleaved", "scale_attn_by_layer"};
    struct str act;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool on = false;
        ob_status s = build_flag(b, NULL, keys[i], &on, error);
        if (s != OB_OK) return s;
        if (on)
            return build_refuse(b, OB_ERR_UNSUPPORTED, "", keys[i], error,
                                "is not supported in this family");
    }
    if (build_str(b, NULL, "activation_function", &act) && !str_is(act, "swiglu"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "activation_function", error,
                            "activation \"%.*s\" is not supported in this family", STR_ARG(act));
    return build_plain(b, plain, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = refuse(b, error);
    if (s == OB_OK) s = encoder_sizes(b, "", "", error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters",
                                           .base_key_hf = "rope_theta|rotary_emb_base",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = 1000,
                                           .scaled = true},
                     &b->hp->rope, error);
}

const struct recipe model_nomic_bert = {
    .family = "nomic_bert",
    .gguf = "nomic-bert",
    .model_type = "nomic_bert",
    .hf_class = "NomicBertModel",
    .roots = "|bert.|nomic_bert.",
    KEYS(decoder_keys, encoder_keys),
    TENSORS(tensors, decoder_gguf_qkv),
    .act = "silu",
    .act_key = "hidden_act",
    .derive = derive,
    .layer = decoder_plain_layer,
};
