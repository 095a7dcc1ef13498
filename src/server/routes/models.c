/* SPDX-License-Identifier: Apache-2.0
 * models.c: the list of models, which is one, and that one by its id. Its device is known once it
 * is loaded. */
#include <string.h>

#include "server/internal.h"
#include "server/reply.h"

#define LIST "/v1/models"

static json_t *meta(const ob_engine_info *info) {
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "family", info->family,
                     "n_params", (json_int_t)info->parameters,
                     "size", (json_int_t)info->weight_bytes,
                     "n_vocab", (json_int_t)info->vocab,
                     "n_ctx", (json_int_t)info->context,
                     "n_ctx_train", (json_int_t)info->train_context);
}

static json_t *model_json(struct server *server) {
    const ob_engine *engine = server_loaded(server);
    json_t *model = json_pack("{s:s, s:s, s:s, s:I}", "id", server_model(server), "object", "model",
                              "owned_by", "1bit", "created", (json_int_t)server_created(server));
    if (engine) {
        ob_engine_info info;
        ob_engine_get_info(engine, &info);
        json_object_set_new(model, "device", json_string(info.device));
        json_object_set_new(model, "meta", meta(&info));
    }
    return model;
}

static void handle(struct server *server, struct http_exchange *x) {
    const char *id = http_request(x)->path + strlen(LIST);
    if (!*id) {
        json_t *model = model_json(server);
        reply_json(x, REPLY_OK, json_pack("{s:s, s:[o]}", "object", "list", "data", model));
    } else if (strcmp(id + 1, server_model(server)) == 0) {
        reply_json(x, REPLY_OK, model_json(server));
    } else {
        char line[256];
        snprintf(line, sizeof line, "there is no model \"%.200s\"", id + 1);
        reply_json(x, REPLY_NOT_FOUND,
                   reply_error_json(REPLY_NOT_FOUND, NULL, line, "model", NULL));
    }
}

const struct route route_models = {.method = "GET", .paths = {LIST, LIST "/"}, .handle = handle};
