/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c: values as text: str(), repr() and JSON, byte for byte as Python writes them. Bytes that
 * come from a text keep its provenance; an escape takes that of the character it stands for;
 * quotes are trusted only around a wholly trusted text; numbers and the punctuation of containers
 * follow the value's data flag. Relies on the "C" numeric locale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/jinja/run.h"
#include "text/jinja/char.h"

static bool put(struct run *r, const char *s, bool data) {
    return jinja_put(r, s, strlen(s), !data);
}

/* ---- numbers ---- */

/* One more in the last place of "1.25e-07"; false if that is all nines. */
static bool next_digits(char *digits) {
    char *p = strchr(digits, 'e');
    while (p > digits && (p[-1] == '9' || p[-1] == '.')) {
        if (*--p == '9') *p = '0';
    }
    if (p == digits || p[-1] == '-') return false;
    p[-1]++;
    return true;
}

/* The shortest digits that read back as f, laid out as Python does: an exponent below -4 or from
 * 16 on. */
const char *jinja_float_text(double f, char out[FLOAT_TEXT]) {
    char digits[FLOAT_TEXT];
    if (isnan(f)) return "nan";
    if (isinf(f)) return f < 0 ? "-inf" : "inf";
    for (int precision = 0; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision, f);
        if (strtod(digits, NULL) == f) break;
        /* Of a power of two the doubles below are nearer than those above, so that digits can
         * read back as it that are not the nearest ones. */
        int exponent;
        if (fabs(frexp(f, &exponent)) == 0.5 && next_digits(digits) && strtod(digits, NULL) == f)
            break;
    }
    char *e = strchr(digits, 'e');
    int exponent = atoi(e + 1);
    *e = 0;
    char *p = digits, *w = out;
    if (*p == '-') *w++ = *p++;
    char flat[24] = "";
    size_t n = 0;
    for (; *p; p++)
        if (*p != '.') flat[n++] = *p;
    if (exponent < -4 || exponent >= 16) {
        *w++ = flat[0];
        if (n > 1) *w++ = '.';
        for (size_t i = 1; i < n; i++) *w++ = flat[i];
        snprintf(w, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return out;
    }
    if (exponent < 0) {
        *w++ = '0';
        *w++ = '.';
        for (int i = -1; i > exponent; i--) *w++ = '0';
        for (size_t i = 0; i < n; i++) *w++ = flat[i];
    } else {
        for (size_t i = 0; i < n || i <= (size_t)exponent; i++) {
            if (i == (size_t)exponent + 1) *w++ = '.';
            *w++ = i < n ? flat[i] : '0';
        }
        if (n <= (size_t)exponent + 1) {
            *w++ = '.';
            *w++ = '0';
        }
    }
    *w = 0;
    return out;
}

static bool put_number(struct run *r, struct value v) {
    char text[FLOAT_TEXT];
    if (v.kind == VALUE_FLOAT) return put(r, jinja_float_text(v.f, text), v.data);
    if (v.kind == VALUE_BIG) {
        const char *digit;
        size_t n;
        return whole_digits(r, v, 10, &digit, &n) &&
               (!v.big->negative || put(r, "-", v.data)) && jinja_put(r, digit, n, !v.data);
    }
    snprintf(text, sizeof text, "%lld", (long long)v.i);
    return put(r, text, v.data);
}

/* ---- repr ---- */

static bool put_text_repr(struct run *r, const struct text *t) {
    bool data = !text_all_trusted(t);
    bool single = memchr(t->p, '\'', t->n) && !memchr(t->p, '"', t->n);
    char quote = single ? '"' : '\'', escape[16];
    if (!jinja_put(r, &quote, 1, !data)) return false;
    size_t from = 0;
    for (size_t i = 0; i < t->n;) {
        uint32_t c;
        size_t n = utf8_decode(t->p + i, t->n - i, &c);
        escape[0] = 0;
        if (c == '\n') strcpy(escape, "\\n");
        else if (c == '\r') strcpy(escape, "\\r");
        else if (c == '\t') strcpy(escape, "\\t");
        else if (c == '\\' || c == (uint32_t)quote) snprintf(escape, sizeof escape, "\\%c", (int)c);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0x100 && !char_printable(c)))
            snprintf(escape, sizeof escape, "\\x%02x", c);
        else if (c >= 0x100 && !char_printable(c))
            snprintf(escape, sizeof escape, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        if (escape[0]) {
            if (!jinja_put_slice(r, t, from, i - from) || !put(r, escape, !text_trusted_at(t, i)))
                return false;
            from = i + n;
        }
        i += n;
    }
    return jinja_put_slice(r, t, from, t->n - from) && jinja_put(r, &quote, 1, !data);
}

static bool put_items(struct run *r, const struct list *list, const char *open, const char *close,
                      bool data) {
    if (!put(r, open, data)) return false;
    for (size_t i = 0; i < list->n; i++)
        if ((i && !put(r, ", ", data)) || !jinja_put_repr(r, list->item[i])) return false;
    return put(r, close, data);
}

static bool put_pairs(struct run *r, const struct dict *dict, bool data) {
    if (!put(r, "{", data)) return false;
    for (size_t i = 0; i < dict->n; i++)
        if ((i && !put(r, ", ", data)) || !jinja_put_repr(r, dict->pair[i].key) ||
            !put(r, ": ", data) || !jinja_put_repr(r, dict->pair[i].value))
            return false;
    return put(r, "}", data);
}

static bool put_range(struct run *r, const struct range *range, bool data) {
    char text[100];
    int n = snprintf(text, sizeof text, "range(%lld, %lld", (long long)range->start,
                     (long long)range->stop);
    if (range->step != 1)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %lld", (long long)range->step);
    snprintf(text + n, sizeof text - (size_t)n, ")");
    return put(r, text, data);
}

static bool put_macro(struct run *r, const struct macro *macro) {
    if (!macro->def->name) return put(r, "<Macro anonymous>", false);
    return put(r, "<Macro ", false) && put_text_repr(r, macro->def->name) && put(r, ">", false);
}

static bool put_other(struct run *r, struct value v) {
    switch (v.kind) {
    case VALUE_NONE: return put(r, "None", v.data);
    case VALUE_BOOL: return put(r, v.b ? "True" : "False", v.data);
    case VALUE_INT: case VALUE_BIG: case VALUE_FLOAT: return put_number(r, v);
    case VALUE_LIST: return put_items(r, v.list, "[", "]", v.data);
    case VALUE_TUPLE: return put_items(r, v.list, "(", v.list->n == 1 ? ",)" : ")", v.data);
    case VALUE_KEYS: return put_items(r, v.list, "dict_keys([", "])", v.data);
    case VALUE_VALUES: return put_items(r, v.list, "dict_values([", "])", v.data);
    case VALUE_ITEMS: return put_items(r, v.list, "dict_items([", "])", v.data);
    case VALUE_RANGE: return put_range(r, v.range, v.data);
    case VALUE_DICT: return put_pairs(r, v.dict, v.data);
    case VALUE_NAMESPACE:
        return put(r, "<Namespace ", v.data) && put_pairs(r, v.dict, v.data) && put(r, ">", v.data);
    case VALUE_MACRO: return put_macro(r, v.macro);
    default:
        return put(r, "<", true) && put(r, jinja_type_name(v), true) && put(r, ">", true);
    }
}

bool jinja_put_repr(struct run *r, struct value v) {
    if (!jinja_enter(r)) return false;
    bool ok = v.kind == VALUE_UNDEFINED ? put(r, "Undefined", true)
              : v.kind == VALUE_STRING  ? (!v.markup || put(r, "Markup(", v.data)) &&
                                             put_text_repr(r, v.text) &&
                                             (!v.markup || put(r, ")", v.data))
                                        : put_other(r, v);
    r->level--;
    return ok;
}

bool jinja_put_value(struct run *r, struct value v) {
    if (v.kind == VALUE_STRING) return jinja_put_text(r, v.text);
    return v.kind == VALUE_UNDEFINED || put_other(r, v);
}

bool jinja_to_text(struct run *r, struct value v, const struct text **out) {
    if (v.kind != VALUE_STRING &&
        (!jinja_capture(r) || !jinja_put_value(r, v) || !jinja_captured(r, &v)))
        return false;
    *out = v.text;
    return true;
}

/* ---- JSON ---- */

static bool put_json_text(struct run *r, const struct text *t, bool ascii) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    bool data = !text_all_trusted(t);
    size_t start = 0;
    char escape[16];
    if (!put(r, "\"", data)) return false;
    for (size_t i = 0; i < t->n;) {
        uint32_t c;
        size_t n = utf8_decode(t->p + i, t->n - i, &c);
        const char *short_form = c && c < 0x80 ? strchr(from, (int)c) : NULL;
        escape[0] = 0;
        if (short_form) snprintf(escape, sizeof escape, "\\%c", to[short_form - from]);
        else if (c < 0x20 || (ascii && c > 0x7e && c < 0x10000 && c != 0x7f))
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else if (ascii && c >= 0x10000)
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10),
                     0xdc00 + (c & 0x3ff));
        if (escape[0]) {
            if (!jinja_put_slice(r, t, start, i - start) || !put(r, escape, !text_trusted_at(t, i)))
                return false;
            start = i + n;
        }
        i += n;
    }
    return jinja_put_slice(r, t, start, t->n - start) && put(r, "\"", data);
}

static bool put_json(struct run *r, struct value v, const struct json_style *style, size_t level);

static bool put_json_break(struct run *r, const struct json_style *style, size_t level, bool data) {
    if (!style->indent) return true;
    if (!put(r, "\n", data)) return false;
    for (size_t i = 0; i < level; i++)
        if (!jinja_put_text(r, style->indent)) return false;
    return true;
}

static bool put_json_comma(struct run *r, const struct json_style *style, bool data) {
    return style->item ? jinja_put_text(r, style->item) : put(r, style->indent ? "," : ", ", data);
}

static bool put_json_items(struct run *r, struct value v, const struct json_style *style,
                           size_t level) {
    if (!v.list->n) return put(r, "[]", v.data);
    if (!put(r, "[", v.data)) return false;
    for (size_t i = 0; i < v.list->n; i++)
        if ((i && !put_json_comma(r, style, v.data)) ||
            !put_json_break(r, style, level + 1, v.data) ||
            !put_json(r, v.list->item[i], style, level + 1))
            return false;
    return put_json_break(r, style, level, v.data) && put(r, "]", v.data);
}

static bool put_json_key(struct run *r, struct value key, const struct json_style *style) {
    if (key.kind == VALUE_STRING) return put_json_text(r, key.text, style->ascii);
    if (key.kind != VALUE_NONE && !value_is_number(key))
        return jinja_fail(r, "keys must be str, int, float, bool or None, not %s",
                          jinja_type_name(key));
    return put(r, "\"", key.data) && put_json(r, key, style, 0) && put(r, "\"", key.data);
}

static bool put_json_pairs(struct run *r, struct value v, const struct json_style *style,
                           size_t level) {
    struct pair *pair = v.dict->pair;
    if (!v.dict->n) return put(r, "{}", v.data);
    if (style->sort) {
        pair = jinja_alloc(r, v.dict->n, sizeof *pair);
        if (!pair) return false;
        memcpy(pair, v.dict->pair, v.dict->n * sizeof *pair);
        if (!jinja_sort(r, pair, v.dict->n, false)) return false;
    }
    if (!put(r, "{", v.data)) return false;
    for (size_t i = 0; i < v.dict->n; i++)
        if ((i && !put_json_comma(r, style, v.data)) ||
            !put_json_break(r, style, level + 1, v.data) || !put_json_key(r, pair[i].key, style) ||
            !(style->key ? jinja_put_text(r, style->key) : put(r, ": ", v.data)) ||
            !put_json(r, pair[i].value, style, level + 1))
            return false;
    return put_json_break(r, style, level, v.data) && put(r, "}", v.data);
}

static bool put_json_scalar(struct run *r, struct value v, bool ascii) {
    switch (v.kind) {
    case VALUE_NONE: return put(r, "null", v.data);
    case VALUE_BOOL: return put(r, v.b ? "true" : "false", v.data);
    case VALUE_INT: case VALUE_BIG: return put_number(r, v);
    case VALUE_FLOAT:
        if (isnan(v.f)) return put(r, "NaN", v.data);
        if (isinf(v.f)) return put(r, v.f < 0 ? "-Infinity" : "Infinity", v.data);
        return put_number(r, v);
    case VALUE_STRING: return put_json_text(r, v.text, ascii);
    default:
        return jinja_fail(r, "Object of type %s is not JSON serializable", jinja_type_name(v));
    }
}

static bool put_json(struct run *r, struct value v, const struct json_style *style, size_t level) {
    if (!jinja_enter(r)) return false;
    bool ok = value_is_sequence(v)      ? put_json_items(r, v, style, level)
              : v.kind == VALUE_DICT    ? put_json_pairs(r, v, style, level)
                                        : put_json_scalar(r, v, style->ascii);
    r->level--;
    return ok;
}

bool jinja_put_json(struct run *r, struct value v, const struct json_style *style) {
    return put_json(r, v, style, 0);
}
