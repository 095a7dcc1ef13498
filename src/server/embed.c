/* SPDX-License-Identifier: Apache-2.0
 * embed.c: see embed.h. */
#include "server/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "server/params.h"

enum { TEXTS_MAX = 2048 };

void embed_free(struct embed *r) {
    for (size_t i = 0; i < r->n; i++) ob_tokens_free(&r->text[i]);
    free(r->text);
    free(r->vector);
}

/* ---- the request ----------------------------------------------------------------------------- */

static ob_status read_ids(const json_t *list, uint32_t vocab, ob_tokens *out, ob_error *error) {
    size_t n = json_array_size(list);
    out->id = malloc((n ? n : 1) * sizeof *out->id);
    if (!out->id) return error_memory(error, "tokens", n * sizeof *out->id);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= vocab)
            return params_refuse(error, "input", id, "texts or token ids of the vocabulary");
        out->id[out->n++] = (int32_t)value;
    }
    return OB_OK;
}

/* A text, a list of texts, a list of token ids, or a list of such lists. */
static ob_status read_input(const ob_engine *engine, const json_t *input, uint32_t vocab,
                            struct embed *r, ob_error *error) {
    bool many = json_is_array(input) && !json_is_integer(json_array_get(input, 0));
    size_t n = many ? json_array_size(input) : 1;
    if (!input || (!many && !json_is_string(input) && !json_is_array(input)) || n == 0)
        return params_refuse(error, "input", input, "a string or an array that is not empty");
    if (n > TEXTS_MAX) {
        error_set(error, OB_ERR_LIMIT, "has %zu texts, at most %d are taken", n, TEXTS_MAX);
        error_at(error, NULL, "input", OB_NO_OFFSET);
        return OB_ERR_LIMIT;
    }
    r->text = calloc(n, sizeof *r->text);
    if (!r->text) return error_memory(error, "texts", n);
    for (r->n = 0; r->n < n;) {
        const json_t *one = many ? json_array_get(input, r->n) : input;
        ob_tokens *text = &r->text[r->n++];
        ob_status s =
            json_is_string(one)
                ? ob_tokenize(engine, json_string_value(one), json_string_length(one), true, false,
                              text, error)
            : json_is_array(one) ? read_ids(one, vocab, text, error)
                                 : params_refuse(error, "input", one, "texts or lists of tokens");
        if (s != OB_OK) return s;
        r->tokens += text->n;
    }
    return OB_OK;
}

static ob_status read_format(const json_t *request, struct embed *r, ob_error *error) {
    const json_t *format = json_object_get(request, "encoding_format"),
                 *dimensions = json_object_get(request, "dimensions");
    const char *name = json_string_value(format);
    r->base64 = name && strcmp(name, "base64") == 0;
    if (format && !json_is_null(format) && !r->base64 && (!name || strcmp(name, "float") != 0))
        return params_refuse(error, "encoding_format", format, "\"float\" or \"base64\"");
    r->dimensions = r->cols;
    if (!dimensions || json_is_null(dimensions)) return OB_OK;
    json_int_t n = json_integer_value(dimensions);
    if (!json_is_integer(dimensions) || n < 1 || n > r->cols) {
        char what[64];
        snprintf(what, sizeof what, "an integer from 1 to %u", r->cols);
        return params_refuse(error, "dimensions", dimensions, what);
    }
    r->dimensions = (uint32_t)n;
    return OB_OK;
}

/* ---- the vectors ----------------------------------------------------------------------------- */

/* A vector that is cut is brought to length 1 again. */
static void shorten(const struct embed *r, float *vector) {
    double sum = 0;
    if (r->dimensions == r->cols) return;
    for (uint32_t i = 0; i < r->dimensions; i++) sum += (double)vector[i] * (double)vector[i];
    if (sum == 0) return;
    for (uint32_t i = 0; i < r->dimensions; i++)
        vector[i] = (float)((double)vector[i] / sqrt(sum));
}

static json_t *floats(const float *vector, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, json_real((double)vector[i]));
    return list;
}

/* RFC 4648 of the floats' bytes, little-endian. */
static json_t *base64(const float *vector, uint32_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t bytes = (size_t)n * sizeof *vector, at = 0;
    const unsigned char *p = (const unsigned char *)vector;
    char *text = malloc((bytes + 2) / 3 * 4 + 1);
    if (!text) return NULL;
    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t left = (uint32_t)(bytes - i), three = (uint32_t)p[i] << 16;
        if (left > 1) three |= (uint32_t)p[i + 1] << 8;
        if (left > 2) three |= p[i + 2];
        for (uint32_t k = 0; k < 4; k++)
            text[at++] = k <= left ? digit[three >> (18 - 6 * k) & 63] : '=';
    }
    json_t *json = json_stringn(text, at);
    free(text);
    return json;
}

json_t *embed_vector(const struct embed *r, size_t i) {
    float *vector = r->vector + i * r->cols;
    shorten(r, vector);
    return r->base64 ? base64(vector, r->dimensions) : floats(vector, r->dimensions);
}

ob_status embed_run(const ob_engine *engine, const json_t *request, struct embed *r,
                    ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    r->cols = info.embedding;
    if (!r->cols)
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "this model (%s) does not embed texts: its files do not say how",
                         info.family);
    ob_status s = read_format(request, r, error);
    if (s == OB_OK)
        s = read_input(engine, json_object_get(request, "input"), info.vocab, r, error);
    if (s != OB_OK) return s;
    if (r->n == 0) return error_set(error, OB_ERR_ARGUMENT, "there is no text");
    r->vector = malloc(r->n * r->cols * sizeof *r->vector);
    if (!r->vector) return error_memory(error, "vectors", r->n * r->cols);
    s = ob_embed(engine, r->text, r->n, r->vector, error);
    if (s == OB_ERR_ARGUMENT || s == OB_ERR_LIMIT) error_at(error, NULL, "input", OB_NO_OFFSET);
    return s;
}

