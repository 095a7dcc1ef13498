/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.h: stop strings over streamed text. Text is passed on as soon as it cannot be the beginning
 * of a stop string; a match is cut out together with what follows. The strings are matched in
 * bytes, with one automaton state a string (Knuth, Morris, Pratt 1977). Not thread safe. */
#ifndef DECODE_STOP_H
#define DECODE_STOP_H

#include "base/buf.h"
#include "onebit.h"

struct stop;

/* Copies the strings; empty ones are refused. n = 0 is fine. */
ob_status stop_open(const char *const *strings, size_t n, struct stop **out, ob_error *error);
void stop_close(struct stop **stop);
/* Adds text; appends to out what may be emitted now. True once a stop string was completed: the
 * rest of the text is dropped, and the caller stops. */
bool stop_add(struct stop *stop, const char *text, size_t n, struct buf *out);
/* The one that was completed; NULL: none. */
const char *stop_found(const struct stop *stop);
/* The end came without a match: appends what was held back. */
void stop_end(struct stop *stop, struct buf *out);

#endif
