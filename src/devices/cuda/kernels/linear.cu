/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.cu: products with weights of every format, decoded as they are read, in FP32: those of
 * float formats, of experts and heads. (mma.cu has the others.)
 *
 * A warp makes one row's products with up to TOKENS rows of x. Lane l takes the sub-blocks l, l + 32,
 * ... of the row in order (the elements, of float formats), in each the elements in order with one
 * fused multiply-add each:
 *     acc = fma(scale, sum of (code - offset) * x, acc);  acc = fma(-min, sum of x, acc)
 * and the lanes are added as a butterfly: however many tokens there are, a product's bits are the
 * same. */
#include "devices/cuda/kernels/common.cuh"
#include "devices/cuda/kernels/formats.cuh"

enum { TOKENS = 4, ROWS = 8 /* warps of a block */ };

template <class F, int T>
__device__ void add_sub(const uint8_t *row, uint32_t cols, uint32_t s, const float *x,
                        uint32_t stride, float acc[T]) {
    uint8_t code[F::SUB];
    float scale, min;
    F::sub(row, cols / F::BLOCK, s, code, &scale, &min);
#pragma unroll
    for (int t = 0; t < T; t++) {
        const float4 *at = (const float4 *)(x + (size_t)t * stride + (size_t)s * F::SUB);
        float sum = 0, all = 0;
#pragma unroll
        for (int i = 0; i < F::SUB / 4; i++) {
            float4 v = at[i];
            sum = fmaf((float)((int)code[4 * i] - F::OFFSET), v.x, sum);
            sum = fmaf((float)((int)code[4 * i + 1] - F::OFFSET), v.y, sum);
            sum = fmaf((float)((int)code[4 * i + 2] - F::OFFSET), v.z, sum);
            sum = fmaf((float)((int)code[4 * i + 3] - F::OFFSET), v.w, sum);
            all += v.x, all += v.y, all += v.z, all += v.w;
        }
        acc[t] = fmaf(-min, all, fmaf(scale, sum, acc[t]));
    }
}

template <class F, int T>
__device__ void product(const uint8_t *row, uint32_t cols, const float *x, uint32_t stride,
                        float acc[T]) {
    uint32_t lane = threadIdx.x % WARP;
    for (int t = 0; t < T; t++) acc[t] = 0;
    if constexpr (F::integer) {
        for (uint32_t s = lane; s < cols / F::SUB; s += WARP)
            add_sub<F, T>(row, cols, s, x, stride, acc);
    } else {
        for (uint32_t i = lane; i < cols; i += WARP) {
            float w = F::at(row, i);
#pragma unroll
            for (int t = 0; t < T; t++) acc[t] = fmaf(w, x[(size_t)t * stride + i], acc[t]);
        }
    }
    for (int t = 0; t < T; t++) acc[t] = warp_sum(acc[t]);
}

__device__ uint32_t row_of_warp() { return blockIdx.x * ROWS + threadIdx.x / WARP; }

__device__ void put(const struct cuda_linear &a, float *y, uint32_t r, float v, const float *bias) {
    if (threadIdx.x % WARP == 0) y[r] = bias ? v + bias[r] : v;
}

template <class F> __device__ void linear_of(const struct cuda_linear &a) {
    uint32_t r = row_of_warp(), t0 = blockIdx.y * TOKENS;
    if (r >= a.w.rows) return;
    const uint8_t *row = a.w.data + r * a.w.row_bytes;
    const float *x = a.x + (size_t)t0 * a.x_stride;
    float *y = a.y + (size_t)t0 * a.y_stride, acc[TOKENS];
    uint32_t n = a.tokens - t0;
    if (n >= TOKENS) {
        product<F, TOKENS>(row, a.w.cols, x, a.x_stride, acc);
        for (int t = 0; t < TOKENS; t++) put(a, y + (size_t)t * a.y_stride, r, acc[t], a.bias);
        return;
    }
    for (uint32_t t = 0; t < n; t++) {
        product<F, 1>(row, a.w.cols, x + (size_t)t * a.x_stride, a.x_stride, acc);
        put(a, y + (size_t)t * a.y_stride, r, acc[0], a.bias);
    }
}

/* Pair p of a token and an expert; experts from w.matrices on have no matrix. */
template <class F> __device__ void experts_of(const struct cuda_linear &a) {
    uint32_t r = row_of_warp(), p = blockIdx.y, e = a.expert[p];
    if (r >= a.w.rows) return;
    float acc[1] = {0}, *y = a.y + (size_t)p * a.y_stride;
    if (e >= a.w.matrices) {
        put(a, y, r, 0, NULL);
        return;
    }
    const uint8_t *row = a.w.data + e * a.w.matrix_bytes + r * a.w.row_bytes;
    const float *x = a.x + (size_t)(a.token ? a.token[p] : p) * a.x_stride;
    product<F, 1>(row, a.w.cols, x, a.x_stride, acc);
    put(a, y, r, acc[0], a.bias ? a.bias + (size_t)e * a.w.rows : NULL);
}

template <class F> __device__ void heads_of(const struct cuda_linear &a) {
    uint32_t r = row_of_warp(), t = blockIdx.y, h = blockIdx.z;
    if (r >= a.w.rows) return;
    const uint8_t *row = a.w.data + h * a.w.matrix_bytes + r * a.w.row_bytes;
    const float *x = a.x + (size_t)t * a.x_stride + (size_t)h * a.w.cols;
    float acc[1];
    product<F, 1>(row, a.w.cols, x, a.x_stride, acc);
    put(a, a.y + (size_t)t * a.y_stride + (size_t)h * a.w.rows, r, acc[0], NULL);
}

#define INTEGER(name, NAME) ALL(name)
#define ALL(name)                                                                             \
    extern "C" __global__ void __launch_bounds__(ROWS *WARP)                                  \
        linear_##name(const __grid_constant__ struct cuda_linear a) {                         \
        take_turn();                                                                          \
        linear_of<format_##name>(a);                                                          \
    }                                                                                         \
    extern "C" __global__ void __launch_bounds__(ROWS *WARP)                                  \
        linear_experts_##name(const __grid_constant__ struct cuda_linear a) {                 \
        take_turn();                                                                          \
        experts_of<format_##name>(a);                                                         \
    }                                                                                         \
    extern "C" __global__ void __launch_bounds__(ROWS *WARP)                                  \
        linear_heads_##name(const __grid_constant__ struct cuda_linear a) {                   \
        take_turn();                                                                          \
        heads_of<format_##name>(a);                                                           \
    }
INTEGER_FORMATS(INTEGER)
FLOAT_FORMATS(ALL)

/* ---- rows of a matrix as they are ---- */

template <class F>
__device__ void embed_row(const uint8_t *row, uint32_t cols, float by, float *y) {
    if constexpr (F::integer) {
        for (uint32_t s = threadIdx.x; s < cols / F::SUB; s += blockDim.x) {
            uint8_t code[F::SUB];
            float scale, min;
            F::sub(row, cols / F::BLOCK, s, code, &scale, &min);
            for (int i = 0; i < F::SUB; i++)
                y[s * F::SUB + i] = (scale * (float)((int)code[i] - F::OFFSET) - min) * by;
        }
    } else {
        for (uint32_t i = threadIdx.x; i < cols; i += blockDim.x) y[i] = F::at(row, i) * by;
    }
}

__device__ void embed_any(const struct cuda_matrix &w, const uint8_t *row, float by, float *y) {
    switch (w.quant) {
#define ROW(name, ...)                                      \
    case FORMAT_##name:                                     \
        embed_row<format_##name>(row, w.cols, by, y);       \
        break;
        INTEGER_FORMATS(ROW)
        FLOAT_FORMATS(ROW)
    }
}

KERNEL_FN(embed, struct cuda_embed) {
    take_turn();
    uint32_t t = blockIdx.x;
    uint64_t id = a.id ? (uint64_t)a.id[t] : a.pos[t] + (uint64_t)(int64_t)a.offset;
    if (id >= a.w.rows) id = 0; /* graph.h: a table smaller than the vocabulary */
    embed_any(a.w, a.w.data + id * a.w.row_bytes, a.scale, a.y + (size_t)t * a.w.cols);
}

/* The token `back` before the i-th of a sequence; its state: ids + 1 of those before the step,
 * newest first, 0: none. */
__device__ int32_t token_before(const struct cuda_ngrams &a, const struct cuda_seq &seq,
                                const float *state, uint32_t i, uint32_t back) {
    if (i >= back) return a.step->id[seq.first + i - back];
    float was = seq.past == 0 ? 0 : state[back - i - 1];
    return was == 0 ? -1 : (int32_t)was - 1;
}

/* A block is a head of an order of a token. */
KERNEL_FN(embed_ngrams, struct cuda_ngrams) {
    take_turn();
    uint32_t t = blockIdx.x, head = blockIdx.y, order = head / a.heads + 1;
    uint32_t in = a.step->seq_of[t];
    const struct cuda_seq seq = a.step->seq[in];
    const float *state = state_of(a.state, a.step, in);
    uint64_t hash = (uint64_t)a.step->id[t] * a.multiplier[0];
    bool ended = false;
    for (uint32_t back = 1; back <= order; back++) {
        int32_t token = token_before(a, seq, state, t - seq.first, back);
        ended = ended || token < 0 || token == a.end;
        hash ^= (uint64_t)(ended ? a.end : token) * a.multiplier[back];
    }
    uint64_t row = a.first[head] + hash % a.size[head];
    const uint8_t *at = a.w.data + row / a.w.rows * a.w.matrix_bytes +
                        row % a.w.rows * a.w.row_bytes;
    embed_any(a.w, at, 1, a.y + ((size_t)t * gridDim.y + head) * a.w.cols);
}

/* After it: what the sequence's state is then. A thread a sequence. */
KERNEL_FN(ngrams_end, struct cuda_ngrams) {
    take_turn();
    uint32_t in = blockIdx.x * blockDim.x + threadIdx.x;
    if (in >= a.step->seqs) return;
    const struct cuda_seq seq = a.step->seq[in];
    float *state = state_of(a.state, a.step, in), now[NGRAM_ORDER_MAX];
    for (uint32_t i = 0; i + 1 < a.order; i++)
        now[i] = (float)(token_before(a, seq, state, seq.count, i + 1) + 1);
    for (uint32_t i = 0; i + 1 < a.order; i++) state[i] = now[i];
}
