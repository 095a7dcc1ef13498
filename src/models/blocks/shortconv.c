/* SPDX-License-Identifier: Apache-2.0
 * shortconv.c: see shortconv.h. */
#include "models/blocks/shortconv.h"

#include "models/blocks/decoder.h"

const struct key shortconv_keys[] = {
    WHOLE("conv", "{arch}.shortconv.l_cache", "conv_L_cache", OPTIONAL, 3, 1, 64),
    WHOLE("conv_bias", NULL, "conv_bias", OPTIONAL, 0, 0, 1),
    {0},
};

#define AT(name) "{m}layers.{i}.conv." name

const struct tensor shortconv_tensors[] = {
    MATRIX("blk.{i}.shortconv.in_proj.weight", AT("in_proj.weight"), "recurrent*3*width", "width",
           REQUIRED),
    VECTOR("blk.{i}.shortconv.in_proj.bias", AT("in_proj.bias"), "recurrent*conv_bias*3*width",
           REQUIRED),
    MATRIX("blk.{i}.shortconv.conv.weight", AT("conv.weight"), "recurrent*width", "conv",
           REQUIRED),
    VECTOR("blk.{i}.shortconv.conv.bias", AT("conv.bias"), "recurrent*conv_bias*width", REQUIRED),
    MATRIX("blk.{i}.shortconv.out_proj.weight", AT("out_proj.weight"), "recurrent*width", "width",
           REQUIRED),
    VECTOR("blk.{i}.shortconv.out_proj.bias", AT("out_proj.bias"), "recurrent*conv_bias*width",
           REQUIRED),
    {0},
};

#define MLP(name) "{m}layers.{i}.feed_forward." name ".weight"

const struct tensor shortconv_rest[] = {
    VECTOR("output_norm.weight", "{m}embedding_norm.weight", "width", REQUIRED,
           .gguf = "token_embd_norm.weight"),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.operator_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.ffn_norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", MLP("w1"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP("w3"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP("w2"), "width", "ffn", REQUIRED),
    {0},
};

value_id shortconv_mixer(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t n = b->hp->width;
    value_id in = block_linear(b, x, "shortconv.in_proj");
    value_id h = graph_mul(g, graph_slice(g, in, 1, 3 * n, 0, n),
                           graph_slice(g, in, 1, 3 * n, 2 * n, n));
    h = graph_conv1d(g, h, build_weight(b, "shortconv.conv.weight"),
                     build_weight(b, "shortconv.conv.bias"), build_whole(b, "conv"));
    h = graph_mul(g, graph_slice(g, in, 1, 3 * n, n, n), h);
    return block_linear(b, h, "shortconv.out_proj");
}
