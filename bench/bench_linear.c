/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_linear.c: matrix products against the machine's limits: read bandwidth for 1 token (weights
 * of 1 GiB, so nothing is found in a cache) and int8 multiply-adds for a prompt. Each round
 * measures the limit and the product one after the other; printed are the medians of the product's
 * rate and of its share of the limit, so that a machine shared with others still gives a share.
 * Options: --threads N, --isa NAME, --format NAME, --tokens N (prompt), --rounds N, --cpu-time 1
 * (processor time instead of wall time; one thread). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/base.h"
#include "kernels/kernels.h"

enum { MAX_ROUNDS = 99 };
static const size_t WEIGHTS = (size_t)1 << 30;

struct bench {
    struct pool *pool;
    const struct kernels *kernels;
    uint32_t threads, rounds;
    uint8_t *weights;
};

static bool cpu_time;
static double now(void) {
    return cpu_time ? (double)clock() / CLOCKS_PER_SEC : os_seconds();
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double seconds_of(void (*fn)(void *), void *arg) {
    double start = now();
    fn(arg);
    return now() - start;
}

static double median(double *v, uint32_t n) {
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* ---- the machine's limits ---- */

static volatile uint64_t sink;

static void read_part(void *arg, uint32_t part, uint32_t thread) {
    typedef uint64_t v8 __attribute__((vector_size(64)));
    enum { PARTS = 256 };
    (void)thread;
    const v8 *p = (const v8 *)(((struct bench *)arg)->weights + WEIGHTS / PARTS * part);
    v8 sum[4] = {{0}, {0}, {0}, {0}};
    for (size_t i = 0; i < WEIGHTS / PARTS / sizeof(v8); i += 4) {
        for (int j = 0; j < 4; j++) sum[j] += p[i + j];
        __builtin_prefetch(p + i + 64), __builtin_prefetch(p + i + 65);
        __builtin_prefetch(p + i + 66), __builtin_prefetch(p + i + 67);
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    sink = sum[0][0] + sum[0][7];
}
static void read_all(void *arg) { pool_run(((struct bench *)arg)->pool, 256, read_part, arg); }

enum { PEAK_LOOPS = 1000000 };
#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vnni"))) static void peak_avx512(void *arg, uint32_t part,
                                                                     uint32_t thread) {
    (void)arg, (void)part, (void)thread;
    __m512i sum[12] = {0}, a = _mm512_set1_epi32((int)part + 1);
    for (int i = 0; i < PEAK_LOOPS; i++) {
        _Pragma("GCC unroll 12") for (int j = 0; j < 12; j++) {
            sum[j] = _mm512_dpbusd_epi32(sum[j], a, a);
            __asm__ volatile("" : "+v"(sum[j]));
        }
    }
    _Pragma("GCC unroll 12") for (int j = 1; j < 12; j++) sum[0] = _mm512_add_epi32(sum[0], sum[j]);
    sink = (uint64_t)_mm512_reduce_add_epi32(sum[0]);
}
/* One vpmaddubsw for 64 operations, as if its 16-bit sums needed nothing after it. */
__attribute__((target("avx2"))) static void peak_avx2(void *arg, uint32_t part, uint32_t thread) {
    (void)arg, (void)part, (void)thread;
    __m256i sum[12] = {0}, a = _mm256_set1_epi32((int)part + 1);
    for (int i = 0; i < PEAK_LOOPS; i++) {
        _Pragma("GCC unroll 12") for (int j = 0; j < 12; j++) {
            sum[j] = _mm256_maddubs_epi16(sum[j], a);
            __asm__ volatile("" : "+v"(sum[j]));
        }
    }
    _Pragma("GCC unroll 12") for (int j = 1; j < 12; j++) sum[0] = _mm256_add_epi32(sum[0], sum[j]);
    sink = (uint64_t)_mm256_extract_epi32(sum[0], 0);
}
#endif

static bool is_wide(const struct bench *b) {
    return b->kernels == kernels_table(CPU_AVX512) || b->kernels == kernels_table(CPU_AMX);
}

static void peak_all(void *arg) {
    struct bench *b = arg;
#if defined(__x86_64__)
    bool wide = is_wide(b);
    pool_run(b->pool, b->threads, wide ? peak_avx512 : peak_avx2, NULL);
#else
    (void)b;
#endif
}

static double peak_ops(const struct bench *b) {
    return 12.0 * PEAK_LOOPS * b->threads * (is_wide(b) ? 128 : 64);
}

static void print_limits(struct bench *b) {
    double read[MAX_ROUNDS], peak[MAX_ROUNDS];
    for (uint32_t i = 0; i < b->rounds; i++) {
        read[i] = (double)WEIGHTS / seconds_of(read_all, b) * 1e-9;
        peak[i] = peak_ops(b) / seconds_of(peak_all, b) * 1e-9;
    }
    printf("read %.1f GB/s, int8 peak %.0f GOP/s, %u threads, %s\n", median(read, b->rounds),
           median(peak, b->rounds), b->threads, b->kernels->name);
}

/* ---- products ---- */

struct product {
    struct bench *bench;
    struct linear_job job;
    uint32_t rows, chunk, matrices;
    char *scratch;
};

static void product_chunk(void *arg, uint32_t chunk, uint32_t thread) {
    struct product *p = arg;
    struct linear_job job = p->job;
    uint32_t chunks = (p->rows + p->chunk - 1) / p->chunk, row0 = chunk % chunks * p->chunk;
    job.w = (const char *)job.w + (size_t)(chunk / chunks) * p->rows * job.row_bytes;
    job.scratch = p->scratch + thread * kernels_linear_scratch();
    p->bench->kernels->linear[quant_index_of(job.quant)](
        &job, row0, row0 + p->chunk < p->rows ? row0 + p->chunk : p->rows);
}
static void product_all(void *arg) {
    struct product *p = arg;
    pool_run(p->bench->pool, p->matrices * ((p->rows + p->chunk - 1) / p->chunk), product_chunk, p);
}

static void *must(void *p) {
    if (!p) {
        fprintf(stderr, "bench_linear: out of memory\n");
        exit(1);
    }
    return p;
}

/* Blocks repeat a small set of decodable ones: arithmetic does not depend on values. */
static void fill(struct bench *b, const struct quant *quant) {
    float v[256];
    size_t blocks = WEIGHTS / quant->bytes, some = blocks < 4096 ? blocks : 4096;
    uint8_t *w = b->weights;
    for (size_t i = 0; i < some; i++) {
        for (int tries = 0; tries < 100; tries++) {
            for (uint32_t j = 0; j < quant->bytes; j++)
                w[i * quant->bytes + j] = (uint8_t)rng_u64(i * 1000 + (uint64_t)tries, j);
            quant->decode(w + i * quant->bytes, v, 1);
            bool fine = true;
            for (uint32_t j = 0; j < quant->block; j++) fine = fine && v[j] < 1000 && v[j] > -1000;
            if (fine) break;
        }
    }
    for (size_t i = some; i < blocks; i += some) {
        size_t n = blocks - i < some ? blocks - i : some;
        memcpy(w + i * quant->bytes, w, n * quant->bytes);
    }
}

static void measure(struct bench *b, const struct quant *quant, uint32_t rows, uint32_t cols,
                    uint32_t tokens) {
    size_t row_bytes = quant_row_bytes(quant, cols), matrix = row_bytes * rows;
    bool act = kernels_linear_takes_act(quant);
    float *x = must(aligned_alloc(64, (size_t)tokens * cols * sizeof *x + 64));
    char *row8 = must(aligned_alloc(64, act_row_bytes(cols)));
    bool pack = kernels_packs_floats(b->kernels, quant);
    char *packed = must(aligned_alloc(64, pack ? float_packed_bytes(cols, tokens)
                                               : act_packed_bytes(cols, tokens)));
    float *y = must(aligned_alloc(64, (size_t)tokens * rows * sizeof *y));
    for (size_t i = 0; i < (size_t)tokens * cols; i++) x[i] = (float)rng_unit(7, i) - 0.5f;
    for (uint32_t t = 0; act && t < tokens; t++) {
        b->kernels->act_quantize(x + (size_t)t * cols, cols, row8);
        struct act a = act_row(row8, cols, 0);
        b->kernels->act_pack(quant, &a, cols, t, tokens, packed);
    }
    for (uint32_t t = 0; pack && t < tokens; t += FLOAT_GROUP) {
        const float *row[FLOAT_GROUP];
        uint32_t n = tokens - t < FLOAT_GROUP ? tokens - t : FLOAT_GROUP;
        for (uint32_t i = 0; i < n; i++) row[i] = x + (size_t)(t + i) * cols;
        b->kernels->float_pack(quant, row, n, cols, packed + float_packed_bytes(cols, t));
    }
    struct product p = {
        .bench = b,
        .job = {.quant = quant, .w = b->weights, .row_bytes = row_bytes, .cols = cols,
                .tokens = tokens, .x = act || pack ? (void *)packed : (void *)x, .y = y,
                .y_stride = rows},
        .rows = rows,
        .chunk = rows / (b->threads * 8) < 256 ? (rows / (b->threads * 8) + 31) / 32 * 32 : 256,
        .matrices = tokens == 1 ? (uint32_t)(WEIGHTS / matrix) : 1,
        .scratch = must(aligned_alloc(64, b->threads * kernels_linear_scratch())),
    };
    bool one = tokens == 1;
    double work = one ? (double)matrix * p.matrices : 2.0 * rows * cols * tokens;
    double rate[MAX_ROUNDS], share[MAX_ROUNDS];
    product_all(&p);
    for (uint32_t i = 0; i < b->rounds; i++) {
        double limit = one ? (double)WEIGHTS / seconds_of(read_all, b)
                           : peak_ops(b) / seconds_of(peak_all, b);
        rate[i] = work / seconds_of(product_all, &p);
        share[i] = rate[i] / limit;
    }
    printf("%-6s %5u x %-5u %4u tokens %7.1f %s %3.0f%%\n", quant->name, rows, cols, tokens,
           median(rate, b->rounds) * 1e-9, one ? "GB/s " : "GOP/s", median(share, b->rounds) * 100);
    fflush(stdout);
    free(x), free(row8), free(packed), free(y), free(p.scratch);
}

int main(int argc, char **argv) {
    static const uint32_t shapes[][2] = {
        {896, 896}, {4864, 896}, {896, 4864}, {1536, 8960}, {3584, 18944}};
    static const char *const formats[] = {"Q4_K", "Q5_0", "Q6_K", "Q8_0", "F16"};
    struct bench b = {.threads = os_cores(), .rounds = 7, .kernels = kernels_table(cpu_best())};
    const char *format = NULL;
    uint32_t tokens = 512;
    for (int i = 1; i + 1 < argc; i += 2) {
        enum cpu_isa isa;
        if (!strcmp(argv[i], "--threads")) b.threads = (uint32_t)atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--rounds")) b.rounds = (uint32_t)atoi(argv[i + 1]) % MAX_ROUNDS;
        if (!strcmp(argv[i], "--cpu-time")) cpu_time = true;
        if (!strcmp(argv[i], "--tokens")) tokens = (uint32_t)atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--format")) format = argv[i + 1];
        if (!strcmp(argv[i], "--isa") && cpu_isa_find(argv[i + 1], &isa) && cpu_has(isa))
            b.kernels = kernels_table(isa);
    }
    b.pool = must(pool_new(b.threads, NULL));
    b.weights = must(aligned_alloc(1 << 21, WEIGHTS));
    memset(b.weights, 1, WEIGHTS);
    print_limits(&b);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const struct quant *quant = quant_named(format ? format : formats[f]);
        if (!quant) continue;
        fill(&b, quant);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (shapes[s][1] % quant->block) continue;
            if (tokens != 513) measure(&b, quant, shapes[s][0], shapes[s][1], 1);
            measure(&b, quant, shapes[s][0], shapes[s][1], tokens);
        }
        if (format) break;
    }
    pool_free(&b.pool);
    free(b.weights);
    return 0;
}
