/* SPDX-License-Identifier: Apache-2.0
 * granite.c: GraniteForCausalLM: Llama whose embedding, scores, residual branches and logits are
 * multiplied by constants. */
#include "models/granite.h"

#include "models/blocks/decoder.h"

const struct key granite_keys[] = {
    REAL("embedding_multiplier", "{arch}.embedding_scale", "embedding_multiplier", OPTIONAL, 1, 0,
         0),
    REAL("residual_multiplier", "{arch}.residual_scale", "residual_multiplier", OPTIONAL, 1, 0, 0),
    REAL("attention_multiplier", "{arch}.attention.scale", "attention_multiplier", OPTIONAL, 0, 0,
         0),
    REAL("logits_scaling", "{arch}.logit_scale", "logits_scaling", OPTIONAL, 1, 1e-6, 0),
    {0},
};

void granite_multipliers(struct build *b) {
    struct hparams *hp = b->hp;
    float attention = (float)build_number(b, "attention_multiplier");
    hp->embed_scale = (float)build_number(b, "embedding_multiplier");
    hp->residual_scale = (float)build_number(b, "residual_multiplier");
    hp->logit_scale = (float)build_number(b, "logits_scaling");
    if (attention > 0) hp->attention_scale = attention;
}

ob_status granite_derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    granite_multipliers(b);
    b->hp->logit_scale = 1 / b->hp->logit_scale;
    return OB_OK;
}

const struct recipe model_granite = {
    .family = "granite",
    .gguf = "granite",
    .model_type = "granite",
    .hf_class = "GraniteForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, granite_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, decoder_mlp_biases,
            decoder_mlp),
    .derive = granite_derive,
    .layer = decoder_paired_layer,
};
