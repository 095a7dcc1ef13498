/* SPDX-License-Identifier: Apache-2.0
 * verify.c: `1bit info --verify`: is every weight a finite number? Chunks of a tensor go to all
 * cores; the least bad index wins, so that the answer does not depend on the threads. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "cli/inspect.h"

enum { CHUNK = 1 << 16 }; /* weights, a multiple of every block */

struct scan {
    const struct source_tensor *tensor;
    uint64_t blocks, blocks_chunk;
    float *scratch; /* [threads, CHUNK] */
    _Atomic uint64_t first_bad;
};

static void scan_chunk(void *arg, uint32_t chunk, uint32_t thread) {
    struct scan *scan = arg;
    const struct quant *quant = scan->tensor->quant;
    float *x = scan->scratch + (size_t)thread * CHUNK;
    uint64_t at = chunk * scan->blocks_chunk, n = scan->blocks - at;
    if (n > scan->blocks_chunk) n = scan->blocks_chunk;
    quant->decode((const char *)scan->tensor->data + at * quant->bytes, x, n);
    for (uint64_t i = 0; i < n * quant->block; i++) {
        if (isfinite(x[i])) continue;
        uint64_t bad = at * quant->block + i, least = atomic_load(&scan->first_bad);
        while (bad < least && !atomic_compare_exchange_weak(&scan->first_bad, &least, bad)) {
        }
        return;
    }
}

ob_status inspect_verify(const struct source *source, ob_error *error) {
    struct pool *pool = pool_new(os_cores(), NULL);
    size_t bytes = sizeof(float) * CHUNK * (pool ? pool_threads(pool) : 1);
    struct scan scan = {.scratch = malloc(bytes)};
    ob_status status = OB_OK;
    uint64_t done = 0, total = 0;
    if (!pool || !scan.scratch) status = error_memory(error, "decoded weights", bytes);
    for (size_t i = 0; i < source_tensor_count(source); i++)
        total += source_tensor_at(source, i)->bytes;
    for (size_t i = 0; status == OB_OK && i < source_tensor_count(source); i++) {
        const struct source_tensor *t = scan.tensor = source_tensor_at(source, i);
        if (!t->quant) continue; /* integers */
        scan.blocks = t->bytes / t->quant->bytes;
        scan.blocks_chunk = CHUNK / t->quant->block;
        scan.first_bad = UINT64_MAX;
        uint64_t chunks = (scan.blocks + scan.blocks_chunk - 1) / scan.blocks_chunk;
        cli_progress("verifying", done, total);
        pool_run(pool, (uint32_t)chunks, scan_chunk, &scan);
        done += t->bytes;
        uint64_t bad = scan.first_bad;
        if (bad != UINT64_MAX) {
            char name[128];
            snprintf(name, sizeof name, "%.*s", STR_ARG(t->name));
            status = error_set(error, OB_ERR_NUMERIC, "weight %llu of row %llu is not finite",
                               (unsigned long long)(bad % t->dim[0]),
                               (unsigned long long)(bad / t->dim[0]));
            error_at(error, source_path(source), name, OB_NO_OFFSET);
        }
    }
    cli_progress("verifying", 1, 1);
    free(scan.scratch);
    pool_free(&pool);
    return status;
}
