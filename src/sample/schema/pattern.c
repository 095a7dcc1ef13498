/* SPDX-License-Identifier: Apache-2.0
 *
 * pattern.c: the texts of a regular expression as a grammar's expression; see pattern.h.
 *
 * An anchor does its work at an edge of the whole expression, where it takes away the "any text"
 * that a search would allow beside the match; anywhere else it could only match nothing. */
#include <stdlib.h>

#include "base/error.h"
#include "sample/schema/list.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"

static const struct grammar_range all[] = {{0, 0xd7ff}, {0xe000, 0x10ffff}};

/* What a part of the expression stands at. */
enum edge {
    INSIDE,
    CLOSED, /* the text ends here */
    OPEN,   /* any text may stand here, unless an anchor forbids */
};

struct writer {
    struct grammar_builder *b;
    pattern_spell spell;
    grammar_expr any; /* any text */
    bool misplaced, failed;
};

static bool anchored_somewhere(const struct pattern_node *n) {
    if (n->kind == PATTERN_BEGIN || n->kind == PATTERN_END) return true;
    for (uint32_t i = 0; n->kind != PATTERN_CLASS && i < n->n; i++)
        if (anchored_somewhere(n->part[i])) return true;
    return false;
}

static grammar_expr write_node(struct writer *w, const struct pattern_node *n, enum edge left,
                               enum edge right);

static grammar_expr beside(struct writer *w, enum edge left, grammar_expr e, enum edge right) {
    grammar_expr part[3];
    size_t n = 0;
    if (left == OPEN) part[n++] = w->any;
    part[n++] = e;
    if (right == OPEN) part[n++] = w->any;
    return n == 1 ? e : grammar_seq(w->b, part, n);
}

/* Anchors at the edges of a sequence are left out, and close them. */
static grammar_expr write_seq(struct writer *w, const struct pattern_node *n, enum edge left,
                              enum edge right) {
    struct list out = LIST_INIT(sizeof(grammar_expr));
    uint32_t from = 0, to = n->n;
    for (; from < to && left != INSIDE && n->part[from]->kind == PATTERN_BEGIN; from++)
        left = CLOSED;
    for (; to > from && right != INSIDE && n->part[to - 1]->kind == PATTERN_END; to--)
        right = CLOSED;
    if (from == to) return beside(w, left, grammar_empty(w->b), right);
    for (uint32_t i = from; i < to; i++)
        *(grammar_expr *)list_add(&out) = write_node(w, n->part[i], i == from ? left : INSIDE,
                                                     i + 1 == to ? right : INSIDE);
    if (out.failed) w->failed = true;
    grammar_expr e = grammar_seq(w->b, out.p, out.n);
    list_free(&out);
    return e;
}

static grammar_expr write_alt(struct writer *w, const struct pattern_node *n, enum edge left,
                              enum edge right) {
    struct list out = LIST_INIT(sizeof(grammar_expr));
    for (uint32_t i = 0; i < n->n; i++)
        *(grammar_expr *)list_add(&out) = write_node(w, n->part[i], left, right);
    if (out.failed) w->failed = true;
    grammar_expr e = grammar_alt(w->b, out.p, out.n);
    list_free(&out);
    return e;
}

/* A sequence or choice that holds anchors hands its edges on; everything else keeps them. */
static grammar_expr write_node(struct writer *w, const struct pattern_node *n, enum edge left,
                               enum edge right) {
    bool hand_on = (left != INSIDE || right != INSIDE) && anchored_somewhere(n);
    switch (n->kind) {
    case PATTERN_EMPTY: return beside(w, left, grammar_empty(w->b), right);
    case PATTERN_CLASS: return beside(w, left, w->spell(w->b, n->range, n->n), right);
    case PATTERN_SEQ:
        if (hand_on) return write_seq(w, n, left, right);
        return beside(w, left, write_seq(w, n, INSIDE, INSIDE), right);
    case PATTERN_ALT:
        if (hand_on) return write_alt(w, n, left, right);
        return beside(w, left, write_alt(w, n, INSIDE, INSIDE), right);
    case PATTERN_REPEAT: {
        if (anchored_somewhere(n)) w->misplaced = true;
        grammar_expr part = write_node(w, n->part[0], INSIDE, INSIDE);
        return beside(w, left, grammar_repeat(w->b, part, n->min, n->max), right);
    }
    case PATTERN_BEGIN:
        if (left == INSIDE) w->misplaced = true;
        return beside(w, CLOSED, grammar_empty(w->b), right);
    default:
        if (right == INSIDE) w->misplaced = true;
        return beside(w, left, grammar_empty(w->b), CLOSED);
    }
}

ob_status pattern_expr(const struct pattern *regex, bool search, pattern_spell spell,
                     struct grammar_builder *b, grammar_expr *out, ob_error *error) {
    struct writer w = {.b = b, .spell = spell};
    enum edge edge = search ? OPEN : CLOSED;
    w.any = grammar_repeat(b, spell(b, all, 2), 0, GRAMMAR_NO_LIMIT);
    *out = write_node(&w, regex->root, edge, edge);
    if (w.failed) return error_memory(error, "a regular expression", 0);
    if (w.misplaced)
        return error_set(error, OB_ERR_ARGUMENT,
                         "regular expression: ^ and $ are supported at its beginning and end, and "
                         "at those of its alternatives");
    return OB_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static uint64_t capped(uint64_t n) { return n < GRAMMAR_NO_LIMIT ? n : GRAMMAR_NO_LIMIT; }

static struct pattern_length length(const struct pattern_node *n) {
    struct pattern_length out = {0, 0}, part;
    switch (n->kind) {
    case PATTERN_CLASS: return (struct pattern_length){1, 1};
    case PATTERN_SEQ:
        for (uint32_t i = 0; i < n->n; i++) {
            part = length(n->part[i]);
            out = (struct pattern_length){capped(out.min + part.min), capped(out.max + part.max)};
        }
        return out;
    case PATTERN_ALT:
        for (uint32_t i = 0; i < n->n; i++) {
            part = length(n->part[i]);
            if (i == 0 || part.min < out.min) out.min = part.min;
            if (part.max > out.max) out.max = part.max;
        }
        return out;
    case PATTERN_REPEAT:
        part = length(n->part[0]);
        return (struct pattern_length){capped(part.min * n->min), capped(part.max * n->max)};
    default: return out;
    }
}

static bool anchored(const struct pattern_node *n, enum pattern_kind kind) {
    if (n->kind == kind) return true;
    if (n->kind == PATTERN_SEQ)
        return anchored(n->part[kind == PATTERN_BEGIN ? 0 : n->n - 1], kind);
    if (n->kind != PATTERN_ALT) return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!anchored(n->part[i], kind)) return false;
    return true;
}

struct pattern_length pattern_length(const struct pattern *regex) {
    struct pattern_length out = length(regex->root);
    if (!anchored(regex->root, PATTERN_BEGIN) || !anchored(regex->root, PATTERN_END))
        out.max = GRAMMAR_NO_LIMIT;
    return out;
}

const struct pattern_node *pattern_as_repeat(const struct pattern *regex) {
    const struct pattern_node *n = regex->root;
    if (n->kind != PATTERN_SEQ || n->n != 3 || n->part[0]->kind != PATTERN_BEGIN ||
        n->part[2]->kind != PATTERN_END || n->part[1]->kind != PATTERN_REPEAT ||
        n->part[1]->part[0]->kind != PATTERN_CLASS)
        return NULL;
    return n->part[1];
}

/* ---- a request's own ------------------------------------------------------------------------- */

static grammar_expr plain(struct grammar_builder *b, const struct grammar_range *range, size_t n) {
    return n ? grammar_class(b, range, n, false) : grammar_nothing(b);
}

ob_status schema_regex(struct str text, struct grammar **out, ob_error *error) {
    struct pattern regex;
    *out = NULL;
    ob_status s = pattern_read(text, &regex, error);
    if (s != OB_OK) return s;
    struct grammar_builder *b = grammar_builder_new();
    grammar_expr body = 0;
    s = b ? OB_OK : error_memory(error, "a grammar", 0);
    if (s == OB_OK) s = pattern_expr(&regex, false, plain, b, &body, error);
    if (s == OB_OK) {
        grammar_rule root = grammar_rule_new(b, "the regular expression");
        grammar_define(b, root, body);
        s = grammar_finish(b, root, out, error);
    }
    grammar_builder_free(&b);
    pattern_free(&regex);
    return s;
}
