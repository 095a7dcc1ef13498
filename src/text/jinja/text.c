/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: making texts. New bytes go into the store, a run of bytes with a parallel run of trust;
 * a text that ends where the store's used part ends grows in place when something is appended, so
 * that building a long text piece by piece costs its length. Slices share bytes. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/run.h"

/* Room for n bytes at the end of the store. */
static bool reserve(struct run *r, size_t n, size_t cap) {
    if (r->store.p && r->store.cap - r->store.used >= n) return true;
    enum { SMALLEST = 1 << 14 };
    if (cap < SMALLEST) cap = SMALLEST;
    char *p = jinja_alloc(r, cap, 2);
    if (!p) return false;
    r->store.p = p;
    r->store.trust = (uint8_t *)p + cap;
    r->store.cap = cap;
    r->store.used = 0;
    return true;
}

bool jinja_text_new(struct run *r, size_t n, struct text **out, char **p, uint8_t **trust) {
    if (!jinja_steps_bytes(r, n) || !reserve(r, n, n)) return false;
    struct text *t = jinja_alloc(r, 1, sizeof *t);
    if (!t) return false;
    *p = r->store.p + r->store.used;
    *trust = r->store.trust + r->store.used;
    r->store.used += n;
    *t = (struct text){.p = *p, .trust = *trust, .n = n};
    *out = t;
    return true;
}

/* The bytes count as work: whether they are trusted may have to be found out again. */
bool jinja_text_copy(struct run *r, struct text slice, struct value *out) {
    if (slice.trust && !slice.whole && !jinja_steps_bytes(r, slice.n)) return false;
    struct text *t = jinja_alloc(r, 1, sizeof *t);
    if (!t) return false;
    *t = slice;
    *out = value_text(t);
    return true;
}

bool jinja_text_literal(struct run *r, const char *s, bool trusted, struct value *out) {
    return jinja_text_copy(r, text_of(s, strlen(s), trusted), out);
}

static void copy_trust(uint8_t *to, const struct text *t) {
    if (t->trust) memcpy(to, t->trust, t->n);
    else if (t->n) memset(to, t->all, t->n);
}

bool jinja_concat(struct run *r, const struct text *a, const struct text *b, struct value *out) {
    if (!a->n || !b->n) return jinja_text_copy(r, a->n ? *a : *b, out);
    bool at_end = a->trust && a->p + a->n == r->store.p + r->store.used &&
                  r->store.cap - r->store.used >= b->n;
    size_t n = a->n + b->n;
    if (!at_end && !reserve(r, n, a->n > 4096 ? n * 2 : n)) return false;
    if (!jinja_steps_bytes(r, at_end ? b->n : n)) return false;
    char *p = r->store.p + r->store.used;
    uint8_t *trust = r->store.trust + r->store.used;
    struct text t = {at_end ? a->p : p, at_end ? a->trust : trust, n, false,
                     text_all_trusted(a) && text_all_trusted(b) ? 1 : 2};
    if (!at_end) {
        memcpy(p, a->p, a->n);
        copy_trust(trust, a);
        p += a->n;
        trust += a->n;
    }
    memcpy(p, b->p, b->n);
    copy_trust(trust, b);
    r->store.used += at_end ? b->n : n;
    return jinja_text_copy(r, t, out);
}

/* ---- sinks ---- */

/* What sinks hold counts as memory while they hold it, except for the output's own limit. */
static bool put(struct run *r, const char *p, const uint8_t *trust, bool all, size_t n) {
    struct sink *s = &r->sink[r->sinks - 1];
    if (n > r->limits.output - s->text.n)
        return jinja_fail_status(r, OB_ERR_LIMIT,
                                 "the template's output is too long (limit: %zu bytes)",
                                 r->limits.output);
    if (r->sinks > 1 && n * 2 > r->memory) return jinja_fail_memory(r);
    if (!jinja_steps_bytes(r, n)) return false;
    buf_add(&s->text, p, n);
    if (trust) {
        buf_add(&s->trust, trust, n);
    } else if (buf_reserve(&s->trust, n)) {
        if (n) memset(s->trust.p + s->trust.n, all, n);
        s->trust.n += n;
    }
    if (s->text.failed || s->trust.failed)
        return jinja_fail_status(r, OB_ERR_MEMORY, "out of memory");
    if (r->sinks > 1) r->memory -= n * 2;
    return true;
}

bool jinja_put(struct run *r, const char *p, size_t n, bool trusted) {
    return put(r, p, NULL, trusted, n);
}

bool jinja_put_text(struct run *r, const struct text *t) {
    return put(r, t->p, t->trust, t->all, t->n);
}

bool jinja_put_slice(struct run *r, const struct text *t, size_t from, size_t n) {
    return put(r, t->p + from, t->trust ? t->trust + from : NULL, t->all, n);
}

bool jinja_put_code(struct run *r, uint32_t code, bool trusted) {
    char bytes[4];
    return put(r, bytes, NULL, trusted, utf8_encode(code, bytes));
}

bool jinja_capture(struct run *r) {
    if (r->sinks == r->sinks_cap) {
        size_t cap = r->sinks_cap ? r->sinks_cap * 2 : 8;
        struct sink *grown = realloc(r->sink, cap * sizeof *grown);
        if (!grown) return jinja_fail_status(r, OB_ERR_MEMORY, "out of memory");
        r->sink = grown;
        r->sinks_cap = cap;
    }
    if (r->sinks == r->sinks_made) r->sink[r->sinks_made++] = (struct sink){BUF_INIT, BUF_INIT};
    r->sinks++;
    return true;
}

/* Small buffers are kept for the next capture; large ones would escape the accounting. */
void jinja_drop(struct run *r) {
    enum { KEPT = 1 << 12 };
    struct sink *s = &r->sink[--r->sinks];
    r->memory += s->text.n * 2;
    void (*end)(struct buf *) = s->text.cap > KEPT ? buf_free : buf_clear;
    end(&s->text);
    end(&s->trust);
}

bool jinja_captured(struct run *r, struct value *out) {
    const struct sink *s = &r->sink[r->sinks - 1];
    struct text held = {.p = s->text.p, .trust = (const uint8_t *)s->trust.p, .n = s->text.n};
    struct text *t;
    char *p;
    uint8_t *trust;
    if (!jinja_text_new(r, held.n, &t, &p, &trust)) return false;
    if (held.n) {
        memcpy(p, held.p, held.n);
        copy_trust(trust, &held);
    }
    jinja_drop(r);
    *out = value_text(t);
    return true;
}

size_t jinja_find(const struct text *t, const struct text *what, size_t from) {
    if (!what->n) return from;
    if (t->n - from < what->n) return SIZE_MAX;
    const char *at = memmem(t->p + from, t->n - from, what->p, what->n);
    return at ? (size_t)(at - t->p) : SIZE_MAX;
}

size_t jinja_offset(const struct text *t, size_t from, size_t at) {
    size_t i = from;
    for (; i < t->n && at; at--)
        do i++;
        while (i < t->n && (t->p[i] & 0xc0) == 0x80);
    return i;
}
