/* SPDX-License-Identifier: Apache-2.0
 *
 * golden.h: a miniature model with the numbers it must give, in either form: golden.bin, whose
 * weights are drawn again from their names (tests/golden/families/README.md), or a fixture's
 * model.safetensors and reference.npz. Immutable after golden_open. Ours alone, so a file that is
 * wrong is refused, but the message need not help anyone mend it. */
#ifndef CHECK_GOLDEN_H
#define CHECK_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onebit.h"

struct golden;

/* A folder with config.json and golden.bin or reference.npz. */
ob_status golden_open(const char *folder, struct golden **out, ob_error *error);
void golden_close(struct golden **golden);

bool golden_has_file(const struct golden *golden, const char *name); /* beside config.json */
/* Arrays by name ("logits_a"), malloc'd, n elements; NULL if there is no such array. */
int32_t *golden_ints(const struct golden *golden, const char *name, size_t *n);
float *golden_floats(const struct golden *golden, const char *name, size_t *n);

/* Makes `into`, an existing directory, a model: the weights, their checksums verified, and the
 * folder's `config` as its config.json. What lies there already is replaced. */
ob_status golden_unpack(const struct golden *golden, const char *config, const char *into,
                        ob_error *error);
/* Removes what golden_unpack wrote, and the directory. */
void golden_remove(const char *into);

#endif
