/* SPDX-License-Identifier: Apache-2.0
 *
 * compile.h: the steps between expressions and automata: nfa.c writes a rule's content out as an
 * automaton with empty edges, dfa.c makes it deterministic and adds it to the grammar, compile.c
 * goes through the rules. */
#ifndef SAMPLE_GRAMMAR_COMPILE_H
#define SAMPLE_GRAMMAR_COMPILE_H

#include "sample/grammar/automaton.h"
#include "sample/grammar/facts.h"

enum {
    COMPILE_MAX_STEPS = 1 << 21, /* of writing rules out */
    COMPILE_MAX_NODES = 1 << 19,
    COMPILE_MAX_EDGES = 1 << 20, /* of one kind */
    COMPILE_MAX_WORK = 1 << 26,  /* of making automata deterministic: entries of sets */
};

enum nfa_kind { NFA_EMPTY, NFA_RANGE, NFA_SYMBOL };
struct nfa_edge {
    uint32_t to, next; /* next edge of the same node; 0: none */
    uint32_t symbol;
    uint8_t kind, low, high;
};
/* What is not a byte: a call or a token. Equal ones are one symbol. */
struct symbol {
    bool is_token, negated;
    int32_t id;
    uint32_t rule, min, max; /* as in grammar_call */
    uint32_t next;           /* in its hash chain */
};
/* A rule of the automaton that was asked for: the content of a rule, or of a repetition. */
struct wanted { grammar_expr content; bool repeated; };

struct maker {
    const struct grammar_builder *b;
    struct facts facts;
    struct grammar *g;
    struct wanted *wanted;
    uint32_t *wanted_at[2]; /* [repeated][expr]: its index + 1 */
    struct symbol *symbol;
    uint32_t *symbol_head;
    uint32_t *node; /* of the rule in work: the first edge of each */
    struct nfa_edge *edge;
    uint32_t wanted_n, wanted_cap, symbol_n, symbol_cap, node_n, node_cap, edge_n, edge_cap;
    uint32_t steps, work;
    ob_status status;
};
enum { MAKER_SYMBOL_HEADS = 4096 };

/* The rule that matches what `content` matches but the empty text. */
uint32_t maker_want(struct maker *m, grammar_expr content, bool repeated);
void maker_fail(struct maker *m, ob_status status);

/* Writes the content out from node 0; returns the node at its end. */
uint32_t nfa_make(struct maker *m, grammar_expr content, bool repeated);
/* Makes what nfa_make wrote deterministic, as the next rule of the grammar; `empty`: the start may
 * be the end. */
void dfa_make(struct maker *m, uint32_t end, bool empty);

#endif
