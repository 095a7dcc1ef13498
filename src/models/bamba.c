/* SPDX-License-Identifier: Apache-2.0
 * bamba.c: BambaForCausalLM: Mamba-2 layers, attention with a partial rope in those that
 * attn_layer_indices or layer_types name, a gated MLP in all. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mamba2.h"
#include "models/blocks/rope.h"

static bool is_recurrent(struct build *b, uint32_t layer) {
    uint64_t named;
    if (build_has(b, NULL, "layer_types|layers_block_type")) return hybrid_is_recurrent(b, layer);
    for (uint64_t i = 0; i < build_count(b, NULL, "attn_layer_indices"); i++)
        if (build_u64_at(b, NULL, "attn_layer_indices", i, &named) && named == layer) return false;
    return true;
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = hybrid_sizes(b, is_recurrent, error);
    if (s == OB_OK) s = mamba2_sizes(b, error);
    return s == OB_OK ? rope_read(b, &(struct rope_source){.hf = "rope_parameters",
                                                           .base_key_hf = "rope_theta",
                                                           .base = 10000,
                                                           .scaled = true,
                                                           .part = 0.5f},
                                  &b->hp->rope, error)
                      : s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    const struct mamba2_args mamba = {.act = b->hp->act, .norm_eps = b->hp->eps};
    return b->hp->recurrent[b->layer] ? mamba2_mixer(b, x, &mamba) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_bamba = {
    .family = "bamba",
    .model_type = "bamba",
    .hf_class = "BambaForCausalLM",
    .foreign = "partial_rotary_factor",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, mamba2_keys),
    TENSORS(decoder_ends, hybrid_feed_forward, decoder_attention_tensors, decoder_attention_biases,
            mamba2_tensors),
    .derive = derive,
    .layer = layer,
};
