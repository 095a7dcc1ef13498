/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c: makes records by going through the vocabulary's tree once; see record.h. The stack is a
 * frame that stands for any; where it is left, the tree's nodes are noted, and the rest is for the
 * mask to find out. Tokens for which the rule ends before their first byte are no business of the
 * record: the place behind the call is one of the state's as well, and has its own. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/array.h"
#include "sample/grammar/record.h"

void scratch_free(struct scratch **s) {
    if (!*s) return;
    runner_free(&(*s)->run);
    walk_free(&(*s)->walk);
    places_free(&(*s)->place);
    free((*s)->bits);
    free((*s)->within);
    free((*s)->sorted);
    free((*s)->beyond);
    free((*s)->leave);
    free((*s)->outcome);
    free(*s);
    *s = NULL;
}

void record_free(struct record **record) {
    struct record *r = *record;
    *record = NULL;
    if (!r) return;
    free(r->bits);
    free(r->id);
    free(r->within);
    free(r->beyond);
    free(r->leave);
    free(r->group);
    free(r);
}

static void no_memory(struct scratch *s) {
    if (!s->run.status) s->run.status = OB_ERR_MEMORY, s->run.why = "out of memory";
}

#define ADD(s, list, ...)                                                         \
    do {                                                                          \
        if (ARRAY_ROOM((s)->list, (s)->list##_cap, (size_t)(s)->list##_n + 1))    \
            (s)->list[(s)->list##_n++] = (struct record_item){__VA_ARGS__};       \
        else no_memory(s);                                                        \
    } while (0)

static void set_bit(uint32_t *bits, uint32_t id) { bits[id / 32] |= 1u << (id % 32); }

/* ---- what becomes of a token ----------------------------------------------------------------- */

enum { OUTCOME_UNKNOWN, OUTCOME_MIXED, OUTCOME_WITHIN }; /* + repetitions completed */

/* The frame at the bottom of a place's stack: the repetition's, or one that says it was left. */
static const struct frame *root_of(const struct runner *r, uint32_t frame) {
    const struct frame *f = &r->stacks.frame[frame];
    while (f->call != FRAME_BASE && !(f->count & FRAME_RELATIVE)) f = &r->stacks.frame[f->parent];
    return f;
}

/* The fewest repetitions with which a state's places are still in the repetition; UINT32_MAX: none
 * is. *left: some are not. */
static uint32_t fewest(const struct scratch *s, uint32_t state, bool *left) {
    const struct walk_state *w = &s->walk.state[state];
    uint32_t least = UINT32_MAX;
    *left = false;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct frame *f = root_of(&s->run, s->walk.place[w->first + i].frame);
        uint32_t count = f->count & ~FRAME_RELATIVE;
        if (f->call == FRAME_BASE) *left = true;
        else if (count < least) least = count;
    }
    return least;
}

static uint32_t outcome_of(struct scratch *s, uint32_t state) {
    uint32_t known = s->outcome_cap;
    if (!ARRAY_ROOM(s->outcome, s->outcome_cap, (size_t)state + 1)) {
        no_memory(s);
        return OUTCOME_WITHIN;
    }
    if (s->outcome_cap > known)
        memset(s->outcome + known, 0, (s->outcome_cap - known) * sizeof *s->outcome);
    if (s->outcome[state] == OUTCOME_UNKNOWN) {
        bool left;
        uint32_t least = fewest(s, state, &left);
        s->outcome[state] = left ? OUTCOME_MIXED : OUTCOME_WITHIN + least;
    }
    return s->outcome[state];
}

/* Tokens of the range end at `state`. */
static void add_counted(struct scratch *s, const struct trie *t, uint32_t first, uint32_t end,
                        uint32_t state) {
    uint32_t outcome = outcome_of(s, state);
    if (outcome >= OUTCOME_WITHIN) {
        for (uint32_t i = first; i < end; i++)
            ADD(s, within, (uint32_t)t->token[i], outcome - OUTCOME_WITHIN);
        return;
    }
    bool left;
    uint32_t least = fewest(s, state, &left);
    const struct walk_state *w = &s->walk.state[state];
    for (uint32_t i = first; i < end; i++) {
        if (least != UINT32_MAX) ADD(s, within, (uint32_t)t->token[i], least);
        for (uint32_t k = 0; k < w->n; k++) {
            const struct frame *f = root_of(&s->run, s->walk.place[w->first + k].frame);
            if (f->call == FRAME_BASE) ADD(s, beyond, (uint32_t)t->token[i], f->count);
        }
    }
}

static void add_tokens(struct scratch *s, const struct record_place *at, uint32_t first,
                       uint32_t end, uint32_t state) {
    if (at->counted) {
        add_counted(s, at->trie, first, end, state);
        return;
    }
    for (uint32_t i = first; i < end; i++) set_bit(s->bits, (uint32_t)at->trie->token[i]);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Bytes that the first state does not take need not be tried. */
static void close_start(struct scratch *s, uint32_t start) {
    bool token;
    struct grammar_bytes first = runner_first(&s->run, &token);
    for (unsigned byte = 0; byte < 256; byte++)
        if (!bytes_has(&first, (uint8_t)byte)) s->walk.row[start][byte] = WALK_DEAD;
}

static void walk_tree(struct scratch *s, const struct record_place *at, uint32_t start) {
    const struct trie *t = at->trie;
    struct walk *w = &s->walk;
    struct trie_level *level = w->level;
    uint32_t depth = 0, i = 0;
    level[0] = (struct trie_level){t->n, start};
    while (i < t->n && !s->run.status) {
        while (i >= level[depth].end) depth--;
        uint32_t from = level[depth].value, to = walk_next(w, from, t->byte[i]);
        const struct walk_state *f = &w->state[from];
        for (uint32_t k = 0; k < f->left_n; k++) ADD(s, leave, i, w->left[f->left + k]);
        if (to == WALK_DEAD) {
            i = t->skip[i];
            continue;
        }
        if (t->skip[i] > i + 1) {
            if (!at->counted) walk_visit(w, to); /* a count never stays */
            if (!(t->below[i] & ~w->state[to].stays)) {
                add_tokens(s, at, t->first[i], t->first[t->skip[i]], to);
                i = t->skip[i];
                continue;
            }
            level[++depth] = (struct trie_level){t->skip[i], to};
        }
        if (t->first[i + 1] > t->first[i]) add_tokens(s, at, t->first[i], t->first[i + 1], to);
        i++;
    }
}

/* Tokens that the grammar names, as a whole. The start's places stay in their rule: a token that
 * stands behind it is of another record. */
static void add_named(struct scratch *s, const struct record_place *at) {
    const struct grammar *g = at->g;
    struct runner *r = &s->run;
    for (uint32_t i = 0; i < r->work.n; i++) {
        const struct grammar_node *node = &g->node[r->work.p[i].node];
        const struct frame *f = root_of(r, r->work.p[i].frame);
        for (uint32_t k = node->token; k < node[1].token; k++) {
            const struct grammar_token_edge *e = &g->token[k];
            for (uint32_t id = e->negated ? 0 : (uint32_t)e->id; id < at->size; id++) {
                bool is = (id == (uint32_t)e->id) != e->negated &&
                          !(at->ends[id / 32] >> (id % 32) & 1);
                if (is && at->counted) ADD(s, within, id, f->count & ~FRAME_RELATIVE);
                else if (is) set_bit(s->bits, id);
                if (!e->negated) break;
            }
        }
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Sorts by repetitions, most first, into the scratch's other list: a counting sort, for there are
 * as many items as tokens, and no more repetitions in a token than bytes. */
static bool sort_within(struct scratch *s) {
    uint32_t most = 0, n = s->within_n;
    for (uint32_t i = 0; i < n; i++)
        if (s->within[i].count > most) most = s->within[i].count;
    uint32_t *at = calloc(most + (size_t)2, sizeof *at);
    if (!at || !ARRAY_ROOM(s->sorted, s->sorted_cap, (size_t)n + 1)) {
        free(at);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) at[most - s->within[i].count + 1]++;
    for (uint32_t i = 1; i <= most; i++) at[i] += at[i - 1];
    for (uint32_t i = 0; i < n; i++) s->sorted[at[most - s->within[i].count]++] = s->within[i];
    free(at);
    return true;
}

static bool copy_items(const struct record_item *from, uint32_t n, struct record_item **to,
                       uint32_t *to_n) {
    *to = malloc((n + (size_t)1) * sizeof **to);
    if (*to && n) memcpy(*to, from, n * sizeof **to);
    *to_n = n;
    return *to != NULL;
}

/* Counting sort by the nodes' bytes; within a group in the tree's order. */
static bool group_leaves(const struct scratch *s, const struct trie *t, struct record *r) {
    uint32_t at[257] = {0};
    for (uint32_t i = 0; i < s->leave_n; i++) at[t->byte[s->leave[i].what] + 1]++;
    for (unsigned b = 0; b < 256; b++) r->group_n += at[b + 1] > 0;
    r->leave = malloc((s->leave_n + (size_t)1) * sizeof *r->leave);
    r->group = malloc((r->group_n + (size_t)1) * sizeof *r->group);
    if (!r->leave || !r->group) return false;
    uint32_t group = 0;
    for (unsigned b = 0; b < 256; b++) {
        bool any = at[b + 1] > 0;
        at[b + 1] += at[b];
        if (any) r->group[group++] = (struct record_group){(uint8_t)b, at[b + 1]};
    }
    for (uint32_t i = 0; i < s->leave_n; i++)
        r->leave[at[t->byte[s->leave[i].what]]++] = s->leave[i];
    r->leave_n = s->leave_n;
    return true;
}

/* The set of s->bits, as a list if that is smaller. */
static bool keep_set(const struct scratch *s, uint32_t words, struct record *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < words; i++) n += (uint32_t)__builtin_popcount(s->bits[i]);
    if (n >= words) {
        r->bits = malloc(words * sizeof *r->bits);
        if (r->bits) memcpy(r->bits, s->bits, words * sizeof *r->bits);
        r->size += words * sizeof *r->bits;
        return r->bits != NULL;
    }
    r->id = malloc((n + (size_t)1) * sizeof *r->id);
    if (!r->id) return false;
    for (uint32_t i = 0; i < words; i++)
        for (uint32_t left = s->bits[i]; left; left &= left - 1)
            r->id[r->id_n++] = i * 32 + (uint32_t)__builtin_ctz(left);
    r->size += n * sizeof *r->id;
    return true;
}

/* A token that is there twice (by its bytes, and by name) stays with the fewest repetitions. */
static void keep_fewest(struct scratch *s) {
    uint32_t kept = s->within_n;
    for (uint32_t i = s->within_n; i-- > 0;) {
        struct record_item item = s->sorted[i];
        if (s->bits[item.what / 32] >> (item.what % 32) & 1) continue;
        set_bit(s->bits, item.what);
        s->sorted[--kept] = item;
    }
    s->within_n -= kept;
    if (kept && s->within_n) memmove(s->sorted, s->sorted + kept, s->within_n * sizeof *s->sorted);
}

static bool keep(struct scratch *s, const struct record_place *at, struct record *r) {
    uint32_t words = (at->size + 31) / 32;
    if (!sort_within(s)) return false;
    keep_fewest(s);
    bool room = keep_set(s, words, r) && group_leaves(s, at->trie, r) &&
                copy_items(s->sorted, s->within_n, &r->within, &r->within_n) &&
                copy_items(s->beyond, s->beyond_n, &r->beyond, &r->beyond_n);
    r->size += sizeof *r + r->group_n * sizeof *r->group +
               (r->within_n + r->beyond_n + r->leave_n) * sizeof *r->within;
    return room;
}

static ob_status begin(const struct record_place *at, struct scratch *s, ob_error *error) {
    uint32_t words = (at->size + 31) / 32;
    if (!s->bits) s->bits = malloc((words + (size_t)1) * sizeof *s->bits);
    if (s->bits) memset(s->bits, 0, words * sizeof *s->bits);
    if (s->outcome_cap) memset(s->outcome, 0, s->outcome_cap * sizeof *s->outcome);
    s->within_n = s->beyond_n = s->leave_n = 0;
    s->run.g = at->g;
    s->run.status = OB_OK;
    s->run.steps = RUNNER_MAX_STEPS;
    if (s->run.stacks.n) stacks_cut(&s->run.stacks, 1);
    else if (!stacks_init(&s->run.stacks)) no_memory(s);
    if (!s->bits) no_memory(s);
    return s->run.status ? error_memory(error, "a grammar's mask", words * 4) : OB_OK;
}

ob_status record_make(const struct record_place *at, struct scratch *s, struct record **out,
                      ob_error *error) {
    struct runner *r = &s->run;
    ob_status status = begin(at, s, error);
    *out = NULL;
    if (status) return status;
    uint32_t frame = stacks_push(&r->stacks, 0, at->counted ? at->call : FRAME_BASE,
                                 at->counted ? FRAME_RELATIVE : 0);
    struct place place = {frame, at->node};
    if (frame == UINT32_MAX) no_memory(s);
    uint32_t start = r->status ? 0 : walk_begin(&s->walk, r, &place, 1, true, at->trie);
    if (!r->status) {
        runner_named(r, &place, 1);
        add_named(s, at);
        close_start(s, start);
        walk_tree(s, at, start);
    }
    struct record *record = r->status ? NULL : calloc(1, sizeof *record);
    if (!r->status && (!record || !keep(s, at, record))) {
        record_free(&record);
        no_memory(s);
    }
    *out = record;
    return r->status ? error_set(error, r->status, "%s", r->why) : OB_OK;
}
