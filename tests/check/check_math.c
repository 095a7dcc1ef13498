/* SPDX-License-Identifier: Apache-2.0
 * check_math.c: errors of exp, softplus, tanh and erf in ULP, over the plain C vocabulary
 * (every other gives the same bits: the rows of simple ops prove it). */
#include <math.h>

#include "check.h"
#include "kernels/body/vec_scalar.h"
#include "kernels/body/math.h"

struct math_case {
    const char *name;
    vf (*ours)(vf);
    double (*exact)(double);
    float low, high;
    double ulps; /* bound */
};

static vf ours_exp(vf x) { return math_exp(x); }
static double exact_softplus(double x) { return x > 20 ? x : log1p(exp(x)); }
static vf ours_softplus(vf x) { return math_softplus(x); }
static vf ours_tanh(vf x) { return math_tanh(x); }
static vf ours_erf(vf x) { return math_erf(x); }

static double ulps_between(float got, double want) {
    float near = (float)want;
    double ulp = nextafterf(fabsf(near), INFINITY) - fabsf(near);
    return fabs(got - want) / ulp;
}

static void sweep(struct check_row *row, const void *arg) {
    enum { POINTS = 1 << 17 };
    const struct math_case *c = arg;
    double worst = 0, at = 0;
    for (int i = 0; i < POINTS; i++) {
        vf x, y;
        for (int l = 0; l < VF; l++) {
            /* Even steps with jitter, and every fourth lane small numbers of either sign. */
            float u = check_uniform(row, 0, 1);
            x.v[l] = c->low + (c->high - c->low) * ((float)i + u) / POINTS;
            if (l % 4 == 3) x.v[l] = ldexpf(u * 2 - 1, -(int)check_below(row, 30));
        }
        y = c->ours(x);
        for (int l = 0; l < VF; l++) {
            double e = ulps_between(y.v[l], c->exact((double)x.v[l]));
            if (e > worst) worst = e, at = x.v[l];
        }
    }
    check_note(row, "%.2f ULP at %.9g", worst, at);
    if (!(worst <= c->ulps)) check_fail(row, "%.2f ULP at %.9g, at most %.2f", worst, at, c->ulps);
}

static void edges(struct check_row *row, const void *arg) {
    const struct math_case *c = arg;
    const float x[] = {0, -0.0f, INFINITY, -INFINITY, 1e30f, -1e30f, 200, -200, NAN, 0x1p-140f};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
        float got = c->ours(vf_set1(x[i])).v[5], want = (float)c->exact((double)x[i]);
        check_equal(row, &got, &want, 1);
    }
}

void check_math(struct check *check) {
    static const struct math_case cases[] = {
        {"exp", ours_exp, exp, -86.9f, 87.9f, 1.5},
        {"softplus", ours_softplus, exact_softplus, -86.9f, 30, 3},
        {"tanh", ours_tanh, tanh, -10, 10, 1.5},
        {"erf", ours_erf, erf, -5, 5, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_run(check, sweep, &cases[i], "math.%s", cases[i].name);
        check_run(check, edges, &cases[i], "math.%s.edges", cases[i].name);
    }
}
