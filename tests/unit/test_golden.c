/* SPDX-License-Identifier: Apache-2.0
 * test_golden.c: the goldens of model families: drawn weights are, bit for bit, those that the
 * reference was computed from; damaged files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "format/source.h"
#include "tempdir.h"

#define FAMILIES "tests/golden/families"

/* The figures are those of tools/make_family_goldens.py. */
static void weights_are_pythons(void **state) {
    static const float embed[4] = {-0x1.10ba18p-4f, 0x1.ea13eap-3f, -0x1.46caap-1f, 0x1.d6bb1ap-1f};
    struct source *source;
    assert_int_equal(source_open(family_unpack("llama", *state), &source, NULL), OB_OK);
    const struct source_tensor *t =
        source_tensor_find(source, STR_LIT("model.embed_tokens.weight"));
    assert_non_null(t);
    assert_int_equal(t->dim[0], 64);
    assert_int_equal(t->dim[1], 256);
    assert_memory_equal(t->data, embed, sizeof embed);
    source_close(&source);
}

/* golden_unpack compares every tensor's checksum. */
static void every_family_unpacks(void **state) {
    char **name;
    size_t n, families = 0;
    assert_int_equal(os_list_dir(FAMILIES, &name, &n, NULL), OB_OK);
    for (size_t i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, FAMILIES "/%s", name[i]);
        if (!os_is_dir(path)) continue;
        family_unpack(name[i], *state);
        families++;
    }
    os_free_list(name, n);
    assert_true(families >= 153);
}

static void near(const float *have, const float *want) {
    for (int i = 0; i < 4; i++)
        if (!(fabsf(have[i] - want[i]) < 1e-4f))
            fail_msg("%g is not %g", (double)have[i], (double)want[i]);
}

static void arrays_are_whole(void **state) {
    (void)state;
    static const float first[] = {-0.138442f, -1.21623f, -1.90145f, 0.156089f},
                       last[] = {0.821924f, -3.9108f, 1.25535f, -2.53443f};
    struct golden *golden;
    size_t n;
    assert_int_equal(golden_open(FAMILIES "/llama", &golden, NULL), OB_OK);
    int32_t *id = golden_ints(golden, "input_ids_b", &n), *top;
    assert_non_null(id);
    assert_int_equal(n, 40);
    assert_int_equal(id[0], 126);
    assert_int_equal(id[2], 161);
    free(id);
    float *logits = golden_floats(golden, "logits_b", &n);
    assert_non_null(logits);
    assert_int_equal(n, 40 * 256);
    near(logits, first);
    near(logits + n - 4, last);
    top = golden_ints(golden, "argmax_b", &n);
    assert_non_null(top);
    assert_int_equal(n, 40);
    for (size_t row = 0; row < n; row++)
        for (size_t i = 0; i < 256; i++)
            assert_true(logits[row * 256 + i] <= logits[row * 256 + (size_t)top[row]] + 1e-3f);
    free(top);
    free(logits);
    assert_null(golden_ints(golden, "logits_b", &n));
    assert_null(golden_floats(golden, "hidden_a", &n));
    golden_close(&golden);
}

static void damage_is_refused(void **state) {
    char *data;
    size_t n;
    struct golden *golden = NULL;
    ob_error error;
    assert_int_equal(os_read_file(FAMILIES "/llama/golden.bin", 1 << 20, &data, &n, NULL), OB_OK);
    for (size_t cut = 0; cut < n; cut += cut < 512 ? 1 : 1009) {
        tempdir_write(*state, "golden.bin", data, cut);
        assert_int_equal(golden_open(*state, &golden, &error), OB_ERR_FORMAT);
        assert_null(golden);
    }
    /* the first tensor's mean: behind 16 bytes, two names, two bytes, its shape and its checksum */
    size_t name = (uint8_t)data[16], type = (uint8_t)data[17 + name];
    size_t mean = 18 + name + type + 2 + 4 * (size_t)(uint8_t)data[19 + name + type] + 8;
    data[mean] ^= 1;
    tempdir_write(*state, "golden.bin", data, n);
    tempdir_write(*state, "config.legacy.json", "{}", 2);
    assert_int_equal(golden_open(*state, &golden, &error), OB_OK);
    assert_int_equal(golden_unpack(golden, "config.legacy.json", *state, &error), OB_ERR_FORMAT);
    assert_non_null(strstr(error.message, "checksum"));
    golden_close(&golden);
    free(data);
    tempdir_empty(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_pythons),
        cmocka_unit_test(every_family_unpacks),
        cmocka_unit_test(arrays_are_whole),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
