/* SPDX-License-Identifier: Apache-2.0
 *
 * act.h: what all ISAs share of act rows: where the parts lie, the scale of a block, and the making
 * of a row in plain C (numerics in kernels.h). */
#ifndef KERNELS_BODY_ACT_H
#define KERNELS_BODY_ACT_H

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ACT_BLOCK = 32 };

static inline size_t act_pad(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static inline size_t act_d_at(uint32_t cols) { return act_pad(cols); }
static inline size_t act_sum16_at(uint32_t cols) {
    return act_d_at(cols) + act_pad(cols / ACT_BLOCK * sizeof(float));
}

struct act_parts { int8_t *q; float *d; int32_t *sum16; };
static inline struct act_parts act_parts(void *row, uint32_t cols) {
    assert(cols % ACT_BLOCK == 0);
    return (struct act_parts){row, (float *)((char *)row + act_d_at(cols)),
                              (int32_t *)((char *)row + act_sum16_at(cols))};
}

/* From the bits of a block's largest |x| (as integers their order is that of the floats, and NaN
 * and infinity are above all others): stores d, returns 127 / amax, or 0 where every q is 0. */
static inline float act_scale(uint32_t amax_bits, float *d) {
    enum { LOW = (127 - 100) << 23, HIGH = (127 + 100) << 23, QUIET_NAN = 0x7fc00000 };
    float amax;
    memcpy(&amax, &amax_bits, sizeof amax);
    float scale = amax / 127.0f;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = amax_bits < LOW ? 0 : amax_bits >= HIGH ? QUIET_NAN : bits & ~3u;
    memcpy(d, &bits, sizeof bits);
    return amax_bits < LOW || amax_bits >= HIGH ? 0.0f : 127.0f / amax;
}

static inline void act_make(const float *x, uint32_t cols, void *row) {
    struct act_parts to = act_parts(row, cols);
    for (uint32_t k = 0; k < cols; k += ACT_BLOCK) {
        uint32_t amax = 0;
        for (uint32_t i = k; i < k + ACT_BLOCK; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            bits &= 0x7fffffff;
            amax = amax > bits ? amax : bits;
        }
        float inverse = act_scale(amax, to.d++);
        for (uint32_t i = k; i < k + ACT_BLOCK; i += 16) {
            int32_t sum = 0;
            for (uint32_t j = i; j < i + 16; j++) {
                to.q[j] = inverse == 0 ? 0 : (int8_t)rintf(x[j] * inverse);
                sum += to.q[j];
            }
            *to.sum16++ = sum;
        }
    }
}

#endif
