/* SPDX-License-Identifier: Apache-2.0
 *
 * value.c: what all kinds of values can do, as Python does it: truth, equality, order, hashing,
 * length, membership, iteration; and making containers, also from JSON. */
#include <math.h>

#include "text/jinja/run.h"
#include "text/jinja/char.h"

const char *jinja_type_name(struct value v) {
    static const char *const names[] = {
        [VALUE_MISSING] = "missing", [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "NoneType",
        [VALUE_BOOL] = "bool", [VALUE_INT] = "int", [VALUE_BIG] = "int",
        [VALUE_FLOAT] = "float",
        [VALUE_STRING] = "str", [VALUE_LIST] = "list", [VALUE_TUPLE] = "tuple",
        [VALUE_ITERATOR] = "generator", [VALUE_KEYS] = "dict_keys",
        [VALUE_VALUES] = "dict_values", [VALUE_ITEMS] = "dict_items", [VALUE_RANGE] = "range",
        [VALUE_DICT] = "dict", [VALUE_NAMESPACE] = "Namespace", [VALUE_MACRO] = "Macro",
        [VALUE_FUNCTION] = "function", [VALUE_METHOD] = "method", [VALUE_LOOP] = "LoopContext"};
    return names[v.kind];
}

bool jinja_truth(struct value v) {
    switch (v.kind) {
    case VALUE_MISSING: case VALUE_UNDEFINED: case VALUE_NONE: return false;
    case VALUE_BOOL: return v.b;
    case VALUE_INT: return v.i != 0;
    case VALUE_FLOAT: return v.f != 0;
    case VALUE_STRING: return v.text->n != 0;
    case VALUE_LIST: case VALUE_TUPLE: case VALUE_KEYS: case VALUE_VALUES: case VALUE_ITEMS:
        return v.list->n != 0;
    case VALUE_RANGE: return v.range->n != 0;
    case VALUE_DICT: return v.dict->n != 0;
    default: return true;
    }
}

/* ---- equality, order, hashing ---- */

struct value jinja_range_at(const struct range *range, size_t i, bool data) {
    return value_int(range->start + (int64_t)i * range->step, data);
}

/* < 0, 0, > 0; `unordered` where a NaN is involved. Exact, also between an integer and a float. */
static int number_order(struct value a, struct value b, int unordered) {
    if (value_is_int(a) && value_is_int(b))
        return (value_as_int(a) > value_as_int(b)) - (value_as_int(a) < value_as_int(b));
    bool af = a.kind == VALUE_FLOAT, bf = b.kind == VALUE_FLOAT;
    if ((af && isnan(a.f)) || (bf && isnan(b.f))) return unordered;
    if (af && bf) return (a.f > b.f) - (a.f < b.f);
    return af ? -whole_order_float(b, a.f) : bf ? whole_order_float(a, b.f) : whole_order(a, b);
}

static bool equal_items(struct run *r, const struct value *a, const struct value *b, size_t n,
                        bool *out) {
    *out = true;
    for (size_t i = 0; i < n && *out; i++)
        if (!jinja_equal(r, a[i], b[i], out)) return false;
    return true;
}

static bool equal_dicts(struct run *r, const struct dict *a, const struct dict *b, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        struct value other;
        if (!jinja_dict_get(r, b, a->pair[i].key, &other)) return false;
        *out = other.kind != VALUE_MISSING;
        if (*out && !jinja_equal(r, a->pair[i].value, other, out)) return false;
    }
    return true;
}

static bool equal_ranges(const struct range *a, const struct range *b) {
    return a->n == b->n && (a->n == 0 || a->start == b->start) && (a->n < 2 || a->step == b->step);
}

bool jinja_equal(struct run *r, struct value a, struct value b, bool *out) {
    if (!jinja_steps(r, 1) || !jinja_enter(r)) return false;
    bool ok = true;
    *out = false;
    if (value_is_number(a) && value_is_number(b)) {
        *out = number_order(a, b, 1) == 0;
    } else if (a.kind != b.kind) {
        *out = false;
    } else if (a.kind == VALUE_STRING) {
        *out = str_eq(text_str(a.text), text_str(b.text));
        ok = jinja_steps_bytes(r, a.text->n);
    } else if (value_is_sequence(a) || a.kind == VALUE_KEYS || a.kind == VALUE_ITEMS) {
        /* views compare as sets; for the same dict order is the same */
        *out = a.list->n == b.list->n;
        if (*out) ok = equal_items(r, a.list->item, b.list->item, a.list->n, out);
    } else if (a.kind == VALUE_DICT) {
        ok = equal_dicts(r, a.dict, b.dict, out);
    } else if (a.kind == VALUE_RANGE) {
        *out = equal_ranges(a.range, b.range);
    } else {
        *out = a.kind == VALUE_NONE || a.kind == VALUE_UNDEFINED || a.list == b.list;
    }
    r->level--;
    return ok;
}

static int compare_text(const struct text *a, const struct text *b) {
    size_t n = a->n < b->n ? a->n : b->n; /* the order of UTF-8 is that of its code points */
    int c = n ? memcmp(a->p, b->p, n) : 0;
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

static bool less_items(struct run *r, const struct list *a, const struct list *b, const char *op,
                       bool *out) {
    bool same;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (!jinja_equal(r, a->item[i], b->item[i], &same)) return false;
        if (!same) return jinja_less(r, a->item[i], b->item[i], op, out);
    }
    *out = a->n < b->n;
    return true;
}

bool jinja_less(struct run *r, struct value a, struct value b, const char *op, bool *out) {
    if (!jinja_steps(r, 1) || !jinja_enter(r)) return false;
    bool ok = true;
    if (value_is_number(a) && value_is_number(b)) {
        *out = number_order(a, b, 1) < 0;
    } else if (a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
        *out = compare_text(a.text, b.text) < 0;
        ok = jinja_steps_bytes(r, a.text->n);
    } else if (value_is_sequence(a) && a.kind == b.kind) {
        ok = less_items(r, a.list, b.list, op, out);
    } else if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED) {
        ok = jinja_fail_undefined(r, a.kind == VALUE_UNDEFINED ? a : b);
    } else {
        ok = jinja_fail(r, "'%s' not supported between instances of '%s' and '%s'", op,
                        jinja_type_name(a), jinja_type_name(b));
    }
    r->level--;
    return ok;
}

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 31);
}

/* Equal values hash alike: 1, 1.0 and true too. */
bool jinja_hash(struct run *r, struct value v, uint64_t *out) {
    *out = 0;
    if (!jinja_steps(r, 1)) return false;
    switch (v.kind) {
    case VALUE_STRING:
        *out = str_hash(text_str(v.text));
        return jinja_steps_bytes(r, v.text->n);
    case VALUE_BOOL: case VALUE_INT: *out = mix(1, (uint64_t)value_as_int(v)); return true;
    case VALUE_BIG: *out = mix(5, whole_hash(v.big)); return true;
    case VALUE_FLOAT: {
        uint64_t bits;
        struct value whole;
        if (isfinite(v.f) && v.f == floor(v.f))
            return whole_of_float(r, v.f, &whole) && jinja_hash(r, whole, out);
        memcpy(&bits, &v.f, sizeof bits);
        *out = mix(2, bits);
        return true;
    }
    case VALUE_TUPLE: {
        uint64_t h = 3, item;
        if (!jinja_enter(r)) return false;
        for (size_t i = 0; i < v.list->n; i++, h = mix(h, item))
            if (!jinja_hash(r, v.list->item[i], &item)) return false;
        r->level--;
        *out = h;
        return true;
    }
    case VALUE_LIST: case VALUE_DICT: case VALUE_KEYS: case VALUE_ITEMS:
        return jinja_fail(r, "unhashable type: '%s'", jinja_type_name(v));
    case VALUE_NONE: case VALUE_UNDEFINED: *out = v.kind; return true;
    default: *out = mix(4, (uint64_t)(uintptr_t)v.list); return true;
    }
}

/* ---- length, membership, iteration ---- */

bool jinja_length(struct run *r, struct value v, int64_t *out) {
    switch (v.kind) {
    case VALUE_UNDEFINED: *out = 0; return true;
    case VALUE_STRING:
        *out = (int64_t)char_count(v.text->p, v.text->n);
        return jinja_steps_bytes(r, v.text->n);
    case VALUE_LIST: case VALUE_TUPLE: case VALUE_KEYS: case VALUE_VALUES: case VALUE_ITEMS:
        *out = (int64_t)v.list->n;
        return true;
    case VALUE_RANGE: *out = (int64_t)v.range->n; return true;
    case VALUE_DICT: *out = (int64_t)v.dict->n; return true;
    default: return jinja_fail(r, "object of type '%s' has no len()", jinja_type_name(v));
    }
}

bool jinja_contains(struct run *r, struct value item, struct value in, bool *out) {
    *out = false;
    if (in.kind == VALUE_STRING) {
        if (item.kind != VALUE_STRING)
            return jinja_fail(r, "'in <string>' requires string as left operand, not %s",
                              jinja_type_name(item));
        *out = jinja_find(in.text, item.text, 0) != SIZE_MAX;
        return jinja_steps_bytes(r, in.text->n);
    }
    if (in.kind == VALUE_DICT) {
        struct value found;
        if (!jinja_dict_get(r, in.dict, item, &found)) return false;
        *out = found.kind != VALUE_MISSING;
        return true;
    }
    if (!jinja_iterable(in))
        return jinja_fail(r, "argument of type '%s' is not iterable", jinja_type_name(in));
    struct cursor cursor;
    struct value each;
    bool done;
    if (!jinja_cursor(r, in, &cursor)) return false;
    while (!*out) {
        if (!jinja_next(r, &cursor, &each, &done)) return false;
        if (done) break;
        if (!jinja_equal(r, each, item, out)) return false;
    }
    return true;
}

bool jinja_iterable(struct value v) {
    return v.kind == VALUE_UNDEFINED || v.kind == VALUE_STRING || value_is_sequence(v) ||
           v.kind == VALUE_ITERATOR || value_is_view(v) || v.kind == VALUE_RANGE ||
           v.kind == VALUE_DICT || v.kind == VALUE_LOOP;
}

bool jinja_cursor(struct run *r, struct value of, struct cursor *out) {
    *out = (struct cursor){of, 0};
    if (of.kind == VALUE_LOOP) return jinja_fail(r, "iterating over 'loop' is not supported");
    if (jinja_iterable(of)) return true;
    return jinja_fail(r, "'%s' object is not iterable", jinja_type_name(of));
}

bool jinja_next(struct run *r, struct cursor *c, struct value *out, bool *done) {
    struct value of = c->of;
    *done = false;
    if (!jinja_steps(r, 1)) return false;
    switch (of.kind) {
    case VALUE_STRING: {
        if (c->at >= of.text->n) break;
        size_t from = c->at;
        c->at = jinja_offset(of.text, from, 1);
        return jinja_text_copy(r, text_slice(of.text, from, c->at - from), out);
    }
    case VALUE_ITERATOR:
        if (of.list->at >= of.list->n) break;
        *out = of.list->item[of.list->at++];
        return true;
    case VALUE_LIST: case VALUE_TUPLE: case VALUE_KEYS: case VALUE_VALUES: case VALUE_ITEMS:
        if (c->at >= of.list->n) break;
        *out = of.list->item[c->at++];
        return true;
    case VALUE_RANGE:
        if (c->at >= of.range->n) break;
        *out = jinja_range_at(of.range, c->at++, of.data);
        return true;
    case VALUE_DICT:
        if (c->at >= of.dict->n) break;
        *out = of.dict->pair[c->at++].key;
        return true;
    default: break; /* undefined: nothing */
    }
    *done = true;
    return true;
}

bool jinja_elements(struct run *r, struct value v, struct list **out) {
    struct cursor cursor;
    struct value item;
    bool done;
    if (value_is_sequence(v) || value_is_view(v)) {
        *out = v.list;
        return true;
    }
    if (!jinja_cursor(r, v, &cursor) || !jinja_list_new(r, 0, out)) return false;
    for (;;) {
        if (!jinja_next(r, &cursor, &item, &done)) return false;
        if (done) return true;
        if (!jinja_push(r, *out, item)) return false;
    }
}

/* ---- making containers ---- */

bool jinja_list_new(struct run *r, size_t cap, struct list **out) {
    struct list *list = jinja_alloc(r, 1, sizeof *list);
    if (!list) return false;
    *list = (struct list){.cap = cap};
    if (cap && !(list->item = jinja_alloc(r, cap, sizeof *list->item))) return false;
    *out = list;
    return true;
}

bool jinja_push(struct run *r, struct list *list, struct value v) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 4;
        struct value *grown = jinja_alloc(r, cap, sizeof *grown);
        if (!grown || !jinja_steps(r, list->n / 16)) return false;
        if (list->n) memcpy(grown, list->item, list->n * sizeof *grown);
        list->item = grown;
        list->cap = cap;
    }
    list->item[list->n++] = v;
    return true;
}

bool jinja_pair(struct run *r, struct value a, struct value b, struct value *out) {
    struct list *list;
    if (!jinja_list_new(r, 2, &list)) return false;
    list->item[0] = a;
    list->item[1] = b;
    list->n = 2;
    *out = value_list(VALUE_TUPLE, list, value_is_data(a) || value_is_data(b));
    return true;
}

bool jinja_dict_new(struct run *r, size_t cap, struct dict **out) {
    struct dict *dict = jinja_alloc(r, 1, sizeof *dict);
    if (!dict) return false;
    dict->cap = cap;
    if (cap && !(dict->pair = jinja_alloc(r, cap, sizeof *dict->pair))) return false;
    *out = dict;
    return true;
}

/* Position of the pair with this key in *at, or dict->n. */
static bool find(struct run *r, const struct dict *dict, struct value key, uint64_t hash,
                 size_t *at) {
    bool same;
    size_t probe = dict->slots ? hash & (dict->slots - 1) : 0;
    for (size_t i = 0;; i++) {
        if (dict->slots) {
            if (!dict->slot[probe]) break;
            *at = dict->slot[probe] - 1;
            probe = (probe + 1) & (dict->slots - 1);
        } else {
            if (i == dict->n) break;
            *at = i;
        }
        if (!jinja_steps(r, 1)) return false;
        if (dict->pair[*at].hash != hash) continue;
        if (!jinja_equal(r, dict->pair[*at].key, key, &same)) return false;
        if (same) return true;
    }
    *at = dict->n;
    return true;
}

static bool index_dict(struct run *r, struct dict *dict) {
    size_t slots = dict->cap * 2;
    for (dict->slots = 16; dict->slots < slots;) dict->slots *= 2;
    dict->slot = jinja_alloc(r, dict->slots, sizeof *dict->slot);
    if (!dict->slot || !jinja_steps(r, dict->n)) return false;
    for (size_t i = 0; i < dict->n; i++) {
        size_t probe = dict->pair[i].hash & (dict->slots - 1);
        while (dict->slot[probe]) probe = (probe + 1) & (dict->slots - 1);
        dict->slot[probe] = (uint32_t)i + 1;
    }
    return true;
}

bool jinja_dict_set(struct run *r, struct dict *dict, struct value key, struct value v) {
    enum { LINEAR = 8 };
    uint64_t hash;
    size_t at;
    if (!jinja_hash(r, key, &hash) || !find(r, dict, key, hash, &at)) return false;
    if (at < dict->n) {
        dict->pair[at].value = v;
        return true;
    }
    if (dict->n == dict->cap) {
        size_t cap = dict->cap ? dict->cap * 2 : 4;
        struct pair *grown = jinja_alloc(r, cap, sizeof *grown);
        if (!grown) return false;
        if (dict->n) memcpy(grown, dict->pair, dict->n * sizeof *grown);
        dict->pair = grown;
        dict->cap = cap;
        dict->slots = 0;
    }
    dict->pair[dict->n++] = (struct pair){key, v, hash};
    if (dict->n <= LINEAR) return true;
    if (!dict->slots) return index_dict(r, dict);
    size_t probe = hash & (dict->slots - 1);
    while (dict->slot[probe]) probe = (probe + 1) & (dict->slots - 1);
    dict->slot[probe] = (uint32_t)dict->n;
    return true;
}

bool jinja_dict_get(struct run *r, const struct dict *dict, struct value key, struct value *out) {
    uint64_t hash;
    size_t at;
    if (!jinja_hash(r, key, &hash) || !find(r, dict, key, hash, &at)) return false;
    *out = at < dict->n ? dict->pair[at].value : value_of(VALUE_MISSING);
    return true;
}

bool jinja_dict_get_text(struct run *r, const struct dict *dict, const struct text *key,
                         struct value *out) {
    return jinja_dict_get(r, dict, value_text(key), out);
}

/* ---- from JSON ---- */

/* Words of a small vocabulary that templates build control tokens from. */
static bool is_role(const struct run *r, const char *key, struct value v) {
    if (!r->limits.roles || v.kind != VALUE_STRING || strcmp(key, "role") != 0) return false;
    for (size_t i = 0; r->limits.roles[i]; i++)
        if (text_is(v.text, r->limits.roles[i])) return true;
    return false;
}

static bool from_object(struct run *r, const json_t *json, bool trusted, struct value *out) {
    struct dict *dict;
    const char *key;
    size_t n;
    json_t *member;
    if (!jinja_dict_new(r, json_object_size(json), &dict)) return false;
    json_object_keylen_foreach((json_t *)(uintptr_t)json, key, n, member) {
        struct value k, v;
        if (!jinja_text_copy(r, text_of(key, n, trusted), &k)) return false;
        if (!jinja_from_json(r, member, trusted, &v)) return false;
        if (is_role(r, key, v) &&
            !jinja_text_copy(r, text_of(v.text->p, v.text->n, true), &v))
            return false;
        if (!jinja_dict_set(r, dict, k, v)) return false;
    }
    *out = value_dict(dict, !trusted);
    return true;
}

static bool from_array(struct run *r, const json_t *json, bool trusted, struct value *out) {
    struct list *list;
    if (!jinja_list_new(r, json_array_size(json), &list)) return false;
    for (size_t i = 0; i < json_array_size(json); i++)
        if (!jinja_from_json(r, json_array_get(json, i), trusted, &list->item[list->n++]))
            return false;
    *out = value_list(VALUE_LIST, list, !trusted);
    return true;
}

bool jinja_from_json(struct run *r, const json_t *json, bool trusted, struct value *out) {
    if (!jinja_steps(r, 1) || !jinja_enter(r)) return false;
    bool ok = true;
    switch (json_typeof(json)) {
    case JSON_OBJECT: ok = from_object(r, json, trusted, out); break;
    case JSON_ARRAY: ok = from_array(r, json, trusted, out); break;
    case JSON_STRING:
        ok = jinja_text_copy(
            r, text_of(json_string_value(json), json_string_length(json), trusted), out);
        break;
    case JSON_INTEGER: *out = value_int(json_integer_value(json), !trusted); break;
    case JSON_REAL: *out = value_float(json_real_value(json), !trusted); break;
    case JSON_TRUE: case JSON_FALSE: *out = value_bool(json_is_true(json), !trusted); break;
    default: *out = value_none(!trusted); break;
    }
    r->level--;
    return ok;
}
