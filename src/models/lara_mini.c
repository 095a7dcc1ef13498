/* SPDX-License-Identifier: Apache-2.0
 * lara_mini.c: LaraMiniForCausalLM: gated delta nets from one projection, attention of a window
 * with a rope, full attention without; a mixture with a shared expert in every layer. */
#include "models/blocks/decoder.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

#define IN(name, rows, start)                                                                   \
    MATRIX("blk.{i}." name ".weight", "{m}layers.{i}.linear_attn.in_proj.weight",               \
           "recurrent*" rows, "width", REQUIRED,                                                \
           .from_hf = "part(1,2*key+2*value+2*lin_v_heads," start ")")

static const struct tensor tensors[] = {
    IN("ssm_q", "key", "0"),
    IN("ssm_k", "key", "key"),
    IN("ssm_v", "value", "2*key"),
    IN("attn_gate", "value", "2*key+value"),
    IN("ssm_beta", "lin_v_heads", "2*key+2*value"),
    IN("ssm_alpha", "lin_v_heads", "2*key+2*value+lin_v_heads"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    ob_status s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = deltanet_sizes(b, error);
    if (s == OB_OK) s = rope_read_default(b, error);
    if (s != OB_OK) return s;
    decoder_layer_types(b);
    for (uint32_t i = 0; i < b->hp->layers; i++)
        b->hp->no_rope[i] = decoder_type_is(b, i, "full_attention");
    return moe_sizes(b, &router, error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return decoder_attention(b, x, args);
    return deltanet_plain(b, x, &(struct deltanet_args){.norm_eps = b->hp->eps});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_lara_mini = {
    .family = "lara_mini",
    .model_type = "lara_mini",
    .hf_class = "LaraMiniForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_window_keys, moe_keys, deltanet_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_qk_norms, tensors,
            deltanet_tensors, deltanet_one_conv, moe_fused_tensors, moe_shared_tensors),
    .derive = derive,
    .layer = layer,
};
