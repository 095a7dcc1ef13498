/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_seq.c: filters over sequences. What jinja2 computes lazily is computed at once here and
 * handed out as an iterator, so that it can still be walked only once. */
#include "text/jinja/run.h"

static bool give(enum value_kind kind, struct list *list, const struct call *call,
                 struct value *out) {
    *out = value_list(kind, list, value_is_data(call->self));
    return true;
}

/* ---- attribute paths ---- */

/* One step of a path: "3" is an index, anything else a name. */
static bool path_part(struct run *r, struct text part, struct value *out) {
    int64_t index = 0;
    size_t digits = 0;
    while (digits < part.n && part.p[digits] >= '0' && part.p[digits] <= '9' && digits < 18)
        index = index * 10 + (part.p[digits++] - '0');
    if (part.n && digits == part.n) return *out = value_int(index, false), true;
    return jinja_text_copy(r, part, out);
}

/* Follows "a.b.0" (or an index) from `item`; an undefined step becomes `missing` if given. */
bool jinja_path(struct run *r, struct value item, struct value path, struct value missing,
                struct value *out) {
    *out = item;
    if (path.kind == VALUE_MISSING || path.kind == VALUE_NONE) return true;
    bool text = path.kind == VALUE_STRING;
    for (size_t from = 0, to; text ? from <= path.text->n : from == 0; from = to + 1) {
        struct value part = path;
        to = from;
        if (text) {
            while (to < path.text->n && path.text->p[to] != '.') to++;
            if (!path_part(r, text_slice(path.text, from, to - from), &part)) return false;
        }
        if (!jinja_item(r, *out, part, out)) return false;
        if (out->kind == VALUE_UNDEFINED && missing.kind != VALUE_MISSING &&
            missing.kind != VALUE_NONE)
            *out = missing;
    }
    return true;
}

static bool fold_case(struct run *r, bool sensitive, struct value *v) {
    struct call call = {.self = *v};
    return sensitive || v->kind != VALUE_STRING || method_lower(r, &call, v);
}

/* ---- sorting ---- */

/* Stable merge sort by key; reversed order keeps equal elements in place, as Python does. */
bool jinja_sort(struct run *r, struct pair *pair, size_t n, bool reverse) {
    struct pair *a = pair, *b = jinja_alloc(r, n, sizeof *b);
    if (!b) return false;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += width * 2) {
            size_t i = from, mid = from + width < n ? from + width : n;
            size_t j = mid, end = mid + width < n ? mid + width : n;
            for (size_t w = from; w < end; w++) {
                bool right = i >= mid;
                if (!right && j < end) {
                    struct value x = reverse ? a[i].key : a[j].key;
                    struct value y = reverse ? a[j].key : a[i].key;
                    if (!jinja_less(r, x, y, "<", &right)) return false;
                }
                b[w] = right ? a[j++] : a[i++];
            }
        }
        struct pair *swap = a;
        a = b;
        b = swap;
    }
    if (a != pair) memcpy(pair, a, n * sizeof *pair);
    return true;
}

/* The key of |sort: the value at each of the comma-separated paths. */
static bool sort_key(struct run *r, struct value item, struct value attribute, bool sensitive,
                     struct value *out) {
    struct list *keys;
    struct value v;
    if (attribute.kind != VALUE_STRING) {
        return jinja_path(r, item, attribute, value_of(VALUE_MISSING), out) &&
               fold_case(r, sensitive, out);
    }
    if (!jinja_list_new(r, 0, &keys)) return false;
    for (size_t from = 0, to; from <= attribute.text->n; from = to + 1) {
        to = from;
        while (to < attribute.text->n && attribute.text->p[to] != ',') to++;
        if (!jinja_text_copy(r, text_slice(attribute.text, from, to - from), &v) ||
            !jinja_path(r, item, v, value_of(VALUE_MISSING), &v) || !fold_case(r, sensitive, &v) ||
            !jinja_push(r, keys, v))
            return false;
    }
    *out = value_list(VALUE_LIST, keys, false);
    return true;
}

static bool sorted(struct run *r, struct list *list, struct value attribute, bool sensitive,
                   bool reverse, struct list **out) {
    struct pair *pair = jinja_alloc(r, list->n, sizeof *pair);
    if (!pair || !jinja_list_new(r, list->n, out)) return false;
    for (size_t i = 0; i < list->n; i++) {
        pair[i].value = list->item[i];
        if (!sort_key(r, list->item[i], attribute, sensitive, &pair[i].key)) return false;
    }
    if (!jinja_sort(r, pair, list->n, reverse)) return false;
    for (size_t i = 0; i < list->n; i++) (*out)->item[i] = pair[i].value;
    (*out)->n = list->n;
    return true;
}

bool filter_sort(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *result;
    return jinja_elements(r, call->self, &list) &&
           sorted(r, list, call->arg[2], jinja_truth(call->arg[1]), jinja_truth(call->arg[0]),
                  &result) &&
           give(VALUE_LIST, result, call, out);
}

bool filter_dictsort(struct run *r, const struct call *call, struct value *out) {
    struct value by = value_int(0, false), items;
    if (call->self.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, call->self);
    if (call->self.kind != VALUE_DICT)
        return jinja_fail(r, "'%s' object has no attribute 'items'", jinja_type_name(call->self));
    if (call->arg[1].kind == VALUE_STRING && text_is(call->arg[1].text, "value")) by.i = 1;
    else if (call->arg[1].kind != VALUE_MISSING &&
             !(call->arg[1].kind == VALUE_STRING && text_is(call->arg[1].text, "key")))
        return jinja_fail(r, "you can only sort by either \"key\" or \"value\"");
    struct list *result;
    return method_dict_items(r, call, &items) &&
           sorted(r, items.list, by, jinja_truth(call->arg[0]), jinja_truth(call->arg[2]),
                  &result) &&
           give(VALUE_LIST, result, call, out);
}

bool filter_groupby(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *groups, *group = NULL;
    bool sensitive = jinja_truth(call->arg[2]), same;
    if (!jinja_elements(r, call->self, &list) || !jinja_list_new(r, 0, &groups)) return false;
    struct pair *pair = jinja_alloc(r, list->n, sizeof *pair);
    if (!pair) return false;
    for (size_t i = 0; i < list->n; i++) {
        pair[i].value = list->item[i];
        if (!jinja_path(r, list->item[i], call->arg[0], call->arg[1], &pair[i].key) ||
            !fold_case(r, sensitive, &pair[i].key))
            return false;
    }
    if (!jinja_sort(r, pair, list->n, false)) return false;
    for (size_t i = 0; i < list->n; i++) {
        same = false;
        if (i && !jinja_equal(r, pair[i - 1].key, pair[i].key, &same)) return false;
        if (!same) {
            struct value key, tuple;
            if (!jinja_path(r, pair[i].value, call->arg[0], call->arg[1], &key) ||
                !jinja_list_new(r, 0, &group) ||
                !give(VALUE_LIST, group, call, &tuple) || !jinja_pair(r, key, tuple, &tuple) ||
                !jinja_push(r, groups, tuple))
                return false;
            tuple.list->group = true;
        }
        if (!jinja_push(r, group, pair[i].value)) return false;
    }
    return give(VALUE_LIST, groups, call, out);
}

bool filter_unique(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *result;
    struct dict *seen;
    struct value key, found;
    if (!jinja_elements(r, call->self, &list) || !jinja_list_new(r, 0, &result) ||
        !jinja_dict_new(r, 0, &seen))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        if (!jinja_path(r, list->item[i], call->arg[1], value_of(VALUE_MISSING), &key) ||
            !fold_case(r, jinja_truth(call->arg[0]), &key) || !jinja_dict_get(r, seen, key, &found))
            return false;
        if (found.kind != VALUE_MISSING) continue;
        if (!jinja_dict_set(r, seen, key, value_none(false)) ||
            !jinja_push(r, result, list->item[i]))
            return false;
    }
    return give(VALUE_ITERATOR, result, call, out);
}

static bool extreme(struct run *r, const struct call *call, bool most, struct value *out) {
    struct list *list;
    struct value key, best = value_of(VALUE_MISSING);
    if (!jinja_elements(r, call->self, &list)) return false;
    if (!list->n)
        return jinja_undefined_hint(r, "No aggregated item, sequence was empty.", out);
    for (size_t i = 0; i < list->n; i++) {
        bool better = i == 0;
        if (!jinja_path(r, list->item[i], call->arg[1], value_of(VALUE_MISSING), &key) ||
            !fold_case(r, jinja_truth(call->arg[0]), &key))
            return false;
        if (i && !(most ? jinja_less(r, best, key, ">", &better)
                        : jinja_less(r, key, best, "<", &better)))
            return false;
        if (!better) continue;
        best = key;
        *out = list->item[i];
    }
    return true;
}

bool filter_min(struct run *r, const struct call *call, struct value *out) {
    return extreme(r, call, false, out);
}
bool filter_max(struct run *r, const struct call *call, struct value *out) {
    return extreme(r, call, true, out);
}

/* ---- picking ---- */

bool filter_length(struct run *r, const struct call *call, struct value *out) {
    int64_t n;
    if (!jinja_length(r, call->self, &n)) return false;
    *out = value_int(n, value_is_data(call->self));
    return true;
}

bool filter_first(struct run *r, const struct call *call, struct value *out) {
    struct cursor cursor;
    bool done;
    if (!jinja_cursor(r, call->self, &cursor) || !jinja_next(r, &cursor, out, &done)) return false;
    return !done || jinja_undefined_hint(r, "No first item, sequence was empty.", out);
}

bool filter_last(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    int64_t n;
    if (v.kind == VALUE_ITERATOR)
        return jinja_fail(r, "'%s' object is not reversible", jinja_type_name(v));
    if (!jinja_length(r, v, &n)) return false;
    if (!n) return jinja_undefined_hint(r, "No last item, sequence was empty.", out);
    if (v.kind == VALUE_DICT) *out = v.dict->pair[n - 1].key;
    else if (value_is_view(v)) *out = v.list->item[n - 1];
    else return jinja_item(r, v, value_int(-1, false), out);
    return true;
}

bool filter_list(struct run *r, const struct call *call, struct value *out) {
    struct list *list;
    return jinja_elements(r, call->self, &list) && give(VALUE_LIST, list, call, out);
}

bool filter_items(struct run *r, const struct call *call, struct value *out) {
    struct value items = value_of(VALUE_MISSING);
    struct list *list;
    if (call->self.kind == VALUE_UNDEFINED) {
        if (!jinja_list_new(r, 0, &list)) return false;
        return give(VALUE_ITERATOR, list, call, out);
    }
    if (call->self.kind != VALUE_DICT)
        return jinja_fail(r, "Can only get item pairs from a mapping.");
    return method_dict_items(r, call, &items) && give(VALUE_ITERATOR, items.list, call, out);
}

bool filter_reverse(struct run *r, const struct call *call, struct value *out) {
    struct value back[3] = {value_none(false), value_none(false), value_int(-1, false)};
    struct list *list, *result;
    if (call->self.kind == VALUE_STRING) return jinja_slice(r, call->self, back, out);
    if (!jinja_elements(r, call->self, &list) || !jinja_list_new(r, list->n, &result) ||
        !jinja_steps(r, list->n))
        return false;
    for (size_t i = list->n; i > 0; i--) result->item[result->n++] = list->item[i - 1];
    return give(VALUE_ITERATOR, result, call, out);
}

bool filter_attr(struct run *r, const struct call *call, struct value *out) {
    if (call->arg[0].kind != VALUE_STRING) return jinja_fail(r, "attribute name must be string");
    if (call->self.kind != VALUE_DICT) return jinja_attr(r, call->self, call->arg[0].text, out);
    /* unlike the dot, |attr does not fall back to the dict's keys */
    struct value empty = call->self;
    struct dict *none;
    if (!jinja_dict_new(r, 0, &none)) return false;
    empty.dict = none;
    if (!jinja_attr(r, empty, call->arg[0].text, out)) return false;
    if (out->kind != VALUE_METHOD) return true;
    return jinja_attr(r, call->self, call->arg[0].text, out);
}

bool filter_default(struct run *r, const struct call *call, struct value *out) {
    bool use = call->self.kind == VALUE_UNDEFINED ||
               (jinja_truth(call->arg[1]) && !jinja_truth(call->self));
    *out = use ? call->arg[0] : call->self;
    return out->kind != VALUE_MISSING || jinja_text_literal(r, "", true, out);
}

/* ---- batches ---- */

static bool count_arg(struct run *r, struct value v, int64_t *out) {
    if (!value_is_int(v))
        return jinja_fail(r, "'%s' object cannot be interpreted as an integer", jinja_type_name(v));
    *out = value_as_int(v);
    return true;
}

static bool push_part(struct run *r, struct list *into, const struct list *from, size_t at,
                      size_t n, size_t padded, struct value fill, const struct call *call) {
    struct list *part;
    if (!jinja_list_new(r, padded, &part) || !jinja_steps(r, padded)) return false;
    for (; part->n < padded; part->n++)
        part->item[part->n] = part->n < n ? from->item[at + part->n] : fill;
    return jinja_push(r, into, value_list(VALUE_LIST, part, value_is_data(call->self)));
}

bool filter_batch(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *result;
    int64_t size = 0;
    bool fill = call->arg[1].kind != VALUE_MISSING && call->arg[1].kind != VALUE_NONE;
    if (!jinja_elements(r, call->self, &list) || !jinja_list_new(r, 0, &result) ||
        !count_arg(r, call->arg[0], &size))
        return false;
    /* jinja2 compares a batch's length for equality: sizes below 1 never end one */
    size_t most = size > 0 ? (size_t)size : list->n + 1;
    for (size_t at = 0; at < list->n;) {
        size_t n = list->n - at < most ? list->n - at : most;
        if (!push_part(r, result, list, at, n, fill && size > 0 ? most : n, call->arg[1], call))
            return false;
        at += n;
    }
    return give(VALUE_ITERATOR, result, call, out);
}

bool filter_slice(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *result;
    int64_t slices = 0;
    bool fill = call->arg[1].kind != VALUE_MISSING && call->arg[1].kind != VALUE_NONE;
    if (!jinja_elements(r, call->self, &list) || !jinja_list_new(r, 0, &result) ||
        !count_arg(r, call->arg[0], &slices))
        return false;
    if (!slices) return jinja_fail(r, "integer division or modulo by zero");
    size_t at = 0, count = slices > 0 ? (size_t)slices : 0;
    for (size_t i = 0; i < count; i++) {
        bool extra = i < list->n % count;
        size_t n = list->n / count + extra;
        if (!jinja_steps(r, 1) ||
            !push_part(r, result, list, at, n, n + (fill && !extra), call->arg[1], call))
            return false;
        at += n;
    }
    return give(VALUE_ITERATOR, result, call, out);
}

bool filter_sum(struct run *r, const struct call *call, struct value *out) {
    struct list *list;
    *out = call->arg[1];
    if (out->kind == VALUE_MISSING) *out = value_int(0, value_is_data(call->self));
    if (out->kind == VALUE_STRING) return jinja_fail(r, "sum() can't sum strings");
    if (!jinja_elements(r, call->self, &list)) return false;
    for (size_t i = 0; i < list->n; i++) {
        struct value item;
        if (!jinja_path(r, list->item[i], call->arg[0], value_of(VALUE_MISSING), &item) ||
            !jinja_binary(r, OP_ADD, *out, item, out))
            return false;
    }
    return true;
}

/* ---- map, select ---- */

bool filter_map(struct run *r, const struct call *call, struct value *out) {
    struct list *list, *result;
    struct value path = value_of(VALUE_MISSING), missing = path;
    if (!jinja_list_new(r, 0, &result)) return false;
    if (!jinja_truth(call->self)) return give(VALUE_ITERATOR, result, call, out);
    for (size_t i = 0; i < call->keywords && !call->n; i++) {
        if (text_is(call->keyword[i].name, "attribute")) path = call->keyword[i].value;
        else if (text_is(call->keyword[i].name, "default")) missing = call->keyword[i].value;
        else return jinja_fail(r, "unexpected keyword argument");
    }
    if (!call->n && path.kind == VALUE_MISSING)
        return jinja_fail(r, "map requires a filter argument");
    if (call->n && call->positional[0].kind != VALUE_STRING)
        return jinja_fail(r, "map requires the name of a filter");
    if (!jinja_elements(r, call->self, &list)) return false;
    for (size_t i = 0; i < list->n; i++) {
        struct value item = list->item[i];
        if (call->n) {
            struct call each = call_rest(call, 1);
            each.self = item;
            if (!jinja_call_filter(r, call->positional[0].text, &each, &item)) return false;
        } else if (!jinja_path(r, item, path, missing, &item)) {
            return false;
        }
        if (!jinja_push(r, result, item)) return false;
    }
    return give(VALUE_ITERATOR, result, call, out);
}

static bool select_items(struct run *r, const struct call *call, bool want, bool by_attribute,
                         struct value *out) {
    struct list *list, *result;
    if (!jinja_list_new(r, 0, &result)) return false;
    if (!jinja_truth(call->self)) return give(VALUE_ITERATOR, result, call, out);
    if (by_attribute && !call->n) return jinja_fail(r, "missing parameter for attribute name");
    size_t name = by_attribute ? 1 : 0;
    if (call->n > name && call->positional[name].kind != VALUE_STRING)
        return jinja_fail(r, "the name of a test must be a string");
    if (!jinja_elements(r, call->self, &list)) return false;
    for (size_t i = 0; i < list->n; i++) {
        struct value item = list->item[i];
        if (by_attribute &&
            !jinja_path(r, item, call->positional[0], value_of(VALUE_MISSING), &item))
            return false;
        bool yes = jinja_truth(item);
        if (call->n > name) {
            struct call each = call_rest(call, name + 1);
            each.self = item;
            if (!jinja_call_test(r, call->positional[name].text, &each, &yes)) return false;
        }
        if (yes == want && !jinja_push(r, result, list->item[i])) return false;
    }
    return give(VALUE_ITERATOR, result, call, out);
}

bool filter_select(struct run *r, const struct call *call, struct value *out) {
    return select_items(r, call, true, false, out);
}
bool filter_reject(struct run *r, const struct call *call, struct value *out) {
    return select_items(r, call, false, false, out);
}
bool filter_selectattr(struct run *r, const struct call *call, struct value *out) {
    return select_items(r, call, true, true, out);
}
bool filter_rejectattr(struct run *r, const struct call *call, struct value *out) {
    return select_items(r, call, false, true, out);
}
