/* SPDX-License-Identifier: Apache-2.0
 * form.c: see form.h. */
#include "server/form.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "server/params.h"

/* NULL for null. */
static const json_t *get(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

static ob_status set(struct form *out, enum form_kind kind, const json_t *value, const char *field,
                     ob_error *error) {
    if (kind == FORM_JSON && value && !json_is_object(value) && !json_is_boolean(value))
        return params_refuse(error, field, value, "a JSON schema");
    if (kind != FORM_JSON && !json_is_string(value))
        return params_refuse(error, field, value, "a string");
    if (out->kind != FORM_ANY) {
        error_set(error, OB_ERR_ARGUMENT, "excludes %s: one of them says what the answer is",
                  out->field);
        error_at(error, NULL, field, OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    out->kind = kind;
    out->value = value;
    snprintf(out->field, sizeof out->field, "%s", field);
    return OB_OK;
}

/* {"type": "json_schema", "json_schema": {"name": .., "strict": .., "schema": ..}}; llama-server
 * takes the schema beside the type too, also with "json_object". */
static ob_status read_response_format(const json_t *format, struct form *out, ob_error *error) {
    const char *type = json_string_value(get(format, "type"));
    const json_t *wrapped = get(format, "json_schema"), *schema = get(format, "schema");
    const json_t *strict = get(wrapped, "strict");
    if (!json_is_object(format) || !type ||
        (strcmp(type, "text") != 0 && strcmp(type, "json_object") != 0 &&
         strcmp(type, "json_schema") != 0))
        return params_refuse(error, "response_format", json_is_object(format) ? get(format, "type")
                                                                              : format,
                             "an object whose type is \"text\", \"json_object\" or "
                             "\"json_schema\"");
    if (strcmp(type, "text") == 0) return OB_OK;
    if (schema) return set(out, FORM_JSON, schema, "response_format.schema", error);
    if (strcmp(type, "json_object") == 0)
        return set(out, FORM_JSON, NULL, "response_format", error);
    if (!json_is_object(wrapped))
        return params_refuse(error, "response_format.json_schema", wrapped, "an object");
    if (strict && !json_is_boolean(strict))
        return params_refuse(error, "response_format.json_schema.strict", strict, "true or false");
    schema = get(wrapped, "schema");
    if (!schema)
        return params_refuse(error, "response_format.json_schema.schema", schema, "a JSON schema");
    return set(out, FORM_JSON, schema, "response_format.json_schema.schema", error);
}

/* vLLM's {"json": schema}, {"regex": ".."} or {"grammar": ".."}. */
static ob_status read_structured(const json_t *outputs, struct form *out, ob_error *error) {
    static const struct {
        const char *name, *field;
        enum form_kind kind;
    } kinds[] = {
        {"grammar", "structured_outputs.grammar", FORM_GBNF},
        {"json", "structured_outputs.json", FORM_JSON},
        {"regex", "structured_outputs.regex", FORM_REGEX},
    };
    const char *name;
    json_t *value;
    ob_status s = OB_OK;
    if (!json_is_object(outputs))
        return params_refuse(error, "structured_outputs", outputs, "an object");
    json_object_foreach((json_t *)(uintptr_t)outputs, name, value) {
        size_t i = 0;
        if (json_is_null(value)) continue;
        while (i < 3 && strcmp(kinds[i].name, name) != 0) i++;
        if (i == 3) {
            error_set(error, OB_ERR_ARGUMENT,
                      "has \"json\", \"regex\" or \"grammar\", not \"%.60s\"", name);
            error_at(error, NULL, "structured_outputs", OB_NO_OFFSET);
            return OB_ERR_ARGUMENT;
        }
        s = set(out, kinds[i].kind, value, kinds[i].field, error);
        if (s != OB_OK) return s;
    }
    return s;
}

ob_status form_read(const json_t *request, struct form *out, ob_error *error) {
    const json_t *format = get(request, "response_format"), *schema = get(request, "json_schema");
    const json_t *grammar = get(request, "grammar"), *regex = get(request, "guided_regex");
    const json_t *outputs = get(request, "structured_outputs");
    const json_t *compact = get(request, "json_compact");
    ob_status s = OB_OK;
    *out = (struct form){.compact = json_is_true(compact)};
    if (compact && !json_is_boolean(compact))
        return params_refuse(error, "json_compact", compact, "true or false");
    if (format) s = read_response_format(format, out, error);
    /* "" and {} ask for nothing, as in llama-server. */
    if (s == OB_OK && schema && !(json_is_object(schema) && json_object_size(schema) == 0))
        s = set(out, FORM_JSON, schema, "json_schema", error);
    if (s == OB_OK && grammar && !(json_is_string(grammar) && !*json_string_value(grammar)))
        s = set(out, FORM_GBNF, grammar, "grammar", error);
    if (s == OB_OK && regex) s = set(out, FORM_REGEX, regex, "guided_regex", error);
    return s == OB_OK && outputs ? read_structured(outputs, out, error) : s;
}

static ob_status open_json(const ob_engine *engine, const struct form *form, ob_grammar **out,
                           ob_error *error) {
    json_t *object = form->value ? NULL : json_pack("{s:s}", "type", "object");
    ob_status s = ob_grammar_json_schema_json(engine, form->value ? form->value : object,
                                              form->compact ? OB_JSON_COMPACT : 0, out, error);
    json_decref(object);
    return s;
}

ob_status form_open(const ob_engine *engine, const struct form *form, ob_grammar **out,
                    ob_error *error) {
    ob_error here;
    const char *text = json_string_value(form->value);
    size_t n = json_string_length(form->value);
    ob_status s = OB_OK;
    *out = NULL;
    if (form->kind == FORM_GBNF) s = ob_grammar_gbnf(engine, text, n, out, &here);
    if (form->kind == FORM_REGEX) s = ob_grammar_regex(engine, text, n, out, &here);
    if (form->kind == FORM_JSON) s = open_json(engine, form, out, &here);
    if (s == OB_OK) return OB_OK;
    error_set(error, s, "%s", here.message);
    snprintf(error->where, sizeof error->where, "%s%s%.70s", form->field,
             here.where[0] ? "#" : "", here.where);
    return s;
}
