/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: face of 1bit-check. A subject (check_<x>.c, a row of checks.def) enumerates rows; a row
 * is one small comparison with a name such as "kernels.norm_rms.avx2.n17". Each row runs in a child
 * process, so that a crash is one failed row; its memory goes with the child.
 *
 * In a row: inputs end at a page that cannot be touched, outputs and scratch start as NaN between
 * guard bytes that are looked at when the row ends. Randomness depends on the seed and the row's
 * name alone, so a row gives the same numbers whichever others run. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

struct check;      /* the whole run */
struct check_row;  /* one row, inside the child */

/* ---- enumerating ---- */

typedef void check_subject(struct check *check);
#define CHECK(subject, tier) check_subject check_##subject;
#include "checks.def"
#undef CHECK

typedef void check_fn(struct check_row *row, const void *arg);

/* Runs (or lists, or skips) one row; arg is read before the call returns. */
void check_run(struct check *check, check_fn *fn, const void *arg, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
/* Is this ISA built, on this machine, and asked for? */
bool check_isa(const struct check *check, enum cpu_isa isa);
bool check_bench(const struct check *check); /* --bench: add rows of real sizes */
bool check_quick(const struct check *check); /* --quick: no rows of the reference device */
/* --device: rows of this device alone; NULL: of cpu and ref. The parent never opens it: a GPU does
 * not survive a fork. */
const char *check_device(const struct check *check);
const char *check_goldens(const struct check *check);  /* folder */
const char *check_fixtures(const struct check *check); /* folder of more families, NULL if none */
#define CHECK_ISAS(check, isa)                                       \
    for (enum cpu_isa isa = CPU_SCALAR; isa < CPU_ISAS; isa++)       \
        if (check_isa(check, isa))

/* 1, around a vector, a prime, large. */
extern const uint32_t check_size[];
enum { CHECK_SIZES = 7 };

/* ---- inside a row ---- */

/* The first failure is kept. */
void check_fail(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, and the row ends here: what follows would make no sense. */
_Noreturn void check_end(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the row as neither passed nor failed, with the reason. */
_Noreturn void check_skip(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define CHECK_THAT(row, condition) \
    ((condition) ? (void)0 : check_fail(row, "%s:%d: %s", __func__, __LINE__, #condition))

uint64_t check_random(struct check_row *row);
float check_uniform(struct check_row *row, float low, float high);
uint32_t check_below(struct check_row *row, uint32_t n);

void *check_bytes(struct check_row *row, size_t bytes);  /* input, random bytes */
float *check_input(struct check_row *row, size_t n, float low, float high);
void *check_scratch(struct check_row *row, size_t bytes); /* 64-byte aligned, NaN, guarded */
float *check_output(struct check_row *row, size_t n);     /* the same */

/* The path of a golden, and a whole file; both are the row's, and end it when they fail. */
const char *check_golden(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *check_file(struct check_row *row, const char *path, size_t *n);

/* The comparisons count what they saw and keep the largest difference, for the row's line. */
void check_compared(struct check_row *row, size_t n, double worst);
/* Equal bits; any two NaN are equal. */
void check_equal(struct check_row *row, const float *got, const float *want, size_t n);
/* |got - want| <= absolute + relative * |want| for each element. */
struct check_bound { double absolute, relative; };
void check_close(struct check_row *row, const float *got, const float *want, size_t n,
                 struct check_bound bound);
/* sum (got - want)^2 <= limit * sum want^2. */
void check_nmse(struct check_row *row, const float *got, const float *want, size_t n, double limit);
/* What to show beside the row instead, such as a measured error; rows with one are printed without
 * --verbose, too. */
void check_note(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* while (check_again(row, bytes, flops)) kernel(...): once; with --bench until time is measured. */
bool check_again(struct check_row *row, double bytes, double flops);

#endif
