/* SPDX-License-Identifier: Apache-2.0
 *
 * free.c: texts in which some markers are not, for what a model writes before a call and for values
 * that end where a marker begins. The automaton that looks for all markers at once (Aho and
 * Corasick 1975) is written down as rules that end in one another, a rule for each of its states
 * but those where a marker is complete. An answer may also not begin as one that is read as a call
 * without a marker; then there is a state for each pair of the two automata. */
#include <stdlib.h>

#include "base/utf8.h"
#include "sample/schema/list.h"
#include "sample/schema/schema.h"

/* How far a text may still begin as JSON or as a list of Python calls. */
enum start { START_BLANK, START_LIST, START_WORD, START_OVER, STARTS, START_DEAD = STARTS };

struct node {
    struct schema_symbol symbol; /* that leads here */
    uint32_t parent, fail;
    bool last; /* a marker ends here, or behind a shorter beginning */
};

struct finder {
    struct grammar_builder *b;
    const struct schema_free *what;
    struct list node;     /* struct node; [0]: nothing of any marker */
    struct list code;     /* struct grammar_range: each a code point that matters */
    struct list rule;     /* grammar_rule [nodes * STARTS]; 0: none yet */
    struct list queue;    /* uint32_t: states whose rules are not written */
    bool failed;
};

static bool same(struct schema_symbol a, struct schema_symbol b) {
    return a.token == b.token && (a.token >= 0 || a.code == b.code);
}

static struct node *node_at(const struct finder *f, uint32_t i) {
    return (struct node *)f->node.p + i;
}

/* UINT32_MAX: none. */
static uint32_t child(const struct finder *f, uint32_t parent, struct schema_symbol symbol) {
    for (uint32_t i = parent + 1; i < f->node.n; i++)
        if (node_at(f, i)->parent == parent && same(node_at(f, i)->symbol, symbol)) return i;
    return UINT32_MAX;
}

/* Where the automaton goes. */
static uint32_t next(const struct finder *f, uint32_t at, struct schema_symbol symbol) {
    for (;;) {
        uint32_t to = child(f, at, symbol);
        if (to != UINT32_MAX) return to;
        if (!at) return 0;
        at = node_at(f, at)->fail;
    }
}

static void add_marker(struct finder *f, const struct schema_marker *m) {
    uint32_t at = 0;
    for (size_t i = 0; i < m->n; i++) {
        uint32_t to = child(f, at, m->symbol[i]);
        if (to == UINT32_MAX) {
            to = (uint32_t)f->node.n;
            *(struct node *)list_add(&f->node) =
                (struct node){.symbol = m->symbol[i], .parent = at};
        }
        at = to;
    }
    if (at) node_at(f, at)->last = true;
}

/* By depth: a node's fail is nearer to the root. Markers are few and short. */
static void find_fails(struct finder *f) {
    for (uint32_t depth = 1, found = 1; found && !f->node.failed; depth++) {
        found = 0;
        for (uint32_t i = 1; i < f->node.n; i++) {
            uint32_t deep = 0, fail;
            for (uint32_t k = i; k; k = node_at(f, k)->parent) deep++;
            if (deep != depth) continue;
            found = 1;
            struct node *n = node_at(f, i);
            fail = n->parent ? next(f, node_at(f, n->parent)->fail, n->symbol) : 0;
            n->fail = fail;
            n->last |= node_at(f, fail)->last;
        }
    }
}

/* ---- what an answer begins with -------------------------------------------------------------- */

static bool is_letter(uint32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static enum start start_next(enum start at, uint32_t c) {
    bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (at == START_WORD && c == '(') return START_DEAD;
    if (at == START_WORD && (is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                             c == '+'))
        return at;
    if (at == START_WORD || at == START_OVER) return START_OVER;
    if (blank) return at;
    if (c == '{') return START_DEAD;
    if (at == START_LIST) return is_letter(c) ? START_WORD : START_OVER;
    return c == '[' ? START_LIST : START_OVER;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void add_code(struct finder *f, uint32_t code) {
    struct grammar_range *r = f->code.p;
    for (size_t i = 0; i < f->code.n; i++)
        if (r[i].low == code) return;
    *(struct grammar_range *)list_add(&f->code) = (struct grammar_range){code, code};
}

static void collect_codes(struct finder *f) {
    static const char starts[] = " \n\r\t{[(.-+_0123456789"
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    add_code(f, 0); /* in no text */
    for (uint32_t i = 1; i < f->node.n; i++)
        if (node_at(f, i)->symbol.token < 0) add_code(f, node_at(f, i)->symbol.code);
    for (size_t i = 0; f->what->no_json && starts[i]; i++) add_code(f, (unsigned char)starts[i]);
}

static grammar_expr state_use(struct finder *f, uint32_t node, enum start start) {
    uint32_t state = node * STARTS + start;
    grammar_rule *rule = (grammar_rule *)f->rule.p + state;
    if (!*rule) {
        *rule = grammar_rule_new(f->b, "text");
        *(uint32_t *)list_add(&f->queue) = state;
    }
    return grammar_builder_failed(f->b) ? 0 : grammar_use(f->b, *rule);
}

/* Where a character leads. */
struct way {
    uint32_t node, code;
    enum start start;
    bool written;
};

/* Characters that lead to the same state go together. */
static void write_ways(struct finder *f, struct list *ways, struct list *parts) {
    struct way *w = ways->p;
    struct list codes = LIST_INIT(sizeof(struct grammar_range));
    for (size_t i = 0; i < ways->n; i++) {
        if (w[i].written) continue;
        codes.n = 0;
        for (size_t k = i; k < ways->n; k++) {
            if (w[k].node != w[i].node || w[k].start != w[i].start) continue;
            *(struct grammar_range *)list_add(&codes) =
                (struct grammar_range){w[k].code, w[k].code};
            w[k].written = true;
        }
        grammar_expr seq[] = {grammar_class(f->b, codes.p, codes.n, false),
                              state_use(f, w[i].node, w[i].start)};
        *(grammar_expr *)list_add(parts) = grammar_seq(f->b, seq, 2);
    }
    f->failed |= codes.failed;
    list_free(&codes);
}

static void write_tokens(struct finder *f, uint32_t node, enum start start, struct list *parts) {
    for (size_t i = 0; i < f->what->tokens; i++) {
        struct schema_symbol symbol = {.token = f->what->token[i]};
        uint32_t to = next(f, node, symbol);
        if (node_at(f, to)->last) continue;
        grammar_expr seq[] = {grammar_token(f->b, symbol.token, false), state_use(f, to, start)};
        *(grammar_expr *)list_add(parts) = grammar_seq(f->b, seq, 2);
    }
}

static void write_state(struct finder *f, uint32_t state) {
    uint32_t node = state / STARTS;
    enum start start = state % STARTS;
    struct list ways = LIST_INIT(sizeof(struct way)), parts = LIST_INIT(sizeof(grammar_expr));
    const struct grammar_range *code = f->code.p;
    *(grammar_expr *)list_add(&parts) = grammar_empty(f->b);
    for (size_t i = 0; i < f->code.n; i++) {
        uint32_t to = next(f, node, (struct schema_symbol){.code = code[i].low, .token = -1});
        enum start then = start_next(start, code[i].low);
        if (code[i].low && !node_at(f, to)->last && then != START_DEAD)
            *(struct way *)list_add(&ways) =
                (struct way){.node = to, .start = then, .code = code[i].low};
    }
    write_ways(f, &ways, &parts);
    grammar_expr seq[] = {grammar_class(f->b, code, f->code.n, true), state_use(f, 0, START_OVER)};
    *(grammar_expr *)list_add(&parts) = grammar_seq(f->b, seq, 2);
    write_tokens(f, node, start, &parts);
    f->failed |= ways.failed || parts.failed;
    if (!grammar_builder_failed(f->b))
        grammar_define(f->b, ((grammar_rule *)f->rule.p)[state],
                       grammar_alt(f->b, parts.p, parts.n));
    list_free(&ways);
    list_free(&parts);
}

grammar_expr schema_free(struct grammar_builder *b, const struct schema_free *what) {
    struct finder f = {.b = b, .what = what, .node = LIST_INIT(sizeof(struct node)),
                       .code = LIST_INIT(sizeof(struct grammar_range)),
                       .rule = LIST_INIT(sizeof(grammar_rule)),
                       .queue = LIST_INIT(sizeof(uint32_t))};
    *(struct node *)list_add(&f.node) = (struct node){.parent = UINT32_MAX};
    for (size_t i = 0; i < what->markers; i++) add_marker(&f, &what->marker[i]);
    find_fails(&f);
    collect_codes(&f);
    for (size_t i = 0; i < f.node.n * STARTS; i++) *(grammar_rule *)list_add(&f.rule) = 0;
    f.failed = f.node.failed || f.code.failed || f.rule.failed;
    grammar_expr out = 0;
    if (!f.failed) out = state_use(&f, 0, what->no_json ? START_BLANK : START_OVER);
    for (size_t i = 0; i < f.queue.n && !f.failed && !grammar_builder_failed(b); i++) {
        write_state(&f, ((uint32_t *)f.queue.p)[i]);
        f.failed |= f.queue.failed;
    }
    bool failed = f.failed;
    list_free(&f.node);
    list_free(&f.code);
    list_free(&f.rule);
    list_free(&f.queue);
    return failed ? grammar_nothing(b) : out;
}

grammar_expr schema_without(struct grammar_builder *b, struct str marker) {
    struct list symbols = LIST_INIT(sizeof(struct schema_symbol));
    for (size_t at = 0; at < marker.n;) {
        uint32_t code;
        at += utf8_decode(marker.p + at, marker.n - at, &code);
        *(struct schema_symbol *)list_add(&symbols) =
            (struct schema_symbol){.code = code, .token = -1};
    }
    struct schema_marker one = {symbols.p, symbols.n};
    grammar_expr out = symbols.failed ? grammar_nothing(b)
                                      : schema_free(b, &(struct schema_free){.marker = &one,
                                                                             .markers = 1});
    list_free(&symbols);
    return out;
}
