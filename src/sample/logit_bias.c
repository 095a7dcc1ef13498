/* SPDX-License-Identifier: Apache-2.0
 * logit_bias.c: adds to the logits of tokens that the request names, before all other samplers. A
 * text stands for each of its tokens; one that is named twice gets both. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/sampler.h"

struct biases {
    size_t n, room;
    int32_t *id;
    float *bias;
};

static bool active(const ob_sampling *settings) { return settings->logit_bias_n > 0; }

static void close_biases(void *state) {
    struct biases *b = state;
    if (!b) return;
    free(b->id);
    free(b->bias);
    free(b);
}

static ob_status refuse(ob_error *error, size_t i, const char *what) {
    error_set(error, OB_ERR_ARGUMENT, "entry %zu: %s", i, what);
    error_at(error, NULL, "logit_bias", OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

static ob_status add(struct biases *b, int32_t id, float bias, ob_error *error) {
    if (b->n == b->room) {
        size_t room = 2 * b->room + 16;
        int32_t *ids = realloc(b->id, room * sizeof *ids);
        if (ids) b->id = ids;
        float *more = ids ? realloc(b->bias, room * sizeof *more) : NULL;
        if (!more) return error_memory(error, "logit_bias", room * sizeof *more);
        b->bias = more;
        b->room = room;
    }
    b->id[b->n] = id;
    b->bias[b->n++] = bias;
    return OB_OK;
}

static ob_status add_text(struct biases *b, const struct sample_vocab *vocab, size_t at,
                          const ob_logit_bias *one, ob_error *error) {
    ob_tokens tokens = {0};
    if (!vocab->encode) return refuse(error, at, "this vocabulary has no texts");
    ob_status s = vocab->encode(vocab->user, str_of(one->text), &tokens, error);
    if (s == OB_OK && tokens.n == 0) s = refuse(error, at, "the text has no tokens");
    for (size_t i = 0; s == OB_OK && i < tokens.n; i++) s = add(b, tokens.id[i], one->bias, error);
    free(tokens.id);
    return s;
}

static ob_status open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error) {
    struct biases *b = *state = calloc(1, sizeof *b);
    if (!b) return error_memory(error, "logit_bias", sizeof *b);
    ob_status s = OB_OK;
    for (size_t i = 0; s == OB_OK && i < settings->logit_bias_n; i++) {
        const ob_logit_bias *one = &settings->logit_bias[i];
        char line[80];
        if (one->text) {
            s = add_text(b, vocab, i, one, error);
        } else if (one->id < 0 || (uint32_t)one->id >= vocab->size) {
            snprintf(line, sizeof line, "token %d is not in the vocabulary (0 to %u)", one->id,
                     vocab->size - 1);
            s = refuse(error, i, line);
        } else {
            s = add(b, one->id, one->bias, error);
        }
    }
    return s;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    const struct biases *b = context->state;
    sample_list_edit(list);
    for (size_t i = 0; i < b->n; i++) {
        float *logit = sample_list_find(list, b->id[i]);
        if (logit) *logit = fminf(*logit + b->bias[i], FLT_MAX);
    }
    sample_list_edited(list, b->id, b->n);
}

const struct sampler sampler_logit_bias = {.name = "logit_bias", .internal = true,
                                           .active = active, .apply = apply, .open = open,
                                           .close = close_biases};
