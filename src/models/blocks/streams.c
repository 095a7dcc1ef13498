/* SPDX-License-Identifier: Apache-2.0
 * streams.c: see streams.h. */
#include "models/blocks/streams.h"

#include <string.h>

struct weight *streams_constant(struct build *b, uint32_t n, const float *value) {
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *data = arena_array(b->arena, n, sizeof *data);
    if (!w || !data) {
        b->g->failed = true;
        return NULL;
    }
    memcpy(data, value, n * sizeof *data);
    *w = (struct weight){.name = "hc", .quant = quant_list[QUANT_f32], .rows = 1, .cols = n,
                         .row_bytes = n * sizeof *data, .data = data};
    return w;
}

value_id streams_open(struct build *b, value_id x, uint32_t streams) {
    return graph_tile(b->g, x, 1, b->hp->width, streams);
}

value_id streams_logits(struct build *b, value_id x, struct weight *fn, struct weight *scale,
                        struct weight *base) {
    value_id y = graph_norm(b->g, x, NULL, NULL, NORM_RMS, b->hp->eps, fn->cols);
    return graph_affine(b->g, graph_linear1(b->g, y, fn, NULL), scale, base);
}
