/* SPDX-License-Identifier: Apache-2.0
 * pack.cu: rows of the file to those of formats.cuh, and the largest weight of a matrix. */
#include "devices/cuda/kernels/common.cuh"
#include "devices/cuda/kernels/formats.cuh"

/* A thread a block of the row. */
__device__ void pack_q6_k(const struct cuda_pack &a, const uint8_t *from, uint8_t *to, uint32_t b) {
    const struct q6_k_block *block = (const struct q6_k_block *)from + b;
    uint8_t *low = to + (size_t)b * 128, *high = to + (size_t)a.blocks * 128 + b * 64;
    uint8_t *scales = to + (size_t)a.blocks * 192 + b * 16, *d = to + (size_t)a.blocks * 208 + b * 2;
    uint8_t code[Q6_K_SUB];
    for (uint32_t i = 0; i < 128; i++) low[i] = 0;
    for (uint32_t i = 0; i < 64; i++) high[i] = 0;
    for (uint32_t s = 0; s < 16; s++) {
        float scale, min;
        q6_k_sub(block, s, code, &scale, &min);
        for (uint32_t i = 0, w = s % 4 * 16; i < 16; i++, w++) {
            low[s / 4 * 32 + w % 32] |= (code[i] & 15) << w / 32 * 4;
            high[s / 4 * 16 + i] |= code[i] >> 4 << w / 16 * 2;
        }
        scales[s] = block->scales[s];
    }
    d[0] = block->d[0];
    d[1] = block->d[1];
}

__device__ void pack_q8_0(const struct cuda_pack &a, const uint8_t *from, uint8_t *to, uint32_t b) {
    const uint8_t *block = from + (size_t)b * sizeof(struct q8_0_block);
    for (uint32_t i = 0; i < 32; i++) to[(size_t)b * 32 + i] = block[2 + i];
    to[(size_t)a.blocks * 32 + b * 2] = block[0];
    to[(size_t)a.blocks * 32 + b * 2 + 1] = block[1];
}

KERNEL_FN(pack, struct cuda_pack) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (uint64_t)a.rows * a.blocks) return;
    const uint8_t *from = a.from + i / a.blocks * a.from_bytes;
    uint8_t *to = a.to + i / a.blocks * a.to_bytes;
    if (a.quant == FORMAT_q6_k) pack_q6_k(a, from, to, i % a.blocks);
    else pack_q8_0(a, from, to, i % a.blocks);
}

template <class F> __device__ float peak_of(const uint8_t *row, uint32_t cols) {
    float top = 0;
    if constexpr (F::integer)
        for (uint32_t s = threadIdx.x; s < cols / F::SUB; s += blockDim.x) {
            uint8_t code[F::SUB];
            float scale, min;
            F::sub(row, cols / F::BLOCK, s, code, &scale, &min);
            for (int i = 0; i < F::SUB; i++) {
                float part = fabsf(scale * (float)((int)code[i] - F::OFFSET));
                top = fmaxf(top, fmaxf(part, fabsf(min)));
            }
        }
    return top;
}

/* The largest of |scale * code| and |min| of each matrix, as the bits of a float: order is that of
 * whole numbers. */
KERNEL_FN(peak, struct cuda_peak) {
    __shared__ float room[WARPS_MAX];
    const uint8_t *row = a.w.data + blockIdx.y * a.w.matrix_bytes + blockIdx.x * a.w.row_bytes;
    float top = 0;
    switch (a.w.quant) {
#define ROW(name, NAME) case FORMAT_##name: top = peak_of<format_##name>(row, a.w.cols); break;
        INTEGER_FORMATS(ROW)
    }
    top = block_max(top, room);
    if (threadIdx.x == 0) atomicMax(a.out + blockIdx.y, __float_as_uint(top));
}
