/* SPDX-License-Identifier: Apache-2.0
 *
 * check_paged.c: attention of the cpu and ref devices against softmax(q k^T) v written out over
 * plain rows: pages, windows, which query heads share a KV head, positions before and in the
 * step. */
#include <math.h>
#include <stdio.h>

#include "tiny.h"

enum { LENGTH = 700, HEADS = 6, KV_HEADS = 2, K_DIM = 32, V_DIM = 64, IDS = TINY_POSITIONS + 64 };

struct paged_case { const char *isa; enum kv_type kv; uint32_t window; float softcap; };

/* Twice the most that a format cost over five seeds: what is checked is pages, windows and heads.
 * Kernels are held much closer to the definition in check_attention.c and check_ops.c. Of q8_0's
 * 2.6e-4 the format is 1.5e-4 (the reference device), the rest is the query in int8. */
static const double nmse[KV_TYPES] = {
    [KV_bf16] = 3e-5, [KV_f16] = 4e-7, [KV_q4_0] = 8e-2, [KV_q8_0] = 5e-4};

static const float *row_of(const struct weight *w, uint32_t i) {
    return (const float *)w->data + (size_t)i * w->cols;
}

/* One head of the query at pos; scratch for the scores. */
static void attend(const struct paged_case *c, const struct weight *const w[3], uint32_t pos,
                   uint32_t head, float *out) {
    static double p[LENGTH];
    uint32_t first = c->window && pos + 1 > c->window ? pos + 1 - c->window : 0;
    uint32_t kv = head / (HEADS / KV_HEADS);
    double sum = 0, y[V_DIM] = {0};
    for (uint32_t j = first; j <= pos; j++) {
        double s = 0;
        for (int d = 0; d < K_DIM; d++)
            s += (double)row_of(w[0], pos)[head * K_DIM + d] * row_of(w[1], j)[kv * K_DIM + d];
        s *= 2;
        if (c->softcap > 0) s = c->softcap * tanh(s / c->softcap);
        sum += p[j] = exp(s);
    }
    for (uint32_t j = first; j <= pos; j++)
        for (int d = 0; d < V_DIM; d++) y[d] += p[j] / sum * row_of(w[2], j)[kv * V_DIM + d];
    for (int d = 0; d < V_DIM; d++) out[d] = (float)y[d];
}

static void run(struct check_row *row, const void *arg) {
    const struct paged_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    const uint32_t cols[3] = {HEADS * K_DIM, KV_HEADS * K_DIM, KV_HEADS * V_DIM};
    const struct weight *w[3];
    value_id in[3];
    for (int i = 0; i < 3; i++) {
        struct weight *m = tiny_weight(&t, quant_list[QUANT_f32], IDS, cols[i]);
        in[i] = graph_embed(&t.graph, m, 1);
        w[i] = m;
    }
    struct attention_args args = {.heads = HEADS, .kv_heads = KV_HEADS, .k_dim = K_DIM,
                                  .v_dim = V_DIM, .window = c->window, .scale = 2,
                                  .softcap = c->softcap};
    t.graph.logits = graph_attention(&t.graph, in[0], in[1], in[2], &args);

    size_t n = (size_t)LENGTH * HEADS * V_DIM;
    float *got = check_output(row, n), *want = check_output(row, n);
    struct tiny_run device;
    tiny_open(&device, &t, c->isa, 2, (struct kv_types){c->kv, c->kv}, LENGTH);
    const uint32_t first = 90, step[2] = {first, LENGTH - first};
    tiny_step(&device, (const uint32_t[TINY_SEQS]){step[0]}, got);
    tiny_step(&device, (const uint32_t[TINY_SEQS]){step[1]}, got + first * HEADS * V_DIM);
    tiny_close(&device);
    for (uint32_t pos = 0; pos < LENGTH; pos++)
        for (uint32_t h = 0; h < HEADS; h++)
            attend(c, w, pos, h, want + ((size_t)pos * HEADS + h) * V_DIM);
    if (c->kv == KV_f32) check_close(row, got, want, n, (struct check_bound){2e-5, 2e-5});
    else check_nmse(row, got, want, n, nmse[c->kv]);
    arena_free(&t.arena);
}

void check_paged(struct check *check) {
    static const struct { uint32_t window; float softcap; } cases[] = {
        {0, 0}, {0, 3}, {1, 0}, {64, 0}, {65, 0}, {600, 2}};
    for (int kv = 0; kv < KV_TYPES; kv++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct paged_case c = {.isa = cpu_isa_name(cpu_best()), .kv = (enum kv_type)kv,
                                   .window = cases[i].window, .softcap = cases[i].softcap};
            if (check_isa(check, cpu_best()))
                check_run(check, run, &c, "paged.%s.%s.window%u", c.isa, kv_name(c.kv), c.window);
#ifndef CHECK_KERNELS_ONLY /* plain C, the same everywhere, and slow where it is emulated */
            c.isa = NULL;
            check_run(check, run, &c, "paged.ref.%s.window%u", kv_name(c.kv), c.window);
#endif
        }
}
