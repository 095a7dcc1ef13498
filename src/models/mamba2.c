/* SPDX-License-Identifier: Apache-2.0
 * mamba2.c: Mamba2ForCausalLM: each layer is a Mamba-2 mixer behind a norm. */
#include "models/blocks/mamba2.h"
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

static const struct key keys[] = {
    WHOLE("mamba_dim", NULL, "head_dim", OPTIONAL, 64, 1, 4096),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = recurrent_sizes(b, error);
    return s == OB_OK ? mamba2_sizes(b, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    const struct mamba2_args args = {.act = b->hp->act, .norm_eps = b->hp->eps};
    return graph_add(b->g, x, mamba2_mixer(b, block_norm_named(b, x, "attn_norm"), &args));
}

const struct recipe model_mamba2 = {
    .family = "mamba2",
    .gguf = "mamba2",
    .model_type = "mamba2",
    .hf_class = "Mamba2ForCausalLM",
    .roots = "backbone.",
    KEYS(recurrent_keys, mamba2_keys, keys),
    TENSORS(recurrent_ends, mamba2_tensors),
    .derive = derive,
    .layer = layer,
};
