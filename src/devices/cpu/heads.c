/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: a matrix for each head, times the head's columns of x. Pieces are runs of rows of one
 * head; each brings the head's columns into the form that linear takes, at most STAGE_TOKENS
 * rows at a time, in its thread's own memory. */
#include "devices/cpu/cpu.h"

enum {
    STAGE_TOKENS = 64,
    ROW_STEP = 32,       /* kernels work on 32 rows at a time */
    PIECES_A_THREAD = 8, /* threads end together */
};

struct heads {
    struct device_plan *plan;
    const struct node *node;
    const struct weight *w;
    const float *x;
    float *y;
    uint32_t tokens, pieces, piece_rows; /* pieces of a head */
};

static size_t stage_at(uint32_t cols) {
    size_t linear = kernels_linear_scratch(), act = act_row_bytes(cols);
    return cpu_round64(linear > act ? linear : act);
}

size_t cpu_heads_scratch(uint32_t cols) {
    size_t packed = act_packed_bytes(cols, STAGE_TOKENS), rows = act_row_bytes(cols) * STAGE_TOKENS;
    size_t floats = float_packed_bytes(cols, STAGE_TOKENS); /* no less than as they are */
    size_t act = packed > rows ? packed : rows;
    return stage_at(cols) + cpu_round64(act > floats ? act : floats);
}

/* The head's columns of rows [token, token + n) as linear takes them. */
static const void *stage(const struct heads *h, uint32_t head, uint32_t token, uint32_t n,
                         uint32_t thread) {
    const struct kernels *kernels = h->plan->device->kernels;
    const struct cpu_node *info = cpu_info(h->plan, h->node);
    uint32_t cols = h->w->cols;
    size_t stride = (size_t)h->w->experts * cols;
    const float *x = h->x + token * stride + (size_t)head * cols;
    char *scratch = cpu_scratch(h->plan, thread), *to = scratch + stage_at(cols);
    if (info->act[0] == ACT_NONE) {
        if (n == 1) return x;
        heads_gather(x, stride, n, cols, (float *)(void *)to);
        return to;
    }
    if (!kernels_linear_takes_act(info->act_quant[0])) {
        for (uint32_t i = 0; i < n; i += FLOAT_GROUP) {
            const float *row[FLOAT_GROUP];
            uint32_t tokens = n - i < FLOAT_GROUP ? n - i : FLOAT_GROUP;
            for (uint32_t t = 0; t < tokens; t++) row[t] = x + (i + t) * stride;
            kernels->float_pack(info->act_quant[0], row, tokens, cols,
                                to + float_packed_bytes(cols, i));
        }
        return to;
    }
    for (uint32_t i = 0; i < n; i++) {
        char *row = kernels->act_pack ? scratch : to + act_row_bytes(cols) * i;
        kernels->act_quantize(x + i * stride, cols, row);
        if (!kernels->act_pack) continue;
        struct act parts = act_row(row, cols, 0);
        kernels->act_pack(info->act_quant[0], &parts, cols, i, n, to);
    }
    return to;
}

static void multiply(void *arg, uint32_t piece, uint32_t thread) {
    const struct heads *h = arg;
    const struct weight *w = h->w;
    uint32_t head = piece / h->pieces, row0 = piece % h->pieces * h->piece_rows;
    uint32_t row1 = row0 + h->piece_rows < w->rows ? row0 + h->piece_rows : w->rows;
    size_t stride = (size_t)w->experts * w->rows;
    for (uint32_t token = 0, n; token < h->tokens; token += n) {
        n = h->tokens - token < STAGE_TOKENS ? h->tokens - token : STAGE_TOKENS;
        struct linear_job job = {.quant = w->quant,
                                 .w = w->expert[head],
                                 .row_bytes = w->row_bytes,
                                 .cols = w->cols,
                                 .tokens = n,
                                 .x = stage(h, head, token, n, thread),
                                 .y = h->y + token * stride + (size_t)head * w->rows,
                                 .y_stride = stride,
                                 .scratch = cpu_scratch(h->plan, thread)};
        cpu_info(h->plan, h->node)->linear[0](&job, row0, row1);
    }
}

void cpu_linear_heads(struct device_plan *p, const struct node *n) {
    const struct weight *w = n->weight[0];
    struct heads h = {.plan = p,
                      .node = n,
                      .w = w,
                      .x = cpu_value(p, n->in[0]),
                      .y = cpu_value(p, n->out[0]),
                      .tokens = cpu_value_rows(p, n->in[0])};
    uint32_t wanted = (p->device->threads * PIECES_A_THREAD + w->experts - 1) / w->experts;
    h.piece_rows = ((w->rows + wanted - 1) / wanted + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
    h.pieces = (w->rows + h.piece_rows - 1) / h.piece_rows;
    pool_run(p->device->pool, h.pieces * w->experts, multiply, &h);
}
