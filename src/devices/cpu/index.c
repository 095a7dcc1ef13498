/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c: the step's index keys are stored first; then each token scores the entries up to its
 * own, a split at a time, and keeps the largest. The choice is exact, so neither the cut nor the
 * order of the work shows in it. A thread's scratch: the kernel's, a split's scores, the heap, a
 * list of blocks, weights of 1. */
#include <math.h>

#include "devices/cpu/cpu.h"

enum { SPLIT_PAGES = ATTENTION_SPLIT / ATTENTION_PAGE };

struct indexer {
    const struct device_plan *plan;
    const struct node *node;
    struct cpu_cache cache;
};

static size_t scores_at(const struct node *n) {
    return cpu_round64(attention_scratch(n->u.index_select.dim));
}
size_t cpu_index_scratch(const struct node *n) {
    size_t choice = n->u.index_select.used * (sizeof(uint64_t) + sizeof(float));
    size_t weights = n->u.index_select.heads * sizeof(float);
    return scores_at(n) + ATTENTION_SPLIT * sizeof(float) + choice + weights;
}

/* Scores positions [base, base + n) for the token at `at`; weight NULL: by one head. */
static void score_split(const struct indexer *x, const struct cpu_span *at, uint32_t head,
                        const float *weight, uint32_t base, uint32_t n, char *scratch,
                        float *score) {
    const struct node *node = x->node;
    const void *block[SPLIT_PAGES];
    struct index_job job = {.heads = node->u.index_select.heads,
                            .dim = node->u.index_select.dim,
                            .type = x->plan->kv_type.k,
                            .block = block,
                            .pages = (n + ATTENTION_PAGE - 1) / ATTENTION_PAGE,
                            .scratch = scratch,
                            .score = score};
    job.q = cpu_value(x->plan, node->in[0]) + ((size_t)at->row * job.heads + head) * job.dim;
    job.weight = weight;
    if (!weight) job.heads = 1;
    for (uint32_t i = 0; i < job.pages; i++)
        block[i] = cpu_cache_block(&x->cache, at->seq, base / ATTENTION_PAGE + i, 0);
    x->plan->device->kernels->index_scores(&job);
}

static void select_token(void *arg, uint32_t chunk, uint32_t thread) {
    const struct indexer *x = arg;
    const struct cpu_span *at = &x->plan->tile[chunk];
    uint32_t used = x->node->u.index_select.used;
    uint32_t seen = cache_entries(x->cache.shape, at->pos + 1);
    float *out = cpu_value(x->plan, x->node->out[0]) + (size_t)at->row * used;
    if (seen <= used) { /* no choice */
        for (uint32_t i = 0; i < used; i++) out[i] = i < seen ? (float)i : INFINITY;
        return;
    }
    const float *weight = cpu_value(x->plan, x->node->in[2]);
    weight += (size_t)at->row * x->node->u.index_select.heads;
    char *scratch = cpu_scratch(x->plan, thread);
    float *score = (float *)(void *)(scratch + scores_at(x->node));
    struct index_top top = {.used = used, .heap = (void *)(score + ATTENTION_SPLIT)};
    for (uint32_t base = 0; base < seen; base += ATTENTION_SPLIT) {
        uint32_t n = seen - base < ATTENTION_SPLIT ? seen - base : ATTENTION_SPLIT;
        score_split(x, at, 0, weight, base, n, scratch, score);
        index_push(&top, score, base, n);
    }
    index_list(&top, out);
}

/* The largest score of each block of a split, whose last ones are always chosen; n scores. */
static uint32_t pool_blocks(const struct node *n, uint32_t pos, uint32_t base, uint32_t scores,
                            float *score) {
    uint32_t block = n->u.index_select.block, blocks = (scores + block - 1) / block;
    for (uint32_t i = 0; i < blocks; i++) {
        float top = -INFINITY;
        for (uint32_t j = i * block; j < (i + 1) * block && j < scores; j++)
            top = score[j] <= top ? top : score[j];
        bool local = base / block + i + n->u.index_select.local > pos / block;
        score[i] = local ? INFINITY : top;
    }
    return blocks;
}

/* Positions of the listed blocks, none after the token's own; those from `rest` on. */
static void list_positions(const struct node *n, uint32_t pos, const float *list, uint32_t rest,
                           float *out) {
    uint32_t block = n->u.index_select.block, used = n->u.index_select.used, count = 0;
    uint32_t all = n->u.index_select.whole ? (used + 1) * block - 1 : used * block;
    for (uint32_t i = 0; i < used && list[i] != INFINITY; i++)
        for (uint32_t j = 0, first = (uint32_t)list[i] * block; j < block && first + j <= pos; j++)
            out[count++] = (float)(first + j);
    for (uint32_t i = rest; i <= pos; i++) out[count++] = (float)i;
    while (count < all) out[count++] = INFINITY;
}

static void select_blocks(void *arg, uint32_t chunk, uint32_t thread) {
    const struct indexer *x = arg;
    const struct node *n = x->node;
    const struct cpu_span *at = &x->plan->tile[chunk];
    uint32_t used = n->u.index_select.used, heads = n->u.index_select.heads;
    uint32_t block = n->u.index_select.block, seen = at->pos + 1;
    char *scratch = cpu_scratch(x->plan, thread);
    float *score = (float *)(void *)(scratch + scores_at(n));
    uint64_t *heap = (void *)(score + ATTENTION_SPLIT);
    float *list = (void *)(heap + used);
    for (uint32_t h = 0; h < heads; h++) {
        struct index_top top = {.used = used, .heap = heap};
        for (uint32_t base = 0; base < seen; base += ATTENTION_SPLIT) {
            uint32_t m = seen - base < ATTENTION_SPLIT ? seen - base : ATTENTION_SPLIT;
            score_split(x, at, h, NULL, base, m, scratch, score);
            uint32_t blocks = pool_blocks(n, at->pos, base, m, score);
            index_push(&top, score, base / block, blocks);
        }
        index_list(&top, list);
        float *out = cpu_value(x->plan, n->out[0]);
        out += ((size_t)at->row * heads + h) * used * block;
        list_positions(n, at->pos, list, at->pos + 1, out);
    }
}

/* The scores of the last positions of a split's complete blocks, which are so many. */
static uint32_t pick_ends(uint32_t block, uint32_t scores, float *score) {
    uint32_t blocks = scores / block;
    for (uint32_t i = 0; i < blocks; i++) score[i] = score[(i + 1) * block - 1];
    return blocks;
}

static void select_whole(void *arg, uint32_t chunk, uint32_t thread) {
    const struct indexer *x = arg;
    const struct node *n = x->node;
    const struct cpu_span *at = &x->plan->tile[chunk];
    uint32_t used = n->u.index_select.used, heads = n->u.index_select.heads;
    uint32_t block = n->u.index_select.block, seen = at->pos + 1;
    char *scratch = cpu_scratch(x->plan, thread);
    float *score = (float *)(void *)(scratch + scores_at(n));
    struct index_top top = {.used = used, .heap = (void *)(score + ATTENTION_SPLIT)};
    float *list = (void *)(top.heap + used), *weight = list + used;
    for (uint32_t h = 0; h < heads; h++) weight[h] = 1;
    for (uint32_t base = 0; base < seen; base += ATTENTION_SPLIT) {
        uint32_t m = seen - base < ATTENTION_SPLIT ? seen - base : ATTENTION_SPLIT;
        score_split(x, at, 0, weight, base, m, scratch, score);
        index_push(&top, score, base / block, pick_ends(block, m, score));
    }
    index_list(&top, list);
    float *out = cpu_value(x->plan, n->out[0]) + (size_t)at->row * ((used + 1) * block - 1);
    list_positions(n, at->pos, list, seen - seen % block, out);
}

void cpu_index_select(struct device_plan *p, const struct node *n) {
    struct indexer x = {.plan = p, .node = n, .cache = cpu_cache_of(p, n->u.index_select.cache)};
    const float *k = cpu_value(p, n->in[1]);
    cpu_cache_store(p, &x.cache, k, k); /* its V has no features */
    uint32_t tokens = 0;
    for (uint32_t s = 0; s < p->step->seqs; s++) {
        const struct step_seq *seq = &p->step->seq[s];
        for (uint32_t i = seq->count; i-- > 0;) /* the longest first */
            p->tile[tokens++] = (struct cpu_span){
                .seq = seq, .row = seq->first + i, .rows = 1, .pos = seq->past + i};
    }
    void (*select)(void *, uint32_t, uint32_t) = n->u.index_select.whole   ? select_whole
                                                 : n->u.index_select.block ? select_blocks
                                                                           : select_token;
    pool_run(p->device->pool, tokens, select, &x);
}
