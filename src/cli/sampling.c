/* SPDX-License-Identifier: Apache-2.0
 * sampling.c: see sampling.h. */
#include "cli/sampling.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "format/sampling.h"

static ob_status read_json(const char *text, const char *where, json_t **out, ob_error *error) {
    json_error_t problem;
    *out = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (*out) return OB_OK;
    error_set(error, OB_ERR_ARGUMENT, "not JSON: %s", problem.text);
    error_at(error, NULL, where, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* The two options that are lists. */
static ob_status read_lists(const struct options *options, struct cli_sampling *out,
                            ob_error *error) {
    ob_sampling *s = &out->settings;
    ob_status status = OB_OK;
    if (options->logit_bias) {
        status = read_json(options->logit_bias, "logit_bias", &out->bias, error);
        if (status == OB_OK) status = sampling_read_bias(out->bias, s, &out->lists, error);
    }
    if (status == OB_OK && options->dry_breakers) {
        status = read_json(options->dry_breakers, "dry_breakers", &out->breakers, error);
        if (status == OB_OK)
            status = sampling_read_breakers(out->breakers, s, &out->lists, error);
        if (status != OB_OK) snprintf(error->where, sizeof error->where, "dry_breakers");
    }
    return status;
}

ob_status cli_sampling_open(const struct options *options, struct cli_sampling *out,
                            ob_error *error) {
#define KIND_real float
#define KIND_integer int32_t
    *out = (struct cli_sampling){.settings = {
#define OB_SETTING(member, kind, ...) .member = (KIND_##kind)options->member,
#include "onebit_sampling.def"
#undef OB_SETTING
        /* 53 bits: a seed that people can type and JSON can hold */
        .seed = options->given[OPTION_INDEX_seed] ? (uint64_t)options->seed : os_random() >> 11,
        .order = options->samplers,
    }};
#undef KIND_integer
#undef KIND_real
    ob_status s = read_lists(options, out, error);
    return s == OB_OK ? ob_sampling_check(&out->settings, error) : s;
}

void cli_sampling_close(struct cli_sampling *sampling) {
    sampling_free(&sampling->lists);
    json_decref(sampling->bias);
    json_decref(sampling->breakers);
    *sampling = (struct cli_sampling){0};
}

/* The number that people would write for a float: 0.7, not 0.699999988. */
static double written(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", x);
    return strtod(text, NULL);
}

void cli_sampling_adopt(const ob_sampling *model, struct options *options) {
#define KIND_real(x) written((double)(x))
#define KIND_integer(x) (x)
#define OB_SETTING(member, kind, ...)            \
    if (!options->given[OPTION_INDEX_##member])  \
        options->member = KIND_##kind(model->member);
#include "onebit_sampling.def"
#undef OB_SETTING
#undef KIND_integer
#undef KIND_real
    if (!options->given[OPTION_INDEX_samplers])
        options->samplers = model->order ? model->order : OB_SAMPLING_ORDER;
}

json_t *cli_sampling_json(const struct source *source) {
    struct source_sampling model = {.settings = ob_sampling_default()};
    ob_error error;
    char line[1024];
    ob_status s = source_sampling_read(source, &model, &error);
    if (s == OB_OK && model.order[0]) {
        model.settings.order = model.order;
        s = ob_sampling_check(&model.settings, &error);
        snprintf(error.where, sizeof error.where, "%s", SOURCE_SAMPLING_ORDER);
    }
    if (s != OB_OK)
        return json_pack("{s:o}", "error",
                         cli_json_text(str_of(ob_error_line(&error, line, sizeof line))));
    json_t *out = json_object(), *files = json_array();
#define KIND_real(x) json_real(written((double)(x)))
#define KIND_integer(x) json_integer(x)
#define OB_SETTING(member, kind, ...)                                              \
    json_object_set_new(out, #member, KIND_##kind(model.settings.member));         \
    if (model.given[SOURCE_SAMPLING_##member]) json_array_append_new(files, json_string(#member));
#include "onebit_sampling.def"
#undef OB_SETTING
#undef KIND_integer
#undef KIND_real
    if (model.order[0]) json_array_append_new(files, json_string("order"));
    json_object_set_new(out, "order",
                        json_string(model.order[0] ? model.order : OB_SAMPLING_ORDER));
    json_object_set_new(out, "from_files", files);
    return out;
}
