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
#include "base/log.h"
#include "base/os.h"
#include "devices/cuda/cuda.h"

#define MODEL "tests/golden/tiny.gguf"
#define IMAGE(name) const unsigned char cuda_image_##name[1] = {0};
#include "devices/cuda/kernels/images.def"
#undef IMAGE

/* ---- the fake ---- */

static int *fails_at, *failure, *launches, *devices, *graphs;
static size_t *used, *most, *traced;
static char **trace;

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
    graphs = find("fake_cuda_graphs");
    trace = find("fake_cuda_trace");
    traced = find("fake_cuda_traced");
    used = find("fake_cuda_used");
    most = find("fake_cuda_most");
    log_set_level(LOG_ERROR);
    return 0;
}

/* ---- a small model: an embedding, attention, products of two formats, a glu, logits ---- */

enum { IDS = 32, COLS = 64, PAGES = 16, TOKENS = 80, SEQS = 3 };

struct model {
    struct arena arena;
    struct graph graph;
    struct weight weight[10];
    uint32_t weights;
};

static struct weight *weight_of(struct model *m, enum quant_index quant, uint32_t rows,
                                uint32_t cols, uint32_t experts) {
    struct weight *w = &m->weight[m->weights++];
    *w = (struct weight){
        .name = "w", .quant = quant_list[quant], .rows = rows, .cols = cols, .experts = experts};
    w->row_bytes = quant_row_bytes(w->quant, cols);
    w->data = arena_alloc(&m->arena, (experts ? experts : 1) * rows * w->row_bytes);
    return w;
}
static struct weight *weight_new(struct model *m, enum quant_index quant, uint32_t rows) {
    return weight_of(m, quant, rows, COLS, 0);
}

static void model_make(struct model *m) {
    static const float freq[COLS / 4] = {1};
    *m = (struct model){.weights = 0};
    struct graph *g = &m->graph;
    graph_init(g, &m->arena);
    const struct rope_table_args angles = {.freq = freq, .magnitude = 1, .half = COLS / 4};
    value_id table = graph_rope_table(g, &angles), up[2];
    value_id x = graph_embed(g, weight_new(m, QUANT_q8_0, IDS), 1), qkv[3];
    struct weight *w[3] = {weight_new(m, QUANT_q8_0, COLS), weight_new(m, QUANT_f32, COLS),
                           weight_new(m, QUANT_q8_0, COLS)};
    x = graph_norm(g, x, weight_new(m, QUANT_f16, 1), NULL, NORM_RMS, 1e-5f, COLS);
    graph_linear(g, x, 3, w, (struct weight *[3]){NULL}, qkv);
    struct attention_args args = {
        .heads = 2, .kv_heads = 2, .k_dim = COLS / 2, .v_dim = COLS / 2, .scale = 0.1f};
    for (int i = 0; i < 2; i++) qkv[i] = graph_rope(g, qkv[i], table, 2, COLS / 2, false);
    x = graph_add(g, x, graph_attention(g, qkv[0], qkv[1], qkv[2], &args));
    value_id h = graph_norm(g, x, weight_new(m, QUANT_f32, 1), NULL, NORM_RMS, 1e-5f, COLS);
    struct weight *gate_up[2] = {weight_new(m, QUANT_q8_0, COLS), weight_new(m, QUANT_q8_0, COLS)};
    graph_linear(g, h, 2, gate_up, (struct weight *[2]){NULL}, up);
    h = graph_glu(g, up[0], up[1], ACT_SILU);
    x = graph_add(g, x, graph_linear1(g, h, weight_new(m, QUANT_q8_0, COLS), NULL));
    g->logits = graph_linear1(g, graph_gather_rows(g, x), weight_new(m, QUANT_f32, IDS), NULL);
    assert_false(g->failed);
}

/* Experts between two norms of rows that are wider than heads. */
enum { WIDE = 512, EXPERTS = 4 };

static void mixture_make(struct model *m) {
    *m = (struct model){.weights = 0};
    struct graph *g = &m->graph;
    graph_init(g, &m->arena);
    value_id x = graph_embed(g, weight_of(m, QUANT_f32, IDS, WIDE, 0), 1), up[2];
    value_id h = graph_norm(g, x, weight_of(m, QUANT_f32, 1, WIDE, 0), NULL, NORM_RMS, 1e-5f, WIDE);
    value_id logits = graph_linear1(g, h, weight_of(m, QUANT_f32, EXPERTS, WIDE, 0), NULL);
    value_id route = graph_route(g, logits, &(struct route_args){.used = 2});
    struct weight *w[2] = {weight_of(m, QUANT_q8_0, WIDE, WIDE, EXPERTS),
                           weight_of(m, QUANT_q8_0, WIDE, WIDE, EXPERTS)};
    struct weight *down = weight_of(m, QUANT_q8_0, WIDE, WIDE, EXPERTS);
    graph_linear_experts(g, h, route, 2, w, NULL, up);
    graph_linear_experts(g, graph_glu(g, up[0], up[1], ACT_SILU), route, 1, &down, NULL, &h);
    x = graph_add(g, x, graph_combine(g, h, route));
    h = graph_norm(g, x, weight_of(m, QUANT_f32, 1, WIDE, 0), NULL, NORM_RMS, 1e-5f, WIDE);
    x = graph_add(g, x, h);
    g->logits = graph_gather_rows(g, x);
    assert_false(g->failed);
}

/* ---- all that an engine has open ---- */

struct session {
    struct model m;
    struct device *device;
    struct device_plan *plan;
    struct device_buffer *kv;
};

static ob_status session_open_model(struct session *s, void (*make)(struct model *m),
                                    struct device_options options, ob_error *error) {
    *s = (struct session){.device = NULL};
    const struct kv_types types = {KV_f16, KV_f16};
    make(&s->m);
    const size_t bytes = PAGE_TOKENS * 2 * kv_position_bytes(types, COLS / 2, COLS / 2);
    ob_status status = device_cuda.open(&options, &s->device, error);
    for (uint32_t i = 0; i < s->m.weights && status == OB_OK; i++)
        status = device_cuda.bind_weight(s->device, &s->m.weight[i], error);
    if (status == OB_OK) status = device_cuda.alloc(s->device, SEQS * PAGES * bytes, &s->kv, error);
    const struct device_kv caches = {.type = types, .group = &s->kv, .page_bytes = &bytes};
    if (status != OB_OK) return status;
    return device_cuda.prepare(s->device, &s->m.graph, &caches, TOKENS, TOKENS, &s->plan, error);
}

static ob_status session_open_with(struct session *s, struct device_options options,
                                   ob_error *error) {
    return session_open_model(s, model_make, options, error);
}

static ob_status session_open(struct session *s, ob_error *error) {
    return session_open_with(s, (struct device_options){0}, error);
}

static void session_close(struct session *s) {
    if (s->plan) device_cuda.release(s->device, &s->plan);
    if (s->kv) device_cuda.free(s->device, &s->kv);
    for (uint32_t i = 0; i < s->m.weights && s->device; i++)
        device_cuda.unbind_weight(s->device, &s->m.weight[i]);
    device_cuda.close(&s->device);
    arena_free(&s->m.arena);
}

/* `count` tokens of each of `seqs` sequences behind `past`, logits of each one's last. */
static ob_status session_step(struct session *s, uint32_t seqs, uint32_t past, uint32_t count,
                              ob_error *error) {
    static const uint32_t page[PAGES] = {3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint32_t *const pages[] = {page};
    int32_t id[TOKENS] = {0};
    uint32_t pos[TOKENS], row[SEQS];
    struct step_seq seq[SEQS];
    const float *logits;
    struct step step = {.seqs = seqs, .logits = seqs, .id = id, .pos = pos, .row = row, .seq = seq};
    for (uint32_t i = 0; i < seqs; i++) {
        seq[i] = (struct step_seq){.first = step.tokens, .count = count, .past = past,
                                   .page = pages};
        for (uint32_t k = 0; k < count; k++) pos[step.tokens++] = past + k;
        row[i] = step.tokens - 1;
    }
    return device_cuda.run(s->device, s->plan, &step, &logits, error);
}

static ob_status run_all(ob_error *error) {
    struct session s;
    ob_status status = session_open(&s, error);
    if (status == OB_OK) status = session_step(&s, 1, 0, 3, error);
    session_close(&s);
    return status;
}

/* ---- tests ---- */

static void gpus_are_listed(void **state) {
    (void)state;
    ob_device found = {0};
    device_cuda.enumerate(0, &found);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.text, "Fake 0 (sm_90)");
    uint32_t gpus = 0;
    for (size_t i = 0; ob_device_at(i, &found); i++) {
        if (strcmp(found.name, "cuda") != 0) continue;
        assert_int_equal(found.index, gpus);
        assert_string_equal(found.text, gpus ? "Fake 1 (sm_90)" : "Fake 0 (sm_90)");
        gpus++;
    }
    assert_int_equal(gpus, 2);
    *devices = 0;
    found = (ob_device){0};
    device_cuda.enumerate(0, &found);
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
    refuses((struct device_options){.index = 2}, OB_ERR_NOT_FOUND,
            "no cuda:2; there are: cuda:0 (Fake 0 (sm_90)), cuda:1 (Fake 1 (sm_90))");
    refuses((struct device_options){.cpu_isa = "avx2"}, OB_ERR_ARGUMENT, "'avx2'");
}

static void gpus_have_numbers(void **state) {
    (void)state;
    uint32_t index;
    char text[64];
    struct device *device;
    assert_ptr_equal(device_find_at("cuda", &index), &device_cuda);
    assert_int_equal(index, 0);
    assert_ptr_equal(device_find_at("cuda:1", &index), &device_cuda);
    assert_int_equal(index, 1);
    static const char *const bad[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:1:2", ":1", "",
                                      "cuda:9999999999", "gpu:0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(device_find_at(bad[i], &index));
    assert_int_equal(device_cuda.open(&(struct device_options){.index = 1}, &device, NULL), OB_OK);
    device_cuda.describe(device, text, sizeof text);
    assert_string_equal(text, "cuda:1 (Fake 1)");
    device_cuda.close(&device);
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

/* Embed, angles; norm that halves, two products of one format in one launch, one of the other; rope
 * and store, split, join, add; norm that halves, two products, glu that halves, a product that
 * adds; gather, logits. Norms as narrow as heads are halved by a kernel of their own. */
enum { STEP_LAUNCHES = 2 + 4 + 4 + 5 + 2 };

static void a_step_launches_its_nodes(void **state) {
    (void)state;
    ob_error error = {0};
    *launches = 0;
    ob_status status = run_all(&error);
    if (status != OB_OK) print_error("%s\n", error.message);
    assert_int_equal(status, OB_OK);
    assert_int_equal(*launches, 6 * 2 + STEP_LAUNCHES); /* packing and measuring of matrices */
    assert_int_equal(*used, 0);
}

static uint32_t kernels_in(const char *name, size_t from) {
    uint32_t n = 0;
    size_t length = strlen(name) + 1;
    for (size_t i = from; i + length <= *traced; i++)
        n += (i == from || (*trace)[i - 1] == 0) && memcmp(*trace + i, name, length) == 0;
    return n;
}

/* What is fused, and what it replaces, is there where it must be. */
static void fusions_are_chosen_once(void **state) {
    (void)state;
    static const struct { const char *kernel; uint32_t fused, alone; } row[] = {
        {"attention_store", 0, 1}, {"glu_row", 1, 0}, {"halve", 2, 3}, {"map", 1, 3},
        {"rope", 0, 2},            {"rope_store", 1, 0}, {"rows", 2, 2}};
    for (int alone = 0; alone < 2; alone++) {
        struct session s;
        assert_int_equal(
            session_open_with(&s, (struct device_options){.unfused = alone != 0}, NULL), OB_OK);
        size_t from = *traced;
        assert_int_equal(session_step(&s, 2, 0, 3, NULL), OB_OK);
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
            assert_int_equal(kernels_in(row[i].kernel, from),
                             alone ? row[i].alone : row[i].fused);
        session_close(&s);
    }
}

/* Pairs are grouped on the GPU: by one block with the router, or by another if tokens are many; and
 * tiles are low or high. What experts give is added up by the norm behind. */
static void a_mixture_is_routed_on_the_gpu(void **state) {
    (void)state;
    enum { MANY = 70 };
    static const struct { const char *kernel; uint32_t few, many, alone; } row[] = {
        {"route_group", 1, 0, 1}, {"route", 0, 1, 0},  {"group", 0, 1, 0},
        {"combine", 0, 0, 1},     {"glu_row", 1, 1, 0}, {"halve", 0, 0, 2},
        {"map", 1, 1, 3},         {"norm_row", 2, 2, 2}, {"thin_4_f32", 1, 0, 1},
        {"thin_16_f32", 0, 1, 0},
        {"linear_experts_q8_0", 0, 0, 0}, {"mma_experts_8_q8_0", 2, 0, 2},
        {"mma_experts_40_q8_0", 0, 2, 0}};
    for (int alone = 0; alone < 2; alone++) {
        struct session s;
        const struct device_options options = {.unfused = alone != 0};
        assert_int_equal(session_open_model(&s, mixture_make, options, NULL), OB_OK);
        for (int many = 0; many < 2 - alone; many++) {
            size_t from = *traced;
            assert_int_equal(session_step(&s, 1, 0, many ? MANY : 3, NULL), OB_OK);
            for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
                assert_int_equal(kernels_in(row[i].kernel, from),
                                 alone ? row[i].alone : many ? row[i].many : row[i].few);
        }
        session_close(&s);
        assert_int_equal(*used, 0);
    }
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
        assert_int_equal(n, 149); /* calls of a run that may fail, and one */
    }
}

/* ---- graphs ---- */

struct traced { char *text; size_t bytes; };

/* What a step launches: kernels, grids and arguments in order. */
static struct traced trace_of(struct session *s, uint32_t seqs, uint32_t past, uint32_t count) {
    size_t before = *traced;
    assert_int_equal(session_step(s, seqs, past, count, NULL), OB_OK);
    struct traced t = {.bytes = *traced - before};
    assert_true(t.bytes > 0);
    t.text = malloc(t.bytes + 1);
    assert_non_null(t.text);
    memcpy(t.text, *trace + before, t.bytes);
    return t;
}

static void assert_same(struct traced a, struct traced b) {
    assert_int_equal(a.bytes, b.bytes);
#ifndef __clang__ /* which leaves what it likes in the padding of arguments */
    assert_memory_equal(a.text, b.text, a.bytes);
#endif
    free(a.text);
    free(b.text);
}

/* Sequences that grow over the end of a split; each step also plainly, on the same plan. */
static void a_replay_launches_what_plain_steps_do(void **state) {
    (void)state;
    struct session s;
    assert_int_equal(session_open(&s, NULL), OB_OK);
    bool *plain = &((struct cuda_device *)(void *)s.device)->plain;
    session_step(&s, SEQS, 1000, 1, NULL); /* the step's memory grows no more */
    int most_graphs = 0;
    for (uint32_t past = CUDA_SPLIT - 8; past < CUDA_SPLIT + 8; past++)
        for (uint32_t seqs = 1; seqs <= SEQS; seqs++)
            for (uint32_t count = 1; count <= 2; count++) {
                struct traced graph = trace_of(&s, seqs, past, count);
                *plain = true;
                assert_same(graph, trace_of(&s, seqs, past, count));
                *plain = false;
                if (*graphs > most_graphs) most_graphs = *graphs;
            }
    assert_int_equal(most_graphs, 2 * 2 * SEQS); /* one a shape; two splits or one */
    session_close(&s);
    assert_int_equal(*graphs, 0);
    assert_int_equal(*used, 0);
}

/* All kernels of a graph but the first, and none of another step; none where they cannot. */
static void kernels_of_a_graph_overlap(void **state) {
    (void)state;
    int *overlapping = find("fake_cuda_overlapping"), *ptx = find("fake_cuda_ptx");
    for (int can = 0; can < 2; can++) {
        struct session s;
        *ptx = can ? 90 : 75;
        *overlapping = 0;
        assert_int_equal(session_open(&s, NULL), OB_OK);
        assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
        assert_int_equal(*overlapping, 0);
        for (int i = 0; i < 2; i++) assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
        assert_int_equal(*graphs, 1);
        assert_int_equal(*overlapping, can ? STEP_LAUNCHES - 1 : 0);
        session_close(&s);
    }
}

static void graphs_are_few_and_of_small_steps(void **state) {
    (void)state;
    struct session s;
    assert_int_equal(session_open(&s, NULL), OB_OK);
    session_step(&s, SEQS, 1000, 1, NULL);
    for (uint32_t count = 1; count <= 2 * CUDA_GRAPHS; count++)
        for (int round = 0; round < 3; round++) {
            assert_int_equal(session_step(&s, 1, 0, count, NULL), OB_OK);
            assert_true(*graphs <= CUDA_GRAPHS);
        }
    assert_int_equal(*graphs, CUDA_GRAPHS);
    /* Memory of a step that grows moves: what was recorded is gone. */
    session_step(&s, SEQS, 900, 26, NULL);
    assert_int_equal(*graphs, 0);
    for (int round = 0; round < 3; round++)
        assert_int_equal(session_step(&s, 1, 0, CUDA_GRAPH_TOKENS + 1, NULL), OB_OK);
    assert_int_equal(*graphs, 0);
    session_close(&s);
    assert_int_equal(*used, 0);
}

/* Each call of a recording failing once: the step is launched plainly, and all later ones. */
static void a_failed_recording_is_no_failure(void **state) {
    (void)state;
    *failure = 2;
    /* Begin, launches, end, instantiate; the first call is the step's own upload. */
    for (int n = 2; n < 2 + 1 + STEP_LAUNCHES + 1 + 1; n++) {
        struct session s;
        assert_int_equal(session_open(&s, NULL), OB_OK);
        struct traced first = trace_of(&s, 1, 0, 3);
        *fails_at = n;
        struct traced second = trace_of(&s, 1, 0, 3);
        assert_int_equal(*fails_at, 0);
        assert_true(((struct cuda_device *)(void *)s.device)->plain);
        assert_same(first, second);
        assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
        assert_int_equal(*graphs, 0);
        session_close(&s);
        assert_int_equal(*used, 0);
    }
}

static void a_failed_replay_is_said(void **state) {
    (void)state;
    struct session s;
    ob_error error = {0};
    assert_int_equal(session_open(&s, NULL), OB_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
    *fails_at = 2;
    *failure = 999;
    assert_int_equal(session_step(&s, 1, 0, 3, &error), OB_ERR_IO);
    assert_non_null(strstr(error.message, "a step"));
    assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
    session_close(&s);
    assert_int_equal(*used, 0);
}

static void a_driver_without_graphs_serves(void **state) {
    (void)state;
    char why[128];
    struct cuda_driver *driver = (struct cuda_driver *)cuda_driver(why, sizeof why);
    CUresult (*launch)(CUgraphExec, CUstream) = driver->graph_launch;
    driver->graph_launch = NULL;
    ob_device found = {0};
    device_cuda.enumerate(0, &found);
    assert_non_null(strstr(found.text, "no CUDA graphs"));
    struct session s;
    assert_int_equal(session_open(&s, NULL), OB_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(session_step(&s, 1, 0, 3, NULL), OB_OK);
    assert_int_equal(*graphs, 0);
    session_close(&s);
    driver->graph_launch = launch;
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

/* ---- what fits ---- */

static void sizes_are_known_before(void **state) {
    (void)state;
    struct session s;
    const struct kv_types types = {KV_f16, KV_f16};
    const size_t page = PAGE_TOKENS * 2 * kv_position_bytes(types, COLS / 2, COLS / 2);
    const uint64_t kv = (uint64_t)SEQS * PAGES * page;
    assert_int_equal(session_open(&s, NULL), OB_OK);
    uint64_t weights = 0;
    for (uint32_t i = 0; i < s.m.weights; i++)
        weights += device_cuda.weight_memory(s.device, &s.m.weight[i]);
    const struct device_kv caches = {.type = types, .page_bytes = &page};
    uint64_t plan =
        device_cuda.plan_memory(s.device, &s.m.graph, &caches, &kv, TOKENS, TOKENS);
    assert_in_range(*used, weights + kv + plan - 4096, weights + kv + plan);
    session_close(&s);
}

/* A model that does not fit is refused with the figures before any of it goes up. */
static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const struct { size_t most; const char *words[3]; } row[] = {
        {64 << 10,
         {"weights of ", "of the 0.1 MiB that cuda (Fake 0) has free", "gpu_layers auto"}},
        {(size_t)150 << 20,
         {"KV memory of 16.0 MiB for 16384 tokens", "for steps of 2048 tokens", "less kv_memory"}},
    };
    const size_t all = *most;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        ob_error error = {0};
        ob_engine *engine = NULL;
        const ob_engine_options options = {
            .model = MODEL, .device = "cuda", .kv_memory = i ? (uint64_t)120 << 20 : 0};
        *launches = 0;
        *most = row[i].most;
        assert_int_equal(ob_engine_open(&options, &engine, &error), OB_ERR_MEMORY);
        *most = all;
        assert_null(engine);
        assert_int_equal(*launches, 0);
        assert_int_equal(*used, 0);
        for (int w = 0; w < 3; w++)
            if (!strstr(error.message, row[i].words[w])) fail_msg("%s", error.message);
    }
}

/* Layers that do not fit stay on the CPU; what is taken is given back. */
static void some_layers_go_up(void **state) {
    (void)state;
    const size_t all = *most;
    size_t whole = 0;
    for (int i = 0; i < 4; i++) {
        static const char *const layers[] = {"99", "1", "auto", "auto"};
        ob_error error = {0};
        ob_engine *engine = NULL;
        const ob_engine_options options = {.model = MODEL, .device = "cuda", .context = 64,
                                           .kv_memory = (uint64_t)16 << 20, .step_tokens = 16,
                                           .gpu_layers = layers[i]};
        if (i == 3) *most = 64 << 10; /* for none */
        if (ob_engine_open(&options, &engine, &error) != OB_OK) fail_msg("%s", error.message);
        if (i == 0) whole = *used;
        if (i == 1) assert_in_range(*used, 1, whole - 1);
        if (i == 2) assert_int_equal(*used, whole);
        if (i == 3) assert_int_equal(*used, 0);
        ob_engine_close(&engine);
        assert_int_equal(*used, 0);
        *most = all;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_listed),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(gpus_have_numbers),
        cmocka_unit_test(buffers_keep_what_is_written),
        cmocka_unit_test(a_step_launches_its_nodes),
        cmocka_unit_test(fusions_are_chosen_once),
        cmocka_unit_test(a_mixture_is_routed_on_the_gpu),
        cmocka_unit_test(every_failure_is_said_and_frees_all),
        cmocka_unit_test(a_replay_launches_what_plain_steps_do),
        cmocka_unit_test(kernels_of_a_graph_overlap),
        cmocka_unit_test(graphs_are_few_and_of_small_steps),
        cmocka_unit_test(a_failed_recording_is_no_failure),
        cmocka_unit_test(a_failed_replay_is_said),
        cmocka_unit_test(a_driver_without_graphs_serves),
        cmocka_unit_test(memory_that_is_short_is_said),
        cmocka_unit_test(sizes_are_known_before),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(some_layers_go_up),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
