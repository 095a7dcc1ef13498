/* SPDX-License-Identifier: Apache-2.0
 * pattern_match.c: whether an expression matches a text that is known: names of properties, values
 * of an enum. A node maps the set of places where it may begin to the set of those where it may
 * end, so the time is polynomial; a budget bounds it. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "sample/schema/pattern.h"

enum { MOST = 4096, BUDGET = 1 << 18 };

struct match {
    uint32_t *code; /* [n] */
    size_t n;
    size_t spent;
    bool failed;
};

static bool inside(const struct pattern_node *n, uint32_t code) {
    uint32_t low = 0, high = n->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (code > n->range[mid].high) low = mid + 1;
        else high = mid;
    }
    return low < n->n && code >= n->range[low].low;
}

static void step(struct match *m, const struct pattern_node *n, const char *in, char *out);

static void step_seq(struct match *m, const struct pattern_node *n, const char *in, char *out) {
    size_t size = m->n + 1;
    char *now = malloc(size), *next = malloc(size);
    if (now && next) memcpy(now, in, size);
    else m->failed = true;
    for (uint32_t i = 0; i < n->n && !m->failed; i++) {
        memset(next, 0, size);
        step(m, n->part[i], now, next);
        char *swap = now;
        now = next;
        next = swap;
    }
    for (size_t i = 0; i < size && !m->failed; i++) out[i] |= now[i];
    free(now);
    free(next);
}

/* Takes what is already in `seen` out of `now`, adds the rest; false: nothing is left. */
static bool fresh(char *now, char *seen, size_t size) {
    bool any = false;
    for (size_t i = 0; i < size; i++) {
        now[i] = now[i] && !seen[i];
        seen[i] |= now[i];
        any |= now[i];
    }
    return any;
}

/* After as many turns as there are characters a mandatory part has ended or stands still. */
static void step_repeat(struct match *m, const struct pattern_node *n, const char *in, char *out) {
    size_t size = m->n + 1;
    char *now = malloc(size), *next = malloc(size), *seen = calloc(1, size);
    if (now && next && seen) memcpy(now, in, size);
    else m->failed = true;
    uint32_t i = 0;
    for (; i < n->min && i < size + 1 && !m->failed; i++) {
        memset(next, 0, size);
        step(m, n->part[0], now, next);
        bool still = memcmp(now, next, size) == 0;
        memcpy(now, next, size);
        if (still) break;
    }
    for (i = n->min; !m->failed && fresh(now, seen, size) && i < n->max; i++) {
        memset(next, 0, size);
        step(m, n->part[0], now, next);
        memcpy(now, next, size);
    }
    for (size_t at = 0; at < size && !m->failed; at++) out[at] |= seen[at];
    free(now);
    free(next);
    free(seen);
}

static void step(struct match *m, const struct pattern_node *n, const char *in, char *out) {
    m->spent += m->n + 1;
    if (m->spent > BUDGET) m->failed = true;
    if (m->failed) return;
    switch (n->kind) {
    case PATTERN_EMPTY:
        for (size_t i = 0; i <= m->n; i++) out[i] |= in[i];
        break;
    case PATTERN_CLASS:
        for (size_t i = 0; i < m->n; i++)
            if (in[i] && inside(n, m->code[i])) out[i + 1] = 1;
        break;
    case PATTERN_SEQ: step_seq(m, n, in, out); break;
    case PATTERN_ALT:
        for (uint32_t i = 0; i < n->n; i++) step(m, n->part[i], in, out);
        break;
    case PATTERN_REPEAT: step_repeat(m, n, in, out); break;
    case PATTERN_BEGIN: out[0] |= in[0]; break;
    case PATTERN_END: out[m->n] |= in[m->n]; break;
    }
}

bool pattern_matches(const struct pattern *regex, struct str text, bool *unknown) {
    struct match m = {0};
    bool found = false;
    *unknown = text.n > MOST;
    if (*unknown) return false;
    m.code = malloc((text.n + 1) * sizeof *m.code);
    char *in = malloc(text.n + 1), *out = calloc(1, text.n + 1);
    m.failed = !m.code || !in || !out;
    for (size_t at = 0; !m.failed && at < text.n;)
        at += utf8_decode(text.p + at, text.n - at, &m.code[m.n++]);
    if (!m.failed) {
        memset(in, 1, m.n + 1);
        step(&m, regex->root, in, out);
        found = memchr(out, 1, m.n + 1) != NULL;
    }
    *unknown = m.failed;
    free(m.code);
    free(in);
    free(out);
    return found && !m.failed;
}
