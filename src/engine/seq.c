/* SPDX-License-Identifier: Apache-2.0
 *
 * seq.c: a sequence's page tables. Invariants:
 * - for each group, pages [first, end) are held, and cover every position below `length` that a
 *   later position can see. Of a state group that is page 0; its pages 1 .. snapshots are copies of
 *   it, which no step sees and nothing changes;
 * - a page is written only while one sequence holds it. Page 0 of a state group is never shared; of
 *   the others the one that position `length` falls into may be, and is copied by whoever appends
 *   first. */
#include <stdlib.h>

#include "engine/internal.h"

static const struct cache_group *group_of(const struct seq *seq, uint32_t g) {
    return &seq->engine->model->graph.group[g];
}

static uint32_t pages_for(const struct cache_group *g, uint32_t positions) {
    if (g->kind == CACHE_STATE) return positions > 0;
    return (cache_entries(g, positions) + PAGE_TOKENS - 1) / PAGE_TOKENS;
}

/* First page a query at position `at` sees in this group. */
static uint32_t first_seen(const struct cache_group *g, uint32_t at) {
    if (g->kind == CACHE_CHUNK) return (at - at % g->window) / PAGE_TOKENS;
    if (g->kind == CACHE_FULL || g->kind == CACHE_STATE || at + 1 <= g->window) return 0;
    return (at + 1 - g->window) / PAGE_TOKENS;
}

struct seq *seq_new(struct engine *engine) {
    struct seq *seq = calloc(1, sizeof *seq);
    if (!seq) return NULL;
    uint32_t groups = engine->groups;
    seq->engine = engine;
    seq->admitted = engine->context;
    seq->page = calloc(groups + 1, sizeof *seq->page);
    seq->first = calloc(groups + 1, sizeof *seq->first);
    seq->end = calloc(groups + 1, sizeof *seq->end);
    bool ok = seq->page && seq->first && seq->end;
    for (uint32_t g = 0; ok && g < groups; g++) {
        uint32_t slots = pages_for(group_of(seq, g), engine->context);
        if (group_of(seq, g)->kind == CACHE_STATE) slots += STATE_SNAPSHOTS;
        seq->page[g] = malloc((slots ? slots : 1) * sizeof **seq->page);
        ok = seq->page[g] != NULL;
        for (uint32_t i = 0; ok && i < slots; i++) seq->page[g][i] = NO_PAGE;
    }
    if (!ok) seq_free(&seq);
    return seq;
}

static struct pages *pool_of(const struct seq *seq, uint32_t g) {
    return &seq->engine->group[g].pages;
}

static void give(struct seq *seq, uint32_t g, uint32_t i) {
    pages_give(pool_of(seq, g), seq->page[g][i]);
    seq->page[g][i] = NO_PAGE;
}

/* ---- snapshots of states ---- */

static void drop_snapshot(struct seq *seq, uint32_t i) {
    for (uint32_t g = 0; g < seq->engine->groups; g++) {
        if (group_of(seq, g)->kind != CACHE_STATE) continue;
        give(seq, g, 1 + i);
        for (uint32_t k = 1 + i; k < seq->snapshots; k++) seq->page[g][k] = seq->page[g][k + 1];
        seq->page[g][seq->snapshots] = NO_PAGE;
    }
    seq->snapshots--;
    for (uint32_t k = i; k < seq->snapshots; k++) seq->snapshot[k] = seq->snapshot[k + 1];
}

static void drop_snapshots_after(struct seq *seq, uint32_t n) {
    while (seq->snapshots > 0 && seq->snapshot[seq->snapshots - 1] > n)
        drop_snapshot(seq, seq->snapshots - 1);
}

/* The one that is missed least: it is followed by the smallest loss for its distance from the end,
 * as an earlier snapshot is near. */
static uint32_t least_missed(const struct seq *seq) {
    uint32_t best = 0;
    double best_share = 2;
    for (uint32_t i = 0; i < seq->snapshots; i++) {
        uint32_t before = i > 0 ? seq->snapshot[i - 1] : 0;
        double share = (double)(seq->snapshot[i] - before) / (double)(seq->length - before);
        if (share < best_share) best = i, best_share = share;
    }
    return best;
}

/* Copies the states between two of the sequence's pages. */
static bool copy_states(struct seq *seq, uint32_t to, uint32_t from) {
    const struct engine *e = seq->engine;
    for (uint32_t g = 0; g < e->groups; g++) {
        if (group_of(seq, g)->kind != CACHE_STATE) continue;
        if (!engine_parts_copy_page(e, g, seq->page[g][to], seq->page[g][from])) return false;
    }
    return true;
}

static bool states_fit(const struct engine *e) {
    for (uint32_t g = 0; g < e->groups; g++)
        if (e->model->graph.group[g].kind == CACHE_STATE && e->group[g].pages.free_count == 0)
            return false;
    return true;
}

void seq_snapshot(struct seq *seq) {
    struct engine *e = seq->engine;
    if (e->snapshots == 0) return;
    if (seq->snapshots == e->snapshots || (seq->snapshots > 0 && !states_fit(e)))
        drop_snapshot(seq, least_missed(seq));
    if (!states_fit(e)) return;
    uint32_t at = ++seq->snapshots;
    for (uint32_t g = 0; g < e->groups; g++)
        if (group_of(seq, g)->kind == CACHE_STATE)
            seq->page[g][at] = pages_take(&e->group[g].pages);
    seq->snapshot[at - 1] = seq->length;
    if (!copy_states(seq, at, 0)) drop_snapshot(seq, at - 1);
}

/* ---- life ---- */

void seq_free(struct seq **p) {
    struct seq *seq = *p;
    if (!seq) return;
    drop_snapshots_after(seq, 0);
    for (uint32_t g = 0; seq->page && g < seq->engine->groups; g++) {
        for (uint32_t i = seq->page[g] ? seq->first[g] : 0; seq->page[g] && i < seq->end[g]; i++)
            give(seq, g, i);
        free(seq->page[g]);
    }
    free(seq->page);
    free(seq->first);
    free(seq->end);
    free(seq);
    *p = NULL;
}

uint32_t seq_length(const struct seq *seq) { return seq->length; }

/* Do sequences of these lengths take the same angles? */
static bool same_angles(const struct graph *g, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct rope_table_args *rope = &g->node[i].u.rope_table;
        if (g->node[i].op != OP_rope_table || rope->original == 0) continue;
        bool a_long = a > rope->original, b_long = b > rope->original;
        if (a_long != b_long || (a_long && rope->dynamic > 0 && a != b)) return false;
    }
    return true;
}

void seq_admit(struct seq *seq, uint32_t length) {
    const struct graph *g = &seq->engine->model->graph;
    if (seq->engine->length_matters && !same_angles(g, seq->admitted, length)) seq_truncate(seq, 0);
    seq->admitted = length;
}

/* The page that the entry of position `length` falls into, if it is there and others hold it, too;
 * else NO_PAGE. */
static uint32_t shared_end(const struct seq *seq, uint32_t g) {
    const struct cache_group *group = group_of(seq, g);
    if (group->kind == CACHE_STATE) return NO_PAGE;
    uint32_t i = cache_entries(group, seq->length) / PAGE_TOKENS;
    bool shared = i < seq->end[g] && i >= seq->first[g] &&
                  pages_is_shared(pool_of(seq, g), seq->page[g][i]);
    return shared ? i : NO_PAGE;
}

uint32_t seq_needs(const struct seq *seq, uint32_t g, uint32_t n) {
    uint32_t want = pages_for(group_of(seq, g), seq->length + n);
    uint32_t more = want > seq->end[g] ? want - seq->end[g] : 0;
    return more + (n > 0 && shared_end(seq, g) != NO_PAGE);
}

static bool own_end(struct seq *seq, uint32_t g) {
    uint32_t i = shared_end(seq, g);
    if (i == NO_PAGE) return true;
    uint32_t page = pages_take(pool_of(seq, g));
    if (page == NO_PAGE) return false;
    bool ok = engine_parts_copy_page(seq->engine, g, page, seq->page[g][i]);
    pages_give(pool_of(seq, g), ok ? seq->page[g][i] : page);
    if (ok) seq->page[g][i] = page;
    return ok;
}

bool seq_grow(struct seq *seq, uint32_t n) {
    const struct engine *e = seq->engine;
    for (uint32_t g = 0; g < e->groups; g++)
        if (seq_needs(seq, g, n) > e->group[g].pages.free_count) return false;
    for (uint32_t g = 0; g < e->groups; g++) {
        if (!own_end(seq, g)) return false;
        for (uint32_t more = seq_needs(seq, g, n); more; more--)
            seq->page[g][seq->end[g]++] = pages_take(pool_of(seq, g));
    }
    return true;
}

void seq_leave_window(struct seq *seq) {
    for (uint32_t g = 0; g < seq->engine->groups; g++) {
        uint32_t keep = first_seen(group_of(seq, g), seq->length);
        if (keep > seq->end[g]) keep = seq->end[g];
        for (; seq->first[g] < keep; seq->first[g]++) give(seq, g, seq->first[g]);
    }
}

/* ---- going back ---- */

static bool has_state(const struct engine *e) {
    for (uint32_t g = 0; g < e->groups; g++)
        if (e->model->graph.group[g].kind == CACHE_STATE) return true;
    return false;
}

uint32_t seq_kept(const struct seq *seq, uint32_t n) {
    if (n >= seq->length) return seq->length;
    if (has_state(seq->engine)) {
        uint32_t i = seq->snapshots;
        while (i > 0 && seq->snapshot[i - 1] > n) i--;
        n = i > 0 ? seq->snapshot[i - 1] : 0;
    }
    for (uint32_t g = 0; n > 0 && g < seq->engine->groups; g++)
        if (first_seen(group_of(seq, g), n) < seq->first[g]) n = 0;
    return n;
}

uint32_t seq_truncate(struct seq *seq, uint32_t n) {
    n = seq_kept(seq, n);
    if (n == seq->length) return n;
    drop_snapshots_after(seq, n);
    if (seq->snapshots > 0 && !copy_states(seq, 0, seq->snapshots)) {
        n = 0;
        drop_snapshots_after(seq, 0);
    }
    for (uint32_t g = 0; g < seq->engine->groups; g++) {
        uint32_t keep = pages_for(group_of(seq, g), n);
        while (seq->end[g] > keep && seq->end[g] > seq->first[g]) give(seq, g, --seq->end[g]);
        if (n == 0) seq->first[g] = seq->end[g] = 0;
    }
    return seq->length = n;
}

/* ---- two that begin alike ---- */

/* Snapshots are shared, the state itself is copied. */
static bool fork_states(struct seq *to, const struct seq *from) {
    const struct engine *e = to->engine;
    uint32_t n = 0;
    if (!states_fit(e)) return false;
    for (; n < from->snapshots && from->snapshot[n] <= to->length; n++)
        to->snapshot[n] = from->snapshot[n];
    to->snapshots = n;
    for (uint32_t g = 0; g < e->groups; g++) {
        if (group_of(to, g)->kind != CACHE_STATE) continue;
        for (uint32_t i = 1; i <= n; i++)
            pages_share(pool_of(to, g), to->page[g][i] = from->page[g][i]);
        to->page[g][0] = pages_take(pool_of(to, g));
        to->end[g] = 1;
    }
    bool now = to->length == from->length;
    for (uint32_t g = 0; g < e->groups; g++)
        if (group_of(to, g)->kind == CACHE_STATE &&
            !engine_parts_copy_page(e, g, to->page[g][0], from->page[g][now ? 0 : n]))
            return false;
    return true;
}

struct seq *seq_fork(const struct seq *from, uint32_t n) {
    struct engine *e = from->engine;
    struct seq *seq = seq_new(e);
    if (!seq) return NULL;
    seq->admitted = from->admitted;
    n = seq_kept(from, n);
    if (n == 0) return seq;
    seq->length = n;
    for (uint32_t g = 0; g < e->groups; g++) {
        if (group_of(seq, g)->kind == CACHE_STATE) continue;
        uint32_t end = pages_for(group_of(seq, g), n);
        seq->first[g] = seq->end[g] = from->first[g];
        for (; seq->end[g] < end; seq->end[g]++)
            pages_share(pool_of(seq, g),
                        seq->page[g][seq->end[g]] = from->page[g][seq->end[g]]);
    }
    if (has_state(e) && !fork_states(seq, from)) seq_free(&seq);
    else seq_leave_window(seq);
    return seq;
}
