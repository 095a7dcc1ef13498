/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine.c: the limits of an engine: full KV memory, the context, ids and options out of
 * range. (What models compute, and the laws, are 1bit-check's business.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "engine/engine.h"
#include "family.h"
#include "tempdir.h"

struct opened {
    struct source *source;
    struct engine *engine;
};

static struct opened open_model(const char *path, const ob_engine_options *options) {
    struct opened o;
    ob_error error;
    char line[1024];
    ob_status s = source_open(path, &o.source, &error);
    if (s == OB_OK) s = engine_open(o.source, options, &o.engine, &error);
    if (s != OB_OK) fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return o;
}

static void close_model(struct opened *o) {
    engine_close(&o->engine);
    source_close(&o->source);
}

static void full_memory_changes_nothing(void **state) {
    (void)state;
    /* two pages: 2 layers x 64 positions x (128 + 128) x 2 bytes each */
    struct opened o =
        open_model("tests/golden/tiny.gguf",
                   &(ob_engine_options){.device = "cpu", .kv_memory = 2 * 65536, .context = 128});
    int32_t id[130];
    const float *rows;
    ob_error error;
    for (int i = 0; i < 130; i++)
        id[i] = (int32_t)(rng_u64(3, (uint64_t)i) % engine_model(o.engine)->hp.vocab);
    assert_int_equal(engine_capacity(o.engine), 128);
    struct seq *a = seq_new(o.engine), *b = seq_new(o.engine);
    struct engine_item item = {.seq = a, .id = id, .n = 60, .logits = 1},
                       other = {.seq = b, .id = id, .n = 65};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    assert_false(engine_fits(o.engine, &other, 1));
    assert_int_equal(engine_step(o.engine, &other, 1, &rows, &error), OB_ERR_LIMIT);
    assert_int_equal(seq_length(b), 0);
    other.n = 64;
    assert_int_equal(engine_step(o.engine, &other, 1, &rows, &error), OB_OK);
    item = (struct engine_item){.seq = a, .id = id + 60, .n = 70};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    seq_free(&b);
    item.n = 69;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error),
                     OB_ERR_LIMIT); /* 129 > context */
    item.n = 68;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    id[0] = -1;
    assert_int_equal(seq_truncate(a, 0), 0);
    item = (struct engine_item){.seq = a, .id = id, .n = 1};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_ARGUMENT);
    seq_free(&a);
    close_model(&o);
}

/* The tiny model with another pattern of attention, which a recipe would have given it. */
static struct graph *graph_of(const struct opened *o) {
    return (struct graph *)&engine_model(o->engine)->graph;
}

static void pages_before_a_chunk_are_given_back(void **state) {
    (void)state;
    struct opened o = open_model("tests/golden/tiny.gguf",
                                 &(ob_engine_options){.device = "cpu", .kv_memory = 5 * 65536});
    struct graph *graph = graph_of(&o);
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (graph->node[i].op == OP_attention) graph->node[i].u.attention.chunk = 100;
    for (uint32_t g = 0; g < graph->groups; g++)
        graph->group[g] = (struct cache_group){.kind = CACHE_CHUNK, .window = 100};
    static const int32_t id[300];
    const float *rows;
    struct seq *a = seq_new(o.engine), *b = seq_new(o.engine);
    struct engine_item item = {.seq = a, .id = id, .n = 270}, other = {.seq = b, .id = id};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, NULL), OB_OK);
    other.n = 3 * 64; /* 200 .. 269 are in the fourth page and the fifth */
    assert_true(engine_fits(o.engine, &other, 1));
    other.n++;
    assert_false(engine_fits(o.engine, &other, 1));
    assert_true(seq_truncate(a, 201));
    item.n = 20;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, NULL), OB_OK);
    assert_int_equal(seq_length(a), 221);
    assert_false(seq_truncate(a, 199)); /* which sees 100 .. */
    assert_int_equal(seq_length(a), 0);
    seq_free(&a);
    seq_free(&b);
    close_model(&o);
}

static void a_bidirectional_sequence_is_one_step(void **state) {
    (void)state;
    struct opened o = open_model("tests/golden/tiny.gguf",
                                 &(ob_engine_options){.device = "cpu", .step_tokens = 16});
    graph_of(&o)->whole = true;
    static const int32_t id[32];
    const float *rows;
    ob_error error;
    struct seq *a = seq_new(o.engine);
    struct engine_item item = {.seq = a, .id = id, .n = 17};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    assert_string_equal(error.message,
                        "this model reads a sequence at once: one step of at most 16 tokens");
    item.n = 16;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    item.n = 1;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    assert_int_equal(seq_length(a), 16);
    seq_free(&a);
    close_model(&o);
}

static void bad_options_are_named(void **state) {
    (void)state;
    static const struct {
        ob_engine_options options;
        const char *says;
    } bad[] = {
        {{.device = "abacus"}, "device: unknown device \"abacus\"; there are: auto, cpu"},
        {{.kv_type = "f8"}, "kv_type: unknown value \"f8\""},
        {{.device = "cpu", .cpu_isa = "mmx"}, "mmx"},
        {{.kv_memory = 1000}, "kv_memory: 1000 bytes hold no page"},
        {{.context = 4096, .kv_memory = 65536}, "context: 4096 tokens do not fit"},
        {{.parallel = 100000}, "parallel is at most"},
    };
    struct source *source;
    assert_int_equal(source_open("tests/golden/tiny.gguf", &source, NULL), OB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct engine *engine;
        ob_error error;
        char line[1024];
        assert_int_not_equal(engine_open(source, &bad[i].options, &engine, &error), OB_OK);
        assert_null(engine);
        if (!strstr(ob_error_line(&error, line, sizeof line), bad[i].says)) fail_msg("%s", line);
    }
    source_close(&source);
}

/* Heads of 16 features do not go with blocks of 32: said before anything is loaded. */
static void cache_formats_must_divide_the_heads(void **state) {
    static const struct {
        ob_engine_options options;
        const char *says;
    } bad[] = {
        {{.kv_type = "q8_0"},
         "kv_type_k: q8_0 takes blocks of 32 features, this model's heads have 16"},
        {{.kv_type_v = "q4_0"},
         "kv_type_v: q4_0 takes blocks of 32 features, this model's heads have 16"},
    };
    struct source *source;
    struct engine *engine;
    assert_int_equal(source_open(family_unpack("llama", *state), &source, NULL), OB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ob_error error;
        char line[1024];
        assert_int_equal(engine_check(source, &bad[i].options, &error), OB_ERR_UNSUPPORTED);
        if (!strstr(ob_error_line(&error, line, sizeof line), bad[i].says)) fail_msg("%s", line);
        assert_int_equal(engine_open(source, &bad[i].options, &engine, &error),
                         OB_ERR_UNSUPPORTED);
    }
    ob_engine_options mixed = {.kv_type_k = "bf16", .kv_type_v = "f32"};
    assert_int_equal(engine_open(source, &mixed, &engine, NULL), OB_OK);
    assert_string_equal(engine_kv_text(engine), "bf16+f32");
    engine_close(&engine);
    source_close(&source);
    tempdir_empty(*state);
}

/* A token reads the experts that it is routed to: 2 of 6, of 35840 bytes in one layer and 33920 in
 * the other. */
static void only_active_experts_are_read(void **state) {
    (void)state;
    ob_engine_options options = {.device = "cpu"};
    struct opened o = open_model("tests/golden/tiny_moe.gguf", &options);
    const struct model *m = engine_model(o.engine);
    struct engine_work work = engine_work(o.engine);
    const uint64_t idle = 4 * (35840 + 33920), row = 256 / 32 * 34, rows = m->hp.vocab;
    assert_int_equal(work.expert_bytes, 2 * (35840 + 33920));
    assert_int_equal(work.token_bytes, m->weight_bytes - idle - (rows - 1) * row);
    assert_int_equal(work.token_products,
                     2 * (256 * (256 + 2 * 128 + 256) + 6 * 256 + 2 * 3 * 64 * 256));
    close_model(&o);
}

/* An encoder: whole sequences, as long as it has positions for, kept in F32. */
static void encoders_read_sequences_whole(void **state) {
    enum { POSITIONS = 254 };
    const char *path = family_unpack("roberta", *state);
    struct opened o = open_model(path, &(ob_engine_options){.device = "cpu", .kv_type = "q8_0"});
    struct engine *none;
    int32_t id[POSITIONS + 1];
    const float *rows;
    ob_error error;
    for (int i = 0; i <= POSITIONS; i++) id[i] = 3 + i % 200;
    assert_string_equal(engine_kv_text(o.engine), "f32");
    assert_int_equal(engine_context(o.engine), POSITIONS);
    assert_true(engine_step_tokens(o.engine) >= POSITIONS);
    struct seq *seq = seq_new(o.engine);
    struct engine_item item = {.seq = seq, .id = id, .n = POSITIONS + 1};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    item.n = POSITIONS;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    assert_non_null(engine_embedding(o.engine));
    seq_truncate(seq, 5);
    item = (struct engine_item){.seq = seq, .id = id, .n = 1};
    assert_int_equal(seq_length(seq), 5);
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    assert_non_null(strstr(error.message, "reads a sequence at once"));
    seq_free(&seq);
    ob_engine_options wide = {.device = "cpu", .context = POSITIONS + 1};
    assert_int_equal(engine_open(o.source, &wide, &none, &error), OB_ERR_LIMIT);
    assert_string_equal(error.where, "context");
    close_model(&o);
    tempdir_empty(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_memory_changes_nothing),
        cmocka_unit_test(pages_before_a_chunk_are_given_back),
        cmocka_unit_test(a_bidirectional_sequence_is_one_step),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(only_active_experts_are_read),
        cmocka_unit_test(cache_formats_must_divide_the_heads),
        cmocka_unit_test(encoders_read_sequences_whole),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
