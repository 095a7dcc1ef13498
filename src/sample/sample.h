/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.h: face of sample/: from logits to a token. A chain is the samplers of a request in their
 * order over one candidate list; each sampler is one file and a row in samplers.def. The draw
 * depends on (seed, position) alone, so sampled text obeys the law: equal logits, history, settings
 * and position give the same token whatever ran beside. Not thread safe: one chain a request. */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include "onebit.h"

struct sample_chain;

/* OB_ERR_ARGUMENT naming the field (temperature < 0, NaN, unknown name in order, ...). */
ob_status sample_open(const ob_sampling *settings, uint32_t vocab, struct sample_chain **out,
                      ob_error *error);
void sample_close(struct sample_chain **chain);

/* logits [vocab], not modified. history: all tokens of the sequence so far, prompt included;
 * history_n is also the position of the draw. *logprob (may be NULL): natural log of the token's
 * softmax over the raw logits. Returns the id, or -1 if the logits are not finite (NaN or +inf;
 * -inf is a masked token, all -inf is not finite either). Greedy takes the lowest id on ties. */
int32_t sample_token(struct sample_chain *chain, const float *logits, const int32_t *history,
                     size_t history_n, float *logprob);

#endif
