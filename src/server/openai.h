/* SPDX-License-Identifier: Apache-2.0
 * openai.h: what OpenAI's wordings have in common. */
#ifndef SERVER_OPENAI_H
#define SERVER_OPENAI_H

#include "server/wording.h"

json_t *timings_json(const ob_timings *timings);
json_t *usage_json(const ob_timings *timings);
/* A whole answer, or a chunk of one; takes the entries of "choices" over. */
json_t *openai_object(const struct answer *answer, const char *object, json_t *choices);
/* The same with usage and timings. */
json_t *openai_whole(const struct answer *answer, const char *object, json_t *choices);
/* A chunk with one choice, which is taken over; `logprobs` too, unless it is NULL. */
void openai_chunk(const struct answer *answer, const char *object, json_t *choice,
                  json_t *logprobs, struct buf *out);
/* The chunk with usage if it is wanted, and the end. `last` is the object of chunks. */
void openai_last(const struct answer *answer, const char *object, struct buf *out);
/* The ending chunk of a choice: of the last one with timings, and usage unless a chunk of its own
 * has it. */
void openai_ending(const struct answer *answer, const char *object, json_t *choice,
                   json_t *logprobs, struct buf *out);
void openai_failed(struct answer *answer, json_t *error, struct buf *out);

#endif
