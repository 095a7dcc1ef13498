/* SPDX-License-Identifier: Apache-2.0
 * vocab.c: opens vocabularies, and keeps the records made for them; see vocab.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/array.h"
#include "sample/grammar/vocab.h"

/* ---- opened and closed ----------------------------------------------------------------------- */

static ob_status read_pieces(const struct sample_vocab *from, struct grammar_vocab *v,
                             struct str *in_tree, ob_error *error) {
    struct buf all = BUF_INIT;
    size_t *end = calloc(from->size + (size_t)1, sizeof *end);
    for (uint32_t i = 0; end && i < from->size; i++) {
        from->piece(from->user, (int32_t)i, false, &all);
        end[i] = all.n;
        if (from->is_end(from->user, (int32_t)i)) v->ends[i / 32] |= 1u << (i % 32);
    }
    bool room = end && !all.failed;
    v->bytes = all.p;
    for (uint32_t i = 0; room && i < from->size; i++) {
        size_t first = i ? end[i - 1] : 0;
        v->piece[i] = (struct str){all.p + first, end[i] - first};
        if (!vocab_ends(v, (int32_t)i)) in_tree[i] = v->piece[i];
    }
    free(end);
    return room ? OB_OK : error_memory(error, "a vocabulary's texts", all.n);
}

ob_status grammar_vocab_open(const struct sample_vocab *vocab, struct grammar_vocab **out,
                             ob_error *error) {
    struct grammar_vocab *v = calloc(1, sizeof *v);
    size_t words = ((size_t)vocab->size + 31) / 32;
    struct str *in_tree = calloc(vocab->size + (size_t)1, sizeof *in_tree);
    ob_status status = OB_OK;
    *out = NULL;
    if (v) {
        os_mutex_init(&v->lock);
        v->size = vocab->size;
        v->piece = calloc(vocab->size + (size_t)1, sizeof *v->piece);
        v->ends = calloc(words + 1, sizeof *v->ends);
    }
    if (!v || !in_tree || !v->piece || !v->ends)
        status = error_memory(error, "a vocabulary", words * 32 * sizeof *in_tree);
    if (!status && vocab->piece) status = read_pieces(vocab, v, in_tree, error);
    if (!status) status = trie_make(in_tree, vocab->size, &v->trie, error);
    free(in_tree);
    if (status) grammar_vocab_close(&v);
    *out = v;
    return status;
}

void grammar_vocab_close(struct grammar_vocab **vocab) {
    struct grammar_vocab *v = *vocab;
    *vocab = NULL;
    if (!v) return;
    while (v->idle) {
        struct scratch *s = v->idle;
        v->idle = s->next;
        scratch_free(&s);
    }
    while (v->newest) {
        struct record *r = v->newest;
        v->newest = r->older;
        record_free(&r);
    }
    for (uint32_t i = 0; i < v->shape_n; i++) free(v->shape[i].word);
    free(v->shape);
    trie_free(&v->trie);
    free(v->bytes);
    free(v->piece);
    free(v->ends);
    os_mutex_free(&v->lock);
    free(v);
}

/* ---- memory for making ----------------------------------------------------------------------- */

struct scratch *vocab_scratch(struct grammar_vocab *v) {
    os_lock(&v->lock);
    struct scratch *s = v->idle;
    if (s) v->idle = s->next;
    os_unlock(&v->lock);
    return s ? s : calloc(1, sizeof *s);
}

void vocab_give_back(struct grammar_vocab *v, struct scratch *s) {
    os_lock(&v->lock);
    s->next = v->idle;
    v->idle = s;
    os_unlock(&v->lock);
}

/* ---- grammars and shapes --------------------------------------------------------------------- */

struct binding *vocab_bind(struct grammar_vocab *v, const struct grammar *g) {
    os_lock(&v->lock);
    struct binding *b = v->bindings;
    while (b && b->g != g) b = b->next;
    if (!b && (b = calloc(1, sizeof *b))) {
        b->g = g;
        b->shape = calloc(g->rule_n, sizeof *b->shape);
        if (b->shape) {
            b->next = v->bindings;
            v->bindings = b;
        } else {
            free(b);
            b = NULL;
        }
    }
    if (b) b->users++;
    os_unlock(&v->lock);
    return b;
}

void vocab_unbind(struct grammar_vocab *v, struct binding **binding) {
    struct binding *b = *binding;
    *binding = NULL;
    if (!b) return;
    os_lock(&v->lock);
    if (--b->users == 0) {
        struct binding **at = &v->bindings;
        while (*at != b) at = &(*at)->next;
        *at = b->next;
        free(b->shape);
        free(b);
    }
    os_unlock(&v->lock);
}

/* Under the lock. Odd: a number of a shape; even: of a rule of a grammar. Never 0. */
static uint64_t shape_of(struct grammar_vocab *v, struct binding *b, uint32_t rule) {
    uint32_t *word = NULL, n = 0;
    if (b->shape[rule]) return b->shape[rule];
    uint64_t own = b->g->serial << 20 | (uint64_t)rule << 1;
    if (!shape_write(b->g, rule, &word, &n)) return b->shape[rule] = own;
    uint64_t hash = str_hash((struct str){(const char *)word, n * sizeof *word});
    uint32_t *head = &v->shape_head[hash % VOCAB_HEADS];
    for (uint32_t i = *head; i; i = v->shape[i - 1].next) {
        const struct shape *s = &v->shape[i - 1];
        if (s->n != n || memcmp(s->word, word, n * sizeof *word) != 0) continue;
        free(word);
        return b->shape[rule] = (uint64_t)i << 1 | 1;
    }
    if (v->shape_n == VOCAB_SHAPES || !ARRAY_ROOM(v->shape, v->shape_cap, v->shape_n + 1u)) {
        free(word);
        return b->shape[rule] = own;
    }
    v->shape[v->shape_n] = (struct shape){word, n, *head};
    *head = ++v->shape_n;
    return b->shape[rule] = (uint64_t)v->shape_n << 1 | 1;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct record **head_of(struct grammar_vocab *v, struct record_key key) {
    uint64_t h = (key.shape ^ ((uint64_t)key.call << 40)) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 31) ^ key.node) * 0xbf58476d1ce4e5b9u;
    return &v->head[(h >> 40) % VOCAB_HEADS];
}

static struct record *find(struct grammar_vocab *v, struct record_key key) {
    struct record *r = *head_of(v, key);
    while (r && (r->key.shape != key.shape || r->key.call != key.call || r->key.node != key.node))
        r = r->hash_next;
    return r;
}

static void unlink_record(struct grammar_vocab *v, struct record *r) {
    if (r->newer) r->newer->older = r->older;
    else v->newest = r->older;
    if (r->older) r->older->newer = r->newer;
    else v->oldest = r->newer;
}
static void link_newest(struct grammar_vocab *v, struct record *r) {
    r->newer = NULL;
    r->older = v->newest;
    if (v->newest) v->newest->newer = r;
    else v->oldest = r;
    v->newest = r;
}

static void drop(struct grammar_vocab *v, struct record *r) {
    struct record **at = head_of(v, r->key);
    while (*at != r) at = &(*at)->hash_next;
    *at = r->hash_next;
    unlink_record(v, r);
    v->bytes_kept -= r->size;
    r->cached = false;
    if (!r->users) record_free(&r);
}

static void insert(struct grammar_vocab *v, struct record *r) {
    struct record **head = head_of(v, r->key);
    r->hash_next = *head;
    *head = r;
    r->cached = true;
    link_newest(v, r);
    v->bytes_kept += r->size;
    while (v->bytes_kept > VOCAB_CACHE_BYTES && v->oldest != r) drop(v, v->oldest);
}

static struct record_key key_of(struct grammar_vocab *v, struct binding *b, struct frame frame,
                                uint32_t node, bool counted) {
    const struct grammar *g = b->g;
    uint32_t rule = g->node[node].rule, owner = counted ? g->call[frame.call].owner : rule;
    return (struct record_key){.shape = shape_of(v, b, owner),
                               .call = counted ? frame.call - g->rule[owner].call + 1 : 0,
                               .node = node - g->rule[rule].start};
}

ob_status vocab_record(struct grammar_vocab *v, struct binding *binding, struct scratch *s,
                       struct frame frame, uint32_t node, struct record **out, ob_error *error) {
    const struct grammar *g = binding->g;
    bool counted = frame.call < FRAME_BASE && g->call[frame.call].max;
    os_lock(&v->lock);
    struct record_key key = key_of(v, binding, frame, node, counted);
    struct record *r = find(v, key);
    if (r) {
        r->users++;
        unlink_record(v, r);
        link_newest(v, r);
    }
    os_unlock(&v->lock);
    *out = r;
    if (r) return OB_OK;
    struct record_place at = {.g = g, .trie = &v->trie, .ends = v->ends, .size = v->size,
                              .counted = counted, .call = frame.call, .node = node};
    ob_status status = record_make(&at, s, &r, error);
    if (status) return status;
    r->key = key;
    os_lock(&v->lock);
    struct record *other = find(v, key); /* somebody else's, made meanwhile: equal */
    if (other) {
        record_free(&r);
        r = other;
    } else {
        insert(v, r);
    }
    r->users++;
    os_unlock(&v->lock);
    *out = r;
    return OB_OK;
}

void vocab_release(struct grammar_vocab *v, struct record **record) {
    struct record *r = *record;
    *record = NULL;
    os_lock(&v->lock);
    if (!--r->users && !r->cached) record_free(&r);
    os_unlock(&v->lock);
}
