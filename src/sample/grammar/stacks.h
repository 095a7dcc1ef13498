/* SPDX-License-Identifier: Apache-2.0
 *
 * stacks.h: stacks of calls as chains of frames, each made once: equal stacks are one number, and a
 * copy costs nothing. A frame never changes; what is no longer used goes when the owner of the
 * stacks says what is (stacks_keep), or everything above a mark (stacks_cut). */
#ifndef SAMPLE_GRAMMAR_STACKS_H
#define SAMPLE_GRAMMAR_STACKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAME_BOTTOM = UINT32_MAX,   /* `call` of frame 0: the text ends with this stack's rule */
    FRAME_BASE = UINT32_MAX - 1, /* stands for a stack that is not known (record.c) */
    FRAME_RELATIVE = 1u << 31,   /* in `count`: as many more than were counted when it was made */
    STACKS_MAX_DEPTH = 1 << 14,
};

struct frame {
    uint32_t parent, call;
    uint32_t count; /* repetitions that are complete */
    uint32_t depth;
    uint32_t next; /* in the hash chain, + 1 */
};

struct stacks {
    struct frame *frame;
    uint32_t *head;
    uint32_t n, cap, heads;
    uint32_t kept; /* frames that the last stacks_keep left */
};

bool stacks_init(struct stacks *s); /* one frame: the bottom; false: out of memory */
void stacks_free(struct stacks *s);
/* UINT32_MAX: out of memory. */
uint32_t stacks_push(struct stacks *s, uint32_t parent, uint32_t call, uint32_t count);
/* Forgets frames from number n on. */
void stacks_cut(struct stacks *s, uint32_t n);

/* Where a text stands in a grammar: a stack and a node. */
struct place { uint32_t frame, node; };
/* Forgets frames that the n places do not stand on, when there are many, and renumbers the others.
 * Without memory to do so they stay. */
void stacks_keep(struct stacks *s, struct place *place, uint32_t n);
/* `to` (not initialized) gets what the places stand on, which become places in it; false: out of
 * memory. */
bool stacks_copy(const struct stacks *s, struct place *place, uint32_t n, struct stacks *to);

#endif
