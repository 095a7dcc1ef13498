/* SPDX-License-Identifier: Apache-2.0
 * json_set.c: sets of schemas that hold together; see json_schema.h. */
#include <stdlib.h>

#include "base/error.h"
#include "sample/schema/json_schema.h"

const json_t *schema_get(const json_t *schema, const char *keyword) {
    return json_object_get(schema, keyword);
}

/* ---- keywords -------------------------------------------------------------------------------- */

enum what { READ, NOTE, REFUSED };
#define KIND_read READ
#define KIND_note NOTE
#define KIND_refused REFUSED
static const struct keyword {
    const char *name;
    enum what what;
} keywords[] = {
#define KEYWORD(name, what) {name, KIND_##what},
#include "sample/schema/json_keywords.def"
#undef KEYWORD
};

static int by_name(const void *name, const void *keyword) {
    return strcmp(name, ((const struct keyword *)keyword)->name);
}

static bool has_parts(const json_t *schema) {
    return schema_get(schema, "$ref") || schema_get(schema, "allOf") ||
           schema_get(schema, "anyOf") || schema_get(schema, "oneOf");
}

/* What the readers of these keywords rely on. */
static void check_kinds(struct json_schema *s, const json_t *schema) {
    static const struct {
        const char *name;
        json_type type;
        const char *what;
    } kinds[] = {
        {"enum", JSON_ARRAY, "must be a list of values"},
        {"patternProperties", JSON_OBJECT, "must be an object of schemas"},
        {"prefixItems", JSON_ARRAY, "must be a list of schemas"},
        {"properties", JSON_OBJECT, "must be an object of schemas"},
        {"required", JSON_ARRAY, "must be a list of names"},
    };
    size_t i;
    json_t *name;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const json_t *value = schema_get(schema, kinds[i].name);
        if (value && json_typeof(value) != kinds[i].type)
            schema_refuse(s, schema, kinds[i].name, "%s", kinds[i].what);
    }
    json_array_foreach(schema_get(schema, "required"), i, name)
        if (!json_is_string(name))
            schema_refuse(s, schema, "required", "must be a list of names");
}

/* Keywords that count in some company only. */
static void check_special(struct json_schema *s, const json_t *schema) {
    check_kinds(s, schema);
    const json_t *unique = schema_get(schema, "uniqueItems");
    const json_t *items = schema_get(schema, "items");
    if (unique && !json_is_boolean(unique))
        schema_refuse(s, schema, "uniqueItems", "must be true or false");
    if (json_is_true(unique) && schema_count(s, schema, "maxItems", 2) > 1)
        schema_refuse(s, schema, "uniqueItems",
                      "is not supported, as what was written before would have to be remembered");
    if (json_is_array(items))
        schema_refuse(s, schema, "items", "must be a schema; a list of schemas is \"prefixItems\"");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "unevaluatedItems" : "unevaluatedProperties";
        const char *known = i ? "items" : "additionalProperties";
        const json_t *value = schema_get(schema, name);
        if (value && !json_is_true(value) && !schema_get(schema, known) && has_parts(schema))
            schema_refuse(s, schema, name,
                          "is not supported beside $ref, allOf, anyOf or oneOf");
    }
    if (schema != s->root && schema_get(schema, "$id"))
        schema_refuse(s, schema, "$id", "is supported at the root only");
}

static void check_keywords(struct json_schema *s, const json_t *schema) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, name, value) {
        const struct keyword *k = bsearch(name, keywords, sizeof keywords / sizeof keywords[0],
                                          sizeof keywords[0], by_name);
        if (!k && strncmp(name, "x-", 2) != 0)
            schema_refuse(s, schema, name, "this keyword is not known");
        if (k && k->what == REFUSED)
            schema_refuse(s, schema, name, "this keyword is not supported");
    }
    check_special(s, schema);
}

/* ---- schemas that refer to themselves -------------------------------------------------------- */

enum { BEING_READ = 1, ENDS = 2 };

static bool ends(struct json_schema *s, const json_t *schema, unsigned depth);

static bool list_ends(struct json_schema *s, const json_t *list, unsigned depth) {
    size_t i;
    json_t *branch;
    json_array_foreach(list, i, branch)
        if (!ends(s, branch, depth)) return false;
    return true;
}

/* Whether $ref, allOf, anyOf and oneOf come to an end without reading anything. */
static bool ends(struct json_schema *s, const json_t *schema, unsigned depth) {
    struct str key = {(const char *)(const void *)&schema, sizeof schema};
    if (!json_is_object(schema) || !has_parts(schema)) return true;
    uint32_t *color = table_find(&s->colors, key);
    if (color && *color == ENDS) return true;
    if (color || depth > SCHEMA_NESTED)
        return schema_refuse(s, schema, NULL, "%s",
                             color ? "this schema refers to itself before it reads anything"
                                   : "references go too deep here");
    if (!schema_works(s, 1)) return false;
    if (!table_add(&s->colors, &s->arena, key, BEING_READ)) return schema_out_of_memory(s);
    const json_t *ref = schema_get(schema, "$ref") ? schema_resolve(s, schema) : NULL;
    if (s->status != OB_OK || (ref && !ends(s, ref, depth + 1)) ||
        !list_ends(s, schema_get(schema, "allOf"), depth + 1) ||
        !list_ends(s, schema_get(schema, "anyOf"), depth + 1) ||
        !list_ends(s, schema_get(schema, "oneOf"), depth + 1))
        return false;
    *table_find(&s->colors, key) = ENDS;
    return true;
}

/* ---- sets ------------------------------------------------------------------------------------ */

struct set set_copy(struct json_schema *s, const struct set *from) {
    uint32_t cap = from->n + 3;
    struct set out = {.item = arena_array(&s->arena, cap, sizeof *out.item), .cap = cap,
                      .never = from->never};
    if (!out.item) {
        schema_out_of_memory(s);
        return (struct set){.never = true};
    }
    if (from->n) memcpy(out.item, from->item, from->n * sizeof *out.item);
    out.n = from->n;
    return out;
}

static bool grow(struct json_schema *s, struct set *set) {
    struct set_item *more = arena_array(&s->arena, 2 * (size_t)set->cap + 2, sizeof *more);
    if (!more) return schema_out_of_memory(s);
    if (set->n) memcpy(more, set->item, set->n * sizeof *more);
    set->item = more;
    set->cap = 2 * set->cap + 2;
    return true;
}

/* One schema, not what it names. */
static void add_one(struct json_schema *s, struct set *set, const json_t *schema) {
    if (json_is_true(schema) || set->never || !schema_works(s, set->n + 1)) return;
    if (json_is_false(schema)) set->never = true;
    else if (!json_is_object(schema))
        schema_refuse(s, schema, NULL, "a schema must be an object, true or false");
    if (!json_is_object(schema) || json_object_size(schema) == 0) return;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->item[i].schema == schema) return;
    if (set->n == SCHEMA_TOGETHER) {
        s->status = error_set(s->error, OB_ERR_LIMIT,
                              "the JSON schema is too large: more than %d schemas hold together",
                              SCHEMA_TOGETHER);
        return;
    }
    schema_works(s, json_object_size(schema));
    check_keywords(s, schema);
    if (set->n == set->cap && !grow(s, set)) return;
    set->item[set->n++] = (struct set_item){.schema = schema};
}

void set_add(struct json_schema *s, struct set *set, const json_t *schema) {
    uint32_t at = set->n;
    if (s->status != OB_OK || !ends(s, schema, 0)) {
        set->never = true;
        return;
    }
    add_one(s, set, schema);
    for (; at < set->n && s->status == OB_OK && !set->never; at++) {
        const json_t *one = set->item[at].schema, *all = schema_get(one, "allOf");
        size_t i;
        json_t *member;
        if (schema_get(one, "$ref")) {
            const json_t *named = schema_resolve(s, one);
            if (named) add_one(s, set, named);
        }
        if (all && !(json_is_array(all) && json_array_size(all)))
            schema_refuse(s, one, "allOf", "must be a list of schemas, not empty");
        json_array_foreach(all, i, member) add_one(s, set, member);
    }
    if (s->status != OB_OK) set->never = true;
}

struct set set_of(struct json_schema *s, const json_t *schema) {
    struct set none = {0}, out = set_copy(s, &none);
    if (!out.never) set_add(s, &out, schema);
    return out;
}

/* ---- parts of schemas ------------------------------------------------------------------------ */

const json_t *schema_require(struct json_schema *s, const char *name, bool present) {
    size_t i;
    json_t *made;
    if (!schema_works(s, 1 + json_array_size(s->made) / 8)) return NULL;
    json_array_foreach(s->made, i, made) {
        json_t *list = json_object_get(made, "required"), *one = json_array_get(list, 0);
        if (present ? one && strcmp(json_string_value(one), name) == 0
                    : !one && json_object_get(json_object_get(made, "properties"), name) != NULL)
            return made;
    }
    made = present ? json_pack("{s:[s]}", "required", name)
                   : json_pack("{s:{s:b}}", "properties", name, 0);
    if (!made || json_array_append_new(s->made, made) != 0) {
        schema_out_of_memory(s);
        return NULL;
    }
    return made;
}

bool schema_is_ours(const struct json_schema *s, const json_t *schema) {
    size_t i;
    json_t *made;
    json_array_foreach(s->made, i, made)
        if (made == schema) return true;
    return false;
}

const json_t *schema_additional(const json_t *schema) {
    const json_t *additional = schema_get(schema, "additionalProperties");
    if (!additional) additional = schema_get(schema, "unevaluatedProperties");
    return additional;
}

const json_t *schema_items(const json_t *schema) {
    const json_t *items = schema_get(schema, "items");
    if (!items) items = schema_get(schema, "unevaluatedItems");
    return items;
}

const struct pattern *schema_regex_of(struct json_schema *s, const json_t *schema,
                                    const char *keyword, struct str pattern) {
    uint32_t *known = table_find(&s->regexes, pattern);
    ob_error error;
    if (known) return ((struct pattern **)s->regex.p)[*known];
    if (s->status != OB_OK || !schema_works(s, 64 + pattern.n)) return NULL;
    struct pattern *regex = calloc(1, sizeof *regex);
    if (!regex) {
        schema_out_of_memory(s);
        return NULL;
    }
    if (pattern_read(pattern, regex, &error) != OB_OK) {
        free(regex);
        schema_refuse(s, schema, keyword, "%s", error.message);
        return NULL;
    }
    schema_works(s, (uint64_t)regex->scans * 40000);
    uint32_t index = (uint32_t)s->regex.n;
    *(struct pattern **)list_add(&s->regex) = regex;
    if (s->regex.failed) {
        pattern_free(regex);
        free(regex);
        schema_out_of_memory(s);
        return NULL;
    }
    if (!table_add(&s->regexes, &s->arena, pattern, index)) schema_out_of_memory(s);
    return regex;
}
