/* SPDX-License-Identifier: Apache-2.0
 *
 * thin.cu: products with float matrices of few rows, such as routers, in FP32: too few rows for
 * linear.cu's blocks to fill a GPU, and a step waits for each. A warp makes R rows' products with T
 * tokens. Lane l takes the quads l, l + 32, ... of the row in order, in each the elements in order
 * with one fused multiply-add each, and the lanes are added as a butterfly: whatever R and T are, a
 * product's bits are the same. A row's first quads are on their way while the kernel before runs. */
#include "devices/cuda/kernels/common.cuh"
#include "devices/cuda/kernels/formats.cuh"

/* The compiler must not put these behind wait_for_last(). */
__device__ float4 load_four(const uint8_t *p) {
    float4 v;
    asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(p));
    return v;
}
__device__ uint2 load_two(const uint8_t *p) {
    uint2 v;
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}

template <class F> __device__ float4 quad_at(const uint8_t *row, uint32_t i);
template <> __device__ float4 quad_at<format_f32>(const uint8_t *row, uint32_t i) {
    return load_four(row + (size_t)i * 16);
}
template <> __device__ float4 quad_at<format_f16>(const uint8_t *row, uint32_t i) {
    uint2 v = load_two(row + (size_t)i * 8);
    float2 a = __half22float2(*(__half2 *)&v.x), b = __half22float2(*(__half2 *)&v.y);
    return make_float4(a.x, a.y, b.x, b.y);
}
template <> __device__ float4 quad_at<format_bf16>(const uint8_t *row, uint32_t i) {
    uint2 v = load_two(row + (size_t)i * 8);
    return make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000),
                       __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000));
}

/* KEPT: quads of each row that a lane asks for early. */
template <class F, int R, int T, int KEPT> __device__ void thin(const struct cuda_linear &a) {
    uint32_t lane = threadIdx.x % WARP, quads = a.w.cols / 4;
    uint32_t row0 = (blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP) * R;
    uint32_t token0 = blockIdx.y * T;
    const uint8_t *row[R];
    const float4 *x[T];
    float4 kept[R][KEPT];
    float sum[R][T] = {};
    for (int r = 0; r < R; r++)
        row[r] = a.w.data + min(row0 + r, a.w.rows - 1) * a.w.row_bytes;
    for (int t = 0; t < T; t++)
        x[t] = (const float4 *)(a.x + (size_t)min(token0 + t, a.tokens - 1) * a.x_stride);
    auto add = [&](int r, int t, float4 w, float4 v) {
        sum[r][t] = fmaf(w.w, v.w, fmaf(w.z, v.z, fmaf(w.y, v.y, fmaf(w.x, v.x, sum[r][t]))));
    };
    let_next_come();
#pragma unroll
    for (int k = 0; k < KEPT; k++)
#pragma unroll
        for (int r = 0; r < R; r++)
            kept[r][k] = quad_at<F>(row[r], min(k * WARP + lane, quads - 1));
    wait_for_last();
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        uint32_t i = k * WARP + lane; /* no branch, so that loads wait for none */
#pragma unroll
        for (int t = 0; t < T; t++) {
            float4 v = x[t][min(i, quads - 1)];
            if (i >= quads) v = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < R; r++) add(r, t, kept[r][k], v);
        }
    }
#pragma unroll 4
    for (uint32_t i = KEPT * WARP + lane; i < quads; i += WARP) {
        float4 w[R];
#pragma unroll
        for (int r = 0; r < R; r++) w[r] = quad_at<F>(row[r], i);
#pragma unroll
        for (int t = 0; t < T; t++) {
            float4 v = x[t][i];
#pragma unroll
            for (int r = 0; r < R; r++) add(r, t, w[r], v);
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int t = 0; t < T; t++) {
            float v = warp_sum(sum[r][t]);
            if (lane != 0 || row0 + r >= a.w.rows || token0 + t >= a.tokens) continue;
            a.y[(size_t)(token0 + t) * a.y_stride + row0 + r] =
                a.bias ? v + a.bias[row0 + r] : v;
        }
}

#define THIN(name)                                                        \
    extern "C" __global__ void __launch_bounds__(128)                     \
        thin_1_##name(const __grid_constant__ struct cuda_linear a) {     \
        thin<format_##name, 1, 1, 16>(a);                                 \
    }                                                                     \
    extern "C" __global__ void __launch_bounds__(128)                     \
        thin_4_##name(const __grid_constant__ struct cuda_linear a) {     \
        thin<format_##name, 1, 4, 8>(a);                                  \
    }                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                     \
        thin_16_##name(const __grid_constant__ struct cuda_linear a) {    \
        thin<format_##name, 4, 4, 1>(a);                                  \
    }
FLOAT_FORMATS(THIN)
