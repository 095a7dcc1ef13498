/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.h: face of sample/: from logits to a token. A chain is the samplers of a request in their
 * order over one candidate list; each sampler is one file and a row in samplers.def. The draw
 * depends on (seed, position) alone, so sampled text obeys the law: equal logits, history, settings
 * and position give the same token whatever ran beside. Mirostat and adaptive_p also look at what
 * they drew before, so their tokens are asked for in order, each once. Not thread safe: one chain a
 * request. */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

struct sample_chain;

/* What some samplers ask about tokens: sample/ is below text/. All thread safe. */
struct sample_vocab {
    const void *user;
    uint32_t size;
    uint32_t context; /* tokens a sequence may hold */
    int32_t end;      /* what ends an answer when no candidate does; -1: nothing */
    /* NULL in a vocabulary without texts: settings that need them are then refused. */
    ob_status (*encode)(const void *user, struct str text, ob_tokens *out, ob_error *error);
    /* Appends its bytes; those of control tokens if `special`. */
    void (*piece)(const void *user, int32_t id, bool special, struct buf *out);
    bool (*is_end)(const void *user, int32_t id); /* of generation */
};

/* OB_ERR_ARGUMENT naming the field (temperature < 0, NaN, unknown name in order, ...). Keeps
 * `vocab`, nothing of `settings`. */
ob_status sample_open(const ob_sampling *settings, const struct sample_vocab *vocab,
                      struct sample_chain **out, ob_error *error);
/* The checks of sample_open that need no vocabulary. */
ob_status sample_check(const ob_sampling *settings, ob_error *error);
void sample_close(struct sample_chain **chain);

struct sample_input {
    const float *logits;    /* [vocab], not modified */
    const uint32_t *mask;   /* bit id % 32 of word id / 32: the token may be drawn (a grammar's
                             * word, before all samplers); NULL: all may */
    const int32_t *history; /* all tokens of the sequence so far, prompt included */
    size_t history_n;       /* also the position of the draw */
};
enum {
    SAMPLE_BROKEN = -1, /* the logits are not finite: NaN, +inf, or all -inf (one is a token that
                         * is never drawn) */
    SAMPLE_NONE = -2,   /* mask and logit_bias leave no token */
};
/* The token's id, or one of the two. Greedy takes the lowest id on ties. */
int32_t sample_token(struct sample_chain *chain, const struct sample_input *input);

/* Log probabilities, after sample_token and of the same input: of the drawn token `id` (returned),
 * and of the n most likely tokens into top, best first; *top_n is how many there are. `after`: of
 * the distribution the token was drawn from, which holds the candidates that the samplers left;
 * else of the softmax over the logits as they came. Once for each token. */
float sample_logprobs(struct sample_chain *chain, const struct sample_input *input, bool after,
                      int32_t id, ob_logprob *top, size_t n, size_t *top_n);

#endif
