/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.c: sequences advanced by hand: what eval and bench measure with. Everything that touches
 * the engine runs on the owner thread, a whole run as one job, so that rows stay valid while the
 * caller's function reads them. */
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "decode/decode.h"

struct ob_batch {
    struct loop *loop;
    struct engine *engine;
    uint32_t sequences;
    struct seq **seq;         /* [sequences] */
    struct engine_item *item; /* [sequences]: one step */
    uint32_t *of;             /* [sequences]: the part behind each item */
    size_t *done;             /* [sequences]: tokens of each part already computed */
};

/* ---- on the owner thread --------------------------------------------------------------------- */

static ob_status free_seqs(struct engine *engine, void *arg, ob_error *error) {
    ob_batch *b = arg;
    (void)engine, (void)error;
    for (uint32_t i = 0; i < b->sequences; i++) seq_free(&b->seq[i]);
    return OB_OK;
}

static ob_status new_seqs(struct engine *engine, void *arg, ob_error *error) {
    ob_batch *b = arg;
    for (uint32_t i = 0; i < b->sequences; i++)
        if (!(b->seq[i] = seq_new(engine))) return error_memory(error, "a sequence", 0);
    return OB_OK;
}

struct run {
    ob_batch *batch;
    const ob_batch_part *part;
    uint32_t parts, chunk;
    ob_batch_rows on_rows;
    void *user;
    double seconds;
};

/* Tokens of a part that a step with room for `tokens` and `rows` takes now: as many as its wanted
 * rows allow. */
static uint32_t share(const ob_batch_part *p, size_t done, uint32_t tokens, uint32_t rows) {
    size_t n = p->n - done, silent = p->n - p->logits;
    size_t without = silent > done ? silent - done : 0; /* tokens before the first wanted row */
    if (n > without + rows) n = without + rows;
    return n < tokens ? (uint32_t)n : tokens;
}

static uint32_t rows_of(const ob_batch_part *p, size_t done, uint32_t n) {
    size_t silent = p->n - p->logits, end = done + n;
    if (end <= silent) return 0;
    return (uint32_t)(end - (silent > done ? silent : done));
}

/* The next step: parts in order, each as far as there is room. */
static uint32_t collect(const struct run *r) {
    ob_batch *b = r->batch;
    uint32_t items = 0, tokens = engine_step_tokens(b->engine),
             rows = engine_step_logits(b->engine);
    for (uint32_t i = 0; i < r->parts && tokens && items < engine_parallel(b->engine); i++) {
        const ob_batch_part *p = &r->part[i];
        uint32_t most = r->chunk && r->chunk < tokens ? r->chunk : tokens;
        uint32_t n = share(p, b->done[i], most, rows);
        if (n == 0) continue;
        struct engine_item *item = &b->item[items];
        *item = (struct engine_item){.seq = b->seq[p->sequence],
                                     .id = p->id + b->done[i],
                                     .n = n,
                                     .logits = rows_of(p, b->done[i], n)};
        b->of[items++] = i;
        tokens -= n;
        rows -= item->logits;
    }
    return items;
}

static ob_status advance(struct engine *engine, void *arg, ob_error *error) {
    struct run *r = arg;
    ob_batch *b = r->batch;
    size_t vocab = engine_model(engine)->hp.vocab;
    for (uint32_t i = 0; i < r->parts; i++) b->done[i] = 0;
    for (uint32_t items; (items = collect(r)) > 0;) {
        const float *rows = NULL;
        double start = os_seconds();
        ob_status s = engine_step(engine, b->item, items, &rows, error);
        r->seconds += os_seconds() - start;
        if (s != OB_OK) return s;
        for (uint32_t i = 0; i < items; i++) {
            const struct engine_item *item = &b->item[i];
            const ob_batch_part *p = &r->part[b->of[i]];
            size_t end = b->done[b->of[i]] += item->n;
            if (!item->logits) continue;
            size_t first = end - item->logits - (p->n - p->logits);
            s = r->on_rows ? r->on_rows(r->user, b->of[i], first, item->logits, rows, error)
                           : OB_OK;
            if (s != OB_OK) return s;
            rows += item->logits * vocab;
        }
    }
    return OB_OK;
}

struct keep {
    ob_batch *batch;
    uint32_t sequence, n;
};

static ob_status keep(struct engine *engine, void *arg, ob_error *error) {
    struct keep *k = arg;
    struct seq *seq = k->batch->seq[k->sequence];
    (void)engine, (void)error;
    k->n = seq_truncate(seq, k->n);
    return OB_OK;
}

/* ---- callers --------------------------------------------------------------------------------- */

ob_status batch_open(struct loop *loop, struct engine *engine, uint32_t sequences, ob_batch **out,
                     ob_error *error) {
    *out = NULL;
    ob_status can = decode_need_writer(engine, error);
    if (can != OB_OK) return can;
    if (sequences == 0 || sequences > engine_parallel(engine))
        return error_set(error, OB_ERR_ARGUMENT, "a batch has 1 to %u sequences, not %u",
                         engine_parallel(engine), sequences);
    ob_batch *b = calloc(1, sizeof *b);
    if (!b) return error_memory(error, "a batch", sizeof *b);
    *b = (ob_batch){.loop = loop,
                    .engine = engine,
                    .sequences = sequences,
                    .seq = calloc(sequences, sizeof(struct seq *)),
                    .item = calloc(sequences, sizeof *b->item),
                    .of = calloc(sequences, sizeof *b->of),
                    .done = calloc(sequences, sizeof *b->done)};
    ob_status s = OB_OK;
    if (!b->seq || !b->item || !b->of || !b->done) {
        b->sequences = 0;
        s = error_memory(error, "a batch", sequences * sizeof *b->item);
    }
    if (s == OB_OK) s = loop_exclusive(loop, new_seqs, b, error);
    if (s != OB_OK) batch_close(&b);
    *out = b;
    return s;
}

void batch_close(ob_batch **batch) {
    ob_batch *b = *batch;
    if (!b) return;
    loop_between(b->loop, free_seqs, b, NULL);
    free(b->seq);
    free(b->item);
    free(b->of);
    free(b->done);
    free(b);
    *batch = NULL;
}

static ob_status check(const ob_batch *b, const ob_batch_part *part, uint32_t parts,
                       ob_error *error) {
    if (parts > b->sequences)
        return error_set(error, OB_ERR_ARGUMENT, "%u parts for %u sequences", parts, b->sequences);
    for (uint32_t i = 0; i < parts; i++) {
        const ob_batch_part *p = &part[i];
        if (p->sequence >= b->sequences || !p->id || p->n == 0 || p->logits > p->n)
            return error_set(error, OB_ERR_ARGUMENT,
                             "part %u: no such sequence, no tokens, or more rows than tokens", i);
        for (uint32_t k = 0; k < i; k++)
            if (part[k].sequence == p->sequence)
                return error_set(error, OB_ERR_ARGUMENT, "two parts for sequence %u", p->sequence);
    }
    return OB_OK;
}

ob_status batch_run(ob_batch *b, const ob_batch_part *part, uint32_t parts, uint32_t chunk,
                    ob_batch_rows on_rows, void *user, double *seconds, ob_error *error) {
    struct run r = {b, part, parts, chunk, on_rows, user, 0};
    ob_status s = check(b, part, parts, error);
    if (s == OB_OK) s = loop_exclusive(b->loop, advance, &r, error);
    if (seconds) *seconds = r.seconds;
    return s;
}

uint32_t batch_keep(ob_batch *b, uint32_t sequence, uint32_t n) {
    struct keep k = {b, sequence, n};
    if (sequence >= b->sequences) return 0;
    loop_between(b->loop, keep, &k, NULL);
    return k.n;
}
