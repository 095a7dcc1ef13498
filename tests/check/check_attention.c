/* SPDX-License-Identifier: Apache-2.0
 *
 * check_attention.c: one split of attention. The cache holds NaN wherever no row may look, and each
 * block ends at a guard page. A quantized K is given queries that int8 holds exactly, so that the
 * definition, which does not round them, can be held close. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"

enum { PAGES_MAX = ATTENTION_SPLIT / ATTENTION_PAGE };

struct attention_case {
    enum cpu_isa isa;
    struct kv_types kv;
    uint32_t k_dim, v_dim, rows, pages, window;
    float softcap, slope;
    uint32_t sparse; /* a row sees every so many positions; 0: all */
    uint32_t distances; /* that have a bias */
    int32_t shift; /* of the query before the last position it sees */
};

struct scene {
    struct attention_job job;
    const void *block[PAGES_MAX];
    struct attention_row row[ATTENTION_ROWS];
};

static bool is_quantized(enum kv_type kv) { return kv_quant(kv)->block > 1; }

/* Of a quantized K: H q is multiples of 2^-6, of which each 32 reach 127. */
static float *make_q(struct check_row *row, const struct attention_case *c) {
    float *q = check_input(row, c->k_dim, -2, 2);
    for (uint32_t at = 0; is_quantized(c->kv.k) && at < c->k_dim; at += 32) {
        float x[32];
        for (int i = 0; i < 32; i++)
            x[i] = i == 5 ? -127.0f / 64 : (float)(int)(q[at + i] * 63) / 64;
        for (int i = 0; i < 32; i++) {
            q[at + i] = 0;
            for (int j = 0; j < 32; j++)
                q[at + i] += __builtin_popcount(i & j) % 2 ? -x[j] / 32 : x[j] / 32;
        }
    }
    return q;
}

/* Bits of one position in c->sparse; of some pages none, and sometimes of all. */
static const uint64_t *make_sees(struct check_row *row, const struct attention_case *c) {
    if (c->sparse == 0) return NULL;
    uint64_t *sees = check_scratch(row, c->pages * sizeof *sees);
    uint32_t least = check_below(row, 3);
    for (uint32_t p = 0; p < c->pages; p++) {
        sees[p] = 0;
        if (check_below(row, 3) < least) continue;
        for (int i = 0; i < ATTENTION_PAGE; i++)
            sees[p] |= (uint64_t)(check_below(row, c->sparse) == 0) << i;
    }
    return sees;
}

/* Rows are those of a prompt chunk with up to three heads a token, or of decode. */
static void make_rows(struct check_row *row, const struct attention_case *c, struct scene *s) {
    uint32_t limit = c->pages * ATTENTION_PAGE, heads = 1 + check_below(row, 3);
    uint32_t tokens = (c->rows + heads - 1) / heads, last = limit - check_below(row, 64);
    for (uint32_t r = 0; r < c->rows; r++) {
        uint32_t before = tokens - 1 - r / heads, end = last > before ? last - before : 1;
        s->row[r] = (struct attention_row){
            .q = make_q(row, c),
            .begin = c->window && end > c->window ? end - c->window : 0,
            .end = end,
            .sees = make_sees(row, c),
            .slope = c->slope / (float)(1 + r % heads),
            .at = (int32_t)end - 1 - c->shift,
            .by_distance = c->distances ? check_input(row, c->distances, -3, 3) : NULL,
            .distances = c->distances};
    }
}

/* Stores positions [from, to) of each page the rows see; all else is NaN. */
static void fill_cache(struct check_row *row, const struct attention_case *c, struct scene *s) {
    uint32_t from = UINT32_MAX, to = 0;
    for (uint32_t r = 0; r < c->rows; r++) {
        from = s->row[r].begin < from ? s->row[r].begin : from;
        to = s->row[r].end > to ? s->row[r].end : to;
    }
    for (uint32_t p = 0; p < c->pages; p++) {
        uint32_t first = p * ATTENTION_PAGE, a = from > first ? from - first : 0;
        uint32_t b = to > first ? to - first : 0;
        b = b > ATTENTION_PAGE ? ATTENTION_PAGE : b;
        s->block[p] = NULL; /* a page that no row sees is not there */
        if (a >= b) continue;
        size_t bytes = ATTENTION_PAGE * kv_position_bytes(c->kv, c->k_dim, c->v_dim);
        void *block = check_bytes(row, bytes);
        memset(block, 0xff, bytes);
        s->block[p] = block;
        struct attention_store store = {.k = check_input(row, (b - a) * c->k_dim, -2, 2),
                                        .v = check_input(row, (b - a) * c->v_dim, -2, 2),
                                        .k_stride = c->k_dim,
                                        .v_stride = c->v_dim,
                                        .k_dim = c->k_dim,
                                        .v_dim = c->v_dim,
                                        .slot = a,
                                        .rows = b - a,
                                        .type = c->kv,
                                        .block = block};
        kernels_table(c->isa)->attention_store(&store);
        void *other = check_bytes(row, bytes);
        memset(other, 0xff, bytes);
        store.block = other;
        kernels_ref()->attention_store(&store);
        if (memcmp(block, other, bytes) != 0) check_fail(row, "stored page %u differs", p);
    }
}

static struct scene *make_scene(struct check_row *row, const struct attention_case *c) {
    struct scene *s = check_scratch(row, sizeof *s);
    make_rows(row, c, s);
    fill_cache(row, c, s);
    s->job = (struct attention_job){.k_dim = c->k_dim,
                                    .v_dim = c->v_dim,
                                    .type = c->kv,
                                    .scale = 0.25f,
                                    .softcap = c->softcap,
                                    .block = s->block,
                                    .pages = c->pages,
                                    .row = s->row,
                                    .rows = c->rows,
                                    .scratch = check_scratch(row, attention_scratch(c->k_dim))};
    return s;
}

static float *set_parts(struct check_row *row, const struct attention_case *c, struct scene *s) {
    size_t floats = attention_part_floats(c->v_dim);
    float *parts = check_output(row, c->rows * floats);
    for (uint32_t r = 0; r < c->rows; r++) s->row[r].part = parts + r * floats;
    return parts;
}

static void finish(const struct kernels *k, const struct attention_case *c, const float *parts,
                   float *y) {
    for (uint32_t r = 0; r < c->rows; r++) {
        const float *part = parts + r * attention_part_floats(c->v_dim);
        if (part[1] == 0) memset(y + (size_t)r * c->v_dim, 0, c->v_dim * sizeof *y); /* sees none */
        else k->attention_finish(part, y + (size_t)r * c->v_dim, c->v_dim);
    }
}

static void run(struct check_row *row, const void *arg) {
    const struct attention_case *c = arg;
    struct scene *s = make_scene(row, c);
    const struct kernels *ours = kernels_table(c->isa), *other = kernels_table(CPU_SCALAR);
    if (c->isa == CPU_SCALAR) other = kernels_ref();
    size_t n = (size_t)c->rows * c->v_dim;
    float *got = check_output(row, n), *want = check_output(row, n);

    float *parts = set_parts(row, c, s);
    double pairs = (double)c->rows * c->pages * ATTENTION_PAGE;
    double bytes = pairs / c->rows * (double)kv_position_bytes(c->kv, c->k_dim, c->v_dim);
    while (check_again(row, bytes, 2 * pairs * (c->k_dim + c->v_dim)))
        ours->attention(&s->job);
    finish(ours, c, parts, got);

    float *wanted = set_parts(row, c, s);
    other->attention(&s->job);
    finish(other, c, wanted, want);
    if (c->isa == CPU_SCALAR) {
        check_nmse(row, got, want, n, 1e-10);
        return;
    }
    for (uint32_t r = 0; r < c->rows; r++) { /* max, sum, sums */
        size_t at = r * attention_part_floats(c->v_dim);
        check_equal(row, parts + at, wanted + at, 2);
        check_equal(row, parts + at + 16, wanted + at + 16, c->v_dim);
    }
    check_equal(row, got, want, n);
}

/* A row gives the same bits alone as among others. */
static void run_alone(struct check_row *row, const void *arg) {
    const struct attention_case *c = arg;
    struct scene *s = make_scene(row, c);
    const struct kernels *k = kernels_table(c->isa);
    size_t floats = attention_part_floats(c->v_dim);
    float *together = set_parts(row, c, s), *alone = check_output(row, floats);
    k->attention(&s->job);
    s->job.rows = 1;
    for (uint32_t r = 0; r < c->rows; r++) {
        struct attention_row one = s->row[r];
        one.part = alone;
        s->job.row = &one;
        k->attention(&s->job);
        check_equal(row, alone, together + r * floats, 2);
        check_equal(row, alone + 16, together + r * floats + 16, c->v_dim);
    }
}

static void run_merge(struct check_row *row, const void *arg) {
    const struct attention_case *c = arg;
    const struct kernels *ours = kernels_table(c->isa), *other = kernels_table(CPU_SCALAR);
    if (c->isa == CPU_SCALAR) other = kernels_ref();
    size_t floats = attention_part_floats(c->v_dim);
    float *got = check_output(row, floats), *want = check_output(row, floats);
    ours->attention_clear(got, c->v_dim);
    other->attention_clear(want, c->v_dim);
    for (int i = 0; i < 9; i++) {
        float *part = check_input(row, floats, -5, 5);
        part[1] = check_uniform(row, 1, 64);
        if (i % 4 == 0) ours->attention_clear(part, c->v_dim);
        ours->attention_merge(got, part, c->v_dim);
        other->attention_merge(want, part, c->v_dim);
    }
    static const float sink[] = {-INFINITY, -200, 2, 9}; /* in turn; the last two above the top */
    float *y = check_output(row, c->v_dim), *z = check_output(row, c->v_dim);
    for (int i = 0; i < 4; i++) {
        ours->attention_sink(got, sink[i], c->v_dim);
        other->attention_sink(want, sink[i], c->v_dim);
        ours->attention_finish(got, y, c->v_dim);
        other->attention_finish(want, z, c->v_dim);
        if (c->isa == CPU_SCALAR)
            check_close(row, y, z, c->v_dim, (struct check_bound){1e-6, 1e-6});
        else check_equal(row, y, z, c->v_dim);
    }
}

/* A sink is one more part, whose values are zero. */
static void run_sink(struct check_row *row, const void *arg) {
    const struct attention_case *c = arg;
    const struct kernels *k = kernels_table(c->isa);
    size_t floats = attention_part_floats(c->v_dim);
    float *part = check_output(row, floats), *got = check_input(row, floats, -5, 5);
    float *want = check_output(row, floats);
    got[1] = check_uniform(row, 1, 64);
    memcpy(want, got, floats * sizeof *want);
    k->attention_clear(part, c->v_dim);
    part[0] = check_uniform(row, -5, 5);
    part[1] = 1;
    k->attention_sink(got, part[0], c->v_dim);
    k->attention_merge(want, part, c->v_dim);
    check_equal(row, got, want, 2);
    check_equal(row, got + 16, want + 16, c->v_dim);
}

/* What quantizing must get right at its edges: nothing, too little, too much, no number. */
static void run_edges(struct check_row *row, const void *arg) {
    const struct attention_case *c = arg;
    static const float edge[] = {0, -0.0f, 1e-45f, 1e-7f, 6e-8f * 127, 3e-6f, 65504, 524000, 524160,
                                 8.2e6f, 8.33e6f, 1e30f, INFINITY, -INFINITY, NAN};
    enum { EDGES = sizeof edge / sizeof edge[0] };
    size_t bytes = ATTENTION_PAGE * kv_position_bytes(c->kv, c->k_dim, c->v_dim);
    void *got = check_bytes(row, bytes), *want = check_bytes(row, bytes);
    float *k = check_input(row, ATTENTION_PAGE * c->k_dim, -1, 1);
    float *v = check_input(row, ATTENTION_PAGE * c->v_dim, -1, 1);
    for (uint32_t i = 0; i < ATTENTION_PAGE; i++) { /* one edge among numbers of its size */
        float e = edge[i % EDGES], unit = e != 0 && e < 1e31f && e > -1e31f ? e : 1e-44f;
        for (uint32_t d = 0; d < c->k_dim; d++) k[i * c->k_dim + d] *= unit;
        for (uint32_t d = 0; d < c->v_dim; d++) v[i * c->v_dim + d] *= unit;
        k[i * c->k_dim + check_below(row, c->k_dim)] = e;
        v[i * c->v_dim + check_below(row, c->v_dim)] = -e;
    }
    struct attention_store store = {.k = k, .v = v, .k_stride = c->k_dim, .v_stride = c->v_dim,
                                    .k_dim = c->k_dim, .v_dim = c->v_dim, .type = c->kv,
                                    .rows = ATTENTION_PAGE, .block = got};
    memset(got, 0xff, bytes);
    memset(want, 0xff, bytes);
    kernels_table(c->isa)->attention_store(&store);
    store.block = want;
    kernels_ref()->attention_store(&store);
    if (memcmp(got, want, bytes) != 0) check_fail(row, "stored bytes differ");
}

static void check_case(struct check *check, const struct attention_case *c) {
    char name[96];
    bool same = c->kv.k == c->kv.v;
    snprintf(name, sizeof name, "%s.%s%s%s.k%u_v%u_r%u_p%u_w%u%s", cpu_isa_name(c->isa),
             kv_name(c->kv.k), same ? "" : "+", same ? "" : kv_name(c->kv.v), c->k_dim, c->v_dim,
             c->rows, c->pages, c->window, c->slope > 0    ? "_alibi"
             : c->sparse   ? "_sparse"
             : c->distances ? "_distances"
                            : "");
    check_run(check, run, c, "attention.%s", name);
    check_run(check, run_alone, c, "attention.%s.alone", name);
    check_run(check, run_edges, c, "attention.%s.edges", name);
    if (c->kv.k != KV_f32 || !same) return;
    check_run(check, run_merge, c, "attention_merge.%s", name);
    check_run(check, run_sink, c, "attention_sink.%s", name);
}

static bool goes_with(uint32_t dim, enum kv_type kv) { return dim % kv_quant(kv)->block == 0; }

void check_attention(struct check *check) {
    static const struct attention_case cases[] = {
        {.k_dim = 16, .v_dim = 16, .rows = 1, .pages = 1},
        {.k_dim = 8, .v_dim = 24, .rows = 7, .pages = 3},
        {.k_dim = 64, .v_dim = 64, .rows = 63, .pages = 2},
        {.k_dim = 64, .v_dim = 64, .rows = 7, .pages = 8},
        {.k_dim = 80, .v_dim = 72, .rows = 13, .pages = 4, .window = 33},
        {.k_dim = 32, .v_dim = 96, .rows = 13, .pages = 4, .window = 33},
        {.k_dim = 128, .v_dim = 128, .rows = 64, .pages = 3, .window = 5},
        {.k_dim = 128, .v_dim = 128, .rows = 1, .pages = 8},
        {.k_dim = 256, .v_dim = 256, .rows = 5, .pages = 2, .softcap = 3},
        {.k_dim = 192, .v_dim = 32, .rows = 20, .pages = 8, .window = 200, .softcap = 20},
        {.k_dim = 576, .v_dim = 512, .rows = 64, .pages = 2},
        {.k_dim = 64, .v_dim = 64, .rows = 13, .pages = 8, .slope = 0.5f},
        {.k_dim = 64, .v_dim = 64, .rows = 6, .pages = 3, .window = 90, .softcap = 9,
         .slope = 0.04f, .shift = 60},
        {.k_dim = 32, .v_dim = 32, .rows = 3, .pages = 8, .slope = 0.01f, .shift = 700},
        {.k_dim = 64, .v_dim = 64, .rows = 13, .pages = 8, .sparse = 2},
        {.k_dim = 32, .v_dim = 64, .rows = 30, .pages = 5, .window = 200, .sparse = 40},
        {.k_dim = 64, .v_dim = 32, .rows = 13, .pages = 8, .distances = 100},
        {.k_dim = 32, .v_dim = 32, .rows = 9, .pages = 3, .window = 90, .shift = 30,
         .distances = 90},
        {.k_dim = 17, .v_dim = 1, .rows = 20, .pages = 8, .window = 200, .softcap = 20},
    };
    CHECK_ISAS(check, isa)
        for (int k = 0; k < KV_TYPES; k++)
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (int mixed = 0; mixed < 2; mixed++) {
                    struct attention_case c = cases[i];
                    c.isa = isa;
                    c.kv.k = (enum kv_type)k;
                    c.kv.v = (enum kv_type)(mixed ? (k + 1 + i) % KV_TYPES : (size_t)k);
                    if (mixed && c.kv.v == c.kv.k) continue;
                    if (goes_with(c.k_dim, c.kv.k) && goes_with(c.v_dim, c.kv.v))
                        check_case(check, &c);
                }
}
