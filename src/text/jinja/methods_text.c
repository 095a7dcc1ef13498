/* SPDX-License-Identifier: Apache-2.0
 *
 * methods_text.c: Python's str methods, except for case (methods_case.c) and format (format.c).
 * What is cut from the object shares its bytes and keeps their provenance. */
#include "base/utf8.h"
#include "text/jinja/run.h"
#include "text/jinja/char.h"

/* Argument i, which must be a string. */
static bool text_arg(struct run *r, const struct call *call, size_t i, const struct text **out) {
    *out = call->arg[i].text;
    return call->arg[i].kind == VALUE_STRING ||
           jinja_fail(r, "must be str, not %s", jinja_type_name(call->arg[i]));
}

/* Argument i, which must be an integer where it is given. */
static bool int_arg(struct run *r, const struct call *call, size_t i, int64_t missing,
                    int64_t *out) {
    *out = missing;
    if (call->arg[i].kind == VALUE_MISSING) return true;
    if (!value_is_int(call->arg[i]))
        return jinja_fail(r, "'%s' object cannot be interpreted as an integer",
                          jinja_type_name(call->arg[i]));
    *out = value_as_int(call->arg[i]);
    return true;
}

static bool push_slice(struct run *r, struct list *list, const struct text *t, size_t from,
                       size_t n) {
    struct value v;
    return jinja_text_copy(r, text_slice(t, from, n), &v) && jinja_push(r, list, v);
}

static bool give_list(struct run *r, struct list *list, const struct call *call,
                      struct value *out) {
    (void)r;
    *out = value_list(VALUE_LIST, list, value_is_data(call->self));
    return true;
}

/* Last occurrence that ends at or before `to`. Quadratic for hostile patterns, so it is counted. */
static bool find_before(struct run *r, const struct text *t, const struct text *what, size_t to,
                        size_t *out) {
    *out = SIZE_MAX;
    for (size_t at = to; at + 1 > what->n; at--) {
        size_t from = at - what->n;
        if (what->n && t->p[from] != what->p[0]) continue;
        if (!jinja_steps_bytes(r, what->n)) return false;
        if (what->n && memcmp(t->p + from, what->p, what->n) != 0) continue;
        *out = from;
        return true;
    }
    return true;
}

/* ---- strip ---- */

/* Whether strip removes the character; *ok turns false at the limit. */
static bool in_set(struct run *r, const struct text *set, uint32_t code, bool *ok) {
    if (!set) return char_space(code);
    *ok = *ok && jinja_steps_bytes(r, set->n);
    for (size_t i = 0; i < set->n;) {
        uint32_t c;
        i += utf8_decode(set->p + i, set->n - i, &c);
        if (c == code) return true;
    }
    return false;
}

static bool strip(struct run *r, const struct call *call, bool left, bool right,
                  struct value *out) {
    const struct text *t = call->self.text, *set = NULL;
    size_t from = 0, to = t->n;
    uint32_t c;
    bool ok = true;
    if (call->arg[0].kind != VALUE_MISSING && call->arg[0].kind != VALUE_NONE &&
        !text_arg(r, call, 0, &set))
        return false;
    while (left && ok && from < to) {
        size_t n = utf8_decode(t->p + from, to - from, &c);
        if (!in_set(r, set, c, &ok)) break;
        from += n;
    }
    while (right && ok && from < to) {
        const char *p = char_back(t->p + from, t->p + to);
        utf8_decode(p, (size_t)(t->p + to - p), &c);
        if (!in_set(r, set, c, &ok)) break;
        to = (size_t)(p - t->p);
    }
    if (!ok || !jinja_steps_bytes(r, t->n - (to - from))) return false;
    return jinja_text_copy(r, text_slice(t, from, to - from), out);
}

bool method_strip(struct run *r, const struct call *call, struct value *out) {
    return strip(r, call, true, true, out);
}
bool method_lstrip(struct run *r, const struct call *call, struct value *out) {
    return strip(r, call, true, false, out);
}
bool method_rstrip(struct run *r, const struct call *call, struct value *out) {
    return strip(r, call, false, true, out);
}

static bool ends(const struct text *t, const struct text *what, bool at_start) {
    return t->n >= what->n &&
           (!what->n || memcmp(at_start ? t->p : t->p + t->n - what->n, what->p, what->n) == 0);
}

bool method_removeprefix(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text, *what;
    if (!text_arg(r, call, 0, &what)) return false;
    size_t cut = ends(t, what, true) ? what->n : 0;
    return jinja_text_copy(r, text_slice(t, cut, t->n - cut), out);
}
bool method_removesuffix(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text, *what;
    if (!text_arg(r, call, 0, &what)) return false;
    return jinja_text_copy(r, text_slice(t, 0, t->n - (ends(t, what, false) ? what->n : 0)), out);
}

/* ---- split ---- */

static bool split_space(struct run *r, const struct text *t, int64_t most, struct list *list) {
    const char *p = t->p, *end = t->p + t->n;
    for (size_t n;;) {
        while ((n = char_space_at(p, end)) != 0) p += n;
        if (p == end) return true;
        const char *from = p;
        if (most >= 0 && (int64_t)list->n == most) {
            return push_slice(r, list, t, (size_t)(from - t->p), (size_t)(end - from));
        }
        while (p < end && !char_space_at(p, end)) p++;
        if (!push_slice(r, list, t, (size_t)(from - t->p), (size_t)(p - from))) return false;
    }
}

static void reverse(struct list *list) {
    for (size_t i = 0; i < list->n / 2; i++) {
        struct value v = list->item[i];
        list->item[i] = list->item[list->n - 1 - i];
        list->item[list->n - 1 - i] = v;
    }
}

static bool rsplit_space(struct run *r, const struct text *t, int64_t most, struct list *list) {
    const char *start = t->p, *p = t->p + t->n;
    for (size_t n;;) {
        while ((n = char_space_before(start, p)) != 0) p -= n;
        if (p == start) break;
        const char *to = p;
        if (most >= 0 && (int64_t)list->n == most) {
            if (!push_slice(r, list, t, (size_t)(start - t->p), (size_t)(to - start))) return false;
            break;
        }
        while (p > start && !char_space_before(start, p)) p = char_back(start, p);
        if (!push_slice(r, list, t, (size_t)(p - t->p), (size_t)(to - p))) return false;
    }
    reverse(list);
    return true;
}

static bool split_sep(struct run *r, const struct text *t, const struct text *sep, int64_t most,
                      struct list *list) {
    size_t from = 0, at;
    while ((most < 0 || (int64_t)list->n < most) && (at = jinja_find(t, sep, from)) != SIZE_MAX) {
        if (!push_slice(r, list, t, from, at - from)) return false;
        from = at + sep->n;
    }
    return push_slice(r, list, t, from, t->n - from);
}

static bool rsplit_sep(struct run *r, const struct text *t, const struct text *sep, int64_t most,
                       struct list *list) {
    size_t to = t->n, at;
    while (most < 0 || (int64_t)list->n < most) {
        if (!find_before(r, t, sep, to, &at)) return false;
        if (at == SIZE_MAX) break;
        if (!push_slice(r, list, t, at + sep->n, to - at - sep->n)) return false;
        to = at;
    }
    if (!push_slice(r, list, t, 0, to)) return false;
    reverse(list);
    return true;
}

static bool split(struct run *r, const struct call *call, bool right, struct value *out) {
    const struct text *t = call->self.text, *sep = NULL;
    struct list *list;
    int64_t most;
    bool space = call->arg[0].kind == VALUE_MISSING || call->arg[0].kind == VALUE_NONE;
    if (!jinja_list_new(r, 0, &list) || !int_arg(r, call, 1, -1, &most) ||
        !jinja_steps_bytes(r, t->n))
        return false;
    if (space)
        return (right ? rsplit_space : split_space)(r, t, most, list) &&
               give_list(r, list, call, out);
    if (!text_arg(r, call, 0, &sep)) return false;
    if (!sep->n) return jinja_fail(r, "empty separator");
    return (right ? rsplit_sep : split_sep)(r, t, sep, most, list) && give_list(r, list, call, out);
}

bool method_split(struct run *r, const struct call *call, struct value *out) {
    return split(r, call, false, out);
}
bool method_rsplit(struct run *r, const struct call *call, struct value *out) {
    return split(r, call, true, out);
}

/* The end of the line that starts at `from`, and where the next one starts. */
static size_t line_end(const struct text *t, size_t from, size_t *next) {
    for (size_t i = from; i < t->n;) {
        uint32_t c;
        size_t n = utf8_decode(t->p + i, t->n - i, &c);
        if (char_line_break(c)) {
            *next = i + n + (c == '\r' && i + 1 < t->n && t->p[i + 1] == '\n');
            return i;
        }
        i += n;
    }
    return *next = t->n;
}

bool method_splitlines(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    bool keep = jinja_truth(call->arg[0]);
    struct list *list;
    if (!jinja_list_new(r, 0, &list) || !jinja_steps_bytes(r, t->n)) return false;
    for (size_t from = 0, next; from < t->n; from = next) {
        size_t end = line_end(t, from, &next);
        if (!push_slice(r, list, t, from, (keep ? next : end) - from)) return false;
    }
    return give_list(r, list, call, out);
}

static bool partition(struct run *r, const struct call *call, bool right, struct value *out) {
    const struct text *t = call->self.text, *sep;
    struct list *list;
    size_t at;
    if (!text_arg(r, call, 0, &sep) || !jinja_list_new(r, 3, &list) ||
        !jinja_steps_bytes(r, t->n))
        return false;
    if (!sep->n) return jinja_fail(r, "empty separator");
    if (!right) at = jinja_find(t, sep, 0);
    else if (!find_before(r, t, sep, t->n, &at)) return false;
    bool found = at != SIZE_MAX;
    size_t first = found ? at : right ? 0 : t->n, middle = found ? sep->n : 0;
    bool ok = push_slice(r, list, t, 0, first) && push_slice(r, list, t, first, middle) &&
              push_slice(r, list, t, first + middle, t->n - first - middle);
    *out = value_list(VALUE_TUPLE, list, value_is_data(call->self));
    return ok;
}

bool method_partition(struct run *r, const struct call *call, struct value *out) {
    return partition(r, call, false, out);
}
bool method_rpartition(struct run *r, const struct call *call, struct value *out) {
    return partition(r, call, true, out);
}

/* ---- find ---- */

/* The part of the object between the arguments start and end; *skipped characters before it. A
 * start beyond the end is no part at all (*none), not even for an empty pattern. */
static bool bounds(struct run *r, const struct call *call, struct text *part, int64_t *skipped,
                   bool *none) {
    const struct text *t = call->self.text;
    int64_t n = (int64_t)char_count(t->p, t->n), at[2];
    if (!jinja_steps_bytes(r, t->n)) return false;
    for (size_t i = 0; i < 2; i++) {
        bool absent = call->arg[i + 1].kind == VALUE_NONE;
        if (absent) at[i] = i ? n : 0;
        else if (!int_arg(r, call, i + 1, i ? n : 0, &at[i])) return false;
        if (at[i] < 0) at[i] = at[i] < -n ? 0 : at[i] + n;
    }
    *none = at[0] > n || at[0] > at[1];
    if (*none) at[0] = at[1] = 0;
    if (at[1] > n) at[1] = n;
    size_t from = jinja_offset(t, 0, (size_t)at[0]);
    *part = text_slice(t, from, jinja_offset(t, from, (size_t)(at[1] - at[0])) - from);
    *skipped = at[0];
    return true;
}

static bool find(struct run *r, const struct call *call, bool last, bool must, struct value *out) {
    const struct text *what;
    struct text part;
    int64_t skipped;
    bool none;
    size_t at;
    if (!text_arg(r, call, 0, &what) || !bounds(r, call, &part, &skipped, &none)) return false;
    if (!last) at = jinja_find(&part, what, 0);
    else if (!find_before(r, &part, what, part.n, &at)) return false;
    if (none) at = SIZE_MAX;
    if (at == SIZE_MAX && must) return jinja_fail(r, "substring not found");
    *out = value_int(at == SIZE_MAX ? -1 : skipped + (int64_t)char_count(part.p, at),
                     value_is_data(call->self));
    return true;
}

bool method_find(struct run *r, const struct call *call, struct value *out) {
    return find(r, call, false, false, out);
}
bool method_rfind(struct run *r, const struct call *call, struct value *out) {
    return find(r, call, true, false, out);
}
bool method_index(struct run *r, const struct call *call, struct value *out) {
    return find(r, call, false, true, out);
}
bool method_rindex(struct run *r, const struct call *call, struct value *out) {
    return find(r, call, true, true, out);
}

bool method_count(struct run *r, const struct call *call, struct value *out) {
    const struct text *what;
    struct text part;
    int64_t skipped, count = 0;
    bool none;
    if (!text_arg(r, call, 0, &what) || !bounds(r, call, &part, &skipped, &none)) return false;
    if (!what->n) count = (int64_t)char_count(part.p, part.n) + 1;
    for (size_t at = 0; what->n && (at = jinja_find(&part, what, at)) != SIZE_MAX; at += what->n)
        count++;
    *out = value_int(none ? 0 : count, value_is_data(call->self));
    return true;
}

static bool starts_or_ends(struct run *r, const struct call *call, bool start, struct value *out) {
    struct text part;
    int64_t skipped;
    bool none, found = false;
    struct value what = call->arg[0];
    struct value *each = what.kind == VALUE_TUPLE ? what.list->item : &what;
    size_t n = what.kind == VALUE_TUPLE ? what.list->n : 1;
    if (!bounds(r, call, &part, &skipped, &none)) return false;
    for (size_t i = 0; i < n && !found; i++) {
        if (each[i].kind != VALUE_STRING)
            return jinja_fail(r, "%s first arg must be str or a tuple of str, not %s",
                              start ? "startswith" : "endswith", jinja_type_name(each[i]));
        found = !none && ends(&part, each[i].text, start);
    }
    *out = value_bool(found, value_is_data(call->self));
    return true;
}

bool method_startswith(struct run *r, const struct call *call, struct value *out) {
    return starts_or_ends(r, call, true, out);
}
bool method_endswith(struct run *r, const struct call *call, struct value *out) {
    return starts_or_ends(r, call, false, out);
}

/* ---- replace, join ---- */

bool method_replace(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text, *old, *new;
    int64_t most;
    if (!text_arg(r, call, 0, &old) || !text_arg(r, call, 1, &new) ||
        !int_arg(r, call, 2, -1, &most) || !jinja_steps_bytes(r, t->n))
        return false;
    size_t from = 0, at = 0;
    if (!jinja_capture(r)) return false;
    for (int64_t i = 0; most < 0 || i < most; i++) {
        if (old->n || i == 0) at = jinja_find(t, old, from);
        else at = from < t->n ? jinja_offset(t, from, 1) : SIZE_MAX; /* between all characters */
        if (at == SIZE_MAX) break;
        if (!jinja_put_slice(r, t, from, at - from) || !jinja_put_text(r, new)) return false;
        from = at + old->n;
    }
    return jinja_put_slice(r, t, from, t->n - from) && jinja_captured(r, out);
}

bool method_join(struct run *r, const struct call *call, struct value *out) {
    struct list *list;
    if (!jinja_elements(r, call->arg[0], &list) || !jinja_capture(r)) return false;
    for (size_t i = 0; i < list->n; i++) {
        if (list->item[i].kind != VALUE_STRING)
            return jinja_fail(r, "sequence item %zu: expected str instance, %s found", i,
                              jinja_type_name(list->item[i]));
        if ((i && !jinja_put_text(r, call->self.text)) || !jinja_put_text(r, list->item[i].text))
            return false;
    }
    return jinja_captured(r, out);
}

/* ---- padding ---- */

static bool put_fill(struct run *r, const struct text *fill, int64_t n, bool trusted) {
    for (int64_t i = 0; i < n; i++)
        if (!jinja_put(r, fill->p, fill->n, trusted)) return false;
    return true;
}

/* The padding counts as data if what it is computed from does. */
enum align { ALIGN_LEFT, ALIGN_CENTER, ALIGN_RIGHT };

static bool pad(struct run *r, const struct call *call, enum align align, struct value *out) {
    static const struct text space = TEXT_LITERAL(" ");
    const struct text *t = call->self.text, *fill = &space;
    int64_t width;
    if (!int_arg(r, call, 0, 0, &width)) return false;
    if (call->arg[1].kind != VALUE_MISSING && !text_arg(r, call, 1, &fill)) return false;
    if (char_count(fill->p, fill->n) != 1)
        return jinja_fail(r, "the fill character must be exactly one character long");
    bool trusted = text_all_trusted(fill) && text_all_trusted(t) && !call->arg[0].data;
    int64_t n = width - (int64_t)char_count(t->p, t->n), left;
    if (n < 0) n = 0;
    left = align == ALIGN_CENTER ? n / 2 + (n & width & 1) : align == ALIGN_RIGHT ? n : 0;
    return jinja_capture(r) && put_fill(r, fill, left, trusted) && jinja_put_text(r, t) &&
           put_fill(r, fill, n - left, trusted) && jinja_captured(r, out);
}

bool method_ljust(struct run *r, const struct call *call, struct value *out) {
    return pad(r, call, ALIGN_LEFT, out);
}
bool method_center(struct run *r, const struct call *call, struct value *out) {
    return pad(r, call, ALIGN_CENTER, out);
}
bool method_rjust(struct run *r, const struct call *call, struct value *out) {
    return pad(r, call, ALIGN_RIGHT, out);
}

bool method_zfill(struct run *r, const struct call *call, struct value *out) {
    static const struct text zero = TEXT_LITERAL("0");
    const struct text *t = call->self.text;
    int64_t width;
    if (!int_arg(r, call, 0, 0, &width)) return false;
    size_t sign = t->n && (t->p[0] == '+' || t->p[0] == '-');
    int64_t n = width - (int64_t)char_count(t->p, t->n);
    return jinja_capture(r) && jinja_put_slice(r, t, 0, sign) &&
           put_fill(r, &zero, n, text_all_trusted(t) && !call->arg[0].data) &&
           jinja_put_slice(r, t, sign, t->n - sign) && jinja_captured(r, out);
}

bool method_expandtabs(struct run *r, const struct call *call, struct value *out) {
    static const struct text space = TEXT_LITERAL(" ");
    const struct text *t = call->self.text;
    int64_t size, column = 0;
    if (!int_arg(r, call, 0, 8, &size) || !jinja_capture(r)) return false;
    for (size_t i = 0, next; i < t->n; i = next) {
        next = jinja_offset(t, i, 1);
        if (t->p[i] == '\t') {
            int64_t n = size > 0 ? size - column % size : 0;
            if (!put_fill(r, &space, n, text_trusted_at(t, i))) return false;
            column += n;
        } else {
            if (!jinja_put_slice(r, t, i, next - i)) return false;
            column = t->p[i] == '\n' || t->p[i] == '\r' ? 0 : column + 1;
        }
    }
    return jinja_captured(r, out);
}
