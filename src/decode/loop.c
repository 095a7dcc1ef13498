/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.c: the owner thread; see decode.h. Shared under `lock`: inbox, open, job, closing, and each
 * request's `done`. Everything else is the owner thread's alone.
 *
 * Memory of the loop itself lives until the last request is released (`refs`), so that requests may
 * outlive the engine. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "decode/pace.h"
#include "decode/prefixes.h"
#include "decode/request.h"
#include "decode/vocab.h"

enum {
    PREFIXES = 256,     /* ended sequences at most; the KV memory is what limits them */
    WORTH_WAITING = 16, /* tokens that another request is about to compute */
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
    uint32_t open;  /* requests that are not done */
    uint32_t queue; /* that may wait; 0: any number */
    struct job *job;
    bool closing;
    os_mutex grammars_lock;
    struct grammar_vocab *grammars; /* under that; NULL: no request had a grammar yet */
    struct sample_vocab vocab;      /* what it was made of */
    /* the owner thread's */
    struct list waiting, running; /* running: oldest first */
    struct prefixes prefixes;     /* sequences of requests that have ended */
    struct pace pace;
    struct engine_item *item; /* [parallel] */
    struct ob_request **of_item;
};

/* ---- lists ----------------------------------------------------------------------------------- */

static void push_at(struct list *list, struct ob_request **at, struct ob_request *r) {
    r->next = *at;
    *at = r;
    list->n++;
}

static void push_back(struct list *list, struct ob_request *r) {
    struct ob_request **at = &list->first;
    while (*at) at = &(*at)->next;
    push_at(list, at, r);
}

/* Behind all that are more urgent, and behind those as urgent unless it is `first` of them. */
static void push_urgent(struct list *list, struct ob_request *r, bool first) {
    struct ob_request **at = &list->first;
    while (*at && ((*at)->priority < r->priority || (!first && (*at)->priority == r->priority)))
        at = &(*at)->next;
    push_at(list, at, r);
}

static void take_out(struct list *list, struct ob_request *r) {
    struct ob_request **at = &list->first;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    list->n--;
}

/* The one that gives way: the last of the least urgent. */
static struct ob_request *last_of(const struct list *list) {
    struct ob_request *last = list->first;
    for (struct ob_request *r = last; r; r = r->next)
        if (r->priority >= last->priority) last = r;
    return last;
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
    free(loop);
}

/* The request's sequence and tokens stay for others. */
static void keep(struct loop *loop, struct ob_request *r) {
    if (!r->seq) return;
    prefixes_keep(&loop->prefixes, r->seq, r->token);
    r->seq = NULL;
    r->token = NULL;
    r->tokens = r->token_cap = 0;
}

/* After the last event: nothing of the engine stays with the request. */
static void settle(struct loop *loop, struct ob_request *r) {
    keep(loop, r);
    os_lock(&loop->lock);
    r->done = true;
    loop->open--;
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

/* What there is of a request's beginning. */
struct found {
    uint32_t entry, held;         /* of loop.prefixes, and tokens it gives */
    struct ob_request *running;   /* one that holds more, or NULL */
    uint32_t running_held;
    bool comes;                   /* one that runs is about to compute more of it */
};

static struct found find(const struct loop *loop, const struct ob_request *r) {
    uint32_t n = r->tokens - 1; /* one token at least is computed: it gives the logits */
    struct found f = {0};
    f.entry = prefixes_find(&loop->prefixes, r->token, n, &f.held);
    f.running_held = f.held;
    uint32_t most = 0;
    for (struct ob_request *o = loop->running.first; o; o = o->next) {
        uint32_t common = prefix_common(o->token, o->tokens, r->token, n);
        uint32_t length = seq_length(o->seq);
        uint32_t held = seq_kept(o->seq, common < length ? common : length);
        if (common > length && common > most) most = common;
        if (held > f.running_held) f.running = o, f.running_held = held;
    }
    f.comes = most >= f.running_held + WORTH_WAITING;
    return f;
}

/* A sequence that holds what there is. */
static struct seq *begin(struct loop *loop, const struct found *f) {
    struct seq *seq = f->running ? seq_fork(f->running->seq, f->running_held) : NULL;
    if (!seq && f->held) seq = prefixes_use(&loop->prefixes, f->entry, f->held);
    return seq ? seq : seq_new(loop->engine);
}

/* Requests that wait, but for those whose beginning another one is computing. */
static void admit(struct loop *loop) {
    for (struct ob_request *r = loop->waiting.first, *next; r; r = next) {
        next = r->next;
        if (loop->running.n == engine_parallel(loop->engine)) return;
        struct found found = find(loop, r);
        if (found.comes) continue;
        r->seq = begin(loop, &found);
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

static uint32_t pending(const struct ob_request *r) { return r->tokens - seq_length(r->seq); }

/* Prompts in turn: the more urgent first, else the one with the least left to do, its time waited
 * taken off, so that short ones pass long ones and nobody waits forever. */
static bool before(const struct loop *loop, const struct ob_request *a,
                   const struct ob_request *b) {
    if (a->priority != b->priority) return a->priority < b->priority;
    return pending(a) * loop->pace.token_s + a->start_time <
           pending(b) * loop->pace.token_s + b->start_time;
}

/* The prompt that comes behind `last` (NULL: the first) in that order. */
static struct ob_request *next_prompt(const struct loop *loop, const struct ob_request *last) {
    struct ob_request *best = NULL;
    bool passed = last == NULL; /* equals come in the list's order */
    for (struct ob_request *r = loop->running.first; r; r = r->next) {
        if (r == last) passed = true;
        if (r == last || pending(r) <= 1) continue;
        if (last && (passed ? before(loop, r, last) : !before(loop, last, r))) continue;
        if (!best || before(loop, r, best)) best = r;
    }
    return best;
}

/* One token of everyone who is generating, then prompt tokens as the pace allows. */
static uint32_t collect(struct loop *loop) {
    uint32_t items = 0, room = engine_step_tokens(loop->engine);
    for (struct ob_request *r = loop->running.first; r && room; r = r->next)
        if (pending(r) == 1) add_item(loop, &items, r, 1), room--;
    room = pace_room(&loop->pace, items, room);
    for (struct ob_request *r = NULL; room && (r = next_prompt(loop, r));) {
        uint32_t n = pending(r) < room ? pending(r) : room;
        add_item(loop, &items, r, n);
        room -= n;
    }
    return items;
}

static void preempt(struct loop *loop, struct ob_request *r) {
    take_out(&loop->running, r);
    seq_free(&r->seq);
    push_urgent(&loop->waiting, r, true);
}

/* Items that the KV memory holds, after giving back what can be. The oldest running request alone
 * always fits: no sequence is longer than the capacity. */
static uint32_t collect_fitting(struct loop *loop) {
    uint32_t items;
    while ((items = collect(loop)) && !engine_fits(loop->engine, loop->item, items))
        if (!prefixes_drop_oldest(&loop->prefixes)) {
            if (loop->running.n == 1) break; /* engine_step says what is wrong */
            preempt(loop, last_of(&loop->running));
        }
    return items;
}

static void learn(struct loop *loop, uint32_t items, double seconds) {
    uint32_t answers = 0, prompts = 0;
    for (uint32_t i = 0; i < items; i++)
        if (loop->item[i].n == 1) answers++;
        else prompts += loop->item[i].n;
    pace_took(&loop->pace, answers, prompts, seconds);
}

static void step(struct loop *loop) {
    ob_error error;
    const float *logits;
    uint32_t items = collect_fitting(loop);
    if (items == 0) return;
    double start = os_seconds();
    ob_status s = engine_step(loop->engine, loop->item, items, &logits, &error);
    learn(loop, items, os_seconds() - start);
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
        while (job->exclusive && prefixes_drop_oldest(&loop->prefixes)) {
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
            push_urgent(&loop->waiting, r, false);
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
    prefixes_close(&loop->prefixes);
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
                          .item = calloc(parallel, sizeof *loop->item),
                          .of_item = calloc(parallel, sizeof(struct ob_request *))};
    if (tok) /* tests of steps alone have none */
        loop->vocab = vocab_of(tok, engine_model(engine)->hp.vocab, engine_context(engine));
    os_mutex_init(&loop->lock);
    os_mutex_init(&loop->grammars_lock);
    os_cond_init(&loop->work);
    os_cond_init(&loop->finished);
    ob_status s = OB_OK;
    if (!loop->item || !loop->of_item || !prefixes_init(&loop->prefixes, PREFIXES))
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

void loop_set_queue(struct loop *loop, uint32_t requests) { loop->queue = requests; }

void loop_set_gap(struct loop *loop, double seconds) { loop->pace.gap = seconds; }

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
    uint32_t parallel = engine_parallel(loop->engine);
    os_lock(&loop->lock);
    bool full = loop->queue && loop->open >= parallel + loop->queue;
    if (!full) {
        atomic_fetch_add(&loop->refs, 1);
        *out = r;
        loop->open++;
        push_back(&loop->inbox, r);
        os_signal(&loop->work);
    }
    os_unlock(&loop->lock);
    if (!full) return OB_OK;
    request_free(r);
    return error_set(error, OB_ERR_BUSY, "%u requests run and %u wait: no more are taken now",
                     parallel, loop->queue);
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
