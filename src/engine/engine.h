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
/* Forgets positions from n on. False if the window caches no longer hold what position n needs: the
 * sequence is then empty. */
bool seq_truncate(struct seq *seq, uint32_t n);

/* ---- steps ---- */

struct engine_item {
    struct seq *seq;      /* each sequence at most once a step */
    const int32_t *id;    /* [n] tokens that follow the sequence's */
    uint32_t n;
    uint32_t logits;      /* rows wanted: of the last `logits` tokens */
};

/* Would the KV memory hold these now? */
bool engine_fits(const struct engine *engine, const struct engine_item *item, uint32_t items);

/* Appends each item's tokens to its sequence. logits: rows [sum of item.logits, vocab] in order of
 * the items, valid until the next step. On an error no sequence has changed: OB_ERR_LIMIT if the KV
 * memory is full or a sequence would pass the context, OB_ERR_ARGUMENT for an id outside the
 * vocabulary. */
ob_status engine_step(struct engine *engine, const struct engine_item *item, uint32_t items,
                      const float **logits, ob_error *error);

#endif
