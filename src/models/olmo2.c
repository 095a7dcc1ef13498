/* SPDX-License-Identifier: Apache-2.0
 * olmo2.c: Olmo2ForCausalLM: norms only after attention and MLP, norms of q and k over the whole
 * projection. Olmo3ForCausalLM: the same with windows in three of four layers, which have a rope
 * of their own, without the scaling of the others. In GGUF "olmo2" is both, by the window. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

#define WINDOW "{arch}.attention.sliding_window"

/* config.json's key is OLMo 3's alone. */
static const struct key keys_2[] = {
    {WINDOW, NULL, KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 0, 0, 0, NULL},
    {0},
};
static const struct key keys_3[] = {
    {WINDOW, "sliding_window", KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 4096, 0, 0,
     NULL},
    {0},
};

/* In older config.json files rope_theta and rope_scaling are of the layers that see all; those with
 * windows keep the base that transformers has for them. */
static ob_status ropes(struct build *b, ob_error *error) {
    struct rope_source full = {.hf = "rope_parameters.full_attention",
                               .base_key_hf = "rope_theta",
                               .base_key_gguf = "{arch}.rope.freq_base",
                               .base = 500000,
                               .scaled = true};
    struct rope_source window = {.hf = "rope_parameters.sliding_attention",
                                 .base_key_hf = "",
                                 .base_key_gguf =
                                     "{arch}.rope.freq_base_swa|"
                                     "{arch}.rope.freq_base",
                                 .base = 500000};
    window.scaled = build_has(b, NULL, window.hf);
    ob_status s = rope_read(b, &full, &b->hp->rope, error);
    return s == OB_OK ? rope_read(b, &window, &b->hp->rope_window, error) : s;
}

static ob_status derive_windows(struct build *b, ob_error *error) {
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = ropes(b, error);
    if (s == OB_OK) decoder_window_period(b, 4, false);
    return s;
}

static ob_status derive_2(struct build *b, ob_error *error) {
    return b->hp->window_size ? derive_windows(b, error) : decoder_derive(b, error);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.wide_qk_norm = true});
}

const struct recipe model_olmo2 = {
    .family = "olmo2",
    .gguf = "olmo2",
    .model_type = "olmo2",
    .hf_class = "Olmo2ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, keys_2),
    TENSORS(decoder_ends, decoder_after_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_wide_qk_norms, decoder_mlp),
    .derive = derive_2,
    .layer = layer,
};

const struct recipe model_olmo3 = {
    .family = "olmo3",
    .written_as = "olmo2",
    .model_type = "olmo3",
    .hf_class = "Olmo3ForCausalLM",
    .foreign = "rope_scaling.truncate|rope_scaling.type",
    KEYS(decoder_keys, decoder_bias_keys, keys_3),
    TENSORS(decoder_ends, decoder_after_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_wide_qk_norms, decoder_mlp),
    .derive = derive_windows,
    .layer = layer,
};
