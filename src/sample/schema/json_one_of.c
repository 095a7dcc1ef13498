/* SPDX-License-Identifier: Apache-2.0
 *
 * json_one_of.c: exactly one branch holds. A grammar cannot say "and not", so each pair of branches
 * must be told apart: by type, by values, by bounds or lengths, by a member whose values differ
 * (which then has to be there), or by a member that only the other branch requires (which then may
 * not be there). What cannot be told apart is refused. See json_schema.h. */
#include <stdlib.h>

#include "sample/schema/json_schema.h"

static double low_of(const struct json_range *r) { return r->min ? json_number_value(r->min) : 0; }
static double high_of(const struct json_range *r) { return r->max ? json_number_value(r->max) : 0; }

/* All of `a` lies below all of `b`. */
static bool below(const struct json_range *a, const struct json_range *b) {
    if (!a->max || !b->min) return false;
    return high_of(a) < low_of(b) ||
           (high_of(a) == low_of(b) && (a->below_max || b->above_min));
}

static bool apart_in_length(uint32_t min_a, uint32_t max_a, uint32_t min_b, uint32_t max_b) {
    return max_a < min_b || max_b < min_a;
}

static bool apart(struct json_schema *s, const struct set *a, const struct set *b, unsigned depth);

/* No value of an enum is valid in `to`. The oneOf that the branches are of is left out there: two
 * branches that hold would make it say "not valid", and so themselves apart. */
static bool apart_in_values(struct json_schema *s, const json_t *values, const struct set *to) {
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
        if (set_may_hold(s, to, value)) return false;
    return true;
}

static bool apart_by_enum(struct json_schema *s, const struct set *a, const struct set *b) {
    json_t *single_a, *single_b;
    const json_t *values_a = set_values(a, &single_a), *values_b = set_values(b, &single_b);
    bool out = (values_a && apart_in_values(s, values_a, b)) ||
               (values_b && apart_in_values(s, values_b, a));
    json_decref(single_a);
    json_decref(single_b);
    return out;
}

/* Two sets of members' values that no value has in common. */
static bool members_apart(struct json_schema *s, const struct set *a, const struct set *b,
                          const char *name, unsigned depth) {
    struct set of_a = object_member(s, a, name), of_b = object_member(s, b, name);
    if (s->status != OB_OK) return false;
    return of_a.never || of_b.never || apart(s, &of_a, &of_b, depth + 1);
}

/* A member that one of them requires, with no value that both allow. */
static bool apart_by_members(struct json_schema *s, const struct set *a, const struct set *b,
                             unsigned depth) {
    const struct set *both[2] = {a, b};
    size_t k;
    json_t *name;
    for (uint32_t i = 0; i < a->n + b->n; i++) {
        const struct set *of = both[i >= a->n];
        const json_t *schema = of->item[i < a->n ? i : i - a->n].schema;
        json_array_foreach(schema_get(schema, "required"), k, name)
            if (json_is_string(name) && members_apart(s, a, b, json_string_value(name), depth))
                return true;
    }
    return false;
}

/* No value is valid in both; depth bounds the search, not what is found. */
static bool apart(struct json_schema *s, const struct set *a, const struct set *b, unsigned depth) {
    struct facts f, g;
    if (a->never || b->never) return true;
    if (depth > 8 || !schema_works(s, 64)) return false;
    facts_read(s, a, &f);
    facts_read(s, b, &g);
    if (s->status != OB_OK) return false;
    unsigned common = f.types & g.types;
    if (!common || apart_by_enum(s, a, b)) return true;
    if (common & (T_NULL | T_BOOLEAN)) return false;
    if ((common & T_NUMBER) && !below(&f.number, &g.number) && !below(&g.number, &f.number))
        return false;
    if ((common & T_STRING) &&
        !apart_in_length(f.min_length, f.max_length, g.min_length, g.max_length))
        return false;
    if ((common & T_ARRAY) && !apart_in_length(f.min_items, f.max_items, g.min_items, g.max_items))
        return false;
    return !(common & T_OBJECT) || apart_by_members(s, a, b, depth);
}

/* ---- branches, narrowed ---------------------------------------------------------------------- */

/* They are apart but for objects; what is left is up to members. */
static bool apart_but_objects(struct json_schema *s, const struct set *a, const struct set *b) {
    struct set no_a = set_copy(s, a), no_b = set_copy(s, b);
    set_add(s, &no_a, s->no_object);
    set_add(s, &no_b, s->no_object);
    return apart(s, &no_a, &no_b, 0);
}

/* Makes a member that tells them apart required of `a`. */
static bool require_member(struct json_schema *s, struct set *a, const struct set *b) {
    const char *name;
    json_t *value;
    for (uint32_t i = 0; i < a->n; i++) {
        const json_t *list = schema_get(a->item[i].schema, "properties");
        json_object_foreach((json_t *)(uintptr_t)list, name, value) {
            if (!members_apart(s, a, b, name, 0)) continue;
            const json_t *more = schema_require(s, name, true);
            if (more) set_add(s, a, more);
            return more != NULL;
        }
    }
    return false;
}

/* Forbids `a` a member that `b` requires. */
static bool forbid_member(struct json_schema *s, struct set *a, const struct set *b) {
    size_t k;
    json_t *name;
    for (uint32_t i = 0; i < b->n; i++)
        json_array_foreach(schema_get(b->item[i].schema, "required"), k, name) {
            if (!json_is_string(name) || object_is_required(a, json_string_value(name))) continue;
            const json_t *more = schema_require(s, json_string_value(name), false);
            if (more) set_add(s, a, more);
            return more != NULL;
        }
    return false;
}

/* Whatever the narrowed `a` writes is not valid in `b`. */
static bool tell_apart(struct json_schema *s, struct set *a, const struct set *b) {
    if (apart(s, a, b, 0)) return true;
    if (!apart_but_objects(s, a, b)) return false;
    return require_member(s, a, b) || forbid_member(s, a, b);
}

struct set one_of_branch(struct json_schema *s, const struct set *set, uint32_t at, size_t i) {
    const json_t *schema = set->item[at].schema, *list = schema_get(schema, "oneOf");
    struct set out = set_copy(s, set);
    if (out.n > at) out.item[at].one_done = true;
    set_add(s, &out, json_array_get(list, i));
    for (size_t k = 0; k < json_array_size(list) && s->status == OB_OK && !out.never; k++) {
        if (k == i) continue;
        struct set other = set_copy(s, set);
        if (other.n > at) other.item[at].one_done = true;
        set_add(s, &other, json_array_get(list, k));
        if (!tell_apart(s, &out, &other))
            schema_refuse(s, schema, "oneOf",
                          "branches %zu and %zu cannot be told apart: give a member a \"const\" of "
                          "its own in each, or use anyOf", i < k ? i : k, i < k ? k : i);
    }
    return out;
}
