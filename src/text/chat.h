/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: a chat request to prompt tokens: renders the model's template over the request's
 * "messages", "tools", "documents", "add_generation_prompt" (default true), "enable_thinking",
 * "reasoning_effort" and "chat_template_kwargs" and tokenizes the result with exactly one BOS
 * whatever template and tokenizer say. "continue_final_message" ends the prompt behind the text of
 * the last message, which the model then goes on with. docs/templates.md is the user's page. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include <jansson.h>

#include "text/chat_grammar.h"
#include "text/chat_parse.h"
#include "text/tok.h"

struct chat;

/* The i-th built-in template (templates.def), in alphabetical order; false past the last. */
bool chat_builtin_at(size_t i, const char **name, const char **about);
/* *source: of the built-in of that name, else `name_or_source` itself, if it can be Jinja source:
 * it has a brace (OB_ERR_NOT_FOUND with the names there are). */
ob_status chat_source(const char *name_or_source, const char **source, ob_error *error);
/* Whether that parses. */
ob_status chat_check(const char *name_or_source, ob_error *error);

/* Parses the model's template, or `override` in its place (a name or source as for chat_source, may
 * be NULL; not kept), and finds out what it understands (content as text or as parts, tool
 * arguments as objects or as text; see chat_form.c); OB_ERR_NOT_FOUND if there is none. `model`
 * (its path, may be NULL) is what errors of the template name. Keeps pointers to tok and model.
 * Thread safe after open. */
ob_status chat_open(const struct tok *tok, const char *override, const char *model,
                    struct chat **out, ob_error *error);
void chat_close(struct chat **chat);
/* How the model writes tool calls and reasoning: found out from the template, or as set by name
 * before the chat is shared (OB_ERR_NOT_FOUND with the names there are). */
ob_status chat_set_tool_format(struct chat *chat, const char *name, ob_error *error);
const struct chat_format *chat_tool_format(const struct chat *chat);
const struct chat_thought *chat_thought_style(const struct chat *chat);
/* Of the template for requests with tools. */
struct str chat_tools_source(const struct chat *chat);
/* A grammar of answers that call the tools of `request`, behind a prompt that ends with `prompt`;
 * NULL in *out if any text is fine (chat_choice_binds). See chat_grammar.h.
 * thinks: reasoning may come first; compact and open: see struct schema_options. */
ob_status chat_calls(const struct chat *chat, const struct tok *tok, const json_t *request,
                     struct str prompt, bool thinks, bool compact, bool open,
                     struct grammar **out, ob_error *error);
/* text may be NULL; appended otherwise. ids as for tok_encode. Errors in the request name the field
 * in `where` ("messages[2].content") with OB_ERR_ARGUMENT. */
ob_status chat_prompt(const struct chat *chat, const json_t *request, ob_tokens *ids,
                      struct buf *text, ob_error *error);

#endif
