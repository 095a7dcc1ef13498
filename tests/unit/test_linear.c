/* SPDX-License-Identifier: Apache-2.0
 *
 * test_linear.c: act rows and matrix products: scalar against the definition, each ISA of this
 * machine against scalar bit for bit. Weights and activations end at a page that cannot be read,
 * outputs and scratch start as NaN, and nothing outside the asked rows may change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/kernels.h"

enum { SEED = 20240607, Y_PAD = 3 };

/* Memory whose last byte is followed by a page that cannot be touched. */
struct guarded { char *base, *p; size_t bytes; };

static struct guarded guarded_new(size_t n) {
    size_t page = os_page_size(), bytes = (n + page - 1) / page * page + page;
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(mprotect(base + bytes - page, page, PROT_NONE), 0);
    return (struct guarded){base, base + bytes - page - n, bytes};
}
static void guarded_free(struct guarded *g) { munmap(g->base, g->bytes); }

static uint64_t counter;
static uint64_t draw(void) { return rng_u64(SEED, counter++); }
static float draw_normal(void) { /* sum of uniforms is close enough */
    double s = 0;
    for (int i = 0; i < 6; i++) s += rng_unit(SEED, counter++);
    return (float)((s - 3) * 1.4);
}

enum weights { RANDOM, ZEROS, ONES, RAW, WEIGHTS };

/* RANDOM keeps decoded weights finite and moderate; RAW takes any bytes. */
static void fill_weights(const struct quant *f, char *w, size_t blocks, enum weights kind) {
    float v[256];
    for (size_t b = 0; b < blocks; b++, w += f->bytes) {
        bool good = false;
        for (int tries = 0; !good && tries < 1000; tries++) {
            for (uint32_t i = 0; i < f->bytes; i++)
                w[i] = kind == ZEROS ? 0 : kind == ONES ? (char)0xff : (char)draw();
            f->decode(w, v, 1);
            good = true;
            for (uint32_t i = 0; kind == RANDOM && i < f->block; i++)
                good = good && fabsf(v[i]) < 100 && (f->unpack || fabsf(v[i]) > 1e-3f);
        }
        assert_true(good);
    }
}

static bool same_bits(float a, float b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

struct setup {
    const struct quant *f;
    uint32_t cols, rows, tokens, row0, row1;
    enum weights weights;
    bool bias, odd_x;
};

struct data {
    struct guarded w, x, act, y, want, bias, scratch;
    struct linear_job job;
};

static void *act_rows(const struct data *d, const struct kernels *k, const struct setup *s) {
    size_t bytes = act_row_bytes(s->cols);
    for (uint32_t t = 0; t < s->tokens; t++)
        k->act_quantize((const float *)d->x.p + (size_t)t * s->cols, s->cols, d->act.p + t * bytes);
    return d->act.p;
}

static void data_make(struct data *d, const struct setup *s) {
    size_t row = s->cols / s->f->block * s->f->bytes, n = (size_t)s->tokens * s->cols;
    size_t y = ((size_t)s->tokens * (s->rows + Y_PAD)) * sizeof(float);
    *d = (struct data){guarded_new(row * s->rows), guarded_new(n * sizeof(float)),
                       guarded_new(s->tokens * act_row_bytes(s->cols)), guarded_new(y),
                       guarded_new(y), guarded_new(s->rows * sizeof(float)),
                       guarded_new(kernels_linear_scratch(s->cols)), {0}};
    fill_weights(s->f, d->w.p, row / s->f->bytes * s->rows, s->weights);
    for (size_t i = 0; i < n; i++) ((float *)d->x.p)[i] = draw_normal();
    if (s->odd_x) {
        static const float odd[] = {INFINITY, NAN, -INFINITY, 1e30f, 1e36f, 1e-36f, 1e-44f, 0, -0.0f};
        for (size_t i = 0; i + 40 < n; i += 1 + draw() % 40)
            ((float *)d->x.p)[i] = odd[draw() % (sizeof odd / sizeof *odd)];
        for (size_t i = 0; i + 64 <= n; i += 96) memset(d->x.p + i * sizeof(float), 0, 128);
    }
    for (uint32_t r = 0; r < s->rows; r++) ((float *)d->bias.p)[r] = draw_normal();
    memset(d->y.p, 0xff, y);
    memset(d->want.p, 0xff, y);
    memset(d->scratch.p, 0xff, kernels_linear_scratch(s->cols));
    d->job = (struct linear_job){
        .quant = s->f, .w = d->w.p, .row_bytes = row, .cols = s->cols, .tokens = s->tokens,
        .bias = s->bias ? (float *)d->bias.p : NULL, .y_stride = s->rows + Y_PAD,
        .scratch = d->scratch.p};
}

static void data_free(struct data *d) {
    guarded_free(&d->w), guarded_free(&d->x), guarded_free(&d->act), guarded_free(&d->y);
    guarded_free(&d->want), guarded_free(&d->bias), guarded_free(&d->scratch);
}

static void product(struct data *d, const struct kernels *k, const struct setup *s, char *y) {
    bool act = kernels_linear_takes_act(s->f) && k != kernels_ref();
    d->job.x = act ? act_rows(d, k, s) : d->x.p;
    d->job.y = (float *)y;
    k->linear[quant_index_of(s->f)](&d->job, s->row0, s->row1);
}

static void compare(const struct kernels *k, const struct setup *s) {
    struct data d;
    data_make(&d, s);
    product(&d, kernels_table(CPU_SCALAR), s, d.want.p);
    product(&d, k, s, d.y.p);
    for (uint32_t t = 0; t < s->tokens; t++) {
        for (uint32_t r = 0; r < s->rows + Y_PAD; r++) {
            float a = ((float *)d.want.p)[t * d.job.y_stride + r];
            float b = ((float *)d.y.p)[t * d.job.y_stride + r];
            bool in = r >= s->row0 && r < s->row1;
            if (in ? same_bits(a, b) : memcmp(&b, "\xff\xff\xff\xff", 4) == 0) continue;
            fail_msg("%s %s: %u cols, rows %u-%u of %u, token %u of %u, row %u: want %a, got %a",
                     k->name, s->f->name, s->cols, s->row0, s->row1, s->rows, t, s->tokens, r,
                     (double)a, (double)b);
        }
    }
    data_free(&d);
}

static void every_size(const struct kernels *k, const struct quant *f) {
    static const uint32_t tokens[] = {1, 2, 3, 5, 8, 9, 17, 64}, rows[] = {1, 7, 16, 33, 70};
    static const uint32_t blocks[] = {1, 2, 3, 5, 7, 17};
    uint32_t unit = f->block < 32 ? 13 : f->block;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                uint32_t n = rows[j], from = (uint32_t)(draw() % n);
                if ((uint64_t)tokens[i] * n * blocks[b] * unit > 1u << 18) continue;
                struct setup s = {f, blocks[b] * unit, n, tokens[i], 0, n,
                                  (enum weights)(draw() % WEIGHTS), draw() % 2, draw() % 4 == 0};
                compare(k, &s);
                s.row0 = from, s.row1 = from + 1 + (uint32_t)(draw() % (n - from));
                compare(k, &s);
            }
    compare(k, &(struct setup){f, f->block < 32 ? 511 : 768, 33, 513, 1, 33, RANDOM, true, false});
}

static void isas_equal_scalar(void **state) {
    (void)state;
    for (int isa = CPU_SCALAR + 1; isa < CPU_ISAS; isa++)
        for (size_t f = 0; f < QUANT_COUNT && cpu_has((enum cpu_isa)isa); f++)
            every_size(kernels_table((enum cpu_isa)isa), quant_list[f]);
}

static void scalar_is_near_the_definition(void **state) {
    (void)state;
    for (size_t f = 0; f < QUANT_COUNT; f++) {
        struct setup s = {quant_list[f], 768, 33, 5, 0, 33, RANDOM, true, false};
        struct data d;
        double error = 0, power = 0;
        data_make(&d, &s);
        product(&d, kernels_table(CPU_SCALAR), &s, d.y.p);
        product(&d, kernels_ref(), &s, d.want.p);
        for (uint32_t t = 0; t < s.tokens; t++)
            for (uint32_t r = 0; r < s.rows; r++) {
                double a = (double)((float *)d.want.p)[t * d.job.y_stride + r];
                double e = (double)((float *)d.y.p)[t * d.job.y_stride + r] - a;
                error += e * e, power += a * a;
            }
        if (!(error <= power * (s.f->unpack ? 2e-4 : 1e-12)))
            fail_msg("%s: NMSE %g", s.f->name, error / power);
        data_free(&d);
    }
}

static void act_rows_hold_their_row(void **state) {
    (void)state;
    enum { COLS = 32 * 7 };
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((enum cpu_isa)isa)) continue;
        for (int round = 0; round < 200; round++) {
            struct setup s = {quant_named("Q8_0"), COLS, 1, 1, 0, 1, RANDOM, false, round % 2 == 1};
            struct data d;
            data_make(&d, &s);
            const float *x = (const float *)d.x.p;
            struct act a = act_row(act_rows(&d, kernels_table((enum cpu_isa)isa), &s), COLS, 0);
            for (uint32_t k = 0; k < COLS; k += 16) {
                int32_t sum = 0;
                double amax = 0, worst = 0, step = (double)a.d[k / 32];
                for (uint32_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
                    amax = isfinite(x[i]) ? fmax(amax, fabs((double)x[i])) : (double)INFINITY;
                for (uint32_t i = k; i < k + 16; i++) {
                    sum += a.q[i];
                    worst = fmax(worst, fabs((double)a.q[i] * step - (double)x[i]));
                }
                assert_int_equal(sum, a.sum16[k / 16]);
                if (amax >= 0x1p100)
                    assert_true(isnan(step));
                else
                    assert_true(worst <= (amax < 0x1p-100 ? 0x1p-100 : 0.501 * amax / 127));
            }
            data_free(&d);
        }
    }
}

static void act_rows_are_the_same(void **state) {
    (void)state;
    for (int isa = CPU_SCALAR + 1; isa < CPU_ISAS; isa++) {
        if (!cpu_has((enum cpu_isa)isa)) continue;
        for (uint32_t round = 0; round < 300; round++) {
            uint32_t cols = 32 * (1 + round % 19);
            struct setup s = {quant_named("Q8_0"), cols, 1, 1, 0, 1, RANDOM, false, round % 3 == 0};
            struct data d;
            data_make(&d, &s);
            struct act a = act_row(act_rows(&d, kernels_table(CPU_SCALAR), &s), cols, 0);
            int8_t q[32 * 19];
            float step[19];
            int32_t sum[38];
            memcpy(q, a.q, cols), memcpy(step, a.d, cols / 8), memcpy(sum, a.sum16, cols / 4);
            act_rows(&d, kernels_table((enum cpu_isa)isa), &s);
            assert_memory_equal(q, a.q, cols);
            assert_memory_equal(step, a.d, cols / 8);
            assert_memory_equal(sum, a.sum16, cols / 4);
            data_free(&d);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(act_rows_hold_their_row),
        cmocka_unit_test(act_rows_are_the_same),
        cmocka_unit_test(scalar_is_near_the_definition),
        cmocka_unit_test(isas_equal_scalar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
