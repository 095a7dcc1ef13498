/* SPDX-License-Identifier: Apache-2.0
 * reply.c: see reply.h. */
#include "server/reply.h"

#include <string.h>

#include "server/clean.h"
#include "server/route.h"

static const struct {
    unsigned status;
    const char *type;
} types[] = {
    {REPLY_BAD_REQUEST, "invalid_request_error"}, {REPLY_NO_KEY, "authentication_error"},
    {REPLY_FORBIDDEN, "permission_error"},        {REPLY_NOT_FOUND, "not_found_error"},
    {REPLY_BAD_METHOD, "invalid_request_error"},  {REPLY_TOO_LONG, "invalid_request_error"},
    {REPLY_UNAVAILABLE, "unavailable_error"},
};

static const char *type_of(unsigned status) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].status == status) return types[i].type;
    return "server_error";
}

unsigned reply_status_of(const ob_error *error) {
    switch (error->status) {
    case OB_ERR_ARGUMENT:
    case OB_ERR_LIMIT:
    case OB_ERR_NOT_FOUND:
    case OB_ERR_UNSUPPORTED: return REPLY_BAD_REQUEST;
    case OB_ERR_BUSY:
    case OB_ERR_CANCELLED: return REPLY_UNAVAILABLE;
    default: return REPLY_BROKEN;
    }
}

void reply_json(struct http_exchange *x, unsigned status, json_t *json) {
    char *body = json ? json_dumps(json, REPLY_JSON) : NULL;
    json_decref(json);
    http_reply(x, status, "application/json", body, body ? strlen(body) : 0);
}

json_t *reply_error_json(unsigned status, const char *type, const char *message, const char *field,
                         json_t *details) {
    json_t *error = json_pack("{s:o, s:s, s:i, s:s?}", "message", clean_json(str_of(message)),
                              "type", type ? type : type_of(status), "code", (int)status, "param",
                              field);
    if (details && error) json_object_update(error, details);
    json_decref(details);
    return json_pack("{s:o}", "error", error);
}

reply_shape *reply_shape_of(const struct http_exchange *x) {
    const char *path = http_request(x)->path;
    reply_shape *shape = path ? route_shape(path) : NULL;
    return shape ? shape : reply_error_json;
}

json_t *reply_shape_error(reply_shape *shape, const ob_error *error) {
    char line[1024];
    ob_error_line(error, line, sizeof line);
    bool field = error->where[0] && !error->file[0]; /* else a place in a file */
    return shape(reply_status_of(error), NULL, line, field ? error->where : NULL, NULL);
}

void reply_error(struct http_exchange *x, unsigned status, const char *message) {
    reply_json(x, status, reply_shape_of(x)(status, NULL, message, NULL, NULL));
}

void reply_ob_error(struct http_exchange *x, const ob_error *error) {
    if (error->status == OB_ERR_BUSY) http_set_header(x, "Retry-After", "1");
    reply_json(x, reply_status_of(error), reply_shape_error(reply_shape_of(x), error));
}
