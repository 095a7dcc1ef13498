/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.h: what the compiler must know about expressions before it makes automata of them: which
 * are reached, match the empty text, match any text, are recursive, and how large they come out. */
#ifndef SAMPLE_GRAMMAR_FACTS_H
#define SAMPLE_GRAMMAR_FACTS_H

#include "sample/grammar/expr.h"

enum {
    FACT_REACHED = 1,
    FACT_NULLABLE = 2,  /* matches "" */
    FACT_FRUITFUL = 4,  /* matches some text */
    FACT_SOLID = 8,     /* matches some text that is not empty */
    FACT_RECURSIVE = 16 /* reaches itself */
};

/* What is made of an expression, alone or inside of something repeated; saturating. */
struct fact_size {
    uint32_t steps; /* edges that consume something */
    bool calls;     /* one of them is a call of a rule */
    bool counts;    /* or a counted repetition */
    bool endless;   /* it matches texts of any length without calls */
    uint8_t height; /* of rules that are inlined one in another */
};

struct facts {
    uint8_t *fact;              /* [expr_n] */
    struct fact_size (*size)[2]; /* [expr_n]; [1]: inside of something repeated */
    grammar_expr *order;        /* reached expressions, parts before what holds them, except along
                                 * recursion */
    uint32_t order_n;
};

/* OB_ERR_ARGUMENT: a reached rule is not defined, calls itself before it has consumed anything, or
 * the root matches no text. */
ob_status facts_open(const struct grammar_builder *b, grammar_rule root, struct facts *out,
                     ob_error *error);
void facts_close(struct facts *f);

/* Whether a use of a rule becomes the rule's content (else a call), in a place that is `repeated`
 * or not. Small ones do; of others those that match short texts, where each character of a long
 * text would be a call of its own. What stays a call is shared by all its uses. */
bool facts_inline(const struct grammar_builder *b, const struct facts *f, grammar_expr use,
                  bool repeated);
/* Whether a repetition is written out in copies (else counted, or a loop). */
bool facts_expand(const struct grammar_builder *b, const struct facts *f, grammar_expr repeat);
/* min of a repetition of non-empty texts that matches the same. */
uint32_t facts_min(const struct grammar_builder *b, const struct facts *f, grammar_expr repeat);

#endif
