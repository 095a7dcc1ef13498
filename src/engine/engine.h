/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: face of engine/: a model bound to a device, its paged KV memory, sequences, and the
 * step that advances several of them at once. One owner thread calls everything here.
 *
 * The law: a sequence's logits depend on its tokens alone, whatever else is in a step and however
 * its tokens are cut into steps. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "models/model.h"
#include "onebit.h"

struct engine;
struct seq;

/* As ob_device_at. */
bool engine_device_at(size_t i, ob_device *out);

/* The source must outlive the engine. */
ob_status engine_open(const struct source *source, const ob_engine_options *options,
                      struct engine **out, ob_error *error);
void engine_close(struct engine **engine);
/* Whether it would open, without touching the weights: options, metadata, tensors, memory. */
ob_status engine_check(const struct source *source, const ob_engine_options *options,
                       ob_error *error);

/* As ob_engine_placement. */
typedef void engine_place_fn(void *user, const ob_placement *place);
ob_status engine_placement(const struct source *source, const ob_engine_options *options,
                           engine_place_fn *row, void *user, ob_error *error);

const struct model *engine_model(const struct engine *engine);
const char *engine_device(const struct engine *engine); /* "cpu (avx512)" */
uint32_t engine_threads(const struct engine *engine);
uint32_t engine_context(const struct engine *engine);   /* tokens a sequence may hold */
uint64_t engine_capacity(const struct engine *engine);  /* tokens the KV memory holds */
struct kv_types engine_kv_types(const struct engine *engine);
const char *engine_kv_text(const struct engine *engine); /* "q8_0", "q8_0+q4_0" */
/* Most tokens, and most rows of logits, that a step takes. */
uint32_t engine_step_tokens(const struct engine *engine);
uint32_t engine_step_logits(const struct engine *engine);
uint32_t engine_parallel(const struct engine *engine);

/* What one token costs, by the graph. */
struct engine_work {
    uint64_t token_bytes;     /* of weights, read for one token with its logits */
    uint64_t expert_bytes;    /* of these, those of the experts it is routed to */
    uint64_t token_products;  /* multiply-adds of its matrix products, logits apart */
    uint64_t logits_products; /* those of one row of logits */
};
struct engine_work engine_work(const struct engine *engine);

/* ---- sequences ---- */

/* NULL when out of memory. */
struct seq *seq_new(struct engine *engine);
void seq_free(struct seq **seq);
uint32_t seq_length(const struct seq *seq);
/* How many positions the sequence may grow to; the context unless this is called. Where the rotary
 * embedding depends on it (graph_depends_on_length) and the positions held were computed for
 * another, the sequence is emptied. */
void seq_admit(struct seq *seq, uint32_t length);
/* Forgets positions from n on, and further back where that is all that can be brought back. Returns
 * the length now; the caller appends the tokens from there to n again.
 *
 * Without recurrent layers it is n, or 0 where the window caches no longer hold what position n
 * needs. The state of recurrent layers cannot be cut. A sequence keeps copies of it, each the size
 * of the state, in the KV memory (STATE_SNAPSHOTS for each of `parallel` sequences, fewer if states
 * would take more than half of it): one is taken after each step that appended more than one token,
 * so at the end of a prompt and of each piece of it. With all in use, one goes so that the others
 * are dense near the end and sparse before. What comes back is the newest at or before n, or 0. */
enum { STATE_SNAPSHOTS = 4 };
uint32_t seq_truncate(struct seq *seq, uint32_t n);
/* What seq_truncate would return; changes nothing. */
uint32_t seq_kept(const struct seq *seq, uint32_t n);
/* A second sequence with the same first n tokens, or as many as seq_kept(from, n); n is at most the
 * length. They share the memory of what both have whole. `from` stays as it is. NULL when there is
 * no memory, also of a state, which is copied. */
struct seq *seq_fork(const struct seq *from, uint32_t n);

/* ---- steps ---- */

/* A model whose graph is `whole` (an encoder, one that embeds) takes a sequence whole in one step,
 * and what it stores of it is F32 whatever kv_type says. A step takes as many tokens as the
 * context, at most 8,192, unless step_tokens says another number. */

struct engine_item {
    struct seq *seq;      /* each sequence at most once a step */
    const int32_t *id;    /* [n] tokens that follow the sequence's */
    uint32_t n;
    uint32_t logits;      /* rows wanted: of the last `logits` tokens */
};

/* Would the KV memory hold these now? */
bool engine_fits(const struct engine *engine, const struct engine_item *item, uint32_t items);

/* Appends each item's tokens to its sequence. logits: rows [sum of item.logits, vocab] in order of
 * the items, valid until the next step; an encoder's are its last states, [.., width]. On an error
 * no sequence has changed: OB_ERR_LIMIT if the KV memory is full or a sequence would pass the
 * context, or is not whole in this step where the model's graph wants it; OB_ERR_ARGUMENT
 * for an id outside the vocabulary. After an error of the device sequences are as seq_truncate
 * leaves them. */
ob_status engine_step(struct engine *engine, const struct engine_item *item, uint32_t items,
                      const float **logits, ob_error *error);

/* What the last step said about its items, a row each, in their order, as valid as its logits:
 * embeddings [model_embedding_cols], and what a head of the model gives (a pooler, a classifier).
 * NULL where the model has none. */
const float *engine_embedding(const struct engine *engine);
const float *engine_pooled(const struct engine *engine, uint32_t *cols);

#endif
