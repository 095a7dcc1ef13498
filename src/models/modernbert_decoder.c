/* SPDX-License-Identifier: Apache-2.0
 * modernbert_decoder.c: ModernBertDecoderForCausalLM (Ettin): ModernBERT that sees only what was
 * before: layer norms, of which the first layer has none before attention but the embeddings one,
 * gated GELU, a rope of each kind of layer, and a head of its own before the logits. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("norm_bias", NULL, "norm_bias", OPTIONAL, 0, 0, 1),
    WHOLE("head_bias", NULL, "classifier_bias", OPTIONAL, 0, 0, 1),
    WHOLE("output_bias", NULL, "decoder_bias", OPTIONAL, 1, 0, 1),
    WHOLE("both_sides", NULL, "local_attention", OPTIONAL, 128, 0, 0),
    WHOLE("full_every", NULL, "global_attn_every_n_layers", OPTIONAL, 3, 1, 4096),
    {0},
};

#define L "{m}layers.{i}."
static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.tok_embeddings.weight", "vocab", "width", REQUIRED),
    VECTOR("token_embd_norm.weight", "{m}embeddings.norm.weight", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}embeddings.norm.bias", "norm_bias*width", REQUIRED),
    VECTOR("last_norm.weight", "{m}final_norm.weight", "width", REQUIRED),
    VECTOR("last_norm.bias", "{m}final_norm.bias", "norm_bias*width", REQUIRED),
    MATRIX("head.weight", "lm_head.dense.weight", "width", "width", REQUIRED),
    VECTOR("head.bias", "lm_head.dense.bias", "head_bias*width", REQUIRED),
    VECTOR("output_norm.weight", "lm_head.norm.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "lm_head.norm.bias", "norm_bias*width", REQUIRED),
    MATRIX("output.weight", "decoder.weight", "vocab", "width", OPTIONAL),
    VECTOR("output.bias", "decoder.bias", "output_bias*vocab", REQUIRED),
    /* The first layer has none. */
    VECTOR("blk.{i}.attn_norm.weight", L "attn_norm.weight", "width", OPTIONAL,
           .needed = "is_later"),
    VECTOR("blk.{i}.attn_norm.bias", L "attn_norm.bias", "norm_bias*width", OPTIONAL,
           .needed = "is_later"),
    VECTOR("blk.{i}.ffn_norm.weight", L "mlp_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "mlp_norm.bias", "norm_bias*width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", L "attn.q_proj.weight", "heads*k_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", L "attn.q_proj.bias", "attention_bias*heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "attn.k_proj.weight", "kv_heads*k_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", L "attn.k_proj.bias", "attention_bias*kv_heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "attn.v_proj.weight", "kv_heads*v_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", L "attn.v_proj.bias", "attention_bias*kv_heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "attn.Wo.weight", "width", "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "attn.Wo.bias", "attention_bias*width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", L "mlp.Wi.weight", "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO),
    VECTOR("blk.{i}.ffn_gate.bias", L "mlp.Wi.bias", "mlp_bias*ffn", REQUIRED,
           .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.Wi.weight", "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.Wi.bias", "mlp_bias*ffn", REQUIRED,
           .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.Wo.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.Wo.bias", "mlp_bias*width", REQUIRED),
    {0},
};

static ob_status read_rope(struct build *b, const char *hf, const char *older, float base,
                           struct rope *out, ob_error *error) {
    return rope_read(b,
                     &(struct rope_source){.hf = hf,
                                           .base_key_hf = older,
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = base,
                                           .scaled = true},
                     out, error);
}

/* The classifier's activation, which the head shares. */
static ob_status read_head_act(struct build *b, ob_error *error) {
    static const char key[] = "classifier_activation";
    struct str name = STR_LIT("gelu");
    build_str(b, NULL, key, &name);
    if (build_act_named(name, &b->hp->head_act)) return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error, "activation \"%.*s\" is not known",
                        STR_ARG(name));
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = encoder_causal_sizes(b, error);
    if (s == OB_OK) s = read_head_act(b, error);
    if (s == OB_OK)
        s = read_rope(b, "rope_parameters.full_attention", "global_rope_theta|rope_theta", 160000,
                      &hp->rope, error);
    if (s == OB_OK)
        s = read_rope(b, "rope_parameters.sliding_attention",
                      "local_rope_theta|rope_local_base_freq", 10000, &hp->rope_window, error);
    if (s != OB_OK) return s;
    /* Files that give the encoder's width of both sides only: half of it is looked back. */
    if (hp->window_size == 0) hp->window_size = build_whole(b, "both_sides") / 2;
    if (decoder_layer_types(b)) return OB_OK;
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->window[i] = i % build_whole(b, "full_every") ? hp->window_size : 0;
    return OB_OK;
}

const struct recipe model_modernbert_decoder = {
    .family = "modernbert-decoder",
    .model_type = "modernbert-decoder",
    .hf_class = "ModernBertDecoderForCausalLM",
    .foreign = "rope_local_base_freq|rope_scaling.truncate|rope_scaling.type|rope_theta",
    .act = "gelu",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = encoder_causal_layer,
};
