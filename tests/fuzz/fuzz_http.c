/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_http.c: any request through the checks, the routes and the fields to an answer, without
 * sockets, threads or a model: http.h, what server.c offers and the engine are small stand-ins
 * here. Input: a line "METHOD PATH HOST ORIGIN", then the body. There must be one answer, and good
 * JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/sample.h"
#include "server/access.h"
#include "server/internal.h"
#include "server/reply.h"
#include "server/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool good) {
    if (!good) abort();
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

struct http_exchange {
    struct http_request request;
    int answers, holds;
    unsigned status;
    bool json;
    char *body; /* of a whole answer */
    size_t n;
    http_read *read;
    void *user;
    void (*hangup)(void *);
    void (*end)(void *);
};

const struct http_request *http_request(const struct http_exchange *x) { return &x->request; }
const char *http_header(const struct http_exchange *x, const char *name) {
    check(name[0]);
    return x->request.host;
}
void http_drop_body(struct http_exchange *x) { x->request.body = (struct str){0}; }
void http_hold(struct http_exchange *x) { x->holds++; }
void http_release(struct http_exchange *x) { x->holds--; }
void http_wake(struct http_exchange *x) { (void)x; }
void http_cut(struct http_exchange *x) { (void)x; }
void http_set_routine(struct http_exchange *x) { (void)x; }
void http_set_header(struct http_exchange *x, const char *name, const char *value) {
    check(x && name[0] && value[0]);
}
void http_note(struct http_exchange *x, unsigned status, const char *words) {
    check(x && status == 0 && words[0]);
}

void http_attach(struct http_exchange *x, void *user, void (*hangup)(void *user),
                 void (*end)(void *user)) {
    x->user = user;
    x->hangup = hangup;
    x->end = end;
}

void http_reply(struct http_exchange *x, unsigned status, const char *type, char *body, size_t n) {
    x->json = type && strcmp(type, "application/json") == 0;
    x->answers++;
    x->status = status;
    x->body = body;
    x->n = n;
}

void http_stream(struct http_exchange *x, const char *type, http_read *read) {
    check(strcmp(type, "text/event-stream") == 0 || strcmp(type, "application/x-ndjson") == 0);
    x->answers++;
    x->status = REPLY_OK;
    x->read = read;
}

/* ---- the server ------------------------------------------------------------------------------ */

static struct job *pushed;
static char engine; /* something to point to */

const char *server_model(const struct server *server) { return server ? "" : "model"; }
int64_t server_created(const struct server *server) { return server != NULL; }
const ob_engine *server_loaded(struct server *server) { return server ? NULL : (void *)&engine; }
ob_engine *server_enter(struct server *server, struct generation *g) {
    return server || !g ? NULL : (void *)&engine;
}
void server_leave(struct server *server, struct generation *g) { check(!server && g); }
ob_sampling server_sampling(struct server *server) {
    check(!server);
    return ob_sampling_default();
}
void server_set_reasoning(const struct server *server, struct params *params) {
    check(!server && params != NULL);
    if (!params->reasoning_format) params->reasoning_format = "auto";
}
struct store *server_store(struct server *server) {
    static struct store *store;
    if (!store) store = store_open();
    check(!server && store);
    return store;
}
const char *server_model_path(const struct server *server) { return server ? "" : "model.gguf"; }
void server_get_stats(struct server *server, struct server_stats *out) {
    check(!server);
    *out = (struct server_stats){.running = 1};
}
void server_count(struct server *server, const ob_timings *timings, bool failed) {
    check(!server && timings && !failed);
}
void server_push(struct server *server, struct job *job) {
    check(!server && !pushed);
    pushed = job;
}

/* ---- the engine: a token is a byte, the answer is the prompt --------------------------------- */

enum { EMBEDDING = 4 };

void ob_engine_get_info(const ob_engine *e, ob_engine_info *info) {
    check((const void *)e == &engine);
    *info = (ob_engine_info){.family = "none", .device = "none", .context = 256, .vocab = 256,
                             .parallel = 2, .embedding = EMBEDDING};
}

void ob_tokens_free(ob_tokens *tokens) {
    free(tokens->id);
    *tokens = (ob_tokens){0};
}

ob_status ob_tokenize(const ob_engine *e, const char *text, size_t n, bool add_special,
                      bool parse_special, ob_tokens *out, ob_error *error) {
    (void)e, (void)add_special, (void)parse_special, (void)error;
    out->id = malloc((n + 1) * sizeof *out->id);
    check(out->id != NULL);
    for (size_t i = 0; i < n; i++) out->id[out->n++] = (unsigned char)text[i];
    return OB_OK;
}

ob_status ob_chat_prompt_json(const ob_engine *e, const json_t *request, ob_tokens *out,
                              char **text, size_t *text_n, ob_error *error) {
    *text = json_dumps(request, JSON_COMPACT);
    *text_n = strlen(*text);
    return ob_tokenize(e, *text, *text_n < 200 ? *text_n : 200, true, false, out, error);
}

ob_sampling ob_sampling_default(void) {
    return (ob_sampling){.top_p = 1, .typical_p = 1, .repeat_penalty = 1};
}
ob_status ob_sampling_check(const ob_sampling *sampling, ob_error *error) {
    return sample_check(sampling, error);
}

/* Grammars are made of nothing: what reads them has fuzz targets of its own. */
ob_status ob_grammar_gbnf(const ob_engine *e, const char *text, size_t n, ob_grammar **out,
                          ob_error *error) {
    (void)error;
    check((const void *)e == &engine && (text || !n));
    *out = NULL;
    return OB_OK;
}
ob_status ob_grammar_regex(const ob_engine *e, const char *text, size_t n, ob_grammar **out,
                           ob_error *error) {
    return ob_grammar_gbnf(e, text, n, out, error);
}
ob_status ob_grammar_json_schema_json(const ob_engine *e, const json_t *schema, unsigned flags,
                                      ob_grammar **out, ob_error *error) {
    (void)flags;
    check(schema != NULL);
    return ob_grammar_gbnf(e, NULL, 0, out, error);
}
ob_status ob_grammar_tools_json(const ob_engine *e, const json_t *request, const char *prompt,
                                size_t prompt_n, unsigned flags, ob_grammar **out,
                                ob_error *error) {
    (void)flags;
    check(json_is_array(json_object_get(request, "tools")) && (prompt || prompt_n == 0));
    return ob_grammar_gbnf(e, NULL, 0, out, error);
}
void ob_grammar_free(ob_grammar **grammar) { *grammar = NULL; }

ob_status ob_detokenize(const ob_engine *e, const int32_t *id, size_t count, bool special,
                        char **out, size_t *n, ob_error *error) {
    (void)special, (void)error;
    check((const void *)e == &engine);
    *out = malloc(count + 1);
    check(*out != NULL);
    for (size_t i = 0; i < count; i++) (*out)[i] = (char)id[i];
    (*out)[*n = count] = 0;
    return OB_OK;
}

ob_status ob_submit(ob_engine *e, const ob_request_options *o, ob_request **out, ob_error *error) {
    ob_event event = {.text_n = 1, .timings = {.prompt_n = (uint32_t)o->prompt_n}};
    check((void *)e == &engine && o->prompt_n && o->prompt_n < 256 && o->stop_n <= 16);
    for (size_t i = 0; i < o->stop_n; i++)
        if (!*o->stop[i]) return error_set(error, OB_ERR_ARGUMENT, "an empty stop string");
    *out = (void *)e;
    for (size_t i = 0; i < o->prompt_n && (o->max_tokens == 0 || i < o->max_tokens); i++) {
        char c = (char)o->prompt[i];
        ob_logprob top[OB_TOP_LOGPROBS] = {{0}};
        event.text = &c;
        event.id = (unsigned char)c;
        event.top = top;
        event.top_n = o->top_logprobs;
        event.timings.predicted_n++;
        o->on_event(o->user, &event);
    }
    event.text_n = 0;
    event.id = -1;
    event.finish = o->max_tokens ? OB_FINISH_LENGTH : OB_FINISH_STOP;
    o->on_event(o->user, &event);
    return OB_OK;
}

void ob_cancel(ob_request *request) { check(request != NULL); }
void ob_release(ob_request **request) { *request = NULL; }

ob_status ob_embed(const ob_engine *e, const ob_tokens *text, size_t n, float *out,
                   ob_error *error) {
    (void)error;
    check((const void *)e == &engine);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < EMBEDDING; k++)
            out[i * EMBEDDING + k] = k < text[i].n ? (float)text[i].id[k] : 0;
    return OB_OK;
}

/* ---- a request ------------------------------------------------------------------------------- */

static void check_json(const char *text, size_t n, bool good) {
    json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    check(json_is_object(json) || (good && json_is_array(json)));
    const json_t *error = json_object_get(json, "error"); /* Ollama's is a string */
    check(good == !(json_is_string(error) || json_is_string(json_object_get(error, "message"))));
    json_decref(json);
}

/* Every line is JSON, perhaps behind an event's name; [DONE] comes last, if it comes. */
static void check_events(const struct buf *out) {
    size_t at = 0;
    check(out->n > 0);
    while (at < out->n) {
        const char *line = out->p + at, *end = strchr(line, '\n');
        check(end != NULL);
        at = (size_t)(end - out->p) + 1;
        if (strncmp(line, "data: ", 6) == 0) line += 6;
        if (strncmp(line, "[DONE]", 6) == 0) check(strcmp(line, "[DONE]\n\n") == 0);
        else if (end != line && strncmp(line, "event: ", 7) != 0)
            check_json(line, (size_t)(end - line), true);
    }
}

static void answer(struct http_exchange *x, const struct route *route) {
    struct buf out = BUF_INIT;
    route->handle(NULL, x);
    if (pushed) {
        struct job *job = pushed;
        pushed = NULL;
        job->run(job);
    }
    check(x->answers == 1 && x->holds == 0);
    if (x->read) {
        check(x->read(x->user, &out) == HTTP_END);
        check_events(&out);
    } else if (route == &route_page && !x->json) {
        check(x->status == REPLY_OK ? x->n > 0 : x->status == REPLY_NOT_MODIFIED && x->n == 0);
    } else {
        check(x->status == REPLY_OK || x->status == REPLY_BAD_REQUEST ||
              x->status == REPLY_NOT_FOUND);
        if (x->json) check_json(x->body, x->n, x->status == REPLY_OK);
    }
    if (x->end) {
        x->hangup(x->user);
        x->end(x->user);
    }
    free(x->body);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *text = (const char *)bytes, *newline = memchr(text, '\n', size);
    if (!newline) return 0;
    char *head = strndup(text, (size_t)(newline - text)), *rest = head;
    size_t body = (size_t)(newline - text) + 1;
    const char *method = strsep(&rest, " "), *path = strsep(&rest, " ");
    struct http_exchange x = {
        .request = {.method = method, .path = path ? path : "/", .host = strsep(&rest, " "),
                    .origin = strsep(&rest, " "), .body = {text + body, size - body}}};
    const char *allowed;
    const struct route *route = route_find(x.request.method, x.request.path, &allowed);
    char *lines = strndup(text + body, size - body);
    struct access access;
    check(access_init(&access, x.request.host, lines, x.request.origin, NULL) == OB_OK ||
          access.keys == 0);
    access_has_key(&access, path, x.request.origin);
    for (size_t i = 0; i < access.keys; i++) check(access_has_key(&access, NULL, access.key[i]));
    access_free(&access);
    free(lines);
    bool trusted = access_trusts_origin(&access, &x.request);
    if (trusted && x.request.host) check(!access_refuses(&access, &x.request, route, false));
    if (route && !access_refuses(&access, &x.request, route, true)) answer(&x, route);
    free(head);
    return 0;
}
