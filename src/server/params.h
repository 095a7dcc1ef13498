/* SPDX-License-Identifier: Apache-2.0
 * params.h: the fields of a completion request, read from JSON and checked. A field of the wrong
 * type or out of range is refused by name; so is one that asks for what the server cannot do. null
 * is as good as absent; fields nobody knows are left alone. */
#ifndef SERVER_PARAMS_H
#define SERVER_PARAMS_H

#include <jansson.h>

#include "base/str.h"
#include "onebit.h"
#include "server/form.h"
#include "server/sampling.h"

enum { PARAMS_STOPS = 16, PARAMS_CHOICES = 128 };

struct params {
    ob_sampling sampling;
    uint32_t max_tokens; /* 0: no limit */
    const char *stop[PARAMS_STOPS];
    size_t stops;
    bool ignore_eos, stream, include_usage;
    bool parse_special; /* control tokens written in a prompt count as such */
    const char *reasoning_format; /* NULL: the request names none */
    bool limit_reasoning, free_reasoning; /* it wants a limit, or none; neither: it does not say */
    uint32_t reasoning_tokens;
    bool drop_tools;    /* tool_choice "none" */
    bool calls;         /* there are tools and they may be called */
    bool single_call;   /* parallel_tool_calls is false */
    bool logprobs, logprobs_after; /* post_sampling_probs */
    uint32_t top_logprobs;
    uint32_t n;          /* answers to each prompt */
    bool echo;           /* an answer begins with its prompt */
    struct str suffix;   /* what stands behind the answer */
    struct form form;    /* what the answer may be */
    struct sampling_lists lists; /* `sampling` points into it */
};

/* A JSON object, or OB_ERR_ARGUMENT saying where the text is none. */
ob_status params_parse(struct str text, json_t **out, ob_error *error);
/* `defaults` holds where the request says nothing. The strings belong to `request`, which must live
 * as long; free *out in any case. */
ob_status params_read(const json_t *request, const ob_sampling *defaults, struct params *out,
                      ob_error *error);
void params_free(struct params *params);

/* Fields that change the answer and cannot be served, with the value that asks for nothing, as null
 * does: JSON. */
struct params_neutral {
    const char *field, *neutral;
};
ob_status params_refuse_all(const json_t *request, const struct params_neutral *table, size_t n,
                            ob_error *error);
/* A field that is true or false; `absent` if it is not there. */
ob_status params_flag(const json_t *request, const char *field, bool absent, bool *out,
                      ob_error *error);

/* OB_ERR_ARGUMENT: "must be <what>, not <the value>". */
ob_status params_refuse(ob_error *error, const char *field, const json_t *value, const char *what);

#endif
