/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda.c: the host's side of the cuda device over fake_cuda.c, a driver that computes nothing:
 * opening, buffers, weights, plans and steps; and every call failing once, after which nothing may
 * be left allocated. What kernels compute is 1bit-check's business, on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/os.h"
#include "devices/cuda/cuda.h"

#define IMAGE(name) const unsigned char cuda_image_##name[1] = {0};
#include "devices/cuda/kernels/images.def"
#undef IMAGE

/* ---- the fake ---- */

static int *fails_at, *failure, *launches, *devices;
static size_t *used, *most;

static void *find(const char *name) {
    static void *library;
    if (!library) library = os_library_open("libcuda.so.1");
    assert_non_null(library);
    void *at = os_library_symbol(library, name);
    assert_non_null(at);
    return at;
}

static int find_fake(void **state) {
    (void)state;
    fails_at = find("fake_cuda_fails_at");
    failure = find("fake_cuda_failure");
    launches = find("fake_cuda_launches");
    devices = find("fake_cuda_devices");
    used = find("fake_cuda_used");
    most = find("fake_cuda_most");
    return 0;
}

/* ---- a small model: an embedding, attention, products of two formats, logits ---- */

enum { IDS = 32, COLS = 64, PAGES = 4 };

struct model {
    struct arena arena;
    struct graph graph;
    struct weight weight[6];
    uint32_t weights;
};

static struct weight *weight_new(struct model *m, enum quant_index quant, uint32_t rows) {
    struct weight *w = &m->weight[m->weights++];
    *w = (struct weight){.name = "w", .quant = quant_list[quant], .rows = rows, .cols = COLS};
    w->row_bytes = quant_row_bytes(w->quant, COLS);
    w->data = arena_alloc(&m->arena, rows * w->row_bytes);
    return w;
}

static void model_make(struct model *m) {
    *m = (struct model){.weights = 0};
    struct graph *g = &m->graph;
    graph_init(g, &m->arena);
    value_id x = graph_embed(g, weight_new(m, QUANT_q8_0, IDS), 1), qkv[3];
    struct weight *w[3] = {weight_new(m, QUANT_q8_0, COLS), weight_new(m, QUANT_f32, COLS),
                           weight_new(m, QUANT_q8_0, COLS)};
    x = graph_norm(g, x, weight_new(m, QUANT_f16, 1), NULL, NORM_RMS, 1e-5f, COLS);
    graph_linear(g, x, 3, w, (struct weight *[3]){NULL}, qkv);
    struct attention_args args = {
        .heads = 2, .kv_heads = 2, .k_dim = COLS / 2, .v_dim = COLS / 2, .scale = 0.1f};
    x = graph_add(g, x, graph_attention(g, qkv[0], qkv[1], qkv[2], &args));
    g->logits = graph_linear1(g, graph_gather_rows(g, x), weight_new(m, QUANT_f32, IDS), NULL);
    assert_false(g->failed);
}

/* Everything that an engine does; the status of what fails first. */
static ob_status run_all(ob_error *error) {
    struct model m;
    struct device *device = NULL;
    struct device_plan *plan = NULL;
    struct device_buffer *kv = NULL;
    const float *logits;
    const uint32_t page[PAGES] = {3, 0, 1, 2};
    const uint32_t *const pages[] = {page};
    const int32_t id[3] = {1, 2, 3};
    const uint32_t pos[3] = {0, 1, 2}, row[1] = {2};
    const struct step_seq seq = {.count = 3, .page = pages};
    const struct step step = {
        .tokens = 3, .seqs = 1, .logits = 1, .id = id, .pos = pos, .row = row, .seq = &seq};
    const struct kv_types types = {KV_f16, KV_f16};
    model_make(&m);
    const size_t bytes = PAGE_TOKENS * 2 * kv_position_bytes(types, COLS / 2, COLS / 2);
    ob_status s = device_cuda.open(&(struct device_options){0}, &device, error);
    for (uint32_t i = 0; i < m.weights && s == OB_OK; i++)
        s = device_cuda.bind_weight(device, &m.weight[i], error);
    if (s == OB_OK) s = device_cuda.alloc(device, PAGES * bytes, &kv, error);
    const struct device_kv caches = {.type = types, .group = &kv, .page_bytes = &bytes};
    if (s == OB_OK) s = device_cuda.prepare(device, &m.graph, &caches, 8, 8, &plan, error);
    if (s == OB_OK) s = device_cuda.run(device, plan, &step, &logits, error);
    if (plan) device_cuda.release(device, &plan);
    if (kv) device_cuda.free(device, &kv);
    for (uint32_t i = 0; i < m.weights && device; i++)
        device_cuda.unbind_weight(device, &m.weight[i]);
    device_cuda.close(&device);
    arena_free(&m.arena);
    return s;
}

/* ---- tests ---- */

static void gpus_are_listed(void **state) {
    (void)state;
    ob_device found = {0};
    device_cuda.enumerate(&found);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.text, "Fake 0 (sm_90)");
    *devices = 0;
    found = (ob_device){0};
    device_cuda.enumerate(&found);
    assert_int_equal(found.count, 0);
    assert_non_null(strstr(found.text, "no GPU"));
    *devices = 2;
}

static void refuses(struct device_options options, ob_status status, const char *word) {
    struct device *device = (void *)1;
    ob_error error = {0};
    assert_int_equal(device_cuda.open(&options, &device, &error), status);
    assert_null(device);
    assert_non_null(strstr(error.message, word));
}

static void bad_options_are_named(void **state) {
    (void)state;
    refuses((struct device_options){.index = 2}, OB_ERR_NOT_FOUND, "2 cuda devices");
    refuses((struct device_options){.cpu_isa = "avx2"}, OB_ERR_ARGUMENT, "'avx2'");
}

static void buffers_keep_what_is_written(void **state) {
    (void)state;
    struct device *device;
    struct device_buffer *b;
    char out[5] = "";
    assert_int_equal(device_cuda.open(&(struct device_options){0}, &device, NULL), OB_OK);
    assert_int_equal(device_cuda.alloc(device, 64, &b, NULL), OB_OK);
    assert_int_equal(device_cuda.read(device, b, 60, out, 4, NULL), OB_OK);
    assert_memory_equal(out, "\0\0\0\0", 4);
    assert_int_equal(device_cuda.write(device, b, 3, "abcd", 4, NULL), OB_OK);
    assert_int_equal(device_cuda.copy(device, b, 32, 3, 4, NULL), OB_OK);
    assert_int_equal(device_cuda.read(device, b, 32, out, 4, NULL), OB_OK);
    assert_string_equal(out, "abcd");
    device_cuda.free(device, &b);
    device_cuda.close(&device);
    assert_int_equal(*used, 0);
}

static void a_step_launches_its_nodes(void **state) {
    (void)state;
    ob_error error = {0};
    *launches = 0;
    assert_int_equal(run_all(&error), OB_OK);
    /* Packing and measuring three matrices; embed, norm, halve, two products of one format in one
     * launch, one of the other, store, split, merge, add, gather, logits. */
    assert_int_equal(*launches, 3 * 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1);
    assert_int_equal(*used, 0);
}

static void every_failure_is_said_and_frees_all(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int n = 2; /* the first only asks for a name to show */
        *failure = kind ? 999 : 2;
        for (;; n++) {
            ob_error error = {0};
            *fails_at = n;
            ob_status s = run_all(&error);
            bool reached = *fails_at == 0;
            *fails_at = 0;
            assert_int_equal(*used, 0);
            if (!reached) break;
            assert_int_not_equal(s, OB_OK);
            assert_true(error.message[0] != 0);
        }
        assert_int_equal(n, 93); /* calls of a run that may fail, and one */
    }
}

static void memory_that_is_short_is_said(void **state) {
    (void)state;
    ob_error error = {0};
    const size_t all = *most;
    *most = 4096;
    assert_int_equal(run_all(&error), OB_ERR_MEMORY);
    assert_true(error.message[0] != 0);
    *most = all;
    assert_int_equal(*used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_listed),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(buffers_keep_what_is_written),
        cmocka_unit_test(a_step_launches_its_nodes),
        cmocka_unit_test(every_failure_is_said_and_frees_all),
        cmocka_unit_test(memory_that_is_short_is_said),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
