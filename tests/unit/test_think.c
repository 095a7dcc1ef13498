/* SPDX-License-Identifier: Apache-2.0
 * test_think.c: the <think> block, whole and in every cut into two and into single bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/think.h"

static const struct {
    enum think_state state;
    const char *text, *thought, *answer;
} cases[] = {
    {THINK_BEFORE, "", "", ""},
    {THINK_BEFORE, "plain", "", "plain"},
    {THINK_BEFORE, " \n plain ", "", " \n plain "},
    {THINK_BEFORE, "<think>\nhm, so\n</think>\n\nyes\n", "hm, so", "yes\n"},
    {THINK_BEFORE, "\n<think></think>yes", "", "yes"},
    {THINK_BEFORE, "<think>never ends ", "never ends", ""},
    {THINK_BEFORE, "<think>a </thi", "a </thi", ""},
    {THINK_BEFORE, "<think>a < b << c </thin </think>d", "a < b << c </thin", "d"},
    {THINK_BEFORE, "<think>a<think>b</think>c</think>d", "a<think>b", "c</think>d"},
    {THINK_BEFORE, "<<think>a", "", "<<think>a"},
    {THINK_BEFORE, "<thin", "", "<thin"},
    {THINK_BEFORE, "<think", "", "<think"},
    {THINK_BEFORE, "< think>a</think>", "", "< think>a</think>"},
    {THINK_BEFORE, "first <think>a</think>", "", "first <think>a</think>"},
    {THINK_BEFORE, "  \n", "", "  \n"},
    {THINK_BEFORE, "<think> \xc3\xa9 </think> \xc3\xa9", "\xc3\xa9", "\xc3\xa9"},
    {THINK_INSIDE, "\nhm\n</think>\n\nyes", "hm", "yes"},
    {THINK_INSIDE, "</think>yes", "", "yes"},
    {THINK_ANSWER, "<think>a</think>b", "", "<think>a</think>b"},
};

/* Adds the text in pieces: cut at `cut`, or into single bytes if that is past its end. */
static void check_cut(size_t i, size_t cut) {
    struct think think = {.state = cases[i].state};
    struct buf thought = BUF_INIT, answer = BUF_INIT;
    struct str text = str_of(cases[i].text);
    if (cut <= text.n) {
        think_add(&think, (struct str){text.p, cut}, &thought, &answer);
        think_add(&think, (struct str){text.p + cut, text.n - cut}, &thought, &answer);
    } else {
        for (size_t k = 0; k < text.n; k++)
            think_add(&think, (struct str){text.p + k, 1}, &thought, &answer);
    }
    think_end(&think, &thought, &answer);
    assert_string_equal(thought.p ? thought.p : "", cases[i].thought);
    assert_string_equal(answer.p ? answer.p : "", cases[i].answer);
    think_free(&think);
    buf_free(&thought);
    buf_free(&answer);
}

static void test_every_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 0; cut <= strlen(cases[i].text) + 1; cut++) check_cut(i, cut);
}

static void test_open_prompts(void **state) {
    (void)state;
    assert_true(think_is_open(str_of("a <think>")));
    assert_true(think_is_open(str_of("a\n<think>\n ")));
    assert_false(think_is_open(str_of("<think>\n\n</think>\n")));
    assert_false(think_is_open(str_of("think>")));
    assert_false(think_is_open(str_of("")));
    assert_true(think_is_inside(str_of("<think>a")));
    assert_true(think_is_inside(str_of("<think>a</think>b<think>")));
    assert_false(think_is_inside(str_of("<think>a</think>b")));
    assert_false(think_is_inside(str_of("</think>")));
    assert_false(think_is_inside(str_of("a <think")));
    assert_false(think_is_inside(str_of("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_open_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
