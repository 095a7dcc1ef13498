/* SPDX-License-Identifier: Apache-2.0
 * json_schema.c: a JSON schema to a grammar: sets of schemas become rules, one after the other from
 * a queue; see json_schema.h. */
#include "sample/schema/json_schema.h"

#include <stdlib.h>

#include "base/error.h"

struct pending {
    struct set set;
    grammar_rule rule;
};

/* ---- one set --------------------------------------------------------------------------------- */

/* The first schema that has branches of which none is in the set. */
static bool find_choice(const struct set *set, uint32_t *at, const char **keyword) {
    for (*at = 0; *at < set->n; ++*at) {
        const struct set_item *item = &set->item[*at];
        *keyword = "anyOf";
        if (!item->any_done && schema_get(item->schema, *keyword)) return true;
        *keyword = "oneOf";
        if (!item->one_done && schema_get(item->schema, *keyword)) return true;
    }
    return false;
}

static grammar_expr choice(struct json_schema *s, const struct set *set, uint32_t at,
                           const char *keyword) {
    const json_t *list = schema_get(set->item[at].schema, keyword);
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    bool any = strcmp(keyword, "anyOf") == 0;
    if (!json_is_array(list) || json_array_size(list) == 0)
        schema_refuse(s, set->item[at].schema, keyword, "must be a list of schemas, not empty");
    for (size_t i = 0; i < json_array_size(list) && schema_works(s, 1); i++) {
        struct set branch = any ? set_copy(s, set) : one_of_branch(s, set, at, i);
        if (any && branch.n > at) branch.item[at].any_done = true;
        if (any) set_add(s, &branch, json_array_get(list, i));
        *(grammar_expr *)list_add(&parts) = set_use(s, &branch);
    }
    grammar_expr out = parts.n ? grammar_alt(s->b, parts.p, parts.n) : grammar_nothing(s->b);
    if (parts.failed) schema_out_of_memory(s);
    list_free(&parts);
    return out;
}

static grammar_expr values_expr(struct json_schema *s, const struct set *set,
                                const json_t *values) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        s->value_at = i;
        enum valid valid = set_valid(s, set, value);
        if (valid == VALID_UNKNOWN)
            schema_refuse(s, set->item[0].schema, NULL,
                          "whether value %zu of an enum is valid for the other keywords here "
                          "cannot be decided", i);
        if (s->status != OB_OK) break;
        if (valid == VALID_NO) continue;
        grammar_expr e = json_constant(&s->text, value);
        if (!e && !grammar_builder_failed(s->b))
            schema_refuse(s, set->item[0].schema, NULL, "a value of an enum is nested too deep");
        if (e) *(grammar_expr *)list_add(&parts) = e;
    }
    if (parts.failed) schema_out_of_memory(s);
    grammar_expr out = parts.n ? grammar_alt(s->b, parts.p, parts.n) : grammar_nothing(s->b);
    list_free(&parts);
    return out;
}

static grammar_expr number_expr(struct json_schema *s, const struct facts *f) {
    ob_error error;
    grammar_expr out = 0;
    if (json_number_expr(&s->text, &f->number, &out, &error) != OB_OK)
        schema_refuse(s, f->number_of, NULL, "%s", error.message);
    return out;
}

/* Everything that is valid, type by type. */
static grammar_expr types_expr(struct json_schema *s, const struct set *set) {
    struct facts f;
    grammar_expr part[8];
    size_t n = 0;
    facts_read(s, set, &f);
    if (f.types & T_OBJECT) part[n++] = object_expr(s, set, &f);
    if (f.types & T_ARRAY) part[n++] = array_expr(s, set, &f);
    if (f.types & T_STRING) part[n++] = string_expr(s, &f);
    if (f.types & T_NUMBER) part[n++] = number_expr(s, &f);
    if (f.types & T_BOOLEAN) {
        part[n++] = json_truth(&s->text, 't');
        part[n++] = json_truth(&s->text, 'f');
    }
    if (f.types & T_NULL) part[n++] = json_truth(&s->text, 'n');
    if (s->status != OB_OK || n == 0) return grammar_nothing(s->b);
    return grammar_alt(s->b, part, n);
}

static grammar_expr set_expr(struct json_schema *s, const struct set *set) {
    uint32_t at;
    const char *keyword;
    json_t *single;
    const json_t *values = set_values(set, &single);
    grammar_expr out;
    if (values) out = values_expr(s, set, values);
    else if (find_choice(set, &at, &keyword)) out = choice(s, set, at, keyword);
    else out = types_expr(s, set);
    json_decref(single);
    return out;
}

/* ---- all sets -------------------------------------------------------------------------------- */

/* The schemas' addresses, with their flags in the bits that alignment leaves free. */
static struct str key_of(struct json_schema *s, const struct set *set) {
    uintptr_t *key = arena_array(&s->arena, set->n, sizeof *key);
    if (!key) {
        schema_out_of_memory(s);
        return (struct str){0};
    }
    for (uint32_t i = 0; i < set->n; i++)
        key[i] = (uintptr_t)set->item[i].schema + set->item[i].any_done +
                 2u * set->item[i].one_done;
    return (struct str){(const char *)key, set->n * sizeof *key};
}

grammar_expr set_use(struct json_schema *s, const struct set *set) {
    if (s->status != OB_OK || set->never) return grammar_nothing(s->b);
    if (set->n == 0) return s->text.value;
    struct str key = key_of(s, set);
    if (!key.p || !schema_works(s, set->n)) return grammar_nothing(s->b);
    uint32_t *known = table_find(&s->memo, key);
    if (known) return grammar_use(s->b, *known);
    if (s->queue.n == SCHEMA_SETS) {
        s->status = error_set(s->error, OB_ERR_LIMIT,
                              "the JSON schema is too large: it makes more than %d rules",
                              SCHEMA_SETS);
        return grammar_nothing(s->b);
    }
    grammar_rule rule = grammar_rule_new(s->b, "a JSON schema");
    struct pending *p = list_add(&s->queue);
    *p = (struct pending){*set, rule};
    if (s->queue.failed || !table_add(&s->memo, &s->arena, key, rule)) schema_out_of_memory(s);
    return grammar_use(s->b, rule);
}

static void write_rules(struct json_schema *s) {
    while (s->written < s->queue.n && s->status == OB_OK && !grammar_builder_failed(s->b)) {
        struct pending p = ((struct pending *)s->queue.p)[s->written++];
        grammar_define(s->b, p.rule, set_expr(s, &p.set));
    }
}

static void close(struct json_schema *s) {
    struct pattern **regex = s->regex.p;
    for (size_t i = 0; i < s->regex.n; i++) {
        pattern_free(regex[i]);
        free(regex[i]);
    }
    list_free(&s->regex);
    list_free(&s->queue);
    table_free(&s->memo);
    table_free(&s->colors);
    table_free(&s->regexes);
    json_decref(s->made);
    arena_free(&s->arena);
}

ob_status schema_json_expr(struct grammar_builder *b, const json_t *schema,
                           const struct schema_options *options, grammar_expr *out,
                           ob_error *error) {
    struct json_schema s = {.root = options->root ? options->root : schema, .options = *options,
                            .b = b, .error = error,
                            .regex = LIST_INIT(sizeof(struct pattern *)),
                            .queue = LIST_INIT(sizeof(struct pending)), .made = json_array()};
    *out = 0;
    if (!json_is_object(schema) && !json_is_boolean(schema))
        schema_refuse(&s, NULL, NULL, "a schema must be an object, true or false");
    s.no_object = json_pack("{s:[s,s,s,s,s]}", "type", "null", "boolean", "number", "string",
                            "array");
    if (!s.made || json_array_append_new(s.made, s.no_object) != 0) schema_out_of_memory(&s);
    if (s.status == OB_OK) {
        json_text_init(&s.text, b, options);
        struct set root = set_of(&s, schema);
        json_t *narrow = options->type ? json_pack("{s:s}", "type", options->type) : NULL;
        if (options->type && json_array_append_new(s.made, narrow) != 0) schema_out_of_memory(&s);
        else if (narrow) set_add(&s, &root, narrow);
        grammar_expr value = set_use(&s, &root);
        write_rules(&s);
        if (s.text.failed) schema_out_of_memory(&s);
        *out = value;
    }
    ob_status status = s.status;
    close(&s);
    return status;
}

ob_status schema_json(const json_t *schema, const struct schema_options *options,
                      struct grammar **out, ob_error *error) {
    grammar_expr body;
    *out = NULL;
    struct grammar_builder *b = grammar_builder_new();
    if (!b) return error_memory(error, "a grammar", 0);
    ob_status s = schema_json_expr(b, schema, options, &body, error);
    if (s == OB_OK) {
        grammar_rule root = grammar_rule_new(b, "the JSON schema");
        grammar_define(b, root, body);
        s = grammar_finish(b, root, out, error);
    }
    grammar_builder_free(&b);
    return s;
}
