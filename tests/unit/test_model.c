/* SPDX-License-Identifier: Apache-2.0
 * test_model.c: models that lie. The tiny model is copied with one thing changed; the refusal names
 * the file and the key or tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "format/gguf_write.h"
#include "models/recipe.h"
#include "tempdir.h"

#define TINY "tests/golden/tiny.gguf"

/* What is done to the copy. */
struct change {
    const char *drop_key, *drop_tensor; /* left out */
    const char *key;                    /* replaced or added */
    enum gguf_type type;
    double number;
    const char *text;
    const char *tensor; /* added: F32 zeros, [rows, cols] */
    uint64_t rows, cols;
    bool spoil; /* a NaN into output_norm.weight */
};

static void put_key(struct gguf_writer *w, const struct change *c) {
    if (!c->key) return;
    if (c->type == GGUF_STRING)
        gguf_put_str(w, c->key, str_of(c->text));
    else if (c->type == GGUF_F32)
        gguf_put_f32(w, c->key, (float)c->number);
    else
        gguf_put_whole(w, c->key, c->type, (uint64_t)(int64_t)c->number);
}

static void copy_model(const char *path, const struct change *c) {
    static const float zeros[4096];
    static float spoiled[256];
    struct gguf *g;
    assert_int_equal(gguf_open(TINY, &g, NULL), OB_OK);
    struct gguf_writer *w = gguf_writer_new();
    put_key(w, c);
    for (size_t i = 0; i < gguf_value_count(g); i++) {
        const struct gguf_value *v = gguf_value_at(g, i);
        if ((c->drop_key && str_is(v->key, c->drop_key)) || (c->key && str_is(v->key, c->key)))
            continue;
        gguf_put_value(w, v);
    }
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if ((c->drop_tensor && str_is(t->name, c->drop_tensor)) ||
            (c->tensor && str_is(t->name, c->tensor)))
            continue;
        struct gguf_new_tensor copy = {
            .name = t->name, .quant = t->quant, .ndim = t->ndim, .data = t->data};
        memcpy(copy.dim, t->dim, sizeof copy.dim);
        if (c->spoil && str_is(t->name, "output_norm.weight")) {
            memcpy(spoiled, t->data, sizeof spoiled);
            spoiled[100] = __builtin_nanf("");
            copy.data = spoiled;
        }
        gguf_put_tensor(w, &copy);
    }
    if (c->tensor)
        gguf_put_tensor(w, &(struct gguf_new_tensor){.name = str_of(c->tensor),
                                                     .quant = quant_list[QUANT_f32],
                                                     .ndim = c->rows > 1 ? 2 : 1,
                                                     .dim = {c->cols, c->rows},
                                                     .data = zeros});
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);
    gguf_close(&g);
}

static ob_status open_changed(void **state, const struct change *c, struct source **source,
                              struct model **model, ob_error *error) {
    char path[256];
    snprintf(path, sizeof path, "%s/model.gguf", (const char *)*state);
    copy_model(path, c);
    *source = NULL;
    ob_status s = source_open(path, source, error);
    if (s == OB_OK) s = model_open(*source, model, error);
    return s;
}

static void lies_are_named(void **state) {
    static const struct {
        struct change change;
        const char *says;
    } bad[] = {
        {{.key = "general.architecture", .type = GGUF_STRING, .text = "quux"},
         "architecture \"quux\" has no recipe (known: gemma3, llama, mistral, qwen2, qwen3)"},
        {{.drop_key = "qwen2.block_count"}, "qwen2.block_count: required key is missing"},
        {{.key = "qwen2.block_count", .type = GGUF_U32, .number = 0},
         "qwen2.block_count: 0 is not in 1 to"},
        {{.key = "qwen2.block_count", .type = GGUF_U32, .number = 3}, "blk.2."},
        {{.key = "qwen2.block_count", .type = GGUF_U32, .number = 1}, "blk.1."},
        {{.key = "qwen2.block_count", .type = GGUF_I64, .number = -5},
         "qwen2.block_count: is not a whole number"},
        {{.key = "qwen2.block_count", .type = GGUF_STRING, .text = "2"},
         "qwen2.block_count: is not a whole number"},
        {{.key = "qwen2.block_count", .type = GGUF_U64, .number = 1e18},
         "qwen2.block_count: is too large"},
        {{.key = "qwen2.embedding_length", .type = GGUF_U32, .number = 128},
         "the model's keys say"},
        {{.key = "qwen2.attention.head_count", .type = GGUF_U32, .number = 3}, "head"},
        {{.key = "qwen2.attention.head_count_kv", .type = GGUF_U32, .number = 0}, "head_count_kv"},
        {{.key = "qwen2.attention.head_count_kv", .type = GGUF_U32, .number = 3},
         "multiple of the key heads"},
        {{.key = "qwen2.attention.layer_norm_rms_epsilon", .type = GGUF_F32, .number = -1},
         "epsilon: -1 is not in"},
        {{.key = "qwen2.rope.freq_base", .type = GGUF_F32, .number = 0}, "rope"},
        {{.key = "qwen2.rope.dimension_count", .type = GGUF_U32, .number = 4096},
         "4096 rotary dimensions"},
        {{.key = "qwen2.rope.scaling.type", .type = GGUF_STRING, .text = "spiral"}, "rope"},
        {{.drop_tensor = "token_embd.weight"}, "token_embd.weight: required tensor is missing"},
        {{.drop_tensor = "blk.1.ffn_down.weight"},
         "blk.1.ffn_down.weight: required tensor is missing"},
        {{.drop_tensor = "blk.0.attn_q.bias"}, "blk.0.attn_q.bias: required tensor is missing"},
        {{.tensor = "blk.0.attn_norm.weight", .rows = 1, .cols = 255},
         "blk.0.attn_norm.weight: shape is [1, 255]"},
        {{.tensor = "blk.0.attn_k.weight", .rows = 16, .cols = 256},
         "blk.0.attn_k.weight: shape is [16, 256]"},
        {{.tensor = "blk.0.surprise.weight", .rows = 2, .cols = 2},
         "blk.0.surprise.weight: the qwen2 recipe does not know this tensor"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct source *source;
        struct model *model = NULL;
        ob_error error;
        char line[1024] = "opened";
        ob_status s = open_changed(state, &bad[i].change, &source, &model, &error);
        if (s != OB_OK) ob_error_line(&error, line, sizeof line);
        if (!strstr(line, bad[i].says) || !strstr(line, "model.gguf"))
            fail_msg("case %zu: %s", i, line);
        assert_null(model);
        source_close(&source);
    }
}

static void harmless_changes_are_taken(void **state) {
    static const struct change good[] = {
        {0},
        {.drop_tensor = "output.weight"},                           /* tied */
        {.key = "qwen2.block_count", .type = GGUF_U8, .number = 2}, /* any width */
        {.key = "qwen2.attention.head_count_kv", .type = GGUF_I16, .number = 2},
        {.key = "qwen2.novelty", .type = GGUF_F32, .number = 1}, /* unknown keys are data */
        {.tensor = "rope_freqs.weight", .rows = 1, .cols = 32},  /* known, used by rope */
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct source *source;
        struct model *model = NULL;
        ob_error error;
        char line[1024];
        if (open_changed(state, &good[i], &source, &model, &error) != OB_OK)
            fail_msg("case %zu: %s", i, ob_error_line(&error, line, sizeof line));
        assert_string_equal(model_family(model), "qwen2");
        assert_int_equal(model->hp.vocab, 288);
        assert_int_equal(model->graph.groups, 1);
        model_close(&model);
        source_close(&source);
    }
}

static void spoiled_weights_are_found(void **state) {
    for (int spoil = 0; spoil < 2; spoil++) {
        struct source *source;
        struct model *model = NULL;
        struct change change = {.spoil = spoil};
        assert_int_equal(open_changed(state, &change, &source, &model, NULL), OB_OK);
        const char *name = model_find_nonfinite(model);
        if (spoil)
            assert_string_equal(name, "output_norm.weight");
        else
            assert_null(name);
        model_close(&model);
        source_close(&source);
    }
}

static void kv_memory_is_counted(void **state) {
    struct source *source;
    struct model *model = NULL;
    struct change none = {0};
    assert_int_equal(open_changed(state, &none, &source, &model, NULL), OB_OK);
    /* 2 layers x 2 heads x (64 + 64) x 2 bytes = 1024 a token, in pages of 64 */
    assert_int_equal(model_kv_bytes(model, 64, (struct kv_types){KV_f16, KV_bf16}), 65536);
    assert_int_equal(model_kv_bytes(model, 65, (struct kv_types){KV_f16, KV_f16}), 131072);
    assert_int_equal(model_kv_bytes(model, 64, (struct kv_types){KV_f32, KV_f32}), 131072);
    /* 64 features are 2 blocks of 34 or 18 bytes */
    assert_int_equal(model_kv_bytes(model, 64, (struct kv_types){KV_q8_0, KV_q4_0}),
                     64 * 2 * 2 * 2 * (34 + 18));
    model_close(&model);
    source_close(&source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(harmless_changes_are_taken),
        cmocka_unit_test(spoiled_weights_are_found),
        cmocka_unit_test(kv_memory_is_counted),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
