/* SPDX-License-Identifier: Apache-2.0
 * openai.c: see openai.h. */
#include "server/openai.h"

#include "server/internal.h"
#include "server/sse.h"

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

json_t *timings_json(const ob_timings *t) {
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f}", "cache_n", (int)t->cache_n,
                     "prompt_n", (int)t->prompt_n, "prompt_ms", t->prompt_ms,
                     "prompt_per_token_ms", ratio(t->prompt_ms, t->prompt_n), "prompt_per_second",
                     ratio(1e3 * t->prompt_n, t->prompt_ms), "predicted_n", (int)t->predicted_n,
                     "predicted_ms", t->predicted_ms, "predicted_per_token_ms",
                     ratio(t->predicted_ms, t->predicted_n), "predicted_per_second",
                     ratio(1e3 * t->predicted_n, t->predicted_ms));
}

json_t *usage_json(const ob_timings *t) {
    json_int_t prompt = (json_int_t)t->cache_n + t->prompt_n;
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens",
                     (json_int_t)t->predicted_n, "total_tokens", prompt + t->predicted_n,
                     "prompt_tokens_details", "cached_tokens", (json_int_t)t->cache_n);
}

json_t *openai_object(const struct answer *a, const char *object, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", a->id, "object", object, "created",
                     a->created, "model", server_model(a->server), "system_fingerprint",
                     "1bit-" OB_VERSION, "choices", choices);
}

json_t *openai_whole(const struct answer *a, const char *object, json_t *choices) {
    json_t *json = openai_object(a, object, choices);
    json_object_set_new(json, "usage", usage_json(&a->timings));
    json_object_set_new(json, "timings", timings_json(&a->timings));
    return json;
}

static json_t *chunk(const struct answer *a, const char *object, json_t *choice,
                     json_t *logprobs) {
    if (logprobs) json_object_set_new(choice, "logprobs", logprobs);
    return openai_object(a, object, json_pack("[o]", choice));
}

void openai_chunk(const struct answer *a, const char *object, json_t *choice, json_t *logprobs,
                  struct buf *out) {
    sse_json(out, chunk(a, object, choice, logprobs));
}

void openai_ending(const struct answer *a, const char *object, json_t *choice, json_t *logprobs,
                   struct buf *out) {
    json_t *json = chunk(a, object, choice, logprobs);
    json_object_set_new(json, "timings", timings_json(&a->timings));
    if (!a->params->include_usage)
        json_object_set_new(json, "usage", usage_json(&a->timings));
    sse_json(out, json);
}

void openai_last(const struct answer *a, const char *object, struct buf *out) {
    if (a->params->include_usage) sse_json(out, openai_whole(a, object, json_array()));
    sse_done(out);
}

void openai_failed(struct answer *a, json_t *error, struct buf *out) {
    (void)a;
    sse_json(out, error);
}
