/* SPDX-License-Identifier: Apache-2.0
 * lfm3.c: Lfm3ForCausalLM: LFM2 with attention of windows, a rope of each kind, a gate of each head
 * and norms after each sub-layer, the last two where the file says so. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/rope.h"
#include "models/blocks/shortconv.h"

static const struct key keys[] = {
    WHOLE("gated", NULL, "use_attention_gate", OPTIONAL, 1, 0, 1),
    WHOLE("sandwich", NULL, "use_sandwich_norm", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_gate.weight",
           "{m}layers.{i}.self_attn.gate_proj.weight|{m}layers.{i}.self_attn.g_proj.weight",
           "gated*heads", "width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_operator_norm.weight",
           "sandwich*width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_ffn_norm.weight", "sandwich*width",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = rope_read_by_type(b, error);
    if (s == OB_OK) decoder_layer_types(b);
    return s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    return b->hp->recurrent[b->layer] ? shortconv_mixer(b, x) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_lfm3 = {
    .family = "lfm3",
    .model_type = "lfm3",
    .hf_class = "Lfm3ForCausalLM",
    .foreign = "partial_rotary_factor|rotary_pct",
    .act_key = "",
    KEYS(decoder_keys, decoder_window_keys, shortconv_keys, keys),
    TENSORS(decoder_ends, shortconv_rest, decoder_attention_tensors, decoder_qk_norms, tensors,
            shortconv_tensors),
    .derive = derive,
    .layer = layer,
};
