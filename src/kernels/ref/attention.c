/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: softmax(scale * q k^T) v over the positions a row sees (arXiv 1706.03762), with an
 * optional cap * tanh(s / cap) on the scores (arXiv 2408.00118), a slope on their distance (ALiBi,
 * arXiv 2108.12409) or a bias by it, and a sink (arXiv 2508.10925), cut into parts that are merged
 * (Milakov and Gimelshein, arXiv 1805.02867). Layout and formats of the cache: kernels.h. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

enum { BLOCK = 32, PAGE = ATTENTION_PAGE };

/* One part of a block, K or V: feature `d` of position `slot`. */
struct place {
    void *base;
    enum kv_type type;
    uint32_t dim;
    bool keys;
};

static struct place keys(const struct attention_job *job, uint32_t page) {
    return (struct place){(void *)job->block[page], job->type.k, job->k_dim, true};
}
static struct place values(void *block, struct kv_types type, uint32_t k_dim, uint32_t v_dim) {
    char *base = (char *)block + PAGE * quant_row_bytes(kv_quant(type.k), k_dim);
    return (struct place){base, type.v, v_dim, false};
}

static size_t element(const struct place *p, uint32_t d, uint32_t slot) {
    return p->keys ? (size_t)d * PAGE + slot : (size_t)slot * p->dim + d;
}
/* The byte of a code, and how far it is shifted in it. */
static uint8_t *code_at(const struct place *p, uint32_t d, uint32_t slot, int *shift) {
    size_t byte;
    uint32_t half = p->keys ? 4 : 16; /* features in the low nibbles, then as many in the high */
    if (p->type == KV_q8_0) {
        *shift = 0;
        byte = p->keys ? ((size_t)d / 4 * PAGE + slot) * 4 + d % 4 : element(p, d, slot);
    } else {
        *shift = d % (2 * half) < half ? 0 : 4;
        byte = p->keys ? ((size_t)d / 8 * PAGE + slot) * 4 + d % 4
                       : ((size_t)slot * p->dim + d / 32 * 32) / 2 + d % 16;
    }
    return (uint8_t *)p->base + byte;
}
static uint16_t *scale_at(const struct place *p, uint32_t d, uint32_t slot) {
    size_t codes = (size_t)p->dim * PAGE / (p->type == KV_q4_0 ? 2 : 1);
    return (uint16_t *)(void *)((char *)p->base + codes) + d / BLOCK * PAGE + slot;
}

/* x[i] = feature d + i of slot, i < n <= BLOCK; d is a multiple of BLOCK. */
static void get(const struct place *p, uint32_t d, uint32_t n, uint32_t slot, double *x) {
    size_t at = element(p, d, slot), step = p->keys ? PAGE : 1;
    bool scaled = kv_quant(p->type)->block == BLOCK;
    double scale = scaled ? quant_f16_to_f32(*scale_at(p, d, slot)) : 1;
    for (uint32_t i = 0; i < n; i++, at += step) {
        int shift = 0;
        uint8_t byte = scaled ? *code_at(p, d + i, slot, &shift) : 0;
        switch (p->type) {
        case KV_bf16: x[i] = quant_bf16_to_f32(((const uint16_t *)p->base)[at]); break;
        case KV_f16: x[i] = quant_f16_to_f32(((const uint16_t *)p->base)[at]); break;
        case KV_f32: x[i] = ((const float *)p->base)[at]; break;
        case KV_q8_0: x[i] = (int8_t)byte * scale; break;
        default: x[i] = ((byte >> shift & 15) - 8) * scale;
        }
    }
}

static void put_code(const struct place *p, uint32_t d, uint32_t slot, int code) {
    int shift;
    uint8_t *byte = code_at(p, d, slot, &shift);
    if (p->type == KV_q8_0) *byte = (uint8_t)code;
    else *byte = (uint8_t)((*byte & (0xf0 >> shift)) | (code + 8) << shift);
}

/* y = H x * scale for each 32, H the Walsh-Hadamard matrix; float, as all that is stored. */
static void turn(const float *x, float scale, float *y) {
    float t[BLOCK];
    memcpy(t, x, sizeof t);
    for (int stride = 1; stride < BLOCK; stride *= 2)
        for (int i = 0; i < BLOCK; i++)
            if ((i & stride) == 0) {
                float a = t[i], b = t[i + stride];
                t[i] = a + b;
                t[i + stride] = a - b;
            }
    for (int i = 0; i < BLOCK; i++) y[i] = t[i] * scale;
}

/* 32 features of a position, as kernels.h defines it. */
static void put_block(const struct place *p, uint32_t d, uint32_t slot, const float *row) {
    float x[BLOCK];
    if (p->keys) turn(row, 1.0f / BLOCK, x);
    else memcpy(x, row, sizeof x);
    float up = -INFINITY, down = -INFINITY;
    bool finite = true;
    for (int i = 0; i < BLOCK; i++) {
        up = x[i] > up ? x[i] : up;
        down = -x[i] > down ? -x[i] : down;
        finite &= (bool)isfinite(x[i]);
    }
    float most = up > down ? up : -down;
    float scale = p->type == KV_q8_0 ? fabsf(most) / 127 : most / -8;
    uint16_t half = finite && fabsf(scale) < 65520 ? quant_f32_to_f16(scale) : 0x7e00;
    if ((half & 0x7fff) == 0) half = 0;
    *scale_at(p, d, slot) = half;
    float inverse = half == 0 || half == 0x7e00 ? 0 : 1 / quant_f16_to_f32(half);
    float low = p->type == KV_q8_0 ? -127 : -8, high = p->type == KV_q8_0 ? 127 : 7;
    for (uint32_t i = 0; i < BLOCK; i++) {
        float t = inverse == 0 ? 0 : x[i] * inverse;
        put_code(p, d + i, slot, (int)rintf(t < low ? low : t > high ? high : t));
    }
}

static void put_row(const struct place *p, uint32_t slot, const float *x) {
    for (uint32_t d = 0; d < p->dim; d++) {
        size_t i = element(p, d, slot);
        switch (p->type) {
        case KV_bf16: ((uint16_t *)p->base)[i] = quant_f32_to_bf16(x[d]); break;
        case KV_f16: ((uint16_t *)p->base)[i] = quant_f32_to_f16(x[d]); break;
        case KV_f32: ((float *)p->base)[i] = x[d]; break;
        default:
            if (d % BLOCK == 0) put_block(p, d, slot, x + d);
        }
    }
}

void attention_store_ref(const struct attention_store *job) {
    struct place k = {job->block, job->type.k, job->k_dim, true};
    struct place v = values(job->block, job->type, job->k_dim, job->v_dim);
    for (uint32_t r = 0; r < job->rows; r++) {
        put_row(&k, job->slot + r, job->k + r * job->k_stride);
        put_row(&v, job->slot + r, job->v + r * job->v_stride);
    }
}

static uint32_t features(uint32_t dim, uint32_t d) { return dim - d < BLOCK ? dim - d : BLOCK; }

double attention_dot_ref(const struct attention_job *job, const float *q, uint32_t pos) {
    struct place k = keys(job, pos / PAGE);
    double s = 0, y[BLOCK];
    for (uint32_t d = 0; d < job->k_dim; d += BLOCK) {
        uint32_t n = features(job->k_dim, d);
        float x[BLOCK];
        if (kv_quant(k.type)->block == BLOCK) turn(q + d, 1, x);
        else memcpy(x, q + d, n * sizeof *x);
        get(&k, d, n, pos % PAGE, y);
        for (uint32_t i = 0; i < n; i++) s += x[i] * y[i];
    }
    return s;
}

static double score(const struct attention_job *job, const struct attention_row *row,
                    uint32_t pos) {
    double s = job->scale * attention_dot_ref(job, row->q, pos);
    if (job->softcap > 0) s = job->softcap * tanh(s / job->softcap);
    s += row->slope * ((double)pos - row->at);
    int64_t distance = (int64_t)row->at - pos;
    bool near = row->by_distance && distance >= 0 && distance < row->distances;
    return near ? s + row->by_distance[distance] : s;
}

static void reduce_row(const struct attention_job *job, const struct attention_row *row) {
    double s[ATTENTION_SPLIT], sum = 0, max = -INFINITY;
    uint32_t limit = job->pages * PAGE, end = row->end < limit ? row->end : limit;
    attention_clear_ref(row->part, job->v_dim);
    if (row->begin >= end) return;
    bool any = false;
    for (uint32_t i = row->begin; i < end; i++) {
        bool sees = !row->sees || row->sees[i / PAGE] >> i % PAGE & 1;
        any |= sees;
        s[i] = sees ? score(job, row, i) : -INFINITY;
        max = s[i] <= max ? max : s[i];
    }
    if (!any) return;
    for (uint32_t i = row->begin; i < end; i++) sum += s[i] = exp(s[i] - max);
    row->part[0] = (float)max;
    /* The part's max is a float: what rounding takes from it goes into the sums. */
    double fix = exp(max - row->part[0]);
    row->part[1] = (float)(sum * fix);
    for (uint32_t d = 0; d < job->v_dim; d += BLOCK) {
        uint32_t n = features(job->v_dim, d);
        double out[BLOCK] = {0}, y[BLOCK];
        for (uint32_t i = row->begin; i < end; i++) {
            void *block = (void *)job->block[i / PAGE];
            struct place v = values(block, job->type, job->k_dim, job->v_dim);
            get(&v, d, n, i % PAGE, y);
            for (uint32_t j = 0; j < n; j++) out[j] += s[i] * y[j];
        }
        for (uint32_t j = 0; j < n; j++) row->part[16 + d + j] = (float)(out[j] * fix);
    }
}
void attention_ref(const struct attention_job *job) {
    for (uint32_t r = 0; r < job->rows; r++) reduce_row(job, &job->row[r]);
}

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

/* As merging {logit, 1, 0}. */
void attention_sink_ref(float *state, float logit, uint32_t v_dim) {
    double m = state[0] <= logit ? logit : state[0], a = exp(state[0] - m);
    state[0] = (float)m;
    state[1] = (float)(state[1] * a + exp(logit - m));
    for (uint32_t d = 0; d < v_dim; d++) state[16 + d] = (float)(state[16 + d] * a);
}

void attention_finish_ref(const float *state, float *y, uint32_t v_dim) {
    for (uint32_t d = 0; d < v_dim; d++) y[d] = (float)((double)state[16 + d] / state[1]);
}
