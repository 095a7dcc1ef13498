/* SPDX-License-Identifier: Apache-2.0
 * plan.c: for `1bit info`: what the engine would do with a model on this machine. Only the files
 * are opened; the numbers are those that the engine would compute. */
#include <string.h>

#include "base/os.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "models/models.h"

/* The most tokens of one sequence whose cache fits in `memory` bytes; UINT32_MAX: that or more. */
static uint64_t tokens_that_fit(const struct model *model, uint64_t memory, struct kv_types kv) {
    uint64_t low = 0, high = UINT32_MAX; /* low fits */
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (model_kv_bytes(model, middle, kv) <= memory)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static json_t *strings(const struct str *list, uint32_t n) {
    json_t *out = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(out, cli_json_text(list[i]));
    return out;
}

static json_t *devices(void) {
    json_t *out = json_array();
    ob_device device;
    for (size_t i = 0; ob_device_at(i, &device); i++)
        if (device.count)
            json_array_append_new(out, json_pack("{s:s, s:i, s:s}", "name", device.name,
                                                 "index", (int)device.index, "description",
                                                 device.text));
    return out;
}

/* Weights and bytes of each format, once all is loaded. */
static json_t *formats_of(const struct model *model) {
    struct {
        uint64_t weights, bytes;
    } sum[QUANT_COUNT] = {0};
    for (uint32_t i = 0; i < model->weights; i++) {
        const struct weight *w = model->weight[i];
        size_t q = quant_index_of(w->quant);
        sum[q].weights += (uint64_t)w->rows * w->cols * (w->experts ? w->experts : 1);
        sum[q].bytes += weight_bytes(w);
    }
    json_t *out = json_array();
    for (size_t q = 0; q < QUANT_COUNT; q++)
        if (sum[q].weights)
            json_array_append_new(out, json_pack("{s:s, s:I, s:I}", "type", quant_list[q]->name,
                                                 "weights", (json_int_t)sum[q].weights, "bytes",
                                                 (json_int_t)sum[q].bytes));
    return out;
}

/* The command line has checked the names. */
static struct kv_types kv_of(const struct model *model, const struct options *options) {
    struct kv_types kv = {.k = KV_f16};
    if (!model_generates(model)) return (struct kv_types){.k = KV_f32, .v = KV_f32};
    kv_find(options->kv_type, &kv.k);
    kv.v = kv.k;
    if (options->kv_type_k) kv_find(options->kv_type_k, &kv.k);
    if (options->kv_type_v) kv_find(options->kv_type_v, &kv.v);
    return kv;
}

static json_t *embedding(const struct model *model) {
    char pooling[HF_POOLINGS];
    hf_poolings_text(&model->hp.modules, pooling);
    return json_pack("{s:I, s:s, s:I, s:b}", "dimensions",
                     (json_int_t)model_embedding_cols(model), "pooling", pooling, "dense_layers",
                     (json_int_t)model->hp.modules.denses, "unit_length", model->hp.modules.unit);
}

static json_t *plan_of(const struct model *model, const struct options *options) {
    struct kv_types kv = kv_of(model, options);
    uint64_t available = os_memory_available();
    uint64_t free_after = available > model->copied_bytes ? available - model->copied_bytes : 0;
    uint64_t memory = options->kv_memory ? options->kv_memory : free_after / 2;
    uint64_t context = options->context ? (uint64_t)options->context : model->hp.context;
    json_t *out = json_pack(
        "{s:s, s:s, s:o, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
        "family", model_family(model), "packed", model->packing, "loaded", formats_of(model),
        "weights", (json_int_t)model->parameters, "active_weights",
        (json_int_t)model->active_parameters, "experts", (int)model->hp.expert_count,
        "experts_used", (int)model->hp.route.used, "weight_bytes", (json_int_t)model->weight_bytes,
        "copied_bytes", (json_int_t)model->copied_bytes, "train_context",
        (json_int_t)model->hp.context, "context", (json_int_t)context, "kv_bytes_1000_tokens",
        (json_int_t)model_kv_bytes(model, 1000, kv), "kv_memory", (json_int_t)memory,
        "tokens_that_fit", (json_int_t)tokens_that_fit(model, memory, kv), "devices",
        devices(), "unused_tensors", strings(model->unused, model->unused_count));
    if (out && model_embedding_cols(model)) json_object_set_new(out, "embedding", embedding(model));
    return out;
}

json_t *inspect_plan(const struct source *source, const struct options *options) {
    struct model *model = NULL;
    ob_error error;
    char line[1024];
    const struct model_options want = {
        .weights = options->weights ? quant_named(options->weights) : NULL, .plan = true};
    ob_status s = model_open(source, &want, &model, &error);
    if (s == OB_OK) s = model_check_kv(model, kv_of(model, options), &error);
    json_t *out = s == OB_OK ? plan_of(model, options)
                             : json_pack("{s:o}", "refused",
                                         cli_json_text(str_of(ob_error_line(&error, line,
                                                                            sizeof line))));
    model_close(&model);
    return out;
}
