/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: face of decode/: the loop that serves requests on one engine. One owner thread runs
 * steps: every running request's next token first, then as many prompt tokens as the step has room
 * for and the gap between two tokens allows (pace.h). submit, cancel and release may be called from
 * any thread.
 *
 * A request begins with what any other, running or finished (prefixes.h), holds of its tokens, and
 * waits while one that runs is computing more of them. When the KV memory is full the finished
 * ones' go first, then the last of the least urgent running requests gives its pages back and is
 * computed again later: never lost. */
#ifndef DECODE_DECODE_H
#define DECODE_DECODE_H

#include "engine/engine.h"
#include "onebit.h"
#include "sample/grammar/grammar.h"
#include "text/chat_parse.h"
#include "text/tok.h"

struct loop;

struct ob_grammar {
    struct grammar *grammar;
};

/* Starts the owner thread; engine and tok must outlive the loop. */
ob_status loop_open(struct engine *engine, const struct tok *tok, struct loop **out,
                    ob_error *error);
/* How the model writes calls and reasoning, for requests with `markers` or `limit_reasoning`;
 * before the first request. Without it these do nothing. */
void loop_set_chat(struct loop *loop, const struct chat_format *format,
                   const struct chat_thought *style);
/* Requests that may wait, 0 = any number; before the first one. */
void loop_set_queue(struct loop *loop, uint32_t requests);
/* Seconds that running answers may have to wait for a next token while prompts are computed; before
 * the first request. 0, without it: no limit. */
void loop_set_gap(struct loop *loop, double seconds);
/* Cancels everything, joins the thread. Requests not yet released stay valid for ob_release. */
void loop_close(struct loop **loop);

ob_status loop_submit(struct loop *loop, const ob_request_options *options, ob_request **out,
                      ob_error *error);
void loop_cancel(ob_request *request);
void loop_release(ob_request **request);

/* The vocabulary as grammars and their readers see it; the first call makes it. It lives as long as
 * the loop and its requests. */
ob_status loop_grammars(struct loop *loop, struct grammar_vocab **out, ob_error *error);
const struct sample_vocab *loop_vocab(const struct loop *loop);

/* Runs fn on the owner thread with the engine to itself: nothing else runs meanwhile, and what
 * finished requests held has been given back. OB_ERR_BUSY if requests are running. */
ob_status loop_exclusive(struct loop *loop, ob_status (*fn)(struct engine *, void *, ob_error *),
                         void *arg, ob_error *error);
/* The same between two steps, whatever else runs. */
ob_status loop_between(struct loop *loop, ob_status (*fn)(struct engine *, void *, ob_error *),
                       void *arg, ob_error *error);

/* OB_ERR_UNSUPPORTED if the model writes no text: an encoder. */
ob_status decode_need_writer(const struct engine *engine, ob_error *error);

/* embed.c: ob_embed of onebit.h. */
ob_status embed(struct loop *loop, struct engine *engine, const ob_tokens *text, size_t n,
                float *out, ob_error *error);

/* ---- batch.c: ob_batch_* of onebit.h ---- */
ob_status batch_open(struct loop *loop, struct engine *engine, uint32_t sequences, ob_batch **out,
                     ob_error *error);
void batch_close(ob_batch **batch);
ob_status batch_run(ob_batch *batch, const ob_batch_part *part, uint32_t parts, uint32_t chunk,
                    ob_batch_rows on_rows, void *user, double *seconds, ob_error *error);
uint32_t batch_keep(ob_batch *batch, uint32_t sequence, uint32_t n);

#endif
