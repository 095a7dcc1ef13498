/* SPDX-License-Identifier: Apache-2.0
 * params.c: see params.h. */
#include "server/params.h"

#include <string.h>

#include "base/error.h"
#include "base/os.h"

ob_status params_parse(struct str text, json_t **out, ob_error *error) {
    json_error_t where;
    /* Nesting is bounded by jansson (2,048). */
    *out = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(*out)) return OB_OK;
    if (*out) {
        error_set(error, OB_ERR_ARGUMENT, "the body must be a JSON object");
    } else if (json_error_code(&where) == json_error_null_character) {
        error_set(error, OB_ERR_ARGUMENT, "the body has a \\u0000 in a string");
    } else {
        error_set(error, OB_ERR_ARGUMENT, "the body is not JSON: %s", where.text);
        error_at(error, NULL, NULL, (uint64_t)where.position);
    }
    json_decref(*out);
    *out = NULL;
    return OB_ERR_ARGUMENT;
}

ob_status params_refuse(ob_error *error, const char *field, const json_t *value, const char *what) {
    char text[48] = "nothing";
    if (json_is_object(value)) {
        strcpy(text, "an object");
    } else if (json_is_array(value)) {
        strcpy(text, "an array");
    } else if (value) {
        size_t room = sizeof text - sizeof "...";
        size_t n = json_dumpb(value, text, room, JSON_ENCODE_ANY);
        strcpy(text + (n < room ? n : room), n < room ? "" : "...");
    }
    error_set(error, OB_ERR_ARGUMENT, "must be %s, not %s", what, text);
    error_at(error, NULL, field, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* NULL for null. */
static const json_t *get(const json_t *request, const char *field) {
    const json_t *value = json_object_get(request, field);
    return json_is_null(value) ? NULL : value;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static ob_status read_seed(const json_t *request, uint64_t *seed, ob_error *error) {
    const json_t *value = get(request, "seed");
    if (value && !json_is_integer(value))
        return params_refuse(error, "seed", value, "an integer, or -1 for a random one");
    *seed = value && json_integer_value(value) != -1 ? (uint64_t)json_integer_value(value)
                                                     : os_random();
    return OB_OK;
}

/* The first of the three names that is there counts. */
static ob_status read_max_tokens(const json_t *request, uint32_t *max, ob_error *error) {
    static const char *const names[] = {"max_completion_tokens", "max_tokens", "n_predict"};
    *max = 0;
    for (size_t i = 3; i-- > 0;) {
        const json_t *value = get(request, names[i]);
        json_int_t n = json_integer_value(value);
        if (!value) continue;
        if (!json_is_integer(value) || n < -1 || n == 0)
            return params_refuse(error, names[i], value, "an integer, 1 or more (-1: no limit)");
        *max = n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    }
    return OB_OK;
}

/* ---- truths and words ------------------------------------------------------------------------ */

static ob_status read_flag(const json_t *object, const char *key, const char *field, bool *out,
                           ob_error *error) {
    const json_t *value = get(object, key);
    if (value && !json_is_boolean(value))
        return params_refuse(error, field, value, "true or false");
    *out = json_is_true(value);
    return OB_OK;
}

static ob_status read_flags(const json_t *request, struct params *out, ob_error *error) {
    const json_t *options = get(request, "stream_options");
    if (options && !json_is_object(options))
        return params_refuse(error, "stream_options", options, "an object");
    ob_status s = read_flag(request, "stream", "stream", &out->stream, error);
    if (s == OB_OK) s = read_flag(request, "ignore_eos", "ignore_eos", &out->ignore_eos, error);
    if (s == OB_OK)
        s = read_flag(request, "parse_special", "parse_special", &out->parse_special, error);
    if (s == OB_OK)
        s = read_flag(options, "include_usage", "stream_options.include_usage",
                      &out->include_usage, error);
    return s;
}

/* One of the words, which end at NULL; the first if absent. */
static ob_status read_word(const json_t *request, const char *field, const char *const *words,
                           const char *what, const char **out, ob_error *error) {
    const json_t *value = get(request, field);
    const char *word = json_string_value(value);
    *out = words[0];
    if (!value) return OB_OK;
    for (; word && *words; words++) {
        *out = *words;
        if (strcmp(word, *words) == 0) return OB_OK;
    }
    return params_refuse(error, field, value, what);
}

static ob_status read_words(const json_t *request, struct params *out, ob_error *error) {
    static const char *const formats[] = {"auto", "deepseek", "deepseek-legacy", "none", NULL};
    static const char *const choices[] = {"auto", "none", NULL};
    const char *choice;
    const json_t *tools = get(request, "tools"), *parallel = get(request, "parallel_tool_calls");
    const json_t *model = get(request, "model");
    if (model && !json_is_string(model)) return params_refuse(error, "model", model, "a string");
    ob_status s = read_word(request, "reasoning_format", formats,
                            "\"auto\", \"deepseek\", \"deepseek-legacy\" or \"none\"",
                            &out->reasoning_format, error);
    if (!get(request, "reasoning_format")) out->reasoning_format = NULL;
    /* A call is forced by a grammar of the tool format: a place for it is chat_parse_impl.h. */
    if (s == OB_OK)
        s = read_word(request, "tool_choice", choices,
                      "\"auto\" or \"none\" (a call cannot be forced yet)", &choice, error);
    if (s == OB_OK && parallel && !json_is_boolean(parallel))
        s = params_refuse(error, "parallel_tool_calls", parallel, "true or false");
    if (s != OB_OK) return s;
    out->drop_tools = strcmp(choice, "none") == 0;
    out->calls = !out->drop_tools && json_array_size(tools) > 0;
    out->single_call = json_is_false(parallel);
    return OB_OK;
}

/* ---- reasoning ------------------------------------------------------------------------------- */

/* Tokens of reasoning; the first name that is there counts. -1: no limit. */
static ob_status read_budget(const json_t *request, struct params *out, ob_error *error) {
    const json_t *reasoning = get(request, "reasoning");
    const struct {
        const char *field;
        const json_t *value;
    } fields[] = {
        {"thinking_budget_tokens", get(request, "thinking_budget_tokens")},
        {"reasoning_budget_tokens", get(request, "reasoning_budget_tokens")},
        {"reasoning.max_tokens", json_is_object(reasoning) ? get(reasoning, "max_tokens") : NULL},
    };
    if (reasoning && !json_is_object(reasoning))
        return params_refuse(error, "reasoning", reasoning, "an object");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_int_t n = json_integer_value(fields[i].value);
        if (!fields[i].value) continue;
        if (!json_is_integer(fields[i].value) || n < -1 || n > INT32_MAX)
            return params_refuse(error, fields[i].field, fields[i].value,
                                 "a number of tokens, or -1: no limit");
        out->limit_reasoning = n >= 0;
        out->free_reasoning = n < 0;
        out->reasoning_tokens = n < 0 ? 0 : (uint32_t)n;
        break;
    }
    return OB_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static ob_status read_stop(const json_t *request, struct params *out, ob_error *error) {
    const json_t *value = get(request, "stop");
    size_t n = json_is_array(value) ? json_array_size(value) : value != NULL;
    if (n > PARAMS_STOPS)
        return params_refuse(error, "stop", value, "at most 16 strings");
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (json_string_length(one) == 0)
            return params_refuse(error, "stop", one, "a string or an array of strings, none empty");
        out->stop[out->stops++] = json_string_value(one);
    }
    return OB_OK;
}

/* ---- log probabilities ----------------------------------------------------------------------- */

static ob_status read_count(const json_t *request, const char *field, uint32_t *out,
                            ob_error *error) {
    const json_t *value = get(request, field);
    json_int_t n = json_integer_value(value);
    if (value && (!json_is_integer(value) || n < 0 || n > OB_TOP_LOGPROBS))
        return params_refuse(error, field, value, "an integer from 0 to 100");
    *out = (uint32_t)n;
    return OB_OK;
}

/* logprobs is a truth with top_logprobs beside it (chat), or the number itself (completions);
 * n_probs of llama-server is the number too. */
static ob_status read_logprobs(const json_t *request, struct params *out, ob_error *error) {
    const json_t *wanted = get(request, "logprobs");
    uint32_t top = 0, probs = 0;
    ob_status s = read_count(request, "top_logprobs", &top, error);
    if (s == OB_OK) s = read_count(request, "n_probs", &probs, error);
    if (s == OB_OK && wanted && !json_is_boolean(wanted))
        s = json_is_integer(wanted)
                ? read_count(request, "logprobs", &probs, error)
                : params_refuse(error, "logprobs", wanted, "true, false or a number");
    if (s != OB_OK) return s;
    out->logprobs = json_is_true(wanted) || json_is_integer(wanted) || probs > 0;
    out->top_logprobs = top > probs ? top : probs;
    if (top && !out->logprobs)
        return params_refuse(error, "top_logprobs", get(request, "top_logprobs"),
                             "0 without \"logprobs\": true");
    return read_flag(request, "post_sampling_probs", "post_sampling_probs", &out->logprobs_after,
                     error);
}

/* ---- answers --------------------------------------------------------------------------------- */

static ob_status read_choices(const json_t *request, struct params *out, ob_error *error) {
    const json_t *n = get(request, "n"), *best = get(request, "best_of");
    const json_t *suffix = get(request, "suffix");
    json_int_t count = n ? json_integer_value(n) : 1;
    if ((n && !json_is_integer(n)) || count < 1 || count > PARAMS_CHOICES)
        return params_refuse(error, "n", n, "an integer from 1 to 128");
    if (best && (!json_is_integer(best) || json_integer_value(best) != count))
        return params_refuse(error, "best_of", best,
                             "as \"n\" (answers are not chosen among more)");
    if (suffix && !json_is_string(suffix))
        return params_refuse(error, "suffix", suffix, "a string");
    out->n = (uint32_t)count;
    out->suffix = (struct str){json_string_value(suffix), json_string_length(suffix)};
    ob_status s = read_flag(request, "echo", "echo", &out->echo, error);
    if (s == OB_OK && out->echo && (out->logprobs || out->logprobs_after))
        s = params_refuse(error, "echo", get(request, "echo"),
                          "false beside \"logprobs\": the prompt's are not computed");
    return s;
}

/* ---- what we cannot do ----------------------------------------------------------------------- */

/* 1 and 1.0 are equal. */
static bool equal(const json_t *a, const json_t *b) {
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

ob_status params_refuse_all(const json_t *request, const struct params_neutral *table, size_t n,
                            ob_error *error) {
    for (size_t i = 0; i < n; i++) {
        const json_t *value = get(request, table[i].field);
        if (!value) continue;
        json_t *neutral = json_loads(table[i].neutral, JSON_DECODE_ANY, NULL);
        bool asks = !equal(value, neutral);
        json_decref(neutral);
        if (!asks) continue;
        char what[64];
        snprintf(what, sizeof what, "%s (nothing else is supported)", table[i].neutral);
        return params_refuse(error, table[i].field, value, what);
    }
    return OB_OK;
}

ob_status params_flag(const json_t *request, const char *field, bool absent, bool *out,
                      ob_error *error) {
    *out = absent;
    return get(request, field) ? read_flag(request, field, field, out, error) : OB_OK;
}

ob_status params_read(const json_t *request, const ob_sampling *defaults, struct params *out,
                      ob_error *error) {
    static const struct params_neutral neutral[] = {{"functions", "[]"}, {"min_tokens", "0"}};
    *out = (struct params){.sampling = *defaults};
    ob_status s = params_refuse_all(request, neutral, 2, error);
    if (s == OB_OK) s = sampling_read(request, &out->sampling, &out->lists, error);
    if (s == OB_OK) s = ob_sampling_check(&out->sampling, error);
    if (s != OB_OK && strcmp(error->where, "order") == 0) strcpy(error->where, "samplers");
    if (s == OB_OK) s = read_seed(request, &out->sampling.seed, error);
    if (s == OB_OK) s = read_max_tokens(request, &out->max_tokens, error);
    if (s == OB_OK) s = read_flags(request, out, error);
    if (s == OB_OK) s = read_words(request, out, error);
    if (s == OB_OK) s = read_budget(request, out, error);
    if (s == OB_OK) s = read_stop(request, out, error);
    if (s == OB_OK) s = form_read(request, &out->form, error);
    if (s == OB_OK) s = read_logprobs(request, out, error);
    if (s == OB_OK) s = read_choices(request, out, error);
    return s;
}

void params_free(struct params *params) { sampling_free(&params->lists); }
