/* SPDX-License-Identifier: Apache-2.0
 * vocab.h: a tokenizer as the samplers see it. */
#ifndef DECODE_VOCAB_H
#define DECODE_VOCAB_H

#include "sample/sample.h"
#include "text/tok.h"

/* `size`: of the rows of logits, which may be longer than the tokenizer's list. */
struct sample_vocab vocab_of(const struct tok *tok, uint32_t size, uint32_t context);

#endif
