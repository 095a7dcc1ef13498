/* SPDX-License-Identifier: Apache-2.0
 * jamba.c: JambaForCausalLM: Mamba layers, and every attn_layer_period-th with attention that has
 * no positions; MLPs, and every expert_layer_period-th a mixture whose weights stay a softmax
 * over all experts. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mamba.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    WHOLE("attn_offset", NULL, "attn_layer_offset", OPTIONAL, 4, 0, 4096),
    WHOLE("attn_period", NULL, "attn_layer_period", OPTIONAL, 8, 1, 4096),
    WHOLE("expert_offset", NULL, "expert_layer_offset", OPTIONAL, 1, 0, 4096),
    WHOLE("expert_period", NULL, "expert_layer_period", OPTIONAL, 2, 1, 4096),
    {0},
};

#define MLP "{m}layers.{i}.feed_forward."
#define EXPERT MLP "experts.{e}."

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.weight", "experts", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", EXPERT "gate_proj.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", EXPERT "up_proj.weight", "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", EXPERT "down_proj.weight", "width", "expert_ffn",
           REQUIRED, .from_hf = "stack"),
    {0},
};

static bool is_recurrent(struct build *b, uint32_t i) {
    return i % build_whole(b, "attn_period") != build_whole(b, "attn_offset");
}

/* GGUF has no key for it: by the router. */
static bool is_mixture(struct build *b, uint32_t i) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
    if (source_kind(b->meta) == SOURCE_GGUF) return source_tensor_find(b->source, str_of(name));
    return i % build_whole(b, "expert_period") == build_whole(b, "expert_offset");
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX};
    struct hparams *hp = b->hp;
    ob_status s = hybrid_sizes(b, is_recurrent, error);
    if (s == OB_OK) s = mamba_sizes(b, error);
    if (s != OB_OK || hp->expert_count < 2) return s;
    uint32_t *plain = arena_array(b->arena, hp->layers, sizeof *plain);
    if (!plain) return error_memory(error, "hyperparameters", hp->layers * sizeof *plain);
    memcpy(plain, hp->ffn, hp->layers * sizeof *plain);
    s = moe_sizes(b, &router, error); /* of all layers */
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++) {
        if (is_mixture(b, i)) continue;
        hp->experts[i] = 0;
        hp->ffn[i] = plain[i];
    }
    return s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    return b->hp->recurrent[b->layer] ? mamba_mixer(b, x, 0) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_jamba = {
    .family = "jamba",
    .gguf = "jamba",
    .model_type = "jamba",
    .hf_class = "JambaForCausalLM",
    .foreign = "norm_topk_prob|routed_scaling_factor",
    KEYS(decoder_keys, moe_keys, mamba_keys, keys),
    TENSORS(decoder_ends, hybrid_feed_forward, tensors, decoder_attention_tensors,
            mamba_tensors, mamba_inner_norms),
    .derive = derive,
    .layer = layer,
};
