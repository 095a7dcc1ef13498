/* SPDX-License-Identifier: Apache-2.0
 * walk.c: the automaton of a walk, made while it runs; see walk.h. */
#include <string.h>

#include "sample/grammar/array.h"
#include "sample/grammar/walk.h"

enum { HEADS = sizeof((struct walk *)0)->head / sizeof(uint32_t), FIRST = 2 };

static bool no_memory(struct walk *w) {
    if (!w->run->status) w->run->status = OB_ERR_MEMORY, w->run->why = "out of memory";
    return false;
}

void walk_free(struct walk *w) {
    free(w->state);
    free(w->row);
    free(w->place);
    free(w->left);
    free(w->level);
    places_free(&w->out);
    *w = (struct walk){0};
}

static uint32_t add_state(struct walk *w, const struct place *place, uint32_t n) {
    if (w->state_n >= WALK_MAX_STATES) {
        if (!w->run->status)
            w->run->status = OB_ERR_LIMIT,
            w->run->why = "the grammar is too ambiguous here: too many ways through the vocabulary";
        return WALK_DEAD;
    }
    if (!ARRAY_ROOM(w->state, w->state_cap, (size_t)w->state_n + 1) ||
        !ARRAY_ROOM(w->row, w->row_cap, (size_t)w->state_n + 1) ||
        !ARRAY_ROOM(w->place, w->place_cap, (size_t)w->place_n + n)) {
        no_memory(w);
        return WALK_DEAD;
    }
    memset(w->row[w->state_n], 0, sizeof *w->row);
    if (n) memcpy(w->place + w->place_n, place, n * sizeof *place);
    w->state[w->state_n] = (struct walk_state){.first = w->place_n, .n = n};
    w->place_n += n;
    return w->state_n++;
}

uint32_t walk_begin(struct walk *w, struct runner *run, const struct place *place, uint32_t n,
                    bool start_stays, const struct trie *trie) {
    w->run = run;
    w->state_n = FIRST;
    w->place_n = w->left_n = 0;
    w->start_stays = start_stays;
    memset(w->head, 0, sizeof w->head);
    if (!ARRAY_ROOM(w->level, w->level_cap, trie->depth + (size_t)2)) no_memory(w);
    return add_state(w, place, n);
}

static uint32_t intern(struct walk *w, const struct places *set) {
    uint64_t h = set->n;
    for (uint32_t i = 0; i < set->n; i++) {
        h = (h ^ ((uint64_t)set->p[i].frame << 32 | set->p[i].node)) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    uint32_t *head = &w->head[h % HEADS];
    for (uint32_t i = *head; i; i = w->state[i].next) {
        const struct walk_state *s = &w->state[i];
        if (s->n == set->n && memcmp(w->place + s->first, set->p, s->n * sizeof *set->p) == 0)
            return i;
    }
    uint32_t state = add_state(w, set->p, set->n);
    if (state == WALK_DEAD) return state;
    w->state[state].next = *head;
    *head = state;
    return state;
}

/* What the runner found the state's places to leave, with the first step from them. */
static void keep_left(struct walk *w, struct walk_state *s) {
    const struct runner *r = w->run;
    s->stepped = true;
    s->left = w->left_n;
    if (!ARRAY_ROOM(w->left, w->left_cap, (size_t)w->left_n + r->left.n)) {
        no_memory(w);
        return;
    }
    for (uint32_t i = 0; i < r->left.n; i++)
        w->left[w->left_n++] = r->stacks.frame[r->left.p[i].frame].count;
    s->left_n = r->left.n;
}

uint16_t walk_step(struct walk *w, uint32_t state, uint8_t byte) {
    struct walk_state *s = &w->state[state];
    struct runner *r = w->run;
    uint32_t to = WALK_DEAD;
    r->stays = w->start_stays && state == FIRST;
    runner_step(r, w->place + s->first, s->n, byte, &w->out);
    r->stays = false;
    if (!s->stepped && !r->status) keep_left(w, s);
    places_sort(&w->out);
    if (!r->status && w->out.n) to = intern(w, &w->out);
    w->row[state][byte] = (uint16_t)to;
    return (uint16_t)to;
}

void walk_visit(struct walk *w, uint32_t state) {
    uint64_t goes = 0;
    if (++w->state[state].visits != WALK_BULK_AFTER) return;
    for (unsigned byte = 0; byte < 256 && !w->run->status; byte++)
        if (walk_next(w, state, (uint8_t)byte) != state) goes |= 1ull << trie_group[byte];
    if (!w->state[state].left_n) w->state[state].stays = ~goes;
}
