/* SPDX-License-Identifier: Apache-2.0
 * json_valid.c: whether a known value is valid: an enum's values next to other keywords, branches
 * of oneOf that hold such values, names of properties. What it cannot decide it says. */
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "sample/schema/json_schema.h"

static enum valid both(enum valid a, enum valid b) {
    if (a == VALID_NO || b == VALID_NO) return VALID_NO;
    return a == VALID_YES && b == VALID_YES ? VALID_YES : VALID_UNKNOWN;
}
static enum valid known(bool valid) { return valid ? VALID_YES : VALID_NO; }

/* Numbers are equal by value. */
static bool same(const json_t *a, const json_t *b) {
    size_t i;
    const char *name;
    json_t *item;
    if (json_is_number(a) && json_is_number(b)) {
        if (json_is_integer(a) && json_is_integer(b))
            return json_integer_value(a) == json_integer_value(b);
        return json_number_value(a) == json_number_value(b);
    }
    if (!a || !b || json_typeof(a) != json_typeof(b)) return false;
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b)) return false;
        json_array_foreach(a, i, item)
            if (!same(item, json_array_get(b, i))) return false;
        return true;
    }
    if (!json_is_object(a)) return json_equal(a, b);
    if (json_object_size(a) != json_object_size(b)) return false;
    json_object_foreach((json_t *)(uintptr_t)a, name, item)
        if (!same(item, json_object_get(b, name))) return false;
    return true;
}

static unsigned type_of(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_NULL: return T_NULL;
    case JSON_TRUE: case JSON_FALSE: return T_BOOLEAN;
    case JSON_INTEGER: return T_INTEGER;
    case JSON_REAL:
        return json_real_value(v) == floor(json_real_value(v)) ? T_INTEGER : T_FRACTION;
    case JSON_STRING: return T_STRING;
    case JSON_ARRAY: return T_ARRAY;
    default: return T_OBJECT;
    }
}

/* ---- by type --------------------------------------------------------------------------------- */

static enum valid valid_number(const struct facts *f, const json_t *v) {
    const struct json_range *r = &f->number;
    double x = json_number_value(v), min = json_number_value(r->min),
           max = json_number_value(r->max);
    if (r->min && (x < min || (r->above_min && x == min))) return VALID_NO;
    if (r->max && (x > max || (r->below_max && x == max))) return VALID_NO;
    return known(!r->multiple || fmod(x, (double)r->multiple) == 0);
}

static enum valid valid_string(struct json_schema *s, const struct facts *f, const json_t *v) {
    struct str text = {json_string_value(v), json_string_length(v)};
    uint64_t n = 0;
    bool unknown = false;
    for (size_t i = 0; i < text.n; i++) n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    if (n < f->min_length || n > f->max_length) return VALID_NO;
    if (f->pattern) {
        struct str pattern = {json_string_value(f->pattern), json_string_length(f->pattern)};
        const struct pattern *regex = schema_regex_of(s, f->pattern_of, "pattern", pattern);
        if (!regex || !schema_works(s, 1000)) return VALID_UNKNOWN;
        bool matches = pattern_matches(regex, text, &unknown);
        if (!matches && !unknown) return VALID_NO;
    }
    /* What is written for a format is less than what is valid for it. */
    return unknown || f->format ? VALID_UNKNOWN : VALID_YES;
}

static enum valid valid_array(struct json_schema *s, const json_t *schema, const struct facts *f,
                              const json_t *v, unsigned depth) {
    const json_t *prefix = schema_get(schema, "prefixItems"), *items = schema_items(schema);
    size_t i, n = json_array_size(v);
    enum valid out = known(n >= f->min_items && n <= f->max_items);
    json_t *item;
    json_array_foreach(v, i, item) {
        const json_t *one = json_array_get(prefix, i);
        if (!one) one = items;
        if (one && out != VALID_NO) out = both(out, schema_valid(s, one, item, depth));
    }
    return out;
}

static enum valid valid_object(struct json_schema *s, const json_t *schema, const struct facts *f,
                               const json_t *v, unsigned depth) {
    struct set_item item = {.schema = schema};
    struct set set = {.item = &item, .n = 1};
    enum valid out =
        known(json_object_size(v) >= f->min_members && json_object_size(v) <= f->max_members);
    const char *name;
    json_t *one;
    size_t i;
    json_array_foreach(schema_get(schema, "required"), i, one)
        if (!json_object_get(v, json_string_value(one))) return VALID_NO;
    json_object_foreach((json_t *)(uintptr_t)v, name, one) {
        struct set member = object_member(s, &set, name);
        if (member.never) return s->status == OB_OK ? VALID_NO : VALID_UNKNOWN;
        for (uint32_t k = 0; k < member.n && out != VALID_NO; k++)
            out = both(out, schema_valid(s, member.item[k].schema, one, depth));
    }
    return out;
}

/* ---- together -------------------------------------------------------------------------------- */

static bool among(struct json_schema *s, const json_t *list, const json_t *v) {
    size_t i;
    json_t *one;
    if (json_array_get(list, s->value_at) == v) return true;
    if (!schema_works(s, 1 + json_array_size(list) / 16)) return false;
    json_array_foreach(list, i, one)
        if (same(one, v)) return true;
    return false;
}

/* How many branches hold: all for allOf, one at least for anyOf, exactly one for oneOf. */
static enum valid valid_branches(struct json_schema *s, const json_t *schema, const json_t *v,
                                 unsigned depth) {
    static const char *const names[] = {"allOf", "anyOf", "oneOf"};
    enum valid out = VALID_YES;
    for (int k = 0; k < 3 && out != VALID_NO; k++) {
        const json_t *list = schema_get(schema, names[k]);
        size_t i, count[3] = {0}, n = json_array_size(list);
        json_t *branch;
        if (!list) continue;
        json_array_foreach(list, i, branch) count[schema_valid(s, branch, v, depth)]++;
        size_t yes = count[VALID_YES], maybe = count[VALID_UNKNOWN];
        bool can = k == 0 ? yes + maybe == n : yes + maybe > 0 && (k == 1 || yes < 2);
        bool must = k == 0 ? yes == n : k == 1 ? yes > 0 : yes == 1 && maybe == 0;
        out = both(out, must ? VALID_YES : can ? VALID_UNKNOWN : VALID_NO);
    }
    return out;
}

static enum valid valid_keywords(struct json_schema *s, const json_t *schema, const json_t *v,
                                 unsigned depth) {
    struct facts f;
    struct set_item item = {.schema = schema};
    struct set set = {.item = &item, .n = 1};
    const json_t *values = schema_get(schema, "enum"), *constant = schema_get(schema, "const");
    facts_read(s, &set, &f);
    if (s->status != OB_OK) return VALID_UNKNOWN;
    unsigned type = type_of(v);
    /* facts leave fractions out for multipleOf, which valid_number asks about itself */
    if (!(schema_types(s, schema) & type)) return VALID_NO;
    if ((values && !among(s, values, v)) || (constant && !same(constant, v))) return VALID_NO;
    if (type & T_NUMBER) return valid_number(&f, v);
    if (type & T_STRING) return valid_string(s, &f, v);
    if (type & T_ARRAY) return valid_array(s, schema, &f, v, depth + 1);
    if (type & T_OBJECT) return valid_object(s, schema, &f, v, depth + 1);
    return VALID_YES;
}

enum valid schema_valid(struct json_schema *s, const json_t *schema, const json_t *value,
                        unsigned depth) {
    struct set none = {0}, checked = set_copy(s, &none);
    if (json_is_boolean(schema)) return known(json_is_true(schema));
    if (depth > SCHEMA_DEPTH || !schema_works(s, 16)) return VALID_UNKNOWN;
    set_add(s, &checked, schema); /* checks its keywords, follows $ref and allOf */
    if (s->status != OB_OK) return VALID_UNKNOWN;
    enum valid out = known(!checked.never);
    for (uint32_t i = 0; i < checked.n && out != VALID_NO; i++) {
        const json_t *one = checked.item[i].schema;
        out = both(out, valid_keywords(s, one, value, depth));
        if (out != VALID_NO) out = both(out, valid_branches(s, one, value, depth + 1));
    }
    return out;
}

enum valid set_valid(struct json_schema *s, const struct set *set, const json_t *value) {
    enum valid out = known(!set->never);
    for (uint32_t i = 0; i < set->n && out != VALID_NO; i++)
        out = both(out, schema_valid(s, set->item[i].schema, value, 0));
    return out;
}

bool set_may_hold(struct json_schema *s, const struct set *set, const json_t *value) {
    enum valid out = known(!set->never);
    for (uint32_t i = 0; i < set->n && out != VALID_NO; i++)
        out = both(out, valid_keywords(s, set->item[i].schema, value, 0));
    return out != VALID_NO;
}

const json_t *set_values(const struct set *set, json_t **single) {
    *single = NULL;
    for (uint32_t i = 0; i < set->n; i++) {
        json_t *constant = json_object_get(set->item[i].schema, "const");
        if (constant) return *single = json_pack("[O]", constant);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        const json_t *values = schema_get(set->item[i].schema, "enum");
        if (values) return values;
    }
    return NULL;
}
