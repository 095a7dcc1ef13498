/* SPDX-License-Identifier: Apache-2.0
 *
 * test_packed.c: directories with quantized safetensors (tests/golden/packed, which
 * tools/make_packed_goldens.py writes): values and logits are those of the golden; what lacks a
 * part, has a wrong shape or another setting is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/engine.h"
#include "tempdir.h"

#define PACKED "tests/golden/packed"
enum { FILE_MOST = 1 << 24, IDS_MOST = 16 };

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t checksum(const struct weight *w) {
    size_t n = (size_t)w->rows * w->cols;
    float *x = malloc(n * sizeof *x);
    uint64_t sum = 0;
    w->quant->decode(w->data, x, n / w->quant->block);
    const uint8_t *byte = (const uint8_t *)x;
    for (size_t i = 0; i < n * sizeof *x; i++) sum += rng_u64(i, byte[i]);
    free(x);
    return sum;
}

static const struct weight *find(const struct model *model, const char *name) {
    for (uint32_t i = 0; i < model->weights; i++)
        if (strcmp(model->weight[i]->name, name) == 0) return model->weight[i];
    return NULL;
}

static void check_values(const char *folder, const struct model *model, json_t *tensors) {
    const char *name;
    json_t *want;
    json_object_foreach(tensors, name, want) {
        const struct weight *w = find(model, name);
        char sum[24];
        if (!w) fail_msg("%s: no %s", folder, name);
        if (strcmp(w->quant->name, json_string_value(json_array_get(want, 0))) != 0)
            fail_msg("%s: %s is %s", folder, name, w->quant->name);
        snprintf(sum, sizeof sum, "%016llx", (unsigned long long)checksum(w));
        if (strcmp(sum, json_string_value(json_array_get(want, 1))) != 0)
            fail_msg("%s: %s has other values", folder, name);
    }
}

/* With --weights q8_0: of the Llamas every matrix, all of whose rows are whole blocks. */
static void check_formats(const struct model *model) {
    for (uint32_t i = 0; i < model->weights && strcmp(model_family(model), "llama") == 0; i++) {
        const struct weight *w = model->weight[i];
        if (w->rows > 1) assert_int_equal(w->quant->block, 32);
        else assert_ptr_equal(w->quant, quant_list[QUANT_f32]);
    }
}

/* What is only looked at has the same formats and sizes. */
static void check_plan(const struct source *source, const struct model *model,
                       const struct quant *weights) {
    struct model *plan;
    const struct model_options options = {.weights = weights, .plan = true};
    assert_int_equal(model_open(source, &options, &plan, NULL), OB_OK);
    assert_int_equal(plan->copied, model->copied);
    assert_int_equal(plan->copied_bytes, model->copied_bytes);
    assert_int_equal(plan->weight_bytes, model->weight_bytes);
    for (uint32_t i = 0; i < model->weights; i++)
        assert_ptr_equal(plan->weight[i]->quant, model->weight[i]->quant);
    model_close(&plan);
}

/* No logit is off by more than `most` deviations. */
static void check_logits(const char *folder, struct engine *engine, const json_t *expected,
                         double most) {
    const json_t *ids = json_object_get(expected, "ids");
    const json_t *want = json_object_get(expected, "logits");
    int32_t id[IDS_MOST];
    const float *logits;
    uint32_t n = (uint32_t)json_array_size(ids);
    double sum = 0, squares = 0, worst = 0;
    assert_in_range(n, 1, IDS_MOST);
    for (uint32_t i = 0; i < n; i++)
        id[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    struct seq *seq = seq_new(engine);
    struct engine_item item = {.seq = seq, .id = id, .n = n, .logits = n};
    assert_int_equal(engine_step(engine, &item, 1, &logits, NULL), OB_OK);
    size_t count = json_array_size(want);
    assert_int_equal(count, n * engine_model(engine)->hp.vocab);
    for (size_t i = 0; i < count; i++) {
        double x = json_real_value(json_array_get(want, i));
        sum += x;
        squares += x * x;
        worst = fmax(worst, fabs((double)logits[i] - x));
    }
    double deviation = sqrt(squares / (double)count - sum / (double)count * sum / (double)count);
    if (!(worst <= most * deviation)) fail_msg("%s: off by %g", folder, worst / deviation);
    seq_free(&seq);
}

static struct engine *open_engine(struct source *source, const char *weights) {
    struct engine *engine;
    ob_error error;
    char line[1024];
    const ob_engine_options options = {.device = "ref", .weights = weights, .kv_memory = 1 << 20};
    if (engine_open(source, &options, &engine, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return engine;
}

static struct source *open_source(const char *path) {
    struct source *source;
    ob_error error;
    char line[1024];
    if (source_open(path, &source, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return source;
}

static void every_method_gives_its_values(void **state) {
    (void)state;
    char **name;
    size_t n;
    assert_int_equal(os_list_dir(PACKED, &name, &n, NULL), OB_OK);
    assert_true(n >= 20);
    for (size_t i = 0; i < n; i++) {
        char folder[256], path[300];
        snprintf(folder, sizeof folder, PACKED "/%s", name[i]);
        snprintf(path, sizeof path, "%s/expected.json", folder);
        json_t *expected = json_load_file(path, 0, NULL);
        assert_non_null(expected);
        struct source *source = open_source(folder);
        struct engine *engine = open_engine(source, NULL);
        check_values(folder, engine_model(engine), json_object_get(expected, "tensors"));
        check_logits(folder, engine, expected, 2e-3);
        assert_non_null(strstr(engine_model(engine)->packing, " bits"));
        check_plan(source, engine_model(engine), NULL);
        engine_close(&engine);
        engine = open_engine(source, "q8_0");
        check_formats(engine_model(engine));
        check_plan(source, engine_model(engine), quant_list[QUANT_q8_0]);
        check_logits(folder, engine, expected, 0.25);
        engine_close(&engine);
        source_close(&source);
        json_decref(expected);
    }
    os_free_list(name, n);
}

/* ---- lies ------------------------------------------------------------------------------------ */

/* A copy of a file with one text changed to one of its length (none for NULL). */
static void copy_changed(const char *folder, const char *file, const char *from, const char *to,
                         const char *into) {
    char path[300], *data, *at = NULL;
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_int_equal(os_read_file(path, FILE_MOST, &data, &n, NULL), OB_OK);
    for (size_t i = 0; from && i + strlen(from) <= n && !at; i++)
        if (memcmp(data + i, from, strlen(from)) == 0) at = data + i;
    if (from && !at) fail_msg("%s has no %s", path, from);
    if (from) assert_int_equal(strlen(from), strlen(to));
    if (at) memcpy(at, to, strlen(to));
    tempdir_write(into, file, data, n);
    free(data);
}

struct lie {
    const char *name; /* of the golden */
    bool in_config;
    const char *from, *to;
    const char *where, *message; /* parts of the error */
};

#define GATE "model.layers.0.mlp.gate_proj."
#define DOWN "model.layers.0.mlp.down_proj."

static const struct lie lies[] = {
    {"gptq", true, "\"gptq\"", "\"gptX\"", "quant_method", "is not supported"},
    {"gptq", true, "\"bits\": 4", "\"bits\": 3", "quantization_config.bits", "3 bits"},
    {"gptq", true, "\"bits\"", "\"bitz\"", "quantization_config.bits", "missing"},
    {"gptq_v2", true, "gptq_v2", "marlin2", "checkpoint_format", "marlin2"},
    {"gptq", true, "group_size\": 32", "group_size\": -9", "group_size", "no size"},
    {"gptq", true, "group_size\": 32", "group_size\": 16", "q_proj.scales", "shape is"},
    {"gptq", false, GATE "scales", GATE "scalez", GATE "scales", "missing"},
    {"gptq", false, GATE "qzeros", GATE "qzeroz", GATE "qzeros", "missing"},
    {"gptq", false, DOWN "g_idx", DOWN "h_idx", DOWN "h_idx", "does not know"},
    {"gptq", false, GATE "qweight\":{\"dtype\":\"I32", GATE "qweight\":{\"dtype\":\"F32",
     GATE "qweight", "is of type F32"},
    {"awq", true, "\"gemm\"", "\"gemv\"", "version", "gemv"},
    {"awq", true, "\"bits\": 4", "\"bits\": 8", "bits", "8 bits"},
    {"awq", false, DOWN "qzeros", DOWN "qzeroz", DOWN "qzeros", "missing"},
    {"ct_int4", true, "pack-quantized", "nvfp4-quantize", "format", "nvfp4"},
    {"ct_int4", true, "\"kv_cache_scheme\": null", "\"kv_cache_scheme\": true", "kv_cache_scheme",
     "not supported"},
    {"ct_int4", true, "\"type\": \"int\"", "\"type\": \"fix\"", "weights.type", "fix"},
    {"ct_int4", false, GATE "weight_scale", GATE "weight_skale", GATE "weight_scale", "missing"},
    {"ct_int4", false, GATE "weight_shape", GATE "weight_shipe", GATE "weight_shape", "missing"},
    {"ct_int4_asym", false, GATE "weight_zero_point\":{\"dtype\":\"I32\",\"shape\":[12,2]",
     GATE "weight_zero_point\":{\"dtype\":\"I32\",\"shape\":[2,12]", GATE "weight_zero_point",
     "shape is [2, 12]"},
    {"ct_fp8", true, "\"dynamic\": true", "\"dynamic\": null", "input_activations.dynamic",
     "inputs rounded"},
    {"fp8_block", true, "\"dynamic\"", "\"static\" ", "activation_scheme", "static"},
    {"fp8_block", true, "\"e4m3\"", "\"e5m2\"", "fmt", "e5m2"},
    {"fp8_block", true, "   40,", "   48,", "scale_inv", "shape is"},
    {"fp8_block", true, "weight_block_size", "weight_block_sizX", "scale_inv", "neither"},
    {"fp8_block", false, GATE "weight_scale_inv", GATE "weight_scale_inX", GATE "weight_scale",
     "missing"},
    {"bnb_nf4", true, "\"load_in_8bit\": false", "\"load_in_8bit\": true ", "load_in_8bit",
     "8 bits"},
    {"bnb_nf4", false, GATE "weight.absmax", GATE "weight.absmix", GATE "weight.absmax",
     "missing"},
    {"bnb_nf4", false, "\"blocksize\": 64", "\"blocksize\": -1", "quant_state", "blocksize"},
    {"bnb_nf4", false, "\"blocksize\": 64", "\"blocksize\": 32", "absmax", "shape is"},
    {"bnb_nf4", false, "\"shape\": [96, 64]", "\"shape\": [96, 32]", "weight", "4 bits"},
    {"bnb_nf4_nested", false, "nested_blocksize", "nested_blocksizX", "quant_state",
     "nested_blocksize"},
    {"bnb_nf4_nested", false, GATE "weight.nested_absmax", GATE "weight.nested_absmix",
     GATE "weight.nested_absmax", "missing"},
};

static void lies_are_refused(void **state) {
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        const struct lie *lie = &lies[i];
        char folder[256], line[1024];
        struct source *source;
        struct model *model = NULL;
        ob_error error;
        snprintf(folder, sizeof folder, PACKED "/%s", lie->name);
        copy_changed(folder, "config.json", lie->in_config ? lie->from : NULL, lie->to, *state);
        copy_changed(folder, "model.safetensors", lie->in_config ? NULL : lie->from, lie->to,
                     *state);
        ob_status s = source_open(*state, &source, &error);
        if (s == OB_OK) s = model_open(source, NULL, &model, &error);
        if (s == OB_OK) fail_msg("%s: %s is taken", lie->name, lie->to);
        if (!strstr(error.where, lie->where) || !strstr(error.message, lie->message))
            fail_msg("%s: %s: %s", lie->name, lie->to, ob_error_line(&error, line, sizeof line));
        source_close(&source);
    }
    tempdir_empty(*state);
}

static void other_formats_are_refused(void **state) {
    (void)state;
    struct source *source = open_source(PACKED "/gptq");
    ob_error error;
    const ob_engine_options options = {.device = "ref", .weights = "q4_0"};
    assert_int_equal(engine_check(source, &options, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "weights");
    source_close(&source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_gives_its_values),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(other_formats_are_refused),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
