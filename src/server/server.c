/* SPDX-License-Identifier: Apache-2.0
 * server.c: the server's life: listen, load on a thread of its own, serve, stop. The end has an
 * order: no new generation enters, those that run are cancelled and leave, the workers end (now
 * everything is answered), the connections close, the engine closes. */
#include "server/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os.h"
#include "base/path.h"
#include "server/access.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/reply.h"
#include "server/store.h"

enum {
    BODY_MAX = 32 << 20,
    BODIES_MAX = 256 << 20,
    WORKERS = 2,
    GRACE_SECONDS = 1, /* for clients to take the last bytes at the end */
};

struct server {
    struct server_options options;
    char *model;
    int64_t created;
    struct http *http;
    struct access access;
    struct queue *queue;
    struct store *store;
    os_thread loader, ticker;
    os_mutex lock;
    os_cond empty, tick;
    /* under lock */
    ob_engine *engine;        /* NULL while loading */
    ob_sampling sampling;     /* set before the engine */
    struct generation *first; /* those that have entered */
    struct server_stats stats;
    bool stopping;
    ob_error load_error;      /* status OB_OK: none */
};

/* A request on its way to a worker. */
struct errand {
    struct job job;
    struct server *server;
    struct http_exchange *x;
    const struct route *route;
};

/* ---- for the routes -------------------------------------------------------------------------- */

const char *server_model(const struct server *server) { return server->model; }
int64_t server_created(const struct server *server) { return server->created; }

const ob_engine *server_loaded(struct server *server) {
    os_lock(&server->lock);
    const ob_engine *engine = server->engine;
    os_unlock(&server->lock);
    return engine;
}

struct store *server_store(struct server *server) { return server->store; }

const char *server_model_path(const struct server *server) {
    return server->options.engine.model;
}

void server_get_stats(struct server *server, struct server_stats *out) {
    os_lock(&server->lock);
    *out = server->stats;
    out->running = 0;
    for (struct generation *g = server->first; g; g = generation_link(g)->next)
        out->running += generation_answers(g);
    os_unlock(&server->lock);
}

void server_count(struct server *server, const ob_timings *t, bool failed) {
    os_lock(&server->lock);
    struct server_stats *s = &server->stats;
    s->requests++;
    s->failures += failed;
    s->prompt_tokens += t->prompt_n;
    s->cached_tokens += t->cache_n;
    s->predicted_tokens += t->predicted_n;
    s->prompt_ms += t->prompt_ms;
    s->predicted_ms += t->predicted_ms;
    os_unlock(&server->lock);
}

ob_sampling server_sampling(struct server *server) {
    os_lock(&server->lock);
    ob_sampling sampling = server->sampling;
    os_unlock(&server->lock);
    return sampling;
}

void server_set_reasoning(const struct server *server, struct params *params) {
    const struct server_options *o = &server->options;
    if (!params->seeded && o->seeded) params->sampling.seed = o->seed;
    if (!params->reasoning_format)
        params->reasoning_format = o->reasoning_format ? o->reasoning_format : "auto";
    if (params->limit_reasoning || params->free_reasoning) return;
    params->limit_reasoning = o->limit_reasoning;
    params->reasoning_tokens = o->reasoning_tokens;
}

void server_push(struct server *server, struct job *job) { queue_push(server->queue, job); }

ob_engine *server_enter(struct server *server, struct generation *g) {
    os_lock(&server->lock);
    ob_engine *engine = server->stopping ? NULL : server->engine;
    if (engine) {
        struct server_link *link = generation_link(g);
        *link = (struct server_link){.next = server->first, .link = &server->first};
        if (link->next) generation_link(link->next)->link = &link->next;
        server->first = g;
    }
    os_unlock(&server->lock);
    return engine;
}

void server_leave(struct server *server, struct generation *g) {
    struct server_link *link = generation_link(g);
    os_lock(&server->lock);
    *link->link = link->next;
    if (link->next) generation_link(link->next)->link = link->link;
    if (!server->first) os_signal(&server->empty);
    os_unlock(&server->lock);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void run_errand(struct job *job) {
    struct errand errand = *(struct errand *)(void *)job;
    free(job);
    errand.route->handle(errand.server, errand.x);
}

static void send_errand(struct server *server, struct http_exchange *x, const struct route *route) {
    struct errand *errand = malloc(sizeof *errand);
    if (!errand) {
        reply_error(x, REPLY_BROKEN, "out of memory");
        return;
    }
    *errand = (struct errand){{.run = run_errand}, server, x, route};
    os_lock(&server->lock);
    bool sent = !server->stopping; /* then the queue is still open */
    if (sent) queue_push(server->queue, &errand->job);
    os_unlock(&server->lock);
    if (sent) return;
    free(errand);
    reply_error(x, REPLY_UNAVAILABLE, "the server is stopping");
}

/* What a browser asks before a page of another origin may send its request. */
static void answer_preflight(struct http_exchange *x) {
    const char *wanted = http_header(x, "Access-Control-Request-Headers");
    http_set_header(x, "Access-Control-Allow-Methods", "GET, POST");
    http_set_header(x, "Access-Control-Allow-Headers", wanted ? wanted : "Content-Type");
    http_set_header(x, "Access-Control-Max-Age", "600");
    http_reply(x, REPLY_NO_CONTENT, NULL, strdup(""), 0);
}

static void answer_unknown(struct http_exchange *x, const char *allowed) {
    const struct http_request *request = http_request(x);
    char line[256];
    if (allowed) http_set_header(x, "Allow", allowed);
    snprintf(line, sizeof line, "%s %.200s: %s", request->method, request->path,
             allowed ? "wrong method" : "no such route");
    reply_error(x, allowed ? REPLY_BAD_METHOD : REPLY_NOT_FOUND, line);
}

static void handle(void *user, struct http_exchange *x) {
    struct server *server = user;
    const struct http_request *request = http_request(x);
    const char *allowed;
    if (request->bad) {
        reply_error(x, REPLY_BAD_REQUEST, request->bad);
        return;
    }
    const struct route *route = route_find(request->method, request->path, &allowed);
    const struct access *access = &server->access;
    const char *refusal =
        access_refuses(access, request, route, http_is_loopback(server->http));
    if (refusal) {
        reply_error(x, REPLY_FORBIDDEN, refusal);
        return;
    }
    if (access_trusts_origin(access, request)) {
        http_set_header(x, "Access-Control-Allow-Origin", request->origin);
        http_set_header(x, "Vary", "Origin");
    }
    if (!route && allowed && request->origin && strcmp(request->method, "OPTIONS") == 0) {
        answer_preflight(x);
    } else if (!(route && (route->open || route->for_all)) &&
               !access_has_key(access, http_header(x, "Authorization"),
                               http_header(x, "X-Api-Key"))) {
        http_set_header(x, "WWW-Authenticate", "Bearer");
        reply_error(x, REPLY_NO_KEY, "a key is needed: \"Authorization: Bearer KEY\"");
    } else if (!route) {
        answer_unknown(x, allowed);
    } else if (request->body_state == HTTP_BODY_TOO_LONG) {
        reply_error(x, REPLY_TOO_LONG, "the body is longer than 32 MiB");
    } else if (request->body_state == HTTP_BODY_NO_ROOM) {
        reply_error(x, REPLY_UNAVAILABLE, "no memory for the body now");
    } else if (!route->needs_model) {
        route->handle(server, x);
    } else if (!server_loaded(server)) {
        http_set_header(x, "Retry-After", "1");
        reply_error(x, REPLY_UNAVAILABLE, "the model is loading");
    } else {
        send_errand(server, x, route);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void __attribute__((format(printf, 2, 3))) notice(const struct server *server,
                                                         const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (server->options.notice) server->options.notice(server->options.user, line);
}

static void say_where(const struct server *server, const char *what) {
    const char *host = server->options.host;
    bool v6 = strchr(host, ':') != NULL;
    notice(server, "%s on http://%s%s%s:%u", what, v6 ? "[" : "", host, v6 ? "]" : "",
           http_port(server->http));
}

static void say_ready(const struct server *server, const ob_engine *engine) {
    ob_engine_info info;
    char line[400];
    if (server->options.loaded) server->options.loaded(server->options.user, engine);
    ob_engine_get_info(engine, &info);
    if (info.encoder)
        notice(server, "no chat, no completions, %s",
               info.embedding ? "only embeddings" : "no embeddings: the model gives scores");
    else if (info.chat_error)
        notice(server, "no chat, only completions: %s",
               ob_error_line(info.chat_error, line, sizeof line));
    say_where(server, "ready");
}

static void *load(void *arg) {
    struct server *server = arg;
    ob_engine *engine;
    ob_error error = {0};
    ob_status s = ob_engine_open(&server->options.engine, &engine, &error);
    ob_sampling sampling = s == OB_OK ? ob_engine_sampling(engine) : ob_sampling_default();
    if (server->options.sampling) server->options.sampling(server->options.user, &sampling);
    os_lock(&server->lock);
    server->sampling = sampling;
    if (s == OB_OK) server->engine = engine;
    else server->load_error = error;
    if (s == OB_OK && !server->stopping) say_ready(server, engine); /* http is there until then */
    os_unlock(&server->lock);
    if (s != OB_OK) os_stop();
    return NULL;
}

/* The id that replies carry, in JSON, so UTF-8: a file's name is made so, an alias refused. */
static ob_status name_model(const struct server_options *options, char **out, ob_error *error) {
    struct buf clean = BUF_INIT;
    struct str stem = path_stem(options->engine.model);
    char *name = options->alias ? strdup(options->alias) : strndup(stem.p, stem.n);
    if (name) clean_text(&clean, str_of(name));
    bool same = name && clean.p && strcmp(clean.p, name) == 0;
    free(name);
    if (!name || clean.failed) {
        buf_free(&clean);
        return error_memory(error, "the model's name", 0);
    }
    if (options->alias && !same) {
        buf_free(&clean);
        ob_status s = error_set(error, OB_ERR_ARGUMENT, "is empty or not UTF-8");
        error_at(error, NULL, "alias", OB_NO_OFFSET);
        return s;
    }
    *out = clean.p;
    return OB_OK;
}

/* Lets silent streams say that they live. */
static void *tick(void *arg) {
    struct server *server = arg;
    double seconds = server->options.ping_seconds > 0 ? server->options.ping_seconds : 15;
    os_lock(&server->lock);
    while (!server->stopping) {
        os_wait_for(&server->tick, &server->lock, seconds);
        for (struct generation *g = server->first; g; g = generation_link(g)->next)
            generation_tick(g);
    }
    os_unlock(&server->lock);
    return NULL;
}

static void stop(struct server *server) {
    os_lock(&server->lock);
    if (server->load_error.status == OB_OK) notice(server, "stopping");
    server->stopping = true;
    os_signal(&server->tick);
    for (struct generation *g = server->first; g; g = generation_link(g)->next) generation_stop(g);
    while (server->first) os_wait(&server->empty, &server->lock);
    os_unlock(&server->lock);
    queue_close(&server->queue);
}

static ob_status serve(struct server *server, ob_error *error) {
    const struct http_options http = {.host = server->options.host, .port = server->options.port,
                                      .body_max = BODY_MAX, .bodies_max = BODIES_MAX,
                                      .handle = handle, .user = server};
    ob_status s = access_init(&server->access, server->options.keys, server->options.key_lines,
                              server->options.origins, error);
    if (s == OB_OK) s = queue_open(WORKERS, &server->queue, error);
    if (s == OB_OK) s = http_open(&http, &server->http, error);
    if (s != OB_OK) {
        queue_close(&server->queue);
        return s;
    }
    say_where(server, "listening");
    bool loading = os_thread_start(&server->loader, load, server);
    bool ticking = os_thread_start(&server->ticker, tick, server);
    if (loading) os_stop_wait();
    else error_set(&server->load_error, OB_ERR_MEMORY, "cannot start a thread");
    stop(server);
    if (ticking) os_thread_join(&server->ticker);
    http_close(&server->http, GRACE_SECONDS);
    if (loading) os_thread_join(&server->loader);
    ob_engine_close(&server->engine);
    if (error) *error = server->load_error;
    return server->load_error.status;
}

ob_status server_run(const struct server_options *options, ob_error *error) {
    if (!options || !options->engine.model)
        return error_set(error, OB_ERR_ARGUMENT, "no model is given");
    struct server server = {.options = *options, .created = (int64_t)time(NULL)};
    if (!options->host) server.options.host = "127.0.0.1";
    ob_status named = name_model(options, &server.model, error);
    if (named != OB_OK) return named;
    os_mutex_init(&server.lock);
    os_cond_init(&server.empty);
    os_cond_init(&server.tick);
    os_stop_on_signals();
    server.store = store_open();
    ob_status s = server.store ? serve(&server, error) : error_memory(error, "a server", 0);
    store_close(&server.store);
    access_free(&server.access);
    os_cond_free(&server.empty);
    os_cond_free(&server.tick);
    os_mutex_free(&server.lock);
    free(server.model);
    return s;
}
