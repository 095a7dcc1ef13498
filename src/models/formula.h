/* SPDX-License-Identifier: Apache-2.0
 * formula.h: sizes by formula (recipe.h). */
#ifndef MODELS_FORMULA_H
#define MODELS_FORMULA_H

#include "models/hparams.h"
#include "base/str.h"

enum { FORMULA_LARGE = 1 << 30 }; /* anything larger comes out as FORMULA_OVERFLOW */
#define FORMULA_OVERFLOW UINT64_MAX

/* The value in a layer (outside layers: that of layer 0). Names are fields of hparams, or numbers
 * that the family's keys name; another name is our bug. */
uint64_t formula_value(const struct hparams *hp, uint32_t layer, struct str formula);

#endif
