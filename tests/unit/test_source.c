/* SPDX-License-Identifier: Apache-2.0
 * test_source.c: GGUF files and Hugging Face directories through one view; config.json. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "family.h"
#include "format/gguf_write.h"
#include "format/hf_config.h"
#include "format/source.h"
#include "tempdir.h"

static void gguf_keys_and_tensors(void **state) {
    static const float weights[8] = {1, 2, 3};
    char path[512];
    snprintf(path, sizeof path, "%s/m.gguf", (const char *)*state);
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_str(w, "general.architecture", STR_LIT("qwen2"));
    gguf_put_whole(w, "qwen2.block_count", GGUF_U8, 24);
    gguf_put_array(w, "qwen2.attention.head_count_kv", GGUF_I32, (int32_t[]){2, 0, 4}, 3);
    gguf_put_f32(w, "qwen2.rope.freq_base", 1e6f);
    gguf_put_whole(w, "flag", GGUF_BOOL, 1);
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = STR_LIT("z"), .quant = quant_named("F32"),
                                                 .ndim = 1, .dim = {2}, .data = weights});
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = STR_LIT("a"), .quant = quant_named("F32"),
                                                 .ndim = 2, .dim = {4, 2}, .data = weights});
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);

    struct source *s;
    uint64_t u;
    double f;
    bool b;
    struct str text;
    assert_int_equal(source_open(path, &s, NULL), OB_OK);
    assert_int_equal(source_kind(s), SOURCE_GGUF);
    assert_non_null(source_gguf(s));
    assert_true(str_is(source_architecture(s), "qwen2"));
    assert_int_equal(source_class(s).n, 0);
    assert_true(source_u64(s, "{arch}.block_count", 0, &u) && u == 24);
    assert_false(source_u64(s, "{arch}.block_count", 1, &u));
    assert_int_equal(source_count(s, "{arch}.attention.head_count_kv"), 3);
    assert_true(source_u64(s, "{arch}.attention.head_count_kv", 1, &u) && u == 0);
    assert_true(source_f64(s, "{arch}.rope.freq_base", 0, &f) && f == 1e6);
    assert_true(source_bool(s, "flag", 0, &b) && b);
    assert_true(source_str(s, "general.architecture", 0, &text));
    assert_false(source_has(s, "{arch}.absent"));
    assert_int_equal(source_count(s, "{arch}.absent"), 0);
    char long_key[600];
    memset(long_key, 'k', sizeof long_key);
    memcpy(long_key, "{arch}.", 7);
    long_key[599] = 0;
    assert_false(source_has(s, long_key));
    assert_int_equal(source_tensor_count(s), 2);
    const struct source_tensor *t = source_tensor_find(s, STR_LIT("a"));
    assert_ptr_equal(t, source_tensor_at(s, 1));
    assert_true(str_is(t->type, "F32"));
    assert_int_equal(t->dim[1], 2);
    assert_memory_equal(t->data, weights, 32);
    assert_null(source_tensor_find(s, STR_LIT("b")));
    char *file;
    size_t n;
    assert_int_equal(source_file(s, "config.json", &file, &n, NULL), OB_ERR_NOT_FOUND);
    source_close(&s);
    assert_null(s);
}

static void families_open(void **state) {
    static const struct {
        const char *family, *class_name;
        uint64_t hidden;
        const char *tensor;
    } row[] = {
        {"gemma3_text", "Gemma3ForCausalLM", 32,
         "model.layers.0.pre_feedforward_layernorm.weight"},
        {"llama", "LlamaForCausalLM", 64,
         "model.embed_tokens.weight"},
        {"mistral", "MistralForCausalLM", 32,
         "lm_head.weight"},
        {"qwen2", "Qwen2ForCausalLM", 32,
         "model.layers.1.self_attn.q_proj.bias"},
        {"qwen3", "Qwen3ForCausalLM", 64,
         "model.layers.0.self_attn.q_norm.weight"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct source *s;
        ob_error error;
        uint64_t u;
        if (source_open(family_unpack(row[i].family, *state), &s, &error) != OB_OK)
            fail_msg("%s: %s", error.file, error.message);
        assert_int_equal(source_kind(s), SOURCE_HF);
        assert_null(source_gguf(s));
        assert_string_equal(source_path(s), *state);
        assert_true(str_is(source_architecture(s), row[i].family));
        assert_true(str_is(source_class(s), row[i].class_name));
        assert_true(source_u64(s, "hidden_size", 0, &u) && u == row[i].hidden);
        const struct source_tensor *t = source_tensor_find(s, str_of(row[i].tensor));
        assert_non_null(t);
        assert_ptr_equal(t->quant, quant_named("F32"));
        assert_true(source_bytes(s) > 10000);
        for (size_t k = 0; k < source_tensor_count(s); k++) {
            t = source_tensor_at(s, k);
            assert_int_equal(t->bytes, 4 * t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
            assert_ptr_equal(source_tensor_find(s, t->name), t);
        }
        char *file;
        size_t n;
        assert_int_equal(source_file(s, "config.json", &file, &n, NULL), OB_OK);
        assert_int_equal(strlen(file), n);
        free(file);
        assert_int_equal(source_file(s, "generation_config.json", &file, &n, NULL),
                         OB_ERR_NOT_FOUND);
        source_close(&s);
    }
}

static void nested_and_per_layer_keys(void **state) {
    struct source *s;
    double f;
    struct str text;
    assert_int_equal(source_open(family_unpack("gemma3_text", *state), &s, NULL), OB_OK);
    assert_true(source_f64(s, "rope_parameters.full_attention.factor", 0, &f) && f == 8);
    assert_false(source_f64(s, "rope_parameters.full_attention.nothing", 0, &f));
    assert_false(source_f64(s, "rope_parameters.nothing.factor", 0, &f));
    assert_false(source_has(s, "attn_logit_softcapping")); /* null */
    assert_int_equal(source_count(s, "layer_types"), 3);
    assert_true(source_str(s, "layer_types", 1, &text) && str_is(text, "full_attention"));
    assert_false(source_str(s, "layer_types", 3, &text));
    source_close(&s);
}

static void configurations(void **state) {
    (void)state;
    static const char text[] =
        "{\"model_type\":\"m\",\"a\":1,\"n\":null,\"text_config\":{\"a\":2,\"b\":{\"c\":3},\"n\":4}"
        ","
        "\"whole\":8.0,\"part\":8.5,\"minus\":-1,\"big\":9223372036854775807,\"yes\":true,"
        "\"list\":[0.0,Infinity,-Infinity,NaN],\"new\":{\"__float__\":\"Infinity\"},"
        "\"quoted\":\"NaN \\\"Infinity\",\"empty\":[]}";
    struct hf_config *c;
    ob_error error;
    uint64_t u;
    double f;
    bool b;
    struct str s;
    if (hf_config_open(text, sizeof text - 1, "x", &c, &error) != OB_OK)
        fail_msg("%s", error.message);
    assert_true(hf_config_u64(c, "a", 0, &u) && u == 2);
    assert_true(hf_config_u64(c, "/a", 0, &u) && u == 1);
    assert_true(hf_config_u64(c, "b.c", 0, &u) && u == 3);
    assert_true(hf_config_u64(c, "n", 0, &u) && u == 4);
    assert_true(hf_config_u64(c, "text_config.a", 0, &u) && u == 2);
    assert_true(hf_config_u64(c, "whole", 0, &u) && u == 8);
    assert_true(hf_config_u64(c, "big", 0, &u) && u == INT64_MAX);
    assert_false(hf_config_u64(c, "part", 0, &u) || hf_config_u64(c, "minus", 0, &u));
    assert_false(hf_config_u64(c, "yes", 0, &u) || hf_config_u64(c, "model_type", 0, &u));
    assert_false(hf_config_u64(c, "b", 0, &u) || hf_config_u64(c, "a.c", 0, &u));
    assert_true(hf_config_f64(c, "/a", 0, &f) && f == 1);
    assert_true(hf_config_f64(c, "list", 1, &f) && f == INFINITY);
    assert_true(hf_config_f64(c, "list", 2, &f) && f == -INFINITY);
    assert_true(hf_config_f64(c, "list", 3, &f) && isnan(f));
    assert_true(hf_config_f64(c, "new", 0, &f) && f == INFINITY);
    assert_true(hf_config_bool(c, "yes", 0, &b) && b);
    assert_false(hf_config_bool(c, "a", 0, &b));
    assert_true(hf_config_str(c, "quoted", 0, &s) && str_is(s, "NaN \"Infinity"));
    assert_int_equal(hf_config_count(c, "list"), 4);
    assert_int_equal(hf_config_count(c, "empty"), 0);
    assert_true(hf_config_has(c, "empty"));
    assert_int_equal(hf_config_count(c, "a"), 1);
    assert_false(hf_config_has(c, "") || hf_config_has(c, ".") || hf_config_has(c, "b."));
    hf_config_close(&c);

    static const char *const bad[] = {
        "", "[]", "{", "{\"a\":1,\"a\":2}", "{\"a\":Inf}", "{\"a\":\"\\", "7"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (hf_config_open(bad[i], strlen(bad[i]), "x", &c, &error) == OB_OK)
            fail_msg("'%s'", bad[i]);
        assert_null(c);
        assert_string_equal(error.file, "x");
    }
}

/* Opens a configuration whose quotes are spelled ' here. */
static struct hf_config *config_of(const char *text) {
    char spelled[1024];
    struct hf_config *c;
    ob_error error;
    snprintf(spelled, sizeof spelled, "%s", text);
    for (char *p = spelled; *p; p++)
        if (*p == '\'') *p = '"';
    if (hf_config_open(spelled, strlen(spelled), "x", &c, &error) != OB_OK)
        fail_msg("%s", error.message);
    return c;
}

static bool is_number(const struct hf_config *c, const char *path, double want) {
    double v;
    return hf_config_f64(c, path, 0, &v) && v == want;
}

/* What is not there has the default of its class. */
static void defaults(void **state) {
    (void)state;
    bool b;
    struct hf_config *c = config_of("{'model_type':'llama','hidden_size':64,'rms_norm_eps':null}");
    assert_true(is_number(c, "hidden_size", 64) && hf_config_says(c, "hidden_size"));
    assert_true(is_number(c, "num_hidden_layers", 32) && !hf_config_says(c, "num_hidden_layers"));
    assert_true(is_number(c, "rope_theta", 10000) && !hf_config_has(c, "rope_parameters"));
    assert_false(hf_config_has(c, "head_dim") || hf_config_has(c, "no_such_key"));
    assert_string_equal(hf_config_wrong_null(c), "rms_norm_eps");
    hf_config_close(&c);

    /* null: none, false, or the default, as the class takes it */
    c = config_of("{'model_type':'mistral','sliding_window':null}");
    assert_false(hf_config_has(c, "sliding_window") || hf_config_wrong_null(c));
    hf_config_close(&c);
    c = config_of("{'model_type':'kimi_linear','moe_renormalize':null}");
    assert_true(hf_config_bool(c, "moe_renormalize", 0, &b) && !b);
    hf_config_close(&c);
    c = config_of("{'model_type':'gemma3_text','rope_parameters':null}");
    assert_true(is_number(c, "rope_parameters.full_attention.rope_theta", 1e6));
    assert_null(hf_config_wrong_null(c));
    hf_config_close(&c);

    /* an object is a default as a whole, in neither spelling */
    c = config_of("{'model_type':'gpt_oss'}");
    assert_true(is_number(c, "rope_parameters.factor", 32));
    hf_config_close(&c);
    c = config_of("{'model_type':'gpt_oss','rope_parameters':{'rope_type':'yarn'}}");
    assert_false(hf_config_has(c, "rope_parameters.factor"));
    assert_true(is_number(c, "rope_theta", 150000));
    hf_config_close(&c);
    c = config_of("{'model_type':'gpt_oss','rope_scaling':{'rope_type':'yarn','factor':2}}");
    assert_false(hf_config_has(c, "rope_parameters"));
    hf_config_close(&c);
    c = config_of("{'model_type':'llama','rope_parameters':{'rope_theta':null}}");
    assert_string_equal(hf_config_wrong_null(c), "rope_theta");
    hf_config_close(&c);

    /* another name of a key */
    c = config_of("{'model_type':'gpt2','num_hidden_layers':3}");
    assert_true(is_number(c, "n_layer", 3) && is_number(c, "n_embd", 768));
    hf_config_close(&c);

    /* of the language model inside; the whole has its own */
    c = config_of("{'model_type':'gemma3','head_dim':7,'extra':5,'text_config':{'dim':64}}");
    assert_true(str_is(hf_config_text_type(c), "gemma3_text"));
    assert_true(is_number(c, "head_dim", 256) && is_number(c, "/head_dim", 7));
    assert_true(is_number(c, "extra", 5));
    assert_true(hf_config_bool(c, "/tie_word_embeddings", 0, &b) && b);
    hf_config_close(&c);
    c = config_of("{'model_type':'llava','text_config':{'model_type':'qwen2'}}");
    assert_true(str_is(hf_config_text_type(c), "qwen2"));
    hf_config_close(&c);
    c = config_of("{'model_type':'qwen2_vl','hidden_size':64}");
    assert_true(str_is(hf_config_text_type(c), "qwen2_vl_text") && is_number(c, "hidden_size", 64));
    assert_true(is_number(c, "rope_theta", 1e6));
    hf_config_close(&c);
}

static void bad_sources(void **state) {
    const char *dir = *state;
    char path[512];
    struct source *s;
    ob_error error;
    tempdir_empty(dir);
    assert_int_equal(source_open("/nonexistent", &s, &error), OB_ERR_NOT_FOUND);
    assert_int_equal(source_open(dir, &s, &error), OB_ERR_NOT_FOUND);
    assert_string_equal(error.message, "the directory has no config.json");
    static const char *const config[][2] = {
        {"{}", "model_type"},
        {"{\"model_type\":7}", "model_type"},
        {"{\"model_type\":\"\"}", "model_type"},
        {"{", ""}};
    for (size_t i = 0; i < 4; i++) {
        tempdir_write(dir, "config.json", config[i][0], strlen(config[i][0]));
        assert_int_equal(source_open(dir, &s, &error), OB_ERR_FORMAT);
        assert_null(s);
        assert_string_equal(error.where, config[i][1]);
        assert_non_null(strstr(error.file, "/config.json"));
    }
    tempdir_write(dir, "config.json", "{\"model_type\":\"x\"}", 18);
    assert_int_equal(source_open(dir, &s, &error), OB_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "no model.safetensors"));

    snprintf(path, sizeof path, "%s/none.gguf", dir);
    struct gguf_writer *w = gguf_writer_new();
    gguf_put_whole(w, "general.architecture", GGUF_U32, 1);
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);
    assert_int_equal(source_open(path, &s, &error), OB_ERR_FORMAT);
    assert_string_equal(error.where, "general.architecture");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_keys_and_tensors), cmocka_unit_test(families_open),
        cmocka_unit_test(nested_and_per_layer_keys), cmocka_unit_test(configurations),
 cmocka_unit_test(defaults),
        cmocka_unit_test(bad_sources),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
