/* SPDX-License-Identifier: Apache-2.0
 * mllama.c: MllamaForCausalLM (Llama 3.2 Vision) for text: Llama, whose layers that attend to an
 * image do nothing where there is none. */
#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key written[] = {DECODER_WRITTEN("vocab_size"), {0}};

/* hp.recurrent is 1 in layers that attend to images: they have no cache. */
static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "attends*width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "attends*width", REQUIRED),
    {.name = "blk.{i}.cross_attn.*", .hf = "{m}layers.{i}.*", .cols = "recurrent", .need = UNUSED,
     .reason = "attends to images"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const char list[] = "cross_attention_layers";
    struct hparams *hp = b->hp;
    uint64_t n = build_count(b, NULL, list), layer = 0;
    hp->recurrent = arena_array(b->arena, hp->layers, sizeof *hp->recurrent);
    if (!hp->recurrent) return error_memory(error, "hyperparameters", hp->layers);
    for (uint64_t i = 0; i < n; i++) {
        if (!build_u64_at(b, NULL, list, i, &layer) || layer >= hp->layers)
            return build_refuse(b, OB_ERR_FORMAT, list, list, error, "is no list of layers");
        hp->recurrent[layer] = 1;
        hp->ffn[layer] = 0;
    }
    if (!build_has(b, NULL, list))
        return build_refuse(b, OB_ERR_FORMAT, list, list, error, "required key is missing");
    ob_status s = decoder_written(b, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    return s == OB_OK ? rope_read_base(b, 500000, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return b->hp->recurrent[b->layer] ? x : decoder_plain_layer(b, x);
}

const struct recipe model_mllama_text = {
    .family = "mllama_text",
    .model_type = "mllama_text_model",
    .hf_class = "MllamaForCausalLM",
    KEYS(decoder_keys, written),
    TENSORS(decoder_wide_ends, decoder_attention_tensors, decoder_mlp, tensors),
    .derive = derive,
    .layer = layer,
};
