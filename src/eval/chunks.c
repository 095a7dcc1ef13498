/* SPDX-License-Identifier: Apache-2.0
 *
 * chunks.c: a text cut into chunks, and their rows of logits. Several chunks run together as
 * sequences of one batch: a step then takes the unscored tokens of one beside the rows of another,
 * and the rows are shared out to the threads of a pool. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "eval/eval.h"

enum { PARALLEL = 4, TOGETHER = 2048 }; /* chunks, and about how many tokens, that run together */

uint32_t eval_chunks_parallel(uint32_t ctx) {
    uint32_t n = ctx ? TOGETHER / ctx : PARALLEL;
    return n < 1 ? 1 : n > PARALLEL ? PARALLEL : n;
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* What the tokenizer puts before a text. */
static ob_status find_bos(const ob_engine *engine, int32_t *bos, ob_error *error) {
    ob_tokens plain = {0}, special = {0};
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    if (info.encoder)
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "this model (%s) reads texts and writes none: there is no perplexity",
                         info.family);
    *bos = -1;
    ob_status s = ob_tokenize(engine, "a", 1, false, false, &plain, error);
    if (s == OB_OK) s = ob_tokenize(engine, "a", 1, true, false, &special, error);
    if (s == OB_OK && special.n > plain.n) {
        if (special.n == plain.n + 1 && special.id[0] != plain.id[0])
            *bos = special.id[0];
        else
            s = error_set(
                error, OB_ERR_UNSUPPORTED,
                "this tokenizer adds tokens at the end of a text: there is no perplexity");
    }
    ob_tokens_free(&plain);
    ob_tokens_free(&special);
    return s;
}

ob_status eval_chunks_make(const ob_engine *engine, const char *text, size_t n, uint32_t ctx,
                           uint32_t stride, uint32_t chunks, struct eval_chunks *out,
                           ob_error *error) {
    ob_tokens tokens = {0};
    *out = (struct eval_chunks){.ctx = ctx, .stride = stride};
    if (ctx < EVAL_CTX_MIN || ctx > EVAL_CTX_MAX)
        return error_set(error, OB_ERR_ARGUMENT, "a chunk has %d to %d tokens, not %u",
                         EVAL_CTX_MIN, EVAL_CTX_MAX, ctx);
    if (stride >= ctx)
        return error_set(error, OB_ERR_ARGUMENT, "a stride of %u is not below the %u of a chunk",
                         stride, ctx);
    ob_status s = find_bos(engine, &out->bos, error);
    if (s == OB_OK) s = ob_tokenize(engine, text, n, true, false, &tokens, error);
    if (s != OB_OK) return s;
    out->id = tokens.id;
    out->n = tokens.n;
    out->rows = stride ? stride : ctx - 1 - ctx / 2;
    size_t all = stride ? (out->n < ctx ? 0 : (out->n - ctx) / stride + 1) : out->n / ctx;
    if (all == 0) {
        s = error_set(error, OB_ERR_LIMIT, "the text has %zu tokens, a chunk takes %u", out->n,
                      ctx);
        eval_chunks_free(out);
        return s;
    }
    if (all > UINT32_MAX) all = UINT32_MAX;
    out->chunks = chunks && chunks < all ? chunks : (uint32_t)all;
    return OB_OK;
}

void eval_chunks_free(struct eval_chunks *c) {
    free(c->id);
    *c = (struct eval_chunks){0};
}

static const int32_t *start_of(const struct eval_chunks *c, uint32_t chunk) {
    return c->id + (size_t)chunk * (c->stride ? c->stride : c->ctx);
}

/* A row's position in its chunk: the last scored one is that before the last token. */
static uint32_t place(const struct eval_chunks *c, uint32_t row) {
    return c->ctx - 1 - c->rows + row;
}

int32_t eval_chunks_target(const struct eval_chunks *c, uint32_t chunk, uint32_t row) {
    return start_of(c, chunk)[place(c, row) + 1];
}

/* ---- running --------------------------------------------------------------------------------- */

struct running {
    const struct eval_chunks *chunks;
    const struct eval_run *run;
    struct pool *pool;
    uint32_t vocab, first; /* the chunk of part 0 */
    /* the rows being shared out */
    const float *logits;
    uint32_t chunk, row;
    bool *finite; /* [rows] */
};

static void one_row(void *arg, uint32_t i, uint32_t thread) {
    struct running *r = arg;
    (void)thread;
    r->finite[i] =
        r->run->row(r->run->user, r->chunk, r->row + i, r->logits + (size_t)i * r->vocab);
}

static ob_status on_rows(void *user, uint32_t part, size_t first, size_t n, const float *logits,
                         ob_error *error) {
    struct running *r = user;
    r->logits = logits;
    r->chunk = r->first + part;
    r->row = (uint32_t)first;
    pool_run(r->pool, (uint32_t)n, one_row, r);
    for (uint32_t i = 0; i < n; i++)
        if (!r->finite[i])
            return error_set(error, OB_ERR_NUMERIC,
                             "the logits after token %u of chunk %u cannot be used: not finite",
                             place(r->chunks, r->row + i), r->chunk);
    return first + n == r->chunks->rows ? r->run->end(r->run->user, r->chunk, error) : OB_OK;
}

/* Computes n chunks from r->first on. ids: room for their tokens. */
static ob_status run_some(struct running *r, ob_batch *batch, uint32_t n, int32_t *ids,
                          ob_error *error) {
    const struct eval_chunks *c = r->chunks;
    ob_batch_part part[PARALLEL];
    for (uint32_t i = 0; i < n; i++) {
        int32_t *id = ids + (size_t)i * c->ctx;
        ob_status s = r->run->begin ? r->run->begin(r->run->user, r->first + i, error) : OB_OK;
        if (s != OB_OK) return s;
        memcpy(id, start_of(c, r->first + i), c->ctx * sizeof *id);
        if (c->bos >= 0) id[0] = c->bos;
        ob_batch_keep(batch, i, 0);
        /* The last token predicts nothing that is known. */
        part[i] = (ob_batch_part){.sequence = i, .id = id, .n = c->ctx - 1, .logits = c->rows};
    }
    return ob_batch_run(batch, part, n, 0, on_rows, r, NULL, error);
}

ob_status eval_chunks_run(ob_engine *engine, const struct eval_chunks *chunks, uint32_t first,
                          const struct eval_run *run, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    uint32_t parallel = eval_chunks_parallel(chunks->ctx);
    if (parallel > info.parallel) parallel = info.parallel;
    struct running r = {.chunks = chunks, .run = run, .vocab = info.vocab};
    ob_batch *batch = NULL;
    int32_t *ids = calloc((size_t)parallel * chunks->ctx + 1, sizeof *ids);
    r.finite = malloc(chunks->rows * sizeof *r.finite);
    r.pool = pool_new(info.threads, NULL);
    ob_status s = OB_OK;
    if (!ids || !r.finite || !r.pool) s = error_memory(error, "chunks", chunks->ctx);
    if (s == OB_OK) s = ob_batch_open(engine, parallel, &batch, error);
    for (r.first = first; s == OB_OK && r.first < chunks->chunks; r.first += parallel) {
        uint32_t left = chunks->chunks - r.first;
        s = run_some(&r, batch, left < parallel ? left : parallel, ids, error);
    }
    ob_batch_close(&batch);
    if (r.pool) pool_free(&r.pool);
    free(r.finite);
    free(ids);
    return s;
}
