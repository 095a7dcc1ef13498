/* SPDX-License-Identifier: Apache-2.0
 * qwen_vl.c: the language models of Qwen2VLForConditionalGeneration, Qwen2_5_VLFor... and
 * Qwen3VLFor...: Qwen 2 and 3, whose rope has a position each for time, height and width of an
 * image; a text's three are equal, and the rope is a plain one. Older files have the sizes
 * outside text_config, and the tower's tensors by another name. */
#include "models/blocks/decoder.h"
#include "models/qwen2.h"

static const struct tensor tower[] = {
    KNOWN("v.*", "visual.*", "not needed for text"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const char *const equal[] = {
        "rope_parameters.mrope_section", "rope_parameters.mrope_interleaved",
        "rope_scaling.mrope_section", "rope_scaling.mrope_interleaved"};
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) build_has(b, NULL, equal[i]);
    return qwen2_derive(b, error);
}

#define QWEN2_TEXT                                                                                 \
    KEYS(decoder_keys, decoder_window_keys),                                                       \
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_qkv_biases,            \
            decoder_mlp, tower),                                                                   \
    .derive = derive, .layer = decoder_plain_layer

/* Of Qwen 2.5, too, in GGUF. */
const struct recipe model_qwen2_vl_text = {
    .family = "qwen2_vl_text",
    .gguf = "qwen2vl",
    .model_type = "qwen2_vl_text",
    .also_type = "qwen2_vl",
    .hf_class = "Qwen2VLForConditionalGeneration",
    QWEN2_TEXT,
};

const struct recipe model_qwen2_5_vl_text = {
    .family = "qwen2_5_vl_text",
    .written_as = "qwen2vl",
    .model_type = "qwen2_5_vl_text",
    .also_type = "qwen2_5_vl",
    .hf_class = "Qwen2_5_VLForConditionalGeneration",
    QWEN2_TEXT,
};

const struct recipe model_qwen3_vl_text = {
    .family = "qwen3_vl_text",
    .gguf = "qwen3vl",
    .model_type = "qwen3_vl_text",
    .hf_class = "Qwen3VLForConditionalGeneration",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_mlp),
    .derive = derive,
    .layer = decoder_plain_layer,
};
