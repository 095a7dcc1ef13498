/* SPDX-License-Identifier: Apache-2.0
 * dots1.c: Dots1ForCausalLM (dots.llm1): norms of q and k, windows on the later layers where the
 * file has them, and DeepSeek V3's router after some dense layers. Glm4MoeForCausalLM (GLM-4.5)
 * turns half of each head, and has the norms of q and k where the file says so. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/deepseek_v2.h"

static ob_status derive_dots1(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) s = moe_sizes(b, &deepseek_v3_router, error);
    uint32_t from = hp->layers;
    build_u32(b, NULL, "max_window_layers", &from);
    if (s != OB_OK || decoder_layer_types(b)) return s;
    for (uint32_t i = from; i < hp->layers; i++) hp->window[i] = hp->window_size;
    return s;
}

const struct recipe model_dots1 = {
    .family = "dots1",
    .gguf = "dots1",
    .model_type = "dots1",
    .hf_class = "Dots1ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_mlp, moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive_dots1,
    .layer = decoder_plain_layer,
};

static const struct key glm_keys[] = {
    WHOLE("qk_norm", NULL, "use_qk_norm", OPTIONAL, 0, 0, 1),
    {0},
};

static const struct tensor glm_norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED, .gguf = "blk.{i}.post_attention_norm.weight"),
    VECTOR("blk.{i}.attn_q_norm.weight", "{m}layers.{i}.self_attn.q_norm.weight", "qk_norm*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", "{m}layers.{i}.self_attn.k_norm.weight", "qk_norm*k_dim",
           REQUIRED),
    {0},
};

static ob_status derive_glm(struct build *b, ob_error *error) {
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = rope_read_part(b, 0.5f, error);
    if (s == OB_OK && source_tensor_find(b->source, STR_LIT("blk.0.attn_q_norm.weight")))
        s = build_set(b, "qk_norm", 1, error);
    return s == OB_OK ? moe_sizes(b, &deepseek_v3_router, error) : s;
}

const struct recipe model_glm4_moe = {
    .family = "glm4_moe",
    .gguf = "glm4moe",
    .model_type = "glm4_moe",
    .hf_class = "Glm4MoeForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, glm_keys, moe_keys),
    TENSORS(decoder_ends, glm_norms, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp, moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive_glm,
    .layer = decoder_plain_layer,
};
