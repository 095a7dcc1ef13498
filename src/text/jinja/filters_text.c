/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_text.c: filters that make text, tojson among them. Most turn any value into text first,
 * as jinja2 does. */
#include "base/utf8.h"
#include "text/jinja/run.h"
#include "text/jinja/char.h"

/* `call` with its value as text, for the method of the same name. */
static bool as_text(struct run *r, const struct call *call, struct call *out) {
    const struct text *t;
    *out = *call;
    if (!jinja_to_text(r, call->self, &t)) return false;
    out->self = value_text(t);
    return true;
}

bool filter_string(struct run *r, const struct call *call, struct value *out) {
    struct call c;
    if (!as_text(r, call, &c)) return false;
    *out = call->self.kind == VALUE_STRING ? call->self : c.self;
    return true;
}

bool filter_trim(struct run *r, const struct call *call, struct value *out) {
    struct call c;
    return as_text(r, call, &c) && method_strip(r, &c, out);
}

bool filter_replace(struct run *r, const struct call *call, struct value *out) {
    struct call c;
    const struct text *t;
    if (!as_text(r, call, &c)) return false;
    for (int i = 0; i < 2; i++) {
        if (!jinja_to_text(r, call->arg[i], &t)) return false;
        c.arg[i] = value_text(t);
    }
    if (c.arg[2].kind == VALUE_NONE) c.arg[2] = value_of(VALUE_MISSING);
    return method_replace(r, &c, out);
}

bool filter_center(struct run *r, const struct call *call, struct value *out) {
    struct call c;
    if (!as_text(r, call, &c)) return false;
    if (c.arg[0].kind == VALUE_MISSING) c.arg[0] = value_int(80, false);
    c.arg[1] = value_of(VALUE_MISSING);
    return method_center(r, &c, out);
}

bool filter_join(struct run *r, const struct call *call, struct value *out) {
    struct list *list;
    const struct text *between = NULL;
    if (!jinja_elements(r, call->self, &list)) return false;
    if (call->arg[0].kind != VALUE_MISSING && !jinja_to_text(r, call->arg[0], &between))
        return false;
    if (!jinja_capture(r)) return false;
    for (size_t i = 0; i < list->n; i++) {
        struct value item = list->item[i];
        if (i && between && !jinja_put_text(r, between)) return false;
        if (call->arg[1].kind != VALUE_MISSING && call->arg[1].kind != VALUE_NONE &&
            !jinja_path(r, item, call->arg[1], value_of(VALUE_MISSING), &item))
            return false;
        if (!jinja_put_value(r, item)) return false;
    }
    return jinja_captured(r, out);
}

/* ---- HTML ---- */

static bool escape_text(struct run *r, const struct text *t, struct value *out) {
    static const char special[] = "&<>'\"";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    if (!jinja_capture(r)) return false;
    size_t from = 0;
    for (size_t i = 0; i < t->n; i++) {
        const char *at = t->p[i] ? strchr(special, t->p[i]) : NULL;
        if (!at) continue;
        const char *with = entity[at - special];
        if (!jinja_put_slice(r, t, from, i - from) ||
            !jinja_put(r, with, strlen(with), text_trusted_at(t, i)))
            return false;
        from = i + 1;
    }
    if (!jinja_put_slice(r, t, from, t->n - from) || !jinja_captured(r, out)) return false;
    out->markup = true;
    return true;
}

bool filter_escape(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    *out = call->self;
    if (call->self.kind == VALUE_STRING && call->self.markup) return true;
    return jinja_to_text(r, call->self, &t) && escape_text(r, t, out);
}

bool filter_forceescape(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    return jinja_to_text(r, call->self, &t) && escape_text(r, t, out);
}

bool filter_safe(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    if (!jinja_to_text(r, call->self, &t)) return false;
    *out = value_text(t);
    out->markup = true;
    return true;
}

/* key="value" of each pair that has a value. */
bool filter_xmlattr(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    bool space = call->arg[0].kind == VALUE_MISSING || jinja_truth(call->arg[0]), any = false;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    if (v.kind != VALUE_DICT)
        return jinja_fail(r, "'%s' object has no attribute 'items'", jinja_type_name(v));
    if (!jinja_capture(r)) return false;
    for (size_t i = 0; i < v.dict->n; i++) {
        struct value key = v.dict->pair[i].key, value = v.dict->pair[i].value;
        struct call of_key = {.self = key}, of_value = {.self = value};
        if (value.kind == VALUE_NONE || value.kind == VALUE_UNDEFINED) continue;
        if (key.kind != VALUE_STRING) return jinja_fail(r, "expected string or bytes-like object");
        for (size_t k = 0, n; k < key.text->n; k++) {
            n = char_space_at(key.text->p + k, key.text->p + key.text->n);
            if (n || strchr("/>=", key.text->p[k]))
                return jinja_fail(r, "Invalid character in attribute name");
        }
        if (!filter_escape(r, &of_key, &key) || !filter_escape(r, &of_value, &value) ||
            ((any || space) && !jinja_put(r, " ", 1, !v.data)) || !jinja_put_text(r, key.text) ||
            !jinja_put(r, "=\"", 2, !v.data) || !jinja_put_text(r, value.text) ||
            !jinja_put(r, "\"", 1, !v.data))
            return false;
        any = true;
    }
    return jinja_captured(r, out);
}

static bool put_url(struct run *r, const struct text *t, bool query) {
    for (size_t i = 0; i < t->n; i++) {
        unsigned char c = (unsigned char)t->p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c && strchr("_.-~", c)) || (c == '/' && !query);
        char code[3] = {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};
        bool blank = query && c == ' ';
        if (!(plain   ? jinja_put_slice(r, t, i, 1)
              : blank ? jinja_put(r, "+", 1, text_trusted_at(t, i))
                      : jinja_put(r, code, 3, text_trusted_at(t, i))))
            return false;
    }
    return true;
}

/* The pairs of a dict or list, as a form sends them. */
static bool urlencode_pairs(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    struct list *pairs, *pair;
    const struct text *key, *value;
    if (v.kind == VALUE_DICT && !method_dict_items(r, call, &v)) return false;
    if (!jinja_elements(r, v, &pairs) || !jinja_capture(r)) return false;
    for (size_t i = 0; i < pairs->n; i++) {
        if (!jinja_elements(r, pairs->item[i], &pair)) return false;
        if (pair->n != 2)
            return jinja_fail(r, "%s values to unpack (expected 2)",
                              pair->n < 2 ? "not enough" : "too many");
        if (!jinja_to_text(r, pair->item[0], &key) || !jinja_to_text(r, pair->item[1], &value) ||
            (i && !jinja_put(r, "&", 1, !v.data)) || !put_url(r, key, true) ||
            !jinja_put(r, "=", 1, !v.data) || !put_url(r, value, true))
            return false;
    }
    return jinja_captured(r, out);
}

bool filter_urlencode(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    if (call->self.kind != VALUE_STRING && jinja_iterable(call->self))
        return urlencode_pairs(r, call, out);
    return jinja_to_text(r, call->self, &t) && jinja_capture(r) && put_url(r, t, false) &&
           jinja_captured(r, out);
}

/* ---- layout ---- */

/* A number of spaces, or the text itself. */
static bool indentation(struct run *r, struct value width, const struct text **out) {
    if (width.kind == VALUE_STRING) return *out = width.text, true;
    struct value text, times = value_int(4, false);
    if (width.kind != VALUE_MISSING) times = width;
    if (times.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, times);
    if (!value_is_int(times))
        return jinja_fail(r, "can't multiply sequence by non-int of type '%s'",
                          jinja_type_name(times));
    if (!jinja_text_literal(r, " ", true, &text)) return false;
    if (!jinja_binary(r, OP_MUL, text, times, &text)) return false;
    *out = text.text;
    return true;
}

bool filter_indent(struct run *r, const struct call *call, struct value *out) {
    const struct text *indent;
    struct value lines;
    if (call->self.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, call->self);
    if (call->self.kind != VALUE_STRING)
        return jinja_fail(r, "unsupported operand type(s) for +=: '%s' and 'str'",
                          jinja_type_name(call->self));
    bool first = jinja_truth(call->arg[1]), blank = jinja_truth(call->arg[2]);
    struct value newline;
    if (!indentation(r, call->arg[0], &indent) || !jinja_text_literal(r, "\n", true, &newline))
        return false;
    /* a newline at the end makes splitlines give the last line even if it is empty */
    struct call split = {.self = call->self};
    if (!jinja_concat(r, call->self.text, newline.text, &split.self) ||
        !method_splitlines(r, &split, &lines) || !jinja_capture(r))
        return false;
    for (size_t i = 0; i < lines.list->n; i++) {
        const struct text *line = lines.list->item[i].text;
        if (i && !jinja_put(r, "\n", 1, !value_is_data(call->self))) return false;
        if ((i == 0 ? first : blank || line->n) && !jinja_put_text(r, indent)) return false;
        if (!jinja_put_text(r, line)) return false;
    }
    return jinja_captured(r, out);
}

bool filter_truncate(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    int64_t n;
    if (!jinja_length(r, call->self, &n)) return false;
    struct text dots = text_of("...", 3, !value_is_data(call->self));
    const struct text *end = call->arg[2].kind == VALUE_STRING ? call->arg[2].text : &dots;
    int64_t length = value_is_int(call->arg[0]) ? value_as_int(call->arg[0]) : 255;
    int64_t leeway = value_is_int(call->arg[3]) ? value_as_int(call->arg[3]) : 5;
    int64_t end_n = (int64_t)char_count(end->p, end->n);
    if (length < end_n || leeway < 0) return jinja_fail(r, "truncate: the length is too small");
    *out = call->self;
    if (n <= length || n - length <= leeway) return true;
    if (call->self.kind != VALUE_STRING)
        return jinja_fail(r, "'%s' object cannot be cut", jinja_type_name(call->self));
    struct text kept = text_slice(t, 0, jinja_offset(t, 0, (size_t)(length - end_n)));
    if (!jinja_truth(call->arg[1])) {
        size_t space = kept.n;
        while (space && kept.p[space - 1] != ' ') space--;
        if (space) kept.n = space - 1;
    }
    return jinja_concat(r, &kept, end, out);
}

bool filter_wordcount(struct run *r, const struct call *call, struct value *out) {
    const struct text *t;
    int64_t words = 0;
    bool in = false;
    if (!jinja_to_text(r, call->self, &t) || !jinja_steps_bytes(r, t->n)) return false;
    for (size_t i = 0; i < t->n;) {
        uint32_t c;
        i += utf8_decode(t->p + i, t->n - i, &c);
        bool word = c == '_' || char_alpha(c) || char_numeric(c);
        words += word && !in;
        in = word;
    }
    *out = value_int(words, value_is_data(call->self));
    return true;
}

/* ---- JSON ---- */

/* The item and key separators of json.dumps. */
static bool separators(struct run *r, struct value v, struct json_style *style) {
    struct list *pair;
    if (v.kind == VALUE_MISSING || v.kind == VALUE_NONE) return true;
    if (!jinja_elements(r, v, &pair)) return false;
    if (pair->n != 2 || pair->item[0].kind != VALUE_STRING || pair->item[1].kind != VALUE_STRING)
        return jinja_fail(r, "separators must be two strings");
    style->item = pair->item[0].text;
    style->key = pair->item[1].text;
    return true;
}

bool filter_tojson(struct run *r, const struct call *call, struct value *out) {
    struct json_style style = {.ascii = jinja_truth(call->arg[0]),
                               .sort = jinja_truth(call->arg[3])};
    struct value indent = call->arg[1];
    bool indented = indent.kind != VALUE_MISSING && indent.kind != VALUE_NONE;
    if (indented && !indentation(r, indent, &style.indent)) return false;
    return separators(r, call->arg[2], &style) && jinja_capture(r) &&
           jinja_put_json(r, call->self, &style) && jinja_captured(r, out);
}
