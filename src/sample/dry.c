/* SPDX-License-Identifier: Apache-2.0
 * dry.c: don't repeat yourself (p-e-w 2024): a token that would prolong a repetition of the last L
 * tokens loses multiplier * base^(L - allowed_length), if L is at least allowed_length. Of several
 * repetitions the longest counts; none reaches back across a sequence breaker.
 *
 * How long the last tokens' repetition is that ends at each earlier place is what the Z function
 * (Gusfield 1997) of the reversed tokens says, in linear time. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/dry_breaks.h"
#include "sample/sampler.h"

struct dry {
    struct dry_breaks *breaks;
    uint32_t window;  /* tokens looked back at most */
    uint32_t *z;      /* [window] */
    int32_t *touched; /* [window] those with a length */
    uint32_t *length; /* [vocab] of the longest repetition, + 1; all zero between steps */
};

static bool active(const ob_sampling *settings) {
    return settings->dry_multiplier > 0 && settings->dry_base >= 1 &&
           settings->dry_penalty_last_n != 0;
}

static void close_dry(void *state) {
    struct dry *d = state;
    if (!d) return;
    dry_breaks_close(d->breaks);
    free(d->z);
    free(d->touched);
    free(d->length);
    free(d);
}

static ob_status open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error) {
    int32_t last = settings->dry_penalty_last_n;
    struct dry *d = *state = calloc(1, sizeof *d);
    if (!d) return error_memory(error, "DRY", sizeof *d);
    d->window = last < 0 || (uint32_t)last > vocab->context ? vocab->context : (uint32_t)last;
    d->z = malloc((d->window + (size_t)1) * sizeof *d->z);
    d->touched = malloc((d->window + (size_t)1) * sizeof *d->touched);
    d->length = calloc(vocab->size, sizeof *d->length);
    if (!d->z || !d->touched || !d->length) return error_memory(error, "DRY", d->window);
    return dry_breaks_open(settings, vocab, &d->breaks, error);
}

/* Tokens at the end that a repetition may have: those behind the last breaker. */
static uint32_t reach(struct dry *d, const int32_t *token, uint32_t n) {
    for (uint32_t after = 0; after < n; after++) {
        int32_t more = dry_breaks_match(d->breaks, token + (n - 1 - after), after + 1);
        if (more >= 0) return after - (uint32_t)more;
    }
    return n;
}

/* z[k]: how many of the last tokens are also the last ones before the k-th from the end. */
static void measure(uint32_t *z, const int32_t *token, uint32_t n) {
    const int32_t *end = token + n - 1;
    uint32_t from = 0, to = 0; /* end[-from], ... before end[-to] repeat the end */
    for (uint32_t k = 1; k < n; k++) {
        uint32_t same = 0;
        if (k < to) same = z[k - from] < to - k ? z[k - from] : to - k;
        while (k + same < n && end[-(ptrdiff_t)same] == end[-(ptrdiff_t)(k + same)]) same++;
        z[k] = same;
        if (k + same > to) {
            from = k;
            to = k + same;
        }
    }
}

static double penalty(const ob_sampling *settings, uint32_t length) {
    double base = (double)settings->dry_base;
    double exponent = length - (double)settings->dry_allowed_length;
    if (base > 1.000001) exponent = fmin(exponent, floor(log((double)FLT_MAX) / log(base)));
    return (double)settings->dry_multiplier * pow(base, exponent);
}

static void lower(struct sample_list *list, struct dry *d, size_t touched,
                  const ob_sampling *settings) {
    sample_list_edit(list);
    for (size_t i = 0; i < touched; i++) {
        int32_t id = d->touched[i];
        float *logit = sample_list_find(list, id);
        if (logit && !dry_breaks_holds(d->breaks, id)) {
            double x = (double)*logit - penalty(settings, d->length[id] - 1);
            *logit = x < (double)-FLT_MAX ? -FLT_MAX : (float)x;
        }
        d->length[id] = 0;
    }
    sample_list_edited(list, d->touched, touched);
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    struct dry *d = context->state;
    const ob_sampling *settings = context->settings;
    uint32_t allowed = (uint32_t)settings->dry_allowed_length;
    uint32_t n = context->history_n < d->window ? (uint32_t)context->history_n : d->window;
    const int32_t *token = context->history + (context->history_n - n);
    size_t touched = 0;
    if (n <= allowed) return;
    uint32_t limit = reach(d, token, n);
    if (limit < allowed) return;
    measure(d->z, token, n);
    for (uint32_t k = 1; k < n; k++) {
        int32_t next = token[n - k]; /* came after what is repeated */
        uint32_t length = d->z[k] < limit ? d->z[k] : limit;
        if (length < allowed || next < 0 || (uint32_t)next >= list->vocab) continue;
        if (!d->length[next]) d->touched[touched++] = next;
        if (d->length[next] < length + 1) d->length[next] = length + 1;
    }
    lower(list, d, touched, settings);
}

const struct sampler sampler_dry = {
    .name = "dry", .active = active, .apply = apply, .open = open, .close = close_dry};
