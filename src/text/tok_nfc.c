/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_nfc.c: Unicode normalization form C (UAX 15), where and as the reference's older Unicode
 * version acts. utf8proc knows decompositions, classes and compositions of single code points; we
 * choose the stretches (only code points the reference acts on, so that newer ones stay as they
 * are) and order the marks ourselves: utf8proc's ordering is quadratic in their number. */
#include <stdlib.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tok_normal.h"
#include "text/unicode.h"

enum { MOST_PARTS = 32, SHORT = 12 };

struct points {
    utf8proc_int32_t *p;
    size_t n, cap;
    bool failed;
};

static void put(struct points *points, uint32_t code) {
    if (points->cap - points->n < MOST_PARTS) {
        size_t cap = points->cap ? points->cap * 2 : 256;
        utf8proc_int32_t *p = realloc(points->p, cap * sizeof *p);
        if (!p) {
            points->failed = true;
            return;
        }
        points->p = p;
        points->cap = cap;
    }
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, points->p + points->n,
                                                 MOST_PARTS, UTF8PROC_DECOMPOSE, &boundary);
    if (n >= 0 && n <= MOST_PARTS) points->n += (size_t)n;
}

static unsigned class_of(utf8proc_int32_t code) {
    return (unsigned)utf8proc_get_property(code)->combining_class;
}

/* Stable sort of n marks by class. */
static bool sort_marks(utf8proc_int32_t *p, size_t n) {
    if (n <= SHORT) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t mark = p[i];
            size_t j = i;
            for (; j && class_of(p[j - 1]) > class_of(mark); j--) p[j] = p[j - 1];
            p[j] = mark;
        }
        return true;
    }
    utf8proc_int32_t *copy = malloc(n * sizeof *copy);
    if (!copy) return false;
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) at[(class_of(p[i]) & 255) + 1]++;
    for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
    memcpy(copy, p, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) p[at[class_of(copy[i]) & 255]++] = copy[i];
    free(copy);
    return true;
}

static bool order(utf8proc_int32_t *p, size_t n) {
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && class_of(p[end]); end++) {
        }
        if (end - i > 1 && !sort_marks(p + i, end - i)) return false;
    }
    return true;
}

/* Appends the composed form of a stretch. */
static void compose(struct str in, uint8_t trust, struct points *points, struct normal_text *out) {
    points->n = 0;
    uint32_t code;
    for (size_t at = 0; at < in.n;) {
        at += utf8_decode(in.p + at, in.n - at, &code);
        put(points, code);
    }
    if (points->failed || !order(points->p, points->n)) {
        out->text.failed = true;
        return;
    }
    utf8proc_ssize_t n = utf8proc_normalize_utf32(points->p, (utf8proc_ssize_t)points->n,
                                                  UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char bytes[4];
        size_t len = utf8_encode((uint32_t)points->p[i], bytes);
        buf_add(&out->text, bytes, len);
        for (size_t k = 0; k < len; k++) buf_putc(&out->trust, (char)trust);
    }
}

static uint8_t nfc_of(struct str in, size_t at, size_t *len) {
    uint32_t code;
    *len = utf8_decode(in.p + at, in.n - at, &code);
    return unicode_of(code);
}

void normal_nfc(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                struct normal_text *out) {
    (void)step, (void)start;
    struct points points = {0};
    size_t done = 0, at = 0, len, base = SIZE_MAX; /* base: the character before, if it may join */
    while (at < in.n) {
        uint8_t of = nfc_of(in, at, &len);
        if (!(of & UNICODE_NFC_ACTS)) {
            base = of & UNICODE_NFC_BEFORE ? at : SIZE_MAX;
            at += len;
            continue;
        }
        /* A stretch: nothing crosses its ends. */
        size_t from = base == SIZE_MAX ? at : base;
        while (at < in.n && nfc_of(in, at, &len) & UNICODE_NFC_ACTS) at += len;
        uint8_t all = 1;
        for (size_t i = from; i < at; i++) all &= trust[i] != 0;
        buf_add(&out->text, in.p + done, from - done);
        buf_add(&out->trust, trust + done, from - done);
        compose((struct str){in.p + from, at - from}, all, &points, out);
        done = at;
        base = SIZE_MAX;
    }
    buf_add(&out->text, in.p + done, in.n - done);
    buf_add(&out->trust, trust + done, in.n - done);
    free(points.p);
}
