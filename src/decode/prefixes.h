/* SPDX-License-Identifier: Apache-2.0
 *
 * prefixes.h: sequences of requests that have ended, kept for later ones that begin alike. They
 * share the KV pages of what is common (engine.h: seq_fork), so that an entry costs what it has
 * alone; the least recently used goes first. The owner thread's. */
#ifndef DECODE_PREFIXES_H
#define DECODE_PREFIXES_H

#include "engine/engine.h"

struct prefix {
    struct seq *seq;
    int32_t *token; /* seq_length(seq) of them, owned */
    uint64_t used;  /* clock of the last use */
};

struct prefixes {
    struct prefix *at;
    uint32_t n, most;
    uint64_t clock;
};

/* Equal tokens at the beginning of both. */
uint32_t prefix_common(const int32_t *a, uint32_t a_n, const int32_t *b, uint32_t b_n);

bool prefixes_init(struct prefixes *p, uint32_t most);
void prefixes_close(struct prefixes *p);
/* Takes both over; an empty sequence is freed, and so is one that another entry holds whole. */
void prefixes_keep(struct prefixes *p, struct seq *seq, int32_t *token);
/* false: there is none. */
bool prefixes_drop_oldest(struct prefixes *p);
/* The entry that gives most of the first n tokens, and how many; prefixes.n: none. */
uint32_t prefixes_find(const struct prefixes *p, const int32_t *token, uint32_t n, uint32_t *held);
/* A sequence with the first `held` tokens of entry i, which stays if it holds more and there is
 * memory for two. */
struct seq *prefixes_use(struct prefixes *p, uint32_t i, uint32_t held);

#endif
