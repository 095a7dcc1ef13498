/* SPDX-License-Identifier: Apache-2.0
 * logprobs.h: log probabilities of an answer's tokens, kept as records between the engine's thread
 * and whoever words them. */
#ifndef SERVER_LOGPROBS_H
#define SERVER_LOGPROBS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

/* Appends what an event says of its token; nothing if it has none. */
void logprobs_add(struct buf *records, const ob_event *event);

/* As chats have them: {"content": [{"id", "token", "bytes", "logprob", "top_logprobs": [...]}]}.
 * `after`: of the samplers' distribution, as "prob" and "top_probs". */
json_t *logprobs_chat(const ob_engine *engine, struct str records, bool after);
/* As completions have them: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. *offset
 * counts the characters of the tokens so far. */
json_t *logprobs_completion(const ob_engine *engine, struct str records, size_t *offset);

#endif
