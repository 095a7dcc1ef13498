/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: a persistent thread pool for data-parallel jobs. The calling thread works too. Workers
 * spin briefly between jobs, then park. A thread begins with a share of neighbouring chunks, in
 * order, and helps the others when it is through: memory that chunks read in order is read in
 * order, but which thread runs a chunk is not determined; results must not depend on it. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdint.h>

struct pool;

/* threads >= 1, the caller included; NULL when out of memory or threads. cpu [threads], copied:
 * thread i runs on cpu[i], thread 0 being the caller of pool_run from then on until it frees the
 * pool; NULL: anywhere. */
struct pool *pool_new(uint32_t threads, const uint32_t *cpu);
void pool_free(struct pool **pool);
uint32_t pool_threads(const struct pool *pool);

/* Calls fn(arg, chunk, thread) for chunk = 0..chunks-1, thread in 0..threads-1, and returns when
 * all are done. One caller at a time; not from inside fn. */
void pool_run(struct pool *pool, uint32_t chunks,
              void (*fn)(void *arg, uint32_t chunk, uint32_t thread), void *arg);

#endif
