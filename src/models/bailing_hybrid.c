/* SPDX-License-Identifier: Apache-2.0
 * bailing_hybrid.c: BailingHybridForCausalLM (Ling 2.5): Kimi delta attention whose decay may have
 * a lower bound, latent attention with a gate of each head, a sigmoid mixture of groups. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mla.h"
#include "models/blocks/moe.h"
#include "models/blocks/kda.h"

static const struct key keys[] = {
    WHOLE("safe", NULL, "kda_safe_gate", OPTIONAL, 1, 0, 1),
    REAL("lower", NULL, "kda_lower_bound", OPTIONAL, -5, -1e9, 1e-30),
    {0},
};

#define AT(name) "{m}layers.{i}.attention." name

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}word_embeddings.weight", "vocab", "width", REQUIRED),
    KDA_TENSORS("attention", "dense"),
    MATRIX("blk.{i}.ssm_f.weight", AT("f_proj.weight"), "recurrent*key", "width", REQUIRED),
    MATRIX("blk.{i}.ssm_g.weight", AT("g_proj.weight"), "recurrent*value", "width", REQUIRED),
    MLA_TENSORS("attn", "attention", "dense"),
    MATRIX("blk.{i}.attn_gate.weight", AT("g_proj.weight"), "kv_heads*heads", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias",
           "{m}layers.{i}.mlp.gate.expert_bias|"
           "{m}layers.{i}.mlp.gate.e_score_correction_bias",
           "experts", REQUIRED),
    {0},
};

/* exp(lower * sigmoid(exp(A_log) * (f + dt_bias))); ssm_a is -exp(A_log). */
static value_id bounded(struct build *b, value_id f) {
    struct graph *g = b->g;
    f = graph_affine(g, f, NULL, build_weight(b, "ssm_dt.bias"));
    f = graph_scale(g, graph_affine(g, f, build_weight(b, "ssm_a"), NULL), -1);
    f = graph_scale(g, graph_act(g, f, ACT_SIGMOID), (float)build_number(b, "lower"));
    return graph_act(g, f, ACT_EXP);
}

static ob_status derive(struct build *b, ob_error *error) {
    build_has(b, NULL, "rope_theta"); /* older files' name, beside rope_parameters */
    return kda_derive(b, error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return mla_mixer(b, x, args);
    struct weight *w[2] = {build_weight(b, "ssm_f.weight"), build_weight(b, "ssm_g.weight")};
    value_id out[2];
    graph_linear(b->g, x, 2, w, NULL, out);
    value_id decay = build_whole(b, "safe") ? bounded(b, out[0]) : deltanet_decay(b, out[0]);
    return deltanet_mixer(b, x, &(struct deltanet_args){.decay = decay,
                                                        .gate = out[1],
                                                        .act = ACT_SIGMOID,
                                                        .norm_eps = b->hp->eps});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_bailing_hybrid = {
    .family = "bailing_hybrid",
    .model_type = "bailing_hybrid",
    .hf_class = "BailingHybridForCausalLM",
    .foreign = "n_group",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys, deltanet_keys, kda_keys, keys),
    TENSORS(decoder_ends, decoder_norms, tensors, decoder_mlp, moe_tensors, moe_shared_tensors),
    .derive = derive,
    .layer = layer,
};
