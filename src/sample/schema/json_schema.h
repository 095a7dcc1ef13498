/* SPDX-License-Identifier: Apache-2.0
 *
 * json_schema.h: what the files of the JSON schema reader share.
 *
 * What a value must satisfy at a place is a set of schemas, all of which hold (struct set): that of
 * the place, what its $ref and allOf name, and the branches chosen of its anyOf and oneOf. A set is
 * one rule of the grammar, found again when the same set is met (so schemas may be recursive), and
 * written later from a queue (so depth costs no stack). Three things are made of a set: facts,
 * which are all its keywords but the branches folded into one (json_facts.c); an expression of them
 * (json_string.c, json_array.c, json_object.c); or, with an enum, the list of the values that are
 * valid (json_valid.c).
 *
 * An answer may be narrower than the schema, never wider: a keyword is read, refused, or says
 * nothing of validity (json_keywords.def). After an error functions go on as if nothing matched;
 * `status` keeps the first.  Work, sets and rules are bounded, whatever the schema multiplies. */
#ifndef SAMPLE_SCHEMA_JSON_SCHEMA_H
#define SAMPLE_SCHEMA_JSON_SCHEMA_H

#include "base/arena.h"
#include "sample/schema/json_text.h"
#include "sample/schema/list.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"
#include "sample/schema/table.h"

enum {
    SCHEMA_SETS = 20000,      /* rules made of sets */
    SCHEMA_TOGETHER = 400,    /* schemas in a set */
    SCHEMA_WORK = 5 * 1000 * 1000, /* steps over keywords, members, branches */
    SCHEMA_NESTED = 1000,     /* $ref, allOf, ... behind one another without reading anything */
};

struct set_item {
    const json_t *schema; /* an object */
    bool any_done, one_done; /* a branch of its anyOf, oneOf is in the set */
};
struct set {
    struct set_item *item;
    uint32_t n, cap;
    bool never; /* a schema of it is false */
};

enum { /* types */
    T_NULL = 1, T_BOOLEAN = 2, T_INTEGER = 4, T_FRACTION = 8, T_STRING = 16, T_ARRAY = 32,
    T_OBJECT = 64, T_NUMBER = T_INTEGER | T_FRACTION, T_ALL = 127
};

struct facts {
    unsigned types;
    struct json_range number;
    uint32_t min_length, max_length, min_items, max_items, min_members, max_members;
    const json_t *pattern, *format;    /* strings of the schemas */
    const json_t *pattern_of, *format_of; /* those schemas */
    const json_t *length_of, *number_of, *members_of;
};

struct json_schema {
    const json_t *root;
    struct schema_options options;
    struct json_text text;
    struct grammar_builder *b;
    struct arena arena;
    struct table memo;    /* a set's items: its rule */
    struct table colors;  /* a schema: whether it refers to itself without reading anything */
    struct table regexes; /* a pattern: its index in `regex` */
    struct list regex;    /* struct pattern * */
    struct list queue;    /* struct pending: sets whose rules are not written yet */
    size_t written;
    size_t value_at;      /* which of an enum's values is asked about: most often of that enum */
    json_t *made;         /* array of schemas of our own */
    json_t *no_object;    /* one of them: all types but this */
    uint64_t work;
    ob_error *error;
    ob_status status;
};

/* ---- json_path.c ---- */

/* Keeps the first error, at the pointer of `keyword` (NULL: none) in `schema`. Returns false. */
bool schema_refuse(struct json_schema *s, const json_t *schema, const char *keyword,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
bool schema_out_of_memory(struct json_schema *s);
/* Counts steps; false: too many, or there is an error already. */
bool schema_works(struct json_schema *s, uint64_t steps);
/* What a $ref names; NULL: refused. */
const json_t *schema_resolve(struct json_schema *s, const json_t *schema);

/* ---- json_set.c ---- */

/* NULL if it is absent. */
const json_t *schema_get(const json_t *schema, const char *keyword);
/* A copy with room to be changed. */
struct set set_copy(struct json_schema *s, const struct set *from);
/* Adds a schema with all that its $ref and allOf name; checks their keywords. */
void set_add(struct json_schema *s, struct set *set, const json_t *schema);
struct set set_of(struct json_schema *s, const json_t *schema);
/* Ours: that a name must be there, may not be there. The same one each time. */
const json_t *schema_require(struct json_schema *s, const char *name, bool present);
bool schema_is_ours(const struct json_schema *s, const json_t *schema);
/* "additionalProperties" and "items" of one schema, with what "unevaluated..." says there. */
const json_t *schema_additional(const json_t *schema);
const json_t *schema_items(const json_t *schema);
/* Compiled once; NULL: refused, at `keyword` of `schema`. */
const struct pattern *schema_regex_of(struct json_schema *s, const json_t *schema,
                                    const char *keyword, struct str pattern);

/* ---- json_facts.c ---- */

void facts_read(struct json_schema *s, const struct set *set, struct facts *out);
/* A count (minItems, ...) that is not negative; `otherwise` if absent. */
uint32_t schema_count(struct json_schema *s, const json_t *schema, const char *keyword,
                      uint32_t otherwise);
/* The types a schema's "type" allows. */
unsigned schema_types(struct json_schema *s, const json_t *schema);
/* NULL: this format says nothing; refused if it is not known. */
const char *schema_format(struct json_schema *s, const json_t *schema, const char *format);

/* ---- json_valid.c ---- */

enum valid { VALID_NO, VALID_YES, VALID_UNKNOWN };
/* Whether this very value is valid. */
enum valid schema_valid(struct json_schema *s, const json_t *schema, const json_t *value,
                        unsigned depth);
enum valid set_valid(struct json_schema *s, const struct set *set, const json_t *value);
/* The same without anyOf and oneOf: false only if no choice of their branches makes it valid. */
bool set_may_hold(struct json_schema *s, const struct set *set, const json_t *value);
/* The values a set can have at most, if an enum or const says so; else NULL. */
const json_t *set_values(const struct set *set, json_t **single);

/* ---- expressions ---- */

grammar_expr set_use(struct json_schema *s, const struct set *set); /* json_schema.c */
/* Insides of strings, without their quotes. */
grammar_expr string_inside(struct json_schema *s, const struct facts *facts);
grammar_expr string_expr(struct json_schema *s, const struct facts *facts);
grammar_expr array_expr(struct json_schema *s, const struct set *set, const struct facts *facts);
grammar_expr object_expr(struct json_schema *s, const struct set *set, const struct facts *facts);
/* Of the set's first name and value, sets of what its schemas say of them. */
struct set object_member(struct json_schema *s, const struct set *set, const char *name);
bool object_is_required(const struct set *set, const char *name);
/* Whether names may occur that no "properties" and no "required" of the set lists. */
bool object_is_open(struct json_schema *s, const struct set *set);

/* ---- json_one_of.c ---- */

/* The set with branch `i` of the oneOf of its item `at`, narrowed so that no other branch holds. */
struct set one_of_branch(struct json_schema *s, const struct set *set, uint32_t at, size_t i);

#endif
