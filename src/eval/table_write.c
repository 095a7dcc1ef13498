/* SPDX-License-Identifier: Apache-2.0
 *
 * table_write.c: writing the file of table.h, chunk by chunk, so that an interrupted run goes on
 * where it was: what is there is read and checked, a torn end is cut off. Rows are encoded on the
 * threads that bring them and written when their chunk is whole. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"
#include "eval/table.h"

enum { OPEN_CHUNKS = 8 }; /* chunks that may be under way at once */

struct eval_table_writer {
    FILE *file;
    char *path;
    struct eval_table_head head;
    struct buf *row; /* [OPEN_CHUNKS][rows] */
};

static ob_status fails(struct eval_table_writer *w, ob_error *error) {
    error_set(error, OB_ERR_IO, "cannot write: %s", strerror(errno));
    error_at(error, w->path, NULL, OB_NO_OFFSET);
    return OB_ERR_IO;
}

/* ---- the head -------------------------------------------------------------------------------- */

/* malloc'd; NULL when out of memory. */
static uint8_t *head_bytes(const struct eval_table_head *head, size_t *size) {
    const struct eval_chunks *c = head->chunks;
    uint8_t *bytes = malloc(TABLE_FIXED + c->n * 4 + 8), *p = bytes;
    const uint32_t numbers[] = {TABLE_VERSION, head->vocab, c->ctx,          c->stride,
                                c->chunks,     c->rows,     (uint32_t)c->bos};
    if (!bytes) return NULL;
    memcpy(p, TABLE_MAGIC, 8);
    p += 8;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) p = table_set(p, 4, numbers[i]);
    memcpy(p, head->model, sizeof head->model);
    p = table_set(p + sizeof head->model, 8, head->text);
    p = table_set(p, 8, c->n);
    for (size_t i = 0; i < c->n; i++) p = table_set(p, 4, (uint32_t)c->id[i]);
    p = table_set(p, 8, eval_hash(bytes, (size_t)(p - bytes)));
    *size = (size_t)(p - bytes);
    return bytes;
}

static bool same_head(const struct eval_table_head *a, const struct eval_table_head *b) {
    const struct eval_chunks *x = a->chunks, *y = b->chunks;
    return strcmp(a->model, b->model) == 0 && a->vocab == b->vocab && a->text == b->text &&
           x->ctx == y->ctx && x->stride == y->stride && x->chunks == y->chunks && x->n == y->n &&
           x->bos == y->bos && memcmp(x->id, y->id, x->n * sizeof *x->id) == 0;
}

/* Checks the file that is there: *done chunks of ours, which end at *size. */
static ob_status read_back(const char *path, const struct eval_table_head *head, uint32_t *done,
                           uint64_t *size, ob_error *error) {
    struct eval_table *t;
    ob_status s = eval_table_open(path, &t, error);
    if (s != OB_OK) return s;
    if (!same_head(eval_table_head(t), head)) {
        s = error_set(error, OB_ERR_ARGUMENT,
                      "it is a table of another model, text or setting (%s); name another file",
                      eval_table_head(t)->model);
        error_at(error, path, NULL, OB_NO_OFFSET);
    }
    for (*done = 0; s == OB_OK && *done < eval_table_chunks(t); ++*done)
        s = eval_table_check(t, *done, error);
    *size = 0;
    if (s == OB_OK) *size = eval_table_size(t);
    eval_table_close(&t);
    return s;
}

/* ---- opening --------------------------------------------------------------------------------- */

static ob_status begin(struct eval_table_writer *w, ob_error *error) {
    size_t size;
    uint8_t *bytes = head_bytes(&w->head, &size);
    if (!bytes) return error_memory(error, "a table", w->head.chunks->n * 4);
    if (!(w->file = fopen(w->path, "wb")) || fwrite(bytes, 1, size, w->file) != size ||
        fflush(w->file) != 0) {
        free(bytes);
        return fails(w, error);
    }
    free(bytes);
    return OB_OK;
}

static ob_status go_on(struct eval_table_writer *w, uint32_t *done, ob_error *error) {
    uint64_t size;
    ob_status s = read_back(w->path, &w->head, done, &size, error);
    if (s != OB_OK) return s;
    if (!os_truncate(w->path, size) || !(w->file = fopen(w->path, "ab"))) return fails(w, error);
    return OB_OK;
}

ob_status eval_table_create(const char *path, const struct eval_table_head *head,
                            struct eval_table_writer **out, uint32_t *done, ob_error *error) {
    *out = NULL;
    *done = 0;
    struct eval_table_writer *w = calloc(1, sizeof *w);
    if (!w) return error_memory(error, "a table", sizeof *w);
    w->head = *head;
    w->path = strdup(path);
    w->row = calloc(OPEN_CHUNKS * (size_t)head->chunks->rows, sizeof *w->row);
    ob_status s = OB_OK;
    if (!w->path || !w->row)
        s = error_memory(error, "rows", head->chunks->rows * sizeof *w->row);
    else
        s = os_is_file(path) ? go_on(w, done, error) : begin(w, error);
    if (s != OB_OK) eval_table_finish(&w, NULL);
    *out = w;
    return s;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct buf *rows_of(const struct eval_table_writer *w, uint32_t chunk) {
    return w->row + (size_t)(chunk % OPEN_CHUNKS) * w->head.chunks->rows;
}

bool eval_table_put(struct eval_table_writer *w, uint32_t chunk, uint32_t row,
                    const float *logits) {
    uint32_t vocab = w->head.vocab, bytes = (vocab + 7) / 8, count = 0, top;
    double log_sum;
    struct buf *out = &rows_of(w, chunk)[row];
    if (!eval_log_sum(logits, vocab, &log_sum, &top)) return false;
    const float floor = (float)(log_sum + EVAL_TABLE_FLOOR);
    for (uint32_t i = 0; i < vocab; i++) count += logits[i] > floor;
    buf_clear(out);
    if (!buf_reserve(out, TABLE_ROW + bytes + 2 * (size_t)count)) return false;
    uint8_t *p = (uint8_t *)out->p, *bits = p + TABLE_ROW, *code = bits + bytes;
    int32_t next = eval_chunks_target(w->head.chunks, chunk, row);
    double target = (double)logits[next] - log_sum;
    float t = target < 0 ? (float)target : 0;
    uint32_t word;
    memcpy(&word, &t, 4);
    table_set(table_set(table_set(p, 4, count), 4, top), 4, word);
    memset(bits, 0, bytes);
    for (uint32_t i = 0; i < vocab; i++) {
        if (!(logits[i] > floor)) continue;
        double part = ((double)logits[i] - log_sum) / EVAL_TABLE_FLOOR; /* 0 likely, 1 floor */
        bits[i / 8] |= (uint8_t)(1u << i % 8);
        code =
            table_set(code, 2, part > 0 ? (uint32_t)(sqrt(part < 1 ? part : 1) * 65535 + 0.5) : 0);
    }
    out->n = (size_t)(code - p);
    return true;
}

ob_status eval_table_end(struct eval_table_writer *w, uint32_t chunk, ob_error *error) {
    struct buf *row = rows_of(w, chunk), all = BUF_INIT;
    uint8_t head[TABLE_CHUNK];
    for (uint32_t i = 0; i < w->head.chunks->rows; i++) {
        buf_add(&all, row[i].p, row[i].n);
        buf_free(&row[i]);
    }
    if (all.failed) {
        buf_free(&all);
        return error_memory(error, "a chunk", all.n);
    }
    table_set(table_set(head, 8, all.n), 8, eval_hash(all.p, all.n));
    errno = 0;
    bool ok = fwrite(head, 1, sizeof head, w->file) == sizeof head &&
              fwrite(all.p, 1, all.n, w->file) == all.n && fflush(w->file) == 0;
    buf_free(&all);
    return ok ? OB_OK : fails(w, error);
}

ob_status eval_table_finish(struct eval_table_writer **writer, ob_error *error) {
    struct eval_table_writer *w = *writer;
    ob_status s = OB_OK;
    if (!w) return OB_OK;
    errno = 0;
    if (w->file && fclose(w->file) != 0) s = fails(w, error);
    for (size_t i = 0; w->row && i < OPEN_CHUNKS * (size_t)w->head.chunks->rows; i++)
        buf_free(&w->row[i]);
    free(w->row);
    free(w->path);
    free(w);
    *writer = NULL;
    return s;
}
