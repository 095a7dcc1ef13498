/* SPDX-License-Identifier: Apache-2.0
 * golden.c: see golden.h. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"
#include "base/rng.h"
#include "base/str.h"
#include "npz.h"

enum { VERSION = 1, DIMS = 8, MAX_ELEMENTS = 1 << 28, PATH_SIZE = 1024 };

struct tensor {
    struct str name, type;
    uint32_t dims, dim[DIMS];
    size_t elements, bytes;
    uint64_t checksum;
    float mean, deviation, low, high; /* of a drawn one */
    const char *stored;               /* NULL: drawn */
};

struct array {
    struct str name;
    bool whole;
    uint32_t rows, cols;
    const char *data;
};

struct golden {
    char *folder, *file; /* file: golden.bin's bytes, NULL for a fixture */
    struct tensor *tensor;
    struct array *array;
    uint32_t tensors, arrays;
};

/* ---- reading golden.bin ---- */

struct cursor {
    const char *p;
    size_t left;
    bool failed;
};

static const char *take(struct cursor *c, size_t n) {
    if (n > c->left) c->failed = true;
    if (c->failed) return NULL;
    const char *p = c->p;
    c->p += n;
    c->left -= n;
    return p;
}

static void take_into(struct cursor *c, void *out, size_t n) {
    const char *p = take(c, n);
    if (p) memcpy(out, p, n);
    else memset(out, 0, n);
}

static uint32_t take_u8(struct cursor *c) {
    uint8_t v;
    take_into(c, &v, sizeof v);
    return v;
}

static uint32_t take_u32(struct cursor *c) {
    uint32_t v;
    take_into(c, &v, sizeof v);
    return v;
}

static float take_f32(struct cursor *c) {
    float v;
    take_into(c, &v, sizeof v);
    return v;
}

static struct str take_name(struct cursor *c) {
    size_t n = take_u8(c);
    const char *p = take(c, n);
    return (struct str){p ? p : "", p ? n : 0};
}

static size_t element_bytes(struct str type) {
    if (str_is(type, "I64")) return 8;
    if (str_is(type, "F32") || str_is(type, "I32")) return 4;
    return str_is(type, "U8") ? 1 : 0;
}

static void read_tensor(struct cursor *c, struct tensor *t) {
    t->name = take_name(c);
    t->type = take_name(c);
    bool stored = take_u8(c) != 0;
    t->dims = take_u8(c);
    t->elements = 1;
    for (uint32_t i = 0; i < t->dims && !c->failed; i++) {
        uint32_t n = take_u32(c);
        if (i >= DIMS || (n && t->elements > MAX_ELEMENTS / n)) c->failed = true;
        else t->dim[i] = n, t->elements *= n;
    }
    t->bytes = t->elements * element_bytes(t->type);
    if (element_bytes(t->type) == 0) c->failed = true;
    take_into(c, &t->checksum, sizeof t->checksum);
    if (stored) {
        t->stored = take(c, t->bytes);
        return;
    }
    t->mean = take_f32(c);
    t->deviation = take_f32(c);
    t->low = take_f32(c);
    t->high = take_f32(c);
    if (!str_is(t->type, "F32")) c->failed = true;
}

static void read_array(struct cursor *c, struct array *a) {
    a->name = take_name(c);
    a->whole = take_u8(c) != 0;
    a->rows = take_u32(c);
    a->cols = take_u32(c);
    if (a->cols && a->rows > MAX_ELEMENTS / a->cols) c->failed = true;
    if (c->failed) return;
    size_t n = (size_t)a->rows * a->cols;
    a->data = take(c, a->whole ? n * sizeof(int32_t)
                               : n * sizeof(uint16_t) + a->rows * (2 * sizeof(float)));
}

static ob_status read_all(struct golden *g, size_t n, ob_error *error) {
    struct cursor c = {.p = g->file, .left = n};
    const char *magic = take(&c, 4);
    if (!magic || memcmp(magic, "OBGF", 4) != 0 || take_u32(&c) != VERSION)
        return error_set(error, OB_ERR_FORMAT, "is no golden of version %d", VERSION);
    g->tensors = take_u32(&c);
    g->arrays = take_u32(&c);
    if (g->tensors > c.left || g->arrays > c.left) /* each has bytes, so this bounds both */
        return error_set(error, OB_ERR_FORMAT, "is too short");
    g->tensor = calloc((size_t)g->tensors + 1, sizeof *g->tensor);
    g->array = calloc((size_t)g->arrays + 1, sizeof *g->array);
    if (!g->tensor || !g->array) return error_memory(error, "a golden", n);
    for (uint32_t i = 0; i < g->tensors && !c.failed; i++) read_tensor(&c, &g->tensor[i]);
    for (uint32_t i = 0; i < g->arrays && !c.failed; i++) read_array(&c, &g->array[i]);
    if (c.failed || c.left > 0)
        return error_set(error, OB_ERR_FORMAT, "is %s", c.failed ? "malformed" : "too long");
    return OB_OK;
}

static void path_of(const struct golden *g, const char *name, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%s/%s", g->folder, name);
}

bool golden_has_file(const struct golden *g, const char *name) {
    char path[PATH_SIZE];
    path_of(g, name, path);
    return os_is_file(path);
}

ob_status golden_open(const char *folder, struct golden **out, ob_error *error) {
    char path[PATH_SIZE];
    size_t n;
    struct golden *g = calloc(1, sizeof *g);
    if (!g || !(g->folder = strdup(folder))) {
        free(g);
        return error_memory(error, "a golden", sizeof *g);
    }
    ob_status s = OB_OK;
    if (!golden_has_file(g, "reference.npz")) {
        path_of(g, "golden.bin", path);
        s = os_read_file(path, (size_t)1 << 30, &g->file, &n, error);
        if (s == OB_OK) s = read_all(g, n, error);
        if (s != OB_OK) error_at(error, path, NULL, OB_NO_OFFSET);
    }
    if (s == OB_OK) *out = g;
    else golden_close(&g);
    return s;
}

void golden_close(struct golden **golden) {
    struct golden *g = *golden;
    if (!g) return;
    free(g->folder);
    free(g->file);
    free(g->tensor);
    free(g->array);
    free(g);
    *golden = NULL;
}

/* ---- arrays ---- */

static const struct array *find(const struct golden *g, const char *name, bool whole) {
    for (uint32_t i = 0; i < g->arrays; i++)
        if (str_is(g->array[i].name, name) && g->array[i].whole == whole) return &g->array[i];
    return NULL;
}

static void *read_npz(const struct golden *g, const char *name, size_t *n) {
    char path[PATH_SIZE];
    size_t size;
    path_of(g, "reference.npz", path);
    void *data = npz_read(path, name, n, &size);
    if (data && size == 4) return data; /* every array of a fixture is of int32 or float32 */
    free(data);
    return NULL;
}

int32_t *golden_ints(const struct golden *g, const char *name, size_t *n) {
    if (!g->file) return read_npz(g, name, n);
    const struct array *a = find(g, name, true);
    if (!a) return NULL;
    *n = (size_t)a->rows * a->cols;
    int32_t *out = malloc(*n * sizeof *out + 1);
    if (out) memcpy(out, a->data, *n * sizeof *out);
    return out;
}

float *golden_floats(const struct golden *g, const char *name, size_t *n) {
    if (!g->file) return read_npz(g, name, n);
    const struct array *a = find(g, name, false);
    if (!a) return NULL;
    *n = (size_t)a->rows * a->cols;
    float *out = malloc(*n * sizeof *out + 1);
    struct cursor c = {.p = a->data, .left = SIZE_MAX};
    for (size_t r = 0; out && r < a->rows; r++) {
        double low = (double)take_f32(&c), step = (double)take_f32(&c);
        for (size_t i = 0; i < a->cols; i++) {
            uint16_t q;
            take_into(&c, &q, sizeof q);
            out[r * a->cols + i] = (float)(low + step * q);
        }
    }
    return out;
}

/* ---- weights ---- */

static uint64_t name_seed(struct str name) { /* FNV-1a */
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.n; i++) h = (h ^ (uint8_t)name.p[i]) * 0x100000001b3u;
    return h;
}

static void draw(const struct tensor *t, char *out) {
    const double unit = 1 / sqrt(4294967295.0 / 3);
    uint64_t seed = name_seed(t->name);
    for (size_t i = 0; i < t->elements; i++) {
        uint64_t w = rng_u64(seed, i);
        uint32_t sum = 0;
        for (int field = 0; field < 4; field++) sum += (uint32_t)(w >> 16 * field & 0xffff);
        double z = ((double)sum - 131070) * unit;
        double x = (double)t->mean + (double)t->deviation * z;
        float v = (float)fmin(fmax(x, (double)t->low), (double)t->high);
        memcpy(out + i * sizeof v, &v, sizeof v);
    }
}

static uint64_t checksum(const uint8_t *data, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += rng_u64(i, data[i]);
    return sum;
}

/* Header and data of a safetensors file: the length of a JSON object, the object, the tensors. */
static void add_header(const struct golden *g, struct buf *file) {
    struct buf json = BUF_INIT;
    size_t at = 0;
    for (uint32_t i = 0; i < g->tensors; i++) {
        const struct tensor *t = &g->tensor[i];
        buf_printf(&json, "%s\"%.*s\":{\"dtype\":\"%.*s\",\"shape\":[", i ? "," : "{",
                   STR_ARG(t->name), STR_ARG(t->type));
        for (uint32_t d = 0; d < t->dims; d++) buf_printf(&json, "%s%u", d ? "," : "", t->dim[d]);
        buf_printf(&json, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
        at += t->bytes;
    }
    buf_puts(&json, "}");
    while (json.n % 8 != 0 && !json.failed) buf_putc(&json, ' ');
    uint64_t n = json.n;
    buf_add(file, &n, sizeof n);
    buf_add(file, json.p, json.n);
    file->failed |= json.failed;
    buf_free(&json);
}

static ob_status add_tensor(const struct tensor *t, struct buf *file, ob_error *error) {
    if (!buf_reserve(file, t->bytes)) return error_memory(error, "a tensor", t->bytes);
    char *data = file->p + file->n;
    if (t->stored) memcpy(data, t->stored, t->bytes);
    else draw(t, data);
    file->n += t->bytes;
    if (checksum((const uint8_t *)data, t->bytes) == t->checksum) return OB_OK;
    char name[256];
    snprintf(name, sizeof name, "%.*s", STR_ARG(t->name));
    ob_status s = error_set(error, OB_ERR_FORMAT, "the drawn weights have another checksum");
    error_at(error, NULL, name, OB_NO_OFFSET);
    return s;
}

static ob_status write_file(const char *path, const char *data, size_t n, ob_error *error) {
    FILE *f = fopen(path, "wb");
    bool written = f && fwrite(data, 1, n, f) == n;
    if (f && fclose(f) != 0) written = false;
    if (written) return OB_OK;
    ob_status s = error_set(error, OB_ERR_IO, "cannot be written");
    error_at(error, path, NULL, OB_NO_OFFSET);
    return s;
}

static ob_status write_weights(const struct golden *g, const char *path, ob_error *error) {
    struct buf file = BUF_INIT;
    add_header(g, &file);
    ob_status s = file.failed ? error_memory(error, "weights", file.n) : OB_OK;
    for (uint32_t i = 0; i < g->tensors && s == OB_OK; i++)
        s = add_tensor(&g->tensor[i], &file, error);
    if (s == OB_OK) s = write_file(path, file.p, file.n, error);
    error_at(error, path, NULL, OB_NO_OFFSET);
    buf_free(&file);
    return s;
}

static ob_status copy_config(const struct golden *g, const char *config, const char *as,
                             ob_error *error) {
    char path[PATH_SIZE], *text;
    size_t n;
    path_of(g, config, path);
    ob_status s = os_read_file(path, (size_t)1 << 24, &text, &n, error);
    if (s != OB_OK) return s;
    s = write_file(as, text, n, error);
    free(text);
    return s;
}

static ob_status link_weights(const struct golden *g, const char *as, ob_error *error) {
    char path[PATH_SIZE];
    path_of(g, "model.safetensors", path);
    char *whole = realpath(path, NULL);
    bool linked = whole && symlink(whole, as) == 0;
    free(whole);
    if (linked) return OB_OK;
    ob_status s = error_set(error, OB_ERR_IO, "no link to it can be made");
    error_at(error, path, NULL, OB_NO_OFFSET);
    return s;
}

ob_status golden_unpack(const struct golden *g, const char *config, const char *into,
                        ob_error *error) {
    char weights[PATH_SIZE], json[PATH_SIZE];
    snprintf(weights, sizeof weights, "%s/model.safetensors", into);
    snprintf(json, sizeof json, "%s/config.json", into);
    unlink(weights); /* a link's target is not ours to write to */
    unlink(json);
    ob_status s = copy_config(g, config, json, error);
    if (s != OB_OK) return s;
    return g->file ? write_weights(g, weights, error) : link_weights(g, weights, error);
}

void golden_remove(const char *into) {
    static const char *const names[] = {"model.safetensors", "config.json"};
    char path[PATH_SIZE];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", into, names[i]);
        unlink(path);
    }
    rmdir(into);
}
