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
#include "sample/passes.h"
#include "sample/sample.h"

struct sample_item {
    float logit;
    int32_t id;
};

/* Candidates: the whole vocabulary, as a row of logits (id is the index), until a sampler drops
 * some; then items. Over 150,000 candidates each pass that is no plain loop over floats shows. */
struct sample_list {
    bool whole;
    uint32_t vocab;
    /* while whole */
    const float *logit; /* [vocab] the caller's, or `own` once it was changed */
    float *own;
    float *block;       /* the greatest logit of each SAMPLE_BLOCK */
    /* after that */
    struct sample_item *item;
    uint32_t n;         /* at least 1 */
    uint32_t sorted;    /* the first `sorted` items are the greatest, best first */
    /* scratch [vocab] */
    float *weight;      /* of sample_list_weigh */
    uint32_t *where;    /* of sample_list_edit; all zero outside */
};

/* What a sampler may look at besides the list. */
struct sample_context {
    const ob_sampling *settings; /* order, logit_bias and dry_breakers are not used after open */
    const struct sample_vocab *vocab;
    const int32_t *history;
    size_t history_n;
    void *state; /* what the sampler's open made */
};

struct sampler {
    const char *name;   /* as `order` spells it */
    bool internal;      /* the chain places it: `order` may not name it */
    bool last;          /* it runs after all others wherever it is named */
    bool keeps_best;    /* the most likely candidate stays so */
    bool (*active)(const ob_sampling *settings); /* false: it would change nothing */
    void (*apply)(struct sample_list *list, const struct sample_context *context);
    /* The three may be NULL. *state starts as NULL; close may get NULL. */
    ob_status (*open)(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error);
    void (*close)(void *state);
    /* Candidate i of the list was drawn, its probability there is p. */
    void (*drawn)(const struct sample_list *list, const struct sample_context *context, uint32_t i,
                  double p);
};

#define SAMPLER(name) extern const struct sampler sampler_##name;
#include "sample/samplers.def"
#undef SAMPLER

/* ---- list.c ---- */

/* All ids with a logit above -inf; the blocks are already there. */
void sample_list_fill(struct sample_list *list, const float *logits);
/* Only ids whose bit is set. */
void sample_list_mask(struct sample_list *list, const uint32_t *mask);
/* -inf if the list is whole and nothing is left. */
struct sample_item sample_list_best(const struct sample_list *list);
void sample_list_keep_best(struct sample_list *list);
/* Drops candidates whose logit is not in [low, high]. */
void sample_list_keep(struct sample_list *list, float low, float high);
/* Makes it items. */
void sample_list_gather(struct sample_list *list);
/* Candidate i, also of a whole list. */
struct sample_item sample_list_at(const struct sample_list *list, uint32_t i);
/* weight[i] = exp(logit[i] - best) of sample_list_count candidates; returns their sum. */
double sample_list_weigh(struct sample_list *list);
uint32_t sample_list_count(const struct sample_list *list);
/* Divides all logits. */
void sample_list_divide(struct sample_list *list, float by);

/* Changes of few tokens: between edit and edited, `find` gives a candidate's logit to be changed,
 * or NULL if there is none of this id. Lower it to -inf to drop it. */
void sample_list_edit(struct sample_list *list);
float *sample_list_find(struct sample_list *list, int32_t id);
void sample_list_edited(struct sample_list *list, const int32_t *id, size_t n);

/* ---- order.c: over items ---- */

/* Makes at least min(k, n) leading items the greatest, best first, ties by lower id; n stays. */
void sample_list_sort(struct sample_list *list, uint32_t k);
/* Keeps the k greatest; ties by lower id. Also of a whole list. */
void sample_list_top(struct sample_list *list, uint32_t k);

/* Which candidates come first: those whose logit is nearest to `center` (INFINITY: the greatest),
 * then greater ones, then lower ids. */
struct sample_rank {
    float center;
    double wanted; /* weight that those who stay must reach */
    bool beyond;   /* and exceed */
    uint32_t least; /* how many stay at least */
};
/* Keeps the fewest first candidates that do. list->weight holds their weights and moves along. */
void sample_list_cut(struct sample_list *list, const struct sample_rank *rank);

/* ---- names.c ---- */

struct sample_step {
    const struct sampler *sampler;
    void *state;
};
enum { SAMPLE_STEPS = 16 }; /* more than there are samplers */
/* The active samplers of the settings, in order. */
ob_status sample_read_order(const ob_sampling *settings, struct sample_step step[SAMPLE_STEPS],
                            size_t *n, ob_error *error);

/* ---- mirostat.c: its two versions have one state ---- */

ob_status mirostat_open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                        ob_error *error);
void mirostat_drawn(const struct sample_list *list, const struct sample_context *context,
                    uint32_t i, double p);

/* ---- chain.c ---- */

/* Sets the error for a setting out of range; returns OB_ERR_ARGUMENT. */
ob_status sample_refuse(ob_error *error, const char *setting, const char *must, double value);

#endif
