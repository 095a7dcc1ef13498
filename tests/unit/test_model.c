/* SPDX-License-Identifier: Apache-2.0
 * test_model.c: models that lie. A tiny model is copied with one thing changed; the refusal names
 * the file and the key or tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

#include "family.h"
#include "format/gguf_write.h"
#include "models/blocks/alibi.h"
#include "models/blocks/pooling.h"
#include "models/recipe.h"
#include "tempdir.h"

#define TINY "tests/golden/tiny.gguf"
#define TINY_MOE "tests/golden/tiny_moe.gguf"
#define MOE_FAMILY "qwen3_moe"

/* What is done to the copy. */
struct change {
    const char *model;                  /* NULL: TINY */
    const char *drop_key, *drop_tensor; /* left out */
    const char *key;                    /* replaced or added */
    enum gguf_type type;
    double number;
    const char *text;
    const char *tensor; /* added: F32 zeros, [rows, cols] */
    uint64_t rows, cols;
    const char *spoil; /* a NaN into the last block of this tensor */
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
    char *spoiled = NULL;
    struct gguf *g;
    assert_int_equal(gguf_open(c->model ? c->model : TINY, &g, NULL), OB_OK);
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
        if (c->spoil && str_is(t->name, c->spoil)) {
            copy.data = spoiled = malloc(t->bytes);
            memcpy(spoiled, t->data, t->bytes); /* all ones are a NaN as float and as half scale */
            memset(spoiled + t->bytes - t->quant->bytes, 0xff, t->quant->bytes);
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
    free(spoiled);
}

static ob_status open_changed(void **state, const struct change *c, struct source **source,
                              struct model **model, ob_error *error) {
    char path[256];
    snprintf(path, sizeof path, "%s/model.gguf", (const char *)*state);
    copy_model(path, c);
    *source = NULL;
    ob_status s = source_open(path, source, error);
    if (s == OB_OK) s = model_open(*source, NULL, model, error);
    return s;
}

struct lie {
    struct change change;
    const char *says;
};

static void are_named(void **state, const struct lie *bad, size_t n) {
    for (size_t i = 0; i < n; i++) {
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

static void lies_are_named(void **state) {
    static const struct lie bad[] = {
        {{.key = "general.architecture", .type = GGUF_STRING, .text = "quux"},
         "architecture \"quux\" has no recipe (1bit info --architectures lists the"},
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
        {{.tensor = "rope_freqs.weight", .rows = 1, .cols = 32}, /* zeros */
         "rope_freqs.weight: entry 0 is not above 0"},
        {{.tensor = "blk.0.attn_norm.weight", .rows = 1, .cols = 255},
         "blk.0.attn_norm.weight: shape is [1, 255]"},
        {{.tensor = "blk.0.attn_k.weight", .rows = 16, .cols = 256},
         "blk.0.attn_k.weight: shape is [16, 256]"},
        {{.tensor = "blk.0.surprise.weight", .rows = 2, .cols = 2},
         "blk.0.surprise.weight: the qwen2 recipe does not know this tensor, "
         "or by its keys not here"},
    };
    are_named(state, bad, sizeof bad / sizeof bad[0]);
}

static void lies_about_experts_are_named(void **state) {
#define MOE .model = TINY_MOE
#define COUNT(name, n) .key = "qwen3moe." name, .type = GGUF_U32, .number = n
    static const struct lie bad[] = {
        {{MOE, COUNT("expert_count", 0)}, "qwen3moe.expert_count: is missing or 0"},
        {{MOE, .drop_key = "qwen3moe.expert_count"}, "qwen3moe.expert_count: is missing or 0"},
        {{MOE, COUNT("expert_count", 1 << 20)}, "expert_count: 1048576 is not in 0 to"},
        {{MOE, COUNT("expert_count", 5)},
         "blk.0.ffn_gate_inp.weight: shape is [6, 256], the model's keys say [5, 256]"},
        {{MOE, COUNT("expert_used_count", 0)}, "expert_used_count: is missing or 0"},
        {{MOE, COUNT("expert_used_count", 7)}, "expert_used_count: 7 experts a token"},
        {{MOE, COUNT("expert_used_count", 65)}, "expert_used_count: 65 is not in 0 to 64"},
        {{MOE, COUNT("expert_feed_forward_length", 32)},
         "blk.0.ffn_gate_exps.weight: shape is [6, 64, 256], the model's keys say [6, 32, 256]"},
        {{MOE, COUNT("expert_gating_func", 2)},
         "expert_gating_func: 2, which is another gating function than this family's"},
        {{MOE, COUNT("expert_group_count", 3)},
         "expert_group_count: 3 groups, of which 0 are used, of 6 experts"},
        {{MOE, COUNT("expert_weights_norm", 1)}, "expert_weights_norm: is not true or false"},
        {{MOE, COUNT("leading_dense_block_count", 1)},
         "blk.0.ffn_gate.weight: required tensor is missing"},
        {{MOE, .drop_tensor = "blk.1.ffn_down_exps.weight"},
         "blk.1.ffn_down_exps.weight: required tensor is missing"},
        {{MOE, .drop_tensor = "blk.1.ffn_gate_inp.weight"},
         "blk.1.ffn_gate_inp.weight: required tensor is missing"},
        {{MOE, .tensor = "blk.0.ffn_up_exps.weight", .rows = 16, .cols = 256},
         "blk.0.ffn_up_exps.weight: shape is [16, 256], the model's keys say [6, 64, 256]"},
        {{MOE, .tensor = "blk.0.ffn_up.weight", .rows = 16, .cols = 256},
         "blk.0.ffn_up.weight: the qwen3moe recipe does not know this tensor, "
         "or by its keys not here"},
    };
    are_named(state, bad, sizeof bad / sizeof bad[0]);
}

static void is_refused(const char *path, size_t i, const char *says) {
    struct source *source;
    struct model *model = NULL;
    ob_error error;
    char line[1024];
    assert_int_equal(source_open(path, &source, &error), OB_OK);
    assert_int_not_equal(model_open(source, NULL, &model, &error), OB_OK);
    if (!strstr(ob_error_line(&error, line, sizeof line), says))
        fail_msg("case %zu: %s", i, line);
    source_close(&source);
}

/* A Hugging Face directory has a tensor for each expert; its header is changed in place. */
static void lies_about_one_expert_are_named(void **state) {
#define LAST "model.layers.1.mlp.experts.3."
#define DOWN LAST "down_proj.weight\":{\"dtype\":"
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {LAST "up", LAST "UP", LAST "up_proj.weight: required tensor is missing"},
        {"mlp.experts.0.up", "mlp.experts.0.UP", "0.up_proj.weight: required tensor is missing"},
        {DOWN "\"F32\"", DOWN "\"I32\"",
         LAST "down_proj.weight: weights of type I32 are not supported"},
        {DOWN "\"F32\",\"shape\":[32,16]", DOWN "\"F32\",\"shape\":[16,32]",
         LAST "down_proj.weight: shape is [16, 32], the model's keys say [32, 16]"},
        {DOWN "\"F32\",\"shape\":[32,16],\"data_offsets\":[121280,123328]",
         DOWN "\"F16\",\"shape\":[32,16],\"data_offsets\":[121280,122304]",
         LAST "down_proj.weight: is of type F16, that of the first expert F32"},
    };
    char path[512], *weights;
    size_t bytes;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(path, sizeof path, "%s/model.safetensors", family_unpack(MOE_FAMILY, *state));
        assert_int_equal(os_read_file(path, 1 << 20, &weights, &bytes, NULL), OB_OK);
        char *at = strstr(weights + 8, bad[i].from); /* after the length, a JSON text */
        assert_non_null(at);
        memcpy(at, bad[i].to, strlen(bad[i].to));
        tempdir_write(*state, "model.safetensors", weights, bytes);
        free(weights);
        is_refused(*state, i, bad[i].says);
    }
    tempdir_empty(*state);
}

/* What config.json says of routers, steps and lists. */
static void lies_of_a_configuration_are_named(void **state) {
    static const struct {
        const char *key, *value, *says;
    } bad[] = {
        {"norm_topk_prob", "\"true\"", "norm_topk_prob: is not true or false"},
        {"decoder_sparse_step", "1.5", "decoder_sparse_step: is not a whole number >= 1"},
        {"decoder_sparse_step", "0", "decoder_sparse_step: is not a whole number >= 1"},
        {"mlp_only_layers", "[\"0\"]", "mlp_only_layers: is no list of layers"},
        {"num_experts_per_tok", "[1, 2, 2]", "num_experts_per_tok: has 3 entries"},
        {"num_experts_per_tok", "[1, 2]", "num_experts_per_tok: layers differ"},
    };
    char path[512], *config;
    size_t bytes;
    snprintf(path, sizeof path, "%s/config.json", family_unpack(MOE_FAMILY, *state));
    assert_int_equal(os_read_file(path, 1 << 20, &config, &bytes, NULL), OB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *json = json_loadb(config, bytes, 0, NULL);
        assert_int_equal(json_object_set_new(json, bad[i].key,
                                             json_loads(bad[i].value, JSON_DECODE_ANY, NULL)),
                         0);
        char *text = json_dumps(json, 0);
        json_decref(json);
        tempdir_write(*state, "config.json", text, strlen(text));
        free(text);
        is_refused(*state, i, bad[i].says);
    }
    free(config);
    tempdir_empty(*state);
}

static void harmless_changes_are_taken(void **state) {
    static const struct change good[] = {
        {0},
        {.drop_tensor = "output.weight"},                           /* tied */
        {.key = "qwen2.block_count", .type = GGUF_U8, .number = 2}, /* any width */
        {.key = "qwen2.attention.head_count_kv", .type = GGUF_I16, .number = 2},
        {.key = "qwen2.novelty", .type = GGUF_F32, .number = 1}, /* unknown keys are data */
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
    static const struct change change[] = {
        {0},
        {MOE},
        {.spoil = "output_norm.weight"},
        {MOE, .spoil = "blk.1.ffn_down_exps.weight"}, /* of the last expert */
    };
    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        struct source *source;
        struct model *model = NULL;
        assert_int_equal(open_changed(state, &change[i], &source, &model, NULL), OB_OK);
        const char *name = model_find_nonfinite(model);
        if (change[i].spoil)
            assert_string_equal(name, change[i].spoil);
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

/* What a token does not use counts as a weight, but not as an active one. */
static void experts_are_counted(void **state) {
    enum { LAYERS = 2, EXPERTS = 6, USED = 2, EACH = 3 * 64 * 256 };
    struct source *source;
    struct model *model = NULL;
    struct change moe = {MOE};
    assert_int_equal(open_changed(state, &moe, &source, &model, NULL), OB_OK);
    assert_int_equal(model->parameters - model->active_parameters,
                     LAYERS * (EXPERTS - USED) * EACH);
    uint64_t bytes = 0;
    for (size_t i = 0; i < source_tensor_count(source); i++)
        bytes += source_tensor_at(source, i)->bytes;
    assert_int_equal(model->weight_bytes, bytes);
    assert_int_equal(model_kv_bytes(model, 64, (struct kv_types){KV_f16, KV_f16}), 65536);
    model_close(&model);
    source_close(&source);
}

/* For six heads: those of four, then every other one of eight. */
/* A table of positions ends a sequence, and so does what a recipe limits. */
static void positions_are_counted(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct weight table = {.rows = 12, .cols = 16};
    struct model m = {0};
    graph_init(&m.graph, &arena);
    assert_int_equal(model_positions(&m), UINT32_MAX);
    graph_embed_position(&m.graph, &table, 2);
    assert_int_equal(model_positions(&m), 10);
    m.hp.longest = 7;
    assert_int_equal(model_positions(&m), 7);
    arena_free(&arena);
}

static void slopes_for_any_number_of_heads(void **state) {
    (void)state;
    static const float six[] = {0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f};
    struct arena arena = ARENA_INIT;
    assert_memory_equal(alibi_slopes(&arena, 6, 8), six, sizeof six);
    assert_memory_equal(alibi_slopes(&arena, 4, 8), six, 4 * sizeof *six);
    assert_true(alibi_slopes(&arena, 1, 4)[0] == 0x1p-4f);
    arena_free(&arena);
}

static struct weight vector_of(const char *name, uint32_t rows, uint32_t cols) {
    return (struct weight){
        .name = name, .quant = quant_list[QUANT_f32], .rows = rows, .cols = cols};
}

/* Poolings side by side, a dense layer, length 1. */
static void vectors_of_texts(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct graph g;
    struct weight table = vector_of("token_embd.weight", 9, 4),
                  dense = vector_of("dense_2.weight", 3, 8), bias = vector_of("dense_2.bias", 1, 3);
    struct weight *found[] = {&bias, &dense}; /* by name */
    struct hparams hp = {.width = 4,
                         .modules = {.pools = 2,
                                     .pool = {POOL_WEIGHTED, POOL_FIRST},
                                     .denses = 1,
                                     .dense = {{.in = 8, .out = 3, .act = ACT_TANH}},
                                     .unit = true}};
    struct build b = {.hp = &hp, .g = &g, .found = found, .found_count = 2};
    graph_init(&g, &arena);
    value_id y = pooling_vector(&b, graph_embed(&g, &table, 1));
    static const enum op ops[] = {OP_embed,  OP_pool, OP_pool, OP_concat,
                                  OP_linear, OP_act,  OP_norm};
    assert_int_equal(g.nodes, sizeof ops / sizeof ops[0]);
    for (uint32_t i = 0; i < g.nodes; i++) assert_int_equal(g.node[i].op, ops[i]);
    assert_int_equal(g.node[1].u.pool.kind, POOL_WEIGHTED);
    assert_ptr_equal(g.node[4].bias[0], &bias);
    assert_int_equal(g.node[5].u.act.kind, ACT_TANH);
    assert_int_equal(g.node[6].u.norm.kind, NORM_L2);
    assert_int_equal(g.value[y].cols, 3);
    assert_int_equal(g.value[y].rows, ROWS_SEQS);
    assert_true(g.whole);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(lies_about_experts_are_named),
        cmocka_unit_test(lies_about_one_expert_are_named),
        cmocka_unit_test(lies_of_a_configuration_are_named),
        cmocka_unit_test(harmless_changes_are_taken),
        cmocka_unit_test(spoiled_weights_are_found),
        cmocka_unit_test(kv_memory_is_counted),
        cmocka_unit_test(experts_are_counted),
        cmocka_unit_test(positions_are_counted),
        cmocka_unit_test(slopes_for_any_number_of_heads),
        cmocka_unit_test(vectors_of_texts),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
