/* SPDX-License-Identifier: Apache-2.0
 *
 * test_grammar_mask.c: masks against a model that tries every token at every step of random texts
 * in random grammars, with vocabularies that cut characters anywhere; and the laws: a mask depends
 * on the text alone, not on the way there, nor on what was asked before. Seeds are fixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grammar_random.h"
#include "sample/grammar/state.h"
#include "sample/grammar/vocab.h"

enum { SIZE = 100, WORDS = (SIZE + 31) / 32, END = 98, CONTROL = 99, STEPS = 10 };

struct words { struct buf piece[SIZE]; struct sample_vocab vocab; };

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    const struct words *w = user;
    (void)special;
    buf_add(out, w->piece[id].p, w->piece[id].n);
}
static bool is_end(const void *user, int32_t id) {
    (void)user;
    return id == END;
}

/* Single bytes, pieces of letters cut anywhere, long runs, equal tokens, and two without text. */
static void words_open(struct words *w, uint64_t seed) {
    struct dice d = {.seed = seed + 77};
    *w = (struct words){.vocab = {.user = w, .size = SIZE, .piece = piece, .is_end = is_end}};
    for (uint32_t i = 0; i < END; i++) {
        struct buf text = BUF_INIT;
        uint32_t letters = 1 + roll(&d, i % 7 == 0 ? 9 : 4);
        for (uint32_t k = 0; k < letters; k++)
            buf_puts(&text, random_letters[roll(&d, RANDOM_LETTERS)]);
        size_t from = roll(&d, 4) ? 0 : roll(&d, (uint32_t)text.n);
        size_t n = roll(&d, 2) ? text.n - from : 1 + roll(&d, (uint32_t)(text.n - from));
        if (i < RANDOM_LETTERS) from = 0, n = 1;
        buf_add(&w->piece[i], text.p + from, n);
        buf_free(&text);
    }
    buf_puts(&w->piece[END], "<end>");
}
static void words_close(struct words *w) {
    for (uint32_t i = 0; i < SIZE; i++) buf_free(&w->piece[i]);
}

/* Whether the token may come next: by its text, or by its name. */
static bool allowed(struct ref *r, const struct words *w, uint32_t id) {
    size_t n = r->text_n;
    bool open = false;
    if (id == END) return ref_text(r).ends;
    for (size_t i = 0; i < w->piece[id].n; i++)
        r->text[r->text_n++] = (uint8_t)w->piece[id].p[i];
    if (w->piece[id].n) open = ref_text(r).open;
    r->text_n = n;
    r->text[r->text_n++] = (uint16_t)(REF_TOKEN + id);
    open |= ref_text(r).open;
    r->text_n = n;
    return open;
}

/* false: the state gave up. */
static bool check_mask(struct ref *r, const struct words *w, struct grammar_state *state,
                       uint64_t seed, uint32_t *mask) {
    ob_error error;
    ob_status status = grammar_mask(state, mask, &error);
    if (status == OB_ERR_LIMIT) return false;
    assert_int_equal(status, OB_OK);
    for (uint32_t id = 0; id < SIZE; id++) {
        bool is = mask[id / 32] >> (id % 32) & 1, should = allowed(r, w, id);
        if (is == should) continue;
        fail_msg("seed %d: token %u \"%.*s\" after %zu bytes should be %s", (int)seed, id,
                 (int)w->piece[id].n, w->piece[id].p, r->text_n, should ? "allowed" : "refused");
    }
    return true;
}

static int32_t choose(const uint32_t *mask, struct dice *d) {
    for (uint32_t i = 0, id = roll(d, SIZE); i < SIZE; i++, id = (id + 1) % SIZE)
        if (mask[id / 32] >> (id % 32) & 1 && id != END) return (int32_t)id;
    return -1;
}

/* Goes on by a token that the mask allows; false: the state gave up. */
static bool accept(struct grammar_state *state, int32_t id) {
    bool accepted = grammar_accept(state, id);
    if (!accepted) assert_int_equal(state->run.status, OB_ERR_LIMIT);
    return accepted;
}

/* A copy goes on by the token's bytes, and by the token. */
static void check_copies(struct grammar_state *state, const struct words *w, int32_t id,
                         bool tokens) {
    struct grammar_state *copy, *other;
    uint32_t a[WORDS], b[WORDS];
    assert_int_equal(grammar_state_copy(state, &copy, NULL), OB_OK);
    if (accept(copy, id) && !tokens) {
        struct str bytes = {w->piece[id].p, w->piece[id].n};
        assert_int_equal(grammar_state_copy(state, &other, NULL), OB_OK);
        assert_int_equal(grammar_accept_bytes(other, bytes), bytes.n);
        if (grammar_mask(copy, a, NULL) == OB_OK && grammar_mask(other, b, NULL) == OB_OK)
            assert_memory_equal(a, b, sizeof a);
        grammar_state_close(&other);
    }
    grammar_state_close(&copy);
}

static void check_forced(struct ref *r, struct grammar_state *state) {
    struct buf forced = BUF_INIT;
    size_t n = r->text_n;
    grammar_forced(state, 3, &forced);
    for (size_t i = 0; i < forced.n; i++) {
        assert_false(ref_text(r).ends);
        r->text_n++;
        for (unsigned byte = 0; byte < 256; byte++) {
            r->text[r->text_n - 1] = (uint16_t)byte;
            assert_int_equal(ref_text(r).open, byte == (uint8_t)forced.p[i]);
        }
        r->text[r->text_n - 1] = (uint8_t)forced.p[i];
    }
    r->text_n = n;
    buf_free(&forced);
}

static bool walk(struct ref *r, struct grammar *g, const struct words *w,
                 struct grammar_vocab *vocab, uint64_t seed) {
    struct dice d = {.seed = seed + 5};
    struct grammar_state *state;
    uint32_t mask[WORDS];
    bool whole = true;
    assert_int_equal(grammar_state_open(g, vocab, &state, NULL), OB_OK);
    r->text_n = 0;
    for (int step = 0; step < STEPS && whole; step++) {
        whole = check_mask(r, w, state, seed, mask);
        int32_t id = whole ? choose(mask, &d) : -1;
        if (id < 0 || r->text_n + w->piece[id].n + 20 > REF_TEXT) break;
        check_forced(r, state);
        check_copies(state, w, id, random_has_tokens(r));
        if (!accept(state, id)) whole = false;
        if (!whole) break;
        /* One that is allowed by its name and its text alike is read as both. */
        size_t n = r->text_n;
        r->text[r->text_n++] = (uint16_t)(REF_TOKEN + id);
        bool by_name = ref_text(r).open;
        r->text_n = n;
        for (size_t i = 0; i < w->piece[id].n; i++)
            r->text[r->text_n++] = (uint8_t)w->piece[id].p[i];
        bool by_text = w->piece[id].n && ref_text(r).open;
        if (by_name && by_text) break;
        if (by_name) r->text_n = n, r->text[r->text_n++] = (uint16_t)(REF_TOKEN + id);
    }
    grammar_state_close(&state);
    return whole;
}

/* Masks along a text, each as words. */
static void masks_along(struct grammar *g, struct grammar_vocab *vocab, const int32_t *id, size_t n,
                        uint32_t (*mask)[WORDS]) {
    struct grammar_state *state;
    assert_int_equal(grammar_state_open(g, vocab, &state, NULL), OB_OK);
    for (size_t i = 0; i < n; i++) {
        if (mask) grammar_mask(state, mask[i], NULL);
        grammar_accept(state, id[i]);
    }
    grammar_state_close(&state);
}

/* The same masks whatever was asked before: by this grammar or by others of the vocabulary, which
 * share its records, and with records that were dropped. */
static void masks_forget_the_way(void **unused) {
    (void)unused;
    struct ref *r = malloc(sizeof *r);
    struct words w;
    struct grammar_vocab *shared;
    words_open(&w, 1);
    assert_int_equal(grammar_vocab_open(&w.vocab, &shared, NULL), OB_OK);
    for (uint64_t seed = 9000; seed < 9300; seed++) {
        struct grammar *g = random_grammar(r, seed);
        struct grammar_vocab *fresh;
        struct grammar_state *state;
        uint32_t first[STEPS][WORDS] = {{0}}, again[STEPS][WORDS] = {{0}};
        int32_t id[STEPS];
        size_t n = 0;
        struct dice d = {.seed = seed};
        if (!g) continue;
        assert_int_equal(grammar_vocab_open(&w.vocab, &fresh, NULL), OB_OK);
        assert_int_equal(grammar_state_open(g, fresh, &state, NULL), OB_OK);
        while (n < STEPS && grammar_mask(state, first[n], NULL) == OB_OK &&
               (id[n] = choose(first[n], &d)) >= 0 && grammar_accept(state, id[n]))
            n++;
        grammar_state_close(&state);
        grammar_vocab_close(&fresh);
        masks_along(g, shared, id, n, NULL);
        masks_along(g, shared, id, n, again);
        assert_memory_equal(first, again, n * sizeof *first);
        masks_along(g, shared, id, n, again);
        assert_memory_equal(first, again, n * sizeof *first);
        grammar_drop(&g);
    }
    assert_true(shared->shape_n > 100);
    grammar_vocab_close(&shared);
    words_close(&w);
    free(r);
}

static void random_masks(void **unused) {
    (void)unused;
    struct ref *r = malloc(sizeof *r);
    uint32_t walked = 0, limited = 0;
    for (uint64_t seed = 5000; seed < 6500; seed++) {
        struct grammar *g = random_grammar(r, seed);
        struct grammar_vocab *vocab;
        struct words w;
        if (!g) continue;
        words_open(&w, seed);
        assert_int_equal(grammar_vocab_open(&w.vocab, &vocab, NULL), OB_OK);
        if (walk(r, g, &w, vocab, seed)) walked++;
        else limited++;
        grammar_drop(&g);
        grammar_vocab_close(&vocab);
        words_close(&w);
    }
    assert_true(walked > 900);
    assert_true(limited < 10);
    free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_forget_the_way),
        cmocka_unit_test(random_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
