/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.c: a rule as words: its nodes and edges, then those of the rules it calls, in the order in
 * which it calls them. Numbers are relative, so that rules which mean the same by the same automata
 * come out equal in every grammar. */
#include <stdlib.h>

#include "sample/grammar/vocab.h"

struct writer {
    const struct grammar *g;
    uint32_t *word, n;
    uint32_t *rule, rule_n; /* those met, in order */
    bool full;
};

static void put(struct writer *w, uint32_t word) {
    if (w->n < VOCAB_SHAPE_WORDS) w->word[w->n++] = word;
    else w->full = true;
}

static uint32_t number_of(struct writer *w, uint32_t rule) {
    for (uint32_t i = 0; i < w->rule_n; i++)
        if (w->rule[i] == rule) return i;
    if (w->rule_n == VOCAB_SHAPE_WORDS) {
        w->full = true;
        return 0;
    }
    w->rule[w->rule_n] = rule;
    return w->rule_n++;
}

static void put_rule(struct writer *w, uint32_t index) {
    const struct grammar *g = w->g;
    const struct grammar_auto_rule *rule = &g->rule[index];
    put(w, rule->node_n);
    for (uint32_t i = 0; i < rule->node_n && !w->full; i++) {
        const struct grammar_node *n = &g->node[rule->start + i];
        put(w, (n[1].range - n->range) << 1 | n->whole);
        put(w, n[1].call - n->call);
        put(w, n[1].token - n->token);
        for (uint32_t k = n->range; k < n[1].range && !w->full; k++) {
            put(w, (uint32_t)g->range[k].low << 8 | g->range[k].high);
            put(w, g->range[k].to - rule->start);
        }
        for (uint32_t k = n->call; k < n[1].call && !w->full; k++) {
            put(w, number_of(w, g->call[k].rule));
            put(w, g->call[k].to - rule->start);
            put(w, g->call[k].min);
            put(w, g->call[k].max);
        }
        for (uint32_t k = n->token; k < n[1].token && !w->full; k++) {
            put(w, (uint32_t)g->token[k].id);
            put(w, g->token[k].negated);
            put(w, g->token[k].to - rule->start);
        }
    }
}

bool shape_write(const struct grammar *g, uint32_t rule, uint32_t **word, uint32_t *n) {
    struct writer w = {.g = g, .word = malloc(VOCAB_SHAPE_WORDS * sizeof *w.word),
                       .rule = malloc(VOCAB_SHAPE_WORDS * sizeof *w.rule)};
    w.full = !w.word || !w.rule;
    if (!w.full) w.rule[w.rule_n++] = rule;
    for (uint32_t i = 0; i < w.rule_n && !w.full; i++) put_rule(&w, w.rule[i]);
    free(w.rule);
    if (w.full) {
        free(w.word);
        w.word = NULL;
    }
    *word = w.word;
    *n = w.n;
    return w.word != NULL;
}
