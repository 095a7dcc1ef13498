/* SPDX-License-Identifier: Apache-2.0
 * models.c: the list of models, which is one. Its device is known once it is loaded. */
#include "server/internal.h"
#include "server/reply.h"

static json_t *meta(const ob_engine_info *info) {
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "family", info->family,
                     "n_params", (json_int_t)info->parameters,
                     "size", (json_int_t)info->weight_bytes,
                     "n_vocab", (json_int_t)info->vocab,
                     "n_ctx", (json_int_t)info->context,
                     "n_ctx_train", (json_int_t)info->train_context);
}

static void handle(struct server *server, struct http_exchange *x) {
    const ob_engine *engine = server_loaded(server);
    json_t *model = json_pack("{s:s, s:s, s:s, s:I}", "id", server_model(server), "object", "model",
                              "owned_by", "1bit", "created", (json_int_t)server_created(server));
    if (engine) {
        ob_engine_info info;
        ob_engine_get_info(engine, &info);
        json_object_set_new(model, "device", json_string(info.device));
        json_object_set_new(model, "meta", meta(&info));
    }
    reply_json(x, REPLY_OK, json_pack("{s:s, s:[o]}", "object", "list", "data", model));
}

const struct route route_models = {.method = "GET", .paths = {"/v1/models"}, .handle = handle};
