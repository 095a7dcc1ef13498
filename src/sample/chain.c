/* SPDX-License-Identifier: Apache-2.0
 * chain.c: a request's samplers in their order, and the draw at the end. A sampler that the order
 * does not name does not run. Nothing is allocated after open, but for texts of tokens. One chain a
 * request, one thread at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "sample/logprobs.h"
#include "sample/sampler.h"

struct sample_chain {
    ob_sampling settings; /* what it points to is not used after open */
    const struct sample_vocab *vocab;
    struct sample_step step[SAMPLE_STEPS]; /* the active ones, in order */
    size_t steps;
    bool best;   /* no draw: the best candidate at the end */
    bool greedy; /* the best raw logit, whatever the samplers: no list is kept */
    bool drawn;  /* the list is as the draw left it */
    struct sample_list list;
};

/* ---- settings -------------------------------------------------------------------------------- */

ob_status sample_refuse(ob_error *error, const char *setting, const char *must, double value) {
    char number[32];
    error_set(error, OB_ERR_ARGUMENT, "must be %s, not %s", must, str_number(value, number));
    error_at(error, NULL, setting, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* The bounds of a real, as the float that holds it knows them. */
static bool within(double x, double min, double max) {
    return x >= (double)(float)min && x <= (double)(float)max;
}

static ob_status check_numbers(const ob_sampling *s, ob_error *error) {
#define REAL(member, min, max, must)                                                  \
    if (!within((double)s->member, (min), (max)))                                     \
        return sample_refuse(error, #member, "a number " must, (double)s->member);
#define INTEGER(member, min, max, must)                                               \
    if (s->member < (min) || s->member > (max))                                       \
        return sample_refuse(error, #member, "an integer, " must, (double)s->member);
#define KIND_real REAL
#define KIND_integer INTEGER
#define OB_SETTING(member, kind, otherwise, min, max, must, gguf, hf) \
    KIND_##kind(member, min, max, must)
#include "onebit_sampling.def"
#undef OB_SETTING
#undef KIND_integer
#undef KIND_real
#undef INTEGER
#undef REAL
    return OB_OK;
}

static ob_status check_bias(const ob_sampling *s, ob_error *error) {
    for (size_t i = 0; i < s->logit_bias_n; i++) {
        float bias = s->logit_bias[i].bias;
        if (bias != -INFINITY && !within((double)bias, -1e6, 1e6))
            return sample_refuse(error, "logit_bias", "a number from -1000000 to 1000000, or -inf",
                                 (double)bias);
    }
    return OB_OK;
}

ob_status sample_check(const ob_sampling *settings, ob_error *error) {
    struct sample_step step[SAMPLE_STEPS];
    size_t n;
    ob_status s = check_numbers(settings, error);
    if (s == OB_OK) s = check_bias(settings, error);
    if (s == OB_OK) s = sample_read_order(settings, step, &n, error);
    return s;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* At temperature 0 the answer is the best candidate; if all samplers keep it, the best raw
 * logit. */
static void find_shortcuts(struct sample_chain *chain) {
    bool keeps = true, dynamic = false;
    for (size_t i = 0; i < chain->steps; i++) {
        const struct sampler *sampler = chain->step[i].sampler;
        if (!sampler->keeps_best) keeps = false;
        if (sampler == &sampler_temperature) dynamic = chain->settings.dynatemp_range > 0;
    }
    chain->best = chain->settings.temperature == 0 && !dynamic;
    chain->greedy = chain->best && keeps;
}

static ob_status open_list(struct sample_list *list, uint32_t vocab, ob_error *error) {
    size_t n = vocab;
    list->vocab = vocab;
    list->item = malloc((n + 1) * sizeof *list->item); /* one more is written by list.c */
    list->own = malloc(n * sizeof *list->own);
    list->weight = malloc(n * sizeof *list->weight);
    list->where = calloc(n, sizeof *list->where);
    list->block = malloc((n / SAMPLE_BLOCK + 1) * sizeof *list->block);
    if (list->item && list->own && list->weight && list->where && list->block) return OB_OK;
    return error_memory(error, "sampling candidates", n * 20);
}

static ob_status open_steps(struct sample_chain *chain, const ob_sampling *settings,
                            ob_error *error) {
    ob_status s = sample_read_order(settings, chain->step, &chain->steps, error);
    for (size_t i = 0; s == OB_OK && i < chain->steps; i++) {
        const struct sampler *sampler = chain->step[i].sampler;
        if (sampler->open)
            s = sampler->open(settings, chain->vocab, &chain->step[i].state, error);
    }
    return s;
}

ob_status sample_open(const ob_sampling *settings, const struct sample_vocab *vocab,
                      struct sample_chain **out, ob_error *error) {
    *out = NULL;
    if (vocab->size == 0 || vocab->size > INT32_MAX)
        return sample_refuse(error, "vocab", "from 1 to 2147483647", vocab->size);
    ob_status status = sample_check(settings, error);
    if (status != OB_OK) return status;
    struct sample_chain *chain = calloc(1, sizeof *chain);
    if (!chain) return error_memory(error, "a sampler chain", sizeof *chain);
    chain->settings = *settings;
    chain->vocab = vocab;
    status = open_steps(chain, settings, error);
    if (status == OB_OK) status = open_list(&chain->list, vocab->size, error);
    if (status != OB_OK) {
        sample_close(&chain);
        return status;
    }
    find_shortcuts(chain);
    *out = chain;
    return OB_OK;
}

void sample_close(struct sample_chain **p) {
    struct sample_chain *chain = *p;
    if (!chain) return;
    for (size_t i = 0; i < chain->steps; i++)
        if (chain->step[i].sampler->close) chain->step[i].sampler->close(chain->step[i].state);
    free(chain->list.item);
    free(chain->list.own);
    free(chain->list.weight);
    free(chain->list.where);
    free(chain->list.block);
    free(chain);
    *p = NULL;
}

/* ---- draw ------------------------------------------------------------------------------------ */

static struct sample_context context_of(const struct sample_chain *chain,
                                        const struct sample_input *input, void *state) {
    return (struct sample_context){&chain->settings, chain->vocab, input->history,
                                   input->history_n, state};
}

/* Samplers that learn from what was drawn. */
static void tell(struct sample_chain *chain, const struct sample_input *input, uint32_t i,
                 double p) {
    for (size_t k = 0; k < chain->steps; k++) {
        struct sample_context context = context_of(chain, input, chain->step[k].state);
        if (chain->step[k].sampler->drawn)
            chain->step[k].sampler->drawn(&chain->list, &context, i, p);
    }
}

static int32_t draw(struct sample_chain *chain, const struct sample_input *input) {
    struct sample_list *list = &chain->list;
    if (chain->best) sample_list_keep_best(list);
    double sum = sample_list_weigh(list);
    double left = rng_unit(chain->settings.seed, input->history_n) * sum;
    uint32_t at = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->weight[i] == 0) continue;
        at = i; /* the last one also takes what rounding leaves */
        left -= (double)list->weight[i];
        if (left < 0) break;
    }
    tell(chain, input, at, (double)list->weight[at] / sum);
    return sample_list_at(list, at).id;
}

int32_t sample_token(struct sample_chain *chain, const struct sample_input *input) {
    struct sample_list *list = &chain->list;
    float best = sample_passes()->max(input->logits, list->vocab, list->block);
    chain->drawn = false;
    if (isnan(best)) return SAMPLE_BROKEN;
    sample_list_fill(list, input->logits);
    if (input->mask) sample_list_mask(list, input->mask);
    if (chain->greedy) {
        struct sample_item item = sample_list_best(list);
        return item.logit > -INFINITY ? item.id : SAMPLE_NONE;
    }
    for (size_t i = 0; i < chain->steps; i++) {
        struct sample_context context = context_of(chain, input, chain->step[i].state);
        if (list->whole && sample_list_best(list).logit == -INFINITY) return SAMPLE_NONE;
        chain->step[i].sampler->apply(list, &context);
    }
    if (list->whole && sample_list_best(list).logit == -INFINITY) return SAMPLE_NONE;
    chain->drawn = true;
    return draw(chain, input);
}

float sample_logprobs(struct sample_chain *chain, const struct sample_input *input, bool after,
                      int32_t id, ob_logprob *top, size_t n, size_t *top_n) {
    struct sample_list *list = &chain->list;
    if (after && !chain->drawn) { /* greedy: it had to be this one */
        *top_n = n > 0;
        if (n) top[0] = (ob_logprob){id, 0};
        return 0;
    }
    if (!after) {
        sample_passes()->max(input->logits, list->vocab, list->block);
        sample_list_fill(list, input->logits);
    }
    chain->drawn = false;
    return logprobs_of_list(list, id, top, n, top_n);
}
