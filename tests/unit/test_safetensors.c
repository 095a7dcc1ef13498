/* SPDX-License-Identifier: Apache-2.0
 * test_safetensors.c: single files and shards, good ones and ones that lie. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/safetensors.h"
#include "tempdir.h"

/* A file of this header and `bytes` bytes of data 0, 1, 2... */
static struct buf file_of(const char *header, size_t bytes) {
    struct buf b = BUF_INIT;
    uint64_t n = strlen(header);
    buf_add(&b, &n, sizeof n);
    buf_puts(&b, header);
    for (size_t i = 0; i < bytes; i++) buf_putc(&b, (char)i);
    return b;
}

static ob_status open_copy(const void *data, size_t n, struct safetensors **out, ob_error *error) {
    static void *copy;
    free(copy);
    copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    ob_status status = safetensors_open_memory(copy, n, "test", out, error);
    if (status != OB_OK) {
        assert_null(*out);
        free(copy);
        copy = NULL;
    }
    return status;
}

static uint64_t touch(const struct safetensors *st) {
    uint64_t sum = 0;
    for (size_t i = 0; i < safetensors_tensor_count(st); i++) {
        const struct safetensors_tensor *t = safetensors_tensor_at(st, i);
        assert_ptr_equal(safetensors_tensor_find(st, t->name), t);
        sum += str_hash((struct str){t->data, t->bytes}) + str_hash(t->dtype);
    }
    return sum;
}

static const char good[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"x\":[{}]},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]},"
    "\"q\":{\"data_offsets\":[32,36],\"shape\":[4],\"dtype\":\"F8_E4M3\"},"
    "\"d5\":{\"dtype\":\"F16\",\"shape\":[2,3,2,1,1],\"data_offsets\":[40,64]},"
    "\"odd\":{\"dtype\":\"Z9\",\"shape\":[7],\"data_offsets\":[64,65]}}  ";

static void good_file(void **state) {
    (void)state;
    struct buf b = file_of(good, 70);
    struct safetensors *st;
    ob_error error;
    if (open_copy(b.p, b.n, &st, &error) != OB_OK) fail_msg("%s", error.message);
    assert_int_equal(safetensors_tensor_count(st), 5);
    assert_int_equal(safetensors_file_bytes(st), b.n);
    const struct safetensors_tensor *t = safetensors_tensor_find(st, STR_LIT("w"));
    assert_ptr_equal(t->quant, quant_named("F32"));
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->dim[0], 3);
    assert_int_equal(t->dim[1], 2);
    assert_int_equal(t->dim[2], 1);
    assert_int_equal(t->bytes, 24);
    assert_int_equal(t->offset, 8 + sizeof good - 1);
    assert_int_equal(((const uint8_t *)t->data)[5], 5);
    t = safetensors_tensor_find(st, STR_LIT("s"));
    assert_ptr_equal(t->quant, quant_named("BF16"));
    assert_int_equal(t->ndim, 1);
    assert_int_equal(t->dim[0], 1);
    t = safetensors_tensor_find(st, STR_LIT("q"));
    assert_null(t->quant);
    assert_true(str_is(t->dtype, "F8_E4M3"));
    t = safetensors_tensor_find(st, STR_LIT("d5"));
    assert_int_equal(t->ndim, 4);
    assert_int_equal(t->dim[2], 2);
    assert_int_equal(t->dim[3], 6);
    assert_int_equal(((const uint8_t *)t->data)[0], 40);
    assert_null(safetensors_tensor_find(st, STR_LIT("none")));
    touch(st);
    safetensors_close(&st);
    buf_free(&b);
}

static void truncations_and_bit_flips(void **state) {
    (void)state;
    struct buf b = file_of(good, 65);
    struct safetensors *st;
    ob_error error;
    for (size_t n = 0; n < b.n; n++) {
        if (open_copy(b.p, n, &st, &error) == OB_OK) fail_msg("%zu of %zu bytes", n, b.n);
        assert_true(error.message[0] && strcmp(error.file, "test") == 0);
    }
    for (size_t bit = 0; bit < b.n * 8; bit++) {
        b.p[bit / 8] = (char)(b.p[bit / 8] ^ 1 << bit % 8);
        if (open_copy(b.p, b.n, &st, NULL) == OB_OK) touch(st);
        safetensors_close(&st);
        b.p[bit / 8] = (char)(b.p[bit / 8] ^ 1 << bit % 8);
    }
    buf_free(&b);
}

/* An entry of the header. */
#define F32(name, shape, offsets) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void files_that_lie(void **state) {
    (void)state;
    static const struct {
        const char *entry, *message;
    } row[] = {
        {F32("t", "[0,2]", "[0,0]"), "a dimension is zero"},
        {F32("t", "[4611686018427387904,4]", "[0,0]"), "the shape overflows"},
        {F32("t", "[4611686018427387904]", "[0,0]"), "want 4611686018427387904 weights"},
        {F32("t", "[2]", "[0,4]"), "want 2 weights of 32 bits"},
        {F32("t", "[2]", "[8,0]"), "ends before it starts"},
        {F32("t", "[2]", "[60,68]"), "which has 64 bytes of data"},
        {F32("t", "[2]", "[18446744073709551608,18446744073709551615]"),
         "which has 64 bytes of data"},
        {F32("t", "[2]", "[-8,0]"), "two whole numbers"},
        {F32("t", "[2]", "[0]"), "is missing"},
        {F32("t", "[2]", "[0,1,2]"), "two whole numbers"},
        {F32("t", "[2.0]", "[0,8]"), "a few whole numbers"},
        {F32("t", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), "a few whole numbers"},
        {"\"t\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}", "dtype must be a string"},
        {"\"t\":{\"shape\":[2],\"data_offsets\":[0,8]}", "is missing"},
        {"\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}", "is missing"},
        {"\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}",
         "unknown or appears twice"},
        {"\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}",
         "unknown or appears twice"},
        {"\"t\":[]", "must be an object"},
        {"\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", "must be text"},
        {"\"t\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", "must be text"},
        {F32("t", "[2]", "[0,8]") "," F32("t", "[2]", "[8,16]"), "appears twice"},
        {F32("t", "[2]", "[0,8]") "," F32("u", "[2]", "[7,15]"), "overlaps tensor 't'"},
        {F32("t", "[2]", "[0,8]") "," F32("u", "[2]", "[0,8]"), "overlaps tensor"},
        {"\"t\":nope", "malformed JSON: a value is expected"},
        {"\"t\":{\"dtype\":\"F32\",\"shape\":[2 2]", "malformed JSON: a comma or ] is expected"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct buf header = BUF_INIT;
        struct safetensors *st;
        ob_error error;
        buf_printf(&header, "{%s}", row[i].entry);
        struct buf b = file_of(header.p, 64);
        if (open_copy(b.p, b.n, &st, &error) == OB_OK) fail_msg("opened: %s", row[i].entry);
        if (!strstr(error.message, row[i].message))
            fail_msg("%s: '%s', want '%s'", row[i].entry, error.message, row[i].message);
        assert_string_equal(error.file, "test");
        buf_free(&header);
        buf_free(&b);
    }
    struct safetensors *st;
    ob_error error;
    static const uint64_t length[] = {1ull << 63, UINT64_MAX, 100, 3};
    for (size_t i = 0; i < 4; i++) {
        struct buf b = file_of("{}", 0);
        memcpy(b.p, &length[i], 8);
        assert_int_equal(open_copy(b.p, b.n, &st, &error), OB_ERR_FORMAT);
        assert_non_null(strstr(error.message, "a header of"));
        buf_free(&b);
    }
    struct buf b = file_of("{} x", 0);
    assert_int_equal(open_copy(b.p, b.n, &st, &error), OB_ERR_FORMAT);
    assert_int_equal(error.offset, 11);
    buf_free(&b);
}

/* ---- shards ---------------------------------------------------------------------------------- */

static void put(const char *dir, const char *name, const char *header) {
    struct buf b = file_of(header, 8);
    tempdir_write(dir, name, b.p, b.n);
    buf_free(&b);
}

#define TENSOR(name) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define INDEX "model.safetensors.index.json"

static void write_shards(const char *dir, const char *index) {
    tempdir_empty(dir);
    put(dir, "one.safetensors", "{" TENSOR("a") "}");
    put(dir, "two.safetensors", "{" TENSOR("b") "}");
    tempdir_write(dir, INDEX, index, strlen(index));
}

static void shards_open_together(void **state) {
    const char *dir = *state;
    struct safetensors *st;
    ob_error error;
    write_shards(dir, "{\"metadata\":{\"total_size\":16},\"weight_map\":"
                      "{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}");
    if (safetensors_open(dir, &st, &error) != OB_OK) fail_msg("%s: %s", error.file, error.message);
    assert_int_equal(safetensors_parts(st), 2);
    assert_int_equal(safetensors_tensor_count(st), 2);
    const struct safetensors_tensor *t = safetensors_tensor_find(st, STR_LIT("b"));
    assert_non_null(strstr(safetensors_part_path(st, t->part), "/two.safetensors"));
    touch(st);
    safetensors_close(&st);

    put(dir, "model.safetensors", "{" TENSOR("alone") "}"); /* goes before an index */
    assert_int_equal(safetensors_open(dir, &st, &error), OB_OK);
    assert_non_null(safetensors_tensor_find(st, STR_LIT("alone")));
    assert_int_equal(safetensors_tensor_count(st), 1);
    safetensors_close(&st);
}

static void shards_that_disagree_are_named(void **state) {
    const char *dir = *state;
    static const struct { const char *index, *file, *where, *message; } row[] = {
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"three.safetensors\"}}",
         INDEX, "c", "its file three.safetensors is missing"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}}",
         INDEX, "c", "not in two.safetensors"},
        {"{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}",
         INDEX, "b", "not in one.safetensors"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}",
         INDEX, "a", "must name a file in the same directory"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
         INDEX, "a", "must name a file in the same directory"},
        {"{\"weight_map\":{\"a\":7}}",
         INDEX, "a", "must name a file in the same directory"},
        {"{\"weight_map\":{\"a\":\"" INDEX "\"}}",
         INDEX, "", "no safetensors file"},
        {"{\"weight_map\":{}}",
         INDEX, "weight_map", "is missing or empty"},
        {"{\"weight_map\":[]}",
         INDEX, "weight_map", "must be an object"},
        {"{}", INDEX, "weight_map", "is missing or empty"},
        {"[]", INDEX, "", "must be an object"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\"}} x", INDEX, "", "more after the end"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\"", INDEX, "", "the text ends too early"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"same.safetensors\"}}",
         "same.safetensors", "a", "appears twice"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct safetensors *st;
        ob_error error;
        write_shards(dir, row[i].index);
        put(dir, "same.safetensors", "{" TENSOR("a") "}");
        if (safetensors_open(dir, &st, &error) == OB_OK) fail_msg("opened: %s", row[i].index);
        assert_null(st);
        if (!strstr(error.file, row[i].file) || strcmp(error.where, row[i].where) != 0 ||
            !strstr(error.message, row[i].message))
            fail_msg("%s: %s: %s: %s", row[i].index, error.file, error.where, error.message);
    }
    struct safetensors *st;
    ob_error error;
    tempdir_empty(dir);
    assert_int_equal(safetensors_open(dir, &st, &error), OB_ERR_NOT_FOUND);
    assert_string_equal(error.file, dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file),
        cmocka_unit_test(truncations_and_bit_flips),
        cmocka_unit_test(files_that_lie),
        cmocka_unit_test(shards_open_together),
        cmocka_unit_test(shards_that_disagree_are_named),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
