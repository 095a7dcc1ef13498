/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model_law.c: the laws on whole models, which need no oracle: the logits of a sequence run
 * whole on one thread are, bit for bit, those of the same tokens in chunks, beside other sequences
 * and after a rollback, on three threads; and every instruction set gives the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "whole.h"

enum { TOKENS = 75 };

struct law_case {
    const char *path, *device, *isa, *k, *v; /* k, v: cache formats, NULL the device's */
    void (*law)(const struct whole *w, const int32_t *id, const float *want);
};

/* A bidirectional model's sequence is one step: it can neither be cut nor go on. */
static void need_causal(const struct whole *w) {
    if (engine_model(w->engine)->graph.whole) check_skip(w->row, "bidirectional");
}

static void chunked(const struct whole *w, const int32_t *id, const float *want) {
    need_causal(w);
    const uint32_t chunks[] = {1, 2, 5, 16, 64};
    for (int c = 0; c < 5; c++) {
        struct seq *seq = seq_new(w->engine);
        float *have = whole_run(w, seq, id, TOKENS, chunks[c]);
        check_equal(w->row, have, want, (size_t)TOKENS * w->cols);
        free(have);
        seq_free(&seq);
    }
}

/* What an encoder or a classifier says of the last item of a step: as of the sequence alone. */
static void check_said(const struct whole *w, const int32_t *id, uint32_t items) {
    uint32_t width = model_embedding_cols(engine_model(w->engine)), cols;
    engine_pooled(w->engine, &cols);
    float *have = malloc(((size_t)width + cols) * sizeof *have);
    if (!have) check_end(w->row, "out of memory");
    for (int alone = 0; alone < 2; alone++) {
        if (alone) free(whole_run_once(w, id, TOKENS));
        size_t row = alone ? 0 : items - 1;
        const float *embedding = engine_embedding(w->engine);
        const float *pooled = engine_pooled(w->engine, &cols);
        if (embedding) embedding += row * width;
        if (pooled) pooled += row * cols;
        if (alone) {
            if (embedding) check_equal(w->row, have, embedding, width);
            if (pooled) check_equal(w->row, have + width, pooled, cols);
        } else {
            if (embedding) memcpy(have, embedding, width * sizeof *have);
            if (pooled) memcpy(have + width, pooled, cols * sizeof *have);
        }
    }
    free(have);
}

/* Three sequences of other tokens and lengths advance beside the one that is looked at. */
static void batched(const struct whole *w, const int32_t *id, const float *want) {
    uint32_t piece = engine_model(w->engine)->graph.whole ? TOKENS : 1;
    struct seq *seq[4];
    int32_t other[3][TOKENS];
    for (int i = 0; i < 4; i++) seq[i] = seq_new(w->engine);
    for (int i = 0; i < 3; i++) whole_ids(w, 100 + (uint64_t)i, other[i], TOKENS);
    for (uint32_t at = 0, step = 0, n; at < TOKENS; at += n, step++) {
        n = step % 3 == 2 ? 9 : piece;
        if (n > TOKENS - at) n = TOKENS - at;
        const float *rows;
        struct engine_item item[4];
        uint32_t items = 0;
        for (uint32_t i = 0; i < 3; i++)
            if (step % (i + 1) == 0 && seq_length(seq[i]) + i + 1 <= TOKENS)
                item[items++] = (struct engine_item){
                    .seq = seq[i], .id = other[i] + seq_length(seq[i]), .n = i + 1};
        item[items++] = (struct engine_item){.seq = seq[3], .id = id + at, .n = n, .logits = n};
        if (engine_step(w->engine, item, items, &rows, NULL) != OB_OK)
            check_end(w->row, "step %u of %u sequences fails", step, items);
        check_equal(w->row, rows, want + (size_t)at * w->cols, (size_t)n * w->cols);
        if (engine_model(w->engine)->graph.whole) check_said(w, id, items);
    }
    for (int i = 0; i < 4; i++) seq_free(&seq[i]);
}

static void rolled_back(const struct whole *w, const int32_t *id, const float *want) {
    enum { WRONG = 8, RIGHT = 15 };
    need_causal(w);
    struct seq *seq = seq_new(w->engine);
    int32_t wrong[WRONG];
    whole_ids(w, 5, wrong, WRONG);
    for (uint32_t at = 0; at < TOKENS; at += RIGHT) {
        free(whole_run(w, seq, wrong, WRONG, 3));
        uint32_t from = seq_truncate(seq, at), n = at + RIGHT - from; /* from < at: recurrent */
        if (from > at) check_end(w->row, "no rollback of %d tokens at %u", WRONG, at);
        float *have = whole_run(w, seq, id + from, n, 4);
        check_equal(w->row, have, want + (size_t)from * w->cols, (size_t)n * w->cols);
        free(have);
    }
    seq_free(&seq);
}

static void run(struct check_row *row, const void *arg) {
    const struct law_case *c = arg;
    int32_t id[TOKENS];
    struct whole w;
    ob_engine_options options = {.device = c->device, .cpu_isa = c->isa, .threads = 1,
                                 .kv_type_k = c->k, .kv_type_v = c->v};
    whole_open(&w, row, c->path, &options);
    whole_ids(&w, 1, id, TOKENS);
    float *want = whole_run_once(&w, id, TOKENS);
    for (size_t i = 0; i < (size_t)TOKENS * w.cols; i++)
        if (!isfinite(want[i])) check_end(row, "logit %zu is %g", i, (double)want[i]);
    whole_close(&w);
    options.threads = 3;
    whole_open(&w, row, c->path, &options);
    c->law(&w, id, want);
    whole_close(&w);
    check_note(row, "%d x %u logits, bit for bit", TOKENS, w.cols);
    free(want);
}

/* The int8 arithmetic is the same in every ISA folder, so whole models are too. */
static void run_isa(struct check_row *row, const void *arg) {
    const struct law_case *c = arg;
    int32_t id[TOKENS];
    float *out[2];
    struct whole w;
    for (int i = 0; i < 2; i++) {
        ob_engine_options options = {.device = "cpu", .cpu_isa = i ? c->isa : "scalar",
                                     .kv_type_k = c->k, .kv_type_v = c->v};
        whole_open(&w, row, c->path, &options);
        whole_ids(&w, 1, id, TOKENS);
        out[i] = whole_run_once(&w, id, TOKENS);
        whole_close(&w);
    }
    check_equal(row, out[1], out[0], (size_t)TOKENS * w.cols);
    check_note(row, "%d x %u logits, bit for bit", TOKENS, w.cols);
}

static void run_laws(struct check *check, const char *name, struct law_case c) {
    const char *where = c.isa ? c.isa : c.device;
    c.law = chunked;
    check_run(check, run, &c, "%s.%s.chunked", name, where);
    c.law = batched;
    check_run(check, run, &c, "%s.%s.batched", name, where);
    c.law = rolled_back;
    check_run(check, run, &c, "%s.%s.rolled_back", name, where);
}

/* isa NULL: on another device. */
static void run_tiny(struct check *check, const char *tiny, const char *isa) {
    char path[1024], name[64];
    snprintf(path, sizeof path, "%s/%s.gguf", check_goldens(check), tiny);
    struct law_case c = {.path = path, .device = isa ? "cpu" : check_device(check), .isa = isa};
    bool as_scalar = isa && strcmp(isa, cpu_isa_name(CPU_SCALAR)) != 0;
    run_laws(check, tiny, c);
    if (as_scalar) check_run(check, run_isa, &c, "%s.%s.as_scalar", tiny, c.isa);
    for (int kv = 0; kv < KV_TYPES; kv++) {
        if (kv == KV_f16) continue; /* above */
        c.k = kv_name((enum kv_type)kv);
        c.v = kv == KV_q4_0 ? "q8_0" : c.k; /* a mixed cache, too */
        snprintf(name, sizeof name, "%s.%s", tiny, c.k);
        run_laws(check, name, c);
        if (as_scalar) check_run(check, run_isa, &c, "%s.%s.as_scalar", name, c.isa);
    }
}

static void run_family(struct check *check, const struct family *f) {
    if (f->unknown) return; /* check_model.c names it */
    if (!check_quick(check))
        run_laws(check, f->name, (struct law_case){.path = f->model, .device = "ref"});
    const char *other = check_device(check);
    run_laws(check, f->name, (struct law_case){.path = f->model, .device = other ? other : "cpu"});
}

void check_model_law(struct check *check) {
    families_each(check, run_family);
    for (int i = 0; i < WHOLE_TINIES; i++) {
        CHECK_ISAS(check, isa) run_tiny(check, whole_tiny[i], cpu_isa_name(isa));
        if (check_device(check)) run_tiny(check, whole_tiny[i], NULL);
    }
}
