/* SPDX-License-Identifier: Apache-2.0
 * list.c: the candidate list of a draw; see sampler.h. While it is the whole vocabulary, the
 * greatest logit of each block is known, so that looking for the few great ones skips most of
 * it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "sample/sampler.h"

static bool before(struct sample_item a, struct sample_item b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static uint32_t blocks(const struct sample_list *list) {
    return (list->vocab - 1) / SAMPLE_BLOCK + 1;
}

static uint32_t block_end(const struct sample_list *list, uint32_t block) {
    uint32_t end = (block + 1) * SAMPLE_BLOCK;
    return end < list->vocab ? end : list->vocab;
}

static void measure(struct sample_list *list, uint32_t block) {
    float best = -INFINITY;
    for (uint32_t i = block * SAMPLE_BLOCK; i < block_end(list, block); i++)
        if (list->logit[i] > best) best = list->logit[i];
    list->block[block] = best;
}

/* ---- what is in it --------------------------------------------------------------------------- */

void sample_list_fill(struct sample_list *list, const float *logits) {
    list->whole = true;
    list->logit = logits;
    list->n = list->vocab;
    list->sorted = 0;
}

/* Before a logit of a whole list is changed. */
static void own(struct sample_list *list) {
    if (list->logit == list->own) return;
    memcpy(list->own, list->logit, list->vocab * sizeof *list->own);
    list->logit = list->own;
}

void sample_list_mask(struct sample_list *list, const uint32_t *mask) {
    for (uint32_t b = 0; b < blocks(list); b++) {
        uint32_t at = b * SAMPLE_BLOCK, end = block_end(list, b);
        for (uint32_t i = at; i < end; i++) {
            bool may = mask[i / 32] >> (i % 32) & 1;
            list->own[i] = may ? list->logit[i] : -INFINITY;
        }
    }
    list->logit = list->own;
    for (uint32_t b = 0; b < blocks(list); b++) measure(list, b);
}

uint32_t sample_list_count(const struct sample_list *list) { return list->n; }

struct sample_item sample_list_at(const struct sample_list *list, uint32_t i) {
    return list->whole ? (struct sample_item){list->logit[i], (int32_t)i} : list->item[i];
}

static struct sample_item best_of_whole(const struct sample_list *list) {
    uint32_t best = 0, i;
    for (uint32_t b = 1; b < blocks(list); b++)
        if (list->block[b] > list->block[best]) best = b;
    for (i = best * SAMPLE_BLOCK; list->logit[i] != list->block[best];) i++;
    return sample_list_at(list, i);
}

struct sample_item sample_list_best(const struct sample_list *list) {
    if (list->whole) return best_of_whole(list);
    struct sample_item best = list->item[0];
    if (list->sorted) return best;
    for (uint32_t i = 1; i < list->n; i++)
        if (before(list->item[i], best)) best = list->item[i];
    return best;
}

double sample_list_weigh(struct sample_list *list) {
    float best = sample_list_best(list).logit;
    const float *logit = list->logit;
    if (!list->whole) {
        for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
        logit = list->weight;
    }
    return sample_passes()->exp_sum(logit, list->n, best, list->weight);
}

/* ---- dropping -------------------------------------------------------------------------------- */

void sample_list_keep_best(struct sample_list *list) {
    list->item[0] = sample_list_best(list);
    list->n = list->sorted = 1;
    list->whole = false;
}

/* Every item is written and the next goes over it unless it stays: a branch would be guessed
 * wrong. */
static void keep_of_whole(struct sample_list *list, float low, float high) {
    uint32_t n = 0;
    const float *logit = list->logit;
    struct sample_item *item = list->item;
    if (low == -INFINITY) low = -FLT_MAX; /* such a logit is no candidate */
    for (uint32_t b = 0; b < blocks(list); b++) {
        if (list->block[b] < low) continue;
        for (uint32_t i = b * SAMPLE_BLOCK, end = block_end(list, b); i < end; i++) {
            uint32_t stays = logit[i] >= low;
            item[n] = (struct sample_item){logit[i], (int32_t)i};
            stays &= logit[i] <= high;
            n += stays;
        }
    }
    list->n = n;
    list->sorted = 0;
    list->whole = false;
}

void sample_list_keep(struct sample_list *list, float low, float high) {
    uint32_t n = 0, sorted = 0;
    if (list->whole) {
        keep_of_whole(list, low, high);
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        struct sample_item item = list->item[i];
        if (!(item.logit >= low && item.logit <= high)) continue;
        if (i < list->sorted) sorted++;
        list->item[n++] = item;
    }
    list->n = n;
    list->sorted = sorted;
}

void sample_list_gather(struct sample_list *list) {
    if (list->whole) keep_of_whole(list, -INFINITY, INFINITY);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Rounding keeps the order, so the greatest of a block stays that. */
void sample_list_divide(struct sample_list *list, float by) {
    if (list->whole) {
        for (uint32_t i = 0; i < list->vocab; i++) list->own[i] = list->logit[i] / by;
        for (uint32_t b = 0; b < blocks(list); b++) list->block[b] /= by;
        list->logit = list->own;
    } else {
        for (uint32_t i = 0; i < list->n; i++) list->item[i].logit /= by;
    }
}

void sample_list_edit(struct sample_list *list) {
    if (list->whole) own(list);
    else for (uint32_t i = 0; i < list->n; i++) list->where[list->item[i].id] = i + 1;
}

float *sample_list_find(struct sample_list *list, int32_t id) {
    if (id < 0 || (uint32_t)id >= list->vocab) return NULL;
    if (list->whole) return list->own[id] > -INFINITY ? &list->own[id] : NULL;
    return list->where[id] ? &list->item[list->where[id] - 1].logit : NULL;
}

void sample_list_edited(struct sample_list *list, const int32_t *id, size_t n) {
    if (list->whole) {
        if (n > blocks(list)) sample_passes()->max(list->own, list->vocab, list->block);
        else for (size_t i = 0; i < n; i++)
            if (id[i] >= 0 && (uint32_t)id[i] < list->vocab)
                measure(list, (uint32_t)id[i] / SAMPLE_BLOCK);
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) list->where[list->item[i].id] = 0;
    list->sorted = 0;
}
