/* SPDX-License-Identifier: Apache-2.0
 * stacks.c: hash-consed frames; see stacks.h. A parent always has a smaller number. */
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/array.h"
#include "sample/grammar/stacks.h"

enum { HEADS_MIN = 64, KEEP_FROM = 512 };

static uint32_t *head_of(const struct stacks *s, uint32_t parent, uint32_t call, uint32_t count) {
    uint64_t h = ((uint64_t)parent << 32 | call) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32) ^ count) * 0xbf58476d1ce4e5b9u;
    return &s->head[(h >> 32) & (s->heads - 1)];
}

bool stacks_init(struct stacks *s) {
    *s = (struct stacks){.heads = HEADS_MIN, .head = calloc(HEADS_MIN, sizeof *s->head)};
    if (s->head && ARRAY_ROOM(s->frame, s->cap, 1)) {
        s->frame[0] = (struct frame){.call = FRAME_BOTTOM};
        s->n = 1;
        return true;
    }
    stacks_free(s);
    return false;
}

void stacks_free(struct stacks *s) {
    free(s->frame);
    free(s->head);
    *s = (struct stacks){0};
}

static bool grow_heads(struct stacks *s) {
    uint32_t heads = s->heads * 2;
    uint32_t *head = calloc(heads, sizeof *head);
    if (!head) return false;
    free(s->head);
    s->head = head;
    s->heads = heads;
    for (uint32_t i = 1; i < s->n; i++) {
        struct frame *f = &s->frame[i];
        uint32_t *at = head_of(s, f->parent, f->call, f->count);
        f->next = *at;
        *at = i + 1;
    }
    return true;
}

uint32_t stacks_push(struct stacks *s, uint32_t parent, uint32_t call, uint32_t count) {
    uint32_t *head = head_of(s, parent, call, count);
    for (uint32_t i = *head; i; i = s->frame[i - 1].next) {
        const struct frame *f = &s->frame[i - 1];
        if (f->parent == parent && f->call == call && f->count == count) return i - 1;
    }
    if (!ARRAY_ROOM(s->frame, s->cap, (size_t)s->n + 1)) return UINT32_MAX;
    if (s->n >= s->heads) {
        if (!grow_heads(s)) return UINT32_MAX;
        head = head_of(s, parent, call, count);
    }
    s->frame[s->n] = (struct frame){.parent = parent, .call = call, .count = count,
                                    .depth = s->frame[parent].depth + 1, .next = *head};
    *head = s->n + 1;
    return s->n++;
}

void stacks_cut(struct stacks *s, uint32_t n) {
    /* The last frame is the first of its chain, for chains grow at their heads. */
    while (s->n > n) {
        const struct frame *f = &s->frame[--s->n];
        *head_of(s, f->parent, f->call, f->count) = f->next;
    }
}

bool stacks_copy(const struct stacks *s, struct place *place, uint32_t n, struct stacks *to) {
    uint32_t *now = calloc(s->n, sizeof *now); /* a frame's number there; first: 1 if it is used */
    bool done = now && stacks_init(to);
    for (uint32_t i = 0; done && i < n; i++) now[place[i].frame] = 1;
    for (uint32_t i = s->n; done && i-- > 1;)
        if (now[i]) now[s->frame[i].parent] = 1;
    if (done) now[0] = 0;
    for (uint32_t i = 1; done && i < s->n; i++) {
        const struct frame *f = &s->frame[i];
        if (now[i]) now[i] = stacks_push(to, now[f->parent], f->call, f->count);
        if (now[i] == UINT32_MAX) {
            stacks_free(to);
            done = false;
        }
    }
    for (uint32_t i = 0; done && i < n; i++) place[i].frame = now[place[i].frame];
    free(now);
    return done;
}

void stacks_keep(struct stacks *s, struct place *place, uint32_t n) {
    struct stacks kept;
    if (s->n < KEEP_FROM + 2 * s->kept || !stacks_copy(s, place, n, &kept)) return;
    kept.kept = kept.n;
    stacks_free(s);
    *s = kept;
}
