/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: see pool.h. A job is published by raising `epoch`; each worker runs it once and counts
 * itself out in `busy`. fn, arg and chunks are written before epoch and only read until busy is 0,
 * so they need no lock. Parking: a worker that has spun SPIN times sleeps on the condition; the
 * publisher takes the lock only when somebody may be asleep. */
#include "base/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/os.h"

/* About 50 us of pauses: longer than the gap between two ops of a step, shorter than anyone's
 * patience for a hot idle CPU. */
enum { SPIN = 2000 };

struct pool {
    uint32_t threads;
    void (*fn)(void *, uint32_t, uint32_t);
    void *arg;
    uint32_t chunks;
    _Alignas(64) atomic_uint epoch;
    _Alignas(64) atomic_uint next;
    _Alignas(64) atomic_uint busy;
    _Alignas(64) atomic_uint asleep;
    atomic_bool stop;
    os_mutex lock;
    os_cond wake;
    struct worker { struct pool *pool; uint32_t index; os_thread thread; } *workers;
};

static void work(struct pool *pool, uint32_t thread) {
    for (;;) {
        uint32_t chunk = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (chunk >= pool->chunks) return;
        pool->fn(pool->arg, chunk, thread);
    }
}

static bool changed(struct pool *pool, unsigned seen) {
    return atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen;
}

static void *worker_main(void *arg) {
    struct worker *self = arg;
    struct pool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        for (int i = 0; i < SPIN && !changed(pool, seen); i++) os_relax();
        if (!changed(pool, seen)) {
            os_lock(&pool->lock);
            atomic_fetch_add(&pool->asleep, 1);
            while (atomic_load(&pool->epoch) == seen) os_wait(&pool->wake, &pool->lock);
            atomic_fetch_sub(&pool->asleep, 1);
            os_unlock(&pool->lock);
        }
        seen = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        if (atomic_load(&pool->stop)) return NULL;
        work(pool, self->index);
        atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_release);
    }
}

static void publish(struct pool *pool) {
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->asleep) == 0) return;
    os_lock(&pool->lock);
    os_broadcast(&pool->wake);
    os_unlock(&pool->lock);
}

struct pool *pool_new(uint32_t threads) {
    struct pool *pool = aligned_alloc(64, (sizeof *pool + 63) & ~(size_t)63);
    if (!pool) return NULL;
    *pool = (struct pool){.threads = 1};
    os_mutex_init(&pool->lock);
    os_cond_init(&pool->wake);
    pool->workers = calloc(threads, sizeof *pool->workers);
    if (!pool->workers) {
        pool_free(&pool);
        return NULL;
    }
    for (uint32_t i = 1; i < threads; i++) {
        pool->workers[i] = (struct worker){.pool = pool, .index = i};
        if (!os_thread_start(&pool->workers[i].thread, worker_main, &pool->workers[i])) {
            pool_free(&pool);
            return NULL;
        }
        pool->threads++;
    }
    return pool;
}

void pool_free(struct pool **p) {
    struct pool *pool = *p;
    if (!pool) return;
    atomic_store(&pool->stop, true);
    publish(pool);
    for (uint32_t i = 1; i < pool->threads; i++) os_thread_join(&pool->workers[i].thread);
    free(pool->workers);
    os_cond_free(&pool->wake);
    os_mutex_free(&pool->lock);
    free(pool);
    *p = NULL;
}

uint32_t pool_threads(const struct pool *pool) { return pool->threads; }

void pool_run(struct pool *pool, uint32_t chunks, void (*fn)(void *, uint32_t, uint32_t),
              void *arg) {
    if (chunks == 0) return;
    if (chunks == 1 || pool->threads == 1) {
        for (uint32_t i = 0; i < chunks; i++) fn(arg, i, 0);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->chunks = chunks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->busy, pool->threads - 1, memory_order_relaxed);
    publish(pool);
    work(pool, 0);
    for (unsigned i = 0; atomic_load_explicit(&pool->busy, memory_order_acquire) != 0; i++)
        if (i < 100000) os_relax();
        else os_yield(); /* the machine is shared: let the late worker run */
}
