/* SPDX-License-Identifier: Apache-2.0
 * chat.h: a conversation, and the interactive chat of `1bit run`. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "cli/generate.h"

/* What was said, in the form that the model takes it: messages for a chat template, else the text
 * so far, which the model continues. */
struct conversation {
    bool plain;       /* --raw, or the model has no chat template */
    json_t *messages; /* without the system message */
    struct buf text;
};

/* Whether the options can be of a conversation, before there is an engine. */
ob_status conversation_check(const struct options *options, ob_error *error);
ob_status conversation_open(const ob_engine *engine, const struct options *options,
                            struct conversation *out, ob_error *error);
void conversation_close(struct conversation *conversation);
void conversation_reset(struct conversation *conversation);
/* Adds what the user ("user") or the model ("assistant") said. */
ob_status conversation_add(struct conversation *conversation, const char *role, struct str text,
                           ob_error *error);
/* Adds an answer: its calls and its reasoning too. */
ob_status conversation_add_answer(struct conversation *conversation, const struct answer *answer,
                                  ob_error *error);
/* Takes back the last thing said. */
void conversation_drop(struct conversation *conversation, size_t text_n);
/* The prompt for the model's next turn. */
ob_status conversation_prompt(const ob_engine *engine, const struct conversation *conversation,
                              const struct options *options, struct prompt *out,
                              ob_error *error);

/* Reads lines from the terminal until /quit or the end of input; returns the exit code. */
int chat_interactive(ob_engine *engine, const struct options *options);

#endif
