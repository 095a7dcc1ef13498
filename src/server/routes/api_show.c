/* SPDX-License-Identifier: Apache-2.0
 * api_show.c: what Ollama tells of a model. */
#include <stdio.h>

#include "base/error.h"
#include "server/internal.h"
#include "server/ollama.h"

static json_t *capabilities(const ob_engine_info *info) {
    json_t *list = json_array();
    if (!info->encoder) json_array_append_new(list, json_string("completion"));
    if (info->embedding) json_array_append_new(list, json_string("embedding"));
    if (info->tool_format) json_array_append_new(list, json_string("tools"));
    return list;
}

static json_t *show(struct server *server) {
    ob_engine_info info;
    char key[96];
    ob_engine_get_info(server_loaded(server), &info);
    json_t *model = json_pack("{s:s, s:I}", "general.architecture", info.family,
                              "general.parameter_count", (json_int_t)info.parameters);
    snprintf(key, sizeof key, "%s.context_length", info.family);
    json_object_set_new(model, key, json_integer((json_int_t)info.context));
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "modelfile", "", "parameters", "",
                     "template", "", "details", ollama_details(&info), "model_info", model,
                     "capabilities", capabilities(&info), "modified_at",
                     ollama_time(server_created(server)));
}

static void handle(struct server *server, struct http_exchange *x) {
    json_t *request = NULL;
    ob_error error = {0};
    char line[256];
    ob_status s = params_parse(http_request(x)->body, &request, &error);
    const json_t *name = json_object_get(request, "model");
    if (!name) name = json_object_get(request, "name");
    if (s == OB_OK && !json_is_string(name))
        s = params_refuse(&error, "model", name, "a string");
    if (s != OB_OK) {
        reply_ob_error(x, &error);
    } else if (!ollama_is_model(server, json_string_value(name))) {
        snprintf(line, sizeof line, "model '%.200s' not found", json_string_value(name));
        reply_error(x, REPLY_NOT_FOUND, line);
    } else {
        reply_json(x, REPLY_OK, show(server));
    }
    json_decref(request);
}

const struct route route_api_show = {
    .method = "POST", .paths = {"/api/show"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
