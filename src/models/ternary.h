/* SPDX-License-Identifier: Apache-2.0
 *
 * ternary.h: weights of -1, 0 and 1 with one factor a matrix, which quantization_config of
 * config.json calls "bitnet": four to a byte, rows r, r + n/4, r + 2n/4 and r + 3n/4 of n in byte
 * row r from the lowest bits up, each plus 1; the factor is the tensor "..._scale". They become
 * BF16, which holds them exactly, with weight.ternary. In our GGUF files the factor is
 * "....scale". */
#ifndef MODELS_TERNARY_H
#define MODELS_TERNARY_H

#include "models/recipe.h"

/* Does the file say so? Modes that are not computed are refused. */
ob_status ternary_check(struct build *b, bool *is, ob_error *error);
/* The name of the factor's tensor; false if this can be no matrix with one. */
bool ternary_scale_name(const struct build *b, const char *name, char *out, size_t size);
/* The matrix as if the file had BF16, and its factor. */
ob_status ternary_read(struct build *b, const struct source_tensor *have,
                       const struct source_tensor *scale, struct source_tensor *out,
                       float *factor, ob_error *error);

#endif
