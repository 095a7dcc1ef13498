/* SPDX-License-Identifier: Apache-2.0
 * packed.c: rows of packed matrices; see packed.h. packed_find.c knows the files' tensors. */
#include "models/packed.h"

#include <stdlib.h>
#include <string.h>

#include "models/packing.h"
#include "quant/half.h"
#include "quant/q4_0.h"
#include "quant/q8_0.h"

/* Words that hold several rows are unpacked for so many rows at once. Two such groups are kept:
 * rotary pairs come from two places of a head in turn. */
enum { GROUP_ROWS = 64, GROUPS_KEPT = 2 };

struct packed_reader {
    const struct packed *p;
    uint8_t *codes;  /* [GROUPS_KEPT][GROUP_ROWS][cols], or [cols] */
    uint32_t held[GROUPS_KEPT]; /* group of rows + 1 */
    float *scale;    /* [groups] of the row at hand */
    int32_t *zero;   /* [groups] */
    float *row;      /* [cols], for encoders */
};

static bool is_grouped(const struct packed *p) {
    return p->kind == PACKED_DOWN || p->kind == PACKED_SHUFFLE;
}

struct packed_reader *packed_reader_new(const struct packed *p) {
    struct packed_reader *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    size_t kept = is_grouped(p) ? (size_t)GROUPS_KEPT * GROUP_ROWS : 1;
    r->p = p;
    r->codes = calloc(p->cols, kept);
    r->scale = calloc((size_t)p->groups + 1, sizeof *r->scale);
    r->zero = calloc((size_t)p->groups + 1, sizeof *r->zero);
    r->row = calloc(p->cols, sizeof *r->row);
    if (!r->codes || !r->scale || !r->zero || !r->row) packed_reader_free(&r);
    return r;
}

void packed_reader_free(struct packed_reader **reader) {
    struct packed_reader *r = *reader;
    if (!r) return;
    free(r->codes);
    free(r->scale);
    free(r->zero);
    free(r->row);
    free(r);
    *reader = NULL;
}

static uint32_t word_at(const uint8_t *words, size_t i) {
    uint32_t w;
    memcpy(&w, words + 4 * i, sizeof w);
    return w;
}

/* Where AWQ's word has the k-th of eight. */
static uint32_t shuffled(uint32_t k) { return k % 2 ? 4 + k / 2 : k / 2; }

/* ---- codes ----------------------------------------------------------------------------------- */

static void unpack_group(const struct packed *p, uint32_t first, uint8_t *out) {
    uint32_t each = 32 / p->bits, mask = (1u << p->bits) - 1;
    uint32_t n = p->rows - first < GROUP_ROWS ? p->rows - first : GROUP_ROWS;
    size_t cols = p->cols;
    if (p->kind == PACKED_DOWN)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t c = 0; c < cols; c += each) {
                uint32_t word = word_at(p->codes, (size_t)(c / each) * p->rows + first + i);
                for (uint32_t k = 0; k < each; k++)
                    out[i * cols + c + k] = (uint8_t)(word >> k * p->bits & mask);
            }
    else
        for (uint32_t i = 0; i < n; i += each)
            for (uint32_t c = 0; c < cols; c++) {
                size_t at = (size_t)c * (p->rows / each) + (first + i) / each;
                uint32_t word = word_at(p->codes, at);
                for (uint32_t k = 0; k < each; k++)
                    out[(i + k) * cols + c] = (uint8_t)(word >> shuffled(k) * p->bits & mask);
            }
}

static const uint8_t *codes_of(struct packed_reader *r, uint32_t row) {
    const struct packed *p = r->p;
    if (p->kind == PACKED_FLOATS) return p->codes + (size_t)row * p->cols;
    if (is_grouped(p)) {
        uint32_t group = row / GROUP_ROWS, slot = group % GROUPS_KEPT;
        uint8_t *kept = r->codes + (size_t)slot * GROUP_ROWS * p->cols;
        if (r->held[slot] != group + 1) unpack_group(p, group * GROUP_ROWS, kept);
        r->held[slot] = group + 1;
        return kept + (size_t)(row % GROUP_ROWS) * p->cols;
    }
    if (p->kind == PACKED_TABLE) {
        size_t first = (size_t)row * p->cols;
        for (uint32_t c = 0; c < p->cols; c++)
            r->codes[c] = p->codes[(first + c) / 2] >> ((first + c) % 2 ? 0 : 4) & 15;
        return r->codes;
    }
    uint32_t each = 32 / p->bits, mask = (1u << p->bits) - 1;
    size_t words = (p->cols + each - 1) / each;
    for (uint32_t c = 0; c < p->cols; c++)
        r->codes[c] = (uint8_t)(word_at(p->codes, row * words + c / each) >> c % each * p->bits &
                                mask);
    return r->codes;
}

/* ---- scales ---------------------------------------------------------------------------------- */

float packed_number(const struct source_tensor *t, size_t i) {
    float x = 0;
    if (t->quant) {
        t->quant->decode((const char *)t->data + i * t->quant->bytes, &x, 1);
    } else { /* F8_E8M0: an exponent; 0 is a denormal, 255 no number */
        uint8_t e = ((const uint8_t *)t->data)[i];
        uint32_t bits = e == 255 ? 0x7fc00000u : e ? (uint32_t)e << 23 : 1u << 22;
        memcpy(&x, &bits, sizeof x);
    }
    return x;
}

float packed_scale(const struct packed *p, uint32_t row, uint32_t group) {
    return packed_number(p->scales,
                         row / p->scale_rows * p->row_stride + group * p->group_stride);
}

int32_t packed_zero(const struct packed *p, uint32_t row, uint32_t group) {
    uint32_t each = 32 / p->bits, mask = (1u << p->bits) - 1, shift = row % each * p->bits;
    if (!p->zeros) return 1 << (p->bits - 1);
    size_t at = (size_t)group * (p->rows / each) + row / each;
    if (p->kind == PACKED_ALONG) at = (size_t)(row / each) * p->groups + group;
    if (p->kind == PACKED_SHUFFLE) shift = shuffled(row % each) * p->bits;
    return (int32_t)(((word_at(p->zeros, at) >> shift) + p->zero_add) & mask);
}

float packed_block_scale(const struct packed *p, size_t block) {
    if (!p->scale_table) return packed_number(p->scales, block);
    uint8_t code = ((const uint8_t *)p->scales->data)[block];
    return packed_number(p->scale_table, code) *
               packed_number(p->scale_scales, block / p->scale_block) +
           p->offset;
}

static void read_scales(struct packed_reader *r, uint32_t row) {
    for (uint32_t g = 0; g < r->p->groups; g++) {
        r->scale[g] = packed_scale(r->p, row, g);
        if (r->p->kind != PACKED_FLOATS) r->zero[g] = packed_zero(r->p, row, g);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void table_floats(const struct packed *p, uint32_t row, const uint8_t *code, float *out) {
    size_t first = (size_t)row * p->cols;
    for (uint32_t c = 0, end; c < p->cols; c = end) {
        size_t block = (first + c) / p->block, left = (block + 1) * p->block - first;
        float scale = packed_block_scale(p, block);
        end = left < p->cols ? (uint32_t)left : p->cols;
        for (uint32_t i = c; i < end; i++) out[i] = p->table[code[i]] * scale;
    }
}

void packed_floats(struct packed_reader *r, uint32_t row, float *out) {
    const struct packed *p = r->p;
    const uint8_t *code = codes_of(r, row);
    if (p->kind == PACKED_TABLE) {
        table_floats(p, row, code, out);
        return;
    }
    read_scales(r, row);
    for (uint32_t c = 0, end; c < p->cols; c = end) {
        uint32_t g = p->group_of ? word_at(p->group_of, c) : c / p->scale_cols;
        float scale = r->scale[g];
        end = p->group_of                       ? c + 1
              : p->cols - c < p->scale_cols ? p->cols
                                            : c + p->scale_cols;
        for (uint32_t i = c; p->kind == PACKED_FLOATS && i < end; i++)
            out[i] = p->packing->f8[code[i]] * scale;
        for (uint32_t i = c; p->kind != PACKED_FLOATS && i < end; i++)
            out[i] = (float)((int32_t)code[i] - r->zero[g]) * scale;
    }
}

/* The same values, in a format of 32 whole numbers and a scale. */
static void encode_blocks(struct packed_reader *r, uint32_t row, const struct quant *to,
                          uint8_t *out) {
    const struct packed *p = r->p;
    const uint8_t *code = codes_of(r, row);
    read_scales(r, row);
    for (uint32_t c = 0; c < p->cols; c += 32, code += 32, out += to->bytes) {
        uint32_t g = c / p->scale_cols;
        uint16_t d = quant_f32_to_f16(r->scale[g]);
        memcpy(out, &d, sizeof d);
        for (uint32_t i = 0; to == quant_list[QUANT_q8_0] && i < 32; i++)
            out[2 + i] = (uint8_t)(code[i] - r->zero[g]);
        for (uint32_t i = 0; to == quant_list[QUANT_q4_0] && i < 16; i++)
            out[2 + i] = (uint8_t)(code[i] | code[i + 16] << 4);
    }
}

void packed_encode(struct packed_reader *r, uint32_t row, const struct quant *to, void *out) {
    /* A matrix that is exact in Q4_0 is in Q8_0, too. */
    if (to->block > 1 && r->p->as.quant->block > 1) {
        encode_blocks(r, row, to, out);
        return;
    }
    packed_floats(r, row, r->row);
    to->encode(r->row, out, r->p->cols / to->block);
}

const struct quant *packed_wider(const struct quant *a, const struct quant *b) {
    static const enum quant_index order[] = {QUANT_q4_0, QUANT_q8_0, QUANT_f16, QUANT_bf16};
    for (size_t i = 4; i-- > 0;)
        if (a == quant_list[order[i]] || b == quant_list[order[i]]) return quant_list[order[i]];
    return a;
}
