/* SPDX-License-Identifier: Apache-2.0
 *
 * methods_other.c: methods of dicts, lists and numbers, and the global functions. */
#include <math.h>

#include "text/jinja/run.h"

bool method_copy(struct run *r, const struct call *call, struct value *out) {
    (void)r; /* nothing can change the original, so it is its own copy */
    *out = call->self;
    return true;
}

/* ---- dicts ---- */

bool method_dict_get(struct run *r, const struct call *call, struct value *out) {
    if (!jinja_dict_get(r, call->self.dict, call->arg[0], out)) return false;
    if (out->kind != VALUE_MISSING) return true;
    *out = call->arg[1].kind == VALUE_MISSING ? value_none(call->self.data) : call->arg[1];
    return true;
}

static bool view(struct run *r, const struct call *call, enum value_kind kind, struct value *out) {
    const struct dict *dict = call->self.dict;
    struct list *list;
    if (!jinja_list_new(r, dict->n, &list) || !jinja_steps(r, dict->n)) return false;
    for (size_t i = 0; i < dict->n; i++) {
        struct pair pair = dict->pair[i];
        struct value item = kind == VALUE_KEYS ? pair.key : pair.value;
        if (kind == VALUE_ITEMS && !jinja_pair(r, pair.key, pair.value, &item)) return false;
        list->item[list->n++] = item;
    }
    *out = value_list(kind, list, call->self.data);
    return true;
}

bool method_dict_items(struct run *r, const struct call *call, struct value *out) {
    return view(r, call, VALUE_ITEMS, out);
}
bool method_dict_keys(struct run *r, const struct call *call, struct value *out) {
    return view(r, call, VALUE_KEYS, out);
}
bool method_dict_values(struct run *r, const struct call *call, struct value *out) {
    return view(r, call, VALUE_VALUES, out);
}

/* ---- lists, numbers ---- */

bool method_list_count(struct run *r, const struct call *call, struct value *out) {
    const struct list *list = call->self.list;
    int64_t count = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool same;
        if (!jinja_equal(r, list->item[i], call->arg[0], &same)) return false;
        count += same;
    }
    *out = value_int(count, true);
    return true;
}

bool method_list_index(struct run *r, const struct call *call, struct value *out) {
    const struct list *list = call->self.list;
    for (size_t i = 0; i < list->n; i++) {
        bool same;
        if (!jinja_equal(r, list->item[i], call->arg[0], &same)) return false;
        if (!same) continue;
        *out = value_int((int64_t)i, true);
        return true;
    }
    return jinja_fail(r, "the value is not in the list");
}

/* A range, seen as a list. */
static bool listed(struct run *r, const struct call *call, struct call *out) {
    *out = *call;
    return jinja_elements(r, call->self, &out->self.list);
}
bool method_range_count(struct run *r, const struct call *call, struct value *out) {
    struct call list;
    return listed(r, call, &list) && method_list_count(r, &list, out);
}
bool method_range_index(struct run *r, const struct call *call, struct value *out) {
    struct call list;
    return listed(r, call, &list) && method_list_index(r, &list, out);
}

bool method_is_integer(struct run *r, const struct call *call, struct value *out) {
    (void)r;
    *out = value_bool(isfinite(call->self.f) && call->self.f == floor(call->self.f),
                      call->self.data);
    return true;
}

bool method_bit_length(struct run *r, const struct call *call, struct value *out) {
    const char *digit;
    size_t n;
    if (!whole_digits(r, call->self, 2, &digit, &n)) return false;
    *out = value_int(digit[0] == '0' ? 0 : (int64_t)n, call->self.data);
    return true;
}
bool method_bit_count(struct run *r, const struct call *call, struct value *out) {
    const char *digit;
    size_t n;
    int64_t ones = 0;
    if (!whole_digits(r, call->self, 2, &digit, &n)) return false;
    for (size_t i = 0; i < n; i++) ones += digit[i] == '1';
    *out = value_int(ones, call->self.data);
    return true;
}

/* ---- global functions ---- */

/* dict(mapping or pairs, **more) */
static bool build_dict(struct run *r, const struct call *call, struct dict **out) {
    struct list *pairs;
    if (call->n > 1) return jinja_fail(r, "dict expected at most 1 argument, got %zu", call->n);
    if (!jinja_dict_new(r, 0, out)) return false;
    struct value from = call->n ? call->positional[0] : value_of(VALUE_UNDEFINED);
    if (from.kind == VALUE_DICT) {
        for (size_t i = 0; i < from.dict->n; i++)
            if (!jinja_dict_set(r, *out, from.dict->pair[i].key, from.dict->pair[i].value))
                return false;
    } else {
        if (!jinja_elements(r, from, &pairs)) return false;
        for (size_t i = 0; i < pairs->n; i++) {
            struct list *pair;
            if (!jinja_elements(r, pairs->item[i], &pair)) return false;
            if (pair->n != 2)
                return jinja_fail(r, "dictionary update sequence element #%zu has length %zu; 2 is "
                                     "required", i, pair->n);
            if (!jinja_dict_set(r, *out, pair->item[0], pair->item[1])) return false;
        }
    }
    for (size_t i = 0; i < call->keywords; i++)
        if (!jinja_dict_set(r, *out, value_text(call->keyword[i].name), call->keyword[i].value))
            return false;
    return true;
}

bool global_dict(struct run *r, const struct call *call, struct value *out) {
    struct dict *dict;
    if (!build_dict(r, call, &dict)) return false;
    *out = value_dict(dict, call->n && value_is_data(call->positional[0]));
    return true;
}

bool global_namespace(struct run *r, const struct call *call, struct value *out) {
    struct dict *dict;
    if (!build_dict(r, call, &dict)) return false;
    for (size_t i = 0; i < dict->n; i++) {
        struct value key = dict->pair[i].key;
        if (key.kind == VALUE_STRING && key.text->n && key.text->p[0] == '_')
            return jinja_fail(r, "namespace attributes must not start with an underscore");
    }
    *out = value_of(VALUE_NAMESPACE);
    out->dict = dict;
    return true;
}

bool global_raise_exception(struct run *r, const struct call *call, struct value *out) {
    const struct text *message;
    (void)out;
    return jinja_to_text(r, call->arg[0], &message) &&
           jinja_fail(r, "%.*s", (int)(message->n > 300 ? 300 : message->n), message->p);
}

bool global_range(struct run *r, const struct call *call, struct value *out) {
    enum { MOST = 100000 }; /* as jinja2's sandbox has it */
    int64_t n[3] = {0, 0, 1};
    bool data = false;
    size_t given = 0;
    for (; given < 3 && call->arg[given].kind != VALUE_MISSING; given++) {
        struct value v = call->arg[given];
        if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
        if (!value_is_int(v))
            return jinja_fail(r, "'%s' object cannot be interpreted as an integer",
                              jinja_type_name(v));
        n[given] = value_as_int(v);
        data = data || v.data;
    }
    if (given == 1) {
        n[1] = n[0];
        n[0] = 0;
    }
    if (!n[2]) return jinja_fail(r, "range() arg 3 must not be zero");
    struct range *range = jinja_alloc(r, 1, sizeof *range);
    if (!range) return false;
    *range = (struct range){n[0], n[1], n[2], 0};
    bool any = n[2] > 0 ? n[1] > n[0] : n[1] < n[0];
    uint64_t distance = (uint64_t)n[1] - (uint64_t)n[0];
    if (n[2] < 0) distance = 0 - distance;
    uint64_t step = n[2] > 0 ? (uint64_t)n[2] : 0 - (uint64_t)n[2];
    uint64_t count = any ? (distance - 1) / step + 1 : 0;
    if (count > MOST)
        return jinja_fail_status(r, OB_ERR_LIMIT, "a range of more than %d elements", MOST);
    range->n = (size_t)count;
    *out = value_of(VALUE_RANGE);
    out->range = range;
    out->data = data;
    return true;
}
