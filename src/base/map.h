/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h: a file mapped read-only. The mapping stays valid when the file is renamed or deleted. A
 * file truncated in place makes later reads fault: map_guard() turns that into one line and an
 * exit, which is all that can be done then. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onebit.h"

struct map {
    const uint8_t *p; /* page aligned; a non-NULL dummy when size is 0 */
    size_t size;
    char *path; /* owned */
    int slot;   /* in the guard's table, -1 if none */
    int fd;     /* open if size is not 0 */
};

ob_status map_open(const char *path, struct map *out, ob_error *error);
void map_close(struct map *map); /* safe on a zeroed struct */

struct map_load {
    bool copy; /* into memory of the process, in huge pages where the system has them */
    bool lock; /* never swapped out or dropped */
    bool read_ahead; /* without either: wait for what is not in memory now */
    /* Called with the bytes done since the last call; may be NULL. */
    void (*progress)(void *user, size_t bytes);
    void *user;
};
/* Brings the file into memory. What p points to stays where it is and reads the same, but nobody
 * may read it meanwhile. OB_ERR_LIMIT if the system refuses the memory or the lock. */
ob_status map_load(struct map *map, const struct map_load *load, ob_error *error);

/* `hash` with what tells this file from others mixed in, wherever it lies: its size, when it was
 * written, and samples of its bytes. */
uint64_t map_identity(const struct map *map, uint64_t hash);

/* Installs the SIGBUS handler (from the program, never from a library user). It prints
 * "WHO: PATH: the file was truncated while in use" and exits 1; `who` must stay. */
void map_guard(const char *who);

#endif
