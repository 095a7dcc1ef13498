/* SPDX-License-Identifier: Apache-2.0
 * kda.h: what the families with Kimi delta attention beside latent attention share. */
#ifndef MODELS_BLOCKS_KDA_H
#define MODELS_BLOCKS_KDA_H

#include "models/blocks/deltanet.h"

#define KDA_LINEAR(name, gguf_, theirs, hf, rows)                                                \
    MATRIX("blk.{i}." name ".weight", "{m}layers.{i}." theirs "." hf ".weight",                  \
           "recurrent*" rows, "width", REQUIRED, .gguf = "blk.{i}." gguf_ ".weight")
#define KDA_CONV(name, theirs, hf, rows)                                                         \
    MATRIX("blk.{i}.ssm_conv1d_" name ".weight", "{m}layers.{i}." theirs "." hf ".weight",       \
           "recurrent*" rows, "conv", REQUIRED, .gguf_row = "1")
/* Projections and convolutions of q, k and v, decay, norm and output; the decay of each head is
 * spread over its elements of k. */
#define KDA_TENSORS(theirs, output)                                                              \
    KDA_LINEAR("ssm_q", "attn_q", theirs, "q_proj", "key"),                                      \
    KDA_LINEAR("ssm_k", "attn_k", theirs, "k_proj", "key"),                                      \
    KDA_LINEAR("ssm_v", "attn_v", theirs, "v_proj", "value"),                                    \
    KDA_LINEAR("ssm_beta", "ssm_beta", theirs, "b_proj", "lin_v_heads"),                         \
    KDA_CONV("q", theirs, "q_conv1d", "key"), KDA_CONV("k", theirs, "k_conv1d", "key"),          \
    KDA_CONV("v", theirs, "v_conv1d", "value"),                                                  \
    VECTOR("blk.{i}.ssm_a", "{m}layers.{i}." theirs ".A_log", "recurrent*key", REQUIRED,         \
           .from_hf = "repeat(lin_k) -exp", .from_gguf = "repeat(lin_k)", .gguf_row = "1"),      \
    VECTOR("blk.{i}.ssm_dt.bias", "{m}layers.{i}." theirs ".dt_bias", "recurrent*key",           \
           REQUIRED),                                                                            \
    VECTOR("blk.{i}.ssm_norm.weight", "{m}layers.{i}." theirs ".o_norm.weight",                  \
           "recurrent*lin_v", REQUIRED),                                                         \
    MATRIX("blk.{i}.ssm_out.weight", "{m}layers.{i}." theirs "." output ".weight",               \
           "recurrent*width", "value", REQUIRED, .gguf = "blk.{i}.attn_output.weight")

extern const struct key kda_keys[]; /* the context's other name */
/* Latent attention where layer_types has no linear_attention, a mixture by a sigmoid, of groups. */
ob_status kda_derive(struct build *b, ob_error *error);

#endif
