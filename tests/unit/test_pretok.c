/* SPDX-License-Identifier: Apache-2.0
 * test_pretok.c: the expressions of pre-tokenizers: all compile, and the hand scanners cut where
 * PCRE2 does by the same expressions; what of Oniguruma's syntax is written anew, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "text/pretok.h"
#include "text/regex.h"

#define RULE(name) {#name, &rule_##name},
static const struct {
    const char *name;
    const struct rule *rule;
} rules[] = {
#include "text/rules.def"
};
#undef RULE
enum { RULES = sizeof rules / sizeof rules[0], TEXTS = 3000, MOST = 400 };

static struct regex *must_open(const char *pattern) {
    struct regex *regex;
    ob_error error;
    if (regex_open(str_of(pattern), &regex, &error) != OB_OK)
        fail_msg("%s: %s", pattern, error.message);
    return regex;
}

/* The places at which a search cuts, as tok_cut.c does it. */
static size_t cuts_of(const struct rule *rule, const struct regex *regex, struct str text,
                      size_t *cut) {
    struct regex_work work = {0};
    size_t n = 0, at = 0, from, to, last = SIZE_MAX;
    while (at <= text.n) {
        bool found;
        if (regex) {
            enum regex_result r = regex_find(regex, &work, text, at, &from, &to);
            assert_true(r == REGEX_NONE || r == REGEX_FOUND);
            found = r == REGEX_FOUND;
        } else if (rule->next) {
            found = at < text.n;
            from = at;
            to = found ? at + rule->next(text.p + at, text.n - at) : at;
        } else {
            found = rule->find(text.p, text.n, at, &from, &to);
        }
        if (!found) break;
        if (from == to && to == last) {
            uint32_t code;
            at += at < text.n ? utf8_decode(text.p + at, text.n - at, &code) : 1;
            continue;
        }
        at = last = to;
        if (n == 0 || cut[n - 1] != from) cut[n++] = from;
        if (cut[n - 1] != to) cut[n++] = to;
    }
    regex_work_free(&work);
    if (n && cut[0] == 0) memmove(cut, cut + 1, --n * sizeof *cut);
    if (n && cut[n - 1] == text.n) n--;
    return n;
}

static size_t random_text(uint64_t seed, char *out) {
    static const char *const parts[] = {
        " ", " ", "  ", "\n", "\r\n", "\t", "\xc2\xa0", "\xe3\x80\x80", "a", "B", "zz", "'s", "'LL",
        "'", "\xc5\xbf", "e\xcc\x81", "\xcc\x81", "\xe4\xba\xac", "\xe1\x82\xa0", "1", "22", "333",
        "\xd9\xa1", "\xc2\xb2", "\xe2\x85\xa8", "!", "...", "-", "_", "+", "\xe2\x82\xac", "\x01",
        "\xef\xbb\xbf", "\xf0\x9f\x98\x80", "\xe0\xa4\x95\xe0\xa4\xbf", "\xf0\x9e\x97\xbf"};
    size_t n = 0;
    uint64_t count = rng_u64(seed, 0) % 24;
    for (uint64_t i = 0; i < count; i++) {
        const char *part = parts[rng_u64(seed, i + 1) % (sizeof parts / sizeof parts[0])];
        memcpy(out + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static void scanners_cut_as_the_expressions(void **state) {
    (void)state;
    char text[MOST];
    size_t want[2 * MOST], got[2 * MOST];
    for (size_t r = 0; r < RULES; r++) {
        struct regex *regex = must_open(rules[r].rule->regex);
        bool by_hand = rules[r].rule->next || rules[r].rule->find;
        for (uint64_t seed = 0; by_hand && seed < TEXTS; seed++) {
            struct str s = {text, random_text(seed, text)};
            size_t n = cuts_of(NULL, regex, s, want), k = cuts_of(rules[r].rule, NULL, s, got);
            for (size_t i = 0; i < n || i < k; i++)
                if (i >= n || i >= k || got[i] != want[i])
                    fail_msg("%s, text %llu, \"%.*s\", cut %zu: %zd for %zd", rules[r].name,
                             (unsigned long long)seed, STR_ARG(s), i, i < k ? (ssize_t)got[i] : -1,
                             i < n ? (ssize_t)want[i] : -1);
        }
        regex_close(&regex);
    }
}

static void every_name_has_rules(void **state) {
    (void)state;
    static const char *const names[] = {"afmoe", "default", "gpt-4o", "qwen35", "youtu"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct pretok *pretok = pretok_find(str_of(names[i]));
        assert_non_null(pretok);
        assert_non_null(pretok->rule[0]);
        size_t n = 0;
        while (pretok->rule[n]) n++;
        assert_non_null(pretok_like(pretok->rule, n, pretok->flags));
    }
    assert_null(pretok_find(STR_LIT("gpt")));
    assert_null(pretok_find(STR_LIT("")));
    assert_string_equal(pretok_like((const struct rule *const[]){&rule_gpt2}, 1, 0)->name, "gpt-2");
    assert_null(pretok_like((const struct rule *const[]){&rule_gpt2}, 1, PRETOK_NFC));
}

/* The first match, "start-end" or "none". */
static const char *match(const char *pattern, const char *text) {
    static char out[64];
    struct regex *regex = must_open(pattern);
    struct regex_work work = {0};
    size_t start, end;
    enum regex_result r = regex_find(regex, &work, str_of(text), 0, &start, &end);
    if (r == REGEX_FOUND) snprintf(out, sizeof out, "%zu-%zu", start, end);
    else snprintf(out, sizeof out, r == REGEX_NONE ? "none" : "limit");
    regex_work_free(&work);
    regex_close(&regex);
    return out;
}

static void oniguruma_is_written_anew(void **state) {
    (void)state;
    assert_string_equal(match("[a-z&&[^b-y]]+", "bczayz"), "2-4");
    assert_string_equal(match("[^a[bc]]+", "abcd"), "3-4");
    assert_string_equal(match("[\\S]+", " ab "), "1-3");
    assert_string_equal(match("[^\\S\\n]+", "a\n\t b"), "2-4");
    assert_string_equal(match("\\s", "\xe1\xa0\x8e\xc2\x85"), "3-5"); /* U+180E is none */
    assert_string_equal(match("\\h+", "xyfAg"), "2-4");
    assert_string_equal(match("\\w+", "-\xe2\x93\x90\xc2\xb2-"), "1-6"); /* circled, superscript */
    assert_string_equal(match("a{2}+", "aaaaa"), "0-4"); /* no possessive interval */
    assert_string_equal(match("a{,2}b", "aaab"), "1-4");
    assert_string_equal(match("a{x", "a{x"), "0-3");
    assert_string_equal(match("(?m:.)", "\n"), "0-1");
    assert_string_equal(match(".", "\n"), "none");
    assert_string_equal(match("^b$", "a\nb\nc"), "2-3");
    assert_string_equal(match("\\bb\\b", "ab b"), "3-4");
    assert_string_equal(match("(?<name>a)(b)", "ab"), "0-2");
    assert_string_equal(match("(?i:S)", "\xc5\xbf"), "0-2");
    assert_string_equal(match("\\p{^L}\\P{L}\\p{Lu}", "1-\xc3\x84"), "0-4");
    assert_string_equal(match("\\u00e9\\x{e9}\\xe9", "\xc3\xa9\xc3\xa9\xc3\xa9"), "0-6");
    assert_string_equal(match("\\p{Han}", "\xef\xbd\xa2\xe3\x80\xa5"), "3-6"); /* no extension */
    assert_string_equal(match("\\p{L}+", "\xf0\x9e\x97\x90"), "0-4"); /* newer than PCRE2 10.42 */
    assert_string_equal(match("(a*)*$b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"), "none");
    assert_string_equal(match("((a|a)+)+\\z", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"), "limit");
}

static void what_differs_is_refused(void **state) {
    (void)state;
    static const char *const patterns[] = {
        "\\Kx",  "(a)\\1", "[[:alpha:]]", "a(?i)b", "(?x:a)", "\\p{Zoo}", "\\pL", "[a",
        "(a",    "a)",     "a{2}?",       "\\",     "*a",     "[b-a]",        "a{3,2}", "\\x{d800}",
        "\\Ga",  "\\R",    "(?#note)",    "\xff"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct regex *regex;
        ob_error error;
        if (regex_open(str_of(patterns[i]), &regex, &error) == OB_OK)
            fail_msg("%s is taken", patterns[i]);
        assert_null(regex);
        assert_int_equal(error.status, OB_ERR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "not supported"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scanners_cut_as_the_expressions),
        cmocka_unit_test(every_name_has_rules),
        cmocka_unit_test(oniguruma_is_written_anew),
        cmocka_unit_test(what_differs_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
