/* SPDX-License-Identifier: Apache-2.0
 * list.c: the candidate list of a draw. Samplers want the greatest few of some 150,000 candidates,
 * so sorting is partial: a heap of the k best is kept while the rest goes by once. */
#include <math.h>

#include "sample/sampler.h"

static bool before(struct sample_item a, struct sample_item b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

void sample_list_fill(struct sample_list *list, const float *logits) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->vocab; i++) {
        list->item[n] = (struct sample_item){logits[i], (int32_t)i};
        n += logits[i] > -INFINITY;
    }
    list->n = n;
    list->sorted = 0;
}

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

static void swap(struct sample_item *a, struct sample_item *b) {
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
            swap(&heap[i], &heap[0]);
            sink(heap, keep, 0);
        }
    for (uint32_t n = keep; n-- > 1;) { /* the worst goes to the end, again and again */
        swap(&heap[0], &heap[n]);
        sink(heap, n, 0);
    }
    list->sorted = k;
}

struct sample_item sample_list_best(const struct sample_list *list) {
    struct sample_item best = list->item[0];
    if (list->sorted) return best;
    for (uint32_t i = 1; i < list->n; i++)
        if (before(list->item[i], best)) best = list->item[i];
    return best;
}

void sample_list_keep_best(struct sample_list *list) {
    list->item[0] = sample_list_best(list);
    list->n = list->sorted = 1;
}

double sample_list_weigh(struct sample_list *list) {
    for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
    return sample_exp_sum(list->weight, list->n, sample_list_best(list).logit, list->weight);
}
