/* SPDX-License-Identifier: Apache-2.0
 * test_json_pull.c: events of valid texts, refusal and place of invalid ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/json_pull.h"

/* The events as text: "{ k:a 1 [ "s" ] } ." */
static void trace(const char *text, size_t n, struct buf *out) {
    struct json_pull j;
    enum pull_kind kind;
    char *copy = malloc(n ? n : 1); /* exact, for the sanitizer */
    memcpy(copy, text, n);
    pull_open(&j, copy, n);
    do {
        kind = pull_next(&j);
        switch (kind) {
        case PULL_END: buf_putc(out, '.'); break;
        case PULL_BAD: buf_printf(out, "bad@%zu", pull_offset(&j)); break;
        case PULL_NULL: buf_puts(out, "null "); break;
        case PULL_BOOL: buf_puts(out, j.truth ? "true " : "false "); break;
        case PULL_NUMBER: buf_printf(out, "%.*s ", STR_ARG(j.text)); break;
        case PULL_STRING:
            buf_putc(out, '\'');
            buf_add(out, j.text.p, j.text.n);
            buf_puts(out, "' ");
            break;
        case PULL_KEY: buf_add(out, j.text.p, j.text.n), buf_puts(out, ": "); break;
        case PULL_ARRAY: buf_puts(out, "[ "); break;
        case PULL_ARRAY_END: buf_puts(out, "] "); break;
        case PULL_OBJECT: buf_puts(out, "{ "); break;
        case PULL_OBJECT_END: buf_puts(out, "} "); break;
        }
    } while (kind != PULL_END && kind != PULL_BAD);
    assert_int_equal(pull_next(&j), kind); /* both ends stay */
    pull_close(&j);
    free(copy);
}

static void expect(const char *text, size_t n, const char *events) {
    struct buf out = BUF_INIT;
    trace(text, n, &out);
    assert_string_equal(out.p, events);
    buf_free(&out);
}
#define EXPECT(text, events) expect(text, sizeof(text) - 1, events)

static void valid_texts(void **state) {
    (void)state;
    EXPECT("{}", "{ } .");
    EXPECT(" [ ] \n", "[ ] .");
    EXPECT("[[],{}]", "[ [ ] { } ] .");
    EXPECT("{\"a\":{\"b\":[1,-0.5e+3,null,true,false]},\"c\":\"d\"}",
           "{ a: { b: [ 1 -0.5e+3 null true false ] } c: 'd' } .");
    EXPECT("7", "7 .");
    EXPECT("\"\"", "'' .");
    EXPECT("\"a\\n\\\"\\\\\\/\\b\\f\\r\\tz\"", "'a\n\"\\/\b\f\r\tz' .");
    EXPECT("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00!\"",
           "'A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!' .");
    EXPECT("\"\xc3\xa9\xf0\x9f\x98\x80\"", "'\xc3\xa9\xf0\x9f\x98\x80' .");
    EXPECT("[\"\\n\",\"\\t\"]", "[ '\n' '\t' ] .");
    EXPECT("{\"a\\u0062\":\"plain\",\"\":0}", "{ ab: 'plain' : 0 } .");
    EXPECT("[0,-0,10,1.5,1E5,1e-5]", "[ 0 -0 10 1.5 1E5 1e-5 ] .");
}

static void invalid_texts(void **state) {
    (void)state;
    EXPECT("", "bad@0");
    EXPECT("  ", "bad@2");
    EXPECT("[1,]", "[ 1 bad@3");
    EXPECT("[,1]", "[ bad@1");
    EXPECT("[1 2]", "[ 1 bad@3");
    EXPECT("[1", "[ 1 bad@2");
    EXPECT("[1}", "[ 1 bad@2");
    EXPECT("{\"a\":1]", "{ a: 1 bad@6");
    EXPECT("{\"a\" 1}", "{ bad@5");
    EXPECT("{\"a\":}", "{ a: bad@5");
    EXPECT("{\"a\":1,}", "{ a: 1 bad@7");
    EXPECT("{1:2}", "{ bad@1");
    EXPECT("{,}", "{ bad@1");
    EXPECT("]", "bad@0");
    EXPECT("{} {}", "{ } bad@3");
    EXPECT("01", "0 bad@1");
    EXPECT("-", "bad@1");
    EXPECT("1.", "bad@2");
    EXPECT(".5", "bad@0");
    EXPECT("1e", "bad@2");
    EXPECT("1e+", "bad@3");
    EXPECT("+1", "bad@0");
    EXPECT("nul", "bad@0");
    EXPECT("True", "bad@0");
    EXPECT("NaN", "bad@0");
    EXPECT("nullx", "null bad@4");
    EXPECT("'a'", "bad@0");
    EXPECT("\"abc", "bad@4");
    EXPECT("\"a\nb\"", "bad@2");
    EXPECT("\"a\0b\"", "bad@2");
    EXPECT("\"\\x\"", "bad@2");
    EXPECT("\"\\", "bad@2");
    EXPECT("\"\\u12g4\"", "bad@5");
    EXPECT("\"\\ud800\"", "bad@7");
    EXPECT("\"\\ud800\\u0041\"", "bad@13");
    EXPECT("\"\\udc00\"", "bad@7");
    EXPECT("\"\xff\"", "bad@1");
    EXPECT("\"\xed\xa0\x80\"", "bad@1");
    EXPECT("\"\xe2\x82\"", "bad@1");
    EXPECT("\xef\xbb\xbf{}", "bad@0");
    EXPECT("/**/1", "bad@0");
}

static void nesting_is_bounded(void **state) {
    (void)state;
    char text[2 * PULL_DEPTH + 2];
    for (unsigned extra = 0; extra < 2; extra++) {
        unsigned depth = PULL_DEPTH + extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json_pull j;
        pull_open(&j, text, 2 * depth);
        assert_int_equal(pull_skip(&j), extra == 0);
        if (extra) assert_int_equal(pull_offset(&j), PULL_DEPTH);
        pull_close(&j);
    }
}

static void numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double d;
        bool is_u, is_i;
        uint64_t u;
        int64_t i;
    } row[] = {
        {"0", 0, true, true, 0, 0},
        {"-7", -7, false, true, 0, -7},
        {"18446744073709551615", 18446744073709551615.0, true, false, UINT64_MAX, 0},
        {"18446744073709551616", 18446744073709551616.0, false, false, 0, 0},
        {"9223372036854775807", 9223372036854775807.0, true, true, INT64_MAX, INT64_MAX},
        {"-9223372036854775808", -9223372036854775808.0, false, true, 0, INT64_MIN},
        {"-9223372036854775809", -9223372036854775809.0, false, false, 0, 0},
        {"1.0", 1, false, false, 0, 0},
        {"1e2", 100, false, false, 0, 0},
        {"0.1", 0.1, false, false, 0, 0},
        {"-2.5e-3", -0.0025, false, false, 0, 0},
        {"1e999", INFINITY, false, false, 0, 0},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        struct json_pull j;
        uint64_t u = 0;
        int64_t i = 0;
        pull_open(&j, row[k].text, strlen(row[k].text));
        assert_int_equal(pull_next(&j), PULL_NUMBER);
        assert_true(pull_number(&j) == row[k].d);
        assert_int_equal(pull_u64(&j, &u), row[k].is_u);
        assert_int_equal(pull_i64(&j, &i), row[k].is_i);
        assert_true(u == row[k].u && i == row[k].i);
        assert_int_equal(pull_next(&j), PULL_END);
        assert_false(pull_u64(&j, &u));
        pull_close(&j);
    }
}

static void skipping(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,{\"b\":2},[]],\"c\":{\"d\":\"]}\"},\"e\":5}";
    struct json_pull j;
    pull_open(&j, text, sizeof text - 1);
    assert_int_equal(pull_next(&j), PULL_OBJECT);
    assert_int_equal(pull_next(&j), PULL_KEY);
    assert_true(pull_skip(&j));
    assert_true(pull_skip(&j)); /* key and value */
    assert_int_equal(pull_next(&j), PULL_KEY);
    assert_true(str_is(j.text, "e"));
    assert_true(pull_skip(&j));
    assert_false(pull_skip(&j));
    assert_int_equal(j.kind, PULL_OBJECT_END);
    assert_int_equal(pull_next(&j), PULL_END);
    pull_close(&j);
}

static void errors_have_place_and_reason(void **state) {
    (void)state;
    struct json_pull j;
    ob_error error;
    pull_open(&j, "[1,\n oops]", 10);
    while (pull_next(&j) != PULL_BAD) {}
    assert_int_equal(pull_error(&j, &error), OB_ERR_FORMAT);
    assert_string_equal(error.message, "malformed JSON: a value is expected");
    assert_int_equal(error.offset, 5);
    pull_close(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts),       cmocka_unit_test(invalid_texts),
        cmocka_unit_test(nesting_is_bounded), cmocka_unit_test(numbers),
        cmocka_unit_test(skipping),          cmocka_unit_test(errors_have_place_and_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
