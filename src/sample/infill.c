/* SPDX-License-Identifier: Apache-2.0
 * infill.c: for text between a prefix and a suffix (llama.cpp's sampler of this name): ends early
 * rather than writing on. If ending is likely against the number of candidates, only tokens that
 * end are left. Otherwise candidates that begin with one another count together, as the likelier
 * of the two, and those with less than 0.2, then with less than their even share, are dropped.
 * Meant to follow top_k: only the first MOST candidates are compared. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/sampler.h"

enum { MOST = 256 };

struct infill {
    struct buf text; /* pieces of the candidates */
    uint32_t start[MOST + 1];
    double p[MOST];
    bool ends[MOST], gone[MOST];
};

static bool active(const ob_sampling *settings) { return settings != NULL; }

static void close_infill(void *state) {
    struct infill *f = state;
    if (!f) return;
    buf_free(&f->text);
    free(f);
}

static ob_status open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error) {
    (void)settings;
    if (!vocab->is_end) {
        error_set(error, OB_ERR_ARGUMENT, "infill: this vocabulary has no texts");
        error_at(error, NULL, "order", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    *state = calloc(1, sizeof(struct infill));
    return *state ? OB_OK : error_memory(error, "infill", sizeof(struct infill));
}

/* Only tokens that end, or only those that do not. */
static void keep_ends(struct sample_list *list, const struct sample_vocab *vocab) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++)
        if (vocab->is_end(vocab->user, list->item[i].id)) list->item[n++] = list->item[i];
    list->n = n;
    list->sorted = 0;
}

static struct str piece(const struct infill *f, uint32_t i) {
    return (struct str){f->text.p + f->start[i], f->start[i + 1] - f->start[i]};
}

static bool begins(struct str a, struct str b) {
    return a.n > 0 && a.n <= b.n && memcmp(a.p, b.p, a.n) == 0;
}

static void read_candidates(struct infill *f, const struct sample_list *list,
                            const struct sample_vocab *vocab, double sum) {
    buf_clear(&f->text);
    f->start[0] = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        int32_t id = list->item[i].id;
        f->p[i] = (double)list->weight[i] / sum;
        f->ends[i] = vocab->is_end(vocab->user, id);
        f->gone[i] = false;
        vocab->piece(vocab->user, id, false, &f->text);
        f->start[i + 1] = (uint32_t)f->text.n;
    }
}

static void combine(struct infill *f, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n && !f->gone[i]; j++) {
            if (i == j || f->gone[j] || !begins(piece(f, i), piece(f, j))) continue;
            uint32_t to = f->p[j] > f->p[i] ? j : i, from = to == i ? j : i;
            f->p[to] += f->p[from];
            f->p[from] = 0;
            f->gone[from] = true;
        }
}

/* Drops candidates of less than p that do not end; returns how many others do not, the sum of all
 * that stay in *sum. */
static uint32_t drop(struct infill *f, struct sample_list *list, double p, double *sum) {
    uint32_t n = 0, words = 0;
    *sum = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if (f->p[i] < p && !f->ends[i]) continue;
        words += !f->ends[i];
        *sum += f->p[i];
        f->p[n] = f->p[i];
        f->ends[n] = f->ends[i];
        list->item[n++] = list->item[i];
    }
    list->n = n;
    return words;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    struct infill *f = context->state;
    const struct sample_vocab *vocab = context->vocab;
    sample_list_gather(list);
    sample_list_sort(list, MOST);
    double sum = sample_list_weigh(list), ends = 0, share;
    for (uint32_t i = 0; i < list->n; i++)
        if (vocab->is_end(vocab->user, list->item[i].id)) ends += (double)list->weight[i];
    if (3 * ends * list->n > sum - ends) {
        keep_ends(list, vocab);
        return;
    }
    struct sample_item best = list->item[0];
    if (list->n > MOST) list->n = MOST;
    list->sorted = 0;
    read_candidates(f, list, vocab, sum);
    combine(f, list->n);
    uint32_t words = drop(f, list, 0.2, &share);
    if (words == 0) {
        list->n = 1;
        list->item[0] = best;
        if (vocab->end >= 0) list->item[0].id = vocab->end;
        return;
    }
    drop(f, list, share / (words + 1), &sum);
}

const struct sampler sampler_infill = {
    .name = "infill", .active = active, .apply = apply, .open = open, .close = close_infill};
