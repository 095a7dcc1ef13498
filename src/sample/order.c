/* SPDX-License-Identifier: Apache-2.0
 * order.c: which candidates come first. Nothing sorts a vocabulary: to keep the first k, or those
 * that weigh so much, quickselect (Hoare 1961) parts the list again and again and goes on in the
 * part where the cut lies. The pivots come from a fixed sequence, so that equal lists give equal
 * results, and no file makes it slow. */
#include <math.h>

#include "base/rng.h"
#include "sample/sampler.h"

enum { SMALL = 24 }; /* sorted by insertion */

static bool before(struct sample_item a, struct sample_item b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* ---- sorting the greatest -------------------------------------------------------------------- */

/* Restores the heap below `at`: no item comes before its parent, the root is the last of all. */
static void sink(struct sample_item *heap, uint32_t n, uint32_t at) {
    struct sample_item moving = heap[at];
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= n) break;
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(moving, heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void swap_items(struct sample_item *a, struct sample_item *b) {
    struct sample_item t = *a;
    *a = *b;
    *b = t;
}

void sample_list_sort(struct sample_list *list, uint32_t k) {
    if (k > list->n) k = list->n;
    if (k <= list->sorted) return;
    struct sample_item *heap = list->item + list->sorted; /* what is before it is settled */
    uint32_t keep = k - list->sorted, rest = list->n - list->sorted;
    for (uint32_t i = keep / 2; i-- > 0;) sink(heap, keep, i);
    for (uint32_t i = keep; i < rest; i++)
        if (before(heap[i], heap[0])) {
            swap_items(&heap[i], &heap[0]);
            sink(heap, keep, 0);
        }
    for (uint32_t n = keep; n-- > 1;) { /* the worst goes to the end, again and again */
        swap_items(&heap[0], &heap[n]);
        sink(heap, n, 0);
    }
    list->sorted = k;
}

/* ---- the first that weigh enough ------------------------------------------------------------- */

/* Without branches on what logits are: they would be guessed wrong. */
static inline bool ranks_before(float center, struct sample_item a, struct sample_item b) {
    bool greater = (a.logit > b.logit) | ((a.logit == b.logit) & (a.id < b.id));
    if (center == INFINITY) return greater;
    float x = fabsf(center - a.logit), y = fabsf(center - b.logit);
    return (x < y) | ((x == y) & greater);
}

static void swap(struct sample_list *list, uint32_t a, uint32_t b) {
    float weight = list->weight[a];
    list->weight[a] = list->weight[b];
    list->weight[b] = weight;
    swap_items(&list->item[a], &list->item[b]);
}

/* Parts [from, to) around one of them, whose new place it returns; *weight is that of the first
 * part, without it. Each candidate changes places with the first of the second part, which begins
 * behind it if it is one of the first. */
static uint32_t part(struct sample_list *list, float center, uint32_t from, uint32_t to,
                     double *weight) {
    uint32_t at = from + (uint32_t)(rng_u64(from, to) % (to - from)), n = from;
    struct sample_item *item = list->item;
    float *weights = list->weight;
    double sum = 0;
    swap(list, at, to - 1);
    struct sample_item pivot = item[to - 1];
    for (uint32_t i = from; i < to - 1; i++) {
        struct sample_item one = item[i];
        float w = weights[i];
        bool first = ranks_before(center, one, pivot);
        item[i] = item[n];
        item[n] = one;
        weights[i] = weights[n];
        weights[n] = w;
        sum += (double)(w * (float)first);
        n += first;
    }
    swap(list, n, to - 1);
    *weight = sum;
    return n;
}

static void sort_few(struct sample_list *list, float center, uint32_t from, uint32_t to) {
    for (uint32_t i = from + 1; i < to; i++)
        for (uint32_t j = i; j > from && ranks_before(center, list->item[j], list->item[j - 1]);
             j--)
            swap(list, j, j - 1);
}

/* n candidates that weigh so much satisfy the rank. */
static bool enough(const struct sample_rank *rank, double weight, double wanted, uint32_t n) {
    return (rank->beyond ? weight > wanted : weight >= wanted) && n >= rank->least && n > 0;
}

/* Those in [0, from) are first and weigh less than is wanted; those in [0, to) are first. */
static void narrow(struct sample_list *list, const struct sample_rank *rank, uint32_t *from,
                   uint32_t *to, double *wanted) {
    double weight;
    while (*to - *from > SMALL) {
        uint32_t at = part(list, rank->center, *from, *to, &weight);
        if (enough(rank, weight, *wanted, at)) {
            *to = at;
            continue;
        }
        *wanted -= weight;
        *from = at;
        if (enough(rank, (double)list->weight[at], *wanted, at + 1)) {
            *to = at + 1;
            return;
        }
        *wanted -= (double)list->weight[(*from)++];
    }
    sort_few(list, rank->center, *from, *to);
}

void sample_list_cut(struct sample_list *list, const struct sample_rank *rank) {
    uint32_t from = 0, to = list->n;
    double wanted = rank->wanted, weight = 0;
    bool in_order = rank->center == INFINITY && list->sorted == list->n;
    if (!in_order) narrow(list, rank, &from, &to, &wanted);
    uint32_t n = from;
    while (n < to) {
        weight += (double)list->weight[n++];
        if (enough(rank, weight, wanted, n)) break;
    }
    list->n = n; /* all, where rounding leaves a little wanted */
    list->sorted = in_order ? list->n : 0;
}

/* ---- the greatest k -------------------------------------------------------------------------- */

/* The k-th greatest of x[0..n), which is shuffled. */
static float greatest(float *x, uint32_t n, uint32_t k) {
    uint32_t from = 0, to = n;
    while (to - from > 1) {
        float pivot = x[from + (uint32_t)(rng_u64(from, to) % (to - from))];
        uint32_t above = from, equal = 0; /* x[from, above) > pivot, then `equal` that are it */
        for (uint32_t i = from; i < to; i++) {
            float moving = x[i];
            if (moving < pivot) continue;
            x[i] = x[above + equal];
            x[above + equal] = moving;
            if (moving == pivot) {
                equal++;
                continue;
            }
            x[above + equal] = x[above];
            x[above++] = moving;
        }
        if (k <= above) to = above;
        else if (k <= above + equal) return pivot;
        else from = above + equal;
    }
    return x[from];
}

void sample_list_top(struct sample_list *list, uint32_t k) {
    uint32_t blocks = (list->vocab - 1) / SAMPLE_BLOCK + 1;
    if (k >= list->n) {
        sample_list_gather(list);
        return;
    }
    if (list->whole && k <= blocks) {
        /* There are at least k candidates from the k-th greatest of the blocks' best on. */
        for (uint32_t i = 0; i < blocks; i++) list->weight[i] = list->block[i];
        sample_list_keep(list, greatest(list->weight, blocks, k), INFINITY);
    }
    sample_list_gather(list);
    if (k >= list->n) return;
    if (list->sorted < list->n) {
        for (uint32_t i = 0; i < list->n; i++) list->weight[i] = 0;
        sample_list_cut(list, &(struct sample_rank){.center = INFINITY, .least = k});
    } else {
        list->n = list->sorted = k;
    }
}
