/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.c: the owner thread; see decode.h. Shared under `lock`: inbox, job, closing, and each
 * request's `done`. Everything else is the owner thread's alone.
 *
 * Memory of the loop itself lives until the last request is released (`refs`), so that requests may
 * outlive the engine. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "decode/request.h"
#include "decode/vocab.h"

/* A sequence whose request has ended, kept for a later one with the same beginning. */
struct idle {
    struct seq *seq;
    int32_t *token; /* seq_length(seq) of them, owned */
    uint64_t used;  /* clock of the last use */
};

struct job {
    ob_status (*fn)(struct engine *, void *, ob_error *);
    void *arg;
    ob_error *error;
    ob_status status;
    bool exclusive; /* only when nothing runs, and with the idle sequences given back */
    bool done;
};

struct list {
    struct ob_request *first;
    uint32_t n;
};

struct loop {
    struct engine *engine;
    const struct tok *tok;
    const struct chat_format *format; /* of the model's chat template; NULL: there is none */
    const struct chat_thought *style;
    atomic_uint refs;
    os_thread thread;
    os_mutex lock;
    os_cond work, finished;
    struct list inbox;
    struct job *job;
    bool closing;
    os_mutex grammars_lock;
    struct grammar_vocab *grammars; /* under that; NULL: no request had a grammar yet */
    struct sample_vocab vocab;      /* what it was made of */
    /* the owner thread's */
    struct list waiting, running; /* running: oldest first */
    struct idle *idle;            /* [parallel] */
    uint32_t idles;
    uint64_t clock;
    struct engine_item *item; /* [parallel] */
    struct ob_request **of_item;
};

/* ---- lists ----------------------------------------------------------------------------------- */

static void push_back(struct list *list, struct ob_request *r) {
    struct ob_request **at = &list->first;
    while (*at) at = &(*at)->next;
    r->next = NULL;
    *at = r;
    list->n++;
}

static void push_front(struct list *list, struct ob_request *r) {
    r->next = list->first;
    list->first = r;
    list->n++;
}

static void take_out(struct list *list, struct ob_request *r) {
    struct ob_request **at = &list->first;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    list->n--;
}

static struct ob_request *last_of(const struct list *list) {
    struct ob_request *r = list->first;
    while (r && r->next) r = r->next;
    return r;
}

/* ---- idle sequences -------------------------------------------------------------------------- */

static void idle_drop(struct loop *loop, uint32_t i) {
    seq_free(&loop->idle[i].seq);
    free(loop->idle[i].token);
    loop->idle[i] = loop->idle[--loop->idles];
}

static bool idle_drop_oldest(struct loop *loop) {
    uint32_t oldest = 0;
    if (loop->idles == 0) return false;
    for (uint32_t i = 1; i < loop->idles; i++)
        if (loop->idle[i].used < loop->idle[oldest].used) oldest = i;
    idle_drop(loop, oldest);
    return true;
}

/* The request's sequence and tokens become an idle entry. */
static void idle_keep(struct loop *loop, struct ob_request *r) {
    if (!r->seq) return;
    if (seq_length(r->seq) == 0) {
        seq_free(&r->seq);
        return;
    }
    if (loop->idles == engine_parallel(loop->engine)) idle_drop_oldest(loop);
    loop->idle[loop->idles++] =
        (struct idle){.seq = r->seq, .token = r->token, .used = ++loop->clock};
    r->seq = NULL;
    r->token = NULL;
    r->tokens = r->token_cap = 0;
}

/* Tokens of the request that the sequence holds and can be cut back to. */
static uint32_t common(const struct idle *idle, const struct ob_request *r) {
    uint32_t n = seq_length(idle->seq), i = 0;
    if (n > r->tokens - 1)
        n = r->tokens - 1; /* one token at least is computed: it gives the logits */
    while (i < n && idle->token[i] == r->token[i]) i++;
    return seq_kept(idle->seq, i);
}

/* A sequence that already holds the beginning of the request's tokens. Taking one cuts off what it
 * holds beyond, so it is only taken when that is the smaller part or no new entry would fit. */
static struct seq *idle_take(struct loop *loop, const struct ob_request *r) {
    uint32_t best = 0, best_n = 0;
    for (uint32_t i = 0; i < loop->idles; i++) {
        uint32_t n = common(&loop->idle[i], r);
        bool mostly = n >= seq_length(loop->idle[i].seq) - n;
        if (n > best_n && (mostly || loop->idles == engine_parallel(loop->engine)))
            best = i, best_n = n;
    }
    if (best_n == 0) return NULL;
    struct seq *seq = loop->idle[best].seq;
    free(loop->idle[best].token);
    loop->idle[best] = loop->idle[--loop->idles];
    seq_truncate(seq, best_n); /* what is missing is computed again with the rest */
    return seq;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void unref(struct loop *loop) {
    if (atomic_fetch_sub(&loop->refs, 1) != 1) return;
    os_cond_free(&loop->finished);
    os_cond_free(&loop->work);
    os_mutex_free(&loop->lock);
    os_mutex_free(&loop->grammars_lock);
    if (loop->grammars) grammar_vocab_close(&loop->grammars);
    free(loop->item);
    free(loop->of_item);
    free(loop->idle);
    free(loop);
}

/* After the last event: nothing of the engine stays with the request. */
static void settle(struct loop *loop, struct ob_request *r) {
    idle_keep(loop, r);
    os_lock(&loop->lock);
    r->done = true;
    os_broadcast(&loop->finished);
    os_unlock(&loop->lock);
}

static void finish(struct loop *loop, struct list *list, struct ob_request *r, ob_finish why,
                   const ob_error *error) {
    take_out(list, r);
    request_finish(r, why, error);
    settle(loop, r);
}

static void cancel_wanted(struct loop *loop, struct list *list) {
    for (struct ob_request *r = list->first, *next; r; r = next) {
        next = r->next;
        if (atomic_load(&r->cancel)) finish(loop, list, r, OB_FINISH_CANCEL, NULL);
    }
}

static void admit(struct loop *loop) {
    while (loop->waiting.first && loop->running.n < engine_parallel(loop->engine)) {
        struct ob_request *r = loop->waiting.first;
        r->seq = idle_take(loop, r);
        if (!r->seq) r->seq = seq_new(loop->engine);
        if (!r->seq) {
            ob_error error;
            error_memory(&error, "a sequence", 0);
            finish(loop, &loop->waiting, r, OB_FINISH_ERROR, &error);
            continue;
        }
        seq_admit(r->seq, r->prompt_n + r->max_tokens);
        if (!r->started) { /* a preempted request keeps its first figures */
            r->timings.cache_n = seq_length(r->seq);
            r->timings.prompt_n = r->prompt_n - r->timings.cache_n;
            r->started = true;
        }
        take_out(&loop->waiting, r);
        push_back(&loop->running, r);
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void add_item(struct loop *loop, uint32_t *items, struct ob_request *r, uint32_t n) {
    uint32_t at = seq_length(r->seq);
    loop->of_item[*items] = r;
    loop->item[(*items)++] = (struct engine_item){
        .seq = r->seq, .id = r->token + at, .n = n, .logits = at + n == r->tokens};
}

/* One token of everyone who is generating, then prompt tokens, oldest request first. */
static uint32_t collect(struct loop *loop) {
    uint32_t items = 0, room = engine_step_tokens(loop->engine);
    for (int prompts = 0; prompts < 2; prompts++)
        for (struct ob_request *r = loop->running.first; r && room; r = r->next) {
            uint32_t pending = r->tokens - seq_length(r->seq);
            if ((pending > 1) != prompts) continue;
            uint32_t n = pending < room ? pending : room;
            add_item(loop, &items, r, n);
            room -= n;
        }
    return items;
}

static void preempt(struct loop *loop, struct ob_request *r) {
    take_out(&loop->running, r);
    seq_free(&r->seq);
    push_front(&loop->waiting, r);
}

/* Items that the KV memory holds, after giving back what can be. The oldest running request alone
 * always fits: no sequence is longer than the capacity. */
static uint32_t collect_fitting(struct loop *loop) {
    uint32_t items;
    while ((items = collect(loop)) && !engine_fits(loop->engine, loop->item, items))
        if (!idle_drop_oldest(loop)) {
            if (loop->running.n == 1) break; /* engine_step says what is wrong */
            preempt(loop, last_of(&loop->running));
        }
    return items;
}

static void step(struct loop *loop) {
    ob_error error;
    const float *logits;
    uint32_t items = collect_fitting(loop);
    if (items == 0) return;
    ob_status s = engine_step(loop->engine, loop->item, items, &logits, &error);
    for (uint32_t i = 0; i < items; i++) {
        struct ob_request *r = loop->of_item[i];
        if (s != OB_OK) {
            finish(loop, &loop->running, r, OB_FINISH_ERROR, &error);
            continue;
        }
        if (!loop->item[i].logits) continue;
        ob_finish why = request_token(r, loop->engine, loop->tok, logits);
        logits += engine_model(loop->engine)->hp.vocab;
        if (why != OB_FINISH_NONE) {
            take_out(&loop->running, r);
            settle(loop, r);
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void run_job(struct loop *loop) {
    struct job *job = loop->job;
    os_unlock(&loop->lock);
    if (job->exclusive && (loop->running.n || loop->waiting.n)) {
        job->status = error_set(job->error, OB_ERR_BUSY, "requests are running");
    } else {
        while (job->exclusive && idle_drop_oldest(loop)) {
        }
        job->status = job->fn(loop->engine, job->arg, job->error);
    }
    os_lock(&loop->lock);
    job->done = true;
    loop->job = NULL;
    os_broadcast(&loop->finished);
}

static void *loop_main(void *arg) {
    struct loop *loop = arg;
    os_lock(&loop->lock);
    for (;;) {
        while (loop->inbox.first) {
            struct ob_request *r = loop->inbox.first;
            take_out(&loop->inbox, r);
            push_back(&loop->waiting, r);
        }
        if (loop->job) {
            run_job(loop);
            continue;
        }
        bool busy = loop->running.n || loop->waiting.n;
        if (loop->closing) break;
        if (!busy) {
            os_wait(&loop->work, &loop->lock);
            continue;
        }
        os_unlock(&loop->lock);
        cancel_wanted(loop, &loop->waiting);
        cancel_wanted(loop, &loop->running);
        admit(loop);
        step(loop);
        os_lock(&loop->lock);
    }
    os_unlock(&loop->lock);
    while (loop->running.first)
        finish(loop, &loop->running, loop->running.first, OB_FINISH_CANCEL, NULL);
    while (loop->waiting.first)
        finish(loop, &loop->waiting, loop->waiting.first, OB_FINISH_CANCEL, NULL);
    while (idle_drop_oldest(loop)) {
    }
    return NULL;
}

/* ---- callers --------------------------------------------------------------------------------- */

ob_status loop_open(struct engine *engine, const struct tok *tok, struct loop **out,
                    ob_error *error) {
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop) return error_memory(error, "the loop", sizeof *loop);
    uint32_t parallel = engine_parallel(engine);
    *loop = (struct loop){.engine = engine,
                          .tok = tok,
                          .refs = 1,
                          .idle = calloc(parallel, sizeof *loop->idle),
                          .item = calloc(parallel, sizeof *loop->item),
                          .of_item = calloc(parallel, sizeof(struct ob_request *))};
    if (tok) /* tests of steps alone have none */
        loop->vocab = vocab_of(tok, engine_model(engine)->hp.vocab, engine_context(engine));
    os_mutex_init(&loop->lock);
    os_mutex_init(&loop->grammars_lock);
    os_cond_init(&loop->work);
    os_cond_init(&loop->finished);
    ob_status s = OB_OK;
    if (!loop->idle || !loop->item || !loop->of_item)
        s = error_memory(error, "the loop", parallel);
    else if (!os_thread_start(&loop->thread, loop_main, loop))
        s = error_set(error, OB_ERR_MEMORY, "cannot start a thread");
    if (s != OB_OK) {
        unref(loop);
        loop = NULL;
    }
    *out = loop;
    return s;
}

void loop_set_chat(struct loop *loop, const struct chat_format *format,
                   const struct chat_thought *style) {
    loop->format = format;
    loop->style = style;
}

void loop_close(struct loop **p) {
    struct loop *loop = *p;
    if (!loop) return;
    os_lock(&loop->lock);
    loop->closing = true;
    os_signal(&loop->work);
    os_unlock(&loop->lock);
    os_thread_join(&loop->thread);
    unref(loop);
    *p = NULL;
}

ob_status loop_submit(struct loop *loop, const ob_request_options *options, ob_request **out,
                      ob_error *error) {
    ob_error here;
    here.status = OB_OK;
    struct ob_request *r = request_new(loop, loop->engine, loop->tok, loop->format,
                                       loop->style, options, &here);
    if (!r) {
        if (error) *error = here;
        return here.status;
    }
    atomic_fetch_add(&loop->refs, 1);
    *out = r;
    os_lock(&loop->lock);
    push_back(&loop->inbox, r);
    os_signal(&loop->work);
    os_unlock(&loop->lock);
    return OB_OK;
}

ob_status loop_grammars(struct loop *loop, struct grammar_vocab **out, ob_error *error) {
    ob_status s = OB_OK;
    os_lock(&loop->grammars_lock);
    if (!loop->grammars) s = grammar_vocab_open(&loop->vocab, &loop->grammars, error);
    *out = loop->grammars;
    os_unlock(&loop->grammars_lock);
    return s;
}

const struct sample_vocab *loop_vocab(const struct loop *loop) { return &loop->vocab; }

void loop_cancel(ob_request *r) { atomic_store(&r->cancel, true); }

void loop_release(ob_request **p) {
    struct ob_request *r = *p;
    if (!r) return;
    struct loop *loop = r->loop;
    os_lock(&loop->lock);
    while (!r->done) os_wait(&loop->finished, &loop->lock);
    os_unlock(&loop->lock);
    request_free(r);
    unref(loop);
    *p = NULL;
}

static ob_status have_run(struct loop *loop, struct job job) {
    os_lock(&loop->lock);
    while (loop->job) os_wait(&loop->finished, &loop->lock);
    loop->job = &job;
    os_signal(&loop->work);
    while (!job.done) os_wait(&loop->finished, &loop->lock);
    os_unlock(&loop->lock);
    return job.status;
}

ob_status loop_exclusive(struct loop *loop, ob_status (*fn)(struct engine *, void *, ob_error *),
                         void *arg, ob_error *error) {
    return have_run(loop,
                    (struct job){.fn = fn, .arg = arg, .error = error, .exclusive = true});
}

ob_status loop_between(struct loop *loop, ob_status (*fn)(struct engine *, void *, ob_error *),
                       void *arg, ob_error *error) {
    return have_run(loop, (struct job){.fn = fn, .arg = arg, .error = error});
}
