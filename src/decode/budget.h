/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h: a limit of the tokens a model may think. When they are spent, the tokens that end the
 * reasoning are put in as if the model had drawn them. What is put in depends on the tokens before
 * it alone. Owner thread only. */
#ifndef DECODE_BUDGET_H
#define DECODE_BUDGET_H

#include "text/chat_parse.h"
#include "text/tok.h"

struct budget;

/* `open`: the prompt has opened the reasoning. Keeps the pointers. */
ob_status budget_open(const struct tok *tok, const struct chat_thought *style, uint32_t tokens,
                      bool open, struct budget **out, ob_error *error);
void budget_close(struct budget **budget);
/* The token to put in the place of the one that was drawn: that one, or the next of the end. */
int32_t budget_take(struct budget *budget, int32_t drawn);
/* The text of the token that was taken, control tokens as text. */
void budget_add(struct budget *budget, struct str text);

#endif
