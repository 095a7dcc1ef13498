/* SPDX-License-Identifier: Apache-2.0
 * test_stop.c: stop strings over a stream, however it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "decode/stop.h"

/* Text through stop strings in pieces of `piece` bytes; what came out, and whether it stopped. */
static bool feed(const char *const *strings, size_t n, const char *text, size_t piece,
                 struct buf *out) {
    struct stop *stop;
    bool stopped = false;
    assert_int_equal(stop_open(strings, n, &stop, NULL), OB_OK);
    for (size_t at = 0, left = strlen(text); left && !stopped; at += piece) {
        size_t m = left < piece ? left : piece;
        stopped = stop_add(stop, text + at, m, out);
        left -= m;
    }
    if (!stopped) stop_end(stop, out);
    if (stopped) assert_non_null(strstr(text, stop_found(stop)));
    else assert_null(stop_found(stop));
    stop_close(&stop);
    return stopped;
}

static void check(const char *const *strings, size_t n, const char *text, const char *want,
                  bool stops) {
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct buf out = BUF_INIT;
        buf_reserve(&out, 0);
        assert_int_equal(feed(strings, n, text, piece, &out), stops);
        assert_string_equal(out.p, want);
        buf_free(&out);
    }
}

static void cuts_before_the_match(void **state) {
    (void)state;
    check((const char *[]){"END"}, 1, "one END two", "one ", true);
    check((const char *[]){"END"}, 1, "one EN two E", "one EN two E", false);
    check((const char *[]){"aab"}, 1, "aaaab", "aa", true); /* restart inside a match */
    check((const char *[]){"abab", "bc"}, 2, "xabac abc", "xabac a", true);
    check((const char *[]){"abc", "b"}, 2, "xabc", "xa", true); /* the one that ends first */
    check((const char *[]){"bc", "abc"}, 2, "xabc", "x", true); /* both end: the longer */
    check(NULL, 0, "anything", "anything", false);
    check((const char *[]){"\n\n"}, 1, "a\nb\n\nc", "a\nb", true);
}

static void passes_on_what_cannot_match(void **state) {
    (void)state;
    struct stop *stop;
    struct buf out = BUF_INIT;
    assert_int_equal(stop_open((const char *[]){"END"}, 1, &stop, NULL), OB_OK);
    assert_false(stop_add(stop, "abE", 3, &out));
    assert_string_equal(out.p, "ab");
    assert_false(stop_add(stop, "NE", 2, &out)); /* "EN" is no longer a beginning, "E" is */
    assert_string_equal(out.p, "abEN");
    assert_true(stop_add(stop, "ND", 2, &out));
    assert_string_equal(out.p, "abEN");
    stop_close(&stop);
    buf_free(&out);
}

/* Against a direct search on random texts of two letters. */
static void agrees_with_a_search(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 3000; round++) {
        char text[40] = {0}, word[2][8] = {{0}}, want[40];
        const char *strings[2] = {word[0], word[1]};
        for (int i = 0; i < 39; i++) text[i] = (char)('a' + rng_u64(round, (uint64_t)i) % 2);
        for (int k = 0; k < 2; k++)
            for (uint64_t i = 0; i < 1 + rng_u64(round, 50 + (uint64_t)k) % 7; i++)
                word[k][i] = (char)('a' + rng_u64(round, 60 + 10 * (uint64_t)k + i) % 2);
        /* the first end of any word; of those ending there, the longest */
        size_t end = 0, start = 0;
        for (size_t e = 1; e <= 39 && !end; e++)
            for (int k = 0; k < 2; k++) {
                size_t m = strlen(word[k]);
                if (m <= e && memcmp(text + e - m, word[k], m) == 0 && (!end || e - m < start))
                    end = e, start = e - m;
            }
        strcpy(want, text);
        if (end) want[start] = 0;
        struct buf out = BUF_INIT;
        buf_reserve(&out, 0);
        assert_int_equal(feed(strings, 2, text, 1 + round % 5, &out), end != 0);
        assert_string_equal(out.p, want);
        buf_free(&out);
    }
}

static void empty_strings_are_refused(void **state) {
    (void)state;
    struct stop *stop;
    ob_error error;
    assert_int_equal(stop_open((const char *[]){"x", ""}, 2, &stop, &error), OB_ERR_ARGUMENT);
    assert_null(stop);
    assert_string_equal(error.where, "stop");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_before_the_match), cmocka_unit_test(passes_on_what_cannot_match),
        cmocka_unit_test(agrees_with_a_search), cmocka_unit_test(empty_strings_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
