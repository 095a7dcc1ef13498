/* SPDX-License-Identifier: Apache-2.0
 * llama.c: see llama.h. An answer is an object of its own, several are an array; a stream ends with
 * the object whose "stop" is true. */
#include "server/llama.h"

#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"
#include "server/openai.h"
#include "server/sse.h"

ob_status llama_translate(struct server *server, const json_t *request, json_t **out,
                          ob_error *error) {
    static const struct params_neutral neutral[] = {
        {"image_data", "[]"},       {"lora", "[]"},           {"multimodal_data", "[]"},
        {"n_indent", "0"},          {"return_progress", "false"},
        {"return_tokens", "false"}, {"t_max_predict_ms", "0"},
    };
    (void)server;
    *out = json_incref((json_t *)(uintptr_t)request);
    return params_refuse_all(request, neutral, sizeof neutral / sizeof neutral[0], error);
}

/* "completion_probabilities"; NULL: there are none. */
static json_t *probabilities(const struct answer *a, struct str records) {
    if (!records.n) return NULL;
    json_t *chat = logprobs_chat(a->engine, records, a->params->logprobs_after);
    json_t *list = json_incref(json_object_get(chat, "content"));
    json_decref(chat);
    return list;
}

static json_t *settings(const struct answer *a) {
    const ob_sampling *s = &a->params->sampling;
    return json_pack("{s:I, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:b, s:b}", "seed",
                     (json_int_t)s->seed, "temperature", (double)s->temperature, "top_k",
                     (int)s->top_k, "top_p", (double)s->top_p, "min_p", (double)s->min_p,
                     "repeat_penalty", (double)s->repeat_penalty, "presence_penalty",
                     (double)s->presence_penalty, "frequency_penalty",
                     (double)s->frequency_penalty, "n_predict",
                     a->params->max_tokens ? (json_int_t)a->params->max_tokens : -1, "ignore_eos",
                     a->params->ignore_eos, "stream", a->params->stream);
}

static json_t *last(const struct answer *a, const struct said *said) {
    const ob_timings *t = &said->timings;
    bool cut = said->finish[0] == 'l';
    json_int_t evaluated = (json_int_t)t->cache_n + t->prompt_n;
    const json_t *prompt = json_object_get(a->request, "prompt");
    json_t *json = json_pack(
        "{s:i, s:o, s:[], s:i, s:b, s:s, s:I, s:I, s:o, s:O?, s:b, s:b, s:s, s:s, s:I, s:o}",
        "index", (int)said->index, "content", clean_json(said->text), "tokens", "id_slot", -1,
        "stop", 1, "model", server_model(a->server), "tokens_predicted",
        (json_int_t)t->predicted_n, "tokens_evaluated", evaluated, "generation_settings",
        settings(a), "prompt", prompt, "has_new_line", str_contains(said->text, "\n"),
        "truncated", 0, "stop_type", cut ? "limit" : said->stop ? "word" : "eos", "stopping_word",
        said->stop ? said->stop : "", "tokens_cached", evaluated + t->predicted_n, "timings",
        timings_json(t));
    json_t *probs = probabilities(a, said->records);
    if (probs) json_object_set_new(json, "completion_probabilities", probs);
    return json;
}

json_t *llama_whole(struct answer *a, const struct said *said) {
    if (a->choices == 1) return last(a, said);
    json_t *list = json_array();
    for (unsigned i = 0; i < a->choices; i++)
        if (json_array_append_new(list, last(a, &said[i])) != 0) return json_decref(list), NULL;
    return list;
}

void llama_piece(struct answer *a, const struct piece *p, struct buf *out) {
    json_t *json = json_pack("{s:i, s:o, s:[], s:b, s:i, s:I, s:I}", "index", (int)p->index,
                             "content", clean_json(p->event->text), "tokens", "stop", 0,
                             "id_slot", -1, "tokens_predicted",
                             (json_int_t)p->timings.predicted_n, "tokens_evaluated",
                             (json_int_t)p->timings.cache_n + p->timings.prompt_n);
    json_t *probs = probabilities(a, p->records);
    if (probs) json_object_set_new(json, "completion_probabilities", probs);
    sse_json(out, json);
}

void llama_ending(struct answer *a, const struct said *said, struct buf *out) {
    sse_json(out, last(a, said));
}
