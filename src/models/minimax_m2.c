/* SPDX-License-Identifier: Apache-2.0
 * minimax_m2.c: MiniMaxM2ForCausalLM: norms of the whole of q and k, a part of each head turns, and
 * a sigmoid router with a bias of choice. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    {"{arch}.rope.dimension_count", "rotary_dim", KEY_U32, offsetof(struct hparams, rope_dim),
     OPTIONAL, 0, 2, 4096, NULL},
    WHOLE("qk_norm", NULL, "use_qk_norm", OPTIONAL, 1, 1, 1),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.exp_probs_b.bias",
           "{m}layers.{i}.block_sparse_moe.e_score_correction_bias", "experts", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID, .normalize = true};
    ob_status s = decoder_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.wide_qk_norm = true});
}

const struct recipe model_minimax_m2 = {
    .family = "minimax-m2",
    .gguf = "minimax-m2",
    .model_type = "minimax_m2",
    .hf_class = "MiniMaxM2ForCausalLM",
    .foreign = "routed_scaling_factor",
    .turns_parts = true,
    KEYS(decoder_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_wide_qk_norms,
            moe_mixtral_tensors, tensors),
    .derive = derive,
    .layer = layer,
};
