/* SPDX-License-Identifier: Apache-2.0
 * constraint.c: see constraint.h. */
#include "decode/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

struct constraint {
    struct grammar_state *state;
    const struct sample_vocab *vocab;
    uint32_t *mask;
    char *after;      /* NULL: the grammar has begun */
    struct buf before; /* what was written so far, or its end, until it has */
};

ob_status constraint_open(struct grammar *grammar, const char *after,
                          const struct sample_vocab *vocab, struct grammar_vocab *grammars,
                          struct constraint **out, ob_error *error) {
    struct constraint *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return error_memory(error, "a grammar", sizeof *c);
    size_t words = ((size_t)vocab->size + 31) / 32;
    c->vocab = vocab;
    c->mask = calloc(words + 1, sizeof *c->mask);
    if (after && *after) c->after = strdup(after);
    ob_status s = c->mask && (c->after || !after || !*after)
                      ? grammar_state_open(grammar, grammars, &c->state, error)
                      : error_memory(error, "a grammar", words * sizeof *c->mask);
    if (s != OB_OK) constraint_close(out);
    return s;
}

void constraint_close(struct constraint **p) {
    struct constraint *c = *p;
    if (!c) return;
    if (c->state) grammar_state_close(&c->state);
    buf_free(&c->before);
    free(c->after);
    free(c->mask);
    free(c);
    *p = NULL;
}

ob_status constraint_mask(struct constraint *c, const uint32_t **mask, ob_error *error) {
    *mask = c->after ? NULL : c->mask;
    return c->after ? OB_OK : grammar_mask(c->state, c->mask, error);
}

/* Looks for the text that the grammar begins behind; what the token has behind it already counts,
 * up to where the grammar ends it. */
static bool look(struct constraint *c, int32_t id) {
    size_t n = strlen(c->after), had = c->before.n;
    c->vocab->piece(c->vocab->user, id, true, &c->before);
    if (c->before.failed) return false;
    size_t from = had >= n ? had - n + 1 : 0;
    for (; from + n <= c->before.n; from++) {
        if (memcmp(c->before.p + from, c->after, n) != 0) continue;
        struct str rest = {c->before.p + from + n, c->before.n - from - n};
        /* Blanks between the two are no part of either. */
        while (rest.n && strchr(" \t\r\n", rest.p[0])) rest.p++, rest.n--;
        bool allowed = grammar_accept_bytes(c->state, rest) == rest.n;
        free(c->after);
        c->after = NULL;
        buf_free(&c->before);
        return allowed;
    }
    return true;
}

bool constraint_accept(struct constraint *c, int32_t id) {
    return c->after ? look(c, id) : grammar_accept(c->state, id);
}

bool constraint_is_over(const struct constraint *c) {
    return !c->after && grammar_is_over(c->state);
}
