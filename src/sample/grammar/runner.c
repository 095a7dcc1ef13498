/* SPDX-License-Identifier: Apache-2.0
 *
 * runner.c: sets of places and how they go on; see runner.h. */
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/array.h"
#include "sample/grammar/build.h"
#include "sample/grammar/runner.h"

enum { SMALL = 12 /* places of a set that is searched one by one */ };

static void fail(struct runner *r, ob_status status, const char *why) {
    if (!r->status) r->status = status, r->why = why;
}

bool runner_init(struct runner *r, const struct grammar *g) {
    *r = (struct runner){.g = g, .steps = RUNNER_MAX_STEPS};
    return stacks_init(&r->stacks);
}

void places_free(struct places *s) {
    free(s->p);
    free(s->slot);
    *s = (struct places){0};
}

void runner_free(struct runner *r) {
    stacks_free(&r->stacks);
    places_free(&r->work);
    places_free(&r->left);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static uint64_t *slot_of(const struct places *s, struct place p) {
    uint64_t h = ((uint64_t)p.frame << 32 | p.node) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(h >> 32) & (s->slots - 1);
    while (s->slot[at] >> 32 == s->generation) {
        const struct place *o = &s->p[(uint32_t)s->slot[at]];
        if (o->frame == p.frame && o->node == p.node) break;
        at = (at + 1) & (s->slots - 1);
    }
    return &s->slot[at];
}

/* A table that holds twice the places there may be, filled with those there are. */
static bool index_places(struct places *s) {
    if (!s->slot) {
        s->slots = 4 * RUNNER_MAX_PLACES;
        s->slot = calloc(s->slots, sizeof *s->slot);
        if (!s->slot) return false;
    }
    if (++s->generation == 0) { /* once in 4 billion sets */
        memset(s->slot, 0, s->slots * sizeof *s->slot);
        s->generation = 1;
    }
    for (uint32_t i = 0; i < s->n; i++) *slot_of(s, s->p[i]) = (uint64_t)s->generation << 32 | i;
    return true;
}

void places_add(struct runner *r, struct places *set, uint32_t frame, uint32_t node) {
    struct place p = {frame, node};
    if (r->status) return;
    if (r->steps-- == 0) {
        r->steps = 0;
        fail(r, OB_ERR_LIMIT, "the grammar is too ambiguous here: too many ways to go on");
        return;
    }
    if (set->n < SMALL) {
        for (uint32_t i = 0; i < set->n; i++)
            if (set->p[i].frame == frame && set->p[i].node == node) return;
    } else {
        if (set->n == SMALL && !index_places(set)) {
            fail(r, OB_ERR_MEMORY, "out of memory");
            return;
        }
        uint64_t *slot = slot_of(set, p);
        if (*slot >> 32 == set->generation) return;
        if (set->n >= RUNNER_MAX_PLACES) {
            fail(r, OB_ERR_LIMIT, "the grammar is too ambiguous: the text can be read in more "
                                  "than 4096 ways");
            return;
        }
        *slot = (uint64_t)set->generation << 32 | set->n;
    }
    if (!ARRAY_ROOM(set->p, set->cap, (size_t)set->n + 1)) {
        fail(r, OB_ERR_MEMORY, "out of memory");
        return;
    }
    set->p[set->n++] = p;
}

static int by_place(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->frame != y->frame) return x->frame < y->frame ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}
void places_sort(struct places *s) {
    if (s->n > 1) qsort(s->p, s->n, sizeof *s->p, by_place);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t push(struct runner *r, uint32_t parent, uint32_t call, uint32_t count) {
    uint32_t frame = stacks_push(&r->stacks, parent, call, count);
    if (frame == UINT32_MAX) fail(r, OB_ERR_MEMORY, "out of memory");
    else if (r->stacks.frame[frame].depth > STACKS_MAX_DEPTH)
        fail(r, OB_ERR_LIMIT, "the text is nested more than 16384 deep");
    return r->status ? UINT32_MAX : frame;
}

static bool counts(const struct runner *r, const struct frame *f) {
    return f->call < FRAME_BASE && r->g->call[f->call].max;
}

uint32_t runner_enter(struct runner *r, uint32_t frame, uint32_t call) {
    const struct grammar_call *c = &r->g->call[call];
    /* Behind a last call nothing is left to do in this frame: lists that recurse at their end need
     * no deeper stack. A frame that counts must know when its own rule ends. */
    if (!c->max && r->g->node[c->to].whole && node_is_end(r->g, c->to) &&
        !counts(r, &r->stacks.frame[frame]))
        return frame;
    return push(r, frame, call, 0);
}

/* One more repetition is complete: the next one, or what comes behind them all. */
static void leave_repeat(struct runner *r, const struct frame f) {
    const struct grammar_call *c = &r->g->call[f.call];
    if (f.count & FRAME_RELATIVE) { /* how many are allowed is for who knows the rest to say */
        uint32_t count = (f.count & ~FRAME_RELATIVE) + 1;
        uint32_t again = push(r, f.parent, f.call, FRAME_RELATIVE | count);
        if (!r->status) places_add(r, &r->work, again, r->g->rule[c->rule].start);
        uint32_t base = push(r, 0, FRAME_BASE, count);
        if (!r->status) places_add(r, &r->work, base, c->to);
        return;
    }
    uint32_t count = f.count + 1;
    if (c->max == GRAMMAR_NO_LIMIT && count > c->min) count = c->min;
    if (count < c->max) {
        uint32_t again = push(r, f.parent, f.call, count);
        if (!r->status) places_add(r, &r->work, again, r->g->rule[c->rule].start);
    }
    if (count >= c->min) places_add(r, &r->work, f.parent, c->to);
}

/* The rule of a place may end there. */
static void leave(struct runner *r, uint32_t frame) {
    const struct frame f = r->stacks.frame[frame];
    if (f.call == FRAME_BOTTOM) r->bottom = true;
    else if (f.call == FRAME_BASE) places_add(r, &r->left, frame, 0);
    else if (r->g->call[f.call].max) leave_repeat(r, f);
    else places_add(r, &r->work, f.parent, r->g->call[f.call].to);
}

static void begin(struct runner *r, const struct place *place, uint32_t n) {
    r->work.n = r->left.n = 0;
    r->bottom = false;
    for (uint32_t i = 0; i < n; i++) places_add(r, &r->work, place[i].frame, place[i].node);
}

void runner_beside(struct runner *r, const struct place *place, uint32_t n) {
    begin(r, place, n);
    for (uint32_t i = 0; i < r->work.n && !r->status; i++)
        if (r->g->node[r->work.p[i].node].whole) leave(r, r->work.p[i].frame);
}

static void enter_all(struct runner *r, struct place p, uint8_t byte, bool token) {
    const struct grammar *g = r->g;
    const struct grammar_node *node = &g->node[p.node];
    for (uint32_t i = node->call; i < node[1].call; i++) {
        const struct grammar_auto_rule *rule = &g->rule[g->call[i].rule];
        if (token ? !rule->first_token : !bytes_has(&rule->first, byte)) continue;
        uint32_t frame = runner_enter(r, p.frame, i);
        if (r->status) return;
        places_add(r, &r->work, frame, rule->start);
    }
}

void runner_step(struct runner *r, const struct place *place, uint32_t n, uint8_t byte,
                 struct places *out) {
    const struct grammar *g = r->g;
    out->n = 0;
    begin(r, place, n);
    for (uint32_t i = 0; i < r->work.n && !r->status; i++) {
        struct place p = r->work.p[i];
        const struct grammar_node *node = &g->node[p.node];
        for (uint32_t k = node->range; k < node[1].range && g->range[k].low <= byte; k++)
            if (byte <= g->range[k].high) places_add(r, out, p.frame, g->range[k].to);
        if (node[1].call > node->call) enter_all(r, p, byte, false);
        if (node->whole && !r->stays) leave(r, p.frame);
    }
}

static void named(struct runner *r, const struct place *place, uint32_t n, bool leaves) {
    const struct grammar *g = r->g;
    begin(r, place, n);
    for (uint32_t i = 0; i < r->work.n && !r->status; i++) {
        struct place p = r->work.p[i];
        const struct grammar_node *node = &g->node[p.node];
        if (node[1].call > node->call) enter_all(r, p, 0, true);
        if (node->whole && leaves) leave(r, p.frame);
    }
}

void runner_named(struct runner *r, const struct place *place, uint32_t n) {
    named(r, place, n, false);
}

void runner_step_token(struct runner *r, const struct place *place, uint32_t n, int32_t id,
                       struct places *out) {
    const struct grammar *g = r->g;
    out->n = 0;
    named(r, place, n, true);
    for (uint32_t i = 0; i < r->work.n; i++) {
        const struct grammar_node *node = &g->node[r->work.p[i].node];
        for (uint32_t k = node->token; k < node[1].token; k++)
            if ((g->token[k].id == id) != g->token[k].negated)
                places_add(r, out, r->work.p[i].frame, g->token[k].to);
    }
}

void runner_leave(struct runner *r, uint32_t frame) {
    begin(r, NULL, 0);
    leave(r, frame);
}

struct grammar_bytes runner_first(const struct runner *r, bool *token) {
    const struct grammar *g = r->g;
    struct grammar_bytes first = {{0}};
    *token = false;
    for (uint32_t i = 0; i < r->work.n; i++) {
        const struct grammar_node *node = &g->node[r->work.p[i].node];
        for (uint32_t k = node->range; k < node[1].range; k++)
            bytes_add(&first, g->range[k].low, g->range[k].high);
        if (node[1].token > node->token) *token = true;
        for (uint32_t k = node->call; k < node[1].call; k++) {
            const struct grammar_auto_rule *rule = &g->rule[g->call[k].rule];
            for (int w = 0; w < 4; w++) first.word[w] |= rule->first.word[w];
            *token |= rule->first_token;
        }
    }
    return first;
}
