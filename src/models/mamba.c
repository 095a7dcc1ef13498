/* SPDX-License-Identifier: Apache-2.0
 * mamba.c: MambaForCausalLM, and FalconMambaForCausalLM, which norms the step size, B and C without
 * weights. Each layer is a Mamba mixer behind a norm. */
#include "models/blocks/mamba.h"
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

static const struct key keys[] = {
    WHOLE("inner", "{arch}.ssm.inner_size", "intermediate_size", OPTIONAL, 0, 1, 1 << 20),
    WHOLE("bare_norms", "{arch}.ssm.dt_b_c_rms", NULL, OPTIONAL, 0, 0, 1),
    REAL("bare_eps", NULL, "mixer_rms_eps", OPTIONAL, 1e-6, 0, 1),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = recurrent_sizes(b, error);
    return s == OB_OK ? mamba_sizes(b, error) : s;
}

/* llama.cpp has one architecture for both, and one epsilon. */
static value_id layer(struct build *b, value_id x) {
    float eps = build_whole(b, "bare_norms") ? b->hp->eps : 0;
    return graph_add(b->g, x, mamba_mixer(b, block_norm_named(b, x, "attn_norm"), eps));
}

static ob_status falcon_derive(struct build *b, ob_error *error) {
    ob_status s = build_set(b, "bare_norms", 1, error);
    return s == OB_OK ? derive(b, error) : s;
}

static value_id falcon_layer(struct build *b, value_id x) {
    float eps = (float)build_number(b, "bare_eps");
    return graph_add(b->g, x, mamba_mixer(b, block_norm_named(b, x, "attn_norm"), eps));
}

const struct recipe model_mamba = {
    .family = "mamba",
    .gguf = "mamba",
    .model_type = "mamba",
    .hf_class = "MambaForCausalLM",
    .roots = "backbone.",
    KEYS(recurrent_keys, mamba_keys, keys),
    TENSORS(recurrent_ends, mamba_tensors),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_falcon_mamba = {
    .family = "falcon_mamba",
    .written_as = "mamba",
    .model_type = "falcon_mamba",
    .hf_class = "FalconMambaForCausalLM",
    .roots = "backbone.",
    KEYS(recurrent_keys, mamba_keys, keys),
    TENSORS(recurrent_ends, mamba_tensors),
    .derive = falcon_derive,
    .layer = falcon_layer,
};
