/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.h: JSON texts as expressions: white space, strings, any value, a known one. Characters
 * that JSON must escape have one spelling where a string's content matters (names, patterns), so
 * that nothing forbidden can be spelled another way; free strings may escape as they like, but for
 * halves of surrogate pairs, which some readers refuse. Values that stand in a call of a tool may
 * be spelled in another way than JSON has it (struct schema_spelling). */
#ifndef SAMPLE_SCHEMA_JSON_TEXT_H
#define SAMPLE_SCHEMA_JSON_TEXT_H

#include <jansson.h>

#include "sample/grammar/build.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"

enum {
    JSON_DIGITS = 18,      /* of a whole number: less than 2^63 */
    JSON_FRACTION = 15,    /* digits behind the point */
    JSON_EXPONENT = 2,     /* digits */
    JSON_INDENT = 40,      /* blanks behind a newline */
    JSON_NAME_MOST = 1024, /* bytes of a name that others must differ from */
};

struct json_text {
    struct grammar_builder *b;
    struct schema_spelling spelling;
    const char *quote;        /* at both ends of strings */
    pattern_spell spell;      /* a character in its one spelling */
    bool compact;
    bool failed;              /* out of memory */
    grammar_expr space;       /* after { [ , and before ] } */
    grammar_expr comma, colon; /* with the space behind them */
    grammar_expr character;   /* of a free string */
    grammar_expr escapes;     /* characters that must be escaped, in their one spelling */
    grammar_expr spelled;     /* any text, each character in its one spelling */
    grammar_expr string, integer, number, object, array, value; /* any */
};

void json_text_init(struct json_text *t, struct grammar_builder *b,
                    const struct schema_options *options);

grammar_expr json_word(struct json_text *t, const char *text);
/* true, false or null, by the first letter. */
grammar_expr json_truth(struct json_text *t, char first);
grammar_expr json_quoted(struct json_text *t, grammar_expr inside);
/* That text as a string. */
grammar_expr json_string_text(struct json_text *t, struct str text);
/* The same as a member's name. */
grammar_expr json_name_text(struct json_text *t, struct str text);
/* Insides of strings but for these names, which are sorted (str_order) here. */
grammar_expr json_names_except(struct json_text *t, struct str *name, size_t n);
/* Exactly this value, its members in their order. 0: deeper than SCHEMA_DEPTH. */
grammar_expr json_constant(struct json_text *t, const json_t *value);
/* open + inside + close, with space; without `inside` too if it may be empty. */
grammar_expr json_between(struct json_text *t, const char *open, grammar_expr inside,
                          const char *close, bool may_be_empty);

/* ---- json_number.c ---- */

struct json_range {
    bool integer;
    const json_t *min, *max; /* NULL: none */
    bool above_min, below_max; /* the bound itself is outside */
    int64_t multiple;        /* 0: of anything; else at least 1 */
};
/* OB_ERR_ARGUMENT without a place: bounds or multiples that cannot be done. */
ob_status json_number_expr(struct json_text *t, const struct json_range *range, grammar_expr *out,
                           ob_error *error);
/* Digits that read back as the same number. */
void json_number_text(const json_t *number, char out[32]);

#endif
