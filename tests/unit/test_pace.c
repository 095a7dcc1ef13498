/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pace.c: how many prompt tokens go into a step. The machine is a formula here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/pace.h"

enum { MOST = 512 };

/* A step: 10 ms for the answers' weights, 1 ms for each prompt token. */
static double takes(uint32_t answers, uint32_t prompt) {
    return (answers ? 0.010 : 0.005) + 0.001 * prompt;
}

static void go(struct pace *pace, uint32_t answers, bool prompts, int steps, double *longest) {
    *longest = 0;
    for (int i = 0; i < steps; i++) {
        uint32_t n = prompts ? pace_room(pace, answers, MOST) : 0;
        double seconds = takes(answers, n);
        pace_took(pace, answers, n, seconds);
        if (seconds > *longest) *longest = seconds;
    }
}

static void without_a_gap_all_fits(void **state) {
    (void)state;
    struct pace pace = {0};
    double longest;
    go(&pace, 3, true, 10, &longest);
    assert_int_equal(pace_room(&pace, 3, MOST), MOST);
    assert_int_equal(pace_room(&pace, 0, 100), 100);
}

static void steps_end_within_the_gap(void **state) {
    (void)state;
    struct pace pace = {.gap = 0.1};
    double longest;
    go(&pace, 2, false, 10, &longest);
    go(&pace, 2, true, 50, &longest);
    assert_true(longest <= 0.1);
    assert_in_range(pace_room(&pace, 2, MOST), 48, 70); /* most of the gap is used */
    assert_int_equal(pace_room(&pace, 2, 20), 16);      /* whole tiles */
    go(&pace, 0, true, 20, &longest);
    assert_in_range(pace_room(&pace, 0, MOST), 256, 400); /* more where nobody waits */
}

static void a_prompt_always_goes_on(void **state) {
    (void)state;
    struct pace pace = {.gap = 0.001, .step_s = 0.5, .token_s = 0.1};
    assert_int_equal(pace_room(&pace, 1, MOST), PACE_LEAST);
    assert_int_equal(pace_room(&pace, 1, 3), 3);
    assert_int_equal(pace_room(&pace, 0, MOST), PACE_LEAST);
    assert_int_equal(pace_room(&(struct pace){.gap = 0.1}, 1, MOST), PACE_BEFORE);
}

/* The machine becomes four times slower, as at depth; after some steps the gap holds again. */
static void it_learns(void **state) {
    (void)state;
    struct pace pace = {.gap = 0.1};
    double longest, seconds = 0;
    go(&pace, 2, false, 10, &longest);
    go(&pace, 2, true, 50, &longest);
    for (int i = 0; i < 20; i++) {
        uint32_t n = pace_room(&pace, 2, MOST);
        seconds = 0.010 + 0.004 * n;
        pace_took(&pace, 2, n, seconds);
    }
    assert_true(seconds <= 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_gap_all_fits),
        cmocka_unit_test(steps_end_within_the_gap),
        cmocka_unit_test(a_prompt_always_goes_on),
        cmocka_unit_test(it_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
