/* SPDX-License-Identifier: Apache-2.0
 * chain.c: a request's samplers in their order, and the draw at the end. A sampler that the order
 * does not name does not run. Nothing is allocated after open. One chain a request, one thread at a
 * time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "sample/sample.h"
#include "sample/sampler.h"

static const char default_order[] = "penalties;top_k;top_p;min_p;temperature";

static const struct sampler *const samplers[] = {
#define SAMPLER(name) &sampler_##name,
#include "sample/samplers.def"
#undef SAMPLER
};
enum { SAMPLERS = sizeof samplers / sizeof samplers[0] };

struct sample_chain {
    ob_sampling settings; /* settings.order is not used after open */
    uint32_t vocab;
    const struct sampler *step[SAMPLERS]; /* the active ones, in order */
    size_t steps;
    bool greedy; /* the best raw logit, whatever the samplers: no list is kept */
    struct sample_list list;
};

ob_status sample_refuse(ob_error *error, const char *setting, const char *must, double value) {
    char number[32];
    error_set(error, OB_ERR_ARGUMENT, "must be %s, not %s", must, str_number(value, number));
    error_at(error, NULL, setting, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* ---- open ------------------------------------------------------------------------------------ */

static const struct sampler *find(struct str name) {
    for (size_t i = 0; i < SAMPLERS; i++)
        if (str_is(name, samplers[i]->name)) return samplers[i];
    return NULL;
}

static ob_status refuse_order(ob_error *error, struct str name, const char *why) {
    char known[256] = "";
    for (size_t i = 0; i < SAMPLERS; i++) {
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, samplers[i]->name, sizeof known - strlen(known) - 1);
    }
    error_set(error, OB_ERR_ARGUMENT, "sampler \"%.*s\" %s (known: %s; separated by \";\")",
              STR_ARG(name), why, known);
    error_at(error, NULL, "order", OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

static ob_status read_order(struct sample_chain *chain, const char *order, ob_error *error) {
    const struct sampler *seen[SAMPLERS];
    size_t n = 0;
    if (!*order) return OB_OK;
    for (const char *p = order;; p++) {
        struct str name = {p, strcspn(p, ";")};
        const struct sampler *sampler = find(name);
        if (!sampler) return refuse_order(error, name, "is unknown");
        for (size_t i = 0; i < n; i++)
            if (seen[i] == sampler) return refuse_order(error, name, "is named twice");
        seen[n++] = sampler;
        if (sampler->active(&chain->settings)) chain->step[chain->steps++] = sampler;
        p += name.n;
        if (!*p) return OB_OK;
    }
}

/* At temperature 0 the answer is the best candidate. Every sampler but the penalties keeps the best
 * one, so without them it is the best raw logit. */
static bool is_greedy(const struct sample_chain *chain) {
    if (chain->settings.temperature != 0) return false;
    for (size_t i = 0; i < chain->steps; i++)
        if (chain->step[i] == &sampler_penalties) return false;
    return true;
}

ob_status sample_open(const ob_sampling *settings, uint32_t vocab, struct sample_chain **out,
                      ob_error *error) {
    *out = NULL;
    if (vocab == 0 || vocab > INT32_MAX)
        return sample_refuse(error, "vocab", "from 1 to 2147483647", vocab);
    for (size_t i = 0; i < SAMPLERS; i++) {
        ob_status status = samplers[i]->check(settings, error);
        if (status != OB_OK) return status;
    }
    struct sample_chain *chain = calloc(1, sizeof *chain);
    if (!chain) return error_memory(error, "a sampler chain", sizeof *chain);
    chain->settings = *settings;
    chain->vocab = vocab;
    ob_status status = read_order(chain, settings->order ? settings->order : default_order, error);
    chain->settings.order = NULL;
    chain->greedy = is_greedy(chain);
    if (status == OB_OK && !chain->greedy) {
        struct sample_list *list = &chain->list;
        list->vocab = vocab;
        list->item = malloc(vocab * sizeof *list->item);
        list->weight = malloc(vocab * sizeof *list->weight);
        list->count = calloc(vocab, sizeof *list->count);
        if (!list->item || !list->weight || !list->count)
            status = error_memory(error, "sampling candidates", (size_t)vocab * 16);
    }
    if (status != OB_OK) {
        sample_close(&chain);
        return status;
    }
    *out = chain;
    return OB_OK;
}

void sample_close(struct sample_chain **chain) {
    if (!*chain) return;
    free((*chain)->list.item);
    free((*chain)->list.weight);
    free((*chain)->list.count);
    free(*chain);
    *chain = NULL;
}

/* ---- draw ------------------------------------------------------------------------------------ */

static int32_t draw(struct sample_chain *chain, uint64_t position) {
    struct sample_list *list = &chain->list;
    if (chain->settings.temperature == 0) return sample_list_best(list).id;
    double left = rng_unit(chain->settings.seed, position) * sample_list_weigh(list);
    int32_t id = -1;
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->weight[i] == 0) continue;
        id = list->item[i].id; /* the last one also takes what rounding leaves */
        left -= (double)list->weight[i];
        if (left < 0) break;
    }
    return id;
}

int32_t sample_token(struct sample_chain *chain, const float *logits, const int32_t *history,
                     size_t history_n, float *logprob) {
    float best = sample_max(logits, chain->vocab);
    if (isnan(best)) return -1;
    int32_t id = 0;
    if (chain->greedy) {
        while (logits[id] != best) id++;
    } else {
        struct sample_context context = {&chain->settings, history, history_n};
        sample_list_fill(&chain->list, logits);
        for (size_t i = 0; i < chain->steps; i++) chain->step[i]->apply(&chain->list, &context);
        id = draw(chain, history_n);
    }
    if (logprob) {
        double sum = sample_exp_sum(logits, chain->vocab, best, NULL);
        *logprob = (float)((double)logits[id] - (double)best - log(sum));
    }
    return id;
}
