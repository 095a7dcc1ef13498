/* SPDX-License-Identifier: Apache-2.0
 * prefixes.c: see prefixes.h. Entries are compared one by one, which reads what they share with the
 * request once more for each: little beside computing one token. */
#include "decode/prefixes.h"

#include <stdlib.h>

uint32_t prefix_common(const int32_t *a, uint32_t a_n, const int32_t *b, uint32_t b_n) {
    uint32_t n = a_n < b_n ? a_n : b_n, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

bool prefixes_init(struct prefixes *p, uint32_t most) {
    *p = (struct prefixes){.at = calloc(most, sizeof *p->at), .most = most};
    return p->at != NULL;
}

void prefixes_close(struct prefixes *p) {
    while (prefixes_drop_oldest(p)) {
    }
    free(p->at);
    *p = (struct prefixes){0};
}

static void take_out(struct prefixes *p, uint32_t i) { p->at[i] = p->at[--p->n]; }

static void drop(struct prefixes *p, uint32_t i) {
    seq_free(&p->at[i].seq);
    free(p->at[i].token);
    take_out(p, i);
}

bool prefixes_drop_oldest(struct prefixes *p) {
    uint32_t oldest = 0;
    if (p->n == 0) return false;
    for (uint32_t i = 1; i < p->n; i++)
        if (p->at[i].used < p->at[oldest].used) oldest = i;
    drop(p, oldest);
    return true;
}

/* Would b do wherever a does? */
static bool covers(const struct prefix *b, const struct prefix *a) {
    uint32_t n = seq_length(a->seq);
    return prefix_common(b->token, seq_length(b->seq), a->token, n) == n &&
           seq_kept(b->seq, n) == n;
}

void prefixes_keep(struct prefixes *p, struct seq *seq, int32_t *token) {
    struct prefix one = {.seq = seq, .token = token, .used = ++p->clock};
    bool needed = seq_length(seq) > 0;
    for (uint32_t i = p->n; needed && i-- > 0;) {
        if (covers(&one, &p->at[i])) drop(p, i);
        else if (covers(&p->at[i], &one)) p->at[i].used = one.used, needed = false;
    }
    if (!needed) {
        seq_free(&one.seq);
        free(one.token);
        return;
    }
    if (p->n == p->most) prefixes_drop_oldest(p);
    p->at[p->n++] = one;
}

uint32_t prefixes_find(const struct prefixes *p, const int32_t *token, uint32_t n,
                       uint32_t *held) {
    uint32_t best = p->n;
    *held = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct prefix *e = &p->at[i];
        uint32_t kept =
            seq_kept(e->seq, prefix_common(e->token, seq_length(e->seq), token, n));
        if (kept > *held) best = i, *held = kept;
    }
    return best;
}

struct seq *prefixes_use(struct prefixes *p, uint32_t i, uint32_t held) {
    struct prefix *e = &p->at[i];
    struct seq *seq = held < seq_length(e->seq) ? seq_fork(e->seq, held) : NULL;
    e->used = ++p->clock;
    if (seq) return seq;
    seq = e->seq;
    free(e->token);
    take_out(p, i);
    seq_truncate(seq, held); /* what is missing is computed again with the rest */
    return seq;
}
