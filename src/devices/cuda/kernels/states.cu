/* SPDX-License-Identifier: Apache-2.0
 *
 * states.cu: the recurrent ops: a sequence's tokens in order on its state, which lies in the page of
 * its own. What one token does depends on the state alone. Formulas: kernels/kernels.h. */
#include "devices/cuda/kernels/common.cuh"

/* The input `back` tokens before token t of x, of a column. */
struct taps {
    const float *x, *state;
    uint32_t cols, past;  /* rows of the state */
    bool starts;
};
__device__ float tap(const struct taps &p, uint32_t t, uint32_t back) {
    if (t >= back) return p.x[(size_t)(t - back) * p.cols];
    return p.starts ? 0 : p.state[(size_t)(p.past + t - back) * p.cols];
}

KERNEL_FN(conv1d, struct cuda_conv1d) {
    take_turn();
    uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= a.cols) return;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    float *state = state_of(a.state, a.step, blockIdx.y) + c;
    size_t first = (size_t)seq.first * a.cols + c;
    struct taps p = {a.x + first, state, a.cols, (a.kernel - 1) * a.apart, seq.past == 0};
    for (uint32_t t = 0; t < seq.count; t++) {
        float sum = a.bias ? a.bias[c] : 0;
        for (uint32_t j = 0; j < a.kernel; j++)
            sum = fmaf(a.w[(size_t)j * a.cols + c], tap(p, t, (a.kernel - 1 - j) * a.apart), sum);
        a.y[first + (size_t)t * a.cols] = sum;
    }
    /* What it is afterwards; a row is read before the one it moves to is written. */
    for (uint32_t i = 0; i < p.past; i++)
        state[(size_t)i * a.cols] = tap(p, seq.count, p.past - i);
}

/* A block is a head of a sequence, a thread a column of S. */
KERNEL_FN(delta, struct cuda_delta) {
    take_turn();
    uint32_t c = threadIdx.x + blockIdx.z * blockDim.x, h = blockIdx.x;
    if (c >= a.v_dim) return;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    float *s = state_of(a.state, a.step, blockIdx.y) + (size_t)h * a.k_dim * a.v_dim + c;
    uint32_t k_head = a.k_tiled ? h % a.k_heads : h / (a.heads / a.k_heads);
    uint32_t decays = a.decay_each ? a.k_dim : 1;
    if (seq.past == 0)
        for (uint32_t i = 0; i < a.k_dim; i++) s[(size_t)i * a.v_dim] = 0;
    for (uint32_t t = seq.first; t < seq.first + seq.count; t++) {
        size_t at = ((size_t)t * a.k_heads + k_head) * a.k_dim, head = (size_t)t * a.heads + h;
        const float *q = a.q + at, *k = a.k + at;
        const float *decay = a.decay_fixed ? a.decay + h : a.decay + head * decays;
        float v = a.v[head * a.v_dim + c], read = 0, y = 0;
        for (uint32_t i = 0; a.delta && i < a.k_dim; i++)
            read = fmaf(k[i], decay[a.decay_each ? i : 0] * s[(size_t)i * a.v_dim], read);
        float change = (a.beta ? a.beta[head] : 1) * (v - read);
        for (uint32_t i = 0; i < a.k_dim; i++) {
            float *at_s = &s[(size_t)i * a.v_dim];
            *at_s = fmaf(k[i], change, decay[a.decay_each ? i : 0] * *at_s);
            y = fmaf(q[i], *at_s, y);
        }
        y *= a.scale;
        a.y[head * a.v_dim + c] = a.skip ? fmaf(a.skip[h], v, y) : y;
    }
}

/* A block is a head of a sequence; its state: S [k_dim][v_dim], n [k_dim], m. */
KERNEL_FN(mlstm, struct cuda_mlstm) {
    take_turn();
    __shared__ float room[WARPS_MAX];
    uint32_t h = blockIdx.x, each = a.k_dim * (a.v_dim + 1) + 1;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    float *s = state_of(a.state, a.step, blockIdx.y) + (size_t)h * each;
    float *n = s + (size_t)a.k_dim * a.v_dim, *m = n + a.k_dim;
    for (uint32_t i = threadIdx.x; i < each && seq.past == 0; i += blockDim.x) s[i] = 0;
    __syncthreads();
    float held = *m;
    for (uint32_t t = seq.first; t < seq.first + seq.count; t++) {
        size_t head = (size_t)t * a.heads + h;
        const float *q = a.q + head * a.k_dim, *k = a.k + head * a.k_dim;
        float gate = a.gate[head], old = a.log_decay[head] + held, top = old > gate ? old : gate;
        float f = expf(old - top), e = expf(gate - top), dot = 0;
        for (uint32_t i = threadIdx.x; i < a.k_dim; i += blockDim.x) {
            n[i] = fmaf(e, k[i], f * n[i]);
            dot = fmaf(n[i], q[i], dot);
        }
        float below = fmaxf(fabsf(a.scale * block_sum(dot, room)), expf(-top)) + a.eps;
        for (uint32_t c = threadIdx.x; c < a.v_dim; c += blockDim.x) {
            float v = e * a.v[head * a.v_dim + c], y = 0;
            for (uint32_t i = 0; i < a.k_dim; i++) {
                float *at = &s[(size_t)i * a.v_dim + c];
                *at = fmaf(k[i], v, f * *at);
                y = fmaf(q[i], *at, y);
            }
            a.y[head * a.v_dim + c] = a.scale * y / below;
        }
        held = top;
    }
    __syncthreads();
    if (threadIdx.x == 0) *m = held;
}

KERNEL_FN(scan, struct cuda_scan) {
    take_turn();
    uint32_t col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= a.cols) return;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    float *h = state_of(a.state, a.step, blockIdx.y) + col;
    uint32_t head = col / (a.cols / a.heads);
    if (seq.past == 0)
        for (uint32_t i = 0; i < a.n; i++) h[(size_t)i * a.cols] = 0;
    for (uint32_t t = seq.first; t < seq.first + seq.count; t++) {
        size_t at = (size_t)t * a.cols + col, own = ((size_t)t * a.heads + head) * a.n;
        float x = a.x[at], dt = a.dt[at], y = 0;
        for (uint32_t i = 0; i < a.n; i++) {
            float *one = &h[(size_t)i * a.cols];
            *one = fmaf(dt * x, a.b[own + i], expf(dt * a.a[(size_t)i * a.cols + col]) * *one);
            y = fmaf(a.c[own + i], *one, y);
        }
        a.y[at] = a.d ? fmaf(a.d[col], x, y) : y;
    }
}

/* ---- columns that do not meet ---- */

/* Sums as multiples of exp(-top); no weight: empty. */
struct sums { float values, weights, top; };

__device__ struct sums with(struct sums s, float exponent, float v) {
    float top = s.weights > 0 && s.top > exponent ? s.top : exponent;
    float e = s.weights > 0 ? expf(s.top - top) : 0, f = expf(exponent - top);
    return {fmaf(e, s.values, f * v), fmaf(e, s.weights, f), top};
}

__device__ void wkv4(const struct cuda_column &a, const struct cuda_seq &seq, uint32_t c,
                     float *state) {
    struct sums s = {0, 0, 0};
    if (seq.past > 0) s = {state[0], state[a.cols], state[2 * (size_t)a.cols]};
    for (uint32_t t = seq.first; t < seq.first + seq.count; t++) {
        size_t at = (size_t)t * a.cols + c;
        struct sums now = with(s, a.first[c] + a.a[at], a.b[at]);
        a.y[at] = now.values / now.weights;
        s.top += a.decay[c];
        s = with(s, a.a[at], a.b[at]);
    }
    state[0] = s.values;
    state[a.cols] = s.weights;
    state[2 * (size_t)a.cols] = s.top;
}

__device__ void rglru(const struct cuda_column &a, const struct cuda_seq &seq, uint32_t c,
                      float *state) {
    float h = seq.past == 0 ? 0 : *state;
    for (uint32_t t = 0; t < seq.count; t++) {
        size_t at = (size_t)(seq.first + t) * a.cols + c;
        float decay = a.b[at], x = a.a[at];
        h = seq.past + t == 0 ? x : fmaf(expf(decay), h, sqrtf(-expm1f(2 * decay)) * x);
        a.y[at] = h;
    }
    *state = h;
}

__device__ void shift(const struct cuda_column &a, const struct cuda_seq &seq, uint32_t c,
                      float *state) {
    float before = seq.past == 0 ? 0 : *state;
    for (uint32_t t = seq.first; t < seq.first + seq.count; t++) {
        size_t at = (size_t)t * a.cols + c;
        a.y[at] = before;
        before = a.a[at];
    }
    *state = before;
}

KERNEL_FN(column, struct cuda_column) {
    take_turn();
    uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= a.cols) return;
    float *state = state_of(a.state, a.step, blockIdx.y) + c;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    switch (a.kind) {
    case COLUMN_RGLRU: rglru(a, seq, c, state); break;
    case COLUMN_SHIFT: shift(a, seq, c, state); break;
    case COLUMN_WKV4: wkv4(a, seq, c, state); break;
    }
}

/* ---- means of blocks ---- */

__device__ struct sums sums_at(const float *p, uint32_t cols) {
    return {p[0], p[cols], p[2 * (size_t)cols]};
}
__device__ void put_sums(float *p, uint32_t cols, struct sums s) {
    p[0] = s.values;
    p[cols] = s.weights;
    p[2 * (size_t)cols] = s.top;
}

KERNEL_FN(compress, struct cuda_compress) {
    take_turn();
    uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, cols = a.cols;
    if (c >= cols) return;
    const struct cuda_seq seq = a.step->seq[blockIdx.y];
    float *state = state_of(a.state, a.step, blockIdx.y) + c, *next = state + 3 * (size_t)cols;
    uint32_t all = a.overlaps ? 2 * cols : cols, half = all - cols;
    struct sums none = {0, 0, 0}, own = none, first = none;
    if (seq.past > 0) {
        own = sums_at(state, cols);
        if (a.overlaps) first = sums_at(next, cols);
    }
    for (uint32_t i = 0; i < seq.count; i++) {
        uint32_t place = (seq.past + i) % a.every;
        size_t at = (size_t)(seq.first + i) * all + c, bias = (size_t)place * all + c;
        if (place == 0) own = first, first = none;
        own = with(own, a.gate[at + half] + a.bias[bias + half], a.kv[at + half]);
        a.y[(size_t)(seq.first + i) * cols + c] = own.values / own.weights;
        if (a.overlaps) first = with(first, a.gate[at] + a.bias[bias], a.kv[at]);
    }
    put_sums(state, cols, own);
    if (a.overlaps) put_sums(next, cols, first);
}
