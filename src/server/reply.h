/* SPDX-License-Identifier: Apache-2.0
 * reply.h: answers as JSON; errors in OpenAI's form: an object "error" with message, type, code and
 * param. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <jansson.h>

#include "server/http.h"

enum {
    REPLY_OK = 200, REPLY_NO_CONTENT = 204, REPLY_NOT_MODIFIED = 304, REPLY_BAD_REQUEST = 400,
    REPLY_NO_KEY = 401, REPLY_FORBIDDEN = 403, REPLY_NOT_FOUND = 404, REPLY_BAD_METHOD = 405,
    REPLY_TOO_LONG = 413, REPLY_BROKEN = 500, REPLY_UNAVAILABLE = 503
};

/* How answers are written: short, and no more digits than a measurement has. */
#define REPLY_JSON (JSON_COMPACT | JSON_REAL_PRECISION(9))

/* Takes `json` over; NULL is out of memory. */
void reply_json(struct http_exchange *x, unsigned status, json_t *json);
void reply_error(struct http_exchange *x, unsigned status, const char *message);
/* How the API of a route writes an error; details (may be NULL) are taken over. The route's own,
 * while the exchange is not answered; OpenAI's where there is none. */
typedef json_t *reply_shape(unsigned status, const char *type, const char *message,
                            const char *field, json_t *details);
reply_shape *reply_shape_of(const struct http_exchange *x);
json_t *reply_shape_error(reply_shape *shape, const ob_error *error);
/* The status that tells whose fault it was; `where` is the field, unless a file is at fault. */
void reply_ob_error(struct http_exchange *x, const ob_error *error);
/* OpenAI's shape; details join the error object. */
json_t *reply_error_json(unsigned status, const char *type, const char *message, const char *field,
                         json_t *details);
unsigned reply_status_of(const ob_error *error);

#endif
