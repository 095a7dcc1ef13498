/* SPDX-License-Identifier: Apache-2.0
 * json_facts.c: the keywords of a set folded into one; see json_schema.h. Branches of anyOf and
 * oneOf that are not in the set are left out, so facts say no less than what is valid. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/schema/json_schema.h"

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {
    {"array", T_ARRAY},   {"boolean", T_BOOLEAN}, {"integer", T_INTEGER}, {"null", T_NULL},
    {"number", T_NUMBER}, {"object", T_OBJECT},   {"string", T_STRING},
};

static unsigned type_named(struct json_schema *s, const json_t *schema, const json_t *name) {
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++)
        if (json_is_string(name) && strcmp(json_string_value(name), type_names[i].name) == 0)
            return type_names[i].types;
    schema_refuse(s, schema, "type", json_is_string(name) ? "there is no type \"%.100s\""
                                                          : "must be a name or a list of names",
                  json_string_value(name));
    return 0;
}

unsigned schema_types(struct json_schema *s, const json_t *schema) {
    const json_t *type = schema_get(schema, "type");
    unsigned out = 0;
    size_t i;
    json_t *one;
    if (!type) return T_ALL;
    if (!json_is_array(type)) return type_named(s, schema, type);
    json_array_foreach(type, i, one) out |= type_named(s, schema, one);
    return out;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const json_t *number_of(struct json_schema *s, const json_t *schema, const char *keyword) {
    const json_t *value = schema_get(schema, keyword);
    if (!value || json_is_number(value)) return value;
    schema_refuse(s, schema, keyword, "must be a number");
    return NULL;
}

/* Exact also for integers past 2^53 where long double is longer than double. */
static long double value_of(const json_t *number) {
    return json_is_integer(number) ? (long double)json_integer_value(number)
                                   : (long double)json_real_value(number);
}

static void fold_bound(const json_t *value, bool open, bool lower, struct json_range *r) {
    const json_t **bound = lower ? &r->min : &r->max;
    bool *is_open = lower ? &r->above_min : &r->below_max;
    if (!value) return;
    long double x = value_of(value), now = *bound ? value_of(*bound) : 0;
    if (*bound && (lower ? x < now : x > now)) return;
    if (*bound && x == now) open |= *is_open;
    *bound = value;
    *is_open = open;
}

uint32_t schema_count(struct json_schema *s, const json_t *schema, const char *keyword,
                      uint32_t otherwise) {
    const json_t *value = number_of(s, schema, keyword);
    double x = json_number_value(value);
    if (!value) return otherwise;
    if (x < 0 || x != floor(x)) {
        schema_refuse(s, schema, keyword, "must be a whole number, 0 or more");
        return otherwise;
    }
    return x < GRAMMAR_NO_LIMIT ? (uint32_t)x : GRAMMAR_NO_LIMIT;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void fold_multiple(struct json_schema *s, const json_t *schema, struct json_range *r) {
    const json_t *value = number_of(s, schema, "multipleOf");
    double x = json_number_value(value);
    if (!value) return;
    if (!(x > 0)) {
        schema_refuse(s, schema, "multipleOf", "must be greater than 0");
    } else if (x != floor(x) || x > 1e15) {
        schema_refuse(s, schema, "multipleOf", "only whole numbers up to 10^15 are supported");
    } else {
        int64_t m = (int64_t)x, now = r->multiple ? r->multiple : 1;
        m /= common_divisor(now, m);
        if (m > INT64_C(1000000000000000) / now)
            schema_refuse(s, schema, "multipleOf", "the common multiple is too large");
        else r->multiple = now * m;
    }
}

static void fold_number(struct json_schema *s, const json_t *schema, struct facts *f) {
    fold_bound(number_of(s, schema, "minimum"), false, true, &f->number);
    fold_bound(number_of(s, schema, "exclusiveMinimum"), true, true, &f->number);
    fold_bound(number_of(s, schema, "maximum"), false, false, &f->number);
    fold_bound(number_of(s, schema, "exclusiveMaximum"), true, false, &f->number);
    fold_multiple(s, schema, &f->number);
    if (schema_get(schema, "minimum") || schema_get(schema, "maximum") ||
        schema_get(schema, "exclusiveMinimum") || schema_get(schema, "exclusiveMaximum") ||
        schema_get(schema, "multipleOf"))
        f->number_of = schema;
}

/* ---- strings --------------------------------------------------------------------------------- */

static void fold_text(struct json_schema *s, const json_t *schema, const char *keyword,
                      const json_t **text, const json_t **of) {
    const json_t *value = schema_get(schema, keyword);
    if (!value) return;
    if (!json_is_string(value)) schema_refuse(s, schema, keyword, "must be a string");
    else if (*text && !json_equal(value, *text))
        schema_refuse(s, schema, keyword, "two different ones for one string are not supported");
    if (s->status != OB_OK) return;
    *text = value;
    *of = schema;
}

static void fold_string(struct json_schema *s, const json_t *schema, struct facts *f) {
    uint32_t min = schema_count(s, schema, "minLength", 0);
    uint32_t max = schema_count(s, schema, "maxLength", GRAMMAR_NO_LIMIT);
    if (min > f->min_length) f->min_length = min;
    if (max < f->max_length) f->max_length = max;
    if (schema_get(schema, "minLength") || schema_get(schema, "maxLength")) f->length_of = schema;
    fold_text(s, schema, "pattern", &f->pattern, &f->pattern_of);
    const json_t *format = schema_get(schema, "format");
    if (format && !json_is_string(format)) schema_refuse(s, schema, "format", "must be a string");
    if (format && s->status == OB_OK && schema_format(s, schema, json_string_value(format)))
        fold_text(s, schema, "format", &f->format, &f->format_of);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void fold_counts(struct json_schema *s, const json_t *schema, struct facts *f) {
    uint32_t min = schema_count(s, schema, "minItems", 0);
    uint32_t max = schema_count(s, schema, "maxItems", GRAMMAR_NO_LIMIT);
    if (min > f->min_items) f->min_items = min;
    if (max < f->max_items) f->max_items = max;
    min = schema_count(s, schema, "minProperties", 0);
    max = schema_count(s, schema, "maxProperties", GRAMMAR_NO_LIMIT);
    if (min > f->min_members) f->min_members = min;
    if (max < f->max_members) f->max_members = max;
    if (schema_get(schema, "minProperties") || schema_get(schema, "maxProperties"))
        f->members_of = schema;
}

void facts_read(struct json_schema *s, const struct set *set, struct facts *out) {
    *out = (struct facts){.types = set->never ? 0 : T_ALL, .max_length = GRAMMAR_NO_LIMIT,
                          .max_items = GRAMMAR_NO_LIMIT, .max_members = GRAMMAR_NO_LIMIT};
    for (uint32_t i = 0; i < set->n && schema_works(s, 8); i++) {
        const json_t *schema = set->item[i].schema;
        out->types &= schema_types(s, schema);
        fold_number(s, schema, out);
        fold_string(s, schema, out);
        fold_counts(s, schema, out);
    }
    /* The multiples of whole numbers are whole. */
    if (out->number.multiple) out->types &= ~(unsigned)T_FRACTION;
    out->number.integer = !(out->types & T_FRACTION);
    if (s->status != OB_OK) out->types = 0;
}
