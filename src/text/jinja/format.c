/* SPDX-License-Identifier: Apache-2.0
 *
 * format.c: the two ways of Python to format text: "%s" % x and "{}".format(x). Both put pieces of
 * the format, converted values and padding after each other. A format with a data byte makes the
 * whole result data: it could otherwise arrange trusted pieces as it likes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/jinja/char.h"
#include "text/jinja/format.h"

static bool put_times(struct run *r, uint32_t fill, int64_t n, bool trusted) {
    for (int64_t i = 0; i < n; i++)
        if (!jinja_put_code(r, fill, trusted)) return false;
    return true;
}

bool format_padded(struct run *r, const struct text *body, size_t head, char align,
                       const struct layout *f) {
    int64_t pad = f->width - (int64_t)char_count(body->p, body->n);
    bool trusted = f->trusted && text_all_trusted(body);
    if (pad < 0) pad = 0;
    int64_t left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    if (align != '=') head = 0;
    return jinja_put_slice(r, body, 0, head) && put_times(r, f->fill, left, trusted) &&
           jinja_put_slice(r, body, head, body->n - head) &&
           put_times(r, f->fill, pad - left, trusted);
}

static bool put_string(struct run *r, const struct text *t, char align, const struct layout *f) {
    struct text body = *t;
    if (f->precision >= 0) body.n = jinja_offset(t, 0, (size_t)f->precision);
    return format_padded(r, &body, 0, align, f);
}

/* ---- "..." % args ---- */

struct percent {
    const struct text *t;
    size_t at;
    struct value args;
    size_t used; /* of a tuple; of a single value 0 or 1 */
};

static bool next_arg(struct run *r, struct percent *p, struct value *out) {
    bool tuple = p->args.kind == VALUE_TUPLE;
    if (p->used >= (tuple ? p->args.list->n : 1))
        return jinja_fail(r, "not enough arguments for format string");
    *out = tuple ? p->args.list->item[p->used] : p->args;
    p->used++;
    return true;
}

/* A number, or '*' for the next argument; -1 if there is none. */
static bool percent_number(struct run *r, struct percent *p, int64_t *out) {
    const struct text *t = p->t;
    struct value v;
    *out = -1;
    if (p->at < t->n && t->p[p->at] == '*') {
        p->at++;
        if (!next_arg(r, p, &v)) return false;
        if (!value_is_int(v)) return jinja_fail(r, "* wants int");
        *out = value_as_int(v);
    }
    while (p->at < t->n && t->p[p->at] >= '0' && t->p[p->at] <= '9' && *out < MOST_WIDTH * 10)
        *out = (*out < 0 ? 0 : *out) * 10 + (t->p[p->at++] - '0');
    return *out <= MOST_WIDTH ||
           jinja_fail_status(r, OB_ERR_LIMIT, "a width or precision over %d", MOST_WIDTH);
}

/* str, repr or ascii of a value, as `how` says: 's', 'r' or 'a'. */
static bool convert(struct run *r, struct value v, char how, const struct text **out) {
    if (how == 's') return jinja_to_text(r, v, out);
    if (!jinja_capture(r) || !jinja_put_repr(r, v) || !jinja_captured(r, &v)) return false;
    *out = v.text;
    if (how == 'r') return true;
    if (!jinja_capture(r)) return false;
    char escape[16];
    uint32_t c;
    for (size_t i = 0, n; i < v.text->n; i += n) {
        n = utf8_decode(v.text->p + i, v.text->n - i, &c);
        int length = snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x", c);
        if (!(c < 0x80 ? jinja_put_slice(r, v.text, i, n)
                       : jinja_put(r, escape, (size_t)length, text_trusted_at(v.text, i))))
            return false;
    }
    if (!jinja_captured(r, &v)) return false;
    *out = v.text;
    return true;
}

static bool put_char(struct run *r, struct value v, const struct layout *f) {
    char bytes[4];
    struct text one;
    if (v.kind == VALUE_STRING) {
        if (char_count(v.text->p, v.text->n) != 1)
            return jinja_fail(r, "%%c requires int or char");
        one = *v.text;
    } else {
        if (!value_is_int(v)) return jinja_fail(r, "%%c requires int or char");
        int64_t code = value_as_int(v);
        if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return jinja_fail(r, "%%c arg not in range(0x110000)");
        one = text_of(bytes, utf8_encode((uint32_t)code, bytes), !v.data);
    }
    return format_padded(r, &one, 0, f->align ? f->align : '>', f);
}

static bool put_converted(struct run *r, struct value v, struct layout *f) {
    const struct text *text;
    char c = f->type;
    if (c == 's' || c == 'r' || c == 'a') {
        if (!convert(r, v, c, &text)) return false;
        f->fill = ' ';
        return put_string(r, text, f->align == '<' ? '<' : '>', f);
    }
    if (c == 'c') return put_char(r, v, f);
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    bool floating = c && strchr("eEfFgG", c);
    if (!value_is_number(v) || (strchr("xXo", c) && !value_is_whole(v)))
        return jinja_fail(r, "%%%c format: a number is required, not %s", c, jinja_type_name(v));
    if (floating) return format_float(r, v, f);
    if (c == 'i' || c == 'u') f->type = 'd';
    bool data = v.data;
    if (v.kind == VALUE_FLOAT) {
        if (!isfinite(v.f))
            return jinja_fail(r, "cannot convert float %s to integer",
                              isnan(v.f) ? "NaN" : "infinity");
        if (!whole_of_float(r, v.f, &v)) return false;
        v.data = data;
    }
    return format_whole(r, v, f);
}

/* (name), which takes the value from a mapping. */
static bool percent_key(struct run *r, struct percent *p, struct value *out) {
    const struct text *t = p->t;
    size_t from = p->at + 1, open = 1;
    for (p->at++; p->at < t->n && open; p->at++)
        open += (t->p[p->at] == '(') - (t->p[p->at] == ')');
    if (open) return jinja_fail(r, "incomplete format key");
    if (p->args.kind != VALUE_DICT) return jinja_fail(r, "format requires a mapping");
    struct text key = text_slice(t, from, p->at - 1 - from);
    if (!jinja_dict_get_text(r, p->args.dict, &key, out)) return false;
    return out->kind != VALUE_MISSING || jinja_fail(r, "no such key in the format's mapping");
}

static bool percent_directive(struct run *r, struct percent *p, bool trusted) {
    struct layout f = {.fill = ' ', .trusted = trusted};
    struct value v = value_of(VALUE_MISSING);
    const struct text *t = p->t;
    bool zero = false, bare = p->at < t->n && t->p[p->at] == '%';
    if (p->at < t->n && t->p[p->at] == '(' && !percent_key(r, p, &v)) return false;
    for (; p->at < t->n; p->at++) {
        char c = t->p[p->at];
        if (c == '-') f.align = '<';
        else if (c == '+') f.sign = '+';
        else if (c == ' ') f.sign = f.sign ? f.sign : ' ';
        else if (c == '#') f.alternate = true;
        else if (c == '0') zero = true;
        else break;
    }
    if (!percent_number(r, p, &f.width)) return false;
    if (f.width < -1) f.align = '<', f.width = -f.width;
    f.precision = -1;
    if (p->at < t->n && t->p[p->at] == '.') {
        p->at++;
        if (!percent_number(r, p, &f.precision)) return false;
        if (f.precision < 0) f.precision = 0;
    }
    while (p->at < t->n && t->p[p->at] && strchr("hlL", t->p[p->at])) p->at++;
    if (p->at >= t->n) return jinja_fail(r, "incomplete format");
    f.type = t->p[p->at++];
    if (bare) return jinja_put(r, "%", 1, trusted);
    if (v.kind == VALUE_MISSING && !next_arg(r, p, &v)) return false;
    if (!f.type || !strchr("diuoxXeEfFgGcrsa", f.type))
        return jinja_fail(r, "unsupported format character '%c'", f.type);
    if (zero && !f.align && !strchr("crsa", f.type)) f.fill = '0', f.align = '=';
    return put_converted(r, v, &f);
}

/* What a format that is not wholly trusted made is data. */
static bool finish(struct run *r, bool trusted, struct value *out) {
    if (!jinja_captured(r, out)) return false;
    struct text data = text_of(out->text->p, out->text->n, false);
    return trusted || jinja_text_copy(r, data, out);
}

bool jinja_percent(struct run *r, const struct text *t, struct value args, struct value *out) {
    struct percent p = {.t = t, .args = args};
    bool trusted = text_all_trusted(t);
    if (!jinja_capture(r)) return false;
    while (p.at < t->n) {
        const char *at = memchr(t->p + p.at, '%', t->n - p.at);
        size_t to = at ? (size_t)(at - t->p) : t->n;
        if (!jinja_put_slice(r, t, p.at, to - p.at)) return false;
        p.at = at ? to + 1 : to;
        if (at && !percent_directive(r, &p, trusted)) return false;
    }
    bool left = args.kind == VALUE_TUPLE ? p.used < args.list->n
                                         : !p.used && args.kind != VALUE_DICT &&
                                               args.kind != VALUE_LIST;
    if (left) return jinja_fail(r, "not all arguments converted during string formatting");
    return finish(r, trusted, out);
}

bool filter_format(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    struct value args;
    struct dict *dict;
    if (call->n && call->keywords)
        return jinja_fail(r, "can't handle positional and keyword arguments at the same time");
    if (!jinja_to_text(r, call->self, &t)) return false;
    if (call->keywords) {
        if (!jinja_dict_new(r, 0, &dict)) return false;
        for (size_t i = 0; i < call->keywords; i++)
            if (!jinja_dict_set(r, dict, value_text(call->keyword[i].name), call->keyword[i].value))
                return false;
        args = value_dict(dict, false);
    } else {
        struct list *list;
        if (!jinja_list_new(r, call->n, &list)) return false;
        for (; list->n < call->n; list->n++) list->item[list->n] = call->positional[list->n];
        args = value_list(VALUE_TUPLE, list, false);
    }
    return jinja_percent(r, t, args, out);
}

/* ---- "...".format(args) ---- */

static bool parse_spec(struct run *r, struct text spec, struct layout *f) {
    const char *p = spec.p, *end = spec.p + spec.n;
    uint32_t c;
    size_t n = p < end ? utf8_decode(p, (size_t)(end - p), &c) : 0;
    f->precision = -1;
    if (n && p + n < end && strchr("<>=^", p[n]) && p[n]) {
        f->fill = c;
        f->align = p[n];
        p += n + 1;
    } else if (p < end && *p && strchr("<>=^", *p)) {
        f->align = *p++;
    }
    if (p < end && (*p == '+' || *p == '-' || *p == ' ')) {
        f->signs = true;
        f->sign = *p == '-' ? 0 : *p;
        p++;
    }
    if (p < end && *p == '#') f->alternate = true, p++;
    if (p < end && *p == '0') {
        if (!f->align) f->fill = '0', f->align = '=';
        p++;
    }
    for (; p < end && *p >= '0' && *p <= '9' && f->width <= MOST_WIDTH; p++)
        f->width = f->width * 10 + (*p - '0');
    if (p < end && (*p == ',' || *p == '_')) f->group = *p++;
    if (p < end && *p == '.') {
        f->precision = 0;
        for (p++; p < end && *p >= '0' && *p <= '9' && f->precision <= MOST_WIDTH; p++)
            f->precision = f->precision * 10 + (*p - '0');
    }
    if (p < end) f->type = *p++;
    if (f->width > MOST_WIDTH || f->precision > MOST_WIDTH)
        return jinja_fail_status(r, OB_ERR_LIMIT, "a width or precision over %d", MOST_WIDTH);
    return p == end || jinja_fail(r, "invalid format specifier");
}

static bool put_formatted(struct run *r, struct value v, struct text spec, bool trusted) {
    struct layout f = {.fill = ' ', .trusted = trusted};
    if (!spec.n) return jinja_put_value(r, v);
    if (!parse_spec(r, spec, &f)) return false;
    if (v.kind == VALUE_STRING) {
        if ((f.type && f.type != 's') || f.signs || f.group || f.alternate || f.align == '=')
            return jinja_fail(r, "format specifier not allowed for a string");
        return put_string(r, v.text, f.align ? f.align : '<', &f);
    }
    if (!value_is_number(v))
        return jinja_fail(r, "unsupported format string passed to %s.__format__",
                          jinja_type_name(v));
    bool floating = f.type && strchr("eEfFgG%", f.type);
    if (floating || v.kind == VALUE_FLOAT) {
        if (f.type && !floating) return jinja_fail(r, "unknown format code for a float");
        return format_float(r, v, &f);
    }
    if (f.type == 'c' && f.signs)
        return jinja_fail(r, "Sign not allowed with integer format specifier 'c'");
    if (f.type == 'c') return put_char(r, v, &f);
    if (f.precision >= 0) return jinja_fail(r, "precision not allowed in integer format specifier");
    if (f.type && !strchr("bdoxX", f.type)) return jinja_fail(r, "unknown format code for an int");
    return format_whole(r, v, &f);
}

/* The value a field names: "", "0", "name", then .member and [key] steps. */
static bool field_value(struct run *r, const struct call *call, struct text name,
                        int64_t *automatic, struct value *out) {
    size_t to = 0;
    while (to < name.n && name.p[to] != '.' && name.p[to] != '[') to++;
    struct text first = text_slice(&name, 0, to);
    int64_t index = 0;
    size_t digits = 0;
    while (digits < to && digits < 9 && first.p[digits] >= '0' && first.p[digits] <= '9')
        index = index * 10 + (first.p[digits++] - '0');
    *out = value_of(VALUE_MISSING);
    if (digits == to && (to || !name.n)) {
        if (to == name.n && (to == 0) != (*automatic >= 0) && *automatic != 0)
            return jinja_fail(r, "cannot mix automatic and manual field numbering");
        if (to == 0) index = (*automatic)++;
        else if (to == name.n) *automatic = -1;
        if ((size_t)index < call->n) *out = call->positional[index];
    } else {
        for (size_t i = 0; i < call->keywords; i++)
            if (str_eq(text_str(call->keyword[i].name), text_str(&first)))
                *out = call->keyword[i].value;
    }
    if (out->kind == VALUE_MISSING) return jinja_fail(r, "no such argument for the format string");
    for (size_t from; to < name.n;) {
        bool bracket = name.p[to] == '[';
        from = ++to;
        const char *stop = bracket ? "]" : ".[";
        while (to < name.n && !(name.p[to] && strchr(stop, name.p[to]))) to++;
        struct value part, key;
        if (!jinja_text_copy(r, text_slice(&name, from, to - from), &part)) return false;
        if (!part.text->n || (bracket && to == name.n))
            return jinja_fail(r, "malformed field in format string");
        to += bracket;
        struct call number = {.self = part};
        bool is_index = bracket && strspn(part.text->p, "0123456789") >= part.text->n;
        if (is_index && !filter_int(r, &number, &key)) return false;
        if (!(bracket ? jinja_item(r, *out, is_index ? key : part, out)
                      : jinja_attr(r, *out, part.text, out)))
            return false;
    }
    return true;
}

static bool put_fields(struct run *r, const struct call *call, const struct text *t, bool trusted,
                       int level, int64_t *automatic);

/* level 1: of the text itself, 2: of a field's format */
static bool put_field(struct run *r, const struct call *call, struct text field, bool trusted,
                      int level, int64_t *automatic) {
    struct value v;
    size_t name_n = 0, at;
    while (name_n < field.n && field.p[name_n] != '!' && field.p[name_n] != ':') {
        if (field.p[name_n] == '[')
            while (name_n < field.n && field.p[name_n] != ']') name_n++;
        if (name_n < field.n) name_n++;
    }
    at = name_n;
    if (!field_value(r, call, text_slice(&field, 0, name_n), automatic, &v)) return false;
    if (at < field.n && field.p[at] == '!') {
        char how = at + 1 < field.n ? field.p[at + 1] : 0;
        if (!how || !strchr("sra", how) || (at + 2 < field.n && field.p[at + 2] != ':'))
            return jinja_fail(r, "unknown conversion in format string");
        const struct text *text;
        if (!convert(r, v, how, &text)) return false;
        v = value_text(text);
        at += 2;
    }
    if (at < field.n) at++; /* the colon */
    struct text spec = text_slice(&field, at, field.n - at);
    if (!memchr(spec.p, '{', spec.n)) return put_formatted(r, v, spec, trusted);
    struct value made;
    if (level > 1) return jinja_fail(r, "Max string recursion exceeded");
    return jinja_capture(r) && put_fields(r, call, &spec, trusted, level + 1, automatic) &&
           jinja_captured(r, &made) && put_formatted(r, v, *made.text, trusted);
}

/* The end of the field that begins at byte i, behind the brace; t->n if it has none. */
static size_t field_end(const struct text *t, size_t i) {
    size_t open = 1;
    for (; i < t->n; i++) {
        open += (t->p[i] == '{') - (t->p[i] == '}');
        if (!open) break;
    }
    return i;
}

static bool put_fields(struct run *r, const struct call *call, const struct text *t, bool trusted,
                       int level, int64_t *automatic) {
    for (size_t i = 0; i < t->n;) {
        size_t from = i;
        while (i < t->n && t->p[i] != '{' && t->p[i] != '}') i++;
        if (!jinja_put_slice(r, t, from, i - from)) return false;
        if (i == t->n) break;
        if (i + 1 < t->n && t->p[i + 1] == t->p[i]) {
            if (!jinja_put_slice(r, t, i, 1)) return false;
            i += 2;
            continue;
        }
        if (t->p[i] == '}') return jinja_fail(r, "Single '}' encountered in format string");
        from = ++i;
        i = field_end(t, i);
        if (i == t->n) return jinja_fail(r, "expected '}' before end of string");
        struct text field = text_slice(t, from, i - from);
        if (!jinja_steps_bytes(r, field.n) ||
            !put_field(r, call, field, trusted, level, automatic))
            return false;
        i++;
    }
    return true;
}

static bool format(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    bool trusted = text_all_trusted(t);
    int64_t automatic = 0; /* -1: fields are numbered by hand */
    return jinja_capture(r) && put_fields(r, call, t, trusted, 1, &automatic) &&
           finish(r, trusted, out);
}

bool method_format(struct run *r, const struct call *call, struct value *out) {
    return format(r, call, out);
}

/* format(**mapping). */
bool method_format_map(struct run *r, const struct call *call, struct value *out) {
    const struct dict *dict = call->arg[0].dict;
    if (call->arg[0].kind != VALUE_DICT)
        return jinja_fail(r, "'%s' object is not subscriptable", jinja_type_name(call->arg[0]));
    struct keyword *keyword = jinja_alloc(r, dict->n + 1, sizeof *keyword);
    struct call named = {.self = call->self, .keyword = keyword};
    if (!keyword) return false;
    for (size_t i = 0; i < dict->n; i++)
        if (dict->pair[i].key.kind == VALUE_STRING)
            keyword[named.keywords++] =
                (struct keyword){dict->pair[i].key.text, dict->pair[i].value};
    return format(r, &named, out);
}
