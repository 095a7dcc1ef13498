/* SPDX-License-Identifier: Apache-2.0
 *
 * act.h: what all ISAs share of act rows: where the parts lie and the scale of a block. */
#ifndef KERNELS_BODY_ACT_H
#define KERNELS_BODY_ACT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ACT_BLOCK = 32 };

static inline size_t act_pad(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static inline size_t act_d_at(uint32_t cols) { return act_pad(cols); }
static inline size_t act_sum16_at(uint32_t cols) {
    return act_d_at(cols) + act_pad(cols / ACT_BLOCK * sizeof(float));
}

/* From the bits of a block's largest |x| (as integers their order is that of the floats, and NaN and
 * infinity are above all others): stores d, returns 127 / amax, or 0 where every q is 0. */
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

#endif
