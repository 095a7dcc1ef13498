/* SPDX-License-Identifier: Apache-2.0
 *
 * index_select.c: the positions that a token attends to, by a small attention of its own
 * ("lightning indexer", DeepSeek-V3.2-Exp, section 2):
 *     score[position] = sum over heads h of weight[h] * max(q[h] . k[position], 0)
 * of which the `used` largest are taken; or, without weights, q . k of one head. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

void index_scores_ref(const struct index_job *job) {
    const struct attention_job keys = {.k_dim = job->dim, .type.k = job->type, .block = job->block};
    for (uint32_t pos = 0; pos < job->pages * ATTENTION_PAGE; pos++) {
        double sum = 0;
        for (uint32_t h = 0; h < job->heads; h++) {
            double dot = attention_dot_ref(&keys, job->q + (size_t)h * job->dim, pos);
            sum += !job->weight ? dot : job->weight[h] * (dot < 0 ? 0 : dot);
        }
        job->score[pos] = (float)sum;
    }
}

/* ---- the largest, as a heap of numbers that compare as the choice does ---- */

/* The larger score is the larger number, a NaN the largest; of equal ones the earlier position. */
static uint64_t rank(float score, uint32_t pos) {
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    bits = isnan(score) ? UINT32_MAX : bits & 0x80000000 ? ~bits : bits | 0x80000000;
    return (uint64_t)bits << 32 | (uint32_t)~pos;
}

/* Puts x where the smallest was, at place `at`, and restores the heap of n below it. */
static void sink(uint64_t *heap, uint32_t n, uint32_t at, uint64_t x) {
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[at] = heap[child];
    }
    heap[at] = x;
}

void index_push(struct index_top *top, const float *score, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = rank(score[i], first + i);
        if (top->count < top->used) {
            uint32_t at = top->count++;
            for (; at > 0 && top->heap[(at - 1) / 2] > x; at = (at - 1) / 2)
                top->heap[at] = top->heap[(at - 1) / 2];
            top->heap[at] = x;
        } else if (x > top->heap[0]) {
            sink(top->heap, top->count, 0, x);
        }
    }
}

void index_list(struct index_top *top, float *out) {
    uint64_t *heap = top->heap;
    uint32_t n = top->count;
    for (uint32_t i = 0; i < n; i++) heap[i] = (uint32_t)~heap[i];
    for (uint32_t i = n / 2; i-- > 0;) sink(heap, n, i, heap[i]);
    for (uint32_t i = 0; i < top->used; i++) out[i] = INFINITY;
    for (uint32_t i = 0; n > 0; i++) {
        out[i] = (float)heap[0];
        n--;
        sink(heap, n, 0, heap[n]);
    }
}
