/* SPDX-License-Identifier: Apache-2.0
 * test_quant.c: half conversions over all values, what cannot be encoded, the list's look-ups.
 * (Decode, encode and unpack of each format are rows of 1bit-check.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "quant/quant.h"

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
        cmocka_unit_test(q8_0_encodes_the_unencodable),
        cmocka_unit_test(f16_converts_all_values),
        cmocka_unit_test(bf16_converts_all_values),
        cmocka_unit_test(formats_are_found),
        cmocka_unit_test(row_bytes_refuses_odd_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
