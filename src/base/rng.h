/* SPDX-License-Identifier: Apache-2.0
 *
 * rng.h: counter-based randomness: the same (seed, counter) always gives the same number, so a
 * draw depends on its position alone and not on how many draws came before. The mixer is
 * splitmix64's (Steele, Lea, Flood 2014), applied twice. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

static inline uint64_t rng_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static inline uint64_t rng_u64(uint64_t seed, uint64_t counter) {
    return rng_mix(rng_mix(seed) ^ rng_mix(counter + 0x5851f42d4c957f2du));
}
/* Uniform in [0, 1), 53 bits. */
static inline double rng_unit(uint64_t seed, uint64_t counter) {
    return (double)(rng_u64(seed, counter) >> 11) * 0x1p-53;
}

#endif
