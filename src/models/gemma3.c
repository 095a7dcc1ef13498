/* SPDX-License-Identifier: Apache-2.0
 *
 * gemma3.c: Gemma3ForCausalLM (text), and Gemma3TextModel as an encoder: norms before and after
 * each sub-layer (weights mean 1 + w; GGUF stores the sum), q and k norms, GELU, embeddings scaled
 * by sqrt(width), five window layers to one full layer, each kind with its own rotary base. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"
#include "models/gemma.h"

static void windows(struct build *b) {
    struct hparams *hp = b->hp;
    uint32_t pattern = 6;
    static const char gguf[] = "{arch}.attention.sliding_window_pattern",
                      hf[] = "sliding_window_pattern|_sliding_window_pattern";
    build_has(b, gguf, hf); /* not read where there are layer_types */
    if (decoder_layer_types(b)) return;
    build_u32(b, gguf, hf, &pattern);
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->window[i] = pattern && (i + 1) % pattern ? hp->window_size : 0;
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    windows(b);
    /* GGUF has no key for the scalar: the 27B's 62 layers use width / heads, all others k_dim. */
    if (hp->attention_scalar == 0 && hp->layers == 62)
        hp->attention_scalar = (float)hp->width / (float)hp->heads[0];
    gemma_scales(b);
    if (hp->logit_softcap > 0 && build_has(b, NULL, "/text_config"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "final_logit_softcapping", error,
                            "the class with an image tower does not cap its logits");
    bool nested = build_has(b, NULL, "rope_parameters.full_attention");
    s = rope_read(
        b,
        &(struct rope_source){.hf = nested ? "rope_parameters.full_attention" : "rope_parameters",
                              .base_key_hf = "rope_theta",
                              .base_key_gguf = "{arch}.rope.freq_base",
                              .base = 1e6f,
                              .scaled = true},
        &hp->rope, error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters.sliding_attention",
                                           .base_key_hf = "rope_local_base_freq",
                                           .base_key_gguf = "{arch}.rope.freq_base_swa",
                                           .base = 10000,
                                           .scaled = nested && source_kind(b->meta) == SOURCE_HF},
                     &hp->rope_window, error);
}

/* EmbeddingGemma: tokens see later ones, in the window half of it to each side. */
static ob_status derive_both_sides(struct build *b, ob_error *error) {
    ob_status s = derive(b, error);
    b->hp->bidirectional = true;
    return s;
}

const struct recipe model_gemma3 = {
    .family = "gemma3",
    .gguf = "gemma3",
    .model_type = "gemma3_text",
    .hf_class = "Gemma3ForCausalLM",
    .foreign = "attn_logit_softcapping|rope_scaling.truncate|rope_scaling.type",
    .norms_plus_one = true,
    .act = "gelu_pytorch_tanh",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, gemma2_keys),
    TENSORS(decoder_ends, decoder_sandwich, decoder_attention_tensors, decoder_qk_norms,
            decoder_mlp),
    .derive = derive,
    .layer = decoder_plain_layer,
};

const struct recipe model_gemma3_embedding = {
    .family = "gemma-embedding",
    .gguf = "gemma-embedding",
    .model_type = "gemma3_text",
    .when = "use_bidirectional_attention",
    .hf_class = "Gemma3TextModel",
    .foreign = "attn_logit_softcapping|final_logit_softcapping|rope_scaling.truncate|"
               "rope_scaling.type",
    .norms_plus_one = true,
    .act = "gelu_pytorch_tanh",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, encoder_keys, gemma2_keys),
    TENSORS(decoder_ends, decoder_sandwich, decoder_attention_tensors, decoder_qk_norms,
            decoder_mlp),
    .derive = derive_both_sides,
    .layer = decoder_plain_layer,
};
