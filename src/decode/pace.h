/* SPDX-License-Identifier: Apache-2.0
 *
 * pace.h: how many prompt tokens a step may take beside running answers, so that it ends in time.
 * A step's time is taken as that of its answers, which does not change much from one to the next,
 * and so much for each prompt token; both are learned from the steps done. What is computed does
 * not depend on it (the law), only when. The owner thread's. */
#ifndef DECODE_PACE_H
#define DECODE_PACE_H

#include <stdint.h>

struct pace {
    double gap;     /* seconds between two tokens of an answer; 0 = no limit */
    double step_s;  /* a step of answers alone; 0: not known yet */
    double token_s; /* more for each prompt token; 0: not known yet */
};

enum {
    PACE_LEAST = 16,       /* a prompt goes on, however slow the machine */
    PACE_BEFORE = 32,      /* before anything is known */
    PACE_NOBODY_WAITS = 4, /* times the gap, where no answer is written: others may come */
};

/* Prompt tokens for a step with so many answers, at most `most`. */
uint32_t pace_room(const struct pace *pace, uint32_t answers, uint32_t most);
/* What a step took. */
void pace_took(struct pace *pace, uint32_t answers, uint32_t prompt_tokens, double seconds);

#endif
