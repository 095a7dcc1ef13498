/* SPDX-License-Identifier: Apache-2.0
 * logprobs.h: see logprobs.c. */
#ifndef SAMPLE_LOGPROBS_H
#define SAMPLE_LOGPROBS_H

#include "sample/sampler.h"

/* The log probability of a candidate; those of the n most likely into top. Drops the others. */
float logprobs_of_list(struct sample_list *list, int32_t id, ob_logprob *top, size_t n,
                       size_t *top_n);

#endif
