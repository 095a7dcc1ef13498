/* SPDX-License-Identifier: Apache-2.0
 *
 * families.h: the families of the goldens' families/ and of the folder of fixtures, a folder each,
 * found by looking: no list names them. Each is unpacked while its rows run. */
#ifndef CHECK_FAMILIES_H
#define CHECK_FAMILIES_H

#include "check.h"
#include "golden.h"

struct family {
    const char *name; /* for the rows: "llama", "fixture.llama" */
    const struct golden *golden;
    const char *model;   /* a directory that source_open takes */
    const char *legacy;  /* the same weights under the keys of older checkpoints, NULL if none */
    const char *gguf;    /* the same weights in a GGUF file, NULL if none */
    const char *unknown; /* why there is no recipe, NULL if there is one */
};

/* In the order of the names. A folder that cannot be read or unpacked is a failed row. */
void families_each(struct check *check,
                   void (*each)(struct check *check, const struct family *family));

#endif
