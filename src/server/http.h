/* SPDX-License-Identifier: Apache-2.0
 *
 * http.h: HTTP/1.1 behind one small face; nobody else sees libmicrohttpd. A few I/O threads run all
 * connections by epoll. A request is handed to the handler when its body is whole; the answer may
 * be given at once or later, from any thread, whole or as a stream. Meanwhile the connection sleeps
 * (libmicrohttpd calls it suspended: out of its epoll set), and a net_watch reports a client that
 * hangs up.
 *
 * An exchange is one request and its answer:
 *
 *   receiving --> handled --> answered (http_reply, http_stream) --> over
 *                    |            |
 *                    +---sleeps---+   woken by the answer, http_wake, or the end
 *
 * Until it is answered the exchange belongs to the handler; afterwards only a reference taken with
 * http_hold may touch it. Handlers and `read` run on I/O threads: they must not block.
 *
 * Each exchange is logged when it ends: as a warning if the status is 500 or more. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

struct http;
struct http_exchange;

enum http_body { HTTP_BODY_WHOLE, HTTP_BODY_TOO_LONG, HTTP_BODY_NO_ROOM };

/* What a handler sees of a request; valid until it is answered. */
struct http_request {
    const char *method, *path; /* percent-decoded, without the query */
    const char *host, *origin; /* headers, NULL if absent */
    const char *bad;           /* why the head is refused; NULL if it is fine */
    struct str body;           /* empty unless body_state is HTTP_BODY_WHOLE */
    enum http_body body_state;
};

struct http_options {
    const char *host;
    uint16_t port;
    size_t body_max;   /* bytes of one body */
    size_t bodies_max; /* bytes of all bodies held at once */
    void (*handle)(void *user, struct http_exchange *x);
    void *user;
};

/* Listens and starts the threads; handle may be called before this returns, with *out set. */
ob_status http_open(const struct http_options *options, struct http **out, ob_error *error);
/* Lets open exchanges end for up to `grace` seconds (all must have been answered), then cuts what
 * is left, and stops. No function of http is called back afterwards. */
void http_close(struct http **http, double grace);
uint16_t http_port(const struct http *http);
bool http_is_loopback(const struct http *http);

const struct http_request *http_request(const struct http_exchange *x);
/* NULL if absent. Before the answer only. */
const char *http_header(const struct http_exchange *x, const char *name);
/* Gives the body's memory back before the exchange ends. */
void http_drop_body(struct http_exchange *x);

/* The user's part of an exchange: hangup says that the client is gone (any thread, perhaps several
 * times, at the latest when the exchange is over); end is the last call of all. */
void http_attach(struct http_exchange *x, void *user, void (*hangup)(void *user),
                 void (*end)(void *user));
void http_hold(struct http_exchange *x);
void http_release(struct http_exchange *x);

/* For the line in the log, which is written when the exchange ends: words behind the status, which
 * is the answer's unless one is given (of a stream that failed after its headers; else 0). */
void http_note(struct http_exchange *x, unsigned status, const char *words);
/* Whatever its status, the answer is no failure: only who wants to see every request sees it. */
void http_set_routine(struct http_exchange *x);

/* Adds a header to the answer, before it is given; strings are copied. */
void http_set_header(struct http_exchange *x, const char *name, const char *value);
/* The whole answer; `body` is malloc'd and taken over, NULL stands for out of memory. */
void http_reply(struct http_exchange *x, unsigned status, const char *type, char *body, size_t n);

/* A stream is read whenever the client takes more: `read` appends to out and says what follows.
 * After HTTP_WAIT it is called again when http_wake was; HTTP_BREAK cuts the connection, so that
 * the client sees that the answer is not whole. `user` is http_attach's. */
enum http_more { HTTP_WAIT, HTTP_END, HTTP_BREAK };
typedef enum http_more http_read(void *user, struct buf *out);
void http_stream(struct http_exchange *x, const char *type, http_read *read);
/* Any thread that holds a reference; does not block. */
void http_wake(struct http_exchange *x);
/* Ends the connection, whatever the client does. */
void http_cut(struct http_exchange *x);

#endif
