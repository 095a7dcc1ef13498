/* SPDX-License-Identifier: Apache-2.0
 *
 * pattern_read.c: the text of a regular expression to its tree; see pattern.h. The grammar is that
 * of ECMA-262's patterns with the flag u, and of its Annex B where a brace or bracket can only be
 * meant as itself. Lazy quantifiers mean the same texts as greedy ones. What a pushdown automaton
 * cannot do (lookaround, back references), or what other dialects read differently, is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "sample/schema/list.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"

struct reader {
    struct arena *arena;
    unsigned scans;
    const char *start, *p, *end;
    unsigned depth;
    ob_error *error;
    ob_status status; /* the first error's; reading goes on as if at the end */
};

static char peek(const struct reader *r) { return r->p < r->end ? *r->p : 0; }
static bool at_end(const struct reader *r) { return r->p >= r->end; }

static bool take(struct reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) return false;
    r->p += n;
    return true;
}

static void refuse(struct reader *r, const char *at, const char *what) {
    unsigned column = 1;
    if (r->status != OB_OK) return;
    for (const char *p = r->start; p < at; p++) column += ((unsigned char)*p & 0xc0) != 0x80;
    r->status = error_set(r->error, OB_ERR_ARGUMENT, "regular expression, column %u: %s", column,
                          what);
    r->p = r->end;
}

static void no_memory(struct reader *r) {
    if (r->status == OB_OK) r->status = error_memory(r->error, "a regular expression", 0);
    r->p = r->end;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static struct pattern_node *node(struct reader *r, enum pattern_kind kind) {
    static struct pattern_node spare;
    struct pattern_node *n = arena_alloc(r->arena, sizeof *n);
    if (!n) {
        no_memory(r);
        return &spare; /* never looked at: the status says so */
    }
    n->kind = kind;
    return n;
}

/* Takes the list of nodes over. */
static struct pattern_node *join(struct reader *r, enum pattern_kind kind, struct list *parts) {
    struct pattern_node *n;
    if (parts->failed) no_memory(r);
    if (r->status != OB_OK || parts->n == 0) {
        n = node(r, PATTERN_EMPTY);
    } else if (parts->n == 1) {
        n = *(struct pattern_node **)parts->p;
    } else {
        n = node(r, kind);
        struct pattern_node **copy = arena_array(r->arena, parts->n, sizeof *copy);
        if (!copy) no_memory(r);
        if (r->status == OB_OK) {
            memcpy(copy, parts->p, parts->n * sizeof *copy);
            n->part = copy;
            n->n = (uint32_t)parts->n;
        }
    }
    list_free(parts);
    return n;
}

/* Takes the ranges over. */
static struct pattern_node *class_node(struct reader *r, struct list *ranges, bool negated) {
    struct pattern_node *n = node(r, PATTERN_CLASS);
    struct grammar_range *copy = NULL;
    if (pattern_ranges_tidy(ranges, negated))
        copy = arena_array(r->arena, ranges->n + 1, sizeof *copy);
    if (!copy) no_memory(r);
    if (r->status == OB_OK) {
        if (ranges->n) memcpy(copy, ranges->p, ranges->n * sizeof *copy);
        n->range = copy;
        n->n = (uint32_t)ranges->n;
    }
    list_free(ranges);
    return n;
}

static void add(struct list *ranges, uint32_t low, uint32_t high) {
    *(struct grammar_range *)list_add(ranges) = (struct grammar_range){low, high};
}

/* ---- characters ------------------------------------------------------------------------------ */

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* So many hexadecimal digits; false, and nothing is read, if there are fewer. */
static bool read_hex(struct reader *r, int digits, uint32_t *code) {
    *code = 0;
    if (r->end - r->p < digits) return false;
    for (int i = 0; i < digits; i++) {
        if (hex(r->p[i]) < 0) return false;
        *code = *code << 4 | (uint32_t)hex(r->p[i]);
    }
    r->p += digits;
    return true;
}

/* Behind "\u": 4 digits, a surrogate pair of them, or digits in braces. */
static uint32_t read_unicode(struct reader *r, const char *from) {
    uint32_t code = 0, low;
    if (take(r, "{")) {
        int digits = 0;
        for (; hex(peek(r)) >= 0 && digits < 8; digits++, r->p++)
            code = code << 4 | (uint32_t)hex(*r->p);
        if (!digits || code > 0x10ffff || !take(r, "}"))
            refuse(r, from, "\\u{...} is not closed or no code point");
        return code;
    }
    if (!read_hex(r, 4, &code)) refuse(r, from, "\\u needs 4 hexadecimal digits");
    if (code < 0xd800 || code >= 0xe000) return code;
    const char *second = r->p;
    if (code < 0xdc00 && take(r, "\\u") && read_hex(r, 4, &low) && low >= 0xdc00 && low < 0xe000)
        return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    r->p = second;
    refuse(r, from, "half of a surrogate pair is no character");
    return code;
}

/* An escape that is one character; `p` stands behind the backslash. */
static uint32_t read_escape(struct reader *r) {
    const char *from = r->p - 1;
    char c = peek(r);
    uint32_t code = 0;
    if (!at_end(r)) r->p++;
    switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'v': return '\v';
    case 'f': return '\f';
    case 'r': return '\r';
    case 'u': return read_unicode(r, from);
    case 'x':
        if (!read_hex(r, 2, &code)) refuse(r, from, "\\x needs 2 hexadecimal digits");
        return code;
    case 'c':
        if (((peek(r) | 32) < 'a') || ((peek(r) | 32) > 'z')) {
            refuse(r, from, "\\c needs a letter");
            return 0;
        }
        return (uint32_t)*r->p++ & 31;
    case '0':
        if (peek(r) < '0' || peek(r) > '9') return 0;
        refuse(r, from, "octal escapes are not supported");
        return 0;
    case 'b': case 'B': refuse(r, from, "word boundaries (\\b, \\B) are not supported"); return 0;
    case 'k': refuse(r, from, "back references (\\k) are not supported"); return 0;
    default: break;
    }
    if (c >= '1' && c <= '9') refuse(r, from, "back references are not supported");
    if (c && c > 0x20 && c < 0x7f && !((c | 32) >= 'a' && (c | 32) <= 'z') && c != '_')
        return (unsigned char)c;
    refuse(r, from, at_end(r) && !c ? "it ends with a backslash" : "this escape is not supported");
    return 0;
}

static uint32_t read_plain(struct reader *r) {
    uint32_t code;
    const char *from = r->p;
    if (at_end(r)) return 0; /* it was refused, or will be as not closed */
    r->p += utf8_decode(r->p, (size_t)(r->end - r->p), &code);
    if (code == UTF8_BAD) {
        refuse(r, from, "this is not UTF-8");
        code = 0;
    }
    return code;
}

/* \d and \p{..} into `ranges`; false, and nothing is read, if it is no class. */
static bool read_class_escape(struct reader *r, struct list *ranges, bool wide) {
    const char *from = r->p;
    if (r->end - r->p < 2 || *r->p != '\\' || !r->p[1] || !strchr("dDwWsSpP", r->p[1]))
        return false;
    char letter = r->p[1];
    r->p += 2;
    r->scans += (letter | 32) == 'p' || (letter >= 'a') == wide;
    if (r->scans > PATTERN_SCANS) {
        refuse(r, from, "there are too many Unicode classes");
        return true;
    }
    if ((letter | 32) != 'p') {
        if (!pattern_add_class(ranges, letter, wide)) no_memory(r);
        return true;
    }
    const char *name = r->p + 1;
    const char *close = at_end(r) ? NULL : memchr(r->p, '}', (size_t)(r->end - r->p));
    if (peek(r) != '{' || !close) {
        refuse(r, from, "\\p needs a name in braces");
    } else {
        r->p = close + 1;
        if (!pattern_add_property(ranges, (struct str){name, (size_t)(close - name)},
                                letter == 'P'))
            refuse(r, from, "only general categories are supported in \\p{...}");
    }
    return true;
}

static struct pattern_node *read_class(struct reader *r) {
    const char *from = r->p++;
    struct list ranges = LIST_INIT(sizeof(struct grammar_range));
    bool negated = take(r, "^");
    if (peek(r) == ']') refuse(r, from, "an empty class is not supported");
    while (!at_end(r) && *r->p != ']') {
        const char *at = r->p;
        if (read_class_escape(r, &ranges, negated)) {
            if (peek(r) == '-' && r->end - r->p > 1 && r->p[1] != ']')
                refuse(r, at, "a class cannot begin a range");
            continue;
        }
        if (*r->p == '[' && r->end - r->p > 1 && strchr(":.=", r->p[1]))
            refuse(r, at, "POSIX classes are not supported");
        uint32_t low = take(r, "\\b") ? '\b' : take(r, "\\") ? read_escape(r) : read_plain(r);
        uint32_t high = low;
        if (peek(r) == '-' && r->end - r->p > 1 && r->p[1] != ']') {
            r->p++;
            if (read_class_escape(r, &ranges, negated)) refuse(r, at, "a class cannot end a range");
            else high = take(r, "\\b") ? '\b' : take(r, "\\") ? read_escape(r) : read_plain(r);
        }
        if (low > high) refuse(r, at, "this range ends before it begins");
        add(&ranges, low, high);
    }
    if (!take(r, "]")) refuse(r, from, "this class is not closed");
    return class_node(r, &ranges, negated);
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct pattern_node *read_alternatives(struct reader *r);

static struct pattern_node *read_group(struct reader *r) {
    const char *from = r->p++;
    if (++r->depth > SCHEMA_DEPTH) refuse(r, from, "too many groups inside one another");
    if (take(r, "?")) {
        if (peek(r) == '=' || peek(r) == '!') refuse(r, from, "lookahead is not supported");
        else if (take(r, "<=") || take(r, "<!")) refuse(r, from, "lookbehind is not supported");
        else if (take(r, "<") || take(r, "P<")) {
            while (!at_end(r) && *r->p != '>') r->p++;
            if (!take(r, ">")) refuse(r, from, "the group's name is not closed");
        } else if (!take(r, ":")) {
            refuse(r, from, "this kind of group is not supported");
        }
    }
    struct pattern_node *n = read_alternatives(r);
    if (!take(r, ")")) refuse(r, from, "this group is not closed");
    r->depth--;
    return n;
}

static struct pattern_node *read_atom(struct reader *r) {
    struct list ranges = LIST_INIT(sizeof(struct grammar_range));
    char c = *r->p;
    if (c == '(') return read_group(r);
    if (c == '[') return read_class(r);
    if (take(r, "^")) return node(r, PATTERN_BEGIN);
    if (take(r, "$")) return node(r, PATTERN_END);
    if (take(r, ".")) {
        add(&ranges, '\n', '\n');
        add(&ranges, '\r', '\r');
        add(&ranges, 0x2028, 0x2029);
        return class_node(r, &ranges, true);
    }
    if (!read_class_escape(r, &ranges, false)) {
        uint32_t code = take(r, "\\") ? read_escape(r) : read_plain(r);
        add(&ranges, code, code);
    }
    return class_node(r, &ranges, false);
}

/* "{m}", "{m,}", "{m,n}"; false, and nothing is read, if it is none: the brace is itself. */
static bool read_counts(struct reader *r, uint32_t *min, uint32_t *max) {
    const char *from = r->p;
    uint32_t *to = min;
    if (!take(r, "{") || peek(r) < '0' || peek(r) > '9') {
        r->p = from;
        return false;
    }
    *min = *max = 0;
    for (;; r->p++) {
        char c = peek(r);
        if (c >= '0' && c <= '9') {
            *to = *to < 100000000 ? *to * 10 + (uint32_t)(c - '0') : GRAMMAR_NO_LIMIT - 1;
        } else if (c == ',' && to == min) {
            to = max;
            if (r->end - r->p > 1 && r->p[1] == '}') *max = GRAMMAR_NO_LIMIT;
        } else {
            break;
        }
    }
    if (to == min) *max = *min;
    if (take(r, "}")) {
        if (*min > *max) refuse(r, from, "the first count is greater than the second");
        return true;
    }
    r->p = from;
    return false;
}

static bool read_quantifier(struct reader *r, uint32_t *min, uint32_t *max) {
    if (take(r, "*")) *min = 0, *max = GRAMMAR_NO_LIMIT;
    else if (take(r, "+")) *min = 1, *max = GRAMMAR_NO_LIMIT;
    else if (take(r, "?")) *min = 0, *max = 1;
    else return read_counts(r, min, max);
    return true;
}

static struct pattern_node *read_item(struct reader *r) {
    const char *from = r->p;
    uint32_t min, max;
    if (read_quantifier(r, &min, &max)) refuse(r, from, "there is nothing to repeat");
    if (at_end(r)) return node(r, PATTERN_EMPTY);
    struct pattern_node *atom = read_atom(r);
    if (!read_quantifier(r, &min, &max)) return atom;
    take(r, "?"); /* lazy */
    if (atom->kind == PATTERN_BEGIN || atom->kind == PATTERN_END)
        refuse(r, from, "^ and $ cannot be repeated");
    struct pattern_node *repeat = node(r, PATTERN_REPEAT);
    struct pattern_node **part = arena_array(r->arena, 1, sizeof *part);
    if (!part) no_memory(r);
    if (r->status != OB_OK) return atom;
    *part = atom;
    repeat->part = part;
    repeat->n = 1;
    repeat->min = min;
    repeat->max = max;
    return repeat;
}

static struct pattern_node *read_alternatives(struct reader *r) {
    struct list parts = LIST_INIT(sizeof(struct pattern_node *));
    do {
        struct list items = LIST_INIT(sizeof(struct pattern_node *));
        while (!at_end(r) && *r->p != '|' && *r->p != ')')
            *(struct pattern_node **)list_add(&items) = read_item(r);
        *(struct pattern_node **)list_add(&parts) = join(r, PATTERN_SEQ, &items);
    } while (take(r, "|"));
    return join(r, PATTERN_ALT, &parts);
}

ob_status pattern_read(struct str text, struct pattern *out, ob_error *error) {
    *out = (struct pattern){0};
    if (text.n > SCHEMA_TEXT_MOST / 16)
        return error_set(error, OB_ERR_LIMIT, "a regular expression has at most %d bytes, not %zu",
                         SCHEMA_TEXT_MOST / 16, text.n);
    if (!text.n) text.p = "";
    struct reader r = {.arena = &out->arena, .start = text.p, .p = text.p, .end = text.p + text.n,
                       .error = error};
    out->root = read_alternatives(&r);
    if (!at_end(&r)) refuse(&r, r.p, "\")\" closes no group");
    out->scans = r.scans;
    if (r.status != OB_OK) pattern_free(out);
    return r.status;
}

void pattern_free(struct pattern *regex) {
    arena_free(&regex->arena);
    regex->root = NULL;
}
