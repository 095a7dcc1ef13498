/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_machine.c: what the machine could do: bytes a second read by vector loads over the mapped
 * model file, and int8 operations a second of the widest dot product in registers, with as many
 * threads as the model gets. Both stand beside the model's own figures, measured in the same
 * minute, because a machine shared with others changes. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#include "base/cpu.h"
#include "base/error.h"
#include "base/map.h"
#include "base/os.h"
#include "base/pool.h"
#include "cli/bench.h"

enum { PARTS = 256, CHAINS = 12, LOOPS = 250000 };
static const double LONG_ENOUGH = 0.1; /* seconds */

struct bench_machine {
    struct map map;
    enum cpu_isa isa;
    bool touched;
};

static volatile uint64_t sink; /* what is computed must be used */

/* ---- reading --------------------------------------------------------------------------------- */

static void read_part(void *arg, uint32_t part, uint32_t thread) {
    typedef uint64_t v8 __attribute__((vector_size(64), aligned(64)));
    const struct map *map = arg;
    size_t lines = map->size / sizeof(v8), first = lines * part / PARTS;
    size_t end = lines * (part + 1) / PARTS;
    const v8 *p = (const v8 *)(const void *)map->p;
    v8 sum[4] = {{0}, {0}, {0}, {0}};
    (void)thread;
    for (size_t i = first; i + 4 <= end; i += 4)
        for (size_t j = 0; j < 4; j++) {
            sum[j] += p[i + j];
            __builtin_prefetch(p + i + j + 64);
        }
    sum[0] += sum[1] + sum[2] + sum[3];
    sink = sum[0][0] + sum[0][7];
}

static double read_rate(struct bench_machine *m, struct pool *pool) {
    double seconds, bytes = 0;
    if (!m->touched) pool_run(pool, PARTS, read_part, &m->map); /* page faults do not count */
    m->touched = true;
    double start = os_seconds();
    do {
        pool_run(pool, PARTS, read_part, &m->map);
        bytes += (double)m->map.size;
        seconds = os_seconds() - start;
    } while (seconds < LONG_ENOUGH);
    return bytes / seconds;
}

/* ---- multiplying ----------------------------------------------------------------------------- */

/* Each is LOOPS times CHAINS instructions whose chains do not wait for each other. Every loop over
 * the chains is unrolled: one that is not puts them into memory. */
#define UNROLLED _Pragma("GCC unroll 12")
#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vnni"))) static void int8_avx512(void *arg, uint32_t part,
                                                                      uint32_t thread) {
    __m512i sum[CHAINS], a = _mm512_set1_epi32((int)part + 1);
    (void)arg, (void)thread;
    UNROLLED for (int j = 0; j < CHAINS; j++) sum[j] = a;
    for (int i = 0; i < LOOPS; i++) {
        UNROLLED for (int j = 0; j < CHAINS; j++) {
            sum[j] = _mm512_dpbusd_epi32(sum[j], a, a);
            __asm__ volatile("" : "+v"(sum[j]));
        }
    }
    UNROLLED for (int j = 1; j < CHAINS; j++) sum[0] = _mm512_add_epi32(sum[0], sum[j]);
    sink = (uint64_t)_mm512_reduce_add_epi32(sum[0]);
}
/* As if the 16-bit sums of vpmaddubsw needed nothing after them. */
__attribute__((target("avx2"))) static void int8_avx2(void *arg, uint32_t part, uint32_t thread) {
    __m256i sum[CHAINS], a = _mm256_set1_epi32((int)part + 1);
    (void)arg, (void)thread;
    UNROLLED for (int j = 0; j < CHAINS; j++) sum[j] = a;
    for (int i = 0; i < LOOPS; i++) {
        UNROLLED for (int j = 0; j < CHAINS; j++) {
            sum[j] = _mm256_maddubs_epi16(sum[j], a);
            __asm__ volatile("" : "+x"(sum[j]));
        }
    }
    UNROLLED for (int j = 1; j < CHAINS; j++) sum[0] = _mm256_add_epi32(sum[0], sum[j]);
    sink = (uint64_t)_mm256_extract_epi32(sum[0], 0);
}
#elif defined(__ARM_FEATURE_DOTPROD)
static void int8_neon(void *arg, uint32_t part, uint32_t thread) {
    int32x4_t sum[CHAINS];
    int8x16_t a = vdupq_n_s8((int8_t)(part + 1));
    (void)arg, (void)thread;
    UNROLLED for (int j = 0; j < CHAINS; j++) sum[j] = vdupq_n_s32(0);
    for (int i = 0; i < LOOPS; i++) {
        UNROLLED for (int j = 0; j < CHAINS; j++) {
            sum[j] = vdotq_s32(sum[j], a, a);
            __asm__ volatile("" : "+w"(sum[j]));
        }
    }
    UNROLLED for (int j = 1; j < CHAINS; j++) sum[0] = vaddq_s32(sum[0], sum[j]);
    sink = (uint64_t)vaddvq_s32(sum[0]);
}
#endif

struct peak {
    void (*run)(void *, uint32_t, uint32_t);
    double ops; /* of an instruction: multiplications and additions */
};

static struct peak peak_of(enum cpu_isa isa) {
#if defined(__x86_64__)
    if (isa == CPU_AVX512 || isa == CPU_AMX) return (struct peak){int8_avx512, 128};
    if (isa == CPU_AVX2) return (struct peak){int8_avx2, 64};
#elif defined(__ARM_FEATURE_DOTPROD)
    if (isa == CPU_NEON) return (struct peak){int8_neon, 32};
#endif
    (void)isa;
    return (struct peak){NULL, 0};
}

static double int8_rate(const struct bench_machine *m, struct pool *pool) {
    struct peak peak = peak_of(m->isa);
    double seconds, ops = 0;
    if (!peak.run) return 0;
    uint32_t threads = pool_threads(pool);
    double start = os_seconds();
    do {
        pool_run(pool, threads, peak.run, NULL);
        ops += peak.ops * CHAINS * LOOPS * threads;
        seconds = os_seconds() - start;
    } while (seconds < LONG_ENOUGH);
    return ops / seconds;
}

/* ---- callers --------------------------------------------------------------------------------- */

/* A directory's largest file of weights. */
static ob_status map_largest(const char *folder, struct map *out, ob_error *error) {
    char **names;
    size_t n;
    ob_status s = os_list_dir(folder, &names, &n, error);
    if (s != OB_OK) return s;
    for (size_t i = 0; s == OB_OK && i < n; i++) {
        struct str name = str_of(names[i]);
        struct map map = {0};
        struct buf path = BUF_INIT;
        if (name.n < 12 || strcmp(name.p + name.n - 12, ".safetensors") != 0) continue;
        buf_printf(&path, "%s/%s", folder, name.p);
        s = path.failed ? error_memory(error, "a path", name.n) : map_open(path.p, &map, error);
        buf_free(&path);
        if (s == OB_OK && map.size > out->size) {
            map_close(out);
            *out = map;
        } else {
            map_close(&map);
        }
    }
    os_free_list(names, n);
    return s;
}

ob_status bench_machine_open(const char *model, const char *cpu_isa, struct bench_machine **out,
                             ob_error *error) {
    char *path;
    *out = NULL;
    struct bench_machine *m = calloc(1, sizeof *m);
    if (!m) return error_memory(error, "limits", sizeof *m);
    m->isa = cpu_best();
    if (cpu_isa) cpu_isa_find(cpu_isa, &m->isa);
    ob_status s = cli_model_path(model, &path, error);
    if (s == OB_OK)
        s = os_is_dir(path) ? map_largest(path, &m->map, error) : map_open(path, &m->map, error);
    free(path);
    if (s != OB_OK) bench_machine_close(&m);
    *out = m;
    return s;
}

ob_status bench_machine_measure(struct bench_machine *m, uint32_t threads, struct bench_result *out,
                                ob_error *error) {
    struct pool *pool = pool_new(threads, NULL);
    if (!pool) return error_memory(error, "threads", threads);
    out->read_limit = m->map.size ? read_rate(m, pool) : 0;
    out->int8_limit = int8_rate(m, pool);
    pool_free(&pool);
    return OB_OK;
}

void bench_machine_close(struct bench_machine **machine) {
    struct bench_machine *m = *machine;
    if (!m) return;
    map_close(&m->map);
    free(m);
    *machine = NULL;
}
