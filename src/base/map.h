/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h: a file mapped read-only. The mapping stays valid when the file is renamed or deleted. A
 * file truncated in place makes later reads fault: map_guard() turns that into one line and an
 * exit, which is all that can be done then. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "onebit.h"

struct map {
    const uint8_t *p; /* page aligned; a non-NULL dummy when size is 0 */
    size_t size;
    char *path; /* owned */
    int slot;   /* in the guard's table, -1 if none */
};

ob_status map_open(const char *path, struct map *out, ob_error *error);
void map_close(struct map *map); /* safe on a zeroed struct */

/* Installs the SIGBUS handler (from the program, never from a library user). It prints
 * "WHO: PATH: the file was truncated while in use" and exits 1; `who` must stay. */
void map_guard(const char *who);

#endif
