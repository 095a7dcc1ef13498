/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab.c: see tok_vocab.h. */
#include "text/tok_vocab.h"

#include "base/error.h"

enum { AHEAD = 16 };

ob_status vocab_init(struct vocab *vocab, struct arena *arena, uint32_t n, ob_error *error) {
    vocab->n = n;
    vocab->text = arena_array(arena, n, sizeof *vocab->text);
    vocab->kind = arena_array(arena, n, 1);
    vocab->end = arena_array(arena, n, sizeof *vocab->end);
    vocab->outside = arena_array(arena, n, sizeof *vocab->outside);
    if (!vocab->text || !vocab->kind || !vocab->end || !vocab->outside)
        return error_memory(error, "vocabulary", n);
    return OB_OK;
}

/* Eight bytes at a time: half of opening a tokenizer is hashing. Like str_hash for tables that the
 * file's size bounds. */
static uint64_t hash_of(struct str s) {
    const uint64_t k = 0x9fb21c651e98df25u;
    uint64_t h = s.n * k, v;
    for (; s.n >= sizeof v; s.p += sizeof v, s.n -= sizeof v) {
        memcpy(&v, s.p, sizeof v);
        h = (h ^ v) * k;
        h ^= h >> 32;
    }
    v = 0;
    for (size_t i = 0; i < s.n; i++) v = v << 8 | (unsigned char)s.p[i];
    h = (h ^ v) * k;
    h ^= h >> 29;
    h *= k;
    return h ^ h >> 32;
}

/* The slot that holds this text or the free one where it belongs. */
static uint32_t slot_of(const struct vocab *vocab, struct str text, uint64_t hash) {
    uint32_t i = (uint32_t)hash & vocab->mask, tag = (uint32_t)(hash >> 32);
    const struct vocab_slot *slot = vocab->slot;
    while (slot[i].id >= 0 && !(slot[i].tag == tag && str_eq(vocab->text[slot[i].id], text)))
        i = (i + 1) & vocab->mask;
    return i;
}

ob_status vocab_index(struct vocab *vocab, struct arena *arena, ob_error *error) {
    uint64_t size = 16;
    vocab->longest = 0;
    vocab->twins = false;
    while (size < vocab->n + (uint64_t)vocab->n / 2) size *= 2;
    vocab->slot = arena_array(arena, size, sizeof *vocab->slot);
    if (!vocab->slot) return error_memory(error, "vocabulary", size);
    memset(vocab->slot, 0xff, size * sizeof *vocab->slot);
    vocab->mask = (uint32_t)(size - 1);
    uint64_t ahead[AHEAD]; /* hashes of the next tokens, whose slots are on their way */
    for (uint32_t next = 0, id = 0; id < vocab->n; id++) {
        for (; next < vocab->n && next < id + AHEAD; next++) {
            ahead[next % AHEAD] = hash_of(vocab->text[next]);
            __builtin_prefetch(&vocab->slot[(uint32_t)ahead[next % AHEAD] & vocab->mask], 1);
        }
        if (vocab->kind[id] == TOK_NONE) continue;
        if (vocab->text[id].n > vocab->longest) vocab->longest = vocab->text[id].n;
        uint64_t hash = ahead[id % AHEAD];
        struct vocab_slot *slot = &vocab->slot[slot_of(vocab, vocab->text[id], hash)];
        vocab->twins = vocab->twins || slot->id >= 0;
        *slot = (struct vocab_slot){(uint32_t)(hash >> 32), (int32_t)id};
    }
    return OB_OK;
}

int32_t vocab_find(const struct vocab *vocab, struct str text) {
    return vocab->slot[slot_of(vocab, text, hash_of(text))].id;
}

int32_t vocab_find_data(const struct vocab *vocab, struct str text) {
    int32_t id = text.n > vocab->longest ? -1 : vocab_find(vocab, text);
    return id >= 0 && vocab_is_data(vocab, id) ? id : -1;
}

bool vocab_is_data(const struct vocab *vocab, int32_t id) {
    return vocab->kind[id] != TOK_CONTROL && vocab->kind[id] != TOK_UNKNOWN && !vocab->outside[id];
}
