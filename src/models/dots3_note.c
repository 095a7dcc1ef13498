/* SPDX-License-Identifier: Apache-2.0
 * dots3_note.c: Dots3NoteForCausalLM: DeepSeek-V3.2 with layers that see a window in place of an
 * indexer's choice, scaled latents, a norm of the rotary key and a gate of each head. Files whose
 * windows' layers have sizes of their own are refused. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/deepseek_v2.h"

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_k_rope_norm.weight",
           "{m}layers.{i}.self_attn.k_rope_only_layernorm.weight", "rope", REQUIRED),
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.g_proj.weight", "heads", "width",
           REQUIRED),
    MLA_INDEXER,
    {0},
};

static ob_status refuse_sizes(struct build *b, ob_error *error) {
    static const char all[] = "per_layer_config";
    bool plain = build_has(b, NULL, all);
    for (uint32_t i = 0; plain && i < b->hp->layers; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.%u", all, i);
        plain = !build_has(b, NULL, key);
    }
    if (plain) return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, all, all, error,
                        "layers with sizes of their own are not supported in this family");
}

static ob_status read_rope(struct build *b, const char *hf, struct rope *out, ob_error *error) {
    uint32_t rope = build_whole(b, "rope");
    return rope_read(b,
                     &(struct rope_source){.hf = hf,
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = 10000,
                                           .scaled = true,
                                           .head_dim = rope,
                                           .dim = rope},
                     out, error);
}

static bool is_indexed(struct build *b, uint32_t layer) {
    return decoder_type_is(b, layer, "indexed_attention");
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = refuse_sizes(b, error);
    if (s == OB_OK) s = build_not_null(b, "sliding_window", error);
    if (s == OB_OK) s = deepseek_v3_derive(b, error);
    if (s == OB_OK) s = read_rope(b, "rope_parameters.indexed_attention", &hp->rope, error);
    if (s == OB_OK) s = read_rope(b, "rope_parameters.sliding_attention", &hp->rope_window, error);
    if (s == OB_OK) s = mla_indexers(b, is_indexed, error);
    if (s != OB_OK) return s;
    hp->attention_scale = 1 / sqrtf((float)build_number(b, "qk"));
    decoder_layer_types(b);
    return build_set(b, "shared_ffn",
                     build_number(b, "shared_ffn") * build_number(b, "shared_experts"), error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *decoder) {
    (void)decoder;
    value_id selection;
    bool indexed = is_indexed(b, b->layer);
    double width = b->hp->width;
    struct mla_args args = {.q_scale = (float)sqrt(width / build_number(b, "q_lora")),
                            .latent_scale = (float)sqrt(width / build_number(b, "kv_lora")),
                            .eps = b->hp->eps,
                            .selection = indexed ? &selection : NULL,
                            .has_indexer = indexed,
                            .index_interleaved = true};
    return mla_attention(b, x, &args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_dots3_note = {
    .family = "dots3_note",
    .model_type = "dots3_note_text",
    .hf_class = "Dots3NoteForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, mla_keys, mla_index_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, tensors, decoder_mlp, decoder_mlp_biases,
            moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = layer,
};
