/* SPDX-License-Identifier: Apache-2.0
 * whole.c: see whole.h. */
#include "whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "models/export.h"

const char *const whole_tiny[WHOLE_TINIES] = {"tiny", "tiny_moe"};

static void need(const struct whole *w, ob_status status, const ob_error *error) {
    char line[1024];
    if (status != OB_OK) check_end(w->row, "%s", ob_error_line(error, line, sizeof line));
}

void whole_open(struct whole *w, struct check_row *row, const char *path,
                const ob_engine_options *options) {
    ob_error error = {0};
    *w = (struct whole){.row = row};
    need(w, source_open(path, &w->source, &error), &error);
    bool other = options->device && strcmp(options->device, "cpu") != 0 &&
                 strcmp(options->device, "ref") != 0;
    ob_status status = engine_open(w->source, options, &w->engine, &error);
    /* cpu and ref run everything; what another device declines is no failure. */
    if (status == OB_ERR_UNSUPPORTED && other) check_skip(row, "%s", error.message);
    need(w, status, &error);
    w->vocab = engine_model(w->engine)->hp.vocab;
    w->cols = model_output_cols(engine_model(w->engine));
}

void whole_export(const struct whole *w, const char *path) {
    ob_error error = {0};
    struct export *export;
    need(w, export_open(engine_model(w->engine), NULL, &export, &error), &error);
    struct gguf_writer *writer = gguf_writer_new();
    if (!writer) check_end(w->row, "out of memory");
    export_put(export, writer);
    need(w, gguf_write_file(writer, path, &error), &error);
    gguf_writer_free(&writer);
    export_close(&export);
}

void whole_close(struct whole *w) {
    engine_close(&w->engine);
    source_close(&w->source);
}

float *whole_run(const struct whole *w, struct seq *seq, const int32_t *id, uint32_t n,
                 uint32_t chunk) {
    float *out = malloc((size_t)n * w->cols * sizeof *out);
    ob_error error = {0};
    if (!out || !seq) check_end(w->row, "out of memory");
    for (uint32_t at = 0, m; at < n; at += m) {
        const float *rows;
        m = n - at < chunk ? n - at : chunk;
        struct engine_item item = {.seq = seq, .id = id + at, .n = m, .logits = m};
        need(w, engine_step(w->engine, &item, 1, &rows, &error), &error);
        memcpy(out + (size_t)at * w->cols, rows, (size_t)m * w->cols * sizeof *rows);
    }
    return out;
}

float *whole_run_once(const struct whole *w, const int32_t *id, uint32_t n) {
    struct seq *seq = seq_new(w->engine);
    float *out = whole_run(w, seq, id, n, n);
    seq_free(&seq);
    return out;
}

void whole_ids(const struct whole *w, uint64_t seed, int32_t *id, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) id[i] = (int32_t)(rng_u64(seed, i) % w->vocab);
}

uint32_t whole_argmax(const float *row, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}
