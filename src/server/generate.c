/* SPDX-License-Identifier: Apache-2.0
 * generate.c: one generation between three threads:
 *
 *   worker      generation_start(): parses, tokenizes, submits; later generation_end(): releases
 *               the engine's request and gives a whole answer
 *   engine      on_event(): adds text to `pending` and wakes the stream; never blocks
 *   I/O thread  stream_read(): words what is pending as chunks
 *
 * The exchange owns the generation (http_attach); from the submit to generation_end the engine's
 * side holds the exchange. A client that does not read lets `pending` grow: past PENDING_MAX its
 * generation is cancelled and its connection cut. */
#include "server/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os.h"
#include "server/internal.h"
#include "server/logprobs.h"
#include "server/reply.h"
#include "server/sse.h"
#include "server/clean.h"

enum { PENDING_MAX = 256 * 1024 };

struct generation {
    struct server *server;
    struct server_link link;
    struct http_exchange *x;
    const struct wording *wording;
    struct job end;
    char id[48];
    json_int_t created;
    bool stream, include_usage, logprobs, logprobs_after;
    const ob_engine *engine;
    os_mutex lock;
    /* under lock */
    ob_request *request;  /* NULL before submitting and after the end */
    bool submitted;       /* ob_submit has returned */
    bool gone, overflow;  /* the client: hung up, does not read */
    bool stopped;         /* by the server's end */
    struct buf pending;   /* clean text; of a stream: pieces with their heads */
    struct buf records;   /* of logprobs.h; of a stream: the wording's */
    ob_finish finish;     /* != NONE: the last event came */
    ob_timings timings;
    ob_error error;       /* why it failed, if it did */
    /* of the wording: the I/O thread's or generation_end's */
    struct chat_parser *parser;
    const struct chat_thought *keep; /* its markers stay in the text, with the reasoning */
    bool kept;                       /* the opening one has come, the closing one not yet */
    struct buf taken, thought, text;
    json_t *calls;    /* of a whole answer */
    struct buf *out;  /* of a stream, while it is read */
    size_t offset; /* of the log probabilities */
    bool opened;
};

/* Before each piece of a stream: the bytes of its text and of the records behind that. */
struct piece_head {
    uint32_t text, records;
};

struct server_link *generation_link(struct generation *g) { return &g->link; }

/* ---- numbers of an answer -------------------------------------------------------------------- */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static json_t *timings_json(const ob_timings *t) {
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f}", "cache_n", (int)t->cache_n,
                     "prompt_n", (int)t->prompt_n, "prompt_ms", t->prompt_ms,
                     "prompt_per_token_ms", ratio(t->prompt_ms, t->prompt_n), "prompt_per_second",
                     ratio(1e3 * t->prompt_n, t->prompt_ms), "predicted_n", (int)t->predicted_n,
                     "predicted_ms", t->predicted_ms, "predicted_per_token_ms",
                     ratio(t->predicted_ms, t->predicted_n), "predicted_per_second",
                     ratio(1e3 * t->predicted_n, t->predicted_ms));
}

static json_t *usage_json(const ob_timings *t) {
    json_int_t prompt = (json_int_t)t->cache_n + t->prompt_n;
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens",
                     (json_int_t)t->predicted_n, "total_tokens", prompt + t->predicted_n,
                     "prompt_tokens_details", "cached_tokens", (json_int_t)t->cache_n);
}

static const char *finish_word(const struct generation *g) {
    if (g->finish == OB_FINISH_LENGTH) return "length";
    return chat_parser_calls(g->parser) ? "tool_calls" : "stop";
}

/* What every object of an answer has; choice NULL: out of memory. */
static json_t *object_json(const struct generation *g, const char *object, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", g->id, "object", object, "created",
                     g->created, "model", server_model(g->server), "system_fingerprint",
                     "1bit-" OB_VERSION, "choices", choices);
}

/* Why there is no whole answer. */
static unsigned failure(struct generation *g, char *line, size_t size) {
    os_lock(&g->lock);
    bool left = g->gone && !g->stopped;
    os_unlock(&g->lock);
    if (g->finish == OB_FINISH_CANCEL && left) {
        snprintf(line, size, "the client closed its side of the connection, which cancels");
        return REPLY_BAD_REQUEST;
    }
    if (g->overflow) {
        snprintf(line, size, "out of memory for the answer");
        return REPLY_BROKEN;
    }
    if (g->finish == OB_FINISH_CANCEL) {
        snprintf(line, size, "the server is stopping");
        return REPLY_UNAVAILABLE;
    }
    ob_error_line(&g->error, line, size);
    return reply_status_of(&g->error);
}

/* ---- the parts of an answer ------------------------------------------------------------------ */

/* "deepseek-legacy": the reasoning is in the text too, between its markers. */
static void keep_thought(struct generation *g, const struct chat_event *event) {
    bool thinks = event && event->kind == CHAT_REASONING;
    struct str mark = thinks ? chat_thought_open(g->keep) : chat_thought_close(g->keep);
    if (thinks != g->kept) buf_add(&g->text, mark.p, mark.n);
    if (thinks) buf_add(&g->text, event->text.p, event->text.n);
    g->kept = thinks;
}

static void add_call(struct generation *g, const struct chat_event *event) {
    json_t *call;
    if (event->kind == CHAT_TOOL) {
        call = json_pack("{s:o, s:s, s:{s:o, s:s}}", "id", clean_json(event->id), "type",
                         "function", "function", "name", clean_json(event->name), "arguments", "");
        if (json_array_append_new(g->calls, call) != 0) g->text.failed = true;
        return;
    }
    call = json_object_get(json_array_get(g->calls, event->index), "function");
    if (json_object_set_new(call, "arguments", clean_json(event->text)) != 0)
        g->text.failed = true;
}

static void put_pieces(struct generation *g, struct buf *out);
static void put_chunk(struct generation *g, struct buf *out, json_t *choice);

/* What the parser tells. */
static void on_part(void *user, const struct chat_event *event) {
    struct generation *g = user;
    if (g->keep) keep_thought(g, event);
    if (event->kind == CHAT_REASONING) {
        buf_add(&g->thought, event->text.p, event->text.n);
    } else if (event->kind == CHAT_CONTENT) {
        buf_add(&g->text, event->text.p, event->text.n);
    } else if (!g->stream) {
        add_call(g, event);
    } else if (g->out) {
        put_pieces(g, g->out); /* what came before */
        put_chunk(g, g->out, g->wording->piece(event));
    }
}

static void parts_end(struct generation *g) {
    chat_parser_end(g->parser);
    if (g->keep && g->kept) keep_thought(g, NULL);
    if (chat_parser_failed(g->parser)) g->text.failed = true;
}

/* ---- a stream -------------------------------------------------------------------------------- */

/* Log probabilities that no choice has yet go to this one. */
static void add_logprobs(struct generation *g, json_t *choice) {
    if (!choice || !g->records.n) return;
    json_object_set_new(choice, "logprobs",
                        g->wording->logprobs(g->engine, (struct str){g->records.p, g->records.n},
                                             g->logprobs_after, &g->offset));
    buf_clear(&g->records);
}

static void put_chunk(struct generation *g, struct buf *out, json_t *choice) {
    add_logprobs(g, choice);
    sse_json(out, object_json(g, g->wording->chunk, json_pack("[o]", choice)));
}

/* Chunks of the reasoning and the text that were told. */
static void put_pieces(struct generation *g, struct buf *out) {
    struct buf *part[] = {&g->thought, &g->text};
    for (size_t i = 0; i < 2; i++) {
        struct chat_event event = {.kind = i ? CHAT_CONTENT : CHAT_REASONING,
                                   .text = {part[i]->p, part[i]->n}};
        if (part[i]->failed) out->failed = true;
        if (part[i]->n) put_chunk(g, out, g->wording->piece(&event));
        buf_clear(part[i]);
    }
}

static void put_end(struct generation *g, struct buf *out) {
    char line[1024];
    if (g->finish == OB_FINISH_CANCEL || g->finish == OB_FINISH_ERROR) {
        unsigned status = failure(g, line, sizeof line);
        sse_json(out, reply_error_json(status, NULL, line, NULL, NULL));
        return;
    }
    parts_end(g);
    put_pieces(g, out);
    json_t *choice = g->wording->ending(finish_word(g));
    add_logprobs(g, choice);
    json_t *last = object_json(g, g->wording->chunk, json_pack("[o]", choice));
    json_object_set_new(last, "timings", timings_json(&g->timings));
    sse_json(out, last);
    if (g->include_usage) {
        json_t *usage = object_json(g, g->wording->chunk, json_array());
        json_object_set_new(usage, "usage", usage_json(&g->timings));
        json_object_set_new(usage, "timings", timings_json(&g->timings));
        sse_json(out, usage);
    }
    sse_done(out);
}

static enum http_more stream_read(void *user, struct buf *out) {
    struct generation *g = user;
    buf_clear(&g->taken);
    os_lock(&g->lock);
    struct buf spare = g->taken;
    g->taken = g->pending;
    g->pending = spare;
    bool ended = g->finish != OB_FINISH_NONE, cut = g->gone || g->overflow;
    os_unlock(&g->lock);
    if (cut) return HTTP_BREAK;
    if (!g->opened && g->wording->opening) put_chunk(g, out, g->wording->opening());
    g->opened = true;
    g->out = out;
    struct piece_head head;
    for (size_t at = 0; at < g->taken.n; at += head.text + head.records) {
        memcpy(&head, g->taken.p + at, sizeof head);
        at += sizeof head;
        buf_add(&g->records, g->taken.p + at + head.text, head.records);
        chat_parser_add(g->parser, (struct str){g->taken.p + at, head.text});
        put_pieces(g, out);
    }
    if (g->records.failed || chat_parser_failed(g->parser)) out->failed = true;
    if (ended) put_end(g, out);
    g->out = NULL;
    return ended ? HTTP_END : HTTP_WAIT;
}

/* ---- the engine's thread --------------------------------------------------------------------- */

static void cancel_locked(struct generation *g) {
    if (g->request) ob_cancel(g->request);
}

static void add_piece(struct generation *g, const ob_event *event) {
    struct str text = {event->text, event->text_n};
    size_t start = g->pending.n;
    struct piece_head head = {0};
    if (!g->stream) {
        clean_text(&g->pending, text);
        if (g->logprobs) logprobs_add(&g->records, event);
        if (g->records.failed) g->pending.failed = true;
        return;
    }
    buf_add(&g->pending, &head, sizeof head);
    clean_text(&g->pending, text);
    head.text = (uint32_t)(g->pending.n - start - sizeof head);
    if (g->logprobs) logprobs_add(&g->pending, event);
    if (g->pending.failed) return;
    head.records = (uint32_t)(g->pending.n - start - sizeof head) - head.text;
    memcpy(g->pending.p + start, &head, sizeof head);
}

static void on_event(void *user, const ob_event *event) {
    struct generation *g = user;
    os_lock(&g->lock);
    bool says = event->text_n || (g->logprobs && event->id >= 0);
    if (says && !g->overflow) add_piece(g, event);
    if (g->pending.failed || (g->stream && g->pending.n > PENDING_MAX)) {
        g->overflow = true;
        buf_free(&g->pending);
        cancel_locked(g);
    }
    g->timings = event->timings;
    g->finish = event->finish;
    if (event->error) g->error = *event->error;
    /* Whoever comes last, this or the return of ob_submit, hands over to generation_end. */
    bool end = g->finish != OB_FINISH_NONE && g->submitted;
    if (g->finish != OB_FINISH_NONE || says) http_wake(g->x);
    os_unlock(&g->lock);
    if (end) server_push(g->server, &g->end);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void answer_whole(struct generation *g) {
    char line[1024];
    if (g->finish == OB_FINISH_CANCEL || g->finish == OB_FINISH_ERROR) {
        unsigned status = failure(g, line, sizeof line);
        reply_error(g->x, status, line);
        return;
    }
    g->calls = json_array();
    chat_parser_add(g->parser, (struct str){g->pending.p, g->pending.n});
    parts_end(g);
    json_t *choice = NULL;
    const struct said said = {.thought = {g->thought.p, g->thought.n},
                              .text = {g->text.p, g->text.n}, .calls = g->calls,
                              .finish = finish_word(g)};
    if (!g->thought.failed && !g->text.failed) choice = g->wording->answer(&said);
    add_logprobs(g, choice);
    json_t *json = object_json(g, g->wording->whole, json_pack("[o]", choice));
    json_object_set_new(json, "usage", usage_json(&g->timings));
    json_object_set_new(json, "timings", timings_json(&g->timings));
    reply_json(g->x, REPLY_OK, json);
}

/* What the log says: numbers, nothing of the content. */
static void note_end(struct generation *g) {
    char line[1024], words[96];
    bool failed = g->finish == OB_FINISH_CANCEL || g->finish == OB_FINISH_ERROR;
    const ob_timings *t = &g->timings;
    snprintf(words, sizeof words, "prompt %u tokens (%u cached), answer %u tokens",
             t->cache_n + t->prompt_n, t->cache_n, t->predicted_n);
    http_note(g->x, failed ? failure(g, line, sizeof line) : 0, words);
}

static void generation_end(struct job *job) {
    struct generation *g = (void *)((char *)job - offsetof(struct generation, end));
    struct http_exchange *x = g->x;
    os_lock(&g->lock);
    ob_request *request = g->request;
    g->request = NULL;
    bool cut = g->stream && g->overflow;
    os_unlock(&g->lock);
    ob_release(&request);
    server_leave(g->server, g);
    note_end(g);
    if (cut) http_cut(x);
    if (!g->stream) answer_whole(g);
    http_release(x);
}

void generation_stop(struct generation *g) {
    os_lock(&g->lock);
    g->stopped = true;
    cancel_locked(g);
    os_unlock(&g->lock);
}

static void on_hangup(void *user) {
    struct generation *g = user;
    os_lock(&g->lock);
    g->gone = true;
    cancel_locked(g);
    os_unlock(&g->lock);
}

static void generation_free(void *user) {
    struct generation *g = user;
    chat_parser_free(&g->parser);
    json_decref(g->calls);
    buf_free(&g->pending);
    buf_free(&g->records);
    buf_free(&g->taken);
    buf_free(&g->thought);
    buf_free(&g->text);
    os_mutex_free(&g->lock);
    free(g);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static struct generation *generation_new(struct server *server, struct http_exchange *x,
                                         const struct wording *wording,
                                         const struct params *params) {
    struct generation *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->server = server;
    g->x = x;
    g->wording = wording;
    g->end.run = generation_end;
    g->created = (json_int_t)time(NULL);
    g->stream = params->stream;
    g->include_usage = params->include_usage;
    g->logprobs = params->logprobs || params->logprobs_after;
    g->logprobs_after = params->logprobs_after;
    snprintf(g->id, sizeof g->id, "%s-%016llx%08x", wording->id, (unsigned long long)os_random(),
             (unsigned)os_random());
    os_mutex_init(&g->lock);
    return g;
}

static void reply_too_long(struct http_exchange *x, size_t n, uint32_t context) {
    char line[128];
    snprintf(line, sizeof line, "the prompt has %zu tokens, the context holds %u", n, context);
    reply_json(x, REPLY_BAD_REQUEST,
               reply_error_json(REPLY_BAD_REQUEST, "exceed_context_size_error", line, NULL,
                                json_pack("{s:I, s:I}", "n_prompt_tokens", (json_int_t)n, "n_ctx",
                                          (json_int_t)context)));
}

/* After ob_submit has returned: what came meanwhile takes effect. */
static void submitted(struct generation *g, ob_request *request) {
    os_lock(&g->lock);
    g->request = request;
    g->submitted = true;
    bool end = g->finish != OB_FINISH_NONE;
    if (g->gone || g->overflow || g->stopped) cancel_locked(g);
    os_unlock(&g->lock);
    if (end) server_push(g->server, &g->end);
}

/* Who tells the parts of the answer apart. */
static ob_status open_parser(struct generation *g, const ob_engine_info *info,
                             const json_t *request, const struct params *params,
                             const struct opening *opening, ob_error *error) {
    bool split = opening->chat && strcmp(params->reasoning_format, "none") != 0;
    struct chat_parser_options options = {
        .style = split ? opening->style : NULL, .begin = opening->begin,
        .prompt = {opening->prompt, opening->prompt_n}, .calls = opening->chat && params->calls,
        .live = g->stream, .single = params->single_call, .seed = os_random(), .on = on_part,
        .user = g};
    if (options.calls) options.tools = json_object_get(request, "tools");
    if (opening->chat && info->tool_format && (split || options.calls))
        chat_format_find(info->tool_format, &options.format, NULL);
    if (split && strcmp(params->reasoning_format, "deepseek-legacy") == 0) g->keep = options.style;
    g->parser = chat_parser_new(&options);
    return g->parser ? OB_OK : error_memory(error, "an answer", 0);
}

/* What the answer may be: the form that the request asks for, or calls of its tools. */
static ob_status open_grammar(const ob_engine *engine, const json_t *request,
                              const struct params *params, const struct opening *opening,
                              ob_grammar **out, ob_error *error) {
    unsigned flags = (params->form.compact ? OB_JSON_COMPACT : 0) |
                     (opening->begin == CHAT_BEGIN_ANSWER ? OB_TOOLS_REASON : 0);
    if (params->form.kind != FORM_ANY || !opening->chat || !params->calls)
        return form_open(engine, &params->form, out, error);
    return ob_grammar_tools_json(engine, request, opening->prompt, opening->prompt_n, flags, out,
                                 error);
}

/* Has answered, or has submitted and will. */
static void run(struct generation *g, ob_engine *engine, const json_t *request,
                const struct params *params) {
    ob_error error;
    ob_tokens prompt = {0};
    ob_grammar *grammar = NULL;
    struct opening opening = {.begin = CHAT_BEGIN_CONTENT};
    ob_engine_info info;
    ob_request *handle;
    struct http_exchange *x = g->x;
    g->engine = engine;
    ob_engine_get_info(engine, &info);
    if (info.reasoning_style) opening.style = chat_thought_find(info.reasoning_style);
    ob_status s =
        info.encoder ? error_set(&error, OB_ERR_UNSUPPORTED,
                                 "this model reads texts and writes none: POST /v1/embeddings")
                     : g->wording->prompt(engine, request, params, &prompt, &opening, &error);
    if (s == OB_OK) s = open_parser(g, &info, request, params, &opening, &error);
    if (s == OB_OK && prompt.n >= info.context) {
        free(opening.prompt);
        server_leave(g->server, g);
        reply_too_long(x, prompt.n, info.context);
        ob_tokens_free(&prompt);
        return;
    }
    if (s == OB_OK) s = open_grammar(engine, request, params, &opening, &grammar, &error);
    free(opening.prompt);
    bool thinks = opening.style && opening.begin == CHAT_BEGIN_REASONING;
    const char *after = thinks ? chat_thought_close(opening.style).p : NULL;
    if (s == OB_OK) {
        http_hold(x);
        s = ob_submit(engine,
                      &(ob_request_options){.prompt = prompt.id, .prompt_n = prompt.n,
                                            .max_tokens = params->max_tokens,
                                            .sampling = params->sampling, .stop = params->stop,
                                            .stop_n = params->stops, .grammar = grammar,
                                            .grammar_after = after,
                                            .ignore_eos = params->ignore_eos,
                                            .markers = opening.chat,
                                            .limit_reasoning = opening.chat &&
                                                               params->limit_reasoning,
                                            .reasoning_tokens = params->reasoning_tokens,
                                            .reasoning_open =
                                                opening.begin == CHAT_BEGIN_REASONING,
                                            .logprobs = params->logprobs,
                                            .logprobs_after = params->logprobs_after,
                                            .top_logprobs = params->top_logprobs,
                                            .on_event = on_event, .user = g},
                      &handle, &error);
        if (s != OB_OK) http_release(x);
    }
    ob_tokens_free(&prompt);
    ob_grammar_free(&grammar);
    if (s != OB_OK) {
        if (strcmp(error.where, "order") == 0) strcpy(error.where, "samplers");
        if (strcmp(error.where, "dry_breakers") == 0)
            strcpy(error.where, "dry_sequence_breakers");
        server_leave(g->server, g);
        reply_ob_error(x, &error);
        return;
    }
    bool stream = g->stream;
    submitted(g, handle);
    /* From here on x belongs to generation_end, unless it is a stream. */
    if (stream) http_stream(x, SSE_TYPE, stream_read);
}

void generation_start(struct server *server, struct http_exchange *x,
                      const struct wording *wording) {
    ob_error error;
    json_t *request;
    struct params params = {0};
    struct str body = http_request(x)->body;
    ob_status s = params_parse(body, &request, &error);
    http_drop_body(x);
    ob_sampling defaults = server_sampling(server);
    if (s == OB_OK) s = params_read(request, &defaults, &params, &error);
    if (s == OB_OK) server_set_reasoning(server, &params);
    struct generation *g = s == OB_OK ? generation_new(server, x, wording, &params) : NULL;
    ob_engine *engine = g ? server_enter(server, g) : NULL;
    if (s != OB_OK) reply_ob_error(x, &error);
    else if (!g) reply_json(x, REPLY_BROKEN, NULL);
    else http_attach(x, g, on_hangup, generation_free);
    if (engine) run(g, engine, request, &params);
    else if (g) reply_error(x, REPLY_UNAVAILABLE, "the server is stopping");
    params_free(&params);
    json_decref(request);
}
