/* SPDX-License-Identifier: Apache-2.0
 * metrics.c: counters for Prometheus (text format 0.0.4), under llama-server's names, which
 * dashboards have, and ours. */
#include <string.h>

#include "server/internal.h"
#include "server/reply.h"

static void put(struct buf *out, const char *name, const char *type, const char *help,
                double value) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name, value);
}

static void handle(struct server *server, struct http_exchange *x) {
    struct buf out = BUF_INIT;
    struct server_stats s;
    ob_engine_info info;
    server_get_stats(server, &s);
    ob_engine_get_info(server_loaded(server), &info);
    double waiting = s.running > info.parallel ? s.running - info.parallel : 0;
    put(&out, "llamacpp:prompt_tokens_total", "counter", "Prompt tokens computed.",
        (double)s.prompt_tokens);
    put(&out, "llamacpp:prompt_seconds_total", "counter", "Seconds of computing prompts.",
        s.prompt_ms / 1e3);
    put(&out, "llamacpp:tokens_predicted_total", "counter", "Tokens written.",
        (double)s.predicted_tokens);
    put(&out, "llamacpp:tokens_predicted_seconds_total", "counter", "Seconds of writing them.",
        s.predicted_ms / 1e3);
    put(&out, "llamacpp:prompt_tokens_seconds", "gauge", "Prompt tokens a second, on average.",
        s.prompt_ms > 0 ? 1e3 * (double)s.prompt_tokens / s.prompt_ms : 0);
    put(&out, "llamacpp:predicted_tokens_seconds", "gauge", "Tokens written a second, on average.",
        s.predicted_ms > 0 ? 1e3 * (double)s.predicted_tokens / s.predicted_ms : 0);
    put(&out, "llamacpp:requests_processing", "gauge", "Answers that run.", s.running - waiting);
    put(&out, "llamacpp:requests_deferred", "gauge", "Answers that wait for a place.", waiting);
    put(&out, "onebit:prompt_tokens_cached_total", "counter", "Prompt tokens found in the cache.",
        (double)s.cached_tokens);
    put(&out, "onebit:requests_total", "counter", "Requests answered.", (double)s.requests);
    put(&out, "onebit:requests_failed_total", "counter", "Requests ended by an error or a cancel.",
        (double)s.failures);
    http_reply(x, REPLY_OK, "text/plain; version=0.0.4; charset=utf-8",
               out.failed ? NULL : out.p, out.n);
    if (out.failed) buf_free(&out);
}

const struct route route_metrics = {
    .method = "GET", .paths = {"/metrics"}, .handle = handle, .needs_model = true,
};
