/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: a chat request to prompt tokens: renders the model's template over the request's
 * "messages", "tools", "chat_template_kwargs", "add_generation_prompt" (default true) and tokenizes
 * the result with exactly one BOS whatever template and tokenizer say. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include <jansson.h>

#include "text/tok.h"

struct chat;

/* Parses the model's template and finds out what it understands (content as text or as parts, tool
 * arguments as objects or as text; see chat.c); OB_ERR_NOT_FOUND if it has none and `override`
 * (Jinja source, may be NULL) is absent. `model` (its path, may be NULL) is what errors of the
 * template name. Keeps pointers to tok, override and model. Thread safe after open. */
ob_status chat_open(const struct tok *tok, const char *override, const char *model,
                    struct chat **out, ob_error *error);
void chat_close(struct chat **chat);
/* text may be NULL; appended otherwise. ids as for tok_encode. Errors in the request name the field
 * in `where` ("messages[2].content") with OB_ERR_ARGUMENT. */
ob_status chat_prompt(const struct chat *chat, const json_t *request, ob_tokens *ids,
                      struct buf *text, ob_error *error);

#endif
