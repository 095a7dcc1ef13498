/* SPDX-License-Identifier: Apache-2.0
 * generate.c: one request's answers between three threads:
 *
 *   worker      generation_start(): parses, tokenizes, submits each answer; later
 *               generation_end(): releases the engine's requests and gives a whole answer
 *   engine      on_event(): adds text to an answer's `pending` and wakes the stream; never blocks
 *   I/O thread  stream_read(): has what is pending worded
 *
 * The exchange owns the generation (http_attach); from run() to generation_end the engine's side
 * holds the exchange. A client that does not read lets `pending` grow: past PENDING_MAX its
 * generation is cancelled and its connection cut. */
#include "server/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"
#include "server/prompt.h"
#include "server/reply.h"

enum { PENDING_MAX = 256 * 1024 };

/* One answer: a sequence of the engine. */
struct choice {
    struct generation *g;
    unsigned index;
    bool first; /* of its prompt */
    /* under lock */
    ob_request *request; /* NULL before submitting and after the end */
    struct buf pending;  /* clean text; of a stream: pieces with their heads */
    struct buf records;  /* of logprobs.h; of a stream: the wording's */
    ob_finish finish;    /* != NONE: the last event came */
    const char *stop;
    ob_timings timings;
    /* of the wording: the I/O thread's or generation_end's */
    struct chat_parser *parser;
    bool kept;                       /* the opening marker has come, the closing one not yet */
    struct buf taken, thought, text;
    json_t *calls;   /* of a whole answer */
    size_t offset;   /* of the log probabilities */
    bool told;       /* its ending */
};

struct generation {
    struct server *server;
    struct server_link link;
    struct http_exchange *x;
    const struct wording *wording;
    reply_shape *shape;
    struct job end;
    json_t *original, *request;
    struct params params;
    struct answer answer;
    struct choice *choice;
    double started;
    os_mutex lock;
    /* under lock */
    unsigned left;        /* answers that go on, and run() */
    bool streams;         /* the exchange is a stream */
    bool gone, overflow;  /* the client: hung up, does not read */
    bool stopped;         /* by the server's end */
    bool ping;
    ob_error error;       /* why one failed, if it did: the first */
    /* of the wording */
    const struct chat_thought *keep; /* its markers stay in the text, with the reasoning */
    struct buf *out;  /* of a stream, while it is read */
    bool opened;
};

/* Before each piece of a stream: the bytes of its text and of the records behind that. */
struct piece_head {
    uint32_t text, records;
};

struct server_link *generation_link(struct generation *g) { return &g->link; }

/* ---- the outcome ----------------------------------------------------------------------------- */

static const char *finish_word(const struct choice *c) {
    if (c->finish == OB_FINISH_LENGTH) return "length";
    return chat_parser_calls(c->parser) ? "tool_calls" : "stop";
}

/* FINISH_NONE while one goes on; ERROR before CANCEL before the rest. */
static ob_finish finish_of_all(const struct generation *g) {
    ob_finish all = OB_FINISH_STOP;
    for (unsigned i = 0; i < g->answer.choices; i++) {
        ob_finish one = g->choice[i].finish;
        if (one == OB_FINISH_ERROR) return one;
        bool comes_first = one == OB_FINISH_NONE ||
                           (one == OB_FINISH_CANCEL && all != OB_FINISH_NONE);
        if (comes_first) all = one;
    }
    return all;
}

static bool failed(ob_finish finish) {
    return finish == OB_FINISH_ERROR || finish == OB_FINISH_CANCEL;
}

/* Each prompt counts once, what was written is added up. */
static ob_timings sum(const struct generation *g) {
    ob_timings all = {0};
    for (unsigned i = 0; i < g->answer.choices; i++) {
        const ob_timings *one = &g->choice[i].timings;
        if (g->choice[i].first) {
            all.cache_n += one->cache_n;
            all.prompt_n += one->prompt_n;
            all.prompt_ms += one->prompt_ms;
        }
        all.predicted_n += one->predicted_n;
        all.predicted_ms += one->predicted_ms;
    }
    return all;
}

/* Why there is no whole answer, as the error that says it. */
static ob_error failure(struct generation *g) {
    ob_error error = {0};
    os_lock(&g->lock);
    bool left = g->gone && !g->stopped;
    bool overflow = g->overflow;
    ob_finish finish = finish_of_all(g);
    os_unlock(&g->lock);
    if (finish == OB_FINISH_ERROR)
        error = g->error;
    else if (left)
        error_set(&error, OB_ERR_ARGUMENT,
                  "the client closed its side of the connection, which cancels");
    else if (overflow)
        error_memory(&error, "the answer", 0);
    else
        error_set(&error, OB_ERR_CANCELLED, "the server is stopping");
    return error;
}

/* ---- the parts of an answer ------------------------------------------------------------------ */

/* "deepseek-legacy": the reasoning is in the text too, between its markers. */
static void keep_thought(struct choice *c, const struct chat_event *event) {
    bool thinks = event && event->kind == CHAT_REASONING;
    const struct chat_thought *style = c->g->keep;
    struct str mark = thinks ? chat_thought_open(style) : chat_thought_close(style);
    if (thinks != c->kept) buf_add(&c->text, mark.p, mark.n);
    if (thinks) buf_add(&c->text, event->text.p, event->text.n);
    c->kept = thinks;
}

static void add_call(struct choice *c, const struct chat_event *event) {
    json_t *call;
    if (event->kind == CHAT_TOOL) {
        call = json_pack("{s:o, s:s, s:{s:o, s:s}}", "id", clean_json(event->id), "type",
                         "function", "function", "name", clean_json(event->name), "arguments", "");
        if (json_array_append_new(c->calls, call) != 0) c->text.failed = true;
        return;
    }
    call = json_object_get(json_array_get(c->calls, event->index), "function");
    if (json_object_set_new(call, "arguments", clean_json(event->text)) != 0)
        c->text.failed = true;
}

/* Log probabilities that nobody has told yet go with it. */
static void put_piece(struct choice *c, const struct chat_event *event, struct buf *out) {
    struct generation *g = c->g;
    struct piece piece = {.index = c->index, .event = event, .offset = &c->offset,
                          .records = {c->records.p, c->records.n}, .timings = c->timings};
    g->wording->piece(&g->answer, &piece, out);
    buf_clear(&c->records);
}

/* Of the reasoning and the text that were told. */
static void put_pieces(struct choice *c, struct buf *out) {
    struct buf *part[] = {&c->thought, &c->text};
    for (size_t i = 0; i < 2; i++) {
        struct chat_event event = {.kind = i ? CHAT_CONTENT : CHAT_REASONING,
                                   .text = {part[i]->p, part[i]->n}};
        if (part[i]->failed) out->failed = true;
        if (part[i]->n) put_piece(c, &event, out);
        buf_clear(part[i]);
    }
}

/* What the parser tells. */
static void on_part(void *user, const struct chat_event *event) {
    struct choice *c = user;
    struct generation *g = c->g;
    if (g->keep) keep_thought(c, event);
    if (event->kind == CHAT_REASONING) {
        buf_add(&c->thought, event->text.p, event->text.n);
    } else if (event->kind == CHAT_CONTENT) {
        buf_add(&c->text, event->text.p, event->text.n);
    } else if (!g->params.stream) {
        add_call(c, event);
    } else if (g->out) {
        put_pieces(c, g->out); /* what came before */
        put_piece(c, event, g->out);
    }
}

static void parts_end(struct choice *c) {
    chat_parser_end(c->parser);
    if (c->g->keep && c->kept) keep_thought(c, NULL);
    if (chat_parser_failed(c->parser)) c->text.failed = true;
}

static struct said said_of(struct choice *c) {
    return (struct said){.index = c->index, .thought = {c->thought.p, c->thought.n},
                         .text = {c->text.p, c->text.n}, .calls = c->calls,
                         .finish = finish_word(c), .stop = c->stop, .timings = c->timings,
                         .records = {c->records.p, c->records.n}, .offset = &c->offset};
}

/* ---- a stream -------------------------------------------------------------------------------- */

/* What a choice has said since. `finish` is what it was when the text was taken. */
static void put_choice(struct choice *c, ob_finish finish, struct buf *out) {
    struct generation *g = c->g;
    struct piece_head head;
    for (size_t at = 0; at < c->taken.n; at += head.text + head.records) {
        memcpy(&head, c->taken.p + at, sizeof head);
        at += sizeof head;
        buf_add(&c->records, c->taken.p + at + head.text, head.records);
        chat_parser_add(c->parser, (struct str){c->taken.p + at, head.text});
        put_pieces(c, out);
    }
    if (c->records.failed || chat_parser_failed(c->parser)) out->failed = true;
    if (finish == OB_FINISH_NONE || failed(finish) || c->told) return;
    parts_end(c);
    put_pieces(c, out);
    struct said said = said_of(c);
    g->wording->ending(&g->answer, &said, out);
    buf_clear(&c->records);
    c->told = true;
}

static void put_end(struct generation *g, ob_finish finish, struct buf *out) {
    if (failed(finish)) {
        ob_error error = failure(g);
        g->wording->failed(&g->answer, reply_shape_error(g->shape, &error), out);
    } else if (g->wording->last) {
        g->wording->last(&g->answer, out);
    }
}

static enum http_more stream_read(void *user, struct buf *out) {
    struct generation *g = user;
    size_t before = out->n;
    ob_finish finish[PARAMS_CHOICES];
    os_lock(&g->lock);
    for (unsigned i = 0; i < g->answer.choices; i++) {
        struct choice *c = &g->choice[i];
        struct buf spare = c->taken;
        buf_clear(&spare);
        c->taken = c->pending;
        c->pending = spare;
        finish[i] = c->finish;
    }
    ob_finish all = finish_of_all(g);
    bool cut = g->gone || g->overflow, ping = g->ping;
    g->ping = false;
    g->answer.timings = sum(g);
    os_unlock(&g->lock);
    if (cut) return HTTP_BREAK;
    g->answer.total_ms = (os_seconds() - g->started) * 1e3;
    if (!g->opened && g->wording->begin) g->wording->begin(&g->answer, out);
    g->opened = true;
    g->out = out;
    for (unsigned i = 0; i < g->answer.choices; i++) put_choice(&g->choice[i], finish[i], out);
    if (all != OB_FINISH_NONE) put_end(g, all, out);
    g->out = NULL;
    if (ping && out->n == before && g->wording->ping) buf_puts(out, g->wording->ping);
    return all != OB_FINISH_NONE ? HTTP_END : HTTP_WAIT;
}

void generation_tick(struct generation *g) {
    os_lock(&g->lock);
    g->ping = g->streams && g->wording->ping;
    if (g->ping) http_wake(g->x);
    os_unlock(&g->lock);
}

unsigned generation_answers(struct generation *g) {
    os_lock(&g->lock);
    unsigned n = g->left;
    os_unlock(&g->lock);
    return n;
}

/* ---- the engine's thread --------------------------------------------------------------------- */

static void cancel_locked(struct generation *g) {
    for (unsigned i = 0; i < g->answer.choices; i++)
        if (g->choice[i].request) ob_cancel(g->choice[i].request);
}

static void add_piece(struct choice *c, struct str text, const ob_event *event) {
    const struct params *params = &c->g->params;
    bool logprobs = event && (params->logprobs || params->logprobs_after);
    size_t start = c->pending.n;
    struct piece_head head = {0};
    if (!params->stream) {
        clean_text(&c->pending, text);
        if (logprobs) logprobs_add(&c->records, event);
        if (c->records.failed) c->pending.failed = true;
        return;
    }
    buf_add(&c->pending, &head, sizeof head);
    clean_text(&c->pending, text);
    head.text = (uint32_t)(c->pending.n - start - sizeof head);
    if (logprobs) logprobs_add(&c->pending, event);
    if (c->pending.failed) return;
    head.records = (uint32_t)(c->pending.n - start - sizeof head) - head.text;
    memcpy(c->pending.p + start, &head, sizeof head);
}

/* Whoever comes last hands over to generation_end. */
static bool leave_locked(struct generation *g) { return --g->left == 0; }

/* The request's own copy, which lives longer. */
static const char *stop_string(const struct params *params, const char *stop) {
    for (size_t i = 0; stop && i < params->stops; i++)
        if (strcmp(params->stop[i], stop) == 0) return params->stop[i];
    return NULL;
}

static void on_event(void *user, const ob_event *event) {
    struct choice *c = user;
    struct generation *g = c->g;
    bool logprobs = g->params.logprobs || g->params.logprobs_after, end = false;
    bool says = event->text_n || (logprobs && event->id >= 0);
    os_lock(&g->lock);
    if (says && !g->overflow) add_piece(c, (struct str){event->text, event->text_n}, event);
    c->timings = event->timings;
    c->finish = event->finish;
    c->stop = stop_string(&g->params, event->stop);
    if (event->error && g->error.status == OB_OK) g->error = *event->error;
    if (c->pending.failed || (g->params.stream && c->pending.n > PENDING_MAX)) {
        g->overflow = true;
        buf_free(&c->pending);
    }
    /* The others are for nothing then. */
    if (g->overflow || failed(c->finish)) cancel_locked(g);
    if (c->finish != OB_FINISH_NONE) end = leave_locked(g);
    if (c->finish != OB_FINISH_NONE || says) http_wake(g->x);
    os_unlock(&g->lock);
    if (end) server_push(g->server, &g->end);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void answer_whole(struct generation *g) {
    bool good = true;
    struct said *said = NULL;
    if (failed(finish_of_all(g)) || g->overflow) {
        ob_error error = failure(g);
        if (error.status == OB_ERR_BUSY) http_set_header(g->x, "Retry-After", "1");
        /* In the shape found at first: when the client has left, the path is no longer there. */
        reply_json(g->x, reply_status_of(&error), reply_shape_error(g->shape, &error));
        return;
    }
    said = calloc(g->answer.choices, sizeof *said);
    for (unsigned i = 0; said && i < g->answer.choices; i++) {
        struct choice *c = &g->choice[i];
        c->calls = json_array();
        chat_parser_add(c->parser, (struct str){c->pending.p, c->pending.n});
        parts_end(c);
        if (c->thought.failed || c->text.failed || !c->calls) good = false;
        said[i] = said_of(c);
    }
    g->answer.timings = sum(g);
    g->answer.total_ms = (os_seconds() - g->started) * 1e3;
    reply_json(g->x, REPLY_OK, said && good ? g->wording->whole(&g->answer, said) : NULL);
    free(said);
}

/* What the log says: numbers, nothing of the content. */
static void note_end(struct generation *g) {
    char words[96];
    ob_timings t = sum(g);
    ob_error error = {0};
    if (failed(finish_of_all(g))) error = failure(g);
    snprintf(words, sizeof words, "prompt %u tokens (%u cached), answer %u tokens",
             t.cache_n + t.prompt_n, t.cache_n, t.predicted_n);
    server_count(g->server, &t, error.status != OB_OK);
    http_note(g->x, error.status == OB_OK ? 0 : reply_status_of(&error), words);
}

static void generation_end(struct job *job) {
    struct generation *g = (void *)((char *)job - offsetof(struct generation, end));
    struct http_exchange *x = g->x;
    for (unsigned i = 0; i < g->answer.choices; i++) {
        struct choice *c = &g->choice[i];
        os_lock(&g->lock);
        ob_request *request = c->request;
        c->request = NULL;
        os_unlock(&g->lock);
        if (request) ob_release(&request);
    }
    os_lock(&g->lock);
    bool cut = g->streams && g->overflow, streams = g->streams;
    os_unlock(&g->lock);
    server_leave(g->server, g);
    note_end(g);
    if (cut) http_cut(x);
    if (!streams) answer_whole(g);
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
    for (unsigned i = 0; g->choice && i < g->answer.choices; i++) {
        struct choice *c = &g->choice[i];
        chat_parser_free(&c->parser);
        json_decref(c->calls);
        buf_free(&c->pending);
        buf_free(&c->records);
        buf_free(&c->taken);
        buf_free(&c->thought);
        buf_free(&c->text);
    }
    free(g->choice);
    buf_free(&g->answer.text);
    json_decref(g->answer.items);
    params_free(&g->params);
    json_decref(g->request);
    json_decref(g->original);
    os_mutex_free(&g->lock);
    free(g);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void reply_too_long(struct generation *g, size_t n, uint32_t context) {
    char line[128];
    snprintf(line, sizeof line, "the prompt has %zu tokens, the context holds %u", n, context);
    reply_json(g->x, REPLY_BAD_REQUEST,
               g->shape(REPLY_BAD_REQUEST, "exceed_context_size_error", line, NULL,
                        json_pack("{s:I, s:I}", "n_prompt_tokens", (json_int_t)n, "n_ctx",
                                  (json_int_t)context)));
}

/* Errors name the fields of params.h, which another API may call otherwise. */
static void rename_field(const struct wording *wording, ob_error *error) {
    char rest[sizeof error->where];
    for (size_t i = 0; wording->fields && wording->fields[i][0]; i++) {
        size_t n = strlen(wording->fields[i][0]);
        if (strncmp(error->where, wording->fields[i][0], n) != 0 ||
            !strchr(".[#", error->where[n]))
            continue;
        snprintf(rest, sizeof rest, "%s", error->where + n);
        snprintf(error->where, sizeof error->where, "%.60s%.60s", wording->fields[i][1], rest);
        return;
    }
}

/* Who tells the parts of an answer apart. */
static ob_status open_parser(struct choice *c, const ob_engine_info *info,
                             const struct opening *opening, ob_error *error) {
    struct generation *g = c->g;
    const struct params *params = &g->params;
    bool split = opening->chat && strcmp(params->reasoning_format, "none") != 0;
    struct chat_parser_options options = {
        .style = split ? opening->style : NULL, .begin = opening->begin,
        .prompt = {opening->text, opening->text_n}, .calls = opening->chat && params->calls,
        .live = params->stream, .single = params->single_call, .seed = os_random(), .on = on_part,
        .user = c};
    if (options.calls) options.tools = json_object_get(g->request, "tools");
    if (opening->chat && info->tool_format && (split || options.calls))
        chat_format_find(info->tool_format, &options.format, NULL);
    if (split && strcmp(params->reasoning_format, "deepseek-legacy") == 0) g->keep = options.style;
    c->parser = chat_parser_new(&options);
    return c->parser ? OB_OK : error_memory(error, "an answer", 0);
}

static ob_status open_choices(struct generation *g, const ob_engine_info *info,
                              const struct opening *opening, ob_error *error) {
    unsigned n = (unsigned)opening->n * g->params.n;
    if (n > PARAMS_CHOICES) {
        error_set(error, OB_ERR_LIMIT, "makes %u answers to %zu prompts, at most %d are given", n,
                  opening->n, PARAMS_CHOICES);
        error_at(error, NULL, "n", OB_NO_OFFSET);
        return OB_ERR_LIMIT;
    }
    g->choice = calloc(n, sizeof *g->choice);
    if (!g->choice) return error_memory(error, "answers", n * sizeof *g->choice);
    for (size_t i = 0; i < opening->n; i++) g->answer.prompt_tokens += opening->prompt[i].n;
    for (unsigned i = 0; i < n; i++) {
        struct choice *c = &g->choice[i];
        *c = (struct choice){.g = g, .index = i, .first = i % g->params.n == 0};
        g->answer.choices = i + 1;
        ob_status s = open_parser(c, info, opening, error);
        if (s != OB_OK) return s;
        if (opening->echo) add_piece(c, opening->echo[i / g->params.n], NULL);
    }
    return OB_OK;
}

static ob_status submit(struct choice *c, ob_engine *engine, const struct opening *opening,
                        const ob_grammar *grammar, ob_error *error) {
    struct generation *g = c->g;
    const struct params *params = &g->params;
    const ob_tokens *prompt = &opening->prompt[c->index / params->n];
    bool reasons = opening->begin == CHAT_BEGIN_REASONING;
    bool thinks = opening->style && reasons;
    ob_request *handle;
    ob_request_options options = {
        .prompt = prompt->id, .prompt_n = prompt->n, .max_tokens = params->max_tokens,
        .sampling = params->sampling, .stop = params->stop, .stop_n = params->stops,
        .grammar = grammar, .grammar_after = thinks ? chat_thought_close(opening->style).p : NULL,
        .ignore_eos = params->ignore_eos, .markers = opening->chat,
        .limit_reasoning = opening->chat && params->limit_reasoning,
        .reasoning_tokens = params->reasoning_tokens, .reasoning_open = reasons,
        .logprobs = params->logprobs, .logprobs_after = params->logprobs_after,
        .top_logprobs = params->top_logprobs, .on_event = on_event, .user = c};
    options.sampling.seed += c->index; /* each its own; the first has the request's */
    os_lock(&g->lock);
    g->left++;
    os_unlock(&g->lock);
    ob_status s = ob_submit(engine, &options, &handle, error);
    os_lock(&g->lock);
    if (s == OB_OK) {
        c->request = handle;
        if (g->gone || g->overflow || g->stopped || g->error.status != OB_OK) cancel_locked(g);
    } else {
        leave_locked(g);
    }
    os_unlock(&g->lock);
    return s;
}

/* None is submitted any more; those that are end. */
static void give_up(struct generation *g, unsigned from, const ob_error *error) {
    os_lock(&g->lock);
    if (g->error.status == OB_OK) g->error = *error;
    for (unsigned i = from; i < g->answer.choices; i++) g->choice[i].finish = OB_FINISH_ERROR;
    cancel_locked(g);
    os_unlock(&g->lock);
}

static void rename_options(ob_error *error) {
    if (strcmp(error->where, "order") == 0) strcpy(error->where, "samplers");
    if (strcmp(error->where, "dry_breakers") == 0) strcpy(error->where, "dry_sequence_breakers");
}

static void submit_all(struct generation *g, ob_engine *engine, const struct opening *opening,
                       const ob_grammar *grammar) {
    ob_error error;
    ob_status s = OB_OK;
    http_hold(g->x);
    g->left = 1;
    for (unsigned i = 0; s == OB_OK && i < g->answer.choices; i++) {
        s = submit(&g->choice[i], engine, opening, grammar, &error);
        if (s == OB_OK) continue;
        rename_options(&error);
        rename_field(g->wording, &error);
        give_up(g, i, &error);
    }
    if (s == OB_OK && g->params.stream) {
        os_lock(&g->lock);
        g->streams = true;
        os_unlock(&g->lock);
        http_stream(g->x, g->wording->type, stream_read);
    }
    os_lock(&g->lock);
    bool end = leave_locked(g);
    os_unlock(&g->lock);
    if (end) server_push(g->server, &g->end);
}

/* What the answer may be: the form that the request asks for, or calls of its tools. */
static ob_status open_grammar(const struct generation *g, const ob_engine *engine,
                              const struct opening *opening, ob_grammar **out, ob_error *error) {
    const struct params *params = &g->params;
    unsigned flags = (params->form.compact ? OB_JSON_COMPACT : 0) |
                     (opening->begin == CHAT_BEGIN_ANSWER ? OB_TOOLS_REASON : 0);
    if (params->form.kind != FORM_ANY || !opening->chat || !params->calls)
        return form_open(engine, &params->form, out, error);
    return ob_grammar_tools_json(engine, g->request, opening->text, opening->text_n, flags, out,
                                 error);
}

static ob_status prepare(struct generation *g, const ob_engine *engine, const ob_engine_info *info,
                         struct opening *opening, ob_grammar **grammar, ob_error *error) {
    ob_status s = OB_OK;
    if (info->encoder)
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "this model reads texts and writes none: POST /v1/embeddings");
    if (info->reasoning_style) opening->style = chat_thought_find(info->reasoning_style);
    s = g->wording->prompts(engine, g->request, &g->params, opening, error);
    if (s == OB_OK) s = open_choices(g, info, opening, error);
    return s == OB_OK ? open_grammar(g, engine, opening, grammar, error) : s;
}

/* Has answered, or has submitted and will. */
static void run(struct generation *g, ob_engine *engine) {
    ob_error error;
    ob_grammar *grammar = NULL;
    struct opening opening = {.begin = CHAT_BEGIN_CONTENT};
    ob_engine_info info;
    size_t longest = 0;
    g->answer.engine = engine;
    ob_engine_get_info(engine, &info);
    ob_status s = prepare(g, engine, &info, &opening, &grammar, &error);
    for (size_t i = 0; s == OB_OK && i < opening.n; i++)
        if (opening.prompt[i].n > longest) longest = opening.prompt[i].n;
    if (s == OB_OK && longest < info.context) {
        submit_all(g, engine, &opening, grammar);
    } else {
        server_leave(g->server, g);
        if (s != OB_OK) {
            rename_field(g->wording, &error);
            reply_ob_error(g->x, &error);
        } else {
            reply_too_long(g, longest, info.context);
        }
    }
    opening_free(&opening);
    ob_grammar_free(&grammar);
}

static ob_status read_request(struct server *server, struct http_exchange *x,
                              struct generation *g, ob_error *error) {
    const struct wording *wording = g->wording;
    ob_status s = params_parse(http_request(x)->body, &g->original, error);
    http_drop_body(x);
    if (s != OB_OK) return s;
    if (wording->translate) s = wording->translate(server, g->original, &g->request, error);
    else g->request = json_incref(g->original);
    if (s != OB_OK) return s;
    ob_sampling defaults = server_sampling(server);
    s = params_read(g->request, &defaults, &g->params, error);
    rename_field(wording, error);
    if (s == OB_OK) server_set_reasoning(server, &g->params);
    return s;
}

void generation_start(struct server *server, struct http_exchange *x,
                      const struct wording *wording) {
    ob_error error = {0};
    struct generation *g = calloc(1, sizeof *g);
    if (!g) {
        reply_json(x, REPLY_BROKEN, NULL);
        return;
    }
    *g = (struct generation){.server = server, .x = x, .wording = wording,
                             .shape = reply_shape_of(x), .end.run = generation_end,
                             .started = os_seconds()};
    os_mutex_init(&g->lock);
    if (read_request(server, x, g, &error) != OB_OK) {
        reply_ob_error(x, &error);
        generation_free(g);
        return;
    }
    g->answer.server = server;
    g->answer.original = g->original;
    g->answer.request = g->request;
    g->answer.params = &g->params;
    g->answer.created = (json_int_t)time(NULL);
    snprintf(g->answer.id, sizeof g->answer.id, "%s%016llx%08x", wording->id,
             (unsigned long long)os_random(), (unsigned)os_random());
    ob_engine *engine = server_enter(server, g);
    http_attach(x, g, on_hangup, generation_free);
    if (engine) run(g, engine);
    else reply_error(x, REPLY_UNAVAILABLE, "the server is stopping");
}
