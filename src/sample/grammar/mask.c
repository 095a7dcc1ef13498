/* SPDX-License-Identifier: Apache-2.0
 *
 * mask.c: tokens: which may come next, and going on by one. A mask is the union of the records of
 * the state's places; tokens that end their rule are followed with the stack at hand. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/build.h"
#include "sample/grammar/state.h"
#include "sample/grammar/vocab.h"

struct masker {
    struct grammar_state *state;
    struct grammar_vocab *vocab;
    struct scratch *scratch;
    uint32_t *mask;
};

static void set_bit(uint32_t *mask, uint32_t id) { mask[id / 32] |= 1u << (id % 32); }

/* ---- tokens within a rule -------------------------------------------------------------------- */

static void add_all(const struct masker *m, const struct record *r) {
    size_t words = ((size_t)m->vocab->size + 31) / 32;
    if (r->bits)
        for (size_t i = 0; i < words; i++) m->mask[i] |= r->bits[i];
    for (uint32_t i = 0; i < r->id_n; i++) set_bit(m->mask, r->id[i]);
}

/* Those that complete less than `most` repetitions: all but the first of the list, or its end. */
static void add_fewer(const struct masker *m, const struct record *r, uint32_t most) {
    uint32_t low = 0, high = r->within_n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (r->within[mid].count >= most) low = mid + 1;
        else high = mid;
    }
    if (!r->bits || low > r->within_n / 2) {
        for (uint32_t i = low; i < r->within_n; i++) set_bit(m->mask, r->within[i].what);
        return;
    }
    size_t words = ((size_t)m->vocab->size + 31) / 32;
    uint32_t *bits = m->scratch->bits;
    memcpy(bits, r->bits, words * sizeof *bits);
    for (uint32_t i = 0; i < low; i++)
        bits[r->within[i].what / 32] &= ~(1u << (r->within[i].what % 32));
    for (size_t i = 0; i < words; i++) m->mask[i] |= bits[i];
}

/* ---- tokens that go on behind it ------------------------------------------------------------- */

static void add_below(const struct masker *m, uint32_t node, uint32_t state) {
    const struct trie *t = &m->vocab->trie;
    struct walk *w = &m->scratch->walk;
    struct trie_level *level = w->level;
    uint32_t depth = 0, end = t->skip[node], i = node + 1;
    level[0] = (struct trie_level){end, state};
    for (uint32_t k = t->first[node]; k < t->first[node + 1]; k++)
        set_bit(m->mask, (uint32_t)t->token[k]);
    while (i < end && !w->run->status) {
        while (i >= level[depth].end) depth--;
        uint32_t to = walk_next(w, level[depth].value, t->byte[i]);
        if (to == WALK_DEAD) {
            i = t->skip[i];
            continue;
        }
        for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++)
            set_bit(m->mask, (uint32_t)t->token[k]);
        if (t->skip[i] > i + 1) level[++depth] = (struct trie_level){t->skip[i], to};
        i++;
    }
}

/* Whether so many repetitions may have been completed when a repetition ends. */
static bool enough(const struct grammar_call *c, const struct frame *f, uint32_t more) {
    if (!c) return true;
    uint64_t count = (uint64_t)f->count + more;
    return count >= c->min && (c->max == GRAMMAR_NO_LIMIT || count <= c->max);
}

/* call: the repetition that the record is of, and f its frame, or NULL. */
static void add_leaves(const struct masker *m, const struct record *r, uint32_t frame,
                       const struct grammar_call *c, const struct frame *f) {
    struct runner *run = &m->state->run;
    struct walk *w = &m->scratch->walk;
    bool token;
    runner_leave(run, frame);
    struct places *after = &m->scratch->place;
    after->n = 0;
    for (uint32_t i = 0; i < run->work.n; i++)
        places_add(run, after, run->work.p[i].frame, run->work.p[i].node);
    runner_beside(run, after->p, after->n);
    struct grammar_bytes first = runner_first(run, &token);
    if (run->status || !bytes_any(&first)) return;
    uint32_t start = walk_begin(w, run, after->p, after->n, false, &m->vocab->trie), i = 0;
    for (uint32_t g = 0; g < r->group_n && !run->status; g++) {
        uint32_t end = r->group[g].end, to = WALK_DEAD;
        if (bytes_has(&first, r->group[g].byte)) to = walk_next(w, start, r->group[g].byte);
        for (; to != WALK_DEAD && i < end && !run->status; i++)
            if (enough(c, f, r->leave[i].count)) add_below(m, r->leave[i].what, to);
        i = end;
    }
}

/* ---- the mask -------------------------------------------------------------------------------- */

static void add_record(const struct masker *m, const struct record *r, uint32_t frame) {
    const struct runner *run = &m->state->run;
    const struct frame f = run->stacks.frame[frame];
    const struct grammar_call *c = f.call < FRAME_BASE ? &run->g->call[f.call] : NULL;
    if (c && !c->max) c = NULL;
    if (!c || c->max == GRAMMAR_NO_LIMIT) add_all(m, r);
    else add_fewer(m, r, c->max - f.count);
    for (uint32_t i = 0; i < r->beyond_n; i++)
        if (enough(c, &f, r->beyond[i].count)) set_bit(m->mask, r->beyond[i].what);
    uint32_t below = c ? f.parent : frame; /* what the rule runs in that the leaves left */
    if (r->leave_n && run->stacks.frame[below].call != FRAME_BOTTOM)
        add_leaves(m, r, below, c, c ? &f : NULL);
}

static ob_status add_places(const struct masker *m, ob_error *error) {
    struct grammar_state *s = m->state;
    struct runner *run = &s->run;
    ob_status status = OB_OK;
    s->next.n = 0;
    runner_beside(run, s->at.p, s->at.n);
    for (uint32_t i = 0; i < run->work.n; i++)
        if (!node_is_end(run->g, run->work.p[i].node))
            places_add(run, &s->next, run->work.p[i].frame, run->work.p[i].node);
    if (run->bottom)
        for (uint32_t i = 0; i < (m->vocab->size + 31) / 32; i++) m->mask[i] |= m->vocab->ends[i];
    for (uint32_t i = 0; i < s->next.n && !status && !run->status; i++) {
        struct place p = s->next.p[i];
        struct record *r;
        status = vocab_record(m->vocab, s->binding, m->scratch, run->stacks.frame[p.frame],
                              p.node, &r, error);
        if (status) break;
        add_record(m, r, p.frame);
        vocab_release(m->vocab, &r);
    }
    if (!status && run->status) status = error_set(error, run->status, "%s", run->why);
    return status;
}

ob_status grammar_mask(struct grammar_state *state, uint32_t *mask, ob_error *error) {
    struct grammar_vocab *v = state->vocab;
    size_t words = ((size_t)v->size + 31) / 32;
    memset(mask, 0, words * sizeof *mask);
    if (state->run.status) return error_set(error, state->run.status, "%s", state->run.why);
    if (state->ended) return OB_OK;
    struct masker m = {state, v, vocab_scratch(v), mask};
    uint32_t frames = state->run.stacks.n;
    state->run.steps = RUNNER_MAX_STEPS;
    if (m.scratch && !m.scratch->bits)
        m.scratch->bits = calloc(words + 1, sizeof *m.scratch->bits);
    ob_status status = m.scratch && m.scratch->bits
                           ? add_places(&m, error)
                           : error_memory(error, "a grammar's mask", words * sizeof *mask);
    stacks_cut(&state->run.stacks, frames);
    if (m.scratch) vocab_give_back(v, m.scratch);
    return status;
}

/* ---- going on -------------------------------------------------------------------------------- */

bool grammar_accept(struct grammar_state *state, int32_t id) {
    struct runner *r = &state->run;
    const struct grammar_vocab *v = state->vocab;
    if (id < 0 || (uint32_t)id >= v->size || state->ended || r->status) return false;
    if (vocab_ends(v, id)) return state->ended = grammar_is_whole(state);
    struct str piece = v->piece[id];
    r->steps = RUNNER_MAX_STEPS;
    runner_step_token(r, state->at.p, state->at.n, id, &state->next);
    struct places *at = &state->at;
    for (size_t i = 0; i < piece.n && at->n && !r->status; i++) {
        struct places *to = at == &state->before ? &state->other : &state->before;
        runner_step(r, at->p, at->n, (uint8_t)piece.p[i], to);
        at = to;
    }
    if (piece.n)
        for (uint32_t i = 0; i < at->n; i++)
            places_add(r, &state->next, at->p[i].frame, at->p[i].node);
    if (r->status || !state->next.n) return false;
    struct places old = state->at;
    state->at = state->next;
    state->next = old;
    stacks_keep(&r->stacks, state->at.p, state->at.n);
    return true;
}
