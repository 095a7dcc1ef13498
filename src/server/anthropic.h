/* SPDX-License-Identifier: Apache-2.0
 * anthropic.h: requests of Anthropic's messages API in the words of chat completions, and its
 * errors. */
#ifndef SERVER_ANTHROPIC_H
#define SERVER_ANTHROPIC_H

#include "server/reply.h"
#include "server/wording.h"

/* A request for an answer, which must have max_tokens. */
ob_status anthropic_translate(struct server *server, const json_t *request, json_t **out,
                              ob_error *error);
/* One whose tokens are counted. */
ob_status anthropic_conversation(const json_t *request, json_t **out, ob_error *error);
extern const char *const anthropic_fields[][2];
reply_shape anthropic_shape;

#endif
