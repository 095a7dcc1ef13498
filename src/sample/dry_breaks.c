/* SPDX-License-Identifier: Apache-2.0
 * dry_breaks.c: see dry_breaks.h. What is known of a token is kept: nobody reads a vocabulary for
 * the few tokens that a sequence has. */
#include "sample/dry_breaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BYTES = 40, TOKENS = 20, BREAKERS = 64 };

static const char *const defaults[] = {"\n", ":", "\"", "*"};

struct breaker {
    struct str text;
    ob_tokens rest[BYTES]; /* rest[i]: of the text from byte i on; [0] is not used */
};

enum known { UNKNOWN, NOTHING, BEGINS, HOLDS };

struct dry_breaks {
    const struct sample_vocab *vocab;
    struct breaker *breaker;
    size_t n;
    char *text;     /* of all */
    uint8_t *known; /* [vocab] enum known */
    struct buf piece;
};

static ob_status refuse(ob_error *error, const char *what) {
    error_set(error, OB_ERR_ARGUMENT, "%s", what);
    error_at(error, NULL, "dry_breakers", OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* One text with the tokens of all its ends. */
static ob_status add(struct dry_breaks *d, struct breaker *one, ob_error *error) {
    for (size_t i = 1; i < one->text.n; i++) {
        struct str rest = {one->text.p + i, one->text.n - i};
        ob_status s = d->vocab->encode(d->vocab->user, rest, &one->rest[i], error);
        if (s != OB_OK) return s;
        if (one->rest[i].n > TOKENS) one->rest[i].n = TOKENS;
    }
    return OB_OK;
}

ob_status dry_breaks_open(const ob_sampling *settings, const struct sample_vocab *vocab,
                          struct dry_breaks **out, ob_error *error) {
    bool own = settings->dry_breakers != NULL;
    const char *const *text = own ? settings->dry_breakers : defaults;
    size_t n = own ? settings->dry_breakers_n : sizeof defaults / sizeof defaults[0];
    struct dry_breaks *d = *out = calloc(1, sizeof *d);
    if (!d) return error_memory(error, "sequence breakers", sizeof *d);
    d->vocab = vocab;
    if (n > BREAKERS) return refuse(error, "at most 64 texts");
    if (n && !vocab->encode) return refuse(error, "this vocabulary has no texts");
    d->known = calloc(vocab->size, 1);
    d->breaker = calloc(n + 1, sizeof *d->breaker);
    d->text = malloc(n * BYTES + 1);
    if (!d->known || !d->breaker || !d->text)
        return error_memory(error, "sequence breakers", vocab->size);
    for (size_t i = 0; i < n; i++) {
        struct breaker *one = &d->breaker[i];
        size_t bytes = strlen(text[i]);
        if (bytes == 0 || bytes > BYTES) return refuse(error, "a text of 1 to 40 bytes each");
        memcpy(d->text + i * BYTES, text[i], bytes);
        one->text = (struct str){d->text + i * BYTES, bytes};
        d->n++;
        ob_status s = add(d, one, error);
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

void dry_breaks_close(struct dry_breaks *d) {
    if (!d) return;
    for (size_t i = 0; i < d->n; i++)
        for (size_t j = 0; j < BYTES; j++) free(d->breaker[i].rest[j].id);
    buf_free(&d->piece);
    free(d->breaker);
    free(d->known);
    free(d->text);
    free(d);
}

/* Bytes of the text that the piece ends with, fewer than all and at most `below`; 0: none. */
static size_t beginning(struct str piece, struct str text, size_t below) {
    size_t n = text.n - 1 < below ? text.n - 1 : below;
    if (n > piece.n) n = piece.n;
    while (n && memcmp(piece.p + (piece.n - n), text.p, n) != 0) n--;
    return n;
}

static bool contains(struct str piece, struct str text) {
    for (size_t i = 0; i + text.n <= piece.n; i++)
        if (memcmp(piece.p + i, text.p, text.n) == 0) return true;
    return false;
}

static struct str piece_of(struct dry_breaks *d, int32_t id) {
    buf_clear(&d->piece);
    d->vocab->piece(d->vocab->user, id, true, &d->piece);
    return (struct str){d->piece.p, d->piece.n};
}

static enum known find(struct dry_breaks *d, int32_t id) {
    if (id < 0 || (uint32_t)id >= d->vocab->size || d->n == 0) return NOTHING;
    if (d->known[id] != UNKNOWN) return (enum known)d->known[id];
    struct str piece = piece_of(d, id);
    enum known is = NOTHING;
    for (size_t i = 0; i < d->n && is != HOLDS; i++) {
        struct str text = d->breaker[i].text;
        if (contains(piece, text)) is = HOLDS;
        else if (beginning(piece, text, BYTES)) is = BEGINS;
    }
    d->known[id] = (uint8_t)is;
    return is;
}

bool dry_breaks_holds(struct dry_breaks *d, int32_t id) { return find(d, id) == HOLDS; }

static bool goes_on(const ob_tokens *rest, const int32_t *token, size_t n) {
    return rest->n < n && memcmp(rest->id, token + 1, rest->n * sizeof *token) == 0;
}

int32_t dry_breaks_match(struct dry_breaks *d, const int32_t *token, size_t n) {
    enum known is = find(d, token[0]);
    if (is == NOTHING) return -1;
    int32_t longest = is == HOLDS ? 0 : -1;
    struct str piece = piece_of(d, token[0]);
    for (size_t i = 0; i < d->n; i++) {
        const struct breaker *one = &d->breaker[i];
        if (contains(piece, one->text)) continue;
        for (size_t at = BYTES; (at = beginning(piece, one->text, at)) > 0; at--) {
            const ob_tokens *rest = &one->rest[at];
            if ((int32_t)rest->n > longest && goes_on(rest, token, n)) longest = (int32_t)rest->n;
        }
    }
    return longest;
}
