/* SPDX-License-Identifier: Apache-2.0
 *
 * test_grammar.c: grammars against a model that tries everything (grammar_reference.h): random
 * small grammars are walked along random texts they allow, and at each step the bytes that may
 * follow and whether the text is whole are compared. Then errors, limits, and deep or repeated
 * texts. Seeds are fixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grammar_random.h"
#include "sample/grammar/state.h"

/* Whether the state gave up; some of the random grammars nest counted repetitions of themselves. */
static bool gave_up(const struct grammar_state *state) {
    return state->run.status == OB_ERR_LIMIT;
}

static bool check_step(struct ref *r, struct grammar_state *state, uint64_t seed,
                       struct grammar_bytes *may) {
    size_t n = r->text_n;
    bool any = false;
    *may = (struct grammar_bytes){{0}};
    r->text_n = n + 1;
    for (unsigned byte = 0; byte < 256; byte++) {
        struct grammar_state *copy;
        char c = (char)byte;
        r->text[n] = (uint16_t)byte;
        bool allowed = ref_text(r).open;
        assert_int_equal(grammar_state_copy(state, &copy, NULL), OB_OK);
        size_t took = grammar_accept_bytes(copy, (struct str){&c, 1});
        bool limit = gave_up(copy);
        if (!limit && took != (size_t)allowed)
            fail_msg("seed %d: byte %u after %zu bytes should be %s", (int)seed, byte, n,
                     allowed ? "allowed" : "refused");
        grammar_state_close(&copy);
        if (limit) return false;
        if (allowed) bytes_add(may, (uint8_t)byte, (uint8_t)byte);
        any |= allowed;
    }
    r->text_n = n;
    bool whole = ref_text(r).ends;
    if (grammar_is_whole(state) != whole) fail_msg("seed %d: whole at %zu", (int)seed, n);
    if (!random_has_tokens(r) && grammar_is_over(state) != (whole && !any))
        fail_msg("seed %d: over at %zu", (int)seed, n);
    return true;
}

/* false: left before its end. */
static bool walk(struct ref *r, struct grammar *g, uint64_t seed) {
    bool all = true;
    struct grammar_state *state;
    struct grammar_bytes may;
    assert_int_equal(grammar_state_open(g, NULL, &state, NULL), OB_OK);
    for (r->text_n = 0; r->text_n < 24;) {
        all = check_step(r, state, seed, &may);
        if (!all) break;
        uint8_t byte = random_byte(&may, seed * 1000 + r->text_n);
        if (!bytes_has(&may, byte)) break;
        char c = (char)byte;
        assert_int_equal(grammar_accept_bytes(state, (struct str){&c, 1}), 1);
        r->text[r->text_n++] = byte;
    }
    grammar_state_close(&state);
    return all;
}

static void random_grammars(void **unused) {
    (void)unused;
    struct ref *r = malloc(sizeof *r);
    uint32_t walked = 0, refused = 0, limited = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct grammar *g = random_grammar(r, seed);
        if (!g) {
            refused++;
            continue;
        }
        if (walk(r, g, seed)) walked++;
        else limited++;
        grammar_drop(&g);
    }
    /* Most must be grammars, or nothing is tested. */
    assert_true(walked > 300);
    assert_true(refused > 8);
    assert_true(limited < 10);
    free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_grammars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
