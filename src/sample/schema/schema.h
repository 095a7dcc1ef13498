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

/* How values are spelled: as JSON, or as a tool format has them (text/chat_write.c). */
enum schema_spelling_kind {
    SCHEMA_JSON,
    SCHEMA_MARKED, /* JSON without '<' as itself, so that no marker begins inside a value */
    SCHEMA_PYTHON, /* True, False, None; escapes that Python has too */
    SCHEMA_RAW,    /* strings as they are, between `quote`; other values as JSON has them */
};
struct schema_spelling {
    enum schema_spelling_kind kind;
    const char *quote; /* of RAW: at both ends of strings; names of letters and digits have none */
    const char *avoid; /* of RAW: what no string contains. One with lengths, a pattern or a format
                        * has no '<' at all */
};

struct schema_options {
    struct schema_spelling spelling;
    const json_t *root; /* what $ref are relative to; NULL: the schema itself */
    const char *type;   /* the value is of it, whatever else the schema says; NULL: of any */
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

/* ---- texts without others ---- */

/* A code point, or a token as a whole. */
struct schema_symbol {
    uint32_t code;
    int32_t token; /* -1: none */
};
struct schema_marker {
    const struct schema_symbol *symbol;
    size_t n;
};
struct schema_free {
    const struct schema_marker *marker; /* [markers], none empty: none is in the text */
    size_t markers;
    const int32_t *token; /* [tokens]: these may be in it, beside all characters */
    size_t tokens;
    bool no_json; /* nor does it begin as an object, a list of objects or of calls in Python */
};
/* Any text, also none, in which no marker is: linear in their length. Behind it a marker is first
 * where it is written, as long as no marker begins as another ends. */
grammar_expr schema_free(struct grammar_builder *b, const struct schema_free *what);
grammar_expr schema_without(struct grammar_builder *b, struct str marker);

#endif
