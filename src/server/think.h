/* SPDX-License-Identifier: Apache-2.0
 *
 * think.h: tells a leading <think> block from the answer, over streamed text. White space around
 * the block's inside and before the answer is dropped. Text is passed on as soon as it cannot be
 * part of a tag, so any cut of the text into pieces gives the same sums. Not thread safe. */
#ifndef SERVER_THINK_H
#define SERVER_THINK_H

#include "base/buf.h"
#include "base/str.h"

enum think_state { THINK_BEFORE, THINK_INSIDE, THINK_AFTER, THINK_ANSWER };

struct think {
    enum think_state state; /* at first BEFORE, INSIDE if the prompt opened it, ANSWER: off */
    size_t matched;         /* bytes of the awaited tag that the text ends with */
    bool begun;             /* something of the block was passed on */
    struct buf space;       /* white space held back */
};

void think_add(struct think *think, struct str text, struct buf *thought, struct buf *answer);
/* The end of the text: passes on what was held back. */
void think_end(struct think *think, struct buf *thought, struct buf *answer);
void think_free(struct think *think);

/* Whether a prompt ends by opening the block. */
bool think_is_open(struct str prompt);
/* Whether a text has opened a block and not closed it: the last tag is the opening one. */
bool think_is_inside(struct str text);

#endif
