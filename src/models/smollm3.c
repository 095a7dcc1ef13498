/* SPDX-License-Identifier: Apache-2.0
 * smollm3.c: SmolLM3ForCausalLM: Llama with layers without rotary embedding: those whose entry in
 * no_rope_layers is 0; in GGUF every fourth. */
#include "models/blocks/decoder.h"

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool slides = false;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    uint32_t interval = 4;
    build_u32(b, NULL, "no_rope_layer_interval", &interval);
    if (build_count(b, NULL, "no_rope_layers") > 0)
        build_wants(b, NULL, "no_rope_layers", hp->layers);
    build_bool(b, NULL, "use_sliding_window", &slides);
    if (!slides) hp->window_size = 0;
    decoder_layer_types(b);
    for (uint32_t i = 0; i < hp->layers; i++) {
        uint64_t rotates = interval == 0 || (i + 1) % interval != 0;
        build_u64_at(b, NULL, "no_rope_layers", i, &rotates);
        hp->no_rope[i] = !rotates;
    }
    return OB_OK;
}

const struct recipe model_smollm3 = {
    .family = "smollm3",
    .gguf = "smollm3",
    .model_type = "smollm3",
    .hf_class = "SmolLM3ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, decoder_mlp_biases,
            decoder_mlp),
    .derive = derive,
    .layer = decoder_paired_layer,
};
