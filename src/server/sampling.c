/* SPDX-License-Identifier: Apache-2.0
 * sampling.c: see sampling.h. */
#include "server/sampling.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "server/params.h"

enum { LIST_MAX = 100000 };

/* NULL for null. */
static const json_t *get(const json_t *request, const char *field) {
    const json_t *value = json_object_get(request, field);
    return json_is_null(value) ? NULL : value;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const struct number {
    const char *field;
    size_t offset;
    bool real;
    double min, max;
    const char *what;
} numbers[] = {
#define KIND_real(member, min, max, must) \
    {#member, offsetof(ob_sampling, member), true, (min), (max), "a number " must},
#define KIND_integer(member, min, max, must) \
    {#member, offsetof(ob_sampling, member), false, (min), (max), "an integer, " must},
#define OB_SETTING(member, kind, otherwise, min, max, must, gguf, hf) \
    KIND_##kind(member, min, max, must)
#include "onebit_sampling.def"
#undef OB_SETTING
#undef KIND_integer
#undef KIND_real
};

/* Names that other servers give them. */
static const struct {
    const char *field, *means;
} aliases[] = {
    {"repeat_last_n", "penalty_last_n"},
    {"repetition_penalty", "repeat_penalty"},
    {"typ_p", "typical_p"},
};

static ob_status read_number(const struct number *n, const char *field, const json_t *value,
                             ob_sampling *out, ob_error *error) {
    if (!value) return OB_OK;
    double x = json_number_value(value);
    if (!(n->real ? json_is_number(value) : json_is_integer(value)) || !(x >= n->min) ||
        !(x <= n->max))
        return params_refuse(error, field, value, n->what);
    char *to = (char *)out + n->offset;
    if (n->real) *(float *)(void *)to = (float)x;
    else *(int32_t *)(void *)to = (int32_t)x;
    return OB_OK;
}

static ob_status read_numbers(const json_t *request, ob_sampling *out, ob_error *error) {
    ob_status s = OB_OK;
    for (size_t i = 0; s == OB_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *n = &numbers[i];
        for (size_t a = 0; s == OB_OK && a < sizeof aliases / sizeof aliases[0]; a++)
            if (strcmp(aliases[a].means, n->field) == 0)
                s = read_number(n, aliases[a].field, get(request, aliases[a].field), out, error);
        if (s == OB_OK) s = read_number(n, n->field, get(request, n->field), out, error);
    }
    return s;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* "samplers": ["top_k", "temperature"], or the same separated by ";". */
static ob_status read_order(const json_t *value, ob_sampling *out, struct sampling_lists *lists,
                            ob_error *error) {
    if (!value) return OB_OK;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    buf_puts(&lists->order, "");
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(one))
            return params_refuse(error, "samplers", one, "an array of names");
        buf_puts(&lists->order, i ? ";" : "");
        buf_puts(&lists->order, json_string_value(one));
    }
    if (lists->order.failed) return error_memory(error, "the samplers' order", lists->order.n);
    out->order = lists->order.p;
    return OB_OK;
}

/* Digits alone are an id, all else a text. */
static ob_status read_token(const char *text, const json_t *value, ob_logit_bias *one,
                            ob_error *error) {
    char *end;
    if (!*text)
        return params_refuse(error, "logit_bias", value, "for an id or a text that has any");
    one->text = text;
    if (text[strspn(text, "0123456789")]) return OB_OK;
    errno = 0;
    long id = strtol(text, &end, 10);
    if (errno || id > INT32_MAX)
        return params_refuse(error, "logit_bias", value, "for an id of the vocabulary");
    one->id = (int32_t)id;
    one->text = NULL;
    return OB_OK;
}

static ob_status read_bias(const json_t *value, ob_logit_bias *one, ob_error *error) {
    double x = json_number_value(value);
    one->bias = json_is_false(value) ? -INFINITY : (float)x;
    if (json_is_false(value) || (json_is_number(value) && fabs(x) <= 1e6)) return OB_OK;
    return params_refuse(error, "logit_bias", value,
                         "numbers from -1000000 to 1000000, or false");
}

static ob_status read_pair(const json_t *pair, ob_logit_bias *one, ob_error *error) {
    const json_t *token = json_array_get(pair, 0);
    json_int_t id = json_integer_value(token);
    ob_status s = OB_OK;
    if (json_array_size(pair) != 2 || !(json_is_integer(token) || json_is_string(token)))
        return params_refuse(error, "logit_bias", pair, "pairs of a token and a number");
    if (json_is_string(token)) s = read_token(json_string_value(token), token, one, error);
    else if (id < 0 || id > INT32_MAX)
        return params_refuse(error, "logit_bias", token, "for an id of the vocabulary");
    else one->id = (int32_t)id;
    /* In a pair a string is a text, digits or not. */
    if (json_is_string(token)) one->text = json_string_value(token);
    return s == OB_OK ? read_bias(json_array_get(pair, 1), one, error) : s;
}

ob_status sampling_read_bias(const json_t *value, ob_sampling *out, struct sampling_lists *lists,
                             ob_error *error) {
    size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value), i = 0;
    const char *key;
    json_t *bias;
    ob_status s = OB_OK;
    if ((!json_is_array(value) && !json_is_object(value)) || n > LIST_MAX)
        return params_refuse(error, "logit_bias", value,
                             "an object or an array of pairs, at most 100000");
    free(lists->bias);
    lists->bias = calloc(n + 1, sizeof *lists->bias);
    if (!lists->bias) return error_memory(error, "logit_bias", n * sizeof *lists->bias);
    for (; json_is_array(value) && s == OB_OK && i < n; i++)
        s = read_pair(json_array_get(value, i), &lists->bias[i], error);
    json_object_foreach((json_t *)(uintptr_t)value, key, bias) {
        if (s == OB_OK) s = read_token(key, bias, &lists->bias[i], error);
        if (s == OB_OK) s = read_bias(bias, &lists->bias[i++], error);
    }
    out->logit_bias = lists->bias;
    out->logit_bias_n = n;
    return s;
}

ob_status sampling_read_breakers(const json_t *value, ob_sampling *out,
                                 struct sampling_lists *lists, ob_error *error) {
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n > 64)
        return params_refuse(error, "dry_sequence_breakers", value,
                             "an array of at most 64 strings");
    free(lists->breakers);
    lists->breakers = calloc(n + 1, sizeof *lists->breakers);
    if (!lists->breakers) return error_memory(error, "sequence breakers", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(value, i);
        size_t bytes = json_string_length(one);
        if (bytes == 0 || bytes > 40)
            return params_refuse(error, "dry_sequence_breakers", one, "strings of 1 to 40 bytes");
        lists->breakers[i] = json_string_value(one);
    }
    out->dry_breakers = lists->breakers;
    out->dry_breakers_n = n;
    return OB_OK;
}

ob_status sampling_read(const json_t *request, ob_sampling *out, struct sampling_lists *lists,
                        ob_error *error) {
    const json_t *bias = get(request, "logit_bias");
    const json_t *breakers = get(request, "dry_sequence_breakers");
    ob_status s = read_numbers(request, out, error);
    if (s == OB_OK) s = read_order(get(request, "samplers"), out, lists, error);
    if (s == OB_OK && bias) s = sampling_read_bias(bias, out, lists, error);
    if (s == OB_OK && breakers) s = sampling_read_breakers(breakers, out, lists, error);
    return s;
}

void sampling_free(struct sampling_lists *lists) {
    buf_free(&lists->order);
    free(lists->bias);
    free(lists->breakers);
    *lists = (struct sampling_lists){0};
}
