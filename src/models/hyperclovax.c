/* SPDX-License-Identifier: Apache-2.0
 * hyperclovax.c: HyperCLOVAXForCausalLM: Granite whose constant for the logits multiplies, and with
 * norms after attention and MLP. */
#include "models/blocks/decoder.h"
#include "models/granite.h"

static const struct key keys[] = {
    WHOLE("post_norm", NULL, "use_post_norm", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor norms[] = {
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_norm1.weight",
           "post_norm*width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_norm2.weight", "post_norm*width",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) granite_multipliers(b);
    return s;
}

const struct recipe model_hyperclovax = {
    .family = "hyperclovax",
    .model_type = "hyperclovax",
    .hf_class = "HyperCLOVAXForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, granite_keys, keys),
    TENSORS(decoder_ends, decoder_norms, norms, decoder_attention_tensors,
            decoder_attention_biases, decoder_mlp_biases, decoder_mlp),
    .derive = derive,
    .layer = decoder_plain_layer,
};
