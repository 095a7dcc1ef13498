/* SPDX-License-Identifier: Apache-2.0
 * embed.c: ob_embed of onebit.h: texts in order, as many a step as it holds. Each step is a job of
 * its own on the owner thread, so that callers take turns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "decode/decode.h"

struct embed {
    const ob_tokens *text;
    size_t n, done;
    struct engine_item *item; /* [parallel] */
    float *out;
};

static ob_status check(const struct engine *engine, const ob_tokens *text, size_t n,
                       ob_error *error) {
    uint32_t most = engine_context(engine);
    if (most > engine_step_tokens(engine)) most = engine_step_tokens(engine);
    if (!model_embedding_cols(engine_model(engine)))
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "this model (%s) does not embed texts: its files do not say how",
                         model_family(engine_model(engine)));
    for (size_t i = 0; i < n; i++) {
        if (text[i].n == 0)
            return error_set(error, OB_ERR_ARGUMENT, "text %zu has no tokens", i);
        if (text[i].n > most)
            return error_set(error, OB_ERR_LIMIT, "text %zu has %zu tokens, the model reads %u", i,
                             text[i].n, most);
    }
    return OB_OK;
}

/* The texts of the next step; one at least, which the KV memory always holds. */
static ob_status collect(struct engine *engine, struct embed *e, uint32_t *items,
                         ob_error *error) {
    uint32_t room = engine_step_tokens(engine);
    for (*items = 0; *items < engine_parallel(engine) && e->done + *items < e->n; ++*items) {
        const ob_tokens *text = &e->text[e->done + *items];
        struct engine_item *item = &e->item[*items];
        *item = (struct engine_item){.id = text->id, .n = (uint32_t)text->n};
        if (item->n > room) break;
        item->seq = seq_new(engine);
        if (!item->seq) return error_memory(error, "a sequence", 0);
        seq_admit(item->seq, item->n);
        if (*items > 0 && !engine_fits(engine, e->item, *items + 1)) {
            seq_free(&item->seq);
            break;
        }
        room -= item->n;
    }
    return OB_OK;
}

static ob_status step(struct engine *engine, void *arg, ob_error *error) {
    struct embed *e = arg;
    size_t cols = model_embedding_cols(engine_model(engine));
    const float *logits;
    uint32_t items;
    ob_status s = collect(engine, e, &items, error);
    if (s == OB_OK) s = engine_step(engine, e->item, items, &logits, error);
    float *out = e->out + e->done * cols;
    if (s == OB_OK) memcpy(out, engine_embedding(engine), items * cols * sizeof *out);
    for (size_t i = 0; s == OB_OK && i < items * cols; i++)
        if (!isfinite(out[i]))
            s = error_set(error, OB_ERR_NUMERIC, "the vector of text %zu is not finite",
                          e->done + i / cols);
    for (uint32_t i = 0; i < items; i++) seq_free(&e->item[i].seq);
    e->done += items;
    return s;
}

ob_status embed(struct loop *loop, struct engine *engine, const ob_tokens *text, size_t n,
                float *out, ob_error *error) {
    ob_status s = check(engine, text, n, error);
    if (s != OB_OK) return s;
    struct embed e = {.text = text, .n = n, .out = out};
    e.item = calloc(engine_parallel(engine), sizeof *e.item);
    if (!e.item) return error_memory(error, "a step", engine_parallel(engine));
    while (s == OB_OK && e.done < n) s = loop_between(loop, step, &e, error);
    free(e.item);
    return s;
}
