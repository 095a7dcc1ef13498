/* SPDX-License-Identifier: Apache-2.0
 * phimoe.c: PhimoeForCausalLM (Phi 3.5 MoE): Mixtral with layer norms, biases, longrope and the
 * router SparseMixer (arXiv 2409.12136). */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    WHOLE("head_bias", NULL, "lm_head_bias", OPTIONAL, 0, 0, 1),
    REAL("jitter", NULL, "router_jitter_noise", OPTIONAL, 0.01, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("output.bias", "lm_head.bias", "head_bias*vocab", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SPARSEMIXER,
                                      .jitter_eps = (float)build_number(b, "jitter")};
    struct rope *rope = &b->hp->rope;
    static const struct plain two[] = {
        {NULL, "num_experts_per_tok", 2, 2, "experts a token"}, {0}};
    b->hp->norm = NORM_LAYER;
    ob_status s = build_plain(b, two, error);
    if (s != OB_OK) return s;
    s = decoder_derive(b, error);
    /* As transformers computes it: a longer sequence changes the magnitude, not the factors. */
    if (rope->freq_long) rope->freq_long = rope->freq;
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        b->hp->window[i] = b->hp->window_size;
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_phimoe = {
    .family = "phimoe",
    .model_type = "phimoe",
    .hf_class = "PhimoeForCausalLM",
    .foreign = "norm_topk_prob|routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_norm_biases, decoder_attention_tensors,
            decoder_attention_biases, moe_mixtral_tensors, tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
