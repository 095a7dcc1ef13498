/* SPDX-License-Identifier: Apache-2.0
 *
 * transform.h: from a tensor as a file has it to the canonical form (recipe.h names the steps). A
 * contiguous part is a view; all else is a copy in the model's arena, counted in
 * model.copied_bytes. */
#ifndef MODELS_TRANSFORM_H
#define MODELS_TRANSFORM_H

#include "models/packed.h"
#include "models/recipe.h"

/* The steps, parsed: what the file's matrix must look like, and where each row of ours is. */
struct transform {
    bool stack, experts, transposed, f32, mxfp4;
    uint32_t outer, total, start; /* part(); outer 0: none */
    uint32_t heads;               /* pairs(); 0: none */
    uint32_t parts;               /* stack(); 0: as many as the layer's experts */
    struct tile {
        uint32_t groups, heads;   /* groups 0: none */
    } tile, tile_cols;            /* tile(), tile_cols() */
    uint32_t join;                /* join(); 0: none */
    uint32_t times;               /* repeat(); 0: none */
    uint32_t each, each_start;    /* heads(); each 0: none */
    uint32_t each_count;          /* heads; 0: of attention */
    uint32_t below;               /* below(); 0: none */
    enum { KEEP, ADD_ONE, ABSOLUTE, NEGATE, EXP, NEGATE_EXP } element;
    const struct quant *to;       /* what a matrix of floats becomes; NULL: stays */
};

/* false: a formula in it is too large. */
bool transform_parse(const struct build *b, uint32_t layer, const char *steps,
                     struct transform *out);
/* Rows of the file's matrix of which ours has `rows`. */
uint64_t transform_file_rows(const struct transform *t, uint64_t rows);
/* One matrix, or a vector, which is a matrix of one column: `w` comes with rows, cols and quant of
 * the canonical form and the file's data, and leaves with the canonical data and quant. A format
 * whose blocks cannot be taken apart so is refused by the tensor's name. `from` not NULL: the file
 * has the matrix packed, from this row on, instead of data. */
struct packed_rows {
    const struct packed *packed;
    uint32_t first;
};
ob_status transform_run(struct build *b, const struct transform *t, const struct packed_rows *from,
                        struct weight *w, bool vector, ob_error *error);

/* A table of numbers, whole and below t->below, of type I32, I64 or F32: as F32. */
ob_status transform_numbers(struct build *b, const struct transform *t, struct str type,
                            struct weight *w, ob_error *error);

/* One matrix of MXFP4 out of its two tensors: 16 bytes a block, and a scale. Sets quant, data. */
ob_status transform_mxfp4(struct build *b, const struct transform *t, const uint8_t *blocks,
                          const uint8_t *scales, struct weight *w, ob_error *error);

#endif
