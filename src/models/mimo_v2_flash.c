/* SPDX-License-Identifier: Apache-2.0
 * mimo_v2_flash.c: MiMoV2FlashForCausalLM: window layers with twice the key heads, with sinks and
 * a rope of their own; values narrower than keys and multiplied by a constant; DeepSeek V3's
 * router. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {"{arch}.attention.value_length", "v_head_dim", KEY_U32, offsetof(struct hparams, v_dim),
     OPTIONAL, 0, 1, 4096, NULL},
    REAL("value_scale", "{arch}.attention.value_scale", "attention_value_scale", OPTIONAL, 1, 0, 0),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.attention_sink_bias",
           "slides*heads", REQUIRED),
    KNOWN("mtp.*", "{m}mtp.*", "predicts further tokens"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID,
                                      .group = ROUTE_GROUP_TOP2,
                                      .normalize = true,
                                      .normalize_eps = 1e-20f};
    struct hparams *hp = b->hp;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    hp->value_scale = (float)build_number(b, "value_scale");
    if (!decoder_layer_types(b))
        for (uint32_t i = 0; i < hp->layers; i++)
            hp->window[i] = i == 0 || (i + 1) % 6 == 0 ? 0 : hp->window_size;
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (hp->window[i] && !gguf) hp->kv_heads[i] *= 2;
        if (hp->heads[i] % hp->kv_heads[i])
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.head_count",
                                "num_attention_heads", error,
                                "is no multiple of the key heads (layer %u)", i);
    }
    s = rope_read_parts_by_type(b, gguf ? 0 : 0.334f, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_mimo_v2_flash = {
    .family = "mimo2",
    .gguf = "mimo2",
    .model_type = "mimo_v2_flash",
    .hf_class = "MiMoV2FlashForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_input_biases,
            tensors, decoder_mlp, moe_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
