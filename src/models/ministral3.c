/* SPDX-License-Identifier: Apache-2.0
 * ministral3.c: Ministral3ForCausalLM: Mistral whose queries are scaled by the logarithm of their
 * position beyond yarn's original context (Llama 4's attention temperature). */
#include <math.h>

#include "models/blocks/decoder.h"

static const struct key keys[] = {
    {"{arch}.attention.temperature_scale", "rope_parameters.llama_4_scaling_beta", KEY_F32,
     offsetof(struct hparams, query_beta), OPTIONAL, 0, 0, 0, NULL},
    {"{arch}.rope.scaling.original_context_length",
     "rope_parameters.original_max_position_embeddings", KEY_F32,
     offsetof(struct hparams, query_period), OPTIONAL, 0, 1, 0, NULL},
    REAL("log_multiplier", "{arch}.rope.scaling.yarn_log_multiplier",
         "rope_parameters.mscale_all_dim|rope_scaling.mscale_all_dim", OPTIONAL, 0, 0, 0),
    {0},
};

static float log_scale(float factor, float by) {
    return factor <= 1 ? 1.0f : 0.1f * by * logf(factor) + 1.0f;
}

/* GGUF has yarn's mscale_all_dim by another name, and mscale is 1. */
static void gguf_magnitude(struct build *b) {
    float factor = 1, all = (float)build_number(b, "log_multiplier");
    if (source_kind(b->meta) != SOURCE_GGUF || all == 0) return;
    build_f32(b, "{arch}.rope.scaling.factor", NULL, &factor);
    b->hp->rope.magnitude = log_scale(factor, 1) / log_scale(factor, all);
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    /* Older files have it among rope_scaling. */
    build_f32(b, NULL, "rope_scaling.llama_4_scaling_beta", &hp->query_beta);
    build_f32(b, NULL, "rope_scaling.original_max_position_embeddings", &hp->query_period);
    if (hp->query_beta != 0 && hp->query_period < 1)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.rope.scaling.original_context_length",
                            "rope_parameters.original_max_position_embeddings", error,
                            "is missing, and queries are scaled by position");
    gguf_magnitude(b);
    for (uint32_t i = 0; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return OB_OK;
}

const struct recipe model_ministral3 = {
    .family = "ministral3",
    .gguf = "mistral3",
    .model_type = "ministral3",
    .hf_class = "Ministral3ForCausalLM",
    KEYS(decoder_keys, decoder_window_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_mlp),
    .derive = derive,
    .layer = decoder_paired_layer,
};
