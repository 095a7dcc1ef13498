/* SPDX-License-Identifier: Apache-2.0
 * request.c: from a row of logits to an event; see request.h. */
#include "decode/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "decode/vocab.h"

void request_free(struct ob_request *r) {
    if (!r) return;
    seq_free(&r->seq);
    sample_close(&r->chain);
    constraint_close(&r->constraint);
    stop_close(&r->stop);
    budget_close(&r->budget);
    tok_stream_free(&r->stream);
    buf_free(&r->raw);
    buf_free(&r->text);
    free(r->token);
    free(r->top);
    free(r);
}

ob_status decode_need_writer(const struct engine *engine, ob_error *error) {
    const struct model *model = engine_model(engine);
    if (model_generates(model)) return OB_OK;
    return error_set(error, OB_ERR_UNSUPPORTED,
                     "this model (%s) reads texts and writes none%s", model_family(model),
                     model_embedding_cols(model) ? ": it can only embed" : "");
}

static ob_status check(struct engine *engine, const ob_request_options *o, ob_error *error) {
    uint32_t context = engine_context(engine);
    ob_status s = decode_need_writer(engine, error);
    if (s != OB_OK) return s;
    if (!o->prompt || o->prompt_n == 0 || !o->on_event)
        return error_set(error, OB_ERR_ARGUMENT, "the prompt is empty");
    if (o->prompt_n >= context)
        return error_set(error, OB_ERR_LIMIT, "the prompt has %zu tokens, the context holds %u",
                         o->prompt_n, context);
    if (o->top_logprobs > OB_TOP_LOGPROBS) {
        error_set(error, OB_ERR_ARGUMENT, "must be at most %d, not %u", OB_TOP_LOGPROBS,
                  o->top_logprobs);
        error_at(error, NULL, "top_logprobs", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    for (size_t i = 0; i < o->prompt_n; i++)
        if ((uint32_t)o->prompt[i] >= engine_model(engine)->hp.vocab)
            return error_set(error, OB_ERR_ARGUMENT,
                             "prompt token %zu: id %d is not in the vocabulary", i,
                             (int)o->prompt[i]);
    return OB_OK;
}

/* The samplers, and what is told of them. */
static ob_status open_sampling(struct ob_request *r, const struct tok *tok, uint32_t vocab,
                               uint32_t context, const ob_request_options *o, ob_error *error) {
    r->logprobs = o->logprobs || o->logprobs_after;
    r->logprobs_after = o->logprobs_after;
    r->top_logprobs = r->logprobs ? o->top_logprobs : 0;
    r->top = r->top_logprobs ? malloc(r->top_logprobs * sizeof *r->top) : NULL;
    if (r->top_logprobs && !r->top) return error_memory(error, "log probabilities", 0);
    r->vocab = vocab_of(tok, vocab, context);
    return sample_open(&o->sampling, &r->vocab, &r->chain, error);
}

static ob_status open_constraint(struct ob_request *r, const ob_request_options *o,
                                 ob_error *error) {
    struct grammar_vocab *grammars;
    if (!o->grammar) return OB_OK;
    ob_status s = loop_grammars(r->loop, &grammars, error);
    return s == OB_OK ? constraint_open(o->grammar->grammar, o->grammar_after, loop_vocab(r->loop),
                                        grammars, &r->constraint, error) : s;
}

/* What is known of the model's markers. */
static ob_status open_chat(struct ob_request *r, const struct tok *tok,
                           const struct chat_format *format, const struct chat_thought *style,
                           const ob_request_options *o, ob_error *error) {
    if (o->markers) r->format = format, r->style = style;
    if (!o->limit_reasoning || !style) return OB_OK;
    return budget_open(tok, style, o->reasoning_tokens, o->reasoning_open, &r->budget, error);
}

struct ob_request *request_new(struct loop *loop, struct engine *engine, const struct tok *tok,
                               const struct chat_format *format, const struct chat_thought *style,
                               const ob_request_options *o, ob_error *error) {
    if (check(engine, o, error) != OB_OK) return NULL;
    uint32_t room = engine_context(engine) - (uint32_t)o->prompt_n;
    struct ob_request *r = calloc(1, sizeof *r);
    if (!r) return error_memory(error, "a request", sizeof *r), NULL;
    r->loop = loop;
    r->priority = o->priority;
    r->prompt_n = r->tokens = (uint32_t)o->prompt_n;
    r->max_tokens = o->max_tokens && o->max_tokens < room ? o->max_tokens : room;
    r->token_cap = r->prompt_n + 256;
    r->token = malloc(r->token_cap * sizeof *r->token);
    r->on_event = o->on_event;
    r->user = o->user;
    r->ignore_eos = o->ignore_eos;
    tok_stream_init(&r->stream, tok, false);
    if (!r->token) {
        error_memory(error, "a prompt", r->token_cap * sizeof *r->token);
        goto fail;
    }
    memcpy(r->token, o->prompt, o->prompt_n * sizeof *r->token);
    if (stop_open(o->stop, o->stop_n, &r->stop, error) != OB_OK) goto fail;
    if (open_sampling(r, tok, engine_model(engine)->hp.vocab, engine_context(engine), o, error) !=
        OB_OK)
        goto fail;
    if (open_constraint(r, o, error) != OB_OK) goto fail;
    if (open_chat(r, tok, format, style, o, error) != OB_OK) goto fail;
    r->start_time = os_seconds();
    return r;
fail:
    request_free(r);
    return NULL;
}

/* `drawn` says what is known of the token: id, logprob, top. */
static void deliver(struct ob_request *r, const ob_event *drawn, ob_finish finish,
                    const ob_error *error) {
    double now = os_seconds();
    if (r->timed)
        r->timings.predicted_ms = (now - r->first_time) * 1e3;
    else if (r->started)
        r->timings.prompt_ms = (now - r->start_time) * 1e3;
    ob_event event = {.text = r->text.p ? r->text.p : "",
                      .text_n = r->text.n,
                      .id = drawn->id,
                      .logprob = drawn->logprob,
                      .top = drawn->top,
                      .top_n = drawn->top_n,
                      .finish = finish,
                      .stop = finish == OB_FINISH_STOP ? stop_found(r->stop) : NULL,
                      .timings = r->timings,
                      .error = error};
    r->on_event(r->user, &event);
    buf_clear(&r->text);
}

void request_finish(struct ob_request *r, ob_finish why, const ob_error *error) {
    buf_clear(&r->raw);
    tok_stream_end(&r->stream, &r->raw);
    if (!stop_add(r->stop, r->raw.p, r->raw.n, &r->text)) stop_end(r->stop, &r->text);
    deliver(r, &(ob_event){.id = -1}, why, error);
}

static bool append(struct ob_request *r, int32_t id) {
    if (r->tokens == r->token_cap) {
        int32_t *more = realloc(r->token, 2 * (size_t)r->token_cap * sizeof *more);
        if (!more) return false;
        r->token = more;
        r->token_cap *= 2;
    }
    r->token[r->tokens++] = id;
    return true;
}

/* Logits that are no numbers come from weights that are none, or from an overflow: say which. */
static void blame(struct engine *engine, ob_error *error) {
    const struct model *model = engine_model(engine);
    const char *name = model_find_nonfinite(model);
    error_set(error, OB_ERR_NUMERIC, "the logits are not finite: %s",
              name ? "this tensor holds NaN or infinity"
                   : "all weights are finite, so a value overflowed");
    error_at(error, source_path(model->source), name, OB_NO_OFFSET);
}

enum { NO_MASK = -3, NOT_ALLOWED = -4 }; /* beside SAMPLE_BROKEN and SAMPLE_NONE */

/* The next token, with its log probabilities if they are wanted. */
static ob_event draw(struct ob_request *r, const float *logits) {
    struct sample_input input = {
        .logits = logits, .history = r->token, .history_n = r->tokens};
    if (r->constraint && constraint_mask(r->constraint, &input.mask, NULL) != OB_OK)
        return (ob_event){.id = NO_MASK};
    ob_event drawn = {.id = sample_token(r->chain, &input), .top = r->top};
    if (r->budget && drawn.id >= 0) drawn.id = budget_take(r->budget, drawn.id);
    if (r->constraint && drawn.id >= 0 && !constraint_accept(r->constraint, drawn.id))
        return (ob_event){.id = NOT_ALLOWED};
    if (r->logprobs && drawn.id >= 0)
        drawn.logprob = sample_logprobs(r->chain, &input, r->logprobs_after, drawn.id, r->top,
                                        r->top_logprobs, &drawn.top_n);
    return drawn;
}

/* Why there is no token. */
static void explain(struct engine *engine, const struct ob_request *r, int32_t id,
                    ob_error *error) {
    if (id == SAMPLE_BROKEN) {
        blame(engine, error);
    } else if (id == NO_MASK) {
        error_memory(error, "the tokens that the grammar allows", 0);
    } else if (r->constraint) {
        error_set(error, OB_ERR_ARGUMENT, "%s",
                  id == NOT_ALLOWED
                      ? "what was written where the grammar begins is not allowed by it"
                      : "the vocabulary and logit_bias have no token that the grammar allows");
        error_at(error, NULL, "grammar", OB_NO_OFFSET);
    } else {
        error_set(error, OB_ERR_ARGUMENT, "every token is forbidden");
        error_at(error, NULL, "logit_bias", OB_NO_OFFSET);
    }
}

/* The token's text into r->raw. */
static void add_text(struct ob_request *r, const struct tok *tok, int32_t id) {
    struct str spelled = tok_is_control(tok, id) ? tok_text(tok, id) : (struct str){0};
    buf_clear(&r->raw);
    r->stream.special = spelled.n && (r->format || r->style) &&
                        chat_format_needs(r->format, r->style, spelled);
    tok_stream_add(&r->stream, id, &r->raw);
    if (!r->budget) return;
    if (spelled.n) budget_add(r->budget, spelled);
    else budget_add(r->budget, (struct str){r->raw.p ? r->raw.p : "", r->raw.n});
}

ob_finish request_token(struct ob_request *r, struct engine *engine, const struct tok *tok,
                        const float *logits) {
    ob_error error;
    ob_event drawn = draw(r, logits);
    int32_t id = drawn.id;
    if (!r->timed) {
        r->first_time = os_seconds();
        r->timings.prompt_ms = (r->first_time - r->start_time) * 1e3;
        r->timed = true;
    }
    if (id < 0) {
        explain(engine, r, id, &error);
        request_finish(r, OB_FINISH_ERROR, &error);
        return OB_FINISH_ERROR;
    }
    r->timings.predicted_n++;
    /* Behind a whole text the grammar has nothing else to say. */
    if (tok_is_end(tok, id) && (!r->ignore_eos || r->constraint)) {
        request_finish(r, OB_FINISH_STOP, NULL);
        return OB_FINISH_STOP;
    }
    if (!append(r, id)) {
        error_memory(&error, "generated tokens", 2 * (size_t)r->token_cap * sizeof *r->token);
        request_finish(r, OB_FINISH_ERROR, &error);
        return OB_FINISH_ERROR;
    }
    add_text(r, tok, id);
    if (stop_add(r->stop, r->raw.p, r->raw.n, &r->text)) {
        deliver(r, &drawn, OB_FINISH_STOP, NULL);
        return OB_FINISH_STOP;
    }
    bool full = r->tokens - r->prompt_n >= r->max_tokens;
    bool over = r->constraint && constraint_is_over(r->constraint);
    deliver(r, &drawn, OB_FINISH_NONE, NULL);
    if (!full && !over) return OB_FINISH_NONE;
    request_finish(r, over ? OB_FINISH_STOP : OB_FINISH_LENGTH, NULL);
    return over ? OB_FINISH_STOP : OB_FINISH_LENGTH;
}
