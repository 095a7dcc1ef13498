/* SPDX-License-Identifier: Apache-2.0
 * simple.cu: element by element, rows, columns moved, tables; formulas in kernels/ref/. */
#include "devices/cuda/kernels/halves.cuh"
#include "devices/cuda/kernels/norm.cuh"
#include "devices/cuda/kernels/rope.cuh"

/* ---- element by element ---- */

__device__ float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

__device__ float glu_clamped(float gate, float up, const float f[4]) {
    float g = gate > f[1] ? f[1] : gate, u = clamp(up, -f[2], f[2]);
    return (u + f[3]) * g / (1 + expf(-f[0] * g));
}

/* f: above, below, beta, eps */
__device__ float xielu(float x, const float f[4]) {
    float cut = x > f[3] ? f[3] : x;
    float part = x > 0 ? f[0] * x * x : f[1] * (expm1f(cut) - x);
    return part + f[2] * x;
}

__device__ float affine(const struct cuda_map &a, uint64_t i, float x) {
    if (a.b) x *= a.b[i % a.cols];
    return a.c ? x + a.c[i % a.cols] : x;
}

KERNEL_FN(map, struct cuda_map) {
    take_turn();
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    float x = a.a[i / a.a_run];
    switch (a.kind) {
    case MAP_ACT: a.y[i] = act_value(a.act, x); break;
    case MAP_ADD: a.y[i] = x + a.b[i]; break;
    case MAP_AFFINE: a.y[i] = affine(a, i, x); break;
    case MAP_CLAMP: a.y[i] = clamp(x, a.f[0], a.f[1]); break;
    case MAP_GLU: a.y[i] = act_value(a.act, x) * a.b[i]; break;
    case MAP_GLU_CLAMPED: a.y[i] = glu_clamped(x, a.b[i], a.f); break;
    case MAP_MUL: a.y[i] = x * a.b[i / a.b_run]; break;
    case MAP_SCALE: a.y[i] = x * a.f[0]; break;
    case MAP_SOFTCAP: a.y[i] = a.f[0] * tanhf(x / a.f[0]); break;
    case MAP_XIELU: a.y[i] = xielu(x, a.f); break;
    }
}

KERNEL_FN(scale_position, struct cuda_scale_position) {
    take_turn();
    enum { STEPS, LOG, POWER };
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    float at = ((float)a.pos[i / a.cols] + (float)a.offset) / a.period;
    float factor = a.kind == STEPS ? 1 + a.beta * log1pf(floorf(at))
                   : a.kind == LOG ? 1 + a.beta * logf(at > 1 ? at : 1)
                                   : powf(1 + at, a.beta);
    a.y[i] = a.x[i] * factor;
}

/* ---- rows ---- */

struct spread { float mean, deviation; };

__device__ struct spread spread_of(const float *x, uint32_t n, float eps, float *room) {
    float sum = 0, squares = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    float mean = block_sum(sum, room) / n;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        squares = fmaf(x[i] - mean, x[i] - mean, squares);
    return {mean, sqrtf(block_sum(squares, room) / n + eps)};
}

__device__ void round_row(const float *x, uint32_t n, float *codes, float *step, float *room) {
    float top = 1e-5f;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    float s = 127 / block_max(top, room);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) codes[i] = rintf(x[i] * s);
    if (threadIdx.x == 0) *step = 1 / s;
}

__device__ void sparsify_row(const float *x, uint32_t n, float by, float *y, float *room) {
    struct spread s = spread_of(x, n, 0, room);
    float cut = s.mean + s.deviation * by;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] - cut > 0 ? x[i] - cut : 0;
}

__device__ void dot_run(const float *x, const float *other, uint32_t n, float *y, float *room) {
    float sum = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum = fmaf(x[i], other[i], sum);
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) *y = sum;
}

__device__ void match_row(const float *x, const float *other, uint32_t n, float floor, float *y,
                          float *room) {
    float own = mean_square(x, n, room), want = mean_square(other, n, room);
    float factor = sqrtf(want) / sqrtf(own < floor ? floor : own);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * factor;
}

KERNEL_FN(rows, struct cuda_rows) {
    let_next_come();
    if (blockIdx.x == 0) ask_vector(a.w, a.w_cols);
    if (blockIdx.x == 0) ask_vector(a.b, a.b_cols);
    wait_for_last();
    __shared__ float room[WARPS_MAX];
    size_t at = (size_t)blockIdx.x * a.width;
    const float *x = a.x + at;
    float *y = a.y + at, length;
    struct spread s;
    switch (a.kind) {
    case ROW_RMS:
        write_norm(a, x, at, 0, rms_scale(a, x, room), y);
        break;
    case ROW_LAYER:
        s = spread_of(x, a.width, a.f, room);
        write_norm(a, x, at, s.mean, 1 / s.deviation, y);
        break;
    case ROW_L2:
        length = sqrtf(mean_square(x, a.width, room) * a.width);
        write_norm(a, x, at, 0, 1 / (length < a.f ? a.f : length), y);
        break;
    case ROW_L2_SUM:
        write_norm(a, x, at, 0, 1 / sqrtf(mean_square(x, a.width, room) * a.width + a.f), y);
        break;
    case ROW_ROUND: round_row(x, a.width, y, a.step + blockIdx.x, room); break;
    case ROW_SPARSIFY: sparsify_row(x, a.width, a.f, y, room); break;
    case ROW_MATCH_RMS: match_row(x, a.other + at, a.width, a.f, y, room); break;
    case ROW_DOT: dot_run(x, a.other + at, a.width, a.y + blockIdx.x, room); break;
    }
}

/* ---- norms of whole rows ---- */

enum { KEEP = 2 /* of a row's quads in a thread's registers; the others are read again */ };

__device__ float squares(float4 v, float mean, float sum) {
    v = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
}

__device__ float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* A quad of the input, as `combine` has it of pairs. */
__device__ float4 quad_of(const struct cuda_norm_row &a, size_t token, uint32_t i) {
    uint32_t n = a.cols / 4;
    const float4 *x = (const float4 *)a.x;
    if (!a.route) return x[token * n + i];
    float4 sum = make_float4(0, 0, 0, 0);
    for (uint32_t k = 0; k < a.used; k++) {
        float by = a.route[token * 2 * a.used + k];
        float4 v = x[(size_t)a.pair[token * a.used + k] * n + i];
        sum = make_float4(fmaf(by, v.x, sum.x), fmaf(by, v.y, sum.y), fmaf(by, v.z, sum.z),
                          fmaf(by, v.w, sum.w));
    }
    return sum;
}

__device__ float4 norm_quad(const struct cuda_norm_row &a, float4 v, float mean, float scale,
                            uint32_t i) {
    const float4 *w = (const float4 *)a.w, *b = (const float4 *)a.b;
    v = make_float4((v.x - mean) * scale, (v.y - mean) * scale, (v.z - mean) * scale,
                    (v.w - mean) * scale);
    if (w) v = make_float4(v.x * w[i].x, v.y * w[i].y, v.z * w[i].z, v.w * w[i].w);
    return b ? add4(v, b[i]) : v;
}

/* A block a row: what is normed may be a sum that is kept, too, and may be halved. A thread's quads
 * are i, i + blockDim.x, ...; each lies in place of its own input, if in place of any. */
KERNEL_FN(norm_row, struct cuda_norm_row) {
    __shared__ float room[WARPS_MAX];
    uint32_t n = a.cols / 4, behind = KEEP * blockDim.x + threadIdx.x;
    size_t token = blockIdx.x;
    let_next_come();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        if (a.w) ask(a.w + 4 * i);
        if (a.b) ask(a.b + 4 * i);
    }
    wait_for_last();
    const float4 *plus = (const float4 *)a.plus + token * n;
    float4 *sum = (float4 *)a.sum + token * n, *y = (float4 *)a.y + token * n, kept[KEEP];
    auto first = [&](uint32_t i) {
        float4 v = quad_of(a, token, i);
        if (!a.sum) return v;
        v = add4(v, plus[i]);
        sum[i] = v;
        return v;
    };
    auto again = [&](uint32_t i) { return a.sum ? sum[i] : ((const float4 *)a.x)[token * n + i]; };
#pragma unroll
    for (uint32_t k = 0; k < KEEP; k++) {
        uint32_t i = k * blockDim.x + threadIdx.x;
        kept[k] = i < n ? first(i) : make_float4(0, 0, 0, 0);
    }
    for (uint32_t i = behind; i < n && a.sum; i += blockDim.x) first(i);
    float mean = 0, all = 0;
    if (a.layer) {
#pragma unroll
        for (uint32_t k = 0; k < KEEP; k++) all += kept[k].x + kept[k].y + kept[k].z + kept[k].w;
        for (uint32_t i = behind; i < n; i += blockDim.x) {
            float4 v = again(i);
            all += v.x + v.y + v.z + v.w;
        }
        mean = block_sum(all, room) / a.cols;
    }
    all = 0;
#pragma unroll
    for (uint32_t k = 0; k < KEEP; k++)
        if (k * blockDim.x + threadIdx.x < n) all = squares(kept[k], mean, all);
    for (uint32_t i = behind; i < n; i += blockDim.x) all = squares(again(i), mean, all);
    float scale = 1 / sqrtf(block_sum(all, room) / a.cols + a.eps);
    struct row_peak peak = {0, true};
#pragma unroll
    for (uint32_t k = 0; k < KEEP; k++) {
        uint32_t i = k * blockDim.x + threadIdx.x;
        if (i >= n) continue;
        kept[k] = y[i] = norm_quad(a, kept[k], mean, scale, i);
        add_peak(&peak, kept[k]);
    }
    for (uint32_t i = behind; i < n; i += blockDim.x) {
        float4 v = y[i] = norm_quad(a, again(i), mean, scale, i);
        add_peak(&peak, v);
    }
    if (!a.halve.y) return;
    struct halving h = begin_halves(a.halve, token, peak, room);
#pragma unroll
    for (uint32_t k = 0; k < KEEP; k++) {
        uint32_t i = k * blockDim.x + threadIdx.x;
        if (i < n) put_halves(h, i, kept[k]);
    }
    for (uint32_t i = behind; i < n; i += blockDim.x) put_halves(h, i, y[i]);
    pad_halves(h, a.cols);
}

/* A block a row of MAP_GLU, which is halved, too. */
KERNEL_FN(glu_row, struct cuda_glu_row) {
    take_turn();
    __shared__ float room[WARPS_MAX];
    size_t at = (size_t)blockIdx.x * a.halve.cols;
    const float4 *gate = (const float4 *)(a.gate + at), *up = (const float4 *)(a.up + at);
    float4 *y = (float4 *)(a.y + at);
    struct row_peak peak = {0, true};
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < a.halve.cols / 4; i += blockDim.x) {
        float4 g = gate[i], u = up[i];
        float4 v = make_float4(act_value(a.act, g.x) * u.x, act_value(a.act, g.y) * u.y,
                               act_value(a.act, g.z) * u.z, act_value(a.act, g.w) * u.w);
        y[i] = v;
        add_peak(&peak, v);
    }
    halve_row(a.halve, y, blockIdx.x, peak, room);
}

KERNEL_FN(sinkhorn, struct cuda_sinkhorn) {
    take_turn();
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x, n = a.n;
    if (row >= a.rows) return;
    const float *x = a.x + (size_t)row * n * n;
    float *y = a.y + (size_t)row * n * n;
    for (uint32_t r = 0; r < n; r++) {
        float top = -INFINITY;
        for (uint32_t i = 0; i < n; i++) top = fmaxf(top, x[r * n + i]);
        for (uint32_t i = 0; i < n; i++) y[r * n + i] = expf(x[r * n + i] - top);
    }
    /* Lines in turn: rows, then `rounds` times columns, rows between. */
    for (uint32_t turn = 0; turn < 2 * a.rounds || turn == 0; turn++) {
        bool rows = turn % 2 == 0;
        float eps = turn == 0 ? 0 : a.eps;
        for (uint32_t i = 0; i < n; i++) {
            float sum = eps;
            for (uint32_t k = 0; k < n; k++) sum += y[rows ? i * n + k : k * n + i];
            for (uint32_t k = 0; k < n; k++) y[rows ? i * n + k : k * n + i] /= sum;
        }
        for (uint32_t i = 0; turn == 0 && i < n * n; i++) y[i] += a.eps;
    }
}

KERNEL_FN(mix, struct cuda_mix) {
    take_turn();
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    uint32_t c = i % a.width, k = i / a.width % a.to;
    uint64_t row = i / a.width / a.to;
    const float *x = a.x + row * a.from * a.width + c, *w = a.w + row * a.from * a.to + k;
    float sum = 0;
    for (uint32_t j = 0; j < a.from; j++) sum = fmaf(w[j * a.to], x[(size_t)j * a.width], sum);
    a.y[i] = sum;
}

KERNEL_FN(pool, struct cuda_pool) {
    take_turn();
    uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, n = a.seq[blockIdx.y].count;
    if (c >= a.cols) return;
    const float *x = a.x + (size_t)a.seq[blockIdx.y].first * a.cols + c;
    float v = x[0], sum = 0, weights = 0;
    for (uint32_t i = 0; i < n; i++) {
        float one = x[(size_t)i * a.cols], by = a.kind == POOL_WEIGHTED ? i + 1 : 1;
        if (!(one <= v) && !isnan(v)) v = one;
        sum = fmaf(by, one, sum);
        weights += by;
    }
    if (a.kind == POOL_FIRST) v = x[0];
    if (a.kind == POOL_LAST) v = x[(size_t)(n - 1) * a.cols];
    if (a.kind == POOL_MEAN || a.kind == POOL_WEIGHTED) v = sum / weights;
    if (a.kind == POOL_MEAN_SQRT) v = sum / sqrtf(weights);
    a.y[(size_t)blockIdx.y * a.cols + c] = v;
}

/* ---- columns moved ---- */

__device__ float concat(const struct cuda_move &a, uint64_t i) {
    uint32_t both = a.a_cols + a.b_cols, c = i % both, g = i / both % a.groups;
    uint64_t row = i / both / a.groups;
    if (c < a.a_cols) return a.a[(a.a_once ? row : row * a.groups + g) * a.a_cols + c];
    return a.b[(a.b_once ? row : row * a.groups + g) * a.b_cols + c - a.a_cols];
}

KERNEL_FN(move, struct cuda_move) {
    take_turn();
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    uint64_t row = i / a.cols, c = i % a.cols;
    switch (a.kind) {
    case MOVE_CONCAT: a.y[i] = concat(a, i); break;
    case MOVE_SLICE: a.y[i] = a.a[i / a.len * a.total + a.start + i % a.len]; break;
    case MOVE_TILE: a.y[i] = a.a[i / a.cols / a.times * a.cols + c]; break;
    case MOVE_GATHER:
    case MOVE_JOIN: a.y[i] = a.a[(uint64_t)a.index[row] * a.cols + c]; break;
    case MOVE_SPLIT: a.y[(uint64_t)a.index[row] * a.cols + c] = a.a[i]; break;
    }
}

/* ---- positions ---- */

KERNEL_FN(rope_table, struct cuda_rope_table) {
    take_turn();
    uint32_t i = threadIdx.x + blockIdx.x * blockDim.x, t = blockIdx.y;
    if (i >= a.half) return;
    uint32_t at = a.step->pos[t], length = a.step->seq[a.step->seq_of[t]].length;
    at = at > a.back ? at - a.back : 0;
    if (a.every > 1) at -= at % a.every;
    float freq = a.freq[i], magnitude = a.magnitude;
    if (a.original > 0 && length > a.original) {
        if (a.magnitude_long > 0) magnitude = a.magnitude_long;
        if (a.freq_long) {
            freq = a.freq_long[i];
        } else {
            double grown = (double)a.dynamic * length / a.original - ((double)a.dynamic - 1);
            double base = (double)a.base * pow(grown, (double)a.half / (a.half - 1));
            freq = (float)(1 / pow(base, (double)i / a.half));
        }
    }
    float angle = (float)at * freq;
    float *y = a.y + (size_t)t * 2 * a.half;
    y[i] = cosf(angle) * magnitude;
    y[a.half + i] = sinf(angle) * magnitude;
}

/* A thread turns one pair, or copies one element behind them; may run in place. */
KERNEL_FN(rope, struct cuda_rope) {
    take_turn();
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t pairs = rope_pairs(a);
    if (i >= a.n) return;
    uint64_t head = i / pairs;
    turn_pair(a, a.x + head * a.head_dim, a.table + head / a.heads * 2 * a.half, i % pairs,
              a.y + head * a.head_dim);
}
