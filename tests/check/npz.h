/* SPDX-License-Identifier: Apache-2.0
 * npz.h: one array of an uncompressed .npz (a zip of .npy files) for tests; our own goldens only,
 * so a malformed file just fails the test. */
#ifndef TESTS_NPZ_H
#define TESTS_NPZ_H

#include <stddef.h>

/* malloc'd element data in C order; fills count (elements) and size (bytes of an element). NULL if
 * there is no such array. */
void *npz_read(const char *path, const char *name, size_t *count, size_t *size);

#endif
