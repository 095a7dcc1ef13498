/* SPDX-License-Identifier: Apache-2.0
 *
 * packed.h: matrices that a Hugging Face directory has quantized, each as several tensors whose
 * names begin alike ("qweight", "scales", ...). quantization_config says how; a method or setting
 * that is not computed exactly is refused by its name. To the loader such a matrix is one tensor,
 * [rows, cols] as in an unquantized file, whose rows are made on demand.
 *
 * Its format here: where every value is a half-precision scale times a small whole number in blocks
 * of 32, the block format that holds the same values (Q4_0, else Q8_0); otherwise F16, or BF16 if
 * F16's range does not do. So nothing is lost but F16's rounding. */
#ifndef MODELS_PACKED_H
#define MODELS_PACKED_H

#include "models/recipe.h"

struct packing; /* the quantization_config */

/* NULL in *out: nothing is quantized, or in the recipe's own way. Lives in the model's arena. */
ob_status packing_open(struct build *b, const struct packing **out, ob_error *error);
/* "gptq, 4 bits", for people; NULL packing: "". */
const char *packing_describe(const struct packing *packing);

enum packed_kind {
    PACKED_FLOATS,  /* 8-bit floats */
    PACKED_DOWN,    /* whole numbers in words that run down a column of [in, out] */
    PACKED_SHUFFLE, /* the same along a row of [in, out], every eight in AWQ's order */
    PACKED_ALONG,   /* along a row of [out, in] */
    PACKED_TABLE,   /* 4-bit indexes into a table, scales of so many, whatever the rows */
};

struct packed {
    struct source_tensor as; /* name, shape, and `quant`: the format it gets; no data */
    const struct packing *packing;
    enum packed_kind kind;
    uint32_t rows, cols, bits;
    const uint8_t *codes, *zeros; /* zeros NULL: all in the middle of the codes' range */
    const uint8_t *group_of;      /* int32_t of each column; NULL: group after group */
    uint32_t zero_add;            /* what zeros were stored without */
    /* A scale is of scale_rows rows and scale_cols columns; strides of the two in the tensor. */
    const struct source_tensor *scales;
    uint32_t scale_rows, scale_cols, groups;
    size_t row_stride, group_stride;
    float high;                   /* no value is larger */
    /* PACKED_TABLE */
    float table[16], offset;
    const struct source_tensor *scale_table, *scale_scales; /* scales quantized again; or NULL */
    uint32_t block, scale_block;
};

/* The matrix of a tensor spelled so ("....weight"), NULL if it is not quantized. What it consists
 * of is marked in `used`, a flag for each tensor of the source. */
ob_status packed_find(struct build *b, const struct packing *packing, bool *used, const char *name,
                      struct packed **out, ob_error *error);

/* The format that can hold both. */
const struct quant *packed_wider(const struct quant *a, const struct quant *b);

/* Rows, one after the other; a reader keeps the last few groups of rows it unpacked. */
struct packed_reader;
struct packed_reader *packed_reader_new(const struct packed *packed); /* NULL: out of memory */
void packed_reader_free(struct packed_reader **reader);
void packed_floats(struct packed_reader *reader, uint32_t row, float *out);
/* Into any format with an encoder, and into the matrix's own. */
void packed_encode(struct packed_reader *reader, uint32_t row, const struct quant *to, void *out);

#endif
