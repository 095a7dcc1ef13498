/* SPDX-License-Identifier: Apache-2.0
 * inspect.h: looking into a model's files, for `1bit info`. */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include <jansson.h>

#include "cli/cli.h"
#include "format/source.h"

/* All metadata as one object, keys in the file's order. A long array is an object of "array" (the
 * element type), "count" and the "first" elements. */
ob_status inspect_metadata(const struct source *source, json_t **out, ob_error *error);
/* The document of `1bit info` as text on the standard output. */
void inspect_print(const json_t *doc, struct cli_style style);
/* One value on one line, shortened to what a terminal shows. */
void inspect_line(const json_t *value, struct buf *out);
/* What the engine would do with it: the recipe's family, context, cache memory, devices; or why it
 * is "refused". */
json_t *inspect_plan(const struct source *source, const struct options *options);
/* The classes of models that can be loaded, on the standard output. Gives the exit code. */
int inspect_architectures(const struct options *options);
/* Decodes every tensor on all cores; OB_ERR_NUMERIC names the first weight that is not finite. */
ob_status inspect_verify(const struct source *source, ob_error *error);

#endif
