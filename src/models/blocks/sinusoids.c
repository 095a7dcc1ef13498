/* SPDX-License-Identifier: Apache-2.0
 * sinusoids.c: see sinusoids.h. */
#include "models/blocks/sinusoids.h"

#include <math.h>

enum { TABLE_MAX = 1 << 28 }; /* numbers */

ob_status sinusoids_check(const struct build *b, ob_error *error) {
    uint64_t rows = b->hp->context, cols = b->hp->width;
    if (cols >= 4 && cols % 2 == 0 && rows * cols <= TABLE_MAX) return OB_OK;
    return build_refuse(b, OB_ERR_FORMAT, "{arch}.context_length", "max_position_embeddings", error,
                        "no table of sines can have %llu positions of %llu numbers",
                        (unsigned long long)rows, (unsigned long long)cols);
}

static void fill(float *table, uint32_t rows, uint32_t half, uint32_t first, double steps) {
    for (uint32_t i = 0; i < half; i++) {
        float freq = (float)pow(10000, -(double)i / steps);
        for (uint32_t r = 0; r < rows; r++) {
            float angle = (float)(first + r) * freq;
            float *row = table + (size_t)r * 2 * half;
            row[i] = sinf(angle);
            row[half + i] = cosf(angle);
        }
    }
}

value_id sinusoids_add(struct build *b, value_id x, uint32_t first, double steps) {
    uint32_t rows = b->hp->context, cols = b->hp->width;
    size_t n = (size_t)rows * cols;
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *table = arena_array(b->arena, n, sizeof *table);
    if (!w || !table) {
        b->g->failed = true;
        return x;
    }
    fill(table, rows, cols / 2, first, steps);
    b->model->copied++;
    b->model->copied_bytes += n * sizeof *table;
    *w = (struct weight){.name = "positions",
                         .quant = quant_list[QUANT_f32],
                         .rows = rows,
                         .cols = cols,
                         .row_bytes = cols * sizeof *table,
                         .data = table};
    return graph_add(b->g, x, graph_embed_position(b->g, w, 0));
}
