/* SPDX-License-Identifier: Apache-2.0
 *
 * schema.h: face of sample/schema/: what reads the texts that people write for "answer in this
 * form": GBNF as llama.cpp has it, regular expressions, JSON schemas. docs/structured.md says what
 * each of them may hold. Whatever is not understood is refused by name and place, never left out:
 * what a grammar lets through is always what was asked for. Thread safe. */
#ifndef SAMPLE_SCHEMA_SCHEMA_H
#define SAMPLE_SCHEMA_SCHEMA_H

#include <jansson.h>

#include "sample/grammar/build.h"

enum {
    SCHEMA_TEXT_MOST = 1 << 20, /* bytes of a grammar */
    SCHEMA_DEPTH = 200,         /* of groups within groups */
};

/* A grammar whose first rule is "root". OB_ERR_ARGUMENT says line and column. `vocab` (NULL: none)
 * finds the tokens that the text names. */
ob_status schema_gbnf(struct str text, const struct sample_vocab *vocab, struct grammar **out,
                      ob_error *error);

/* The whole text matches the expression (ECMA-262, Unicode). OB_ERR_ARGUMENT says the column. */
ob_status schema_regex(struct str text, struct grammar **out, ob_error *error);

struct schema_options {
    bool compact; /* no white space between tokens; else what models write: docs/structured.md */
    bool open;    /* a schema with "properties" and without "additionalProperties" allows others, as
                   * the standard says; else the answer has those named alone */
};

/* JSON texts that the schema (draft 2020-12; an object or a truth) finds valid, not all of them:
 * properties come in the schema's order, numbers have bounded digits. OB_ERR_ARGUMENT: `where` is
 * the JSON pointer of what is refused; OB_ERR_LIMIT: too large. `schema` is not kept. */
ob_status schema_json(const json_t *schema, const struct schema_options *options,
                      struct grammar **out, ob_error *error);
/* The same as a part of a larger grammar. The builder may have failed: grammar_finish says so. */
ob_status schema_json_expr(struct grammar_builder *b, const json_t *schema,
                           const struct schema_options *options, grammar_expr *out,
                           ob_error *error);

#endif
