/* SPDX-License-Identifier: Apache-2.0
 *
 * op.c: operators, subscripts and members, with Python's rules (floor division, string and list
 * repetition, negative indices) and jinja2's on top (a missing member is undefined, not an error).
 * Integers are those of whole.h. */
#include <math.h>
#include <stdio.h>

#include "text/jinja/run.h"
#include "text/jinja/char.h"

/* ---- undefined ---- */

static bool new_undefined(struct run *r, struct undefined why, struct value *out) {
    struct undefined *u = jinja_alloc(r, 1, sizeof *u);
    if (!u) return false;
    *u = why;
    *out = value_of(VALUE_UNDEFINED);
    out->undefined = u;
    return true;
}

bool jinja_undefined(struct run *r, uint8_t of, const struct text *name, struct value *out) {
    return new_undefined(r, (struct undefined){.name = name, .of = of}, out);
}

bool jinja_undefined_hint(struct run *r, const char *hint, struct value *out) {
    return new_undefined(r, (struct undefined){.hint = hint}, out);
}

bool jinja_fail_undefined(struct run *r, struct value v) {
    const struct undefined *u = v.undefined;
    char type[48];
    if (u->hint) return jinja_fail(r, "%s", u->hint);
    if (u->of == VALUE_NONE) snprintf(type, sizeof type, "None");
    else snprintf(type, sizeof type, "%s object", jinja_type_name((struct value){.kind = u->of}));
    if (!u->name) return jinja_fail(r, "%s has no element %lld", type, (long long)u->index);
    if (u->of == VALUE_MISSING)
        return jinja_fail(r, "'%.*s' is undefined", STR_ARG(text_str(u->name)));
    return jinja_fail(r, "'%s' has no attribute '%.*s'", type, STR_ARG(text_str(u->name)));
}

/* ---- arithmetic ---- */

static const char *const op_text[] = {
    [OP_ADD] = "+", [OP_SUB] = "-", [OP_MUL] = "*", [OP_DIV] = "/", [OP_FLOORDIV] = "//",
    [OP_MOD] = "%", [OP_POW] = "** or pow()", [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">",
    [OP_GE] = ">="};

/* As CPython's float_divmod: the quotient is that of the exact remainder. */
static double float_floor_div(double a, double b, double *rest) {
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) {
        mod += b;
        div -= 1;
    } else if (mod == 0) {
        mod = copysign(0, b);
    }
    *rest = mod;
    if (div == 0) return copysign(0, a / b);
    double whole = floor(div);
    return div - whole > 0.5 ? whole + 1 : whole;
}

static bool float_binary(struct run *r, enum node_op op, double a, double b, double *out) {
    double rest;
    switch (op) {
    case OP_ADD: *out = a + b; return true;
    case OP_SUB: *out = a - b; return true;
    case OP_MUL: *out = a * b; return true;
    case OP_POW:
        if (a == 0 && b < 0) return jinja_fail(r, "0.0 cannot be raised to a negative power");
        if (a < 0 && b != floor(b) && isfinite(a) && isfinite(b))
            return jinja_fail_status(r, OB_ERR_UNSUPPORTED, "complex numbers are not supported");
        *out = pow(a, b);
        if (isinf(*out) && isfinite(a) && isfinite(b))
            return jinja_fail(r, "numerical result out of range");
        return true;
    default: break;
    }
    if (b == 0) return jinja_fail(r, op == OP_MOD ? "float modulo" : "division by zero");
    if (op == OP_DIV) {
        *out = a / b;
        return true;
    }
    double div = float_floor_div(a, b, &rest);
    *out = op == OP_MOD ? rest : div;
    return true;
}

static bool number_binary(struct run *r, enum node_op op, struct value a, struct value b,
                          struct value *out) {
    double x, y, result;
    bool whole = value_is_whole(a) && value_is_whole(b);
    if (whole && op != OP_DIV && (op != OP_POW || !whole_negative(b)))
        return whole_binary(r, op, a, b, out);
    if (!(whole && op == OP_DIV ? whole_divide(r, a, b, &result)
                                : whole_or_float(r, a, &x) && whole_or_float(r, b, &y) &&
                                      float_binary(r, op, x, y, &result)))
        return false;
    *out = value_float(result, false);
    return true;
}

static bool repeat(struct run *r, struct value v, int64_t times, bool data, struct value *out) {
    size_t n = v.kind == VALUE_STRING ? v.text->n : v.list->n, total;
    size_t count = times > 0 ? (size_t)times : 0;
    if (__builtin_mul_overflow(n, count, &total) || total > r->memory)
        return jinja_fail_memory(r);
    if (v.kind == VALUE_STRING) {
        struct text *t;
        char *p;
        uint8_t *trust;
        if (!jinja_text_new(r, total, &t, &p, &trust)) return false;
        for (size_t i = 0; i < n && total; i++) {
            p[i] = v.text->p[i];
            trust[i] = text_trusted_at(v.text, i) && !data;
        }
        for (size_t done = n, more; done < total; done += more) { /* doubles what is there */
            more = done < total - done ? done : total - done;
            memcpy(p + done, p, more);
            memcpy(trust + done, trust, more);
        }
        *out = value_text(t);
        return true;
    }
    struct list *list;
    if (!jinja_list_new(r, total, &list) || !jinja_steps(r, total)) return false;
    for (; list->n < total; list->n++) list->item[list->n] = v.list->item[list->n % n];
    *out = value_list(v.kind, list, v.data || data);
    return true;
}

static bool add_lists(struct run *r, struct value a, struct value b, struct value *out) {
    struct list *list;
    size_t n = a.list->n + b.list->n;
    if (!jinja_list_new(r, n, &list) || !jinja_steps(r, n / 8)) return false;
    if (a.list->n) memcpy(list->item, a.list->item, a.list->n * sizeof *list->item);
    if (b.list->n) memcpy(list->item + a.list->n, b.list->item, b.list->n * sizeof *list->item);
    list->n = n;
    *out = value_list(a.kind, list, a.data || b.data);
    return true;
}

static bool add_texts(struct run *r, struct value a, struct value b, struct value *out) {
    bool markup = a.markup || b.markup;
    struct call call = {.self = a.markup ? b : a};
    if (a.markup != b.markup && !filter_escape(r, &call, a.markup ? &b : &a)) return false;
    if (!jinja_concat(r, a.text, b.text, out)) return false;
    out->markup = markup;
    return true;
}

bool jinja_binary(struct run *r, enum node_op op, struct value a, struct value b,
                  struct value *out) {
    bool data = value_is_data(a) || value_is_data(b);
    if (a.kind == VALUE_STRING && op == OP_MOD) return jinja_percent(r, a.text, b, out);
    if (a.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, a);
    if (b.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, b);
    if (value_is_number(a) && value_is_number(b)) {
        if (!number_binary(r, op, a, b, out)) return false;
        out->data = data;
        return true;
    }
    bool a_items = a.kind == VALUE_STRING || value_is_sequence(a);
    bool b_items = b.kind == VALUE_STRING || value_is_sequence(b);
    if (op == OP_ADD && a_items && a.kind == b.kind)
        return a.kind == VALUE_STRING ? add_texts(r, a, b, out) : add_lists(r, a, b, out);
    if (op == OP_MUL && a_items && value_is_int(b))
        return repeat(r, a, value_as_int(b), b.data, out);
    if (op == OP_MUL && b_items && value_is_int(a))
        return repeat(r, b, value_as_int(a), a.data, out);
    const char *left = jinja_type_name(a), *right = jinja_type_name(b);
    if (op == OP_ADD && a_items)
        return jinja_fail(r, "can only concatenate %s (not \"%s\") to %s", left, right, left);
    return jinja_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", op_text[op], left,
                      right);
}

bool jinja_unary(struct run *r, enum node_op op, struct value a, struct value *out) {
    if (op == OP_NOT) {
        *out = value_bool(!jinja_truth(a), value_is_data(a));
        return true;
    }
    if (a.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, a);
    if (!value_is_number(a))
        return jinja_fail(r, "bad operand type for unary %s: '%s'", op == OP_NEG ? "-" : "+",
                          jinja_type_name(a));
    if (a.kind == VALUE_FLOAT) {
        *out = value_float(op == OP_NEG ? -a.f : a.f, a.data);
        return true;
    }
    bool ok = whole_binary(r, op == OP_NEG ? OP_SUB : OP_ADD, value_int(0, false), a, out);
    out->data = a.data;
    return ok;
}

/* <= and >= are not the negation of > and < where a NaN is involved. */
static bool less_equal(struct run *r, struct value a, struct value b, const char *op, bool *out) {
    bool equal;
    if (!jinja_less(r, a, b, op, out)) return false;
    if (*out) return true;
    return jinja_equal(r, a, b, &equal) ? (*out = equal, true) : false;
}

bool jinja_compare(struct run *r, enum node_op op, struct value a, struct value b, bool *out) {
    bool ok;
    switch (op) {
    case OP_EQ: return jinja_equal(r, a, b, out);
    case OP_NE:
        ok = jinja_equal(r, a, b, out);
        *out = !*out;
        return ok;
    case OP_LT: return jinja_less(r, a, b, op_text[op], out);
    case OP_GT: return jinja_less(r, b, a, op_text[op], out);
    case OP_LE: return less_equal(r, a, b, op_text[op], out);
    case OP_GE: return less_equal(r, b, a, op_text[op], out);
    default:
        ok = jinja_contains(r, a, b, out);
        *out = *out == (op == OP_IN);
        return ok;
    }
}

/* ---- members ---- */

/* Methods of lists and dicts that would change them; the sandbox hides them. */
static bool changes(uint8_t kind, const struct text *name) {
    static const char *const of_list[] = {"append", "clear", "pop", "reverse", "insert", "sort",
                                          "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = kind == VALUE_LIST ? of_list : kind == VALUE_DICT ? of_dict : NULL;
    for (; names && *names; names++)
        if (text_is(name, *names)) return true;
    return false;
}

static bool unsafe(struct run *r, struct value of, const struct text *name, struct value *out) {
    char *hint = jinja_alloc(r, 1, 128);
    if (!hint) return false;
    snprintf(hint, 128, "access to attribute '%.*s' of '%s' object is unsafe.",
             (int)(name->n > 40 ? 40 : name->n), name->p, jinja_type_name(of));
    return jinja_undefined_hint(r, hint, out);
}

/* Python's getattr: *out is VALUE_MISSING if there is none. */
static bool attribute(struct run *r, struct value of, const struct text *name, struct value *out) {
    *out = value_of(VALUE_MISSING);
    if (of.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, of);
    if (of.kind == VALUE_LOOP) return jinja_loop_attr(r, of.loop, name, out);
    if (of.kind == VALUE_NAMESPACE) return jinja_dict_get_text(r, of.dict, name, out);
    if (of.kind == VALUE_MACRO) {
        if (text_is(name, "name") && of.macro->def->name) *out = value_text(of.macro->def->name);
        return true;
    }
    if (of.kind == VALUE_TUPLE && of.list->group) {
        bool list = text_is(name, "list");
        if (list || text_is(name, "grouper")) *out = of.list->item[list];
        if (out->kind != VALUE_MISSING) return true;
    }
    if (changes(of.kind, name)) return unsafe(r, of, name, out);
    const struct builtin *builtin = jinja_method_find(of.kind, text_str(name));
    if (!builtin) return true;
    struct method *method = jinja_alloc(r, 1, sizeof *method);
    if (!method) return false;
    *method = (struct method){of, builtin};
    *out = value_of(VALUE_METHOD);
    out->method = method;
    return true;
}

/* An index into n elements, negative ones from the end; false: out of range. */
static bool index_of(struct value key, size_t n, size_t *out) {
    int64_t i = value_as_int(key);
    if (i < 0 && __builtin_add_overflow(i, (int64_t)n, &i)) return false;
    *out = (size_t)i;
    return i >= 0 && (size_t)i < n;
}

static bool char_at(struct run *r, const struct text *t, struct value key, struct value *out) {
    size_t i;
    if (!jinja_steps_bytes(r, t->n)) return false;
    if (!index_of(key, char_count(t->p, t->n), &i)) return true;
    size_t from = jinja_offset(t, 0, i), to = jinja_offset(t, from, 1);
    return jinja_text_copy(r, text_slice(t, from, to - from), out);
}

/* Python's of[key]: *out is VALUE_MISSING where that raises. */
static bool element(struct run *r, struct value of, struct value key, struct value *out) {
    size_t i;
    *out = value_of(VALUE_MISSING);
    if (of.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, of);
    if (of.kind == VALUE_DICT) {
        if (key.kind == VALUE_LIST || key.kind == VALUE_DICT) return true; /* unhashable */
        return jinja_dict_get(r, of.dict, key, out);
    }
    if (!value_is_int(key)) return true;
    if (of.kind == VALUE_STRING) return char_at(r, of.text, key, out);
    if (value_is_sequence(of) && index_of(key, of.list->n, &i)) *out = of.list->item[i];
    if (of.kind == VALUE_RANGE && index_of(key, of.range->n, &i))
        *out = jinja_range_at(of.range, i, of.data || key.data);
    return true;
}

bool jinja_attr(struct run *r, struct value of, const struct text *name, struct value *out) {
    if (!attribute(r, of, name, out)) return false;
    if (out->kind == VALUE_MISSING && !element(r, of, value_text(name), out)) return false;
    return out->kind != VALUE_MISSING || jinja_undefined(r, of.kind, name, out);
}

bool jinja_item(struct run *r, struct value of, struct value key, struct value *out) {
    if (!element(r, of, key, out)) return false;
    if (out->kind != VALUE_MISSING) return true;
    if (key.kind == VALUE_STRING && !attribute(r, of, key.text, out)) return false;
    if (out->kind != VALUE_MISSING) return true;
    if (key.kind == VALUE_STRING) return jinja_undefined(r, of.kind, key.text, out);
    return new_undefined(r, (struct undefined){.of = of.kind,
                                               .index = value_is_int(key) ? value_as_int(key) : 0},
                         out);
}

/* ---- slices ---- */

static int64_t clamped(struct value v) {
    if (v.kind == VALUE_BIG) return v.big->negative ? INT64_MIN : INT64_MAX;
    return value_as_int(v);
}

/* start:stop:step over n elements, as Python's slice.indices, and how many elements that are. */
static bool slice_indices(struct run *r, const struct value part[3], size_t n, int64_t bound[2],
                          int64_t *step, size_t *count) {
    int64_t length = (int64_t)n;
    for (int i = 0; i < 3; i++)
        if (part[i].kind != VALUE_NONE && !value_is_whole(part[i]))
            return part[i].kind == VALUE_UNDEFINED
                       ? jinja_fail_undefined(r, part[i])
                       : jinja_fail(r, "slice indices must be integers or None");
    *step = part[2].kind == VALUE_NONE ? 1 : clamped(part[2]);
    if (!*step) return jinja_fail(r, "slice step cannot be zero");
    if (*step == INT64_MIN) ++*step;
    int64_t low = *step > 0 ? 0 : -1, high = *step > 0 ? length : length - 1;
    for (int i = 0; i < 2; i++) {
        if (part[i].kind == VALUE_NONE) {
            bound[i] = (i == 0) == (*step > 0) ? low : high;
            continue;
        }
        int64_t at = clamped(part[i]);
        if (at < 0) at = at < -length ? low : at + length;
        bound[i] = at < low ? low : at > high ? high : at;
    }
    int64_t distance = *step > 0 ? bound[1] - bound[0] : bound[0] - bound[1];
    int64_t stride = *step > 0 ? *step : -*step;
    *count = distance > 0 ? (size_t)((distance - 1) / stride + 1) : 0;
    return true;
}

static bool slice_text(struct run *r, const struct text *t, const struct value part[3],
                       struct value *out) {
    int64_t bound[2], step;
    size_t count;
    if (!jinja_steps_bytes(r, t->n)) return false;
    if (!slice_indices(r, part, char_count(t->p, t->n), bound, &step, &count)) return false;
    if (step == 1 || count < 2) {
        size_t from = count ? jinja_offset(t, 0, (size_t)bound[0]) : 0;
        return jinja_text_copy(r, text_slice(t, from, jinja_offset(t, from, count) - from), out);
    }
    if (!jinja_capture(r)) return false;
    size_t at = jinja_offset(t, 0, (size_t)bound[0]);
    for (size_t i = 0; i < count; i++) {
        size_t end = jinja_offset(t, at, 1);
        if (!jinja_put_slice(r, t, at, end - at)) return false;
        if (i + 1 == count) break;
        if (step > 0) at = jinja_offset(t, at, (size_t)step);
        else
            for (int64_t k = step; k < 0; k++) at = (size_t)(char_back(t->p, t->p + at) - t->p);
    }
    return jinja_captured(r, out);
}

bool jinja_slice(struct run *r, struct value of, const struct value part[3], struct value *out) {
    int64_t bound[2], step;
    size_t count;
    if (of.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, of);
    if (of.kind == VALUE_STRING) return slice_text(r, of.text, part, out);
    if (of.kind == VALUE_RANGE) {
        struct range *range = jinja_alloc(r, 1, sizeof *range);
        if (!range || !slice_indices(r, part, of.range->n, bound, &step, &count)) return false;
        int64_t stride;
        /* a stride beyond 64 bits can be any: there is one element at most */
        if (__builtin_mul_overflow(step, of.range->step, &stride)) stride = of.range->step;
        *range = (struct range){of.range->start + bound[0] * of.range->step,
                                of.range->start + bound[1] * of.range->step, stride, count};
        *out = value_of(VALUE_RANGE);
        out->range = range;
        out->data = of.data;
        return true;
    }
    if (!value_is_sequence(of))
        return jinja_fail(r, "'%s' object is not subscriptable", jinja_type_name(of));
    struct list *list;
    if (!slice_indices(r, part, of.list->n, bound, &step, &count)) return false;
    if (!jinja_list_new(r, count, &list) || !jinja_steps(r, count / 8)) return false;
    for (size_t i = 0; i < count; i++)
        list->item[list->n++] = of.list->item[bound[0] + (int64_t)i * step];
    *out = value_list(of.kind, list, of.data);
    return true;
}
