/* SPDX-License-Identifier: Apache-2.0
 * minicpm3.c: MiniCPM3ForCausalLM: latent attention with rotary halves in dense layers; embeddings,
 * sub-layers and logits are multiplied by constants. */
#include <math.h>

#include "models/blocks/mla.h"

static const struct key keys[] = {
    REAL("scale_emb", NULL, "scale_emb", OPTIONAL, 12, 0, 0),
    REAL("scale_depth", NULL, "scale_depth", OPTIONAL, 1.4, 0, 0),
    REAL("dim_model_base", NULL, "dim_model_base", OPTIONAL, 256, 1, 0),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = mla_derive(b, error);
    if (s != OB_OK) return s;
    hp->embed_scale = (float)build_number(b, "scale_emb");
    hp->residual_scale = (float)(build_number(b, "scale_depth") / sqrt((double)hp->layers));
    hp->logit_scale = (float)(build_number(b, "dim_model_base") / hp->width);
    return OB_OK;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    return mla_attention(b, x, &(struct mla_args){.halves = true});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_minicpm3 = {
    .family = "minicpm3",
    .model_type = "minicpm3",
    .hf_class = "MiniCPM3ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, decoder_mlp_biases),
    .derive = derive,
    .layer = layer,
};
