/* SPDX-License-Identifier: Apache-2.0
 * granite_swa.c: GraniteSWAForCausalLM: Granite with a window in some layers, a learned sink in
 * each head's softmax, and a rope base for each layer, of which 0 means no rope. */
#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"
#include "models/granite.h"

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.sinks", "heads", REQUIRED),
    {0},
};

/* A layer's rope is that of an earlier layer with its base, so that they share a table. */
static ob_status read_rope(struct build *b, uint32_t i, ob_error *error) {
    struct hparams *hp = b->hp;
    double base, earlier;
    build_wants(b, NULL, "layer_rope_theta", hp->layers);
    if (!build_f64_at(b, NULL, "layer_rope_theta", i, &base)) return OB_OK;
    hp->no_rope[i] = base == 0;
    if (hp->no_rope[i]) return OB_OK;
    for (uint32_t k = 0; k < i; k++)
        if (build_f64_at(b, NULL, "layer_rope_theta", k, &earlier) && earlier == base) {
            hp->layer_rope[i] = hp->layer_rope[k];
            return OB_OK;
        }
    struct rope *rope = arena_alloc(b->arena, sizeof *rope);
    if (!rope) return error_memory(error, "rope", sizeof *rope);
    hp->layer_rope[i] = rope;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters",
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .fixed_base = (float)base,
                                           .base = (float)base,
                                           .scaled = true},
                     rope, error);
}

/* config.json's lists, or GGUF's patterns; every fourth layer from the first on is a full one. */
static ob_status read_layer(struct build *b, uint32_t i, ob_error *error) {
    struct hparams *hp = b->hp;
    bool slides = i % 4 != 0, turns = true;
    build_bool_at(b, "{arch}.attention.sliding_window_pattern", NULL, i, &slides);
    build_bool_at(b, "{arch}.attention.rope_pattern", NULL, i, &turns);
    if (build_count(b, NULL, "layer_types") == hp->layers)
        slides = decoder_type_is(b, i, "sliding_attention");
    hp->window[i] = slides ? hp->window_size : 0;
    hp->no_rope[i] = !turns;
    hp->layer_rope[i] = &hp->rope;
    return read_rope(b, i, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = granite_derive(b, error);
    if (s != OB_OK) return s;
    hp->layer_rope = arena_array(b->arena, hp->layers, sizeof *hp->layer_rope);
    if (!hp->layer_rope) return error_memory(error, "ropes", hp->layers);
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++) s = read_layer(b, i, error);
    return s;
}

const struct recipe model_granite_swa = {
    .family = "granite_swa",
    .gguf = "granite_swa",
    .model_type = "granite_swa",
    .hf_class = "GraniteSWAForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, granite_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, tensors,
            decoder_mlp_biases, decoder_mlp),
    .derive = derive,
    .layer = decoder_paired_layer,
};
