/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: see pool.h. Each thread has a share of the job's chunks: `open` holds the number of the
 * job in the high half, how many chunks of the share are not yet taken in the low half. Taking one
 * is a compare-and-swap of both, so a thread that comes late, from an earlier job, can take nothing
 * of a job it has not read: fn, arg and chunks are written before any share and stay until `done`
 * has counted every chunk taken. Who is through with his share takes from the others'.
 *
 * A job ends with its chunks, not with its threads: one that sleeps, or that the system has put
 * aside, holds nobody up unless it is inside a chunk. Parking: a worker that has spun SPIN times
 * sleeps on the condition; the publisher takes the lock only when somebody may be asleep. */
#include "base/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

/* About 50 us of pauses: longer than the gap between two ops of a step, shorter than anyone's
 * patience for a hot idle CPU. */
enum { SPIN = 2000 };

struct pool {
    uint32_t threads;
    void (*fn)(void *, uint32_t, uint32_t);
    void *arg;
    uint32_t chunks;
    _Alignas(64) atomic_uint job; /* the last one published */
    _Alignas(64) atomic_uint done;
    _Alignas(64) atomic_uint asleep;
    atomic_bool stop;
    os_mutex lock;
    os_cond wake;
    struct worker {
        _Alignas(64) atomic_uint_fast64_t open;
        struct pool *pool;
        uint32_t index;
        os_thread thread;
    } *workers; /* [threads]; 0 is the caller */
    uint32_t *cpu; /* NULL: anywhere */
};

static _Thread_local const struct pool *confined_by;

static uint32_t left(uint64_t open) { return (uint32_t)open; }

/* The first chunk of a thread's share. */
static uint32_t share(const struct pool *pool, uint32_t thread) {
    return (uint32_t)((uint64_t)pool->chunks * thread / pool->threads);
}

/* Runs chunks of the share of `whose` until none is left; returns how many. The next job is not
 * published before these are counted, so all are of one job. */
static uint32_t take(struct pool *pool, uint32_t whose, uint32_t thread) {
    uint32_t taken = 0;
    atomic_uint_fast64_t *share_open = &pool->workers[whose].open;
    uint64_t open = atomic_load_explicit(share_open, memory_order_relaxed);
    while (left(open) > 0) {
        if (!atomic_compare_exchange_weak_explicit(share_open, &open, open - 1,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        pool->fn(pool->arg, share(pool, whose + 1) - left(open), thread);
        taken++;
        open = atomic_load_explicit(share_open, memory_order_relaxed);
    }
    return taken;
}

static uint32_t work(struct pool *pool, uint32_t thread) {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < pool->threads; i++)
        taken += take(pool, (thread + i) % pool->threads, thread);
    return taken;
}

static bool idle(struct pool *pool, uint32_t seen) {
    return atomic_load(&pool->job) == seen && !atomic_load(&pool->stop);
}

static void *worker_main(void *arg) {
    struct worker *self = arg;
    struct pool *pool = self->pool;
    uint32_t seen = 0;
    if (pool->cpu) os_thread_confine(pool->cpu[self->index]); /* refused: slower, no error */
    while (!atomic_load(&pool->stop)) {
        for (int i = 0; i < SPIN && idle(pool, seen); i++) os_relax();
        if (idle(pool, seen)) {
            os_lock(&pool->lock);
            atomic_fetch_add(&pool->asleep, 1);
            while (idle(pool, seen)) os_wait(&pool->wake, &pool->lock);
            atomic_fetch_sub(&pool->asleep, 1);
            os_unlock(&pool->lock);
        }
        seen = atomic_load(&pool->job);
        uint32_t taken = work(pool, self->index);
        if (taken) atomic_fetch_add_explicit(&pool->done, taken, memory_order_release);
    }
    return NULL;
}

static void wake(struct pool *pool) {
    if (atomic_load(&pool->asleep) == 0) return;
    os_lock(&pool->lock);
    os_broadcast(&pool->wake);
    os_unlock(&pool->lock);
}

struct pool *pool_new(uint32_t threads, const uint32_t *cpu) {
    struct pool *pool = aligned_alloc(64, (sizeof *pool + 63) & ~(size_t)63);
    if (!pool) return NULL;
    *pool = (struct pool){.threads = 1};
    os_mutex_init(&pool->lock);
    os_cond_init(&pool->wake);
    pool->workers = aligned_alloc(64, threads * sizeof *pool->workers);
    pool->cpu = cpu ? malloc(threads * sizeof *cpu) : NULL;
    if (!pool->workers || (cpu && !pool->cpu)) {
        pool_free(&pool);
        return NULL;
    }
    memset(pool->workers, 0, threads * sizeof *pool->workers);
    if (cpu) memcpy(pool->cpu, cpu, threads * sizeof *cpu);
    for (uint32_t i = 1; i < threads; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i;
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
    wake(pool);
    for (uint32_t i = 1; i < pool->threads; i++) os_thread_join(&pool->workers[i].thread);
    if (confined_by == pool) {
        os_thread_release();
        confined_by = NULL;
    }
    free(pool->workers);
    free(pool->cpu);
    os_cond_free(&pool->wake);
    os_mutex_free(&pool->lock);
    free(pool);
    *p = NULL;
}

uint32_t pool_threads(const struct pool *pool) { return pool->threads; }

void pool_run(struct pool *pool, uint32_t chunks, void (*fn)(void *, uint32_t, uint32_t),
              void *arg) {
    if (chunks == 0) return;
    if (pool->cpu && confined_by != pool) {
        os_thread_confine(pool->cpu[0]);
        confined_by = pool;
    }
    if (chunks == 1 || pool->threads == 1) {
        for (uint32_t i = 0; i < chunks; i++) fn(arg, i, 0);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->chunks = chunks;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    uint32_t job = atomic_load_explicit(&pool->job, memory_order_relaxed) + 1;
    for (uint32_t i = 0; i < pool->threads; i++)
        atomic_store_explicit(&pool->workers[i].open,
                              (uint64_t)job << 32 | (share(pool, i + 1) - share(pool, i)),
                              memory_order_release);
    atomic_store(&pool->job, job);
    wake(pool);
    chunks -= work(pool, 0);
    for (unsigned i = 0; atomic_load_explicit(&pool->done, memory_order_acquire) != chunks; i++)
        if (i < SPIN) os_relax();
        else os_yield(); /* the machine is shared: let the late worker run */
}
