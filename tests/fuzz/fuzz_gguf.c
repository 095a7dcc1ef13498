/* SPDX-License-Identifier: Apache-2.0
 * fuzz_gguf.c: any bytes as a GGUF file. What opens is read to its last byte, and must come back
 * the same when written again. */
#include <stdlib.h>

#include "base/base.h"
#include "format/gguf.h"
#include "format/gguf_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool good) {
    if (!good) abort();
}

/* Everything the reader vouches for, as one number. */
static uint64_t sum(const struct gguf *g) {
    uint64_t h = 0;
    for (size_t i = 0; i < gguf_value_count(g); i++) {
        const struct gguf_value *v = gguf_value_at(g, i);
        struct str s;
        uint64_t u;
        int64_t n;
        double f;
        bool b;
        h = h * 31 + str_hash(v->key) + (uint64_t)v->type;
        for (uint64_t k = 0; k < v->n; k++) {
            if (gguf_str(v, k, &s)) h = h * 31 + str_hash(s);
            if (gguf_u64(v, k, &u)) h = h * 31 + u;
            if (gguf_i64(v, k, &n)) h = h * 31 + (uint64_t)n;
            if (gguf_f64(v, k, &f)) h = h * 31 + str_hash((struct str){(const char *)&f, sizeof f});
            if (gguf_bool(v, k, &b)) h = h * 31 + b;
        }
    }
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        check(gguf_tensor_find(g, t->name) == t);
        h = h * 31 + str_hash(t->name) + str_hash((struct str){t->data, t->bytes}) + t->dim[3];
    }
    return h;
}

/* Can the writer say all of it? Another alignment and integers but I32 would be lost. */
static bool has_spelling(const struct gguf *g) {
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (!t->quant && strcmp(t->type, "I32") != 0) return false;
    }
    return !gguf_find(g, "general.alignment");
}

static void write_again(const struct gguf *g) {
    struct gguf_writer *w = gguf_writer_new();
    struct buf file = BUF_INIT;
    struct gguf *again;
    for (size_t i = 0; i < gguf_value_count(g); i++) gguf_put_value(w, gguf_value_at(g, i));
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        struct gguf_new_tensor n = {
            .name = t->name, .quant = t->quant, .ndim = t->ndim, .data = t->data};
        memcpy(n.dim, t->dim, sizeof n.dim);
        gguf_put_tensor(w, &n);
    }
    check(gguf_write_buf(w, &file, NULL) == OB_OK);
    check(gguf_open_memory(file.p, file.n, "again", &again, NULL) == OB_OK);
    check(sum(again) == sum(g));
    gguf_close(&again);
    buf_free(&file);
    gguf_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct gguf *g;
    ob_error error;
    if (gguf_open_memory(bytes, size, "fuzz", &g, &error) != OB_OK) {
        check(!g && error.message[0]);
        return 0;
    }
    sum(g);
    if (has_spelling(g)) write_again(g);
    gguf_close(&g);
    return 0;
}
