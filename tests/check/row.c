/* SPDX-License-Identifier: Apache-2.0
 * row.c: what a row of 1bit-check is made of: memory with guards, random numbers, comparisons,
 * time. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/rng.h"
#include "check_inside.h"

enum { GUARD = 256, GUARD_BYTE = 0x5a };

void check_fail(struct check_row *row, const char *format, ...) {
    struct outcome *o = row->outcome;
    if (o->failed) return;
    o->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(o->message, sizeof o->message, format, args);
    va_end(args);
}

_Noreturn static void leave(struct check_row *row) {
    row->outcome->finished = true;
    fflush(NULL);
    _exit(0); /* not exit(): the parent's buffers are not ours to flush, nor its handlers to run */
}

void check_finish(struct check_row *row) {
    check_guards(row);
    leave(row);
}

void check_end(struct check_row *row, const char *format, ...) {
    char message[sizeof row->outcome->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    check_fail(row, "%s", message);
    leave(row);
}

void check_skip(struct check_row *row, const char *format, ...) {
    struct outcome *o = row->outcome;
    o->skipped = true;
    va_list args;
    va_start(args, format);
    vsnprintf(o->message, sizeof o->message, format, args);
    va_end(args);
    leave(row);
}

void check_note(struct check_row *row, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(row->outcome->note, sizeof row->outcome->note, format, args);
    va_end(args);
}

/* ---- random ---- */

uint64_t check_random(struct check_row *row) { return rng_u64(row->stream, row->counter++); }
uint32_t check_below(struct check_row *row, uint32_t n) {
    return (uint32_t)(check_random(row) % n);
}
float check_uniform(struct check_row *row, float low, float high) {
    double u = (double)(check_random(row) >> 11) * 0x1p-53;
    return (float)(low + u * ((double)high - low));
}

/* ---- memory ---- */

static void *must(void *p) {
    if (p && p != MAP_FAILED) return p;
    fprintf(stderr, "1bit-check: out of memory\n");
    exit(3);
}

/* Ends at a page that cannot be touched; so only multiples of the alignment are aligned. */
static void *before_guard_page(size_t bytes) {
    size_t page = os_page_size(), whole = (bytes + page - 1) / page * page;
    char *p = must(mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0));
    mprotect(p + whole, page, PROT_NONE);
    return p + whole - bytes;
}

void *check_bytes(struct check_row *row, size_t bytes) {
    unsigned char *p = before_guard_page(bytes);
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)check_random(row);
    return p;
}

float *check_input(struct check_row *row, size_t n, float low, float high) {
    float *p = before_guard_page(n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = check_uniform(row, low, high);
    return p;
}

void *check_scratch(struct check_row *row, size_t bytes) {
    size_t whole = (bytes + 63) / 64 * 64 + 2 * GUARD;
    unsigned char *p = must(aligned_alloc(64, whole));
    memset(p, GUARD_BYTE, whole);
    memset(p + GUARD, 0xff, bytes); /* NaN */
    if (row->guards == GUARDED_MAX) check_fail(row, "more than %d guarded blocks", GUARDED_MAX);
    else row->guarded[row->guards++] = (struct guarded){p, bytes};
    return p + GUARD;
}

float *check_output(struct check_row *row, size_t n) {
    return check_scratch(row, n * sizeof(float));
}

void check_guards(struct check_row *row) {
    for (int g = 0; g < row->guards; g++) {
        const unsigned char *p = row->guarded[g].p;
        size_t bytes = row->guarded[g].bytes;
        for (size_t i = 0; i < GUARD; i++) {
            if (p[i] != GUARD_BYTE)
                check_fail(row, "wrote %zu bytes before block %d", GUARD - i, g);
            if (p[GUARD + bytes + i] != GUARD_BYTE)
                check_fail(row, "wrote byte %zu after block %d of %zu bytes", i, g, bytes);
        }
    }
}

/* ---- files ---- */

const char *check_golden(struct check_row *row, const char *format, ...) {
    enum { SIZE = 1024 };
    char *path = must(malloc(SIZE));
    int n = snprintf(path, SIZE, "%s/", row->golden);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, SIZE - (size_t)n, format, args);
    va_end(args);
    return path;
}

char *check_file(struct check_row *row, const char *path, size_t *n) {
    char *text, line[1024];
    ob_error error;
    if (os_read_file(path, (size_t)1 << 30, &text, n, &error) != OB_OK)
        check_end(row, "%s", ob_error_line(&error, line, sizeof line));
    return text;
}

/* ---- comparisons ---- */

void check_compared(struct check_row *row, size_t n, double worst) {
    row->outcome->values += n;
    if (worst > row->outcome->worst) row->outcome->worst = worst;
}

static void count(struct check_row *row, const float *got, const float *want, size_t n) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (isfinite(d) && d > worst) worst = d;
    }
    check_compared(row, n, worst);
}

void check_equal(struct check_row *row, const float *got, const float *want, size_t n) {
    size_t bad = 0, first = 0;
    count(row, got, want, n);
    for (size_t i = n; i-- > 0;)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
            bad++, first = i;
    if (bad > 0)
        check_fail(row, "%zu of %zu differ, first [%zu]: %a, should be %a", bad, n, first,
                   (double)got[first], (double)want[first]);
}

void check_close(struct check_row *row, const float *got, const float *want, size_t n,
                 struct check_bound bound) {
    count(row, got, want, n);
    for (size_t i = 0; i < n; i++) {
        double g = got[i], w = want[i];
        if (isnan(w) ? isnan(g) : g == w) continue;
        if (!(fabs(g - w) <= bound.absolute + bound.relative * fabs(w))) {
            check_fail(row, "[%zu] of %zu: %.9g, should be %.9g", i, n, g, w);
            return;
        }
    }
}

void check_nmse(struct check_row *row, const float *got, const float *want, size_t n,
                double limit) {
    double error = 0, power = 0;
    count(row, got, want, n);
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        power += (double)want[i] * want[i];
    }
    if (!(error <= limit * power))
        check_fail(row, "NMSE %.3g of %zu, at most %.3g", power > 0 ? error / power : error, n,
                   limit);
}

/* ---- time ---- */

/* CPU time, so that other programs disturb little: a row runs on one thread. */
double check_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool check_again(struct check_row *row, double bytes, double flops) {
    enum { WARM = 3, ROUNDS = 1 << 24 };
    const double enough = 0.1;
    if (!row->bench) return row->round++ == 0;
    double now = check_seconds();
    if (row->round == WARM) row->start = now;
    double spent = now - row->start;
    if (row->round > WARM && (spent >= enough || row->round == ROUNDS)) {
        double each = spent / (row->round - WARM);
        check_note(row, "%10.2f us %8.1f GB/s %4.0f%% %8.1f GFLOP/s", each * 1e6,
                   bytes / each / 1e9, row->bandwidth > 0 ? 100 * bytes / each / row->bandwidth : 0,
                   flops / each / 1e9);
        row->round = 0;
        return false;
    }
    row->round++;
    return true;
}
