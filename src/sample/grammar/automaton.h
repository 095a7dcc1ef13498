/* SPDX-License-Identifier: Apache-2.0
 *
 * automaton.h: a compiled grammar. Each rule is a small automaton over bytes, without empty edges:
 * from a node one goes on by a byte of a range, through a call of another rule (which comes back to
 * the edge's target when it ends), by a repetition (a call whose frame counts), or by a token as a
 * whole. A rule matches no empty text (the root may), its start has no edge into it, and from
 * every node its end can be reached; edges of a node are disjoint where the rule could be made
 * deterministic, which is nearly always. No rule reaches itself before it consumed a byte. */
#ifndef SAMPLE_GRAMMAR_AUTOMATON_H
#define SAMPLE_GRAMMAR_AUTOMATON_H

#include <stdatomic.h>

#include "sample/grammar/grammar.h"

struct grammar_range_edge { uint8_t low, high; uint32_t to; };
struct grammar_token_edge { int32_t id; bool negated; uint32_t to; };
struct grammar_call {
    uint32_t rule, to;
    uint32_t min, max; /* max 0: once, and the frame counts nothing. GRAMMAR_NO_LIMIT: of no end */
    uint32_t owner;    /* the rule that calls */
};
struct grammar_node {
    uint32_t range, call, token; /* first edges of the kinds; the next node's are behind the last */
    uint32_t rule;
    bool whole; /* the rule may end here */
};
struct grammar_bytes { uint64_t word[4]; }; /* a set of bytes */
struct grammar_auto_rule {
    uint32_t start, node_n;     /* the rule's nodes: start, start + 1, ... */
    uint32_t call, call_n;      /* its nodes' calls */
    struct grammar_bytes first; /* bytes that it may begin with */
    bool first_token;           /* it may begin with a token as a whole */
};

struct grammar {
    atomic_uint refs;
    uint64_t serial; /* no other grammar has it */
    struct grammar_node *node; /* [node_n + 1] */
    struct grammar_range_edge *range;
    struct grammar_call *call;
    struct grammar_token_edge *token;
    struct grammar_auto_rule *rule; /* [0]: the root */
    uint32_t node_n, range_n, call_n, token_n, rule_n;
    uint32_t node_cap, range_cap, call_cap, token_cap, rule_cap;
};

static inline bool bytes_has(const struct grammar_bytes *set, uint8_t byte) {
    return set->word[byte / 64] >> (byte % 64) & 1;
}
static inline void bytes_add(struct grammar_bytes *set, uint8_t low, uint8_t high) {
    for (unsigned i = low; i <= high; i++) set->word[i / 64] |= 1ull << (i % 64);
}
static inline bool bytes_any(const struct grammar_bytes *set) {
    return (set->word[0] | set->word[1] | set->word[2] | set->word[3]) != 0;
}
/* Nothing goes on from a node that has no edges. */
static inline bool node_is_end(const struct grammar *g, uint32_t node) {
    const struct grammar_node *n = &g->node[node];
    return n[1].range == n->range && n[1].call == n->call && n[1].token == n->token;
}

#endif
