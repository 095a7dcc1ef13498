/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: softmax(scale * q k^T) v over the positions a row sees (arXiv 1706.03762), with an
 * optional cap * tanh(s / cap) on the scores (arXiv 2408.00118), cut into parts that are merged
 * (Milakov and Gimelshein, arXiv 1805.02867). Layout of the cache: kernels.h. */
#include <math.h>

#include "kernels/ref/ref.h"

static float get(const void *block, size_t i, enum kernels_kv kv) {
    return kv == KERNELS_KV_F16 ? quant_f16_to_f32(((const uint16_t *)block)[i])
                                : ((const float *)block)[i];
}
static void put(void *block, size_t i, enum kernels_kv kv, float x) {
    if (kv == KERNELS_KV_F16) ((uint16_t *)block)[i] = quant_f32_to_f16(x);
    else ((float *)block)[i] = x;
}

static void store(const struct attention_store *job, enum kernels_kv kv) {
    size_t v_base = (size_t)job->k_dim * ATTENTION_PAGE;
    for (uint32_t r = 0; r < job->rows; r++) {
        size_t slot = job->slot + r;
        for (uint32_t d = 0; d < job->k_dim; d++)
            put(job->block, d * ATTENTION_PAGE + slot, kv, job->k[r * job->k_stride + d]);
        for (uint32_t d = 0; d < job->v_dim; d++)
            put(job->block, v_base + slot * job->v_dim + d, kv, job->v[r * job->v_stride + d]);
    }
}
void attention_store_f32_ref(const struct attention_store *job) { store(job, KERNELS_KV_F32); }
void attention_store_f16_ref(const struct attention_store *job) { store(job, KERNELS_KV_F16); }

static double score(const struct attention_job *job, const float *q, uint32_t pos,
                    enum kernels_kv kv) {
    const void *block = job->block[pos / ATTENTION_PAGE];
    double s = 0;
    for (uint32_t d = 0; d < job->k_dim; d++)
        s += (double)q[d] * get(block, (size_t)d * ATTENTION_PAGE + pos % ATTENTION_PAGE, kv);
    s *= job->scale;
    return job->softcap > 0 ? job->softcap * tanh(s / job->softcap) : s;
}

static void reduce_row(const struct attention_job *job, const struct attention_row *row,
                       enum kernels_kv kv) {
    double s[ATTENTION_SPLIT], sum = 0, max = -INFINITY;
    uint32_t limit = job->pages * ATTENTION_PAGE, end = row->end < limit ? row->end : limit;
    attention_clear_ref(row->part, job->v_dim);
    if (row->begin >= end) return;
    for (uint32_t i = row->begin; i < end; i++) {
        s[i] = score(job, row->q, i, kv);
        max = s[i] <= max ? max : s[i];
    }
    for (uint32_t i = row->begin; i < end; i++) sum += s[i] = exp(s[i] - max);
    row->part[0] = (float)max;
    /* The part's max is a float: what rounding takes from it goes into the sums. */
    double fix = exp(max - row->part[0]);
    row->part[1] = (float)(sum * fix);
    for (uint32_t d = 0; d < job->v_dim; d++) {
        double out = 0;
        for (uint32_t i = row->begin; i < end; i++) {
            size_t at = (size_t)job->k_dim * ATTENTION_PAGE +
                        (size_t)(i % ATTENTION_PAGE) * job->v_dim + d;
            out += s[i] * get(job->block[i / ATTENTION_PAGE], at, kv);
        }
        row->part[16 + d] = (float)(out * fix);
    }
}
static void reduce(const struct attention_job *job, enum kernels_kv kv) {
    for (uint32_t r = 0; r < job->rows; r++) reduce_row(job, &job->row[r], kv);
}
void attention_f32_ref(const struct attention_job *job) { reduce(job, KERNELS_KV_F32); }
void attention_f16_ref(const struct attention_job *job) { reduce(job, KERNELS_KV_F16); }

void attention_clear_ref(float *state, uint32_t v_dim) {
    for (size_t i = 0; i < attention_part_floats(v_dim); i++) state[i] = 0;
    state[0] = -INFINITY;
}

void attention_merge_ref(float *state, const float *part, uint32_t v_dim) {
    if (part[0] == -INFINITY && part[1] == 0) return;
    double m = state[0] <= part[0] ? part[0] : state[0];
    double a = exp(state[0] - m), b = exp(part[0] - m);
    state[0] = (float)m;
    state[1] = (float)(state[1] * a + part[1] * b);
    for (uint32_t d = 0; d < v_dim; d++)
        state[16 + d] = (float)(state[16 + d] * a + part[16 + d] * b);
}

void attention_finish_ref(const float *state, float *y, uint32_t v_dim) {
    for (uint32_t d = 0; d < v_dim; d++) y[d] = (float)((double)state[16 + d] / state[1]);
}
