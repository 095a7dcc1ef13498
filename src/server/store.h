/* SPDX-License-Identifier: Apache-2.0
 * store.h: conversations that later requests go on with by an id, in memory: the oldest goes when
 * there are too many or they are too large. Any thread. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include <jansson.h>

struct store;

struct store *store_open(void); /* NULL: out of memory */
void store_close(struct store **store);
/* Copies; what cannot be kept is not. */
void store_put(struct store *store, const char *id, const json_t *json);
/* A copy; NULL if it is not, or no more, there. */
json_t *store_get(struct store *store, const char *id);

#endif
