/* SPDX-License-Identifier: Apache-2.0
 *
 * check_embed.c: vectors of a real encoder, from text on, against transformers' in FP32
 * (tools/make_embed_goldens.py): all texts together, on each device. Where there is a Q8_0 file of
 * the model (1bit convert --type q8_0 makes one), its vectors point the same way. A model that is
 * not in the models folder is skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "check.h"

enum { HEADER = 12, TEXTS_MAX = 64 };

struct embed_case {
    const char *model, *device; /* model: in the models folder */
    double off;         /* of a number, at most; 0: the cosine counts */
    double cosine;      /* at least */
    double cosine_hard; /* of the last three texts of the golden, which are no sentences */
};

struct golden {
    uint32_t texts, cols;
    struct {
        const char *p;
        uint32_t n;
        const float *vector;
    } text[TEXTS_MAX];
};

static struct golden read_golden(struct check_row *row) {
    struct golden g;
    size_t n, at = HEADER;
    char *file = check_file(row, check_golden(row, "embeddings/minilm.bin"), &n);
    if (n < HEADER) check_end(row, "the golden is cut off");
    memcpy(&g.texts, file + 4, 4);
    memcpy(&g.cols, file + 8, 4);
    if (g.texts > TEXTS_MAX || g.cols > 4096) check_end(row, "the golden has %u texts", g.texts);
    for (uint32_t i = 0; i < g.texts; i++) {
        if (n - at < 4) check_end(row, "the golden is cut off");
        memcpy(&g.text[i].n, file + at, 4);
        at += 4;
        if (g.text[i].n > n - at || n - at - g.text[i].n < g.cols * sizeof(float))
            check_end(row, "the golden is cut off");
        g.text[i].p = file + at;
        at += g.text[i].n;
        float *vector = check_scratch(row, g.cols * sizeof *vector); /* aligned */
        memcpy(vector, file + at, g.cols * sizeof *vector);
        g.text[i].vector = vector;
        at += g.cols * sizeof *vector;
    }
    return g;
}

static void need(struct check_row *row, ob_status status, const ob_error *error) {
    char line[1024];
    if (status != OB_OK) check_end(row, "%s", ob_error_line(error, line, sizeof line));
}

static double cosine(const float *a, const float *b, uint32_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

static void compare(struct check_row *row, const struct embed_case *c, const struct golden *g,
                    const float *have) {
    double worst = 0, least = 1;
    for (uint32_t i = 0; i < g->texts; i++) {
        const float *h = have + (size_t)i * g->cols, *w = g->text[i].vector;
        double along = cosine(h, w, g->cols);
        double wanted = i + 3 < g->texts ? c->cosine : c->cosine_hard;
        least = fmin(least, along);
        if (!(along >= wanted)) check_fail(row, "text %u: cosine %.6f", i, along);
        for (uint32_t k = 0; k < g->cols; k++) {
            double off = fabs((double)h[k] - (double)w[k]);
            if (c->off > 0 && !(off <= c->off))
                check_fail(row, "text %u, number %u: %g, should be %g", i, k, (double)h[k],
                           (double)w[k]);
            worst = fmax(worst, off);
        }
    }
    check_compared(row, (size_t)g->texts * g->cols, worst);
    check_note(row, "%u vectors of %u; off by %.1e, least cosine %.5f", g->texts, g->cols, worst,
               least);
}

static void run(struct check_row *row, const void *arg) {
    const struct embed_case *c = arg;
    char *folder = os_models_dir(), path[1024];
    ob_engine *engine;
    ob_engine_info info;
    ob_error error = {0};
    ob_tokens ids[TEXTS_MAX] = {0};
    snprintf(path, sizeof path, "%s/%s", folder, c->model);
    free(folder);
    if (!os_exists(path)) check_skip(row, "%s is not there (scripts/fetch-model minilm)", path);
    struct golden g = read_golden(row);
    need(row, ob_engine_open(&(ob_engine_options){.model = path, .device = c->device}, &engine,
                             &error), &error);
    ob_engine_get_info(engine, &info);
    if (info.embedding != g.cols) check_end(row, "vectors of %u, not %u", info.embedding, g.cols);
    for (uint32_t i = 0; i < g.texts; i++)
        need(row, ob_tokenize(engine, g.text[i].p, g.text[i].n, true, false, &ids[i], &error),
             &error);
    float *have = check_output(row, (size_t)g.texts * g.cols);
    need(row, ob_embed(engine, ids, g.texts, have, &error), &error);
    compare(row, c, &g, have);
    for (uint32_t i = 0; i < g.texts; i++) ob_tokens_free(&ids[i]);
    ob_engine_close(&engine);
}

void check_embed(struct check *check) {
    static const struct embed_case cases[] = {
        {"minilm", "ref", 1e-5, 0.99999, 0.99999},
        {"minilm", "cpu", 1e-5, 0.99999, 0.99999},
        {"minilm-q8_0.gguf", "ref", 0, 0.9997, 0.999},
        {"minilm-q8_0.gguf", "cpu", 0, 0.9993, 0.998},
    };
    for (int i = 0; i < 4; i++)
        check_run(check, run, &cases[i], "%s.%s", cases[i].model, cases[i].device);
}
