/* SPDX-License-Identifier: Apache-2.0
 * http.c: http.h over libmicrohttpd (called MHD below).
 *
 * MHD calls on_request several times for one request: when the headers are there, for each part of
 * the body, when the body is whole, and again whenever a sleeping connection is woken. An exchange
 * lives as long as the connection or anybody else refers to it.
 *
 * A connection waits until a request of it is whole, and again after the answer. At most a third of
 * those that there may be do: a further one cuts the one that has waited longest, so that clients
 * which send half a request or nothing keep nobody out. Those that are being answered are never cut
 * for it.
 *
 * Locks: http->lock guards the lists of exchanges and of waiting connections; an exchange's lock
 * guards what its sleep is about. None is held while calling the user; none is taken while holding
 * the other. */
#include "server/http.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/net.h"
#include "base/os.h"

enum {
    IO_THREADS = 2,
    CONNECTIONS_MAX = 768,
    OTHER_FILES = 64,      /* that the process has open */
    HEAD_SECONDS = 15,     /* without a byte of a new connection's first request */
    IDLE_SECONDS = 60,     /* of a connection on which no byte moves, unless it sleeps */
    RECEIVE_SECONDS = 120, /* of a whole request */
    STREAM_BLOCK = 4096,
    HEADERS_MAX = 10,
};

/* A client's connection, for the list of those that wait; the first has waited longest. */
struct peer {
    struct peer *next, *before;
    int fd;
    bool waits;
};

struct http {
    struct http_options options;
    struct net_listener listener;
    struct MHD_Daemon *daemon;
    struct net_watch *watch;
    atomic_size_t bodies; /* bytes of all bodies held */
    os_mutex lock;
    os_cond none;
    struct http_exchange *first; /* those that are not over */
    uint64_t ids;
    struct peer *longest, *shortest; /* the two ends of the list of those that wait */
    unsigned waiting, waiting_max;
};

struct header {
    char *name, *value;
};

struct http_exchange {
    struct http *http;
    struct http_exchange *next, **link; /* in http->first's list */
    uint64_t id;
    atomic_uint refs;
    char title[160]; /* "GET /path" for the log */
    /* the I/O thread's, and the handler's until it has answered */
    struct http_request request;
    struct buf body;
    double started;
    bool handled;
    struct header header[HEADERS_MAX];
    size_t headers;
    /* under lock */
    os_mutex lock;
    struct MHD_Connection *connection; /* NULL: over */
    int fd;
    bool asleep, woken, gone, answered, routine, cut;
    double ended;
    unsigned failure; /* status for the log, 0: `status` */
    char words[96];
    struct MHD_Response *response; /* given, not yet queued; NULL also when out of memory */
    unsigned status;
    void *user;
    void (*hangup)(void *);
    void (*end)(void *);
    /* a stream's, the I/O thread's alone */
    http_read *read;
    struct buf out;
    size_t sent;
    enum http_more more;
};

/* ---- connections ----------------------------------------------------------------------------- */

static void unlist(struct http *http, struct peer *peer) {
    if (!peer->waits) return;
    *(peer->before ? &peer->before->next : &http->longest) = peer->next;
    *(peer->next ? &peer->next->before : &http->shortest) = peer->before;
    peer->waits = false;
    http->waiting--;
}

static void peer_waits(struct http *http, struct peer *peer) {
    if (!peer) return;
    os_lock(&http->lock);
    unlist(http, peer);
    peer->waits = true;
    peer->next = NULL;
    peer->before = http->shortest;
    *(peer->before ? &peer->before->next : &http->longest) = peer;
    http->shortest = peer;
    if (++http->waiting > http->waiting_max) {
        struct peer *longest = http->longest;
        net_cut(longest->fd); /* still open: it leaves the list before MHD closes it */
        unlist(http, longest);
    }
    os_unlock(&http->lock);
}

static void peer_waits_no_more(struct http *http, struct peer *peer) {
    if (!peer) return;
    os_lock(&http->lock);
    unlist(http, peer);
    os_unlock(&http->lock);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    struct http *http = user;
    struct peer *peer = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = peer = calloc(1, sizeof *peer); /* NULL: one that is not cut */
        if (!peer) return;
        peer->fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)HEAD_SECONDS);
        peer_waits(http, peer);
    } else {
        peer_waits_no_more(http, peer);
        free(peer);
    }
}

static struct peer *peer_of(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

const struct http_request *http_request(const struct http_exchange *x) { return &x->request; }

const char *http_header(const struct http_exchange *x, const char *name) {
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

void http_hold(struct http_exchange *x) { atomic_fetch_add(&x->refs, 1); }

void http_drop_body(struct http_exchange *x) {
    atomic_fetch_sub(&x->http->bodies, x->body.n);
    buf_free(&x->body);
    x->request.body = (struct str){0};
}

/* "GET /path", with whatever a terminal or a log might take for its own as %XX. */
static void set_title(struct http_exchange *x) {
    const char *part[] = {x->request.method, " ", x->request.path};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        for (const char *c = part[i]; *c && n + sizeof "%XX" <= sizeof x->title; c++)
            n += (size_t)sprintf(x->title + n, (*c > ' ' && *c < 127 && *c != '%') || i == 1
                                                   ? "%c" : "%%%02X", (unsigned char)*c);
}

void http_note(struct http_exchange *x, unsigned status, const char *words) {
    os_lock(&x->lock);
    x->failure = status;
    snprintf(x->words, sizeof x->words, "%s", words);
    os_unlock(&x->lock);
}

void http_set_routine(struct http_exchange *x) { x->routine = true; }

/* After everybody else has let go of it. */
static void log_exchange(const struct http_exchange *x) {
    unsigned status = x->failure ? x->failure : x->status;
    log_line(status >= 500 && !x->routine ? LOG_WARN : LOG_INFO, "%s %u %.0f ms%s%s%s", x->title,
             status, (x->ended - x->started) * 1e3, x->words[0] ? ", " : "", x->words,
             x->cut ? ", connection lost" : "");
}

void http_release(struct http_exchange *x) {
    if (atomic_fetch_sub(&x->refs, 1) != 1) return;
    if (x->handled) log_exchange(x);
    if (x->end) x->end(x->user);
    if (x->response) MHD_destroy_response(x->response);
    for (size_t i = 0; i < x->headers; i++) {
        free(x->header[i].name);
        free(x->header[i].value);
    }
    http_drop_body(x);
    buf_free(&x->out);
    os_mutex_free(&x->lock);
    free(x);
}

/* What two programs could read in two ways, as one that stands between them and the client. */
struct head {
    unsigned hosts, lengths, codings;
    bool chunked;
};

static enum MHD_Result on_header(void *user, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
    (void)kind;
    struct head *head = user;
    head->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    head->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) != 0) return MHD_YES;
    head->codings++;
    head->chunked = value && strcasecmp(value, "chunked") == 0;
    return MHD_YES;
}

static const char *what_is_bad(struct MHD_Connection *connection) {
    struct head head = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &head);
    return head.hosts > 1                      ? "more than one Host"
           : head.lengths + head.codings > 1   ? "more than one Content-Length or Transfer-Encoding"
           : head.codings && !head.chunked     ? "a Transfer-Encoding other than chunked"
                                               : NULL;
}

/* NULL when out of memory or not to be watched. */
static struct http_exchange *exchange_new(struct http *http, struct MHD_Connection *connection,
                                          const char *method, const char *path) {
    struct http_exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->http = http;
    x->connection = connection;
    x->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->started = os_seconds();
    x->request = (struct http_request){.method = method, .path = path,
                                       .host = http_header(x, "Host"),
                                       .origin = http_header(x, "Origin"),
                                       .bad = what_is_bad(connection)};
    set_title(x);
    atomic_init(&x->refs, 1);
    os_mutex_init(&x->lock);
    os_lock(&http->lock);
    x->id = http->ids++;
    x->next = http->first;
    x->link = &http->first;
    if (x->next) x->next->link = &x->next;
    http->first = x;
    os_unlock(&http->lock);
    return x;
}

static void exchange_unlink(struct http_exchange *x) {
    os_lock(&x->http->lock);
    *x->link = x->next;
    if (x->next) x->next->link = x->link;
    if (!x->http->first) os_signal(&x->http->none);
    os_unlock(&x->http->lock);
}

void http_attach(struct http_exchange *x, void *user, void (*hangup)(void *user),
                 void (*end)(void *user)) {
    os_lock(&x->lock);
    x->user = user;
    x->hangup = hangup;
    x->end = end;
    bool gone = x->gone;
    os_unlock(&x->lock);
    if (gone) hangup(user);
}

static void exchange_hangup(struct http_exchange *x) {
    os_lock(&x->lock);
    x->gone = true;
    void (*hangup)(void *) = x->hangup;
    void *user = x->user;
    os_unlock(&x->lock);
    if (hangup) hangup(user);
}

/* The watch's thread. */
static void on_hangup(void *user, uint64_t id) {
    struct http *http = user;
    os_lock(&http->lock);
    struct http_exchange *x = http->first;
    while (x && x->id != id) x = x->next;
    if (x) http_hold(x);
    os_unlock(&http->lock);
    if (!x) return;
    exchange_hangup(x);
    http_release(x);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* On the connection's own I/O thread. */
static void sleep_locked(struct http_exchange *x) {
    x->asleep = true;
    MHD_suspend_connection(x->connection);
}

static void wake_locked(struct http_exchange *x) {
    x->woken = true;
    if (x->asleep && x->connection) MHD_resume_connection(x->connection);
    x->asleep = false;
}

void http_wake(struct http_exchange *x) {
    os_lock(&x->lock);
    wake_locked(x);
    os_unlock(&x->lock);
}

void http_cut(struct http_exchange *x) {
    os_lock(&x->lock);
    if (x->connection) net_cut(x->fd);
    os_unlock(&x->lock);
}

/* ---- answers --------------------------------------------------------------------------------- */

void http_set_header(struct http_exchange *x, const char *name, const char *value) {
    assert(x->headers < HEADERS_MAX);
    struct header *h = &x->header[x->headers++];
    h->name = strdup(name);
    h->value = strdup(value);
}

static void answer(struct http_exchange *x, unsigned status, const char *type,
                   struct MHD_Response *response) {
    if (response && type) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; response && i < x->headers; i++)
        if (x->header[i].name && x->header[i].value)
            MHD_add_response_header(response, x->header[i].name, x->header[i].value);
    os_lock(&x->lock);
    x->status = status;
    x->response = response;
    x->answered = true;
    wake_locked(x);
    os_unlock(&x->lock);
}

void http_reply(struct http_exchange *x, unsigned status, const char *type, char *body, size_t n) {
    struct MHD_Response *response =
        body ? MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE) : NULL;
    if (body && !response) free(body);
    answer(x, status, type, response);
}

/* MHD wants up to `max` bytes of a stream. */
static ssize_t on_read(void *user, uint64_t position, char *to, size_t max) {
    (void)position;
    struct http_exchange *x = user;
    while (x->sent == x->out.n) {
        if (x->more == HTTP_END) return MHD_CONTENT_READER_END_OF_STREAM;
        if (x->more == HTTP_BREAK) return MHD_CONTENT_READER_END_WITH_ERROR;
        buf_clear(&x->out);
        x->sent = 0;
        os_lock(&x->lock);
        x->woken = false; /* a wake from here on counts */
        os_unlock(&x->lock);
        x->more = x->read(x->user, &x->out);
        if (x->out.failed) return MHD_CONTENT_READER_END_WITH_ERROR;
        if (x->out.n > 0 || x->more != HTTP_WAIT) continue;
        os_lock(&x->lock);
        bool sleeps = !x->woken;
        if (sleeps) sleep_locked(x);
        os_unlock(&x->lock);
        if (sleeps) return 0;
    }
    size_t n = x->out.n - x->sent < max ? x->out.n - x->sent : max;
    memcpy(to, x->out.p + x->sent, n);
    x->sent += n;
    return (ssize_t)n;
}

void http_stream(struct http_exchange *x, const char *type, http_read *read) {
    x->read = read;
    answer(x, MHD_HTTP_OK, type,
           MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_read, x, NULL));
}

/* ---- MHD's calls ----------------------------------------------------------------------------- */

/* What does not fit is read all the same, so that the client reads the answer. */
static enum MHD_Result receive(struct http_exchange *x, const char *data, size_t n) {
    struct http *http = x->http;
    if (os_seconds() - x->started > RECEIVE_SECONDS) return MHD_NO;
    if (x->request.body_state != HTTP_BODY_WHOLE) return MHD_YES;
    if (n > http->options.body_max - x->body.n) {
        x->request.body_state = HTTP_BODY_TOO_LONG;
        http_drop_body(x);
        return MHD_YES;
    }
    size_t held = atomic_fetch_add(&http->bodies, n);
    buf_add(&x->body, data, n);
    if (x->body.failed) atomic_fetch_sub(&http->bodies, n);
    if (x->body.failed || held + n > http->options.bodies_max) {
        x->request.body_state = HTTP_BODY_NO_ROOM;
        http_drop_body(x);
    }
    return MHD_YES;
}

/* An answer is needed: the handler gives it now or, while the connection sleeps, later. */
static enum MHD_Result respond(struct http_exchange *x) {
    struct http *http = x->http;
    if (!x->handled) {
        x->handled = true;
        x->request.body = (struct str){x->body.p, x->body.n};
        peer_waits_no_more(http, peer_of(x->connection));
        if (!net_watch_add(http->watch, x->fd, x->id)) return MHD_NO;
        http->options.handle(http->options.user, x);
    }
    os_lock(&x->lock);
    bool answered = x->answered;
    struct MHD_Response *response = x->response;
    x->response = NULL;
    if (!answered) sleep_locked(x);
    os_unlock(&x->lock);
    if (!answered) return MHD_YES;
    if (!response) return MHD_NO; /* out of memory: the connection is closed */
    enum MHD_Result queued = MHD_queue_response(x->connection, x->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **context) {
    (void)version;
    struct http_exchange *x = *context;
    if (!x) {
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)IDLE_SECONDS);
        *context = x = exchange_new(user, connection, method, path);
        if (!x) return MHD_NO;
        return x->request.bad ? respond(x) : MHD_YES; /* without the body: then MHD closes */
    }
    if (*n == 0) return respond(x);
    enum MHD_Result result = receive(x, data, *n);
    *n = 0;
    return result;
}

/* The answer has been sent, or the connection is closed. */
static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why) {
    struct http *http = user;
    struct http_exchange *x = *context;
    if (!x) return;
    if (x->handled) peer_waits(http, peer_of(connection));
    if (x->handled) net_watch_remove(http->watch, x->fd);
    os_lock(&x->lock);
    x->connection = NULL;
    x->cut = why != MHD_REQUEST_TERMINATED_COMPLETED_OK;
    x->ended = os_seconds();
    os_unlock(&x->lock);
    exchange_hangup(x);
    exchange_unlink(x);
    http_release(x);
    *context = NULL;
}

/* A path is a C string: one with a zero byte stays as it is written, and so is no route's. */
static size_t on_unescape(void *user, struct MHD_Connection *connection, char *text) {
    (void)user, (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static void on_log(void *user, const char *format, va_list args) {
    (void)user;
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = 0;
    log_debug("http: %s", line);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* How many connections the files that a process may open leave room for. */
static unsigned connections_max(void) {
    uint64_t files = os_files_max();
    uint64_t room = files > OTHER_FILES + 6 ? files - OTHER_FILES : 6;
    return room < CONNECTIONS_MAX ? (unsigned)room : CONNECTIONS_MAX;
}

ob_status http_open(const struct http_options *options, struct http **out, ob_error *error) {
    *out = NULL;
    struct http *http = calloc(1, sizeof *http);
    if (!http) return error_memory(error, "the HTTP server", sizeof *http);
    http->options = *options;
    http->listener.fd = -1;
    os_mutex_init(&http->lock);
    os_cond_init(&http->none);
    ob_status s = net_listen(options->host, options->port, &http->listener, error);
    if (s == OB_OK) s = net_watch_open(on_hangup, http, &http->watch, error);
    *out = http; /* the handler may want it before this returns */
    if (s == OB_OK) {
        unsigned connections = connections_max();
        http->waiting_max = connections / 3;
        errno = 0;
        http->daemon = MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
            NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, http->listener.fd,
            MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
            http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_UNESCAPE_CALLBACK,
            on_unescape, NULL, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)IO_THREADS,
            MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)IDLE_SECONDS, MHD_OPTION_END);
        if (!http->daemon)
            s = error_set(error, OB_ERR_IO, "cannot start the HTTP server: %s",
                          errno ? strerror(errno) : "no reason is known");
    }
    if (s != OB_OK) http_close(out, 0);
    return s;
}

void http_close(struct http **p, double grace) {
    struct http *http = *p;
    if (!http) return;
    double end = os_seconds() + grace, now;
    os_lock(&http->lock);
    while (http->first && (now = os_seconds()) < end)
        os_wait_for(&http->none, &http->lock, end - now);
    os_unlock(&http->lock);
    if (http->daemon) MHD_stop_daemon(http->daemon); /* closes the listening socket */
    else if (http->listener.fd >= 0) net_close(http->listener.fd);
    net_watch_close(&http->watch);
    os_cond_free(&http->none);
    os_mutex_free(&http->lock);
    free(http);
    *p = NULL;
}

uint16_t http_port(const struct http *http) { return http->listener.port; }
bool http_is_loopback(const struct http *http) { return http->listener.loopback; }
