/* SPDX-License-Identifier: Apache-2.0
 * json_string.c: strings: lengths, patterns, formats; see json_schema.h. */
#include <stdlib.h>

#include "sample/schema/json_schema.h"

static const struct {
    const char *name, *regex;
} formats[] = {
#define FORMAT(name, regex) {name, regex},
#include "sample/schema/json_formats.def"
#undef FORMAT
};

const char *schema_format(struct json_schema *s, const json_t *schema, const char *format) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(format, formats[i].name) == 0)
            return formats[i].regex[0] ? formats[i].regex : NULL;
    schema_refuse(s, schema, "format", "the format \"%.100s\" is not supported", format);
    return NULL;
}

/* A pattern with lengths is no regular expression that could be written down, but for one class
 * repeated, and where the pattern already says as much. */
static grammar_expr with_lengths(struct json_schema *s, const struct facts *f,
                                 const struct pattern *regex, const json_t *of,
                                 const char *keyword) {
    struct pattern_length own = pattern_length(regex);
    const struct pattern_node *repeat = pattern_as_repeat(regex);
    grammar_expr out = grammar_nothing(s->b);
    ob_error error;
    if (own.max < f->min_length || own.min > f->max_length) return grammar_nothing(s->b);
    if (own.min < f->min_length || own.max > f->max_length) {
        if (!repeat) {
            schema_refuse(s, of, keyword,
                          "is supported beside minLength and maxLength if its own lengths lie "
                          "between them, or as ^[...]*$");
            return out;
        }
        const struct pattern_node *class = repeat->part[0];
        uint32_t min = repeat->min > f->min_length ? repeat->min : f->min_length;
        uint32_t max = repeat->max < f->max_length ? repeat->max : f->max_length;
        return grammar_repeat(s->b, s->text.spell(s->b, class->range, class->n), min, max);
    }
    if (pattern_expr(regex, true, s->text.spell, s->b, &out, &error) != OB_OK) {
        if (error.status == OB_ERR_MEMORY) schema_out_of_memory(s);
        else schema_refuse(s, of, keyword, "%s", error.message);
    }
    return out;
}

/* "^(?:" format ")$" */
static const struct pattern *format_regex(struct json_schema *s, const struct facts *f) {
    const char *text = schema_format(s, f->format_of, json_string_value(f->format));
    char *whole = text ? arena_printf(&s->arena, "^(?:%s)$", text) : NULL;
    if (!whole) {
        schema_out_of_memory(s);
        return NULL;
    }
    return schema_regex_of(s, f->format_of, "format", str_of(whole));
}

grammar_expr string_inside(struct json_schema *s, const struct facts *f) {
    const struct pattern *regex = NULL;
    if (f->min_length > f->max_length) return grammar_nothing(s->b);
    if (f->pattern && f->format) {
        schema_refuse(s, f->format_of, "format", "is not supported beside \"pattern\"");
        return grammar_nothing(s->b);
    }
    if (f->pattern)
        regex = schema_regex_of(s, f->pattern_of, "pattern",
                                (struct str){json_string_value(f->pattern),
                                             json_string_length(f->pattern)});
    else if (f->format) regex = format_regex(s, f);
    else
        return grammar_repeat(s->b, s->text.character, f->min_length, f->max_length);
    if (!regex) return grammar_nothing(s->b);
    return with_lengths(s, f, regex, f->pattern ? f->pattern_of : f->format_of,
                        f->pattern ? "pattern" : "format");
}

grammar_expr string_expr(struct json_schema *s, const struct facts *f) {
    if (!f->pattern && !f->format && f->min_length == 0 && f->max_length == GRAMMAR_NO_LIMIT)
        return s->text.string;
    return json_quoted(&s->text, string_inside(s, f));
}
