/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_reference.h: what a grammar matches, found by trying everything: the model that
 * test_grammar.c and the fuzz target hold the automata against. Expressions are made here and in a
 * builder at once, so that both mean the same. A text is a row of symbols, a byte each, or a token
 * as a whole (256 + id). */
#ifndef TESTS_GRAMMAR_REFERENCE_H
#define TESTS_GRAMMAR_REFERENCE_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/grammar/build.h"

enum { REF_EXPRS = 256, REF_PARTS = 4, REF_RULES = 8, REF_TEXT = 62, REF_TOKEN = 256 };

enum ref_kind { REF_EMPTY, REF_NOTHING, REF_BYTES, REF_CLASS, REF_SEQ, REF_ALT, REF_REPEAT,
                REF_ONE_TOKEN, REF_RULE };

struct ref_expr {
    enum ref_kind kind;
    char bytes[8];
    struct grammar_range range[2];
    bool negated;
    uint32_t part[REF_PARTS], n, min, max;
    grammar_expr made;
    bool fruitful;
};

struct ref {
    struct grammar_builder *b;
    struct ref_expr expr[REF_EXPRS];
    uint32_t expr_n, rule[REF_RULES]; /* expressions */
    grammar_rule made[REF_RULES];
    uint32_t rule_n;
    uint16_t text[REF_TEXT + 8];
    size_t text_n;
    bool memo_is[REF_EXPRS][REF_TEXT + 2];
    struct ref_match { uint64_t ends; bool open; } memo[REF_EXPRS][REF_TEXT + 2];
};

/* ends: bit j: a text of the expression is text[i..j). open: text[i..n) begins a text of it. */
static struct ref_match ref_match(struct ref *r, uint32_t id, size_t i);

static uint32_t ref_add(struct ref *r, struct ref_expr e) {
    grammar_expr part[REF_PARTS];
    for (uint32_t k = 0; k < e.n && e.kind >= REF_SEQ; k++)
        part[k] = e.kind == REF_RULE || e.kind == REF_ONE_TOKEN ? 0 : r->expr[e.part[k]].made;
    switch (e.kind) {
        case REF_EMPTY: e.made = grammar_empty(r->b); break;
        case REF_NOTHING: e.made = grammar_nothing(r->b); break;
        case REF_BYTES: e.made = grammar_text(r->b, (struct str){e.bytes, e.n}); break;
        case REF_CLASS: e.made = grammar_class(r->b, e.range, e.n, e.negated); break;
        case REF_SEQ: e.made = grammar_seq(r->b, part, e.n); break;
        case REF_ALT: e.made = grammar_alt(r->b, part, e.n); break;
        case REF_REPEAT: e.made = grammar_repeat(r->b, part[0], e.min, e.max); break;
        case REF_ONE_TOKEN: e.made = grammar_token(r->b, (int32_t)e.min, e.negated); break;
        case REF_RULE: e.made = grammar_use(r->b, r->made[e.min]); break;
    }
    r->expr[r->expr_n] = e;
    return r->expr_n++;
}

/* ---- which expressions match any text -------------------------------------------------------- */

static bool ref_class_has(const struct ref_expr *e, uint32_t low, uint32_t high) {
    for (uint32_t code = low; code <= high; code++) {
        bool in = false;
        if (code >= 0xD800 && code <= 0xDFFF) continue;
        for (uint32_t k = 0; k < e->n; k++)
            in |= code >= e->range[k].low && code <= e->range[k].high;
        if (in != e->negated) return true;
    }
    return false;
}

static bool ref_is_fruitful(const struct ref *r, const struct ref_expr *e) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < e->n && e->kind >= REF_SEQ && e->kind <= REF_REPEAT; k++)
        n += r->expr[e->part[k]].fruitful;
    switch (e->kind) {
        case REF_NOTHING: return false;
        case REF_CLASS: return ref_class_has(e, 0, 0x10FFFF);
        case REF_SEQ: return n == e->n;
        case REF_ALT: return n > 0;
        case REF_REPEAT: return e->min <= e->max && (!e->min || n);
        case REF_RULE: return r->expr[r->rule[e->min]].fruitful;
        default: return true;
    }
}

static void ref_find_fruitful(struct ref *r) {
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < r->expr_n; i++) {
            if (r->expr[i].fruitful || !ref_is_fruitful(r, &r->expr[i])) continue;
            r->expr[i].fruitful = more = true;
        }
    }
}

/* ---- matching -------------------------------------------------------------------------------- */

static struct ref_match ref_bytes(const struct ref *r, const struct ref_expr *e, size_t i) {
    size_t k = 0;
    while (k < e->n && i + k < r->text_n && r->text[i + k] == (uint8_t)e->bytes[k]) k++;
    if (k == e->n) return (struct ref_match){1ull << (i + k), i + k == r->text_n};
    return (struct ref_match){0, i + k == r->text_n};
}

/* One character, or the beginning of one that some bytes would complete. */
static struct ref_match ref_class(const struct ref *r, const struct ref_expr *e, size_t i) {
    char bytes[4];
    size_t have = r->text_n - i < 4 ? r->text_n - i : 4;
    if (!have) return (struct ref_match){0, true};
    for (size_t k = 0; k < have; k++) {
        if (r->text[i + k] > 0xFF) have = k;
        else bytes[k] = (char)r->text[i + k];
    }
    if (!have) return (struct ref_match){0, false};
    uint32_t code, first = (uint8_t)bytes[0];
    size_t n = utf8_decode(bytes, have, &code);
    if (code != UTF8_BAD)
        return ref_class_has(e, code, code)
                   ? (struct ref_match){1ull << (i + n), i + n == r->text_n}
                   : (struct ref_match){0, false};
    size_t whole = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
    if (have != r->text_n - i || whole <= have || first > 0xF4) return (struct ref_match){0, false};
    uint32_t low = first & (0xFFu >> (whole + 1)), least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t k = 1; k < have; k++) {
        if (((uint8_t)bytes[k] & 0xC0) != 0x80) return (struct ref_match){0, false};
        low = low << 6 | ((uint8_t)bytes[k] & 0x3F);
    }
    uint32_t high = ((low + 1) << (6 * (whole - have))) - 1;
    low <<= 6 * (whole - have);
    if (low < least[whole]) low = least[whole];
    if (high > 0x10FFFF) high = 0x10FFFF;
    return (struct ref_match){0, ref_class_has(e, low, high)};
}

static struct ref_match ref_seq(struct ref *r, const struct ref_expr *e, size_t i) {
    uint64_t at = 1ull << i;
    bool open = false;
    for (uint32_t k = 0; k < e->n; k++) {
        uint64_t next = 0;
        bool rest = true;
        for (uint32_t m = k + 1; m < e->n; m++) rest &= r->expr[e->part[m]].fruitful;
        for (size_t j = i; j <= r->text_n; j++) {
            if (!(at >> j & 1)) continue;
            struct ref_match one = ref_match(r, e->part[k], j);
            next |= one.ends;
            open |= one.open && rest;
        }
        at = next;
    }
    if (!e->n) open = i == r->text_n;
    return (struct ref_match){at, open};
}

static struct ref_match ref_repeat(struct ref *r, const struct ref_expr *e, size_t i) {
    struct ref_match all = {0, false};
    uint64_t at = 1ull << i;
    if (e->min > e->max) return all;
    for (uint32_t count = 0;; count++) {
        uint64_t next = 0;
        if (count >= e->min) {
            all.ends |= at;
            if (at >> r->text_n & 1) all.open = true;
        }
        /* Later rounds find nothing new: each takes a byte, or stands for an empty one. */
        if (count >= e->max || !at || (count >= e->min && count > r->text_n)) break;
        for (size_t j = i; j <= r->text_n; j++) {
            if (!(at >> j & 1)) continue;
            struct ref_match one = ref_match(r, e->part[0], j);
            next |= one.ends;
            all.open |= one.open;
        }
        at = next;
    }
    return all;
}

static struct ref_match ref_find(struct ref *r, const struct ref_expr *e, size_t i) {
    struct ref_match all = {0, false}, one;
    switch (e->kind) {
        case REF_EMPTY: return (struct ref_match){1ull << i, i == r->text_n};
        case REF_BYTES: return ref_bytes(r, e, i);
        case REF_CLASS: return ref_class(r, e, i);
        case REF_SEQ: return ref_seq(r, e, i);
        case REF_ALT:
            for (uint32_t k = 0; k < e->n; k++) {
                one = ref_match(r, e->part[k], i);
                all.ends |= one.ends;
                all.open |= one.open;
            }
            return all;
        case REF_REPEAT: return ref_repeat(r, e, i);
        case REF_RULE: return ref_match(r, r->rule[e->min], i);
        case REF_ONE_TOKEN:
            if (i == r->text_n) return (struct ref_match){0, true};
            if (r->text[i] < REF_TOKEN || (r->text[i] == REF_TOKEN + e->min) == e->negated)
                return all;
            return (struct ref_match){1ull << (i + 1), i + 1 == r->text_n};
        case REF_NOTHING: break;
    }
    return all;
}

static struct ref_match ref_match(struct ref *r, uint32_t id, size_t i) {
    if (!r->expr[id].fruitful) return (struct ref_match){0, false};
    if (r->memo_is[id][i]) return r->memo[id][i];
    struct ref_match m = ref_find(r, &r->expr[id], i);
    r->memo_is[id][i] = true;
    return r->memo[id][i] = m;
}

/* What the text at hand is to the grammar: rule 0 is the root. */
static struct ref_match ref_text(struct ref *r) {
    memset(r->memo_is, 0, sizeof r->memo_is);
    struct ref_match m = ref_match(r, r->rule[0], 0);
    m.ends = m.ends >> r->text_n & 1;
    return m;
}

#endif
