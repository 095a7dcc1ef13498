/* SPDX-License-Identifier: Apache-2.0
 * chat_loose.h: values that are nearly JSON, made JSON: Python's literals and calls, Gemma's
 * objects (names without quotes, quotes that are tokens). */
#ifndef TEXT_CHAT_LOOSE_H
#define TEXT_CHAT_LOOSE_H

#include "base/buf.h"
#include "base/str.h"

enum loose { LOOSE_OK, LOOSE_MORE, LOOSE_BAD }; /* MORE: the text ends inside it */

/* Reads from text[*at] on; *at moves behind what was read if that is OK. `quote`: stands at both
 * ends of strings, beside ' and "; may be empty. Appends JSON to out, which is to be dropped if it
 * is not OK. */
enum loose loose_value(struct str text, size_t *at, struct str quote, struct buf *out);
/* name(a=1, b="x"): the arguments, an object. */
enum loose loose_call(struct str text, size_t *at, struct str *name, struct buf *out);

#endif
