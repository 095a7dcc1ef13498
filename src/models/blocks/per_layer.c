/* SPDX-License-Identifier: Apache-2.0
 * per_layer.c: see per_layer.h. */
#include "models/blocks/per_layer.h"

#include <math.h>

#include "models/blocks/decoder.h"

const struct key per_layer_keys[] = {
    WHOLE("ple", "{arch}.embedding_length_per_layer_input", "hidden_size_per_layer_input",
          OPTIONAL, 0, 0, 1 << 16),
    WHOLE("ple_vocab", NULL, "vocab_size_per_layer_input", OPTIONAL, 0, 0, 1 << 24),
    {0},
};

const struct tensor per_layer_tensors[] = {
    MATRIX("per_layer_token_embd.weight", "{m}embed_tokens_per_layer.weight", "ple_vocab",
           "ple_all", REQUIRED),
    MATRIX("per_layer_model_proj.weight", "{m}per_layer_model_projection.weight", "ple_all",
           "width", REQUIRED),
    VECTOR("per_layer_proj_norm.weight", "{m}per_layer_projection_norm.weight", "ple", REQUIRED),
    MATRIX("blk.{i}.inp_gate.weight", "{m}layers.{i}.per_layer_input_gate.weight", "ple", "width",
           REQUIRED),
    MATRIX("blk.{i}.proj.weight", "{m}layers.{i}.per_layer_projection.weight", "width", "ple",
           REQUIRED),
    VECTOR("blk.{i}.post_norm.weight", "{m}layers.{i}.post_per_layer_input_norm.weight",
           "ple/ple*width", REQUIRED),
    {0},
};

ob_status per_layer_sizes(struct build *b, ob_error *error) {
    double vocab = build_number(b, "ple_vocab"), all = build_number(b, "ple") * b->hp->layers;
    ob_status s = build_set(b, "ple_all", all, error);
    if (s != OB_OK || vocab > 0 || all == 0) return s;
    return build_set(b, "ple_vocab", b->hp->vocab, error);
}

value_id per_layer_inputs(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t ple = build_whole(b, "ple");
    if (ple == 0) return NO_VALUE;
    value_id table = graph_embed(g, build_global(b, "per_layer_token_embd.weight"),
                                 sqrtf((float)ple));
    x = graph_linear1(g, x, build_global(b, "per_layer_model_proj.weight"), NULL);
    x = graph_scale(g, x, 1 / sqrtf((float)b->hp->width));
    x = graph_norm(g, x, build_global(b, "per_layer_proj_norm.weight"), NULL, NORM_RMS, b->hp->eps,
                   ple);
    return graph_scale(g, graph_add(g, x, table), sqrtf(0.5f));
}

value_id per_layer_input(struct build *b, value_id x, value_id inputs) {
    uint32_t ple = build_whole(b, "ple");
    value_id row = graph_slice(b->g, inputs, 1, ple * b->hp->layers, ple * b->layer, ple);
    x = graph_glu(b->g, block_linear(b, x, "inp_gate"), row, b->hp->act);
    return block_norm_named(b, block_linear(b, x, "proj"), "post_norm");
}
