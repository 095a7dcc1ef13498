/* SPDX-License-Identifier: Apache-2.0
 *
 * test_grammar_limits.c: grammars that are refused, with what the message names; repetitions of
 * large counts, deep and long texts; and grammars made to blow up, which must end with an answer or
 * an error that says so, after bounded work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "sample/grammar/build.h"
#include "sample/grammar/state.h"
#include "sample/grammar/vocab.h"

/* ---- short ways to write grammars ------------------------------------------------------------ */

static struct grammar_builder *b;

static grammar_expr text(const char *s) { return grammar_text(b, str_of(s)); }
static grammar_expr seq(grammar_expr x, grammar_expr y) {
    return grammar_seq(b, (grammar_expr[]){x, y}, 2);
}
static grammar_expr alt(grammar_expr x, grammar_expr y) {
    return grammar_alt(b, (grammar_expr[]){x, y}, 2);
}
static grammar_rule rule(const char *name) { return grammar_rule_named(b, str_of(name)); }
static grammar_expr use(const char *name) { return grammar_use(b, rule(name)); }
static void define(const char *name, grammar_expr e) { grammar_define(b, rule(name), e); }
static grammar_expr any(void) {
    return grammar_class(b, (struct grammar_range[]){{'"', '"'}}, 1, true);
}

static int begin(void **unused) {
    (void)unused;
    b = grammar_builder_new();
    return b ? 0 : -1;
}
static int end(void **unused) {
    (void)unused;
    grammar_builder_free(&b);
    return 0;
}

static void refused(ob_status status, const char *says) {
    struct grammar *g;
    ob_error error;
    assert_int_equal(grammar_finish(b, rule("root"), &g, &error), status);
    assert_null(g);
    if (!strstr(error.message, says)) fail_msg("\"%s\" without \"%s\"", error.message, says);
}
static struct grammar *finished(void) {
    struct grammar *g;
    ob_error error;
    if (grammar_finish(b, rule("root"), &g, &error) != OB_OK) fail_msg("%s", error.message);
    return g;
}
static struct grammar_state *opened(struct grammar **g, struct grammar_vocab *vocab) {
    struct grammar_state *s;
    assert_int_equal(grammar_state_open(*g, vocab, &s, NULL), OB_OK);
    grammar_drop(g);
    return s;
}
static size_t accept(struct grammar_state *s, const char *part, size_t times) {
    size_t n = 0, length = strlen(part);
    while (times-- && grammar_accept_bytes(s, (struct str){part, length}) == length) n++;
    return n;
}

/* ---- refused --------------------------------------------------------------------------------- */

static void undefined_rules(void **unused) {
    (void)unused;
    define("root", seq(text("a"), use("missing")));
    refused(OB_ERR_ARGUMENT, "\"missing\" is not defined");
}

static void left_recursion(void **unused) {
    (void)unused;
    define("root", alt(text("x"), use("one")));
    define("one", alt(seq(use("one"), text("a")), text("b")));
    refused(OB_ERR_ARGUMENT, "\"one\" is left recursive");
}
static void left_recursion_far_inside(void **unused) {
    (void)unused;
    define("root", seq(text("x"), use("two")));
    define("two", seq(text("("), use("three")));
    define("three", seq(grammar_repeat(b, text("-"), 0, 1), use("four")));
    define("four", alt(text("1"), seq(use("three"), text("+"))));
    refused(OB_ERR_ARGUMENT, "is left recursive");
}
static void right_recursion_is_none(void **unused) {
    (void)unused;
    define("root", alt(text("a"), seq(text("a"), use("root"))));
    struct grammar *g = finished();
    struct grammar_state *s = opened(&g, NULL);
    assert_int_equal(accept(s, "a", 100000), 100000);
    assert_true(s->run.stacks.n < 10); /* the stack does not grow */
    assert_true(grammar_is_whole(s));
    grammar_state_close(&s);
}

static void nothing(void **unused) {
    (void)unused;
    define("root", seq(text("a"), use("loop")));
    define("loop", seq(text("b"), use("loop")));
    refused(OB_ERR_ARGUMENT, "matches no text");
}

static void copies_of_copies(void **unused) {
    (void)unused;
    grammar_expr e = text("ab");
    for (int i = 0; i < 60; i++) e = seq(e, e);
    define("root", e);
    refused(OB_ERR_LIMIT, "too large");
}
static void empty_copies_of_copies(void **unused) {
    (void)unused;
    define("empty", grammar_empty(b));
    grammar_expr e = use("empty");
    for (int i = 0; i < 60; i++) e = seq(e, e);
    define("root", seq(e, text("a")));
    refused(OB_ERR_LIMIT, "too large");
}
static void nested_expressions(void **unused) {
    (void)unused;
    grammar_expr e = text("a");
    for (int i = 0; i < 1000; i++) e = seq(text("("), e);
    assert_true(grammar_builder_failed(b));
    struct grammar *g;
    ob_error error;
    assert_int_equal(grammar_finish(b, 1, &g, &error), OB_ERR_LIMIT);
    assert_non_null(strstr(error.message, "400 deep"));
}

/* ---- large counts ---------------------------------------------------------------------------- */

static void counts(void **unused) {
    (void)unused;
    define("root", seq(grammar_repeat(b, any(), 5000, 100000), text("\"")));
    struct grammar *g = finished();
    assert_true(g->node_n < 40);
    struct grammar_state *s = opened(&g, NULL);
    assert_int_equal(accept(s, "\xC3\xA9", 4999), 4999);
    assert_int_equal(accept(s, "\"", 1), 0);
    assert_int_equal(accept(s, "x", 1), 1);
    struct grammar_state *copy;
    assert_int_equal(grammar_state_copy(s, &copy, NULL), OB_OK);
    assert_int_equal(accept(copy, "\"", 1), 1);
    assert_true(grammar_is_over(copy));
    grammar_state_close(&copy);
    assert_int_equal(accept(s, "y", 200000), 95000);
    assert_int_equal(accept(s, "\"", 1), 1);
    grammar_state_close(&s);
}

static void counts_of_counts(void **unused) {
    (void)unused;
    grammar_expr e = text("ab");
    for (int i = 0; i < 6; i++) e = grammar_repeat(b, e, 100, 100);
    define("root", seq(e, text(".")));
    struct grammar *g = finished();
    assert_true(g->node_n < 200);
    struct grammar_state *s = opened(&g, NULL);
    assert_int_equal(accept(s, "ab", 30000), 30000);
    assert_int_equal(accept(s, ".", 1), 0);
    grammar_state_close(&s);
}

/* ---- deep and long --------------------------------------------------------------------------- */

static void too_deep(void **unused) {
    (void)unused;
    define("root", seq(seq(text("["), grammar_repeat(b, use("root"), 0, 1)), text("]")));
    struct grammar *g = finished();
    struct grammar_state *s = opened(&g, NULL);
    size_t n = accept(s, "[", 100000);
    assert_true(n > 16000 && n < 17000);
    assert_int_equal(s->run.status, OB_ERR_LIMIT);
    assert_non_null(strstr(s->run.why, "nested"));
    grammar_state_close(&s);
}

static void long_chain_of_rules(void **unused) {
    (void)unused;
    char name[16], next[16];
    define("root", use("r0"));
    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "r%d", i);
        snprintf(next, sizeof next, "r%d", i + 1);
        define(name, seq(use(next), text("123")));
    }
    define("r50000", text("x"));
    struct grammar *g = finished();
    struct grammar_state *s = opened(&g, NULL);
    accept(s, "x", 1); /* deeper than stacks may be: an error, and nothing worse */
    assert_int_equal(s->run.status, OB_ERR_LIMIT);
    grammar_state_close(&s);
}

/* ---- made to blow up ------------------------------------------------------------------------- */

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    (void)user, (void)special;
    for (int32_t n = 0; n <= id / 8; n++) buf_putc(out, "ab(),.x\""[id % 8]);
}
static bool is_end(const void *user, int32_t id) {
    (void)user, (void)id;
    return false;
}

/* Goes on while it may, for a while; a limit is an answer. */
static void drive(const char *letters, size_t steps) {
    struct sample_vocab words = {.size = 256, .piece = piece, .is_end = is_end};
    struct grammar_vocab *vocab;
    uint32_t mask[8];
    ob_error error;
    struct grammar *g = finished();
    assert_int_equal(grammar_vocab_open(&words, &vocab, NULL), OB_OK);
    struct grammar_state *s = opened(&g, vocab);
    for (size_t i = 0; i < steps; i++) {
        ob_status status = grammar_mask(s, mask, &error);
        if (status) {
            assert_int_equal(status, OB_ERR_LIMIT);
            assert_non_null(strstr(error.message, "ambiguous"));
            break;
        }
        if (!accept(s, (char[]){letters[i % strlen(letters)], 0}, 1)) break;
    }
    grammar_state_close(&s);
    grammar_vocab_close(&vocab);
}

static void subsets(void **unused) {
    (void)unused;
    grammar_expr ab = alt(text("a"), text("b"));
    grammar_expr e = seq(grammar_repeat(b, ab, 0, GRAMMAR_NO_LIMIT), text("a"));
    for (int i = 0; i < 22; i++) e = seq(e, ab);
    define("root", e);
    drive("ab", 60);
}
static void many_readings(void **unused) {
    (void)unused;
    grammar_expr two[] = {text("a"), use("root"), use("root")};
    define("root", alt(text("a"), alt(grammar_seq(b, two, 3), seq(text("a"), use("root")))));
    drive("a", 400);
}
static void many_counts(void **unused) {
    (void)unused;
    grammar_expr e = alt(text("a"), text("aa"));
    for (int i = 0; i < 4; i++) e = grammar_repeat(b, alt(e, text("aaa")), 0, 1000);
    define("root", e);
    drive("a", 400);
}
static void many_stacks(void **unused) {
    (void)unused;
    char x[8], y[8], r[8], next[8];
    define("root", use("r0"));
    for (int i = 0; i < 40; i++) {
        snprintf(x, sizeof x, "x%d", i), snprintf(y, sizeof y, "y%d", i);
        snprintf(r, sizeof r, "r%d", i), snprintf(next, sizeof next, "r%d", i + 1);
        define(r, alt(seq(use(x), text("aaaaaaaaa")), seq(use(y), text("bbbbbbbbb"))));
        define(x, seq(use(next), text("(((((((((")));
        define(y, seq(use(next), text(")))))))))")));
    }
    define("r40", text("x"));
    drive("x", 5);
}
static void optional_chain(void **unused) {
    (void)unused;
    grammar_expr *part = calloc(2000, sizeof *part);
    char word[16];
    for (int i = 0; i < 2000; i++) {
        snprintf(word, sizeof word, "ab%d,", i);
        part[i] = grammar_repeat(b, text(word), 0, 1);
    }
    define("root", grammar_seq(b, part, 2000));
    free(part);
    struct grammar *g;
    ob_error error;
    ob_status status = grammar_finish(b, rule("root"), &g, &error);
    if (status) assert_int_equal(status, OB_ERR_LIMIT);
    else grammar_drop(&g);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(undefined_rules), TEST(left_recursion), TEST(left_recursion_far_inside),
        TEST(right_recursion_is_none), TEST(nothing), TEST(copies_of_copies),
        TEST(empty_copies_of_copies), TEST(nested_expressions), TEST(counts),
        TEST(counts_of_counts), TEST(too_deep), TEST(long_chain_of_rules), TEST(subsets),
        TEST(many_readings), TEST(many_counts), TEST(many_stacks), TEST(optional_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
