/* SPDX-License-Identifier: Apache-2.0
 *
 * methods_case.c: letter case and character classes, as Python's str has them; a mapped character
 * keeps the provenance of the one it came from. */
#include "base/utf8.h"
#include "text/jinja/run.h"
#include "text/jinja/char.h"

static size_t code_at(const struct text *t, size_t i, uint32_t *c) {
    return utf8_decode(t->p + i, t->n - i, c);
}

/* Whether the capital sigma at [at, end) ends a word: a cased letter before it and none after,
 * looking past case-ignorable characters. */
static bool final_sigma(const struct text *t, size_t at, size_t end) {
    uint32_t c;
    bool before = false;
    for (size_t i = at; i > 0;) {
        i = (size_t)(char_back(t->p, t->p + i) - t->p);
        code_at(t, i, &c);
        if (char_case_ignorable(c)) continue;
        before = char_cased(c);
        break;
    }
    if (!before) return false;
    for (size_t i = end; i < t->n;) {
        i += code_at(t, i, &c);
        if (!char_case_ignorable(c)) return !char_cased(c);
    }
    return true;
}

static bool put_mapped(struct run *r, const struct text *t, size_t at, size_t n, uint32_t c,
                       enum char_case to) {
    uint32_t map[3] = {0x3c2};
    size_t count = 1;
    enum { SIGMA = 0x3a3 };
    if (c != SIGMA || to != CHAR_LOWER || !final_sigma(t, at, at + n))
        count = char_map(c, to, map);
    for (size_t i = 0; i < count; i++)
        if (!jinja_put_code(r, map[i], text_trusted_at(t, at))) return false;
    return true;
}

/* Maps each character; `choose` says to what, from the character and the one before it. */
static bool map(struct run *r, const struct text *t,
                enum char_case (*choose)(uint32_t c, uint32_t before), struct value *out) {
    uint32_t before = UTF8_BAD, c;
    if (!jinja_capture(r)) return false;
    for (size_t i = 0, n; i < t->n; i += n, before = c) {
        n = code_at(t, i, &c);
        if (!put_mapped(r, t, i, n, c, choose(c, before))) return false;
    }
    return jinja_captured(r, out);
}

static enum char_case to_upper(uint32_t c, uint32_t before) {
    (void)c, (void)before;
    return CHAR_UPPER;
}
static enum char_case to_lower(uint32_t c, uint32_t before) {
    (void)c, (void)before;
    return CHAR_LOWER;
}
static enum char_case to_title(uint32_t c, uint32_t before) {
    (void)c;
    return before != UTF8_BAD && char_cased(before) ? CHAR_LOWER : CHAR_TITLE;
}
static enum char_case to_capitalized(uint32_t c, uint32_t before) {
    (void)c;
    return before == UTF8_BAD ? CHAR_TITLE : CHAR_LOWER;
}
static enum char_case to_swapped(uint32_t c, uint32_t before) {
    (void)before;
    return char_upper(c) ? CHAR_LOWER : CHAR_UPPER;
}
/* jinja2's |title: capitals after white space and opening brackets, not after apostrophes. */
static enum char_case to_words(uint32_t c, uint32_t before) {
    (void)c;
    bool start = before == UTF8_BAD || char_space(before) || before == '-' || before == '(' ||
                 before == '{' || before == '[' || before == '<';
    return start ? CHAR_UPPER : CHAR_LOWER;
}

bool method_upper(struct run *r, const struct call *call, struct value *out) {
    return map(r, call->self.text, to_upper, out);
}
bool method_lower(struct run *r, const struct call *call, struct value *out) {
    return map(r, call->self.text, to_lower, out);
}
bool method_casefold(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    uint32_t map[CHAR_FOLDED], c;
    if (!jinja_capture(r)) return false;
    for (size_t i = 0, n; i < t->n; i += n) {
        n = code_at(t, i, &c);
        size_t count = char_fold(c, map);
        for (size_t k = 0; k < count; k++)
            if (!jinja_put_code(r, map[k], text_trusted_at(t, i))) return false;
    }
    return jinja_captured(r, out);
}
bool method_title(struct run *r, const struct call *call, struct value *out) {
    return map(r, call->self.text, to_title, out);
}
bool method_capitalize(struct run *r, const struct call *call, struct value *out) {
    return map(r, call->self.text, to_capitalized, out);
}
bool method_swapcase(struct run *r, const struct call *call, struct value *out) {
    return map(r, call->self.text, to_swapped, out);
}

static bool map_any(struct run *r, const struct call *call,
                    enum char_case (*choose)(uint32_t c, uint32_t before), struct value *out) {
    const struct text *t;
    return jinja_to_text(r, call->self, &t) && map(r, t, choose, out);
}

bool filter_upper(struct run *r, const struct call *call, struct value *out) {
    return map_any(r, call, to_upper, out);
}
bool filter_lower(struct run *r, const struct call *call, struct value *out) {
    return map_any(r, call, to_lower, out);
}
bool filter_title(struct run *r, const struct call *call, struct value *out) {
    return map_any(r, call, to_words, out);
}
bool filter_capitalize(struct run *r, const struct call *call, struct value *out) {
    return map_any(r, call, to_capitalized, out);
}

/* ---- classes ---- */

static bool all(struct run *r, const struct call *call, bool (*is)(uint32_t), struct value *out) {
    const struct text *t = call->self.text;
    bool result = t->n != 0;
    uint32_t c;
    for (size_t i = 0; i < t->n && result; result = is(c)) i += code_at(t, i, &c);
    *out = value_bool(result, value_is_data(call->self));
    return jinja_steps_bytes(r, t->n);
}

static bool is_alnum(uint32_t c) { return char_alpha(c) || char_numeric(c); }
static bool is_ascii(uint32_t c) { return c < 0x80; }

bool method_isalnum(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, is_alnum, out);
}
bool method_isalpha(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, char_alpha, out);
}
bool method_isdecimal(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, char_decimal, out);
}
bool method_isdigit(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, char_digit, out);
}
bool method_isnumeric(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, char_numeric, out);
}
bool method_isspace(struct run *r, const struct call *call, struct value *out) {
    return all(r, call, char_space, out);
}
/* Empty texts are all three. */
static bool all_or_empty(struct run *r, const struct call *call, bool (*is)(uint32_t),
                         struct value *out) {
    if (call->self.text->n) return all(r, call, is, out);
    *out = value_bool(true, false);
    return true;
}

bool method_isprintable(struct run *r, const struct call *call, struct value *out) {
    return all_or_empty(r, call, char_printable, out);
}
/* Letters, digits and underscores, no digit first; marks and joiners of XID_Continue are left
 * out. */
bool method_isidentifier(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    bool result = t->n && !(t->p[0] >= '0' && t->p[0] <= '9');
    uint32_t c;
    for (size_t i = 0; i < t->n && result; result = c == '_' || char_alpha(c) || char_decimal(c))
        i += code_at(t, i, &c);
    *out = value_bool(result, value_is_data(call->self));
    return jinja_steps_bytes(r, t->n);
}
bool method_isascii(struct run *r, const struct call *call, struct value *out) {
    return all_or_empty(r, call, is_ascii, out);
}

/* Has a cased letter, and none of the other case. */
static bool is_case(struct run *r, const struct call *call, bool (*other)(uint32_t),
                    struct value *out) {
    const struct text *t;
    bool cased = false, mixed = false;
    uint32_t c;
    if (!jinja_to_text(r, call->self, &t)) return false;
    for (size_t i = 0; i < t->n && !mixed;) {
        i += code_at(t, i, &c);
        cased = cased || char_cased(c);
        mixed = other(c) || (char_cased(c) && !char_upper(c) && !char_lower(c));
    }
    *out = value_bool(cased && !mixed, value_is_data(call->self));
    return jinja_steps_bytes(r, t->n);
}

bool method_islower(struct run *r, const struct call *call, struct value *out) {
    return is_case(r, call, char_upper, out);
}
bool method_isupper(struct run *r, const struct call *call, struct value *out) {
    return is_case(r, call, char_lower, out);
}
bool test_lower(struct run *r, const struct call *call, struct value *out) {
    return is_case(r, call, char_upper, out);
}
bool test_upper(struct run *r, const struct call *call, struct value *out) {
    return is_case(r, call, char_lower, out);
}

bool method_istitle(struct run *r, const struct call *call, struct value *out) {
    const struct text *t = call->self.text;
    bool cased = false, ok = true, before = false;
    uint32_t c;
    for (size_t i = 0; i < t->n && ok; before = char_cased(c)) {
        i += code_at(t, i, &c);
        cased = cased || char_cased(c);
        ok = char_lower(c) ? before : !char_cased(c) || !before;
    }
    *out = value_bool(cased && ok, value_is_data(call->self));
    return jinja_steps_bytes(r, t->n);
}
