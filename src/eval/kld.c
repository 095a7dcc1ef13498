/* SPDX-License-Identifier: Apache-2.0
 *
 * kld.c: how far a model's distributions are from a reference's. Definitions are llama.cpp's, so
 * that figures can be set side by side: KLD = sum p_ref (log p_ref - log p) over tokens whose
 * reference log probability is above -16; dp = p - p_ref of the text's next token. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "eval/eval.h"

const double eval_quantiles[8] = {0.999, 0.99, 0.95, 0.9, 0.1, 0.05, 0.01, 0.001};

bool eval_compare(const struct eval_table_row *ref, uint32_t vocab, const float *logits,
                  int32_t target, const double exps[65536], struct eval_position *out) {
    double log_sum, kld = 0;
    uint32_t top;
    const uint8_t *code = ref->code;
    if (!eval_log_sum(logits, vocab, &log_sum, &top)) return false;
    for (uint32_t byte = 0; byte < (vocab + 7) / 8; byte++)
        for (unsigned bits = ref->listed[byte]; bits; bits &= bits - 1, code += 2) {
            uint32_t i = byte * 8 + (uint32_t)__builtin_ctz(bits);
            uint32_t c = (uint32_t)(code[0] | code[1] << 8);
            kld += exps[c] * (eval_table_log(c) - ((double)logits[i] - log_sum));
        }
    *out = (struct eval_position){.kld = kld,
                                  .nll = log_sum - (double)logits[target],
                                  .nll_ref = -(double)ref->target,
                                  .same_top = top == ref->top};
    return true;
}

/* ---- figures --------------------------------------------------------------------------------- */

static struct eval_stat exp_of(struct eval_stat log) {
    double value = exp(log.value);
    return (struct eval_stat){value, value * log.error};
}

static double error_of_difference(double a, double b, double covariance) {
    double square = a * a + b * b - 2 * covariance;
    return square > 0 ? sqrt(square) : 0;
}

static void perplexities(const double *nll, const double *ref, size_t n,
                         struct eval_divergence *d) {
    struct eval_stat a = eval_mean(nll, n), b = eval_mean(ref, n);
    double covariance = eval_covariance(nll, ref, n);
    d->ppl = exp_of(a);
    d->ppl_ref = exp_of(b);
    d->correlation = a.error > 0 && b.error > 0 ? covariance / (a.error * b.error) : 0;
    d->ppl_log_ratio =
        (struct eval_stat){a.value - b.value, error_of_difference(a.error, b.error, covariance)};
    d->ppl_ratio = exp_of(d->ppl_log_ratio);
    d->ppl_difference =
        (struct eval_stat){d->ppl.value - d->ppl_ref.value,
                           error_of_difference(d->ppl.error, d->ppl_ref.error,
                                               d->ppl.value * d->ppl_ref.value * covariance)};
}

static void spread(double *x, size_t n, double *min, double *median, double *max,
                   double quantile[8]) {
    eval_sort(x, n);
    *min = x[0];
    *max = x[n - 1];
    *median = eval_quantile(x, n, 0.5);
    for (size_t i = 0; i < 8; i++) quantile[i] = eval_quantile(x, n, eval_quantiles[i]);
}

ob_status eval_divergence(const struct eval_position *position, size_t n, struct eval_divergence *d,
                          ob_error *error) {
    size_t same = 0;
    *d = (struct eval_divergence){.n = n};
    if (n == 0) return error_set(error, OB_ERR_ARGUMENT, "nothing was compared");
    double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    if (!x || !y) {
        free(x);
        free(y);
        return error_memory(error, "statistics", n * sizeof *x);
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = position[i].nll;
        y[i] = position[i].nll_ref;
        same += position[i].same_top;
    }
    perplexities(x, y, n, d);
    d->same_top = eval_share(same, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = exp(-position[i].nll) - exp(-position[i].nll_ref);
        y[i] = x[i] * x[i];
    }
    d->p_difference = eval_mean(x, n);
    struct eval_stat square = eval_mean(y, n);
    double rms = sqrt(square.value);
    d->p_rms = (struct eval_stat){rms, rms > 0 ? 0.5 / rms * square.error : 0};
    spread(x, n, &d->p_min, &d->p_median, &d->p_max, d->p_quantile);
    for (size_t i = 0; i < n; i++) x[i] = position[i].kld;
    d->kld = eval_mean(x, n);
    spread(x, n, &d->kld_min, &d->kld_median, &d->kld_max, d->kld_quantile);
    free(x);
    free(y);
    return OB_OK;
}
