/* SPDX-License-Identifier: Apache-2.0
 * form.h: the options that say which form answers have: --grammar, --json-schema, --regex. */
#ifndef CLI_FORM_H
#define CLI_FORM_H

#include "base/buf.h"
#include "cli/cli.h"

/* The code of a misuse (more than one of them) or of a file that cannot be read, or EXIT_OK. Files
 * become the texts of `options`, which point into `text`. */
int cli_form_read(struct options *options, struct buf *text);
/* NULL in *out: any text. */
ob_status cli_form_open(const ob_engine *engine, const struct options *options, ob_grammar **out,
                        ob_error *error);

#endif
