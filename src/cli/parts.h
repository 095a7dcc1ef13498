/* SPDX-License-Identifier: Apache-2.0
 * parts.h: an answer as it is printed: the reasoning between <think> and </think> however the model
 * marks it, dim on a terminal, and calls of tools a line each. */
#ifndef CLI_PARTS_H
#define CLI_PARTS_H

#include "cli/generate.h"

struct parts;

/* What a model answers to the prompt, as the options say; *out is NULL where all of it is text.
 * `answer` gets the parts. */
ob_status parts_open(const ob_engine *engine, const struct prompt *prompt,
                     const struct options *options, struct answer *answer, struct parts **out,
                     ob_error *error);
void parts_close(struct parts **parts);
/* Whether the prompt has opened the reasoning. */
bool parts_thinks(const struct parts *parts);
/* Appends what is to be printed now; `last`: the text ends here. */
void parts_add(struct parts *parts, struct str text, bool last, struct buf *print);

#endif
