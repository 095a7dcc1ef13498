/* SPDX-License-Identifier: Apache-2.0
 *
 * embed_ngrams.c: rows of a table by hashes of a token and those before it (graph.h). For every
 * table. */
#include <assert.h>

#include "kernels/ref/ref.h"

/* The token and those before it, back to an `end`, which hides what is before it. */
static void read_back(const struct ngram_job *job, int32_t id, uint64_t *token) {
    bool ended = false;
    token[0] = (uint64_t)id;
    for (uint32_t i = 1; i < job->order; i++) {
        float before = job->state[i - 1];
        ended |= before == 0 || (int32_t)before - 1 == job->end;
        token[i] = (uint64_t)(ended ? job->end : (int32_t)before - 1);
    }
}

static void remember(const struct ngram_job *job, int32_t id) {
    for (uint32_t i = job->order - 1; i-- > 1;) job->state[i] = job->state[i - 1];
    job->state[0] = (float)(id + 1);
}

static void decode_row(const struct ngram_job *job, uint64_t row, float *y) {
    const char *part = job->part[row / job->part_rows];
    embed_ref(job->quant, part + row % job->part_rows * job->row_bytes, job->cols, 1, y);
}

void embed_ngrams(const struct ngram_job *job) {
    uint64_t token[NGRAM_ORDER_MAX];
    float *y = job->y;
    assert(job->order <= NGRAM_ORDER_MAX);
    for (uint32_t t = 0; t < job->tokens; t++) {
        read_back(job, job->id[t], token);
        uint64_t hash = token[0] * job->multiplier[0];
        for (uint32_t n = 1, head = 0; n < job->order; n++) {
            hash ^= token[n] * job->multiplier[n];
            for (uint32_t h = 0; h < job->heads; h++, head++, y += job->cols)
                decode_row(job, job->first[head] + hash % job->size[head], y);
        }
        remember(job, job->id[t]);
    }
}
