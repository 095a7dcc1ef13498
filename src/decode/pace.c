/* SPDX-License-Identifier: Apache-2.0
 * pace.c: see pace.h. */
#include "decode/pace.h"

/* Steps end a little before the gap does: their times scatter. */
static const double SHARE = 0.8;

uint32_t pace_room(const struct pace *pace, uint32_t answers, uint32_t most) {
    double left = SHARE * pace->gap * (answers ? 1 : PACE_NOBODY_WAITS);
    uint32_t room = PACE_BEFORE;
    if (pace->gap <= 0) return most;
    if (answers) left -= pace->step_s;
    if (pace->token_s > 0) {
        double n = left / pace->token_s;
        room = n < PACE_LEAST ? PACE_LEAST : n > most ? most : (uint32_t)n;
        room -= room % PACE_LEAST; /* whole tiles of the kernels */
    }
    return room < most ? room : most;
}

static void learn(double *mean, double value) {
    *mean = *mean > 0 ? *mean + (value - *mean) / 4 : value;
}

void pace_took(struct pace *pace, uint32_t answers, uint32_t prompt_tokens, double seconds) {
    if (prompt_tokens == 0) {
        if (answers) learn(&pace->step_s, seconds);
        return;
    }
    double rest = answers ? seconds - pace->step_s : seconds;
    if (rest > 0) learn(&pace->token_s, rest / prompt_tokens);
}
