/* SPDX-License-Identifier: Apache-2.0
 * qwen2_moe.c: Qwen2MoeForCausalLM (Qwen 1.5 MoE, Qwen 2 57B): Qwen2 with a mixture of experts and
 * a shared expert behind a gate. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/qwen2.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "qkv_bias", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_gate_inp_shexp.weight", "{m}layers.{i}.mlp.shared_expert_gate.weight",
           "sparse", "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = qwen2_derive(b, error);
    uint32_t until = 28;
    bool slides = false;
    build_bool(b, NULL, "use_sliding_window", &slides);
    build_u32(b, NULL, "max_window_layers", &until);
    /* Other layers than Qwen2's have a window where no list says it. */
    if (source_kind(b->meta) == SOURCE_HF && !build_has(b, NULL, "layer_types"))
        for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++)
            hp->window[i] = slides && i % 2 == 0 && i < until ? hp->window_size : 0;
    return s == OB_OK ? moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX}, error) : s;
}

const struct recipe model_qwen2_moe = {
    .family = "qwen2moe",
    .gguf = "qwen2moe",
    .model_type = "qwen2_moe",
    .hf_class = "Qwen2MoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp, moe_tensors, moe_shared_tensors, tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
