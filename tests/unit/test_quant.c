/* SPDX-License-Identifier: Apache-2.0
 * test_quant.c: every format of the list against the reference package's goldens
 * (tools/make_quant_goldens.py describes the file), its integer view against its decode, half
 * conversions over all values, the list's look-ups. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quant/quant.h"

enum { MOST_WEIGHTS = 256 };

struct golden {
    uint32_t id, block, bytes, n_decode, n_encode;
    uint8_t *raw;   /* n_decode blocks */
    uint64_t *hash; /* of their floats */
    float *x;       /* n_encode * block */
    uint8_t *coded; /* n_encode blocks */
};

static void *read_array(FILE *f, size_t size, size_t n) {
    void *p = malloc(size * n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, size, n, f), n);
    return p;
}

static struct golden golden_read(const char *name) {
    struct golden g;
    char path[128], magic[4];
    snprintf(path, sizeof path, "tests/golden/quant/%s.bin", name);
    for (char *p = path; *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("no golden %s", path);
    assert_int_equal(fread(magic, 1, 4, f), 4);
    assert_memory_equal(magic, "QGLD", 4);
    assert_int_equal(fread(&g, 4, 5, f), 5);
    g.raw = read_array(f, g.bytes, g.n_decode);
    g.hash = read_array(f, 8, g.n_decode);
    g.x = read_array(f, 4, (size_t)g.n_encode * g.block);
    g.coded = read_array(f, g.bytes, g.n_encode);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    return g;
}

static void golden_free(struct golden *g) {
    free(g->raw);
    free(g->hash);
    free(g->x);
    free(g->coded);
}

/* A float's pattern, all NaNs being one. */
static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return f != f ? 0x7fc00000 : u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint64_t hash_of(const float *x, size_t n) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) h = (h ^ bits_of(x[i])) * 0x100000001b3;
    return h;
}

static void decode_is_the_reference(void **state) {
    (void)state;
    for (size_t k = 0; k < QUANT_COUNT; k++) {
        const struct quant *q = quant_list[k];
        struct golden g = golden_read(q->name);
        assert_int_equal(q->id, g.id);
        assert_int_equal(q->block, g.block);
        assert_int_equal(q->bytes, g.bytes);
        float *out = malloc(sizeof *out * g.n_decode * q->block + 4);
        uint8_t *odd = malloc((size_t)g.n_decode * q->bytes + 1); /* blocks at an odd address */
        assert_true(out && odd);
        memcpy(odd + 1, g.raw, (size_t)g.n_decode * q->bytes);
        out[g.n_decode * q->block] = 12345;
        q->decode(odd + 1, out, g.n_decode);
        assert_true(out[g.n_decode * q->block] == 12345);
        for (size_t i = 0; i < g.n_decode; i++)
            if (hash_of(out + i * q->block, q->block) != g.hash[i])
                fail_msg("%s: block %zu decodes to other floats", q->name, i);
        free(odd);
        free(out);
        golden_free(&g);
    }
}

static void same_code(const struct quant *q, size_t i, const uint8_t *mine, const uint8_t *want) {
    if (!memcmp(mine, want, q->bytes)) return;
    float a, b;
    if (q->block == 1) { /* float formats: any NaN for a NaN */
        q->decode(mine, &a, 1);
        q->decode(want, &b, 1);
        if (bits_of(a) == bits_of(b)) return;
    }
    fail_msg("%s: block %zu encodes to other bytes", q->name, i);
}

static void encode_is_the_reference(void **state) {
    (void)state;
    size_t with_goldens = 0;
    for (size_t k = 0; k < QUANT_COUNT; k++) {
        const struct quant *q = quant_list[k];
        struct golden g = golden_read(q->name);
        with_goldens += g.n_encode > 0;
        assert_int_equal(q->encode != NULL, g.n_encode > 0);
        uint8_t *out = malloc((size_t)g.n_encode * q->bytes + 1);
        assert_non_null(out);
        if (q->encode) q->encode(g.x, out, g.n_encode);
        for (size_t i = 0; i < g.n_encode; i++)
            same_code(q, i, out + i * q->bytes, g.coded + i * q->bytes);
        free(out);
        golden_free(&g);
    }
    assert_int_equal(with_goldens, 4);
}

static void q8_0_encodes_the_unencodable(void **state) {
    (void)state;
    const struct quant *q = quant_named("Q8_0");
    float x[32] = {1, INFINITY, -3}, y[32];
    uint8_t block[34];
    q->encode(x, block, 1); /* scale infinite, codes 0 */
    for (size_t i = 2; i < 34; i++) assert_int_equal(block[i], 0);
    x[1] = NAN;
    q->encode(x, block, 1);
    q->decode(block, y, 1);
    for (size_t i = 0; i < 32; i++) assert_true(isnan(y[i]));
}

static void check_unpack(const struct quant *q, const uint8_t *block) {
    uint8_t code[MOST_WEIGHTS];
    float scale[MOST_WEIGHTS / 16], min[MOST_WEIGHTS / 16], x[MOST_WEIGHTS];
    q->decode(block, x, 1);
    q->unpack(block, code, scale, min);
    for (size_t i = 0; i < q->block; i++) {
        int centred = code[i] - q->offset;
        assert_in_range(centred + 128, 0, 255);
        float w = scale[i / q->sub] * (float)centred;
        w = w - min[i / q->sub];
        if (bits_of(w) != bits_of(x[i]))
            fail_msg("%s: weight %zu: unpack gives %a, decode %a", q->name, i, w, x[i]);
        if (!q->has_min) assert_int_equal(bits_of(min[i / q->sub]), 0);
    }
}

static void unpack_agrees_with_decode(void **state) {
    (void)state;
    for (size_t k = 0; k < QUANT_COUNT; k++) {
        const struct quant *q = quant_list[k];
        assert_int_equal(q->unpack != NULL, q->block > 1);
        if (!q->unpack) continue;
        assert_true(q->sub == 16 || q->sub == 32);
        assert_int_equal(q->block % q->sub, 0);
        assert_true(q->block <= MOST_WEIGHTS);
        struct golden g = golden_read(q->name);
        for (size_t i = 0; i < g.n_decode; i++) check_unpack(q, g.raw + i * q->bytes);
        golden_free(&g);
    }
}

/* Half precision by its definition, in doubles. */
static double half_value(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

static void f16_converts_all_values(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = quant_f16_to_f32((uint16_t)h);
        bool nan = (h & 0x7fff) > 0x7c00;
        assert_int_equal(bits_of(f), bits_of((float)half_value((uint16_t)h)));
        uint32_t raw, quiet = (h & 0x8000) << 16 | 0x7fc00000 | (h & 0x3ff) << 13;
        memcpy(&raw, &f, sizeof raw);
        if (nan) assert_int_equal(raw, quiet);
        assert_int_equal(quant_f32_to_f16(f), nan ? h | 0x200 : h); /* a NaN comes back quiet */
        if (nan || (h & 0x7fff) == 0x7c00) continue;
        /* Between h and the next half: below the middle down, above it up, the middle to even. */
        uint32_t up = h + 1;
        double next =
            (up & 0x7fff) == 0x7c00 ? (h & 0x8000 ? -65536.0 : 65536.0) : half_value((uint16_t)up);
        float middle = (float)((half_value((uint16_t)h) + next) / 2);
        assert_int_equal(quant_f32_to_f16(middle), h & 1 ? up : h);
        assert_int_equal(quant_f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(quant_f32_to_f16(nextafterf(middle, (float)next * 2)), up);
    }
}

static void bf16_converts_all_values(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        float f = quant_bf16_to_f32((uint16_t)b);
        uint32_t u;
        memcpy(&u, &f, 4);
        assert_int_equal(u, b << 16);
        bool nan = (b & 0x7fff) > 0x7f80;
        assert_int_equal(quant_f32_to_bf16(f), nan ? b | 0x40 : b);
        if (nan || (b & 0x7fff) == 0x7f80) continue;
        assert_int_equal(quant_f32_to_bf16(float_of(b << 16 | 0x7fff)), b);
        assert_int_equal(quant_f32_to_bf16(float_of(b << 16 | 0x8000)), b + (b & 1));
        assert_int_equal(quant_f32_to_bf16(float_of(b << 16 | 0x8001)), b + 1);
    }
    assert_int_equal(quant_f32_to_bf16(float_of(0x7f800001)), 0x7fc0); /* stays a NaN */
}

static void formats_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < QUANT_COUNT; i++) {
        const struct quant *q = quant_list[i];
        assert_ptr_equal(quant_find(q->id), q);
        assert_ptr_equal(quant_named(q->name), q);
        assert_int_equal(quant_index_of(q), i);
        assert_true(q->decode != NULL);
        if (i) assert_true(strcmp(quant_list[i - 1]->name, q->name) < 0);
    }
    assert_ptr_equal(quant_named("q4_k"), quant_list[QUANT_q4_k]);
    assert_ptr_equal(quant_named("Bf16"), quant_list[QUANT_bf16]);
    assert_null(quant_named("Q4_KX"));
    assert_null(quant_named(""));
    assert_null(quant_find(4)); /* a number GGUF gave up */
    assert_null(quant_find(UINT32_MAX));
}

static void row_bytes_refuses_odd_sizes(void **state) {
    (void)state;
    const struct quant *f32 = quant_named("F32"), *q6_k = quant_named("Q6_K");
    assert_int_equal(quant_row_bytes(f32, 3), 12);
    assert_int_equal(quant_row_bytes(q6_k, 512), 420);
    assert_int_equal(quant_row_bytes(q6_k, 0), 0);
    assert_int_equal(quant_row_bytes(q6_k, 255), 0);
    assert_int_equal(quant_row_bytes(q6_k, 257), 0);
    assert_int_equal(quant_row_bytes(f32, SIZE_MAX / 4), SIZE_MAX / 4 * 4);
    assert_int_equal(quant_row_bytes(f32, (uint64_t)SIZE_MAX / 4 + 1), 0);
    assert_int_equal(quant_row_bytes(f32, UINT64_MAX), 0);
    assert_true(quant_row_bytes(q6_k, UINT64_MAX - 255) > 0); /* under a byte a weight: fits */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_is_the_reference),
        cmocka_unit_test(encode_is_the_reference),
        cmocka_unit_test(q8_0_encodes_the_unencodable),
        cmocka_unit_test(unpack_agrees_with_decode),
        cmocka_unit_test(f16_converts_all_values),
        cmocka_unit_test(bf16_converts_all_values),
        cmocka_unit_test(formats_are_found),
        cmocka_unit_test(row_bytes_refuses_odd_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
