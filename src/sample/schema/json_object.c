/* SPDX-License-Identifier: Apache-2.0
 *
 * json_object.c: objects. Members with names come first, in the schema's order (properties, then
 * what is required besides), then those with other names. No name comes twice with two meanings:
 * other names differ from those listed. See json_schema.h. */
#include <stdlib.h>

#include "sample/schema/json_schema.h"

struct member {
    const char *name;
    grammar_expr expr;
    bool required;
};

struct object {
    struct json_schema *s;
    const struct set *set;
    const struct facts *facts;
    struct list members; /* struct member: of all names that schemas list */
    size_t listed;       /* the first of them, which may be there */
    uint32_t required;
    bool never;
    grammar_expr other;  /* a member with another name; 0: there are none */
    uint32_t other_max;
};

/* ---- what the schemas say of names ----------------------------------------------------------- */

/* Whether one of the schema's patterns matches the name; their schemas are added to `out`. */
static bool add_by_pattern(struct json_schema *s, const json_t *schema, const char *name,
                           struct set *out) {
    const char *pattern;
    json_t *value;
    bool any = false, unknown;
    const json_t *patterns = schema_get(schema, "patternProperties");
    json_object_foreach((json_t *)(uintptr_t)patterns, pattern, value) {
        const struct pattern *regex =
            schema_regex_of(s, schema, "patternProperties", str_of(pattern));
        if (!regex || !schema_works(s, 1000)) break;
        if (pattern_matches(regex, str_of(name), &unknown)) {
            any = true;
            set_add(s, out, value);
        }
        if (unknown)
            schema_refuse(s, schema, "patternProperties", "matching \"%.60s\" takes too long",
                          name);
    }
    return any;
}

/* propertyNames of a listed name: a schema of the name itself. */
static void add_names(struct json_schema *s, const json_t *schema, const char *name,
                      struct set *out) {
    const json_t *names = schema_get(schema, "propertyNames");
    json_t *text = names ? json_string(name) : NULL;
    if (names && !text) schema_out_of_memory(s);
    if (!text) return;
    enum valid valid = schema_valid(s, names, text, 0);
    json_decref(text);
    if (valid == VALID_NO) out->never = true;
    if (valid == VALID_UNKNOWN)
        schema_refuse(s, schema, "propertyNames", "cannot be decided for \"%.100s\"", name);
}

struct set object_member(struct json_schema *s, const struct set *set, const char *name) {
    struct set none = {0}, out = set_copy(s, &none);
    for (uint32_t i = 0; i < set->n && schema_works(s, 2); i++) {
        const json_t *schema = set->item[i].schema, *additional = schema_additional(schema);
        const json_t *one = json_object_get(schema_get(schema, "properties"), name);
        if (one) set_add(s, &out, one);
        bool matched = add_by_pattern(s, schema, name, &out);
        if (!one && !matched && additional) set_add(s, &out, additional);
        add_names(s, schema, name, &out);
    }
    if (s->status != OB_OK) out.never = true;
    return out;
}

bool object_is_required(const struct set *set, const char *name) {
    for (uint32_t i = 0; i < set->n; i++) {
        const json_t *list = schema_get(set->item[i].schema, "required");
        size_t k;
        json_t *one;
        json_array_foreach(list, k, one)
            if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) return true;
    }
    return false;
}

bool object_is_open(struct json_schema *s, const struct set *set) {
    bool said = false, listed = false;
    for (uint32_t i = 0; i < set->n; i++) {
        const json_t *schema = set->item[i].schema, *additional = schema_additional(schema);
        bool patterns = schema_get(schema, "patternProperties") != NULL;
        if (schema_is_ours(s, schema)) continue;
        if (json_is_false(additional) && !patterns) return false;
        said |= additional || patterns;
        listed |= schema_get(schema, "properties") && !patterns;
    }
    return said || !listed || s->options.open;
}

/* ---- members with names ---------------------------------------------------------------------- */

static void add_member(struct object *o, struct table *seen, const char *name, bool required) {
    struct json_schema *s = o->s;
    uint32_t *known = table_find(seen, str_of(name));
    struct member *member = known ? (struct member *)o->members.p + *known : NULL;
    if (!schema_works(s, 1)) return;
    if (!member) {
        if (!table_add(seen, &s->arena, str_of(name), (uint32_t)o->members.n))
            schema_out_of_memory(s);
        member = list_add(&o->members);
        *member = (struct member){.name = name};
        if (o->members.failed) schema_out_of_memory(s);
    }
    member->required |= required;
}

static void collect(struct object *o) {
    struct table seen = {0};
    const char *name;
    json_t *value;
    size_t k;
    for (uint32_t i = 0; i < o->set->n; i++) {
        const json_t *schema = o->set->item[i].schema, *list = schema_get(schema, "properties");
        json_object_foreach((json_t *)(uintptr_t)list, name, value)
            add_member(o, &seen, name, false);
    }
    for (uint32_t i = 0; i < o->set->n; i++) {
        const json_t *schema = o->set->item[i].schema, *list = schema_get(schema, "required");
        json_array_foreach(list, k, value) add_member(o, &seen, json_string_value(value), true);
    }
    table_free(&seen);
}

/* Their expressions; names that no value is valid for go to the end. */
static void write_members(struct object *o) {
    struct json_schema *s = o->s;
    struct member *m = o->members.p;
    for (size_t i = 0; i < o->members.n && s->status == OB_OK; i++) {
        struct set value = object_member(s, o->set, m[i].name);
        if (value.never) {
            o->never |= m[i].required;
            continue;
        }
        struct member swap = m[o->listed];
        m[o->listed] = m[i];
        m[i] = swap;
        struct member *to = &m[o->listed++];
        to->expr = grammar_seq(s->b, (const grammar_expr[]){
            json_name_text(&s->text, str_of(to->name)), s->text.colon, set_use(s, &value)}, 3);
        o->required += to->required;
    }
}

/* ---- members with other names ---------------------------------------------------------------- */

/* The only pattern of the set, or NULL. More than one would have to hold together. */
static const char *only_pattern(struct object *o, const json_t **of) {
    const char *found = NULL, *pattern;
    json_t *value;
    for (uint32_t i = 0; i < o->set->n; i++) {
        const json_t *schema = o->set->item[i].schema;
        const json_t *patterns = schema_get(schema, "patternProperties");
        json_object_foreach((json_t *)(uintptr_t)patterns, pattern, value) {
            if (found && strcmp(found, pattern) != 0)
                schema_refuse(o->s, schema, "patternProperties",
                              "more than one pattern for the names of one object is not supported");
            found = pattern;
            *of = schema;
        }
    }
    return found;
}

/* Values of other names: all schemas that have no word on names in particular. */
static struct set other_set(struct object *o, const char *pattern) {
    struct json_schema *s = o->s;
    struct set none = {0}, out = set_copy(s, &none);
    for (uint32_t i = 0; i < o->set->n; i++) {
        const json_t *schema = o->set->item[i].schema, *one = NULL;
        if (pattern) one = json_object_get(schema_get(schema, "patternProperties"), pattern);
        if (!one) one = schema_additional(schema);
        if (one) set_add(s, &out, one);
    }
    return out;
}

static grammar_expr names_of_pattern(struct object *o, const json_t *of, const char *pattern) {
    struct json_schema *s = o->s;
    grammar_expr out = grammar_nothing(s->b);
    ob_error error;
    bool unknown;
    const struct pattern *regex = schema_regex_of(s, of, "patternProperties", str_of(pattern));
    const struct member *m = o->members.p;
    for (size_t i = 0; regex && i < o->members.n; i++)
        if (pattern_matches(regex, str_of(m[i].name), &unknown) || unknown)
            schema_refuse(s, of, "patternProperties",
                          "the pattern \"%.60s\" also matches the name \"%.60s\", which has a "
                          "meaning of its own: not supported", pattern, m[i].name);
    if (s->status != OB_OK || !regex) return out;
    if (pattern_expr(regex, true, s->text.spell, s->b, &out, &error) != OB_OK)
        schema_refuse(s, of, "patternProperties", "%s", error.message);
    return out;
}

/* The listed names of "propertyNames" with an enum. */
static grammar_expr names_of_values(struct json_schema *s, const struct set *set,
                                    const json_t *values) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
        if (json_is_string(value) && set_valid(s, set, value) == VALID_YES)
            *(grammar_expr *)list_add(&parts) = json_string_text(
                &s->text, (struct str){json_string_value(value), json_string_length(value)});
    grammar_expr out = parts.n ? grammar_alt(s->b, parts.p, parts.n) : grammar_nothing(s->b);
    list_free(&parts);
    return out;
}

/* Quoted names that "propertyNames" allows; only where no names are listed besides. */
static grammar_expr names_of_schema(struct object *o, const json_t *of, const struct set *names) {
    struct json_schema *s = o->s;
    struct facts facts;
    json_t *single = NULL;
    const json_t *values = set_values(names, &single);
    if (o->members.n) {
        schema_refuse(s, of, "propertyNames", "is not supported beside names and other names");
        json_decref(single);
        return grammar_nothing(s->b);
    }
    if (values) {
        grammar_expr out = names_of_values(s, names, values);
        json_decref(single);
        return out;
    }
    for (uint32_t i = 0; i < names->n; i++)
        if (schema_get(names->item[i].schema, "anyOf") ||
            schema_get(names->item[i].schema, "oneOf"))
            schema_refuse(s, of, "propertyNames", "anyOf and oneOf are not supported in it");
    facts_read(s, names, &facts);
    if (!(facts.types & T_STRING)) return grammar_nothing(s->b);
    return json_quoted(&s->text, string_inside(s, &facts));
}

static grammar_expr quoted_names(struct object *o) {
    struct json_schema *s = o->s;
    const json_t *of = NULL, *named = NULL;
    const char *pattern = only_pattern(o, &of);
    struct set none = {0}, names = set_copy(s, &none);
    for (uint32_t i = 0; i < o->set->n; i++) {
        const json_t *one = schema_get(o->set->item[i].schema, "propertyNames");
        if (!one) continue;
        set_add(s, &names, one);
        named = o->set->item[i].schema;
    }
    if (pattern && named)
        schema_refuse(s, named, "propertyNames", "is not supported beside patternProperties");
    if (s->status != OB_OK) return grammar_nothing(s->b);
    if (names.never) return grammar_nothing(s->b);
    if (named) return names_of_schema(o, named, &names);
    if (pattern) return json_quoted(&s->text, names_of_pattern(o, of, pattern));
    struct str *listed = arena_array(&s->arena, o->members.n + 1, sizeof *listed);
    if (!listed) return schema_out_of_memory(s), grammar_nothing(s->b);
    const struct member *m = o->members.p;
    for (size_t i = 0; i < o->members.n; i++) {
        listed[i] = str_of(m[i].name);
        if (listed[i].n > JSON_NAME_MOST)
            schema_refuse(s, NULL, NULL, "a property's name has more than %d bytes",
                          JSON_NAME_MOST);
    }
    if (s->status != OB_OK) return grammar_nothing(s->b);
    return json_quoted(&s->text, json_names_except(&s->text, listed, o->members.n));
}

static void write_other(struct object *o) {
    struct json_schema *s = o->s;
    const json_t *of;
    if (!object_is_open(s, o->set) || s->status != OB_OK) return;
    struct set value = other_set(o, only_pattern(o, &of));
    if (value.never || s->status != OB_OK) return;
    grammar_expr names = quoted_names(o);
    o->other = grammar_seq(s->b, (const grammar_expr[]){names, s->text.colon, set_use(s, &value)},
                           3);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* minProperties and maxProperties, as far as the order of members lets them be counted. */
static void check_counts(struct object *o) {
    const struct facts *f = o->facts;
    size_t listed = o->listed;
    bool at_least_one = f->min_members <= 1, all = o->required == listed;
    o->other_max = GRAMMAR_NO_LIMIT;
    if (f->max_members < o->required || (!o->other && f->min_members > listed)) o->never = true;
    if (o->never || o->s->status != OB_OK) return;
    if (f->min_members > o->required && !at_least_one)
        schema_refuse(o->s, f->members_of, "minProperties",
                      "is supported up to 1, or to the number of required members");
    if (f->max_members == GRAMMAR_NO_LIMIT || (!o->other && f->max_members >= listed)) return;
    if (!all)
        schema_refuse(o->s, f->members_of, "maxProperties",
                      "is not supported beside members that may be left out");
    o->other_max = f->max_members - o->required;
}

/* ---- together -------------------------------------------------------------------------------- */

static grammar_expr seq2(struct object *o, grammar_expr a, grammar_expr b) {
    return grammar_seq(o->s->b, (const grammar_expr[]){a, b}, 2);
}

/* `tail` is what may follow a member that is there, `head` what may come first. Both are made from
 * the last member to the first; tails are rules, since two places use each. */
static grammar_expr join(struct object *o) {
    struct grammar_builder *b = o->s->b;
    struct json_text *t = &o->s->text;
    const struct member *m = o->members.p;
    grammar_expr tail = grammar_empty(b), head = grammar_nothing(b);
    if (o->other && o->other_max > 0) {
        grammar_expr more = seq2(o, t->comma, o->other);
        uint32_t rest = o->other_max == GRAMMAR_NO_LIMIT ? o->other_max : o->other_max - 1;
        tail = grammar_repeat(b, more, 0, o->other_max);
        head = seq2(o, o->other, grammar_repeat(b, more, 0, rest));
    }
    for (size_t i = o->listed; i-- > 0;) {
        grammar_expr first = seq2(o, m[i].expr, tail), next = seq2(o, t->comma, m[i].expr);
        head = m[i].required ? first : grammar_alt(b, (const grammar_expr[]){first, head}, 2);
        if (!m[i].required) next = grammar_repeat(b, next, 0, 1);
        grammar_rule rule = grammar_rule_new(b, m[i].name);
        grammar_define(b, rule, seq2(o, next, tail));
        tail = grammar_use(b, rule);
    }
    bool may_be_empty = o->required == 0 && o->facts->min_members == 0;
    return json_between(t, "{", head, "}", may_be_empty);
}

grammar_expr object_expr(struct json_schema *s, const struct set *set, const struct facts *facts) {
    struct object o = {.s = s, .set = set, .facts = facts,
                       .members = LIST_INIT(sizeof(struct member))};
    grammar_expr out = 0;
    collect(&o);
    if (s->status == OB_OK) write_members(&o);
    if (s->status == OB_OK && !o.never) write_other(&o);
    if (s->status == OB_OK) check_counts(&o);
    if (s->status == OB_OK) out = o.never ? grammar_nothing(s->b) : join(&o);
    list_free(&o.members);
    return out;
}
