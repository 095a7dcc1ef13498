/* SPDX-License-Identifier: Apache-2.0
 * stats.c: means with standard errors, covariance, quantiles. */
#include <math.h>
#include <stdlib.h>

#include "eval/eval.h"

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return n ? sum / (double)n : 0;
}

double eval_covariance(const double *x, const double *y, size_t n) {
    double mx = mean_of(x, n), my = mean_of(y, n), sum = 0;
    if (n < 2) return 0;
    for (size_t i = 0; i < n; i++) sum += (x[i] - mx) * (y[i] - my);
    return sum / (double)n / (double)(n - 1);
}

struct eval_stat eval_mean(const double *x, size_t n) {
    return (struct eval_stat){mean_of(x, n), sqrt(eval_covariance(x, x, n))};
}

struct eval_stat eval_share(size_t hits, size_t n) {
    double p = n ? (double)hits / (double)n : 0;
    return (struct eval_stat){p, n > 1 ? sqrt(p * (1 - p) / (double)(n - 1)) : 0};
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void eval_sort(double *x, size_t n) {
    if (n) qsort(x, n, sizeof *x, ascending);
}

double eval_quantile(const double *sorted, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    if (i >= n - 1) return sorted[n - 1];
    at -= (double)i;
    return (1 - at) * sorted[i] + at * sorted[i + 1];
}
