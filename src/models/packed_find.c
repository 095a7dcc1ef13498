/* SPDX-License-Identifier: Apache-2.0
 * packed_find.c: the tensors that a packed matrix consists of, by the method's names; their types
 * and shapes are checked here, so that packed.c can read any row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "format/json_pull.h"
#include "models/packing.h"

enum { NAME_BYTES = 288, SIDE_MAX = 1 << 28 /* rows, columns */ };

struct search {
    struct build *b;
    const struct packing *packing;
    bool *used;
    const char *name;  /* "....weight" */
    int stem;          /* bytes of it up to "weight" */
    char part[NAME_BYTES]; /* the last name looked for */
    struct packed *p;
    ob_error *error;
};

#define REFUSE(s, ...) \
    build_refuse((s)->b, OB_ERR_FORMAT, (s)->part, (s)->part, (s)->error, __VA_ARGS__)
#define REFUSE_KIND(s, ...) \
    build_refuse((s)->b, OB_ERR_UNSUPPORTED, (s)->part, (s)->part, (s)->error, __VA_ARGS__)

static const struct source_tensor *look(struct search *s, const char *part) {
    snprintf(s->part, sizeof s->part, "%.*s%s", s->stem, s->name, part);
    return source_tensor_find(s->b->source, str_of(s->part));
}

static void mark(struct search *s, const struct source_tensor *t) {
    s->used[t - source_tensor_at(s->b->source, 0)] = true;
}

/* A part that must be there, of one of these types. */
static ob_status need(struct search *s, const char *part, const char *types,
                      const struct source_tensor **out) {
    const struct source_tensor *t = *out = look(s, part);
    if (!t) return REFUSE(s, "required tensor is missing");
    mark(s, t);
    for (const char *p = types; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
        if (t->type.n == strcspn(p, "|") && memcmp(t->type.p, p, t->type.n) == 0) return OB_OK;
    return REFUSE(s, "is of type %.*s, not %s", STR_ARG(t->type), types);
}
#define FLOATS "F32|F16|BF16"

static ob_status check_shape(struct search *s, const struct source_tensor *t, uint64_t rows,
                             uint64_t cols) {
    if (t->dim[0] == cols && t->dim[1] == rows && t->dim[2] * t->dim[3] == 1) return OB_OK;
    return REFUSE(s, "shape is [%llu, %llu], the packed weights want [%llu, %llu]",
                  (unsigned long long)(t->dim[1] * t->dim[2] * t->dim[3]),
                  (unsigned long long)t->dim[0], (unsigned long long)rows,
                  (unsigned long long)cols);
}

static ob_status set_size(struct search *s, uint64_t rows, uint64_t cols) {
    if (rows < 1 || cols < 1 || rows > SIDE_MAX || cols > SIDE_MAX)
        return REFUSE(s, "is no matrix of at most %d rows and columns", SIDE_MAX);
    s->p->rows = (uint32_t)rows;
    s->p->cols = (uint32_t)cols;
    return OB_OK;
}

/* Scales of so many columns each. */
static void set_groups(struct packed *p, uint32_t size) {
    p->scale_cols = size ? size : p->cols;
    p->groups = (p->cols - 1) / p->scale_cols + 1;
}

/* ---- formats --------------------------------------------------------------------------------- */

/* F16 is right unless its largest number is too small or its smallest normal one too large. */
static const struct quant *float_format(float high) {
    return quant_list[high > 65504.0f || high < 0x1p-14f ? QUANT_bf16 : QUANT_f16];
}

static bool is_half(float x) {
    uint16_t h = quant_f32_to_f16(x);
    return isfinite(x) && fabsf(x) <= 65504.0f && quant_f16_to_f32(h) == x;
}

/* The block format that has the same values, if there is one. */
static const struct quant *whole_format(const struct packed *p) {
    int32_t middle = 1 << (p->bits - 1);
    bool centred = true, exact = p->cols % 32 == 0 && !p->group_of &&
                                 (p->groups == 1 || p->scale_cols % 32 == 0);
    float high = 0;
    for (uint32_t r = 0; r < p->rows; r++)
        for (uint32_t g = 0; g < p->groups; g++) {
            float scale = packed_scale(p, r, g);
            high = fmaxf(high, fabsf(scale));
            exact = exact && is_half(scale);
            centred = centred && packed_zero(p, r, g) == middle;
        }
    if (exact && p->bits == 4) return quant_list[centred ? QUANT_q4_0 : QUANT_q8_0];
    if (exact && centred) return quant_list[QUANT_q8_0];
    return float_format(high * (float)(1 << p->bits));
}

/* ---- 8-bit floats ---------------------------------------------------------------------------- */

/* One scale, one a row, or one a block, by what there is. */
static ob_status find_f8_scales(struct search *s) {
    struct packed *p = s->p;
    const uint32_t *block = s->packing->block;
    const char *part = look(s, "weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
    ob_status status = need(s, part, FLOATS "|F8_E8M0", &p->scales);
    if (status != OB_OK) return status;
    const struct source_tensor *t = p->scales;
    uint64_t n = t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
    set_groups(p, 0);
    p->scale_rows = n == 1 ? p->rows : 1;
    p->row_stride = p->group_stride = 1;
    if (n == 1 || (n == p->rows && (t->dim[0] == 1 || t->ndim == 1))) return OB_OK;
    if (!block[0] || !block[1])
        return REFUSE(s, "%llu scales are neither one nor one a row", (unsigned long long)n);
    p->scale_rows = block[0];
    set_groups(p, block[1]);
    p->row_stride = p->groups;
    return check_shape(s, t, (p->rows - 1) / block[0] + 1, p->groups);
}

static ob_status find_f8(struct search *s) {
    static const char *const fixed[] = {"input_scale", "activation_scale"};
    struct packed *p = s->p;
    const struct source_tensor *t = look(s, "weight");
    if (!t || !str_is(t->type, "F8_E4M3")) return OB_OK;
    mark(s, t);
    if (t->ndim != 2) return REFUSE_KIND(s, "8-bit floats are supported in matrices alone");
    ob_status status = set_size(s, t->dim[1], t->dim[0]);
    if (status != OB_OK) return status;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (look(s, fixed[i]))
            return REFUSE_KIND(s, "inputs rounded by a scale of the file are not supported");
    if ((status = find_f8_scales(s)) != OB_OK) return status;
    p->kind = PACKED_FLOATS;
    p->codes = t->data;
    uint64_t n = p->scales->dim[0] * p->scales->dim[1];
    for (uint64_t i = 0; i < n; i++) p->high = fmaxf(p->high, fabsf(packed_number(p->scales, i)));
    p->as.quant = float_format(448 * p->high);
    p->as.name = t->name;
    return OB_OK;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

/* Columns' groups; NULL if they follow one another. */
static ob_status set_order(struct search *s, const struct source_tensor *t) {
    struct packed *p = s->p;
    if (t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3] != p->cols)
        return REFUSE(s, "has not one entry for each of %u columns", p->cols);
    for (uint32_t c = 0; c < p->cols; c++) {
        int32_t g;
        memcpy(&g, (const char *)t->data + 4 * (size_t)c, sizeof g);
        if (g < 0 || (uint32_t)g >= p->groups)
            return REFUSE(s, "entry %u is %d, there are %u groups", c, (int)g, p->groups);
        if ((uint32_t)g != c / p->scale_cols) p->group_of = t->data;
    }
    return OB_OK;
}

/* GPTQ and AWQ: words [in / 8, out] or [in, out / 8]; scales [groups, out]. */
static ob_status find_gemm(struct search *s) {
    bool down = s->packing->method == METHOD_GPTQ;
    struct packed *p = s->p;
    const struct source_tensor *words, *zeros, *order;
    uint32_t each = 32 / p->bits;
    if (!look(s, "qweight")) return OB_OK;
    ob_status status = need(s, "qweight", "I32", &words);
    if (status != OB_OK) return status;
    if (words->ndim != 2) return REFUSE(s, "is no matrix");
    status = set_size(s, words->dim[0] * (down ? 1 : each), words->dim[1] * (down ? each : 1));
    if (status == OB_OK && p->rows % each)
        return REFUSE(s, "%u rows are no multiple of the %u numbers of a word", p->rows, each);
    if (status != OB_OK) return status;
    p->as.name = words->name;
    p->codes = words->data;
    p->kind = down ? PACKED_DOWN : PACKED_SHUFFLE;
    p->scale_rows = 1;
    p->row_stride = 1;
    p->group_stride = p->rows;
    set_groups(p, s->packing->group);
    if ((status = need(s, "scales", FLOATS, &p->scales)) != OB_OK) return status;
    if ((status = check_shape(s, p->scales, p->groups, p->rows)) != OB_OK) return status;
    if ((status = need(s, "qzeros", "I32", &zeros)) != OB_OK) return status;
    if ((status = check_shape(s, zeros, p->groups, p->rows / each)) != OB_OK) return status;
    p->zeros = zeros->data;
    if (down && look(s, "g_idx")) {
        status = need(s, "g_idx", "I32", &order);
        if (status == OB_OK) status = set_order(s, order);
    }
    if (status == OB_OK) p->as.quant = whole_format(p);
    return status;
}

/* compressed-tensors: words [out, in / 8], scales [out, groups], zeros [out / 8, groups]. */
static ob_status find_ints(struct search *s) {
    struct packed *p = s->p;
    const struct source_tensor *words, *size, *zeros, *order;
    uint32_t each = 32 / p->bits;
    int64_t side[2];
    if (!look(s, "weight_packed")) return OB_OK;
    ob_status status = need(s, "weight_shape", "I64", &size);
    if (status != OB_OK) return status;
    if (size->bytes != sizeof side) return REFUSE(s, "is no pair of sizes");
    memcpy(side, size->data, sizeof side);
    if ((status = set_size(s, (uint64_t)side[0], (uint64_t)side[1])) != OB_OK) return status;
    if ((status = need(s, "weight_packed", "I32", &words)) != OB_OK) return status;
    status = check_shape(s, words, p->rows, (p->cols - 1) / each + 1);
    if (status != OB_OK) return status;
    p->as.name = words->name;
    p->codes = words->data;
    p->kind = PACKED_ALONG;
    p->scale_rows = 1;
    p->group_stride = 1;
    set_groups(p, s->packing->group);
    p->row_stride = p->groups;
    if ((status = need(s, "weight_scale", FLOATS, &p->scales)) != OB_OK) return status;
    if ((status = check_shape(s, p->scales, p->rows, p->groups)) != OB_OK) return status;
    if (look(s, "weight_zero_point")) {
        if ((status = need(s, "weight_zero_point", "I32", &zeros)) != OB_OK) return status;
        status = check_shape(s, zeros, (p->rows - 1) / each + 1, p->groups);
        if (status != OB_OK) return status;
        p->zeros = zeros->data;
    }
    if (look(s, "weight_g_idx")) {
        status = need(s, "weight_g_idx", "I32", &order);
        if (status == OB_OK) status = set_order(s, order);
    }
    if (status == OB_OK) p->as.quant = whole_format(p);
    return status;
}

/* ---- bitsandbytes ---------------------------------------------------------------------------- */

struct state {
    uint64_t shape[2], block, scale_block;
    double offset;
};

static bool read_state(struct json_pull *j, struct state *out) {
    if (pull_next(j) != PULL_OBJECT) return false;
    while (pull_next(j) == PULL_KEY) {
        uint64_t *whole = str_is(j->text, "blocksize")          ? &out->block
                          : str_is(j->text, "nested_blocksize") ? &out->scale_block : NULL;
        if (str_is(j->text, "shape")) {
            if (pull_next(j) != PULL_ARRAY) return false;
            for (int i = 0; i < 2; i++)
                if (pull_next(j) != PULL_NUMBER || !pull_u64(j, &out->shape[i])) return false;
            if (pull_next(j) != PULL_ARRAY_END) return false;
        } else if (whole) {
            if (pull_next(j) != PULL_NUMBER || !pull_u64(j, whole)) return false;
        } else if (str_is(j->text, "nested_offset")) {
            if (pull_next(j) != PULL_NUMBER) return false;
            out->offset = pull_number(j);
        } else if (!pull_skip(j)) {
            return false;
        }
    }
    return j->kind == PULL_OBJECT_END && pull_next(j) == PULL_END;
}

static bool is_block(uint64_t n) { return n >= 1 && n <= 1 << 24; }

/* The scales: floats, or bytes that are quantized again. */
static ob_status find_absmax(struct search *s, const struct state *state, uint64_t weights) {
    struct packed *p = s->p;
    uint64_t n = (weights - 1) / state->block + 1, blocks;
    ob_status status = need(s, "weight.absmax", FLOATS "|U8", &p->scales);
    if (status == OB_OK) status = check_shape(s, p->scales, 1, n);
    if (status != OB_OK || !str_is(p->scales->type, "U8")) return status;
    if (!is_block(state->scale_block) || !isfinite((float)state->offset)) {
        look(s, "weight.quant_state");
        return REFUSE(s, "has no nested_blocksize and nested_offset");
    }
    blocks = (n - 1) / state->scale_block + 1;
    p->scale_block = (uint32_t)state->scale_block;
    p->offset = (float)state->offset;
    if ((status = need(s, "weight.nested_absmax", FLOATS, &p->scale_scales)) != OB_OK)
        return status;
    if ((status = check_shape(s, p->scale_scales, 1, blocks)) != OB_OK) return status;
    status = need(s, "weight.nested_quant_map", FLOATS, &p->scale_table);
    return status == OB_OK ? check_shape(s, p->scale_table, 1, 256) : status;
}

static ob_status find_table(struct search *s) {
    static const char nf4[] = "weight.quant_state.bitsandbytes__nf4",
                      fp4[] = "weight.quant_state.bitsandbytes__fp4";
    struct packed *p = s->p;
    struct state state = {0};
    const struct source_tensor *codes = look(s, "weight"), *text, *table;
    if (!codes || !str_is(codes->type, "U8")) return OB_OK;
    mark(s, codes);
    ob_status status = need(s, look(s, fp4) ? fp4 : nf4, "U8", &text);
    if (status != OB_OK) return status;
    struct json_pull j;
    pull_open(&j, text->data, text->bytes);
    bool read = read_state(&j, &state);
    pull_close(&j);
    if (!read || !is_block(state.block))
        return REFUSE(s, "is no JSON object with a shape of two numbers and a blocksize");
    if ((status = set_size(s, state.shape[0], state.shape[1])) != OB_OK) return status;
    uint64_t weights = (uint64_t)p->rows * p->cols;
    look(s, "weight");
    if (codes->bytes != (weights + 1) / 2)
        return REFUSE(s, "has %zu bytes, its quant_state says %llu weights of 4 bits",
                      codes->bytes, (unsigned long long)weights);
    p->kind = PACKED_TABLE;
    p->as.name = codes->name;
    p->codes = codes->data;
    p->block = (uint32_t)state.block;
    if ((status = need(s, "weight.quant_map", FLOATS, &table)) != OB_OK) return status;
    if ((status = check_shape(s, table, 1, 16)) != OB_OK) return status;
    if ((status = find_absmax(s, &state, weights)) != OB_OK) return status;
    float most = 0;
    for (size_t i = 0; i < 16; i++) {
        p->table[i] = packed_number(table, i);
        most = fmaxf(most, fabsf(p->table[i]));
    }
    for (size_t i = 0; i <= (weights - 1) / p->block; i++)
        p->high = fmaxf(p->high, fabsf(packed_block_scale(p, i)));
    p->as.quant = float_format(most * p->high);
    return OB_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

ob_status packed_find(struct build *b, const struct packing *packing, bool *used, const char *name,
                      struct packed **out, ob_error *error) {
    static const char end[] = ".weight";
    static ob_status (*const find[])(struct search *s) = {
        [METHOD_FP8] = find_f8,    [METHOD_GPTQ] = find_gemm, [METHOD_AWQ] = find_gemm,
        [METHOD_INTS] = find_ints, [METHOD_BNB] = find_table,
    };
    size_t n = strlen(name);
    *out = NULL;
    if (n < sizeof end || strcmp(name + n - (sizeof end - 1), end) != 0) return OB_OK;
    struct packed p = {.packing = packing, .bits = packing->bits, .zero_add = packing->zero_add};
    struct search s = {.b = b, .packing = packing, .used = used, .name = name,
                       .stem = (int)(n - strlen("weight")), .p = &p, .error = error};
    ob_status status = find[packing->method](&s);
    if (status != OB_OK || !p.as.quant) return status;
    p.as.type = str_of(p.as.quant->name);
    p.as.ndim = 2;
    p.as.dim[0] = p.cols;
    p.as.dim[1] = p.rows;
    p.as.dim[2] = p.as.dim[3] = 1;
    if (!(*out = arena_alloc(b->arena, sizeof p))) return error_memory(error, name, sizeof p);
    **out = p;
    return OB_OK;
}
