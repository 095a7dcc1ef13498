/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler.h: what a sampler is, inside sample/. It changes the candidate list in place: drops
 * candidates or changes their logits, and always leaves at least one. Logits in the list are finite
 * or -inf, the best one finite; -inf means a candidate that is never drawn. */
#ifndef SAMPLE_SAMPLER_H
#define SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onebit.h"

struct sample_item {
    float logit;
    int32_t id;
};

struct sample_list {
    struct sample_item *item;
    float *weight;   /* [vocab] scratch of sample_list_weigh */
    uint32_t *count; /* [vocab] scratch of penalties; all zero between samplers */
    uint32_t n;      /* at least 1 */
    uint32_t sorted; /* the first `sorted` items are the greatest, best first */
    uint32_t vocab;
};

/* What a sampler may look at besides the list. */
struct sample_context {
    const ob_sampling *settings;
    const int32_t *history;
    size_t history_n;
};

struct sampler {
    const char *name; /* as `order` spells it */
    /* OB_ERR_ARGUMENT naming the setting. */
    ob_status (*check)(const ob_sampling *settings, ob_error *error);
    bool (*active)(const ob_sampling *settings); /* false: it would change nothing */
    void (*apply)(struct sample_list *list, const struct sample_context *context);
};

#define SAMPLER(name) extern const struct sampler sampler_##name;
#include "sample/samplers.def"
#undef SAMPLER

/* ---- list.c ---- */

/* All ids with a logit above -inf, in id order. */
void sample_list_fill(struct sample_list *list, const float *logits);
/* Makes at least min(k, n) leading items the greatest, best first, ties by lower id; n stays. */
void sample_list_sort(struct sample_list *list, uint32_t k);
struct sample_item sample_list_best(const struct sample_list *list);
void sample_list_keep_best(struct sample_list *list);
/* weight[i] = exp(logit[i] - best); returns their sum. */
double sample_list_weigh(struct sample_list *list);

/* ---- softmax.c ---- */

/* The greatest of x; NaN if there is a NaN or +inf, or all are -inf. */
float sample_max(const float *x, size_t n);
/* out[i] = exp(x[i] - max) for x <= max, relative error below 3e-7, 0 below exp(-87). out may be x,
 * or NULL. Returns the sum, added in a fixed order. */
double sample_exp_sum(const float *x, size_t n, float max, float *out);

/* ---- chain.c ---- */

/* Sets the error for a setting out of range; returns OB_ERR_ARGUMENT. */
ob_status sample_refuse(ob_error *error, const char *setting, const char *must, double value);

#endif
