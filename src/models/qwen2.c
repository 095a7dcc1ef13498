/* SPDX-License-Identifier: Apache-2.0
 * qwen2.c: Qwen2ForCausalLM (Qwen 1.5 to 2.5): Llama with biases on q, k and v, rotary halves, and
 * a window on the later layers where the file turns it on. */
#include "models/blocks/decoder.h"
#include "models/qwen2.h"

const struct key qwen2_keys[] = {
    {NULL, "sliding_window", KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 0, 0, 0},
    {0},
};

const struct tensor qwen2_norm_tensors[] = {
    {"output_norm.weight", "model.norm.weight", NULL, "width", REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_norm.weight", "model.layers.{i}.input_layernorm.weight", NULL, "width", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.ffn_norm.weight", "model.layers.{i}.post_attention_layernorm.weight", NULL, "width",
     REQUIRED, AS_IS, NULL},
    {0},
};

ob_status qwen2_derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    bool slides = false;
    uint32_t from = hp->layers;
    if (s != OB_OK || decoder_layer_types(b)) return s;
    source_bool(b->source, "use_sliding_window", 0, &slides);
    if (slides) build_u32(b, NULL, "max_window_layers", &from);
    for (uint32_t i = from; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return s;
}

value_id qwen2_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.act = ACT_SILU});
}

const struct recipe model_qwen2 = {
    .family = "qwen2",
    .gguf = "qwen2",
    .model_type = "qwen2",
    .hf_class = "Qwen2ForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, qwen2_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, decoder_qk_tensors,
                                              decoder_qkv_bias_tensors, qwen2_norm_tensors, NULL},
    .act = "silu",
    .derive = qwen2_derive,
    .layer = qwen2_layer,
};
