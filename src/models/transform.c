/* SPDX-License-Identifier: Apache-2.0
 * transform.c: see transform.h. */
#include "models/transform.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/formula.h"

/* ---- parsing --------------------------------------------------------------------------------- */

/* The formula at *at up to ',' or ')', which is passed. */
static bool argument(const struct build *b, uint32_t layer, const char **at, uint32_t *out) {
    size_t n = strcspn(*at, ",)");
    uint64_t v = formula_value(b->hp, layer, (struct str){*at, n});
    *at += n + ((*at)[n] != 0);
    *out = (uint32_t)v;
    return v != FORMULA_OVERFLOW;
}

/* Groups of one head are in order as they are. */
static bool tiles(const struct build *b, uint32_t layer, const char **at, struct tile *out) {
    if (!argument(b, layer, at, &out->groups) || !argument(b, layer, at, &out->heads)) return false;
    if (out->groups >= out->heads || out->heads % out->groups) out->groups = 0;
    return true;
}

static bool step(const struct build *b, uint32_t layer, struct str word, struct transform *t) {
    const char *at = word.p + strcspn(word.p, "(") + 1;
    if (str_is(word, "stack")) return t->stack = true;
    if (str_starts(word, "stack("))
        return t->stack = argument(b, layer, &at, &t->parts);
    if (str_is(word, "experts")) return t->experts = true;
    if (str_is(word, "T")) return t->transposed = true;
    if (str_is(word, "f32")) return t->f32 = true;
    if (str_is(word, "mxfp4")) return t->mxfp4 = true;
    if (str_starts(word, "part("))
        return argument(b, layer, &at, &t->outer) && argument(b, layer, &at, &t->total) &&
               argument(b, layer, &at, &t->start);
    if (str_starts(word, "join(")) return argument(b, layer, &at, &t->join);
    if (str_starts(word, "pairs(")) return argument(b, layer, &at, &t->heads);
    if (str_starts(word, "tile(")) return tiles(b, layer, &at, &t->tile);
    if (str_starts(word, "tile_cols(")) return tiles(b, layer, &at, &t->tile_cols);
    if (str_starts(word, "repeat(")) return argument(b, layer, &at, &t->times);
    if (str_starts(word, "below(")) return argument(b, layer, &at, &t->below);
    if (str_starts(word, "heads("))
        return argument(b, layer, &at, &t->each) && argument(b, layer, &at, &t->each_start) &&
               (at[-1] != ',' || argument(b, layer, &at, &t->each_count));
    t->element = str_is(word, "+1")    ? ADD_ONE
                 : str_is(word, "abs") ? ABSOLUTE
                 : str_is(word, "neg") ? NEGATE
                 : str_is(word, "exp") ? EXP
                                       : NEGATE_EXP;
    assert(t->element != NEGATE_EXP || str_is(word, "-exp")); /* no step */
    return true;
}

bool transform_parse(const struct build *b, uint32_t layer, const char *steps,
                     struct transform *out) {
    *out = (struct transform){0};
    for (const char *p = steps ? steps : ""; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        if (!step(b, layer, (struct str){p, n}, out)) return false;
        p += n;
    }
    return true;
}

uint64_t transform_file_rows(const struct transform *t, uint64_t rows) {
    if (t->times) rows /= t->times;
    return t->outer ? (uint64_t)t->outer * t->total : rows;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Where the file has what is our head h. */
static size_t file_head(const struct tile *t, size_t h) {
    return h % t->groups * (t->heads / t->groups) + h / t->groups;
}

/* The file's row of our row r, of `rows`. */
static size_t file_row(const struct transform *t, size_t r, size_t rows) {
    if (t->heads) {
        size_t dim = rows / t->heads, i = r % dim;
        r += (i % 2 ? dim / 2 : 0) + i / 2 - i;
    }
    if (t->tile.groups) {
        size_t dim = rows / t->tile.heads;
        r = file_head(&t->tile, r / dim) * dim + r % dim;
    }
    if (t->times) return r / t->times;
    if (!t->outer) return r;
    size_t run = rows / t->outer;
    return r / run * t->total + t->start + r % run;
}

static void *allocate(struct build *b, const struct weight *w, size_t bytes, ob_error *error) {
    void *out = arena_alloc(b->arena, bytes);
    if (!out) error_memory(error, w->name, bytes);
    b->model->copied++;
    b->model->copied_bytes += bytes;
    return out;
}

/* A block of 32: the scale, then elements j and j + 16 in byte j; the file has 2j and 2j + 1. */
static void pack_mxfp4(const uint8_t *from, uint8_t scale, uint8_t *to) {
    to[0] = scale;
    for (int j = 0; j < 16; j++) {
        int shift = j % 2 ? 4 : 0;
        uint8_t low = (from[j / 2] >> shift) & 15, high = (from[8 + j / 2] >> shift) & 15;
        to[1 + j] = (uint8_t)(low | high << 4);
    }
}

ob_status transform_mxfp4(struct build *b, const struct transform *t, const uint8_t *blocks,
                          const uint8_t *scales, struct weight *w, ob_error *error) {
    w->quant = quant_list[QUANT_mxfp4];
    w->row_bytes = quant_row_bytes(w->quant, w->cols);
    uint8_t *out = allocate(b, w, w->row_bytes * w->rows, error);
    if (!out) return OB_ERR_MEMORY;
    size_t n = w->cols / w->quant->block;
    for (size_t r = 0; r < w->rows; r++)
        for (size_t i = 0; i < n; i++) {
            size_t at = file_row(t, r, w->rows) * n + i;
            pack_mxfp4(blocks + 16 * at, scales[at], out + r * w->row_bytes + i * w->quant->bytes);
        }
    w->data = out;
    return OB_OK;
}

ob_status transform_numbers(struct build *b, const struct transform *t, struct str type,
                            struct weight *w, ob_error *error) {
    const struct quant *f32 = quant_list[QUANT_f32];
    size_t n = (size_t)w->rows * w->cols, bytes = str_is(type, "I64") ? 8 : 4;
    float *out = allocate(b, w, n * sizeof *out, error);
    if (!out) return OB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)w->data + i * bytes;
        int64_t wide;
        int32_t narrow;
        memcpy(&narrow, at, sizeof narrow); /* as every machine of ours stores it */
        if (bytes == 8) memcpy(&wide, at, sizeof wide);
        else wide = narrow;
        memcpy(&out[i], at, sizeof out[i]);
        if (!str_is(type, "F32")) out[i] = wide >= 0 && wide < t->below ? (float)wide : -1;
        if (!(out[i] >= 0 && out[i] < (float)t->below && out[i] == floorf(out[i])))
            return build_refuse(b, OB_ERR_FORMAT, w->name, w->name, error,
                                "row %zu has a number that is not whole and below %u",
                                i / w->cols, t->below);
    }
    w->quant = f32;
    w->row_bytes = quant_row_bytes(f32, w->cols);
    w->data = out;
    return OB_OK;
}

/* A row's bytes, those of each head to its place. */
static void copy_row(const struct transform *t, const char *from, char *to, size_t bytes) {
    const size_t heads = t->tile_cols.groups ? t->tile_cols.heads : 1, each = bytes / heads;
    for (size_t h = 0; h < heads; h++)
        memcpy(to + h * each, from + (heads > 1 ? file_head(&t->tile_cols, h) : 0) * each, each);
}

/* Our rows, gathered from the file's. */
static ob_status gather(struct build *b, const struct transform *t, struct weight *w,
                        ob_error *error) {
    size_t element = w->quant->bytes;
    char *out = allocate(b, w, w->row_bytes * w->rows, error);
    if (!out) return OB_ERR_MEMORY;
    size_t file_rows = transform_file_rows(t, w->rows);
    for (size_t r = 0; r < w->rows; r++) {
        char *to = out + r * w->row_bytes;
        const char *from = w->data;
        size_t at = file_row(t, r, w->rows);
        if (!t->transposed) {
            copy_row(t, from + at * w->row_bytes, to, w->row_bytes);
            continue;
        }
        for (size_t c = 0; c < w->cols; c++)
            memcpy(to + c * element, from + (c * file_rows + at) * element, element);
    }
    w->data = out;
    return OB_OK;
}

static float apply(const struct transform *t, float x) {
    switch (t->element) {
    case ADD_ONE: return x + 1.0f;
    case ABSOLUTE: return fabsf(x);
    case NEGATE: return -x;
    case EXP: return expf(x);
    case NEGATE_EXP: return -expf(x);
    default: return x;
    }
}

static ob_status decode(struct build *b, const struct transform *t, struct weight *w,
                        ob_error *error) {
    const struct quant *f32 = quant_list[QUANT_f32];
    if (w->quant == f32 && t->element == KEEP && (uintptr_t)w->data % sizeof(float) == 0)
        return OB_OK;
    size_t n = (size_t)w->rows * w->cols;
    float *out = allocate(b, w, n * sizeof *out, error);
    if (!out) return OB_ERR_MEMORY;
    w->quant->decode(w->data, out, n / w->quant->block);
    for (size_t i = 0; t->element != KEEP && i < n; i++) out[i] = apply(t, out[i]);
    w->quant = f32;
    w->row_bytes = quant_row_bytes(f32, w->cols);
    w->data = out;
    return OB_OK;
}

/* ---- into another format, row by row --------------------------------------------------------- */

/* The rows of a matrix as floats, whatever the file has. */
struct row_source {
    const struct transform *t;
    const struct weight *w;       /* as it comes */
    struct packed_reader *packed; /* NULL: plain data */
    uint32_t first;
    float *row, *tiled;           /* the latter for tile_cols() */
    char *column;                 /* of a transposed matrix, as the file has it */
};

static const float *read_row(struct row_source *from, uint32_t r) {
    const struct weight *w = from->w;
    const struct transform *t = from->t;
    size_t at = file_row(t, r, w->rows), element = w->quant->bytes;
    if (from->packed) {
        packed_floats(from->packed, from->first + (uint32_t)at, from->row);
    } else if (t->transposed) {
        size_t file_rows = transform_file_rows(t, w->rows);
        for (size_t c = 0; c < w->cols; c++)
            memcpy(from->column + c * element,
                   (const char *)w->data + (c * file_rows + at) * element, element);
        w->quant->decode(from->column, from->row, w->cols);
    } else {
        w->quant->decode((const char *)w->data + at * w->row_bytes, from->row,
                         w->cols / w->quant->block);
    }
    for (size_t c = 0; t->element != KEEP && c < w->cols; c++)
        from->row[c] = apply(t, from->row[c]);
    if (!t->tile_cols.groups) return from->row;
    copy_row(t, (const char *)from->row, (char *)from->tiled, w->cols * sizeof *from->tiled);
    return from->tiled;
}

/* A transposed matrix of a file is packed along what become our columns: it is unpacked whole. */
static ob_status unpack(const struct packed_rows *from, const struct weight *w, float **out,
                        ob_error *error) {
    uint32_t cols = from->packed->cols;
    struct packed_reader *reader = packed_reader_new(from->packed);
    *out = calloc((size_t)w->cols * cols, sizeof **out);
    if (!reader || !*out) error_memory(error, w->name, (size_t)w->cols * cols * sizeof **out);
    for (uint32_t r = 0; reader && *out && r < w->cols; r++)
        packed_floats(reader, from->first + r, *out + (size_t)r * cols);
    ob_status s = reader && *out ? OB_OK : OB_ERR_MEMORY;
    packed_reader_free(&reader);
    return s;
}

static void now_is(struct weight *w, const struct quant *quant, const void *data) {
    w->data = data;
    w->quant = quant;
    w->row_bytes = quant_row_bytes(quant, w->cols);
}

/* Only how large it would be. */
static ob_status count_rows(struct build *b, const struct quant *to, struct weight *w) {
    now_is(w, to, NULL);
    b->model->copied++;
    b->model->copied_bytes += weight_matrix_bytes(w);
    return OB_OK;
}

static ob_status encode_rows(struct build *b, const struct transform *t,
                             const struct packed_rows *from, const struct quant *to,
                             struct weight *w, ob_error *error) {
    if (b->options.plan) return count_rows(b, to, w);
    size_t row_bytes = quant_row_bytes(to, w->cols);
    struct row_source rows = {.t = t, .w = w, .first = from ? from->first : 0};
    char *out = allocate(b, w, row_bytes * w->rows, error);
    rows.row = calloc(w->cols, sizeof *rows.row);
    rows.tiled = calloc(w->cols, sizeof *rows.tiled);
    rows.column = calloc(w->cols, w->quant->bytes);
    if (from) rows.packed = packed_reader_new(from->packed);
    bool ready = out && rows.row && rows.tiled && rows.column && (!from || rows.packed);
    if (out && !ready) error_memory(error, w->name, w->cols * sizeof *rows.row);
    bool whole = from && t->element == KEEP && !t->tile_cols.groups;
    for (uint32_t r = 0; ready && r < w->rows; r++) {
        char *at = out + r * row_bytes;
        uint32_t packed_row = rows.first + (uint32_t)file_row(t, r, w->rows);
        if (whole) packed_encode(rows.packed, packed_row, to, at);
        else to->encode(read_row(&rows, r), at, w->cols / to->block);
    }
    packed_reader_free(&rows.packed);
    free(rows.row);
    free(rows.tiled);
    free(rows.column);
    if (!ready) return OB_ERR_MEMORY;
    now_is(w, to, out);
    return OB_OK;
}

/* What the matrix becomes: F32 where the graph wants it so. */
static const struct quant *format_of(const struct transform *t, const struct weight *w) {
    const struct quant *is = w->quant;
    if (t->f32 || t->element != KEEP) return quant_list[QUANT_f32];
    if (is->block > 1) return t->transposed ? quant_list[QUANT_f16] : is;
    return t->to && w->cols % t->to->block == 0 ? t->to : is;
}

static ob_status run_packed(struct build *b, const struct transform *t,
                            const struct packed_rows *from, struct weight *w, ob_error *error) {
    const struct quant *to = format_of(t, w);
    float *whole;
    if (!t->transposed || b->options.plan) return encode_rows(b, t, from, to, w, error);
    ob_status s = unpack(from, w, &whole, error);
    w->quant = quant_list[QUANT_f32];
    w->data = whole;
    if (s == OB_OK) s = encode_rows(b, t, NULL, to, w, error);
    free(whole);
    return s;
}

ob_status transform_run(struct build *b, const struct transform *t, const struct packed_rows *from,
                        struct weight *w, bool vector, ob_error *error) {
    if (from) return run_packed(b, t, from, w, error);
    if (!vector && w->quant->block == 1 && format_of(t, w) == t->to && t->to != w->quant)
        return encode_rows(b, t, NULL, t->to, w, error);
    /* Blocks lie along the file's rows. */
    bool early = t->f32 && t->transposed && w->quant->block > 1 && !t->outer;
    ob_status s = early ? decode(b, t, w, error) : OB_OK;
    if (s != OB_OK) return s;
    bool tiled = t->tile.groups || t->tile_cols.groups;
    bool scattered = t->transposed || t->heads || t->times || t->outer > 1 || tiled;
    const size_t block = w->quant->block;
    bool split = block > 1 && t->tile_cols.groups && w->cols / t->tile_cols.heads % block;
    if (block > 1 &&
        (t->transposed || split || (vector && (t->heads || t->times || t->outer || tiled))))
        return build_refuse(b, OB_ERR_UNSUPPORTED, w->name, w->name, error,
                            "cannot be taken apart in the format %s", w->quant->name);
    if (scattered) s = gather(b, t, w, error);
    else if (t->outer) w->data = (const char *)w->data + t->start * w->row_bytes;
    if (s == OB_OK && !early && (vector || t->f32 || t->element != KEEP))
        s = decode(b, t, w, error);
    return s;
}
