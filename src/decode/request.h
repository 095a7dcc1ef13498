/* SPDX-License-Identifier: Apache-2.0
 *
 * request.h: one request's state between the loop's files. Everything is the owner thread's but
 * `cancel` (any thread) and `done` (under the loop's lock).
 *
 *   submitted --> waiting --> running --> finished
 *                    ^           |
 *                    +-----------+  preempted: pages given back, tokens kept
 */
#ifndef DECODE_REQUEST_H
#define DECODE_REQUEST_H

#include <stdatomic.h>

#include "decode/budget.h"
#include "decode/constraint.h"
#include "decode/decode.h"
#include "decode/stop.h"
#include "sample/sample.h"

struct ob_request {
    struct loop *loop;
    struct ob_request *next; /* in one of the loop's lists */
    int32_t *token;          /* prompt, then what was generated */
    uint32_t tokens, token_cap, prompt_n, max_tokens;
    int32_t priority;        /* lower: more urgent */
    struct seq *seq;         /* NULL while waiting; holds token[0..seq_length) */
    struct sample_vocab vocab;
    struct sample_chain *chain;
    struct constraint *constraint; /* NULL: any text */
    bool logprobs, logprobs_after;
    ob_logprob *top;         /* [top_logprobs] of one event */
    uint32_t top_logprobs;
    struct stop *stop;
    const struct chat_format *format; /* whose control tokens are text; both NULL: none */
    const struct chat_thought *style;
    struct budget *budget;   /* of its reasoning; NULL: none */
    struct tok_stream stream;
    struct buf raw, text;    /* of one event */
    void (*on_event)(void *, const ob_event *);
    void *user;
    bool ignore_eos, started, timed;
    double start_time, first_time;
    ob_timings timings;
    atomic_bool cancel;
    bool done;               /* the last event was delivered */
};

/* NULL on error. format and style may be NULL. */
struct ob_request *request_new(struct loop *loop, struct engine *engine, const struct tok *tok,
                               const struct chat_format *format, const struct chat_thought *style,
                               const ob_request_options *options, ob_error *error);
void request_free(struct ob_request *r);

/* Takes the row of logits after the last token: samples, appends, emits. Returns the finish reason
 * if this was the last token (its event has then been delivered). */
ob_finish request_token(struct ob_request *r, struct engine *engine, const struct tok *tok,
                        const float *logits);
/* Delivers the last event with the text still held. */
void request_finish(struct ob_request *r, ob_finish why, const ob_error *error);

#endif
