/* SPDX-License-Identifier: Apache-2.0
 * json_text.c: see json_text.h. */
#include "sample/schema/json_text.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "sample/schema/list.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"

#define SEQ(t, ...)                                                              \
    grammar_seq((t)->b, (const grammar_expr[]){__VA_ARGS__},                     \
                sizeof((const grammar_expr[]){__VA_ARGS__}) / sizeof(grammar_expr))
#define ALT(t, ...)                                                              \
    grammar_alt((t)->b, (const grammar_expr[]){__VA_ARGS__},                     \
                sizeof((const grammar_expr[]){__VA_ARGS__}) / sizeof(grammar_expr))
#define CLASS(t, ...)                                                            \
    grammar_class((t)->b, (const struct grammar_range[]){__VA_ARGS__},           \
                  sizeof((const struct grammar_range[]){__VA_ARGS__}) /          \
                      sizeof(struct grammar_range), false)

grammar_expr json_word(struct json_text *t, const char *text) {
    return grammar_text(t->b, str_of(text));
}

grammar_expr json_truth(struct json_text *t, char first) {
    bool python = t->spelling.kind == SCHEMA_PYTHON;
    if (first == 't') return json_word(t, python ? "True" : "true");
    if (first == 'f') return json_word(t, python ? "False" : "false");
    return json_word(t, python ? "None" : "null");
}

/* ---- characters ------------------------------------------------------------------------------ */

/* What stands for itself. RAW has no escapes. */
static const struct grammar_range plain[] = {
    {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, 0x10ffff}};
static const struct grammar_range plain_marked[] = {
    {0x20, 0x21}, {0x23, 0x3b}, {0x3d, 0x5b}, {0x5d, 0xd7ff}, {0xe000, 0x10ffff}};
static const struct grammar_range plain_raw[] = {
    {0x09, 0x0a}, {0x20, 0x3b}, {0x3d, 0xd7ff}, {0xe000, 0x10ffff}};
struct plain {
    const struct grammar_range *range;
    size_t n;
    bool escapes;
};
static const struct plain plains[] = {
    [SCHEMA_JSON] = {plain, sizeof plain / sizeof plain[0], true},
    [SCHEMA_MARKED] = {plain_marked, sizeof plain_marked / sizeof plain_marked[0], true},
    [SCHEMA_PYTHON] = {plain, sizeof plain / sizeof plain[0], true},
    [SCHEMA_RAW] = {plain_raw, sizeof plain_raw / sizeof plain_raw[0], false},
};

/* The escape of a character that may not stand for itself. */
static grammar_expr escaped(struct grammar_builder *b, uint32_t code) {
    static const char letters[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
    const char *at = code ? strchr(letters, (int)code) : NULL;
    char text[8];
    if (at) snprintf(text, sizeof text, "\\%c", names[at - letters]);
    else snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    return grammar_text(b, str_of(text));
}

static bool holds(const struct grammar_range *range, size_t n, uint32_t code) {
    for (size_t i = 0; i < n; i++)
        if (code >= range[i].low && code <= range[i].high) return true;
    return false;
}

static grammar_expr spell(struct grammar_builder *b, const struct grammar_range *range, size_t n,
                          const struct plain *self) {
    struct list own = LIST_INIT(sizeof(struct grammar_range));
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < self->n; k++) {
            const struct grammar_range *p = &self->range[k];
            uint32_t low = range[i].low > p->low ? range[i].low : p->low;
            uint32_t high = range[i].high < p->high ? range[i].high : p->high;
            if (low <= high)
                *(struct grammar_range *)list_add(&own) = (struct grammar_range){low, high};
        }
    if (own.n) *(grammar_expr *)list_add(&parts) = grammar_class(b, own.p, own.n, false);
    for (uint32_t code = 0; self->escapes && code <= '\\'; code++)
        if (!holds(self->range, self->n, code) && holds(range, n, code))
            *(grammar_expr *)list_add(&parts) = escaped(b, code);
    /* Out of memory: less is allowed, never more, and the builder's next allocation fails too. */
    grammar_expr out = parts.n ? grammar_alt(b, parts.p, parts.n) : grammar_nothing(b);
    list_free(&own);
    list_free(&parts);
    return out;
}

static grammar_expr spell_json(struct grammar_builder *b, const struct grammar_range *range,
                               size_t n) {
    return spell(b, range, n, &plains[SCHEMA_JSON]);
}
static grammar_expr spell_marked(struct grammar_builder *b, const struct grammar_range *range,
                                 size_t n) {
    return spell(b, range, n, &plains[SCHEMA_MARKED]);
}
static grammar_expr spell_raw(struct grammar_builder *b, const struct grammar_range *range,
                              size_t n) {
    return spell(b, range, n, &plains[SCHEMA_RAW]);
}
static const pattern_spell spells[] = {
    [SCHEMA_JSON] = spell_json, [SCHEMA_MARKED] = spell_marked, [SCHEMA_PYTHON] = spell_json,
    [SCHEMA_RAW] = spell_raw};

/* A character of a free string, however it is spelled. */
static grammar_expr any_character(struct json_text *t) {
    const struct plain *self = &plains[t->spelling.kind];
    grammar_expr itself = grammar_class(t->b, self->range, self->n, false);
    if (!self->escapes) return itself;
    grammar_expr hex = CLASS(t, {'0', '9'}, {'A', 'F'}, {'a', 'f'});
    grammar_expr hex2 = grammar_repeat(t->b, hex, 2, 2), hex3 = grammar_repeat(t->b, hex, 3, 3);
    grammar_expr d = CLASS(t, {'D', 'D'}, {'d', 'd'});
    grammar_expr unit = ALT(
        t, SEQ(t, CLASS(t, {'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}), hex3),
        SEQ(t, d, CLASS(t, {'0', '7'}), hex2));
    grammar_expr high = SEQ(t, d, CLASS(t, {'8', '9'}, {'A', 'B'}, {'a', 'b'}), hex2);
    grammar_expr low = SEQ(t, d, CLASS(t, {'C', 'F'}, {'c', 'f'}), hex2);
    grammar_expr letter = CLASS(t, {'"', '"'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'},
                                {'n', 'n'}, {'r', 'r'}, {'t', 't'});
    grammar_expr pair = SEQ(t, high, json_word(t, "\\u"), low);
    grammar_expr slash = json_word(t, "/");
    if (t->spelling.kind == SCHEMA_PYTHON) pair = slash = grammar_nothing(t->b);
    grammar_expr escape =
        ALT(t, letter, slash, SEQ(t, json_word(t, "u"), ALT(t, unit, pair)));
    return ALT(t, itself, SEQ(t, json_word(t, "\\"), escape));
}

grammar_expr json_quoted(struct json_text *t, grammar_expr inside) {
    return SEQ(t, json_word(t, t->quote), inside, json_word(t, t->quote));
}

static grammar_expr raw_text(struct json_text *t, struct str text) {
    bool holds_mark = str_contains(text, t->spelling.avoid);
    return holds_mark ? grammar_nothing(t->b) : json_quoted(t, grammar_text(t->b, text));
}

grammar_expr json_string_text(struct json_text *t, struct str text) {
    const struct plain *self = &plains[t->spelling.kind];
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    size_t from = 0;
    if (!self->escapes) return raw_text(t, text);
    *(grammar_expr *)list_add(&parts) = json_word(t, "\"");
    for (size_t i = 0; i <= text.n; i++) {
        unsigned char c = i < text.n ? (unsigned char)text.p[i] : 0;
        if (i < text.n && (c >= 0x80 || holds(self->range, self->n, c))) continue;
        if (i > from)
            *(grammar_expr *)list_add(&parts) =
                grammar_text(t->b, (struct str){text.p + from, i - from});
        if (i < text.n) *(grammar_expr *)list_add(&parts) = escaped(t->b, c);
        from = i + 1;
    }
    *(grammar_expr *)list_add(&parts) = json_word(t, "\"");
    t->failed |= parts.failed;
    grammar_expr out = grammar_seq(t->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

grammar_expr json_name_text(struct json_text *t, struct str text) {
    bool bare = t->spelling.kind == SCHEMA_RAW && text.n;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bare &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_';
    }
    return bare ? grammar_text(t->b, text) : json_string_text(t, text);
}

/* ---- names that differ from others ----------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    return str_order(*(const struct str *)a, *(const struct str *)b);
}

/* What JSON must escape. */
static const struct grammar_range specials[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

/* One character in its spelling, but for these. */
static grammar_expr other_character(struct json_text *t, struct list *taken) {
    const struct plain *self = &plains[t->spelling.kind];
    const struct grammar_range *range = taken->p;
    bool special = self->range != plain;
    for (size_t i = 0; i < taken->n; i++)
        special |= holds(specials, SPECIALS, range[i].low);
    if (special) {
        t->failed |= !pattern_ranges_tidy(taken, true);
        return t->spell(t->b, taken->p, taken->n);
    }
    for (size_t i = 0; i < SPECIALS; i++)
        *(struct grammar_range *)list_add(taken) = specials[i];
    return ALT(t, grammar_class(t->b, taken->p, taken->n, true), t->escapes);
}

/* What may follow the first `at` bytes that all the names share. They are sorted, so those that go
 * on with one character stand together, behind those that end here. Every STRETCH bytes a rule of
 * its own keeps expressions from nesting as deep as names are long. */
static grammar_expr except(struct json_text *t, const struct str *name, size_t n, size_t at) {
    enum { STRETCH = 32 };
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    struct list taken = LIST_INIT(sizeof(struct grammar_range));
    size_t i = 0;
    while (i < n && name[i].n == at) i++;
    if (i == 0) *(grammar_expr *)list_add(&parts) = grammar_empty(t->b);
    while (i < n) {
        uint32_t code;
        size_t bytes = utf8_decode(name[i].p + at, name[i].n - at, &code), end = i + 1;
        while (end < n && name[end].n >= at + bytes &&
               memcmp(name[end].p + at, name[i].p + at, bytes) == 0)
            end++;
        struct grammar_range one = {code, code};
        *(struct grammar_range *)list_add(&taken) = one;
        grammar_expr rest = except(t, name + i, end - i, at + bytes);
        *(grammar_expr *)list_add(&parts) = SEQ(t, t->spell(t->b, &one, 1), rest);
        i = end;
    }
    *(grammar_expr *)list_add(&parts) =
        SEQ(t, other_character(t, &taken), t->spelled);
    t->failed |= parts.failed || taken.failed;
    grammar_expr out = grammar_alt(t->b, parts.p, parts.n);
    if (at && at / STRETCH != (at - 1) / STRETCH) {
        grammar_rule rule = grammar_rule_new(t->b, "another name");
        grammar_define(t->b, rule, out);
        out = grammar_use(t->b, rule);
    }
    list_free(&parts);
    list_free(&taken);
    return out;
}

grammar_expr json_names_except(struct json_text *t, struct str *name, size_t n) {
    if (n == 0) return grammar_repeat(t->b, t->character, 0, GRAMMAR_NO_LIMIT);
    qsort(name, n, sizeof *name, by_bytes);
    return except(t, name, n, 0);
}

/* ---- values ---------------------------------------------------------------------------------- */

grammar_expr json_between(struct json_text *t, const char *open, grammar_expr inside,
                          const char *close, bool may_be_empty) {
    grammar_expr body = SEQ(t, inside, t->space);
    if (may_be_empty) body = grammar_repeat(t->b, body, 0, 1);
    return SEQ(t, json_word(t, open), t->space, body, json_word(t, close));
}

static grammar_expr constant(struct json_text *t, const json_t *value, unsigned depth);

static grammar_expr constant_list(struct json_text *t, const json_t *value, unsigned depth) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    bool object = json_is_object(value), failed = false;
    const char *name;
    size_t i, length;
    json_t *item;
    if (object) {
        json_object_keylen_foreach((json_t *)(uintptr_t)value, name, length, item) {
            if (parts.n) *(grammar_expr *)list_add(&parts) = t->comma;
            *(grammar_expr *)list_add(&parts) = json_name_text(t, (struct str){name, length});
            *(grammar_expr *)list_add(&parts) = t->colon;
            grammar_expr e = constant(t, item, depth + 1);
            failed |= !e;
            if (e) *(grammar_expr *)list_add(&parts) = e;
        }
    } else {
        json_array_foreach(value, i, item) {
            if (i) *(grammar_expr *)list_add(&parts) = t->comma;
            grammar_expr e = constant(t, item, depth + 1);
            failed |= !e;
            if (e) *(grammar_expr *)list_add(&parts) = e;
        }
    }
    grammar_expr out = 0;
    t->failed |= parts.failed;
    if (!failed)
        out = json_between(t, object ? "{" : "[",
                           parts.n ? grammar_seq(t->b, parts.p, parts.n) : grammar_nothing(t->b),
                           object ? "}" : "]", parts.n == 0);
    list_free(&parts);
    return out;
}

static grammar_expr constant(struct json_text *t, const json_t *value, unsigned depth) {
    char number[32];
    if (depth > SCHEMA_DEPTH) return 0;
    switch (json_typeof(value)) {
    case JSON_TRUE: return json_truth(t, 't');
    case JSON_FALSE: return json_truth(t, 'f');
    case JSON_NULL: return json_truth(t, 'n');
    case JSON_STRING:
        return json_string_text(t, (struct str){json_string_value(value),
                                                json_string_length(value)});
    case JSON_INTEGER: case JSON_REAL:
        json_number_text(value, number);
        return json_word(t, number);
    default: return constant_list(t, value, depth);
    }
}

grammar_expr json_constant(struct json_text *t, const json_t *value) {
    return constant(t, value, 0);
}

static grammar_expr any_number(struct json_text *t, bool integer) {
    grammar_expr digit = CLASS(t, {'0', '9'});
    grammar_expr minus = grammar_repeat(t->b, json_word(t, "-"), 0, 1);
    grammar_expr whole = ALT(t, json_word(t, "0"),
                             SEQ(t, CLASS(t, {'1', '9'}),
                                 grammar_repeat(t->b, digit, 0, JSON_DIGITS - 1)));
    if (integer) return SEQ(t, minus, whole);
    grammar_expr fraction =
        SEQ(t, json_word(t, "."), grammar_repeat(t->b, digit, 1, JSON_FRACTION));
    grammar_expr exponent =
        SEQ(t, CLASS(t, {'E', 'E'}, {'e', 'e'}),
            grammar_repeat(t->b, CLASS(t, {'+', '+'}, {'-', '-'}), 0, 1),
            grammar_repeat(t->b, digit, 1, JSON_EXPONENT));
    return SEQ(t, minus, whole, grammar_repeat(t->b, fraction, 0, 1),
               grammar_repeat(t->b, exponent, 0, 1));
}

static grammar_expr any_list(struct json_text *t, const char *open, grammar_expr item,
                             const char *close) {
    grammar_expr more = grammar_repeat(t->b, SEQ(t, t->comma, item), 0, GRAMMAR_NO_LIMIT);
    return json_between(t, open, SEQ(t, item, more), close, true);
}

void json_text_init(struct json_text *t, struct grammar_builder *b,
                    const struct schema_options *options) {
    bool compact = options->compact;
    *t = (struct json_text){.b = b, .compact = compact, .spelling = options->spelling};
    bool raw = t->spelling.kind == SCHEMA_RAW;
    t->quote = raw ? t->spelling.quote : "\"";
    t->spell = spells[t->spelling.kind];
    grammar_expr blank = grammar_repeat(b, json_word(t, " "), 0, 1), empty = grammar_empty(b);
    grammar_expr indent = grammar_repeat(b, CLASS(t, {' ', ' '}, {'\t', '\t'}), 0, JSON_INDENT);
    t->space = compact ? empty : ALT(t, blank, SEQ(t, json_word(t, "\n"), indent));
    t->comma = SEQ(t, json_word(t, ","), t->space);
    t->colon = SEQ(t, json_word(t, ":"), compact ? empty : blank);
    t->character = any_character(t);
    t->escapes = t->spell(b, specials, SPECIALS);
    t->spelled = grammar_repeat(
        b, t->spell(b, (const struct grammar_range[]){{0, 0x10ffff}}, 1), 0, GRAMMAR_NO_LIMIT);
    t->string = json_quoted(t, raw ? schema_without(b, str_of(t->spelling.avoid))
                                   : grammar_repeat(b, t->character, 0, GRAMMAR_NO_LIMIT));
    t->integer = any_number(t, true);
    t->number = any_number(t, false);
    grammar_rule value = grammar_rule_new(b, "a JSON value");
    t->value = grammar_use(b, value);
    grammar_rule object = grammar_rule_new(b, "a JSON object");
    grammar_rule array = grammar_rule_new(b, "a JSON array");
    grammar_define(b, object, any_list(t, "{", SEQ(t, t->string, t->colon, t->value), "}"));
    grammar_define(b, array, any_list(t, "[", t->value, "]"));
    t->object = grammar_use(b, object);
    t->array = grammar_use(b, array);
    grammar_define(b, value,
                   ALT(t, t->object, t->array, t->string, t->number, json_truth(t, 't'),
                       json_truth(t, 'f'), json_truth(t, 'n')));
}
