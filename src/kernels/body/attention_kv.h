/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_kv.h: body of the number formats of the cache: where things lie in a block of 64
 * positions, reading, quantizing, storing. Layout and numerics: kernels.h, section attention.
 *
 * `kv` is a constant wherever it is passed, so the choices below cost nothing. */

enum { KV_BLOCK = 32 };

VEC_INLINE bool kv_is_quantized(enum kv_type kv) { return kv == KV_q8_0 || kv == KV_q4_0; }

/* Bytes of `n` elements, scales apart. */
VEC_INLINE size_t kv_code_bytes(size_t n, enum kv_type kv) {
    return kv == KV_f32 ? 4 * n : kv == KV_q8_0 ? n : kv == KV_q4_0 ? n / 2 : 2 * n;
}
/* [dim / 32][64] halves, behind the codes of a part. */
VEC_INLINE const uint16_t *kv_scales(const void *base, uint32_t dim, enum kv_type kv) {
    return (const void *)((const char *)base + kv_code_bytes((size_t)dim * ATTENTION_PAGE, kv));
}
/* The V part of a block. */
static void *kv_values(const void *block, enum kv_type k, uint32_t k_dim) {
    size_t bytes = kv_code_bytes((size_t)k_dim * ATTENTION_PAGE, k);
    if (kv_is_quantized(k)) bytes += k_dim / KV_BLOCK * ATTENTION_PAGE * sizeof(uint16_t);
    return (char *)block + bytes;
}

/* ---- reading ---- */

/* Vector w, 16 elements, of the row that begins at element i; of a quantized row the codes. */
VEC_INLINE vf kv_load(const void *p, size_t i, const int w, enum kv_type kv) {
    const uint8_t *nibbles = (const uint8_t *)p + i / 2 + VF * (w / 2);
    switch (kv) {
    case KV_bf16: return vf_load_bf16((const uint16_t *)p + i + VF * w);
    case KV_f16: return vf_load_f16((const uint16_t *)p + i + VF * w);
    case KV_f32: return vf_load((const float *)p + i + VF * w);
    case KV_q4_0: return w % 2 ? vf_load_high(nibbles) : vf_load_low(nibbles);
    default: return vf_load_i8((const int8_t *)p + i + VF * w);
    }
}
VEC_INLINE vf kv_load_n(const void *p, size_t i, uint32_t n, enum kv_type kv) {
    if (kv == KV_f32) return vf_load_n((const float *)p + i, n);
    if (kv == KV_f16) return vf_load_f16_n((const uint16_t *)p + i, n);
    uint16_t t[VF] = {0};
    memcpy(t, (const uint16_t *)p + i, n * sizeof *t);
    return vf_load_bf16(t);
}

/* ---- quantizing 32 floats ---- */

/* y = H x * scale, H the Walsh-Hadamard matrix: five times sums and differences of neighbours,
 * which go to the first and the second half. */
VEC_INLINE void kv_turn(const float *x, float scale, float *y) {
    vf a = vf_load(x), b = vf_load(x + VF), even, odd;
    for (int i = 0; i < 5; i++) {
        vf_unzip(a, b, &even, &odd);
        a = vf_add(even, odd);
        b = vf_sub(even, odd);
    }
    vf_store(y, vf_mul(a, vf_set1(scale)));
    vf_store(y + VF, vf_mul(b, vf_set1(scale)));
}

/* A scale below half's smallest number is 0; one that is infinite or NaN is NaN. */
VEC_INLINE float kv_scale(float scale, uint16_t *half) {
    float size = scale < 0 ? -scale : scale;
    *half = size < 65520 ? quant_f32_to_f16(scale) : 0x7e00;
    if ((*half & 0x7fff) == 0) *half = 0;
    return *half == 0 || *half == 0x7e00 ? 0 : 1 / quant_f16_to_f32(*half);
}

VEC_INLINE void kv_codes(const float *x, float inverse, float low, float high, int8_t *code) {
    for (int i = 0; i < KV_BLOCK; i += VF) {
        vf t = vf_mul(vf_load(x + i), vf_set1(inverse));
        vf_store_i8(code + i, vf_max(vf_min(t, vf_set1(high)), vf_set1(low)));
    }
    if (inverse == 0) memset(code, 0, KV_BLOCK);
}

/* 0, or NaN if one of the 32 is a NaN or an infinity. */
VEC_INLINE float kv_spoiled(const float *x) {
    vf t = vf_mul(vf_load(x + VF), vf_zero());
    return vf_sum(vf_fma(vf_load(x), vf_zero(), t));
}

VEC_INLINE uint16_t kv_quantize(const float *x, int8_t *code, enum kv_type kv) {
    vf a = vf_load(x), b = vf_load(x + VF);
    uint16_t half;
    if (kv == KV_q8_0) {
        float top = vf_top(vf_max(vf_abs(a), vf_abs(b)));
        kv_codes(x, kv_scale(top / 127 + kv_spoiled(x), &half), -127, 127, code);
    } else {
        float up = vf_top(vf_max(a, b)), down = vf_top(vf_max(vf_neg(a), vf_neg(b)));
        float most = up > down ? up : -down;
        kv_codes(x, kv_scale(most / -8 + kv_spoiled(x), &half), -8, 7, code);
    }
    return half;
}

VEC_INLINE uint8_t kv_pair(int8_t low, int8_t high) {
    return (uint8_t)((low + 8) | (high + 8) << 4);
}

/* ---- storing one position ---- */

VEC_INLINE void store_k_quantized(void *base, const float *x, uint32_t dim, uint32_t slot,
                                  enum kv_type kv) {
    uint16_t *scale = (uint16_t *)kv_scales(base, dim, kv);
    uint8_t *to = (uint8_t *)base + 4 * slot;
    for (uint32_t d = 0; d < dim; d += KV_BLOCK, scale += ATTENTION_PAGE) {
        int8_t code[KV_BLOCK];
        float turned[KV_BLOCK];
        kv_turn(x + d, 1.0f / KV_BLOCK, turned);
        scale[slot] = kv_quantize(turned, code, kv);
        for (int i = 0; i < KV_BLOCK; i += kv == KV_q8_0 ? 4 : 8, to += 4 * ATTENTION_PAGE) {
            if (kv == KV_q8_0) memcpy(to, code + i, 4);
            else for (int j = 0; j < 4; j++) to[j] = kv_pair(code[i + j], code[i + 4 + j]);
        }
    }
}

VEC_INLINE void store_v_quantized(void *base, const float *x, uint32_t dim, uint32_t slot,
                                  enum kv_type kv) {
    uint16_t *scale = (uint16_t *)kv_scales(base, dim, kv);
    uint8_t *to = (uint8_t *)base + kv_code_bytes((size_t)slot * dim, kv);
    for (uint32_t d = 0; d < dim; d += KV_BLOCK, scale += ATTENTION_PAGE) {
        int8_t code[KV_BLOCK];
        scale[slot] = kv_quantize(x + d, code, kv);
        if (kv == KV_q8_0) memcpy(to + d, code, KV_BLOCK);
        else for (int i = 0; i < 16; i++) to[d / 2 + i] = kv_pair(code[i], code[16 + i]);
    }
}

VEC_INLINE void store_half(uint16_t *to, vf x, enum kv_type kv) {
    if (kv == KV_f16) vf_store_f16(to, x);
    else vf_store_bf16(to, x);
}

/* Down the column `slot`. */
VEC_INLINE void store_k(void *base, const float *x, uint32_t dim, uint32_t slot, enum kv_type kv) {
    if (kv_is_quantized(kv)) {
        store_k_quantized(base, x, dim, slot, kv);
    } else if (kv == KV_f32) {
        for (uint32_t d = 0; d < dim; d++) ((float *)base)[d * ATTENTION_PAGE + slot] = x[d];
    } else {
        for (uint32_t d = 0; d < dim; d += VF) {
            uint16_t half[VF], *to = (uint16_t *)base + d * ATTENTION_PAGE + slot;
            uint32_t m = part(dim - d);
            store_half(half, get(x + d, m), kv);
            for (uint32_t i = 0; i < m; i++) to[i * ATTENTION_PAGE] = half[i];
        }
    }
}

VEC_INLINE void store_v(void *base, const float *x, uint32_t dim, uint32_t slot, enum kv_type kv) {
    if (kv_is_quantized(kv)) {
        store_v_quantized(base, x, dim, slot, kv);
    } else if (kv == KV_f32) {
        memcpy((float *)base + (size_t)slot * dim, x, dim * sizeof *x);
    } else {
        uint16_t *to = (uint16_t *)base + (size_t)slot * dim, half[VF];
        uint32_t i = 0;
        for (; i + VF <= dim; i += VF) store_half(to + i, vf_load(x + i), kv);
        if (i == dim) return;
        store_half(half, vf_load_n(x + i, dim - i), kv);
        memcpy(to + i, half, (dim - i) * sizeof *half);
    }
}

/* Calls what(..., kv) with kv a constant. */
#define WITH_KV(type, what, ...)                         \
    switch (type) {                                      \
    case KV_bf16: what(__VA_ARGS__, KV_bf16); break;     \
    case KV_f16: what(__VA_ARGS__, KV_f16); break;       \
    case KV_f32: what(__VA_ARGS__, KV_f32); break;       \
    case KV_q4_0: what(__VA_ARGS__, KV_q4_0); break;     \
    default: what(__VA_ARGS__, KV_q8_0);                 \
    }

static void attention_store(const struct attention_store *job) {
    void *v = kv_values(job->block, job->type.k, job->k_dim);
    for (uint32_t r = 0; r < job->rows; r++) {
        const float *k_row = job->k + r * job->k_stride, *v_row = job->v + r * job->v_stride;
        WITH_KV(job->type.k, store_k, job->block, k_row, job->k_dim, job->slot + r)
        WITH_KV(job->type.v, store_v, v, v_row, job->v_dim, job->slot + r)
    }
}
