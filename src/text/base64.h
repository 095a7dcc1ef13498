/* SPDX-License-Identifier: Apache-2.0
 * base64.h: base64 of tokenizer files (RFC 4648, with or without padding). */
#ifndef TEXT_BASE64_H
#define TEXT_BASE64_H

#include "base/str.h"

/* out has room for text.n / 4 * 3 + 3 bytes. False: not base64. */
bool base64_decode(struct str text, char *out, size_t *n);

#endif
