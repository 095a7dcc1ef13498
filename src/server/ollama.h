/* SPDX-License-Identifier: Apache-2.0
 * ollama.h: requests of Ollama's API in the words of chat completions, its errors, and what its
 * answers have in common. */
#ifndef SERVER_OLLAMA_H
#define SERVER_OLLAMA_H

#include "server/reply.h"
#include "server/wording.h"

/* What chats and texts share: options, format, think, stream (which is true if absent). */
ob_status ollama_common(const json_t *request, json_t *out, ob_error *error);
/* "messages" of a chat. */
ob_status ollama_messages(const json_t *request, json_t *out, ob_error *error);
extern const char *const ollama_fields[][2];
reply_shape ollama_shape;

/* "2026-01-31T12:00:00Z", of seconds since 1970. */
json_t *ollama_time(int64_t seconds);
/* A line of an answer: model and time, to which the route adds what was said. */
json_t *ollama_line(const struct answer *answer, bool done);
/* Adds why it ended and the figures. */
void ollama_end(const struct answer *answer, const struct said *said, json_t *line);
/* One call, with arguments as an object. */
json_t *ollama_call(json_t *name, struct str arguments);
void ollama_failed(struct answer *answer, json_t *error, struct buf *out);
/* "details" of the model. */
json_t *ollama_details(const ob_engine_info *info);
/* Whether the name is the model's, perhaps with the tag that Ollama adds. */
bool ollama_is_model(const struct server *server, const char *name);
/* Answers a request that asks for nothing but a loaded model: one whose `field` is missing or
 * empty. False: it asks for more. */
bool ollama_only_loads(struct server *server, struct http_exchange *x, const char *field);

#endif
