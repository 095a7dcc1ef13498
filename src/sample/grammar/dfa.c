/* SPDX-License-Identifier: Apache-2.0
 *
 * dfa.c: makes a rule's automaton deterministic (subsets of nodes, Rabin and Scott 1959) and
 * writes it into the grammar. Calls and tokens are symbols like bytes, so what is left to choose
 * while a text runs is between a byte and a call, or two calls, that begin alike. A rule whose
 * subsets grow out of proportion stays as it is, without the empty edges: then sets of one node's
 * closure are the nodes, and several edges may take the same byte. */
#include <string.h>

#include "sample/grammar/array.h"
#include "sample/grammar/compile.h"

struct subset { uint32_t first, n, next; }; /* of items; next in the hash chain, + 1 */
struct edge_to { uint32_t key, to; };       /* low << 8 | high, or a symbol */

struct subsets {
    struct maker *m;
    uint32_t end; /* the node at the rule's end */
    bool loose;   /* one node's closure each */
    struct subset *set;
    uint32_t *item, *head, *stamp, *stack;
    struct edge_to *range, *symbol; /* of the set in work */
    uint32_t *target;               /* of the edge in work */
    uint32_t set_n, set_cap, item_n, item_cap, heads, stamped, range_n, range_cap, symbol_n,
        symbol_cap, target_n, target_cap;
    uint32_t base; /* the grammar's node of set 0 */
};

#define ROOM(m, p, cap, need) (ARRAY_ROOM(p, cap, need) || (maker_fail((m), OB_ERR_MEMORY), false))

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
static int by_key(const void *a, const void *b) {
    const struct edge_to *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Appends to the items what the target nodes reach by empty edges, as far as it says anything:
 * nodes with other edges, and the end. Sorted. */
static void add_closure(struct subsets *s) {
    struct maker *m = s->m;
    uint32_t n = 0, first = s->item_n;
    s->stamped++;
    for (uint32_t i = 0; i < s->target_n; i++) {
        if (s->stamp[s->target[i]] == s->stamped) continue;
        s->stamp[s->target[i]] = s->stamped;
        s->stack[n++] = s->target[i];
    }
    while (n && !m->status) {
        uint32_t node = s->stack[--n];
        bool says = node == s->end;
        for (uint32_t e = m->node[node]; e; e = m->edge[e].next) {
            const struct nfa_edge *edge = &m->edge[e];
            if (++m->work > COMPILE_MAX_WORK) maker_fail(m, OB_ERR_LIMIT);
            if (edge->kind != NFA_EMPTY) says = true;
            else if (s->stamp[edge->to] != s->stamped) {
                s->stamp[edge->to] = s->stamped;
                s->stack[n++] = edge->to;
            }
        }
        if (!says) continue;
        if (!ROOM(m, s->item, s->item_cap, (size_t)s->item_n + 1)) return;
        s->item[s->item_n++] = node;
    }
    if (s->item_n > first) qsort(s->item + first, s->item_n - first, sizeof *s->item, by_number);
}

/* The set of the target nodes, found or made. */
static uint32_t intern(struct subsets *s) {
    struct maker *m = s->m;
    uint32_t first = s->item_n;
    add_closure(s);
    if (m->status) return 0;
    uint32_t n = s->item_n - first;
    uint64_t hash = n;
    for (uint32_t i = first; i < s->item_n; i++)
        hash = (hash ^ s->item[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    uint32_t *head = &s->head[hash % s->heads];
    for (uint32_t i = *head; i; i = s->set[i - 1].next) {
        const struct subset *o = &s->set[i - 1];
        if (o->n != n || memcmp(s->item + o->first, s->item + first, n * sizeof *s->item) != 0)
            continue;
        s->item_n = first;
        return i - 1;
    }
    if (!ROOM(m, s->set, s->set_cap, (size_t)s->set_n + 1)) return 0;
    s->set[s->set_n] = (struct subset){first, n, *head};
    *head = ++s->set_n;
    return s->set_n - 1;
}

static uint32_t intern_one(struct subsets *s, uint32_t to) {
    s->target[0] = to;
    s->target_n = 1;
    return intern(s);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void gather(struct subsets *s, const struct subset set) {
    struct maker *m = s->m;
    s->range_n = s->symbol_n = 0;
    for (uint32_t i = 0; i < set.n; i++) {
        for (uint32_t e = m->node[s->item[set.first + i]]; e; e = m->edge[e].next) {
            const struct nfa_edge *edge = &m->edge[e];
            if (edge->kind == NFA_EMPTY) continue;
            if (++m->work > COMPILE_MAX_WORK) maker_fail(m, OB_ERR_LIMIT);
            if (m->status || !ROOM(m, s->range, s->range_cap, (size_t)s->range_n + 1) ||
                !ROOM(m, s->symbol, s->symbol_cap, (size_t)s->symbol_n + 1))
                return;
            if (edge->kind == NFA_RANGE)
                s->range[s->range_n++] =
                    (struct edge_to){(uint32_t)edge->low << 8 | edge->high, edge->to};
            else s->symbol[s->symbol_n++] = (struct edge_to){edge->symbol, edge->to};
        }
    }
    if (s->range_n) qsort(s->range, s->range_n, sizeof *s->range, by_key);
    if (s->symbol_n) qsort(s->symbol, s->symbol_n, sizeof *s->symbol, by_key);
    (void)ROOM(m, s->target, s->target_cap, (size_t)s->range_n + s->symbol_n + 1);
}

static void emit_range(struct subsets *s, uint32_t low, uint32_t high, uint32_t set, bool merge) {
    struct grammar *g = s->m->g;
    uint32_t to = s->base + set, own = g->node[g->node_n].range;
    struct grammar_range_edge *last = g->range_n > own ? &g->range[g->range_n - 1] : NULL;
    if (s->m->status) return;
    if (merge && last && last->to == to && (uint32_t)last->high + 1 == low) {
        last->high = (uint8_t)high;
        return;
    }
    if (g->range_n >= COMPILE_MAX_EDGES) maker_fail(s->m, OB_ERR_LIMIT);
    else if (ROOM(s->m, g->range, g->range_cap, (size_t)g->range_n + 1))
        g->range[g->range_n++] = (struct grammar_range_edge){(uint8_t)low, (uint8_t)high, to};
}

static void emit_loose_ranges(struct subsets *s) {
    for (uint32_t i = 0; i < s->range_n && !s->m->status; i++) {
        struct edge_to e = s->range[i];
        if (i && s->range[i - 1].key == e.key && s->range[i - 1].to == e.to) continue;
        emit_range(s, e.key >> 8, e.key & 0xFF, intern_one(s, e.to), false);
    }
}

/* Bytes between two neighbouring ends of ranges go to the same set: all that ranges over them
 * lead to. The ranges are sorted by their first byte. */
static void emit_ranges(struct subsets *s) {
    bool cut[257] = {false};
    uint32_t begun = 0; /* ranges that begin at or before `low` */
    for (uint32_t i = 0; i < s->range_n; i++) {
        cut[s->range[i].key >> 8] = true;
        cut[(s->range[i].key & 0xFF) + 1] = true;
    }
    uint32_t *live = malloc((s->range_n + (size_t)1) * sizeof *live), live_n = 0;
    if (!live) maker_fail(s->m, OB_ERR_MEMORY);
    for (uint32_t low = 0; low < 256 && !s->m->status;) {
        uint32_t high = low, kept = 0;
        while (high < 255 && !cut[high + 1]) high++;
        while (begun < s->range_n && s->range[begun].key >> 8 <= low) live[live_n++] = begun++;
        for (uint32_t i = 0; i < live_n; i++)
            if ((s->range[live[i]].key & 0xFF) >= low) live[kept++] = live[i];
        live_n = kept;
        s->m->work += live_n;
        s->target_n = 0;
        for (uint32_t i = 0; i < live_n; i++) s->target[s->target_n++] = s->range[live[i]].to;
        if (live_n) emit_range(s, low, high, intern(s), true);
        low = high + 1;
    }
    free(live);
}

static void emit_symbol(struct subsets *s, uint32_t symbol, uint32_t set) {
    struct maker *m = s->m;
    struct grammar *g = m->g;
    const struct symbol *y = &m->symbol[symbol];
    if (m->status) return;
    if (g->call_n >= COMPILE_MAX_EDGES || g->token_n >= COMPILE_MAX_EDGES) {
        maker_fail(m, OB_ERR_LIMIT);
    } else if (y->is_token) {
        if (ROOM(m, g->token, g->token_cap, (size_t)g->token_n + 1))
            g->token[g->token_n++] =
                (struct grammar_token_edge){y->id, y->negated, s->base + set};
    } else if (ROOM(m, g->call, g->call_cap, (size_t)g->call_n + 1)) {
        g->call[g->call_n++] =
            (struct grammar_call){y->rule, s->base + set, y->min, y->max, g->rule_n};
    }
}

static void emit_symbols(struct subsets *s) {
    for (uint32_t i = 0; i < s->symbol_n && !s->m->status;) {
        uint32_t key = s->symbol[i].key;
        if (s->loose) {
            emit_symbol(s, key, intern_one(s, s->symbol[i++].to));
            continue;
        }
        s->target_n = 0;
        while (i < s->symbol_n && s->symbol[i].key == key)
            s->target[s->target_n++] = s->symbol[i++].to;
        emit_symbol(s, key, intern(s));
    }
}

static bool has_end(const struct subsets *s, const struct subset *set) {
    for (uint32_t i = 0; i < set->n; i++)
        if (s->item[set->first + i] == s->end) return true;
    return false;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void emit_node(struct subsets *s, uint32_t index, bool empty) {
    struct maker *m = s->m;
    struct grammar *g = m->g;
    if (g->node_n >= COMPILE_MAX_NODES) maker_fail(m, OB_ERR_LIMIT);
    if (m->status || !ROOM(m, g->node, g->node_cap, (size_t)g->node_n + 2)) return;
    g->node[g->node_n] = (struct grammar_node){
        .range = g->range_n, .call = g->call_n, .token = g->token_n, .rule = g->rule_n,
        .whole = has_end(s, &s->set[index]) && (index || empty)};
    gather(s, s->set[index]);
    if (s->loose) emit_loose_ranges(s);
    else emit_ranges(s);
    emit_symbols(s);
    g->node_n++;
}

/* false: given up, there are too many sets. */
static bool make_all(struct subsets *s, bool empty) {
    struct maker *m = s->m;
    uint32_t most = m->node_n > COMPILE_MAX_NODES / 4 ? COMPILE_MAX_NODES : m->node_n * 4 + 256;
    uint32_t work = m->work;
    s->base = m->g->node_n;
    s->set_n = s->item_n = 0;
    memset(s->head, 0, s->heads * sizeof *s->head);
    /* The start is found by no one: no edge may lead into it. */
    s->target[0] = 0;
    s->target_n = 1;
    add_closure(s);
    if (m->status || !ROOM(m, s->set, s->set_cap, 1)) return true;
    s->set[s->set_n++] = (struct subset){0, s->item_n, 0};
    for (uint32_t i = 0; i < s->set_n && !m->status; i++) {
        emit_node(s, i, empty);
        if (!s->loose && (s->set_n > most || m->work - work > COMPILE_MAX_WORK / 8)) return false;
    }
    return true;
}

void dfa_make(struct maker *m, uint32_t end, bool empty) {
    struct grammar *g = m->g;
    uint32_t heads = m->node_n < 64 ? 64 : m->node_n, range_n = g->range_n, call_n = g->call_n,
             token_n = g->token_n, node_n = g->node_n;
    struct subsets s = {.m = m, .end = end, .heads = heads,
                        .head = calloc(heads, sizeof *s.head),
                        .stamp = calloc(m->node_n + (size_t)1, sizeof *s.stamp),
                        .stack = calloc(m->node_n + (size_t)1, sizeof *s.stack)};
    if (!s.head || !s.stamp || !s.stack) maker_fail(m, OB_ERR_MEMORY);
    if (!m->status && ROOM(m, s.target, s.target_cap, 16) && !make_all(&s, empty)) {
        g->range_n = range_n, g->call_n = call_n, g->token_n = token_n, g->node_n = node_n;
        s.loose = true;
        make_all(&s, empty);
    }
    if (!m->status && ROOM(m, g->rule, g->rule_cap, (size_t)g->rule_n + 1)) {
        g->rule[g->rule_n++] = (struct grammar_auto_rule){
            .start = node_n, .node_n = g->node_n - node_n, .call = call_n,
            .call_n = g->call_n - call_n};
        g->node[g->node_n] = (struct grammar_node){
            .range = g->range_n, .call = g->call_n, .token = g->token_n};
    }
    free(s.set);
    free(s.item);
    free(s.head);
    free(s.stamp);
    free(s.stack);
    free(s.range);
    free(s.symbol);
    free(s.target);
}
