/* SPDX-License-Identifier: Apache-2.0
 * clean.h: generated text on its way to JSON, which must be UTF-8. */
#ifndef SERVER_CLEAN_H
#define SERVER_CLEAN_H

#include <jansson.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends text; each malformed byte becomes U+FFFD. The parts of a text that end with whole
 * characters give together what the whole gives. */
void clean_text(struct buf *out, struct str text);
/* A JSON string of it; NULL when out of memory. */
json_t *clean_json(struct str text);

#endif
