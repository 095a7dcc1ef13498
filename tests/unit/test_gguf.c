/* SPDX-License-Identifier: Apache-2.0
 * test_gguf.c: the reader against the writer, and against files that lie. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "tempdir.h"

static const float weights[64] = {1, 2, 3, [63] = -4};

static const struct quant *f32(void) { return quant_named("F32"); }

static void put_f32(struct gguf_writer *w, const char *name, uint64_t cols, uint64_t rows) {
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = str_of(name), .quant = f32(), .ndim = 2,
                                                 .dim = {cols, rows}, .data = weights});
}

/* Opens a copy of exactly these bytes, so that the sanitizer sees a step past the end. */
static ob_status open_copy(const void *data, size_t n, struct gguf **out, ob_error *error) {
    static void *copy;
    free(copy);
    copy = malloc(n ? n : 1);
    if (n) memcpy(copy, data, n);
    ob_status status = gguf_open_memory(copy, n, "test.gguf", out, error);
    if (status != OB_OK) {
        assert_null(*out);
        free(copy);
        copy = NULL;
    }
    return status;
}

/* Looks at every byte the reader vouches for; the sum keeps the reads alive. */
static uint64_t touch(const struct gguf *g) {
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf_value_count(g); i++) {
        const struct gguf_value *v = gguf_value_at(g, i);
        for (uint64_t k = 0; k < v->n; k++) {
            struct str s;
            double f;
            if (gguf_str(v, k, &s)) sum += str_hash(s);
            if (gguf_f64(v, k, &f)) sum += f > 1;
        }
    }
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        assert_ptr_equal(gguf_tensor_find(g, t->name), t);
        sum += str_hash((struct str){t->data, t->bytes});
    }
    return sum;
}

/* ---- round trip ------------------------------------------------------------------------------ */

static struct gguf_writer *sample(void) {
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_str(w, "general.architecture", STR_LIT("test"));
    gguf_put_whole(w, "u8", GGUF_U8, 200);
    gguf_put_whole(w, "i8", GGUF_I8, (uint64_t)-100);
    gguf_put_whole(w, "u16", GGUF_U16, 60000);
    gguf_put_whole(w, "i16", GGUF_I16, (uint64_t)-30000);
    gguf_put_whole(w, "u32", GGUF_U32, 4000000000);
    gguf_put_whole(w, "i32", GGUF_I32, (uint64_t)-2000000000);
    gguf_put_whole(w, "u64", GGUF_U64, UINT64_MAX);
    gguf_put_whole(w, "i64", GGUF_I64, (uint64_t)INT64_MIN);
    gguf_put_f32(w, "f32", 0.5f);
    gguf_put_f64(w, "f64", -1e300);
    gguf_put_whole(w, "bool", GGUF_BOOL, 1);
    gguf_put_array(w, "array", GGUF_I32, (int32_t[]){1, -2, 3}, 3);
    gguf_put_array(w, "empty", GGUF_F32, NULL, 0);
    gguf_put_strs(w, "strings", (struct str[]){STR_LIT("a"), STR_LIT(""), STR_LIT("\xff\0z")}, 3);
    return w;
}

static void check_sample(const struct gguf *g) {
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    struct str s;
    static const struct {
        const char *key;
        bool is_u64, is_i64;
        uint64_t u;
        int64_t i;
        double f;
    } ints[] = {
        {"u8", true, true, 200, 200, 200},
        {"i8", false, true, 0, -100, -100},
        {"u16", true, true, 60000, 60000, 60000},
        {"i16", false, true, 0, -30000, -30000},
        {"u32", true, true, 4000000000, 4000000000, 4e9},
        {"i32", false, true, 0, -2000000000, -2e9},
        {"u64", true, false, UINT64_MAX, 0, 18446744073709551616.0},
        {"i64", false, true, 0, INT64_MIN, -9223372036854775808.0},
    };
    for (size_t k = 0; k < sizeof ints / sizeof ints[0]; k++) {
        const struct gguf_value *v = gguf_find(g, ints[k].key);
        assert_int_equal(gguf_u64(v, 0, &u), ints[k].is_u64);
        if (ints[k].is_u64) assert_true(u == ints[k].u);
        assert_int_equal(gguf_i64(v, 0, &i), ints[k].is_i64);
        if (ints[k].is_i64) assert_true(i == ints[k].i);
        assert_true(gguf_f64(v, 0, &f) && f == ints[k].f);
        assert_false(gguf_u64(v, 1, &u));
        assert_false(gguf_bool(v, 0, &b) || gguf_str(v, 0, &s));
    }
    assert_true(gguf_f64(gguf_find(g, "f32"), 0, &f) && f == 0.5);
    assert_true(gguf_f64(gguf_find(g, "f64"), 0, &f) && f == -1e300);
    assert_false(gguf_u64(gguf_find(g, "f32"), 0, &u));
    assert_true(gguf_bool(gguf_find(g, "bool"), 0, &b) && b);
    assert_false(gguf_u64(gguf_find(g, "bool"), 0, &u));
    assert_true(gguf_i64(gguf_find(g, "array"), 1, &i) && i == -2);
    assert_false(gguf_i64(gguf_find(g, "array"), 3, &i));
    assert_int_equal(gguf_find(g, "empty")->n, 0);
    assert_true(gguf_str(gguf_find(g, "strings"), 2, &s) && s.n == 3 &&
                memcmp(s.p, "\xff\0z", 3) == 0);
    assert_true(gguf_str(gguf_find(g, "strings"), 1, &s) && s.n == 0);
    assert_true(gguf_str(gguf_find(g, "general.architecture"), 0, &s) && str_is(s, "test"));
    assert_null(gguf_find(g, "absent"));
    assert_false(gguf_u64(gguf_find(g, "absent"), 0, &u));
}

static void round_trip(void **state) {
    (void)state;
    static const uint32_t alignment[] = {0, 1, 8, 64, 4096};
    for (size_t a = 0; a < sizeof alignment / sizeof alignment[0]; a++) {
        struct gguf_writer *w = sample();
        if (alignment[a]) gguf_put_alignment(w, alignment[a]);
        put_f32(w, "b", 3, 2);
        put_f32(w, "a", 8, 8);
        struct buf file = BUF_INIT;
        struct gguf *g;
        assert_int_equal(gguf_write_buf(w, &file, NULL), OB_OK);
        gguf_writer_free(&w);
        assert_int_equal(open_copy(file.p, file.n, &g, NULL), OB_OK);
        check_sample(g);
        assert_int_equal(gguf_version(g), 3);
        assert_int_equal(gguf_alignment(g), alignment[a] ? alignment[a] : 32);
        assert_int_equal(gguf_file_bytes(g), file.n);
        assert_int_equal(gguf_tensor_count(g), 2);
        const struct gguf_tensor *t = gguf_tensor_find(g, STR_LIT("a"));
        assert_ptr_equal(t, gguf_tensor_at(g, 1));
        assert_ptr_equal(t->quant, f32());
        assert_int_equal(t->dim[0], 8);
        assert_int_equal(t->dim[3], 1);
        assert_int_equal(t->bytes, 256);
        assert_memory_equal(t->data, weights, 256);
        assert_null(gguf_tensor_find(g, STR_LIT("c")));

        /* Copying every value and tensor gives the same file. */
        struct gguf_writer *again = gguf_writer_new();
        for (size_t i = 0; i < gguf_value_count(g); i++) {
            const struct gguf_value *v = gguf_value_at(g, i);
            if (str_is(v->key, "general.alignment")) gguf_put_alignment(again, alignment[a]);
            else gguf_put_value(again, v);
        }
        for (size_t i = 0; i < 2; i++) {
            t = gguf_tensor_at(g, i);
            gguf_put_tensor(again, &(struct gguf_new_tensor){
                .name = t->name, .quant = t->quant, .ndim = t->ndim,
                .dim = {t->dim[0], t->dim[1]}, .data = t->data});
        }
        struct buf copy = BUF_INIT;
        assert_int_equal(gguf_write_buf(again, &copy, NULL), OB_OK);
        assert_int_equal(copy.n, file.n);
        assert_memory_equal(copy.p, file.p, file.n);
        gguf_writer_free(&again);
        buf_free(&copy);
        buf_free(&file);
        gguf_close(&g);
    }
}

static ob_status from_ramp(void *user, uint64_t offset, void *out, size_t n, ob_error *error) {
    if (*(bool *)user) return error_set(error, OB_ERR_IO, "no more data");
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)out)[i] = (unsigned char)((offset + i) * 7 >> 8);
    return OB_OK;
}

static void writes_streams_into_place(void **state) {
    const char *dir = *state;
    char path[512], part[520];
    snprintf(path, sizeof path, "%s/out.gguf", dir);
    snprintf(part, sizeof part, "%s.part", path);
    bool broken = false;
    ob_error error;
    struct gguf *g;
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = STR_LIT("big"),
                                                 .quant = f32(),
                                                 .ndim = 1,
                                                 .dim = {700001},
                                                 .read = from_ramp,
                                                 .user = &broken});
    put_f32(w, "after", 4, 1);
    assert_int_equal(gguf_write_file(w, path, &error), OB_OK);
    assert_false(os_is_file(part));
    assert_int_equal(gguf_open(path, &g, &error), OB_OK);
    const unsigned char *data = gguf_tensor_at(g, 0)->data;
    for (size_t i = 0; i < 2800004; i++)
        if (data[i] != (unsigned char)(i * 7 >> 8)) fail_msg("byte %zu", i);
    assert_memory_equal(gguf_tensor_at(g, 1)->data, weights, 16);
    gguf_close(&g);
    broken = true;
    assert_int_equal(gguf_write_file(w, path, &error), OB_ERR_IO);
    assert_string_equal(error.message, "no more data");
    assert_string_equal(error.file, path);
    assert_false(os_is_file(part));
    assert_true(os_is_file(path)); /* the old one is untouched */
    assert_int_equal(gguf_write_file(w, "/nonexistent/x.gguf", &error), OB_ERR_IO);
    gguf_writer_free(&w);
}

/* A file that takes long, and what happens while its data is asked for. */
struct slow {
    char path[512], part[520];
    struct gguf_writer *w;
    unsigned asked;           /* times the data was */
    unsigned stop;            /* at this time, 0: never */
    bool appears, twice;      /* somebody else makes the file; the same is begun again */
};

enum { PARTS = 4, SOURCE = 77 };

static ob_status from_slow(void *user, uint64_t offset, void *out, size_t n, ob_error *error) {
    struct slow *slow = user;
    if (++slow->asked == slow->stop) return error_set(error, OB_ERR_IO, "stopped");
    if (slow->appears) {
        FILE *file = fopen(slow->path, "wx");
        if (file) fclose(file);
    }
    if (slow->twice) {
        ob_error said;
        slow->twice = false;
        assert_int_equal(gguf_write_resumed(slow->w, slow->path, SOURCE, NULL, &said), OB_ERR_IO);
        assert_string_equal(said.message, "another conversion is writing it");
        assert_string_equal(said.file, slow->part);
    }
    memset(out, (int)offset + 1, n);
    return OB_OK;
}

static void slow_start(struct slow *slow, const char *dir) {
    *slow = (struct slow){.w = gguf_writer_new()};
    tempdir_empty(dir);
    snprintf(slow->path, sizeof slow->path, "%s/slow.gguf", dir);
    snprintf(slow->part, sizeof slow->part, "%s.part", slow->path);
    for (int i = 0; i < PARTS; i++) {
        char name[2] = {(char)('a' + i)};
        gguf_put_tensor(slow->w, &(struct gguf_new_tensor){.name = str_of(name), .quant = f32(),
                                                           .ndim = 1, .dim = {9},
                                                           .read = from_slow, .user = slow});
    }
}

static void slow_refused(struct slow *slow, uint64_t source, const char *file, const char *why) {
    ob_error error;
    assert_int_equal(gguf_write_resumed(slow->w, slow->path, source, NULL, &error), OB_ERR_IO);
    assert_string_equal(error.message, why);
    assert_string_equal(error.file, file);
}

static void slow_ends(struct slow *slow) {
    struct gguf *g;
    slow->stop = 0;
    assert_int_equal(gguf_write_resumed(slow->w, slow->path, SOURCE, NULL, NULL), OB_OK);
    assert_false(os_name_taken(slow->part));
    assert_int_equal(gguf_open(slow->path, &g, NULL), OB_OK);
    assert_int_equal(gguf_tensor_count(g), PARTS);
    gguf_close(&g);
    gguf_writer_free(&slow->w);
}

static void parts_of_other_sources_are_kept(void **state) {
    static const char why[] = "is there and is of another conversion (other files, or another "
                              "type): move it away";
    struct slow slow;
    struct gguf *g;
    slow_start(&slow, *state);
    slow.stop = 3;
    slow_refused(&slow, SOURCE, slow.part, "stopped");
    assert_int_equal(gguf_open(slow.part, &g, NULL), OB_ERR_FORMAT); /* no model yet */
    slow_refused(&slow, SOURCE + 1, slow.part, why);
    assert_int_equal(slow.asked, 3);
    slow_ends(&slow);
    assert_int_equal(slow.asked, 3 + PARTS - 2); /* two were there */
}

static void nothing_that_appears_is_replaced(void **state) {
    struct slow slow;
    char *text;
    size_t n;
    slow_start(&slow, *state);
    slow.appears = true;
    slow_refused(&slow, SOURCE, slow.path,
                 "is there now: move it away, and the same again finishes");
    assert_int_equal(os_read_file(slow.path, 100, &text, &n, NULL), OB_OK);
    assert_int_equal(n, 0);
    free(text);
    slow_refused(&slow, SOURCE, slow.path, "exists already");
    unlink(slow.path);
    slow_ends(&slow);
    assert_int_equal(slow.asked, PARTS);

    slow_start(&slow, *state); /* the last moment: what writes asked just before */
    tempdir_write(*state, "from", "x", 1);
    char from[520];
    snprintf(from, sizeof from, "%s/from", (const char *)*state);
    for (int link = 0; link < 2; link++) {
        if (link) assert_int_equal(symlink("nowhere", slow.path), 0);
        else tempdir_write(*state, "slow.gguf", "old", 3);
        assert_false(os_rename_new(from, slow.path));
        assert_int_equal(errno, EEXIST);
        assert_true(os_name_taken(from));
        unlink(slow.path);
    }
    assert_true(os_rename_new(from, slow.path));
    assert_false(os_name_taken(from));
    gguf_writer_free(&slow.w);
    tempdir_empty(*state);
}

static void two_at_once_are_refused(void **state) {
    struct slow slow;
    slow_start(&slow, *state);
    slow.twice = true;
    slow_ends(&slow);
    assert_int_equal(slow.asked, PARTS);
}

/* ---- files that lie -------------------------------------------------------------------------- */

static struct buf small_file(void) {
    struct gguf_writer *w = sample();
    struct buf file = BUF_INIT;
    put_f32(w, "one", 4, 2);
    put_f32(w, "two", 3, 1);
    assert_int_equal(gguf_write_buf(w, &file, NULL), OB_OK);
    gguf_writer_free(&w);
    return file;
}

static void every_truncation_is_an_error(void **state) {
    (void)state;
    struct buf file = small_file();
    size_t end = file.n - 32 + 12; /* of the last tensor's data, before the padding */
    for (size_t n = 0; n <= file.n; n++) {
        struct gguf *g;
        ob_error error;
        ob_status status = open_copy(file.p, n, &g, &error);
        if ((status == OB_OK) != (n >= end))
            fail_msg("%zu of %zu bytes: %s", n, file.n, error.message);
        if (status == OB_OK) touch(g);
        else assert_true(error.message[0] && strcmp(error.file, "test.gguf") == 0);
        gguf_close(&g);
    }
    buf_free(&file);
}

static void bit_flips_never_crash(void **state) {
    (void)state;
    struct buf file = small_file();
    size_t opened = 0;
    for (size_t bit = 0; bit < file.n * 8; bit++) {
        struct gguf *g;
        file.p[bit / 8] = (char)(file.p[bit / 8] ^ 1 << bit % 8);
        if (open_copy(file.p, file.n, &g, NULL) == OB_OK) opened++, touch(g);
        gguf_close(&g);
        file.p[bit / 8] = (char)(file.p[bit / 8] ^ 1 << bit % 8);
    }
    assert_true(opened > 0 && opened < file.n * 8);
    buf_free(&file);
}

/* A file byte by byte. */
static void u32(struct buf *b, uint32_t v) { buf_add(b, &v, sizeof v); }
static void u64(struct buf *b, uint64_t v) { buf_add(b, &v, sizeof v); }
static void text(struct buf *b, const char *s) {
    u64(b, strlen(s));
    buf_puts(b, s);
}
static void header(struct buf *b, uint32_t version, uint64_t tensors, uint64_t values) {
    buf_puts(b, "GGUF");
    u32(b, version);
    u64(b, tensors);
    u64(b, values);
}
static void tensor(struct buf *b, const char *name, uint64_t d0, uint64_t d1, uint32_t type,
                   uint64_t offset) {
    text(b, name);
    u32(b, 2);
    u64(b, d0);
    u64(b, d1);
    u32(b, type);
    u64(b, offset);
}
static void data(struct buf *b, size_t n) {
    while (b->n % 32) buf_putc(b, 0);
    while (n--) buf_putc(b, 0);
}

/* The file is refused with this in the message, this key or tensor and this offset; frees it. */
static void refused(struct buf *b, const char *message, const char *where, uint64_t offset) {
    struct gguf *g;
    ob_error error;
    char line[1024];
    ob_status status = open_copy(b->p, b->n, &g, &error);
    if (status == OB_OK) fail_msg("opened, want '%s'", message);
    ob_error_line(&error, line, sizeof line);
    if (!strstr(error.message, message) || strcmp(error.where, where) != 0 ||
        error.offset != offset)
        fail_msg("'%s', want '%s' at '%s' %llu", line, message, where, (unsigned long long)offset);
    assert_null(strchr(line, '\n'));
    buf_free(b);
}

static void headers_that_lie(void **state) {
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "GGML");
    refused(&b, "not a GGUF file", "", 0);
    header(&b, 1, 0, 0);
    refused(&b, "GGUF version 1;", "", 4);
    header(&b, 4, 0, 0);
    refused(&b, "GGUF version 4;", "", 4);
    header(&b, 3u << 24, 0, 0);
    refused(&b, "big-endian", "", 4);
    header(&b, 3, 1ull << 63, 0);
    refused(&b, "9223372036854775808 tensors cannot fit", "", 8);
    header(&b, 3, 0, 1ull << 63);
    refused(&b, "9223372036854775808 keys cannot fit", "", 16);
    header(&b, 2, 0, 0); /* version 2 has the same layout */
    struct gguf *g;
    assert_int_equal(open_copy(b.p, b.n, &g, NULL), OB_OK);
    assert_int_equal(gguf_version(g), 2);
    gguf_close(&g);
    buf_free(&b);
}

static void values_that_lie(void **state) {
    (void)state;
    static const struct {
        uint32_t type, element;
        uint64_t n;
        const char *message;
        uint64_t offset;
    } row[] = {
        {13, 0, 0, "unknown value type 13", 33},
        {GGUF_ARRAY, GGUF_ARRAY, 1, "array of arrays", 37},
        {GGUF_ARRAY, 99, 1, "unknown array element type 99", 37},
        {GGUF_ARRAY, GGUF_U8, 1ull << 63, "9223372036854775808 elements", 49},
        {GGUF_ARRAY, GGUF_U64, 1ull << 61, "2305843009213693952 elements", 49},
        {GGUF_ARRAY, GGUF_STRING, 1ull << 61, "2305843009213693952 elements", 49},
        {GGUF_ARRAY, GGUF_F64, 9, "9 elements", 49},
        {GGUF_ARRAY, GGUF_BOOL, 16, "a bool of value 2", 57},
        {GGUF_ARRAY, GGUF_STRING, 2, "a string of 514 bytes runs past", 49},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct buf b = BUF_INIT;
        header(&b, 3, 0, 1);
        buf_add(&b, "\1\0\0\0\0\0\0\0k", 9);
        u32(&b, row[i].type);
        if (row[i].type == GGUF_ARRAY) u32(&b, row[i].element), u64(&b, row[i].n);
        buf_add(&b, row[i].element == GGUF_BOOL ? "\0\1\0\1\0\1\0\1\2" : "\2\2\0\0\0\0\0\0\1", 9);
        buf_add(&b, "\0\0\0\0\0\0\0\0\0\0", 10);
        refused(&b, row[i].message, "k", row[i].offset);
    }
    struct buf b = BUF_INIT;
    header(&b, 3, 0, 1);
    u64(&b, 1ull << 63);
    data(&b, 32);
    refused(&b, "a key of 9223372036854775808 bytes runs past", "", 24);
    header(&b, 3, 0, 1); /* one byte too long, in the last bytes of the file */
    text(&b, "k"), u32(&b, GGUF_STRING), u64(&b, 4), buf_puts(&b, "abc");
    refused(&b, "a string of 4 bytes runs past", "k", 37);
    header(&b, 3, 0, 1);
    text(&b, "");
    data(&b, 32);
    refused(&b, "a key is empty", "", 24);
    header(&b, 3, 0, 1);
    text(&b, "ab\xc3(");
    data(&b, 32);
    refused(&b, "a key is not UTF-8", "", 34);
    header(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) text(&b, "twice"), u32(&b, GGUF_U8), buf_putc(&b, 1);
    refused(&b, "appears twice", "twice", 42);
    static const uint32_t alignment[] = {0, 3, 48};
    for (size_t i = 0; i < 3; i++) {
        header(&b, 3, 0, 1);
        text(&b, "general.alignment"), u32(&b, GGUF_U32), u32(&b, alignment[i]);
        refused(&b, "must be a power of two", "general.alignment", 53);
    }
    header(&b, 3, 0, 1);
    text(&b, "general.alignment"), u32(&b, GGUF_U64), u64(&b, 1ull << 63);
    refused(&b, "an alignment of 9223372036854775808", "general.alignment", 53);
    header(&b, 3, 0, 1);
    text(&b, "general.alignment"), u32(&b, GGUF_F32), u32(&b, 0);
    refused(&b, "must be a whole number", "general.alignment", 53);
}

static void tensors_that_lie(void **state) {
    (void)state;
    const uint32_t q8 = quant_named("Q8_0")->id;
    static const uint64_t huge = 1ull << 62;
    static const struct {
        uint64_t d0, d1;
        uint32_t q8, type;
        uint64_t offset;
        const char *message;
        uint64_t at;
    } row[] = {
        {0, 1, 0, 0, 0, "dimension 0 is zero", 37},
        {1, 0, 0, 0, 0, "dimension 1 is zero", 45},
        {huge, 4, 0, 0, 0, "overflow", 24},
        {4, huge, 0, 0, 0, "overflow", 24},
        {33, 1, 1, 0, 0, "no whole number of Q8_0 blocks of 32", 24},
        {4, 1, 0, 77, 0, "tensor type 77 is not known", 53},
        {huge, 1, 0, 27, 0, "overflow", 24}, /* I64 */
        {4, 5, 0, 26, 0, "80 bytes run past the end", 96}, /* I32 */
        {4, 1, 0, 0, 8, "no multiple of the alignment 32", 57},
        {4, 1, 0, 0, 64, "16 bytes run past the end of the file (160 bytes)", 160},
        {4, 5, 0, 0, 0, "80 bytes run past the end", 96},
        {8, 1, 0, 0, ~31ull, "32 bytes run past the end", OB_NO_OFFSET}, /* the end wraps to 0 */
        {4, 1, 0, 0, 1ull << 63, "16 bytes run past the end", (1ull << 63) + 96},
    };
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        header(&b, 3, 1, 0);
        tensor(&b, "t", row[i].d0, row[i].d1, row[i].q8 ? q8 : row[i].type, row[i].offset);
        data(&b, 64);
        refused(&b, row[i].message, "t", row[i].at);
    }
    header(&b, 3, 2, 0);
    tensor(&b, "t", 12, 1, 0, 32);
    tensor(&b, "u", 9, 1, 0, 0);
    data(&b, 96);
    refused(&b, "overlaps tensor 'u'", "t", 160);
    header(&b, 3, 2, 0);
    tensor(&b, "t", 4, 1, 0, 0);
    tensor(&b, "t", 4, 1, 0, 32);
    data(&b, 96);
    refused(&b, "appears twice", "t", 65);
    static const uint32_t ndim[] = {0, 5, 0xffffffff};
    for (size_t i = 0; i < 3; i++) {
        header(&b, 3, 1, 0);
        text(&b, "t");
        u32(&b, ndim[i]);
        data(&b, 96);
        refused(&b, "dimensions, must be 1 to 4", "t", 33);
    }
}

static void integers_are_no_weights(void **state) {
    (void)state;
    static const int32_t number[6] = {3, 1, 4, 1, 5, -9};
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_tensor(w, &(struct gguf_new_tensor){
                           .name = STR_LIT("t"), .ndim = 2, .dim = {3, 2}, .data = number});
    struct buf b = BUF_INIT;
    struct gguf *g;
    assert_int_equal(gguf_write_buf(w, &b, NULL), OB_OK);
    gguf_writer_free(&w);
    assert_int_equal(open_copy(b.p, b.n, &g, NULL), OB_OK);
    const struct gguf_tensor *t = gguf_tensor_at(g, 0);
    assert_null(t->quant);
    assert_string_equal(t->type, "I32");
    assert_int_equal(t->bytes, sizeof number);
    assert_memory_equal(t->data, number, sizeof number);
    gguf_close(&g);
    buf_free(&b);
}

/* ---- split sets ------------------------------------------------------------------------------ */

struct part {
    uint64_t no, count, tensors;
    const char *tensor;
    const char *key; /* a string key beside the set's own */
    const char *value;
};

static void write_part(const char *dir, unsigned file, unsigned of, const struct part *p) {
    char path[512];
    snprintf(path, sizeof path, "%s/m-%05u-of-%05u.gguf", dir, file, of);
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_whole(w, "split.no", GGUF_U16, p->no);
    gguf_put_whole(w, "split.count", GGUF_U16, p->count);
    gguf_put_whole(w, "split.tensors.count", GGUF_I32, p->tensors);
    if (file == 1) gguf_put_str(w, "general.architecture", STR_LIT("test"));
    if (p->key) gguf_put_str(w, p->key, str_of(p->value));
    if (file == 2) gguf_put_alignment(w, 64);
    put_f32(w, p->tensor, 4, file);
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);
}

static void write_set(const char *dir) {
    write_part(dir, 1, 3, &(struct part){0, 3, 3, "a", NULL, NULL});
    write_part(dir, 2, 3, &(struct part){1, 3, 3, "b", "general.architecture", "test"});
    write_part(dir, 3, 3, &(struct part){2, 3, 3, "c", NULL, NULL});
}

static ob_status open_from(const char *dir, unsigned file, struct gguf **out, ob_error *error) {
    char path[512];
    snprintf(path, sizeof path, "%s/m-%05u-of-00003.gguf", dir, file);
    return gguf_open(path, out, error);
}

static void a_set_opens_from_any_part(void **state) {
    const char *dir = *state;
    write_set(dir);
    for (unsigned from = 1; from <= 3; from++) {
        struct gguf *g;
        ob_error error;
        if (open_from(dir, from, &g, &error) != OB_OK)
            fail_msg("%s: %s", error.file, error.message);
        assert_int_equal(gguf_parts(g), 3);
        assert_int_equal(gguf_tensor_count(g), 3);
        assert_int_equal(gguf_alignment(g), 32);
        assert_non_null(gguf_find(g, "general.architecture"));
        for (uint32_t i = 0; i < 3; i++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, i);
            assert_int_equal(t->name.p[0], "abc"[i]);
            assert_int_equal(t->part, i);
            assert_int_equal(t->dim[1], i + 1);
            assert_memory_equal(t->data, weights, t->bytes);
            char name[32];
            snprintf(name, sizeof name, "%05u-of-00003", i + 1);
            assert_non_null(strstr(gguf_part_path(g, i), name));
        }
        gguf_close(&g);
    }
}

static void set_refused(const char *dir, unsigned from, unsigned file, const char *where,
                        const char *message) {
    struct gguf *g;
    ob_error error;
    char name[64];
    snprintf(name, sizeof name, "m-%05u-of-00003.gguf", file);
    if (open_from(dir, from, &g, &error) == OB_OK) fail_msg("opened, want '%s'", message);
    if (!strstr(error.file, name) || strcmp(error.where, where) != 0 ||
        !strstr(error.message, message))
        fail_msg("%s: %s: %s, want '%s'", error.file, error.where, error.message, message);
}

static void parts_that_disagree_are_named(void **state) {
    const char *dir = *state;
    char path[512], other[512];
    static const struct { struct part part; const char *where, *message; } row[] = {
        {{1, 2, 3, "b", NULL, NULL}, "split.count", "is part 2 of 2 where part 2 of 3 is expected"},
        {{2, 3, 3, "b", NULL, NULL}, "split.no", "is part 3 of 3 where part 2 of 3 is expected"},
        {{3, 3, 3, "b", NULL, NULL}, "split.no", "part 3 of a set of 3 (they count from 0)"},
        {{1, 3, 4, "b", NULL, NULL}, "split.tensors.count", "differs from the first part's"},
        {{1, 3, 3, "b", "general.architecture", "other"}, "general.architecture",
         "differs from the first part's"},
        {{1, 3, 3, "b", "new", "x"}, "new", "is not in the first part"},
        {{1, 3, 3, "a", NULL, NULL}, "a", "appears twice"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        write_set(dir);
        write_part(dir, 2, 3, &row[i].part);
        set_refused(dir, 1, 2, row[i].where, row[i].message);
    }
    write_set(dir);
    write_part(dir, 1, 3, &(struct part){0, 0, 3, "a", NULL, NULL});
    set_refused(dir, 1, 1, "split.count", "a set of 0 parts");
    write_part(dir, 1, 3, &(struct part){0, 65535, 3, "a", NULL, NULL});
    set_refused(dir, 1, 1, "split.no", "its name does not end in -00001-of-65535.gguf");

    for (unsigned i = 1; i <= 3; i++) /* all agree, on a wrong number */
        write_part(dir, i, 3,
                   &(struct part){i - 1, 3, 4, (char[]){(char)('a' + i), 0}, NULL, NULL});
    set_refused(dir, 2, 2, "split.tensors.count", "4 tensors are promised, the set has 3");

    /* A part that is a link to another one: no circle, just the wrong part. */
    write_set(dir);
    snprintf(path, sizeof path, "%s/m-00003-of-00003.gguf", dir);
    snprintf(other, sizeof other, "%s/m-00001-of-00003.gguf", dir);
    unlink(path);
    assert_int_equal(symlink(other, path), 0);
    set_refused(dir, 1, 3, "split.no", "is part 1 of 3 where part 3 of 3 is expected");
    set_refused(dir, 3, 3, "split.no", "its name does not end in -00001-of-00003.gguf");
    unlink(path);
    set_refused(dir, 2, 3, "", "part 3 of 3 is missing");
}

static void paths_that_are_no_files(void **state) {
    const char *dir = *state;
    struct gguf *g;
    ob_error error;
    assert_int_equal(gguf_open("/nonexistent.gguf", &g, &error), OB_ERR_NOT_FOUND);
    assert_int_equal(gguf_open(dir, &g, &error), OB_ERR_IO);
    assert_null(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(writes_streams_into_place),
        cmocka_unit_test(parts_of_other_sources_are_kept),
        cmocka_unit_test(nothing_that_appears_is_replaced),
        cmocka_unit_test(two_at_once_are_refused),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(bit_flips_never_crash),
        cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(values_that_lie),
        cmocka_unit_test(tensors_that_lie),
        cmocka_unit_test(integers_are_no_weights),
        cmocka_unit_test(a_set_opens_from_any_part),
        cmocka_unit_test(parts_that_disagree_are_named),
        cmocka_unit_test(paths_that_are_no_files),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
