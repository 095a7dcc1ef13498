/* SPDX-License-Identifier: Apache-2.0
 * check_inside.h: what check.c and row.c share of a row. */
#ifndef CHECK_CHECK_INSIDE_H
#define CHECK_CHECK_INSIDE_H

#include "check.h"

/* In memory that the child shares with the parent. */
struct outcome {
    bool finished, failed, skipped;
    char message[400], note[160];
    uint64_t values; /* compared */
    double worst;    /* largest difference among them */
};

enum { GUARDED_MAX = 64 };

struct check_row {
    struct outcome *outcome;
    const char *golden;       /* folder */
    uint64_t stream, counter; /* of the random numbers */
    struct guarded { unsigned char *p; size_t bytes; } guarded[GUARDED_MAX];
    int guards;
    bool bench;
    double bandwidth;
    int round; /* of check_again */
    double start;
};

/* Fails the row if a guard byte changed. */
void check_guards(struct check_row *row);

/* The end of a row that came to its end. */
_Noreturn void check_finish(struct check_row *row);

double check_seconds(void);

#endif
