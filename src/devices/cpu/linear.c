/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: all weights of a linear node as one list of row chunks. The activations are quantized
 * once for all weights that want them quantized. */
#include "devices/cpu/cpu.h"

enum {
    ROW_STEP = 32,  /* kernels work on 32 rows at a time */
    ROWS_MAX = 256, /* of a chunk: small enough that threads end together */
    CHUNKS_A_THREAD = 8,
    ACT_INLINE = 8192, /* elements quantized without waking the pool */
};

struct linear {
    struct device_plan *plan;
    const struct node *node;
    const float *x;
    uint32_t rows, cols; /* of x */
    uint32_t chunk_rows;
    uint32_t act; /* being packed */
};

/* ---- quantize ---- */

static void *act_of(const struct linear *l, uint32_t act) {
    return l->plan->act + l->plan->act_bytes * act;
}

static void quantize_row(void *arg, uint32_t row, uint32_t thread) {
    const struct linear *l = arg;
    const struct kernels *kernels = l->plan->device->kernels;
    const struct cpu_node *info = cpu_info(l->plan, l->node);
    const float *x = l->x + (size_t)row * l->cols;
    if (!kernels->act_pack) {
        kernels->act_quantize(x, l->cols, (char *)act_of(l, 0) + act_row_bytes(l->cols) * row);
        return;
    }
    void *scratch = cpu_scratch(l->plan, thread);
    kernels->act_quantize(x, l->cols, scratch);
    struct act act = act_row(scratch, l->cols, 0);
    for (uint32_t a = 0; a < info->acts; a++)
        if (kernels_linear_takes_act(info->act_quant[a]))
            kernels->act_pack(info->act_quant[a], &act, l->cols, row, l->rows, act_of(l, a));
}

static void pack_group(void *arg, uint32_t group, uint32_t thread) {
    (void)thread;
    const struct linear *l = arg;
    const struct cpu_node *info = cpu_info(l->plan, l->node);
    const float *row[FLOAT_GROUP];
    uint32_t first = group * FLOAT_GROUP, left = l->rows - first;
    uint32_t tokens = left < FLOAT_GROUP ? left : FLOAT_GROUP;
    for (uint32_t t = 0; t < tokens; t++) row[t] = l->x + (size_t)(first + t) * l->cols;
    char *to = (char *)act_of(l, l->act) + float_packed_bytes(l->cols, first);
    l->plan->device->kernels->float_pack(info->act_quant[l->act], row, tokens, l->cols, to);
}

static void each(struct linear *l, uint32_t n, void (*fn)(void *, uint32_t, uint32_t)) {
    if ((size_t)l->rows * l->cols <= ACT_INLINE)
        for (uint32_t i = 0; i < n; i++) fn(l, i, 0);
    else
        pool_run(l->plan->device->pool, n, fn, l);
}

static void quantize(struct linear *l) {
    const struct cpu_node *info = cpu_info(l->plan, l->node);
    bool rows = false;
    for (l->act = 0; l->act < info->acts; l->act++)
        if (kernels_linear_takes_act(info->act_quant[l->act])) rows = true;
        else each(l, (l->rows + FLOAT_GROUP - 1) / FLOAT_GROUP, pack_group);
    if (rows) each(l, l->rows, quantize_row);
}

/* ---- multiply ---- */

static uint32_t chunks_of(const struct linear *l, uint32_t output) {
    return (l->node->weight[output]->rows + l->chunk_rows - 1) / l->chunk_rows;
}

static void multiply(void *arg, uint32_t chunk, uint32_t thread) {
    const struct linear *l = arg;
    const struct device_plan *p = l->plan;
    uint32_t i = 0;
    for (; chunk >= chunks_of(l, i); i++) chunk -= chunks_of(l, i);
    const struct weight *w = l->node->weight[i];
    const struct cpu_node *info = cpu_info(p, l->node);
    struct linear_job job = {
        .quant = w->quant,
        .w = w->bound ? w->bound : w->data,
        .row_bytes = w->row_bytes,
        .cols = l->cols,
        .tokens = l->rows,
        .x = info->act[i] == ACT_NONE ? (const void *)l->x : act_of(l, info->act[i]),
        .bias = info->bias[i],
        .y = cpu_value(p, l->node->out[i]),
        .y_stride = w->rows,
        .scratch = cpu_scratch(p, thread),
    };
    uint32_t row0 = chunk * l->chunk_rows, row1 = row0 + l->chunk_rows;
    info->linear[i](&job, row0, row1 < w->rows ? row1 : w->rows);
}

void cpu_linear(struct device_plan *p, const struct node *n) {
    struct linear l = {.plan = p,
                       .node = n,
                       .x = cpu_value(p, n->in[0]),
                       .rows = cpu_value_rows(p, n->in[0]),
                       .cols = p->graph->value[n->in[0]].cols};
    if (l.rows == 0) return;
    if (cpu_info(p, n)->acts) quantize(&l);

    uint64_t total = 0;
    for (uint32_t i = 0; i < n->outputs; i++) total += n->weight[i]->rows;
    uint64_t rows = total / ((uint64_t)p->device->threads * CHUNKS_A_THREAD);
    rows = (rows + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
    l.chunk_rows = rows < ROW_STEP ? ROW_STEP : rows > ROWS_MAX ? ROWS_MAX : (uint32_t)rows;
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < n->outputs; i++) chunks += chunks_of(&l, i);
    pool_run(p->device->pool, chunks, multiply, &l);
}
