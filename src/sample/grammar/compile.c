/* SPDX-License-Identifier: Apache-2.0
 *
 * compile.c: from a builder's expressions to a grammar: facts, then rule by rule what the root
 * reaches, then what each rule may begin with. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/array.h"
#include "sample/grammar/compile.h"

static atomic_uint_least64_t serials;

void maker_fail(struct maker *m, ob_status status) {
    if (!m->status) m->status = status;
}

uint32_t maker_want(struct maker *m, grammar_expr content, bool repeated) {
    uint32_t *at = &m->wanted_at[repeated][content];
    if (*at) return *at - 1;
    if (!ARRAY_ROOM(m->wanted, m->wanted_cap, (size_t)m->wanted_n + 1)) {
        maker_fail(m, OB_ERR_MEMORY);
        return 0;
    }
    m->wanted[m->wanted_n++] = (struct wanted){content, repeated};
    *at = m->wanted_n;
    return m->wanted_n - 1;
}

/* ---- what rules begin with ------------------------------------------------------------------- */

/* The bytes of a node's own edges, and what the rules begin with that it calls. */
static void add_first(const struct grammar *g, uint32_t node, struct grammar_auto_rule *rule) {
    const struct grammar_node *n = &g->node[node];
    for (uint32_t i = n->range; i < n[1].range; i++)
        bytes_add(&rule->first, g->range[i].low, g->range[i].high);
    if (n[1].token > n->token) rule->first_token = true;
    for (uint32_t i = n->call; i < n[1].call; i++) {
        const struct grammar_auto_rule *to = &g->rule[g->call[i].rule];
        for (int k = 0; k < 4; k++) rule->first.word[k] |= to->first.word[k];
        rule->first_token |= to->first_token;
    }
}

/* Rules called at a rule's start come first; no circles, for nothing is left recursive. */
static void find_first(struct maker *m) {
    struct grammar *g = m->g;
    struct visit { uint32_t rule, next; } *stack = calloc(g->rule_n, sizeof *stack);
    bool *seen = calloc(g->rule_n, sizeof *seen);
    if (!stack || !seen) maker_fail(m, OB_ERR_MEMORY);
    for (uint32_t r = 0; r < g->rule_n && !m->status; r++) {
        uint32_t n = 0;
        if (seen[r]) continue;
        seen[r] = true;
        stack[n++] = (struct visit){r, 0};
        while (n) {
            struct visit *v = &stack[n - 1];
            struct grammar_auto_rule *rule = &g->rule[v->rule];
            const struct grammar_node *start = &g->node[rule->start];
            if (start->call + v->next == start[1].call) {
                add_first(g, rule->start, rule);
                n--;
                continue;
            }
            uint32_t to = g->call[start->call + v->next++].rule;
            if (seen[to]) continue;
            seen[to] = true;
            stack[n++] = (struct visit){to, 0};
        }
    }
    free(stack);
    free(seen);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void make_rules(struct maker *m, grammar_expr top) {
    /* The root is a rule of its own: unlike one that is called it may match the empty text. */
    if (!ARRAY_ROOM(m->wanted, m->wanted_cap, 1)) maker_fail(m, OB_ERR_MEMORY);
    if (m->status) return;
    m->wanted[m->wanted_n++] = (struct wanted){top, false};
    for (uint32_t i = 0; i < m->wanted_n && !m->status; i++) {
        uint32_t end = nfa_make(m, m->wanted[i].content, m->wanted[i].repeated);
        bool empty = i == 0 && m->facts.fact[top] & FACT_NULLABLE;
        if (!m->status) dfa_make(m, end, empty);
    }
    if (!m->status) find_first(m);
}

static ob_status explain(const struct maker *m, ob_error *error) {
    if (m->status == OB_ERR_LIMIT)
        return error_set(error, OB_ERR_LIMIT, "the grammar is too large: its automata need more "
                         "than %d nodes, %d edges or %d steps to make", (int)COMPILE_MAX_NODES,
                         (int)COMPILE_MAX_EDGES, (int)COMPILE_MAX_STEPS);
    return m->status ? error_memory(error, "a grammar", m->g ? m->g->node_n : 0) : OB_OK;
}

ob_status grammar_finish(struct grammar_builder *b, grammar_rule root, struct grammar **out,
                         ob_error *error) {
    *out = NULL;
    if (b->status) return error_set(error, b->status, "%s", b->why);
    struct maker m = {.b = b};
    ob_status status = facts_open(b, root, &m.facts, error);
    if (status) return status;
    m.g = calloc(1, sizeof *m.g);
    m.wanted_at[0] = calloc(b->expr_n, sizeof *m.wanted_at[0]);
    m.wanted_at[1] = calloc(b->expr_n, sizeof *m.wanted_at[1]);
    m.symbol_head = calloc(MAKER_SYMBOL_HEADS, sizeof *m.symbol_head);
    if (!m.g || !m.wanted_at[0] || !m.wanted_at[1] || !m.symbol_head)
        maker_fail(&m, OB_ERR_MEMORY);
    if (m.g) {
        atomic_init(&m.g->refs, 1);
        m.g->serial = atomic_fetch_add(&serials, 1) + 1;
    }
    if (!m.status) make_rules(&m, b->rule[root].expr);
    status = explain(&m, error);
    if (!status) *out = m.g;
    else if (m.g) grammar_drop(&m.g);
    facts_close(&m.facts);
    free(m.wanted_at[0]);
    free(m.wanted_at[1]);
    free(m.symbol_head);
    free(m.wanted);
    free(m.symbol);
    free(m.node);
    free(m.edge);
    return status;
}

struct grammar *grammar_keep(struct grammar *grammar) {
    atomic_fetch_add(&grammar->refs, 1);
    return grammar;
}

void grammar_drop(struct grammar **grammar) {
    struct grammar *g = *grammar;
    *grammar = NULL;
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1) return;
    free(g->node);
    free(g->range);
    free(g->call);
    free(g->token);
    free(g->rule);
    free(g);
}
