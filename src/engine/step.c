/* SPDX-License-Identifier: Apache-2.0
 * step.c: from items to one ragged batch on the device. */
#include <string.h>

#include "base/error.h"
#include "engine/internal.h"

bool engine_fits(const struct engine *e, const struct engine_item *item, uint32_t items) {
    for (uint32_t g = 0; g < e->groups; g++) {
        uint64_t need = 0;
        for (uint32_t i = 0; i < items; i++) need += seq_needs(item[i].seq, g, item[i].n);
        if (need > e->group[g].pages.free_count) return false;
    }
    return true;
}

static ob_status check(const struct engine *e, const struct engine_item *item, uint32_t items,
                       ob_error *error) {
    uint64_t tokens = 0, logits = 0;
    for (uint32_t i = 0; i < items; i++) {
        tokens += item[i].n;
        logits += item[i].logits;
        if (item[i].n == 0 || item[i].logits > item[i].n)
            return error_set(error, OB_ERR_ARGUMENT,
                             "an item without tokens, or with more logits than tokens");
        bool whole = item[i].seq->length == 0 && item[i].n <= e->step_tokens;
        if (e->model->graph.whole && !whole)
            return error_set(error, OB_ERR_LIMIT,
                             "this model reads a sequence at once: one step of at most %u tokens",
                             e->step_tokens);
        if (item[i].n > e->context - item[i].seq->length)
            return error_set(error, OB_ERR_LIMIT, "the context of %u tokens is full", e->context);
        for (uint32_t k = 0; k < item[i].n; k++)
            if ((uint32_t)item[i].id[k] >= e->model->hp.vocab)
                return error_set(error, OB_ERR_ARGUMENT,
                                 "token id %d is not in the vocabulary of %u", (int)item[i].id[k],
                                 e->model->hp.vocab);
    }
    if (items > e->parallel || tokens > e->step_tokens || logits > e->step_logits)
        return error_set(error, OB_ERR_LIMIT,
                         "a step takes %u sequences, %u tokens and %u rows of logits", e->parallel,
                         e->step_tokens, e->step_logits);
    if (!engine_fits(e, item, items))
        return error_set(error, OB_ERR_LIMIT, "the KV memory is full");
    return OB_OK;
}

ob_status engine_step(struct engine *e, const struct engine_item *item, uint32_t items,
                      const float **logits, ob_error *error) {
    ob_status s = check(e, item, items, error);
    if (s != OB_OK) return s;
    struct step step = {
        .id = e->id, .pos = e->pos, .row = e->row, .seq = e->step_seq, .seqs = items};
    for (uint32_t i = 0; i < items; i++) {
        struct seq *seq = item[i].seq;
        if (!seq_grow(seq, item[i].n))
            return error_set(error, OB_ERR_IO, "cannot copy a page of the KV memory");
        e->step_seq[i] = (struct step_seq){.first = step.tokens,
                                           .count = item[i].n,
                                           .past = seq->length,
                                           .length = seq->admitted,
                                           .page = (const uint32_t *const *)seq->page};
        for (uint32_t k = 0; k < item[i].n; k++) {
            if (k + item[i].logits >= item[i].n) e->row[step.logits++] = step.tokens;
            e->id[step.tokens] = item[i].id[k];
            e->pos[step.tokens++] = seq->length + k;
        }
    }
    s = engine_parts_run(e, &step, logits, error);
    for (uint32_t i = 0; i < items; i++) {
        struct seq *seq = item[i].seq;
        uint32_t before = seq->length;
        seq->length += item[i].n;
        if (s != OB_OK) {
            seq_truncate(seq, before);
            continue;
        }
        seq_leave_window(seq);
        if (item[i].n > 1) seq_snapshot(seq);
    }
    return s;
}

const float *engine_embedding(const struct engine *e) {
    return engine_parts_output(e, e->model->graph.embedding);
}

const float *engine_pooled(const struct engine *e, uint32_t *cols) {
    const struct graph *g = &e->model->graph;
    *cols = g->pooled == NO_VALUE ? 0 : g->value[g->pooled].cols;
    return engine_parts_output(e, g->pooled);
}
