/* SPDX-License-Identifier: Apache-2.0
 * embed.h: vectors of the texts of a request, for the routes that give them. The worker waits for
 * them: requests take turns in the engine. */
#ifndef SERVER_EMBED_H
#define SERVER_EMBED_H

#include <jansson.h>

#include "onebit.h"

struct embed {
    ob_tokens *text; /* [n] */
    size_t n, tokens;
    float *vector;   /* [n, cols] */
    uint32_t cols, dimensions;
    bool base64;
};

/* Reads "input", "encoding_format" and "dimensions" and computes; embed_free in any case. */
ob_status embed_run(const ob_engine *engine, const json_t *request, struct embed *out,
                    ob_error *error);
void embed_free(struct embed *embed);
/* The i-th vector, in the form that was asked for. */
json_t *embed_vector(const struct embed *embed, size_t i);

#endif
