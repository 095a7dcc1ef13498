/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_normal_chars.c: normalizers that go by character: see tok_normal.h. Decompositions act where
 * the reference's older Unicode version does (tools/make_bert_table.py). */
#include <stdlib.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/bert.h"
#include "text/regex.h"
#include "text/tok_impl.h"
#include "text/unicode.h"

static void put(struct normal_text *out, struct str text, uint8_t trust) {
    buf_add(&out->text, text.p, text.n);
    for (size_t i = 0; i < text.n; i++) buf_putc(&out->trust, (char)trust);
}

static void put_code(struct normal_text *out, uint32_t code, uint8_t trust) {
    char bytes[4];
    put(out, (struct str){bytes, utf8_encode(code, bytes)}, trust);
}

/* A character of the text at `at`: its bytes, code (UTF8_BAD: malformed) and trust. */
struct one {
    struct str text;
    uint32_t code;
    uint8_t trust;
};

static struct one one_at(struct str in, const uint8_t *trust, size_t at) {
    struct one c = {.trust = 1};
    c.text = (struct str){in.p + at, utf8_decode(in.p + at, in.n - at, &c.code)};
    for (size_t i = 0; i < c.text.n; i++) c.trust &= trust[at + i] != 0;
    return c;
}

static void put_same(struct normal_text *out, struct one c) { put(out, c.text, c.trust); }

/* ---- decompositions ---- */

void normal_compat(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                   struct normal_text *out) {
    (void)step, (void)start;
    utf8proc_int32_t part[32];
    int boundary = 0;
    for (size_t at = 0; at < in.n;) {
        struct one c = one_at(in, trust, at);
        at += c.text.n;
        if (c.code == UTF8_BAD || c.code < 0x80 || bert_is_whole_compat(c.code)) {
            put_same(out, c);
            continue;
        }
        utf8proc_ssize_t n =
            utf8proc_decompose_char((utf8proc_int32_t)c.code, part, 32,
                                    UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
        if (n < 1 || n > 32) put_same(out, c);
        else
            for (utf8proc_ssize_t i = 0; i < n; i++) put_code(out, (uint32_t)part[i], c.trust);
    }
}

struct mark {
    uint32_t code;
    uint32_t order; /* in the text */
    uint8_t class, trust;
};
struct marks { /* of one character, to be ordered */
    struct mark *p;
    size_t n, cap;
};

static uint8_t class_of(uint32_t code) {
    if (!(unicode_of(code) & UNICODE_NFC_ACTS)) return 0; /* not a mark for the reference */
    return (uint8_t)utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
}

static int by_class(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    if (x->class != y->class) return x->class > y->class ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void sort_marks(struct mark *p, size_t n) {
    bool sorted = true;
    for (size_t i = 1; i < n; i++) sorted = sorted && p[i - 1].class <= p[i].class;
    if (!sorted) qsort(p, n, sizeof *p, by_class);
}

static void flush(struct marks *marks, struct normal_text *out) {
    if (marks->n > 1) sort_marks(marks->p, marks->n);
    for (size_t i = 0; i < marks->n; i++) put_code(out, marks->p[i].code, marks->p[i].trust);
    marks->n = 0;
}

static void add_part(struct marks *marks, struct normal_text *out, uint32_t code, uint8_t trust) {
    struct mark mark = {code, (uint32_t)marks->n, class_of(code), trust};
    if (mark.class == 0) {
        flush(marks, out);
        put_code(out, code, trust);
        return;
    }
    if (marks->n == marks->cap) {
        size_t cap = marks->cap ? marks->cap * 2 : 16;
        struct mark *p = realloc(marks->p, cap * sizeof *p);
        if (!p) {
            out->text.failed = true;
            return;
        }
        marks->p = p;
        marks->cap = cap;
    }
    marks->p[marks->n++] = mark;
}

void normal_nfd(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                struct normal_text *out) {
    (void)step, (void)start;
    utf8proc_int32_t part[8];
    int boundary = 0;
    struct marks marks = {0};
    for (size_t at = 0; at < in.n;) {
        struct one c = one_at(in, trust, at);
        at += c.text.n;
        if (c.code == UTF8_BAD || c.code < 0x80) {
            flush(&marks, out);
            put_same(out, c);
            continue;
        }
        utf8proc_ssize_t n = 0;
        if (!bert_is_whole(c.code))
            n = utf8proc_decompose_char((utf8proc_int32_t)c.code, part, 8, UTF8PROC_DECOMPOSE,
                                        &boundary);
        if (n < 1 || n > 8) part[0] = (utf8proc_int32_t)c.code, n = 1;
        for (utf8proc_ssize_t i = 0; i < n; i++)
            add_part(&marks, out, (uint32_t)part[i], c.trust);
    }
    flush(&marks, out);
    free(marks.p);
}

/* ---- single characters ---- */

void normal_accents(const struct normal_step *step, struct str in, const uint8_t *trust,
                    bool start, struct normal_text *out) {
    (void)step, (void)start;
    for (size_t at = 0; at < in.n;) {
        struct one c = one_at(in, trust, at);
        at += c.text.n;
        if (!bert_is_combining(c.code)) put_same(out, c);
    }
}

/* The rules of SentencePiece's nmt normalization that are not NFKC: controls go, what is white in
 * any way becomes a space. */
void normal_nmt(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                struct normal_text *out) {
    (void)step, (void)start;
    for (size_t at = 0; at < in.n;) {
        struct one c = one_at(in, trust, at);
        uint32_t k = c.code;
        at += c.text.n;
        if ((k >= 1 && k <= 8) || k == 0xb || (k >= 0xe && k <= 0x1f) || k == 0x7f || k == 0x8f ||
            k == 0x9f)
            continue;
        bool white = k == 9 || k == 0xa || k == 0xc || k == 0xd || k == 0x1680 ||
                     (k >= 0x200b && k <= 0x200f) || k == 0x2028 || k == 0x2029 || k == 0x2581 ||
                     k == 0xfeff || k == 0xfffd;
        if (white) put_code(out, ' ', c.trust);
        else put_same(out, c);
    }
}

void normal_bytes(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                  struct normal_text *out) {
    (void)step, (void)start;
    for (size_t at = 0; at < in.n; at++)
        put_code(out, tok_byte_char((uint8_t)in.p[at]), trust[at]);
}

static bool white(uint32_t code) { return unicode_is_space(unicode_of(code)); }

void normal_strip_left(const struct normal_step *step, struct str in, const uint8_t *trust,
                       bool start, struct normal_text *out) {
    (void)step, (void)start;
    size_t at = 0;
    for (struct one c; at < in.n && (c = one_at(in, trust, at), white(c.code));) at += c.text.n;
    buf_add(&out->text, in.p + at, in.n - at);
    buf_add(&out->trust, trust + at, in.n - at);
}

void normal_strip_right(const struct normal_step *step, struct str in, const uint8_t *trust,
                        bool start, struct normal_text *out) {
    (void)step, (void)start;
    size_t end = 0;
    for (size_t at = 0; at < in.n;) {
        struct one c = one_at(in, trust, at);
        at += c.text.n;
        if (!white(c.code)) end = at;
    }
    buf_add(&out->text, in.p, end);
    buf_add(&out->trust, trust, end);
}

/* ---- expressions ---- */

void normal_regex(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                  struct normal_text *out) {
    (void)start;
    struct regex_work work = {0};
    struct buf text = BUF_INIT;
    size_t at = 0, done = 0, from, to, last = SIZE_MAX;
    cut_repair(in, &text);
    struct str repaired = {text.p ? text.p : "", text.n};
    while (!text.failed && at <= in.n) {
        enum regex_result found = regex_find(step->regex, &work, repaired, at, &from, &to);
        if (found == REGEX_NONE) break;
        if (found != REGEX_FOUND) {
            out->limit = found == REGEX_LIMIT;
            text.failed = true;
            break;
        }
        if (from == to && to == last) {
            uint32_t code;
            at += at < in.n ? utf8_decode(repaired.p + at, in.n - at, &code) : 1;
            continue;
        }
        at = last = to;
        buf_add(&out->text, in.p + done, from - done);
        buf_add(&out->trust, trust + done, from - done);
        uint8_t all = 1;
        for (size_t i = from; i < to; i++) all &= trust[i] != 0;
        put(out, step->to, all);
        done = to;
    }
    buf_add(&out->text, in.p + done, in.n - done);
    buf_add(&out->trust, trust + done, in.n - done);
    if (text.failed) out->text.failed = true;
    buf_free(&text);
    regex_work_free(&work);
}
