/* SPDX-License-Identifier: Apache-2.0
 *
 * check_real.c: real model files on the ref device, weights decoded to FP32, against transformers,
 * which decoded the same file: the 20 largest logits at 96 positions (tools/make_model_goldens.py).
 * A model that is not in the models folder is skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "whole.h"

enum { HEADER = 16 };
static const double BOUND = 2e-3; /* of a position's standard deviation */

struct golden {
    uint32_t positions, k, vocab;
    int32_t *id;
    const char *rows; /* f32 deviation, then k pairs of id and logit */
};

static struct golden read_golden(struct check_row *row, const char *name) {
    struct golden g;
    size_t n;
    char *file = check_file(row, check_golden(row, "logits/%s.bin", name), &n);
    if (n < HEADER) check_end(row, "the golden is cut off");
    memcpy(&g, file + 4, 3 * sizeof(uint32_t));
    if (n != HEADER + (size_t)g.positions * (4 + 4 + 8 * (size_t)g.k))
        check_end(row, "the golden has %zu bytes, other than its header says", n);
    g.id = (int32_t *)(void *)(file + HEADER);
    g.rows = file + HEADER + g.positions * sizeof *g.id;
    return g;
}

/* The largest difference of one position, in deviations. */
static double compare(struct check_row *row, const struct golden *g, uint32_t p,
                      const float *logits) {
    const char *at = g->rows + (size_t)p * (4 + 8 * (size_t)g->k);
    float deviation, want;
    int32_t id;
    double worst = 0;
    memcpy(&deviation, at, 4);
    for (uint32_t i = 0; i < g->k; i++) {
        memcpy(&id, at + 4 + 8 * i, 4);
        memcpy(&want, at + 8 + 8 * i, 4);
        double off = fabs((double)logits[id] - (double)want) / (double)deviation;
        if (!(off <= BOUND))
            check_fail(row, "position %u, token %d: %g, should be %g", p, (int)id,
                       (double)logits[id], (double)want);
        worst = fmax(worst, off);
        uint32_t best = i == 0 ? whole_argmax(logits, g->vocab) : 0;
        if (i == 0 && (int32_t)best != id && logits[best] - want >= 1e-3f)
            check_fail(row, "position %u: token %u, should be %d", p, best, (int)id);
    }
    check_compared(row, g->k, worst);
    return worst;
}

static void run(struct check_row *row, const void *arg) {
    const char *name = *(const char *const *)arg;
    char *folder = os_models_dir(), path[1024];
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    free(folder);
    if (!os_is_file(path)) check_skip(row, "%s is not there (scripts/fetch-model %s)", path, name);
    struct golden g = read_golden(row, name);
    struct whole w;
    whole_open(&w, row, path, &(ob_engine_options){.device = "ref"});
    if (w.vocab != g.vocab) check_end(row, "%u tokens, the golden has %u", w.vocab, g.vocab);
    float *have = whole_run_once(&w, g.id, g.positions);
    double worst = 0;
    for (uint32_t p = 0; p < g.positions; p++)
        worst = fmax(worst, compare(row, &g, p, have + (size_t)p * g.vocab));
    whole_close(&w);
    check_note(row, "%u x %u logits; off by %.1e deviations", g.positions, g.k, worst);
    free(have);
}

void check_real(struct check *check) {
    static const char *const names[] = {"gemma3-270m", "qwen2.5-coder-0.5b"};
    for (int i = 0; i < 2; i++) check_run(check, run, &names[i], "%s.ref", names[i]);
}
