/* SPDX-License-Identifier: Apache-2.0
 *
 * server.h: face of server/: one model behind an OpenAI-compatible HTTP API (docs/server.md). The
 * engine is used through onebit.h alone. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "onebit.h"

struct server_options {
    const char *host;         /* a name or address of this machine; NULL: 127.0.0.1 */
    uint16_t port;            /* 0: any free one */
    const char *alias;        /* the model's id in the API; NULL: the file's name without .gguf */
    const char *keys;         /* requests need one of them; separated by commas; NULL: none */
    const char *key_lines;    /* further ones, a line each; lines that begin with # are none */
    const char *origins;      /* whose pages may use the server, separated by commas; "*": all */
    const char *reasoning_format; /* of requests that name none; NULL: "auto" */
    bool limit_reasoning;     /* of requests that do not say: to so many tokens */
    uint32_t reasoning_tokens;
    double ping_seconds;      /* a stream that is silent so long says that it lives; 0: 15 */
    ob_engine_options engine; /* with the model's path; progress is called on another thread */
    /* One line for the user, without newline ("ready on http://127.0.0.1:8000"); any thread. */
    void (*notice)(void *user, const char *line);
    /* Changes what requests do not set, from what the model's files say; may be NULL. What it lets
     * `sampling` point to stays. */
    void (*sampling)(void *user, ob_sampling *sampling);
    void (*loaded)(void *user, const ob_engine *engine); /* before "ready"; may be NULL */
    void *user;
};

/* Listens at once, loads the model meanwhile, serves until SIGINT or SIGTERM, and then ends what
 * runs within a step. Once a process: it takes these signals over. OB_OK after such an end; an
 * error if it cannot listen or the model does not load. */
ob_status server_run(const struct server_options *options, ob_error *error);

#endif
