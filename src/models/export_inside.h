/* SPDX-License-Identifier: Apache-2.0
 * export_inside.h: what export.c (tensors) and export_keys.c share. */
#ifndef MODELS_EXPORT_INSIDE_H
#define MODELS_EXPORT_INSIDE_H

#include "base/arena.h"
#include "models/export.h"
#include "models/recipe.h"

enum { PARTS_MAX = 8, NAME_BYTES = 256 };

/* A tensor of the new file: in each of its matrices rows of parts, as part() of recipe.h says. */
struct new_tensor {
    const char *name;
    const struct quant *to;
    uint32_t rows, cols, matrices; /* matrices: experts, or 1; a vector is a column */
    bool stacked;                  /* a dimension for the experts, even if there is one */
    bool vector;
    bool whole;                    /* whole numbers, I32 there; `to` is F32, as long */
    uint32_t line;                 /* not 0: a vector in rows so long, a matrix of so many rows */
    const struct export *of;
    uint32_t parts;
    struct part {
        const struct weight *w;
        uint32_t outer, total, start;
        uint32_t every;   /* the weight has each row so often */
        uint32_t each;    /* not 0: of so many rows of a head from `start` on; its own matrix */
        bool turned;      /* the file has [in, out] */
        const char *name; /* of rows that are multiplied: by recipe.gguf_factor of it; or NULL */
    } part[PARTS_MAX];
    size_t row_bytes;
    float *row;                    /* scratch, [cols] */
    float *turned;                 /* scratch, a row of a part that is turned */
    void *encoded;                 /* scratch, [row_bytes] */
};

struct export {
    const struct model *model;
    struct arena arena;
    struct new_tensor *tensor;
    size_t count;
};

/* Is the weight's canonical name the row's? Then its layer is set. */
bool export_names(const struct tensor *t, const char *name, uint32_t *layer);
/* The new tensor of that name; NULL: none. */
struct new_tensor *export_find(struct export *e, const char *name);
/* Puts all keys but the tokenizer's, and the tensors that hold what are keys to us. */
void export_put_keys(struct export *e, struct gguf_writer *w);

#endif
