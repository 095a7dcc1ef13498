/* SPDX-License-Identifier: Apache-2.0
 *
 * nfa.c: writes an expression out as an automaton with empty edges (Thompson 1968): each part runs
 * from a node that it is given to one that it returns. No edge leads back into the node that a part
 * is given, so that several parts may begin there. */
#include <string.h>

#include "base/utf8.h"
#include "sample/grammar/array.h"
#include "sample/grammar/compile.h"

static uint32_t new_node(struct maker *m) {
    if (m->status) return 0;
    if (!ARRAY_ROOM(m->node, m->node_cap, (size_t)m->node_n + 1)) {
        maker_fail(m, OB_ERR_MEMORY);
        return 0;
    }
    m->node[m->node_n] = 0;
    return m->node_n++;
}

static void add_edge(struct maker *m, uint32_t from, struct nfa_edge edge) {
    if (++m->steps > COMPILE_MAX_STEPS) maker_fail(m, OB_ERR_LIMIT);
    if (m->status) return;
    if (!ARRAY_ROOM(m->edge, m->edge_cap, (size_t)m->edge_n + 1)) {
        maker_fail(m, OB_ERR_MEMORY);
        return;
    }
    edge.next = m->node[from];
    m->node[from] = m->edge_n;
    m->edge[m->edge_n++] = edge;
}
static void add_empty(struct maker *m, uint32_t from, uint32_t to) {
    if (from != to) add_edge(m, from, (struct nfa_edge){.kind = NFA_EMPTY, .to = to});
}
static void add_range(struct maker *m, uint32_t from, uint8_t low, uint8_t high, uint32_t to) {
    add_edge(m, from, (struct nfa_edge){.kind = NFA_RANGE, .low = low, .high = high, .to = to});
}

static uint32_t symbol_of(struct maker *m, struct symbol s) {
    uint64_t mixed = ((uint64_t)s.rule << 32 | (uint32_t)s.id) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ ((uint64_t)s.min << 32 | s.max)) * 0xbf58476d1ce4e5b9u;
    uint32_t *head = &m->symbol_head[(mixed >> 40) % MAKER_SYMBOL_HEADS];
    for (uint32_t i = *head; i; i = m->symbol[i - 1].next) {
        const struct symbol *o = &m->symbol[i - 1];
        if (o->is_token == s.is_token && o->negated == s.negated && o->id == s.id &&
            o->rule == s.rule && o->min == s.min && o->max == s.max)
            return i - 1;
    }
    if (!ARRAY_ROOM(m->symbol, m->symbol_cap, (size_t)m->symbol_n + 1)) {
        maker_fail(m, OB_ERR_MEMORY);
        return 0;
    }
    s.next = *head;
    m->symbol[m->symbol_n] = s;
    *head = ++m->symbol_n;
    return m->symbol_n - 1;
}
static uint32_t add_symbol(struct maker *m, uint32_t from, struct symbol s) {
    uint32_t to = new_node(m), symbol = symbol_of(m, s);
    add_edge(m, from, (struct nfa_edge){.kind = NFA_SYMBOL, .symbol = symbol, .to = to});
    return to;
}

/* ---- characters as bytes --------------------------------------------------------------------- */

/* Where a class ends, and the nodes one, two and three continuation bytes before that, made when
 * needed: most sequences of a class end alike. */
struct tails { uint32_t node[4]; };

static uint32_t tail(struct maker *m, struct tails *t, unsigned left) {
    if (!t->node[left]) {
        uint32_t node = new_node(m);
        add_range(m, node, 0x80, 0xBF, tail(m, t, left - 1));
        t->node[left] = node;
    }
    return t->node[left];
}

/* Code points whose encodings are the same sequence of byte ranges. */
static void add_sequence(struct maker *m, uint32_t from, uint32_t low, uint32_t high,
                         struct tails *t) {
    char a[4], z[4];
    unsigned n = (unsigned)utf8_encode(low, a), any = 0;
    utf8_encode(high, z);
    while (any + 1 < n && (uint8_t)a[n - 1 - any] == 0x80 && (uint8_t)z[n - 1 - any] == 0xBF)
        any++;
    for (unsigned i = 0; i < n; i++) {
        unsigned left = n - 1 - i;
        uint32_t to = left <= any ? tail(m, t, left) : new_node(m);
        add_range(m, from, (uint8_t)a[i], (uint8_t)z[i], to);
        if (left <= any) break;
        from = to;
    }
}

/* Cuts a range until the encodings of its ends differ in ranges of bytes alone. */
static void add_codes(struct maker *m, uint32_t from, uint32_t low, uint32_t high,
                      struct tails *t) {
    static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++) {
        if (low > last_of_length[i] || high <= last_of_length[i]) continue;
        add_codes(m, from, low, last_of_length[i], t);
        low = last_of_length[i] + 1;
    }
    for (unsigned bits = 6; low > 0x7F && bits <= 18; bits += 6) {
        uint32_t rest = (1u << bits) - 1;
        if ((low & ~rest) == (high & ~rest)) continue;
        if (low & rest) {
            add_codes(m, from, low, low | rest, t);
            low = (low | rest) + 1;
            bits = 0;
        } else if ((high & rest) != rest) {
            add_codes(m, from, high & ~rest, high, t);
            high = (high & ~rest) - 1;
            bits = 0;
        }
    }
    add_sequence(m, from, low, high, t);
}

static uint32_t write_class(struct maker *m, const struct expr *e, uint32_t from) {
    uint32_t to = new_node(m);
    struct tails t = {{to}};
    for (uint32_t i = 0; i < e->n && !m->status; i++) {
        struct grammar_range r = m->b->range[e->first + i];
        add_codes(m, from, r.low, r.high, &t);
    }
    return to;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static uint32_t write(struct maker *m, grammar_expr id, uint32_t from, bool repeated);

static uint32_t write_text(struct maker *m, const struct expr *e, uint32_t from) {
    for (uint32_t i = 0; i < e->n && !m->status; i++) {
        uint32_t to = new_node(m);
        uint8_t byte = (uint8_t)m->b->bytes[e->first + i];
        add_range(m, from, byte, byte, to);
        from = to;
    }
    return from;
}

static uint32_t write_parts(struct maker *m, const struct expr *e, uint32_t from, bool repeated) {
    const grammar_expr *part = m->b->part + e->first;
    if (e->kind == EXPR_SEQ) {
        for (uint32_t i = 0; i < e->n && !m->status; i++)
            from = write(m, part[i], from, repeated);
        return from;
    }
    uint32_t to = new_node(m);
    for (uint32_t i = 0; i < e->n && !m->status; i++)
        if (m->facts.fact[part[i]] & FACT_FRUITFUL)
            add_empty(m, write(m, part[i], from, repeated), to);
    return to;
}

/* The part as often as it must, then as often as it may. */
static uint32_t write_copies(struct maker *m, const struct expr *e, uint32_t min, uint32_t from) {
    bool endless = e->max == GRAMMAR_NO_LIMIT;
    for (uint32_t i = 0; i + endless < min && !m->status; i++)
        from = write(m, e->first, from, true);
    if (endless) {
        uint32_t loop = new_node(m);
        add_empty(m, from, loop);
        uint32_t end = write(m, e->first, loop, true);
        add_empty(m, end, loop);
        return min ? end : loop;
    }
    uint32_t to = new_node(m);
    for (uint32_t i = min; i < e->max && !m->status; i++) {
        add_empty(m, from, to);
        from = write(m, e->first, from, true);
    }
    add_empty(m, from, to);
    return to;
}

static uint32_t write_repeat(struct maker *m, grammar_expr id, uint32_t from) {
    const struct expr *e = &m->b->expr[id];
    uint32_t min = facts_min(m->b, &m->facts, id);
    /* A part that matches no text, or the empty one alone, is left out. */
    if (!(m->facts.fact[e->first] & FACT_SOLID)) return from;
    if (facts_expand(m->b, &m->facts, id)) return write_copies(m, e, min, from);
    uint32_t rule = maker_want(m, e->first, true);
    uint32_t to = add_symbol(m, from, (struct symbol){.rule = rule, .min = min ? min : 1,
                                                      .max = e->max});
    if (!min) add_empty(m, from, to);
    return to;
}

static uint32_t write_use(struct maker *m, grammar_expr id, uint32_t from, bool repeated) {
    grammar_expr content = m->b->rule[m->b->expr[id].first].expr;
    uint8_t fact = m->facts.fact[content];
    if (!(fact & FACT_SOLID)) return from;
    if (facts_inline(m->b, &m->facts, id, repeated)) return write(m, content, from, repeated);
    uint32_t to =
        add_symbol(m, from, (struct symbol){.rule = maker_want(m, content, false)});
    if (fact & FACT_NULLABLE) add_empty(m, from, to);
    return to;
}

static uint32_t write(struct maker *m, grammar_expr id, uint32_t from, bool repeated) {
    const struct expr *e = &m->b->expr[id];
    if (++m->steps > COMPILE_MAX_STEPS) maker_fail(m, OB_ERR_LIMIT);
    if (m->status) return from;
    switch (e->kind) {
        case EXPR_TEXT: return write_text(m, e, from);
        case EXPR_CLASS: return write_class(m, e, from);
        case EXPR_SEQ:
        case EXPR_ALT: return write_parts(m, e, from, repeated);
        case EXPR_REPEAT: return write_repeat(m, id, from);
        case EXPR_RULE: return write_use(m, id, from, repeated);
        case EXPR_TOKEN:
            return add_symbol(m, from, (struct symbol){.is_token = true, .negated = e->negated,
                                                       .id = (int32_t)e->first});
        default: return from; /* EMPTY; what matches nothing is never asked for */
    }
}

uint32_t nfa_make(struct maker *m, grammar_expr content, bool repeated) {
    m->node_n = 0;
    m->edge_n = 1; /* 0 says none */
    uint32_t start = new_node(m);
    if (!m->status && !ARRAY_ROOM(m->edge, m->edge_cap, 1)) maker_fail(m, OB_ERR_MEMORY);
    return m->status ? 0 : write(m, content, start, repeated);
}
