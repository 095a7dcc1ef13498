/* SPDX-License-Identifier: Apache-2.0
 * qwen2.c: Qwen2ForCausalLM (Qwen 1.5 to 2.5): Llama with biases on q, k and v, rotary halves, and
 * a window on the later layers where the file turns it on. */
#include "models/blocks/decoder.h"
#include "models/qwen2.h"

ob_status qwen2_derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    bool slides = false;
    uint32_t from = hp->layers;
    build_bool(b, NULL, "use_sliding_window", &slides);
    build_u32(b, NULL, "max_window_layers", &from);
    if (s != OB_OK) return s;
    if (decoder_layer_types(b)) {
        for (uint32_t i = 0; i < hp->layers && build_has(b, NULL, "use_sliding_window"); i++)
            if (!slides && hp->window[i])
                return build_refuse(b, OB_ERR_FORMAT, NULL, "use_sliding_window", error,
                                    "is false, and layer %u has a window in layer_types", i);
        return s;
    }
    if (!slides) from = hp->layers;
    for (uint32_t i = from; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return s;
}

const struct recipe model_qwen2 = {
    .family = "qwen2",
    .gguf = "qwen2",
    .model_type = "qwen2",
    .hf_class = "Qwen2ForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_qkv_biases,
            decoder_mlp),
    .derive = qwen2_derive,
    .layer = decoder_plain_layer,
};
