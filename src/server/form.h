/* SPDX-License-Identifier: Apache-2.0
 * form.h: the fields of a request that say which form its answer has: response_format, json_schema,
 * grammar, guided_regex, structured_outputs. At most one of them asks for one. */
#ifndef SERVER_FORM_H
#define SERVER_FORM_H

#include <jansson.h>

#include "onebit.h"

enum form_kind { FORM_ANY, FORM_GBNF, FORM_REGEX, FORM_JSON };

struct form {
    enum form_kind kind;
    const json_t *value; /* of the request: a string, or a schema; NULL: any JSON object */
    char field[48];      /* where it stands: "response_format.json_schema.schema" */
    bool compact;        /* JSON without white space: json_compact */
};

/* The error names the field. */
ob_status form_read(const json_t *request, struct form *out, ob_error *error);
/* NULL in *out for any text. The error names the field and, in a schema, the JSON pointer:
 * "json_schema#/properties/a/not". */
ob_status form_open(const ob_engine *engine, const struct form *form, ob_grammar **out,
                    ob_error *error);

#endif
