/* SPDX-License-Identifier: Apache-2.0
 *
 * check_states.c: the recurrent ops. Each runs a sequence of tokens in two calls, so that the
 * second begins with a state; outputs and states are compared. Bench rows are one token, as in
 * decode, and a prompt. */
#include "check.h"
#include "kernels/kernels.h"

enum { TOKENS_MAX = 64 };

struct states_case {
    const char *name;
    enum cpu_isa isa;
    uint32_t cols, n, tokens; /* n: taps, or states of a column; delta: k_dim, cols is v_dim */
    bool delta, each, full;   /* full: all that is optional is there */
    uint32_t step;            /* of conv1d; 0: 1 */
};

struct io {
    const float *in[6];
    float *y, *state;
    size_t ys, states;
};

typedef void call_fn(const struct states_case *c, const struct kernels *k, const struct io *io,
                     uint32_t at, uint32_t tokens);

/* Blocks of n tokens; full: they overlap. Any place in a block may come first. */
static void call_compress(const struct states_case *c, const struct kernels *k, const struct io *io,
                          uint32_t at, uint32_t tokens) {
    size_t all = (size_t)c->cols * (c->full ? 2 : 1);
    struct compress_job job = {.kv = io->in[0] + at * all,
                               .gate = io->in[1] + at * all,
                               .bias = io->in[2],
                               .y = io->y + (size_t)at * c->cols,
                               .state = io->state,
                               .cols = c->cols,
                               .every = c->n,
                               .tokens = tokens,
                               .at = at % c->n,
                               .overlaps = c->full};
    uint32_t half = c->cols / 2; /* any cut of the columns */
    k->compress(&job, 0, half);
    k->compress(&job, half, c->cols);
}

static void call_conv1d(const struct states_case *c, const struct kernels *k, const struct io *io,
                        uint32_t at, uint32_t tokens) {
    struct conv1d_job job = {.x = io->in[0] + (size_t)at * c->cols,
                             .w = io->in[1],
                             .bias = c->full ? io->in[2] : NULL,
                             .y = io->y + (size_t)at * c->cols,
                             .state = io->state,
                             .cols = c->cols,
                             .kernel = c->n,
                             .step = c->step ? c->step : 1,
                             .tokens = tokens};
    uint32_t half = c->cols / 2; /* any cut of the columns */
    k->conv1d(&job, 0, half);
    k->conv1d(&job, half, c->cols);
}

static void call_token_shift(const struct states_case *c, const struct kernels *k,
                             const struct io *io, uint32_t at, uint32_t tokens) {
    size_t from = (size_t)at * c->cols;
    k->token_shift(io->in[0] + from, io->state, io->y + from, c->cols, tokens);
}

static void call_delta(const struct states_case *c, const struct kernels *k, const struct io *io,
                       uint32_t at, uint32_t tokens) {
    uint32_t decays = c->each ? c->n : 1;
    struct delta_job job = {.q = io->in[0] + (size_t)at * c->n,
                            .k = io->in[1] + (size_t)at * c->n,
                            .v = io->in[2] + (size_t)at * c->cols,
                            .decay = io->in[3] + (size_t)at * decays,
                            .beta = c->full ? io->in[4] + at : NULL,
                            .skip = c->full ? io->in[5] : NULL,
                            .y = io->y + (size_t)at * c->cols,
                            .state = io->state,
                            .k_stride = c->n,
                            .v_stride = c->cols,
                            .decay_stride = decays,
                            .beta_stride = 1,
                            .k_dim = c->n,
                            .v_dim = c->cols,
                            .tokens = tokens,
                            .scale = 0.125f,
                            .delta = c->delta,
                            .decay_each = c->each};
    k->delta(&job);
}

static void call_mlstm(const struct states_case *c, const struct kernels *k, const struct io *io,
                       uint32_t at, uint32_t tokens) {
    struct mlstm_job job = {.q = io->in[0] + (size_t)at * c->n,
                            .k = io->in[1] + (size_t)at * c->n,
                            .v = io->in[2] + (size_t)at * c->cols,
                            .gate = io->in[3] + at,
                            .log_decay = io->in[4] + at,
                            .y = io->y + (size_t)at * c->cols,
                            .state = io->state,
                            .k_stride = c->n,
                            .v_stride = c->cols,
                            .gate_stride = 1,
                            .k_dim = c->n,
                            .v_dim = c->cols,
                            .tokens = tokens,
                            .scale = 0.125f,
                            .eps = 1e-6f};
    k->mlstm(&job);
}

static void call_rglru(const struct states_case *c, const struct kernels *k, const struct io *io,
                       uint32_t at, uint32_t tokens) {
    struct rglru_job job = {.x = io->in[0] + (size_t)at * c->cols,
                            .log_decay = io->in[1] + (size_t)at * c->cols,
                            .y = io->y + (size_t)at * c->cols,
                            .state = io->state,
                            .cols = c->cols,
                            .tokens = tokens,
                            .starts = at == 0 && c->full};
    uint32_t half = c->cols / 2;
    k->rglru(&job, 0, half);
    k->rglru(&job, half, c->cols);
}

static void call_scan(const struct states_case *c, const struct kernels *k, const struct io *io,
                      uint32_t at, uint32_t tokens) {
    struct scan_job job = {.x = io->in[0] + (size_t)at * c->cols,
                           .dt = io->in[1] + (size_t)at * c->cols,
                           .b = io->in[2] + (size_t)at * c->n,
                           .c = io->in[3] + (size_t)at * c->n,
                           .a = io->in[4],
                           .d = c->full ? io->in[5] : NULL,
                           .y = io->y + (size_t)at * c->cols,
                           .state = io->state,
                           .bc_stride = c->n,
                           .cols = c->cols,
                           .n = c->n,
                           .tokens = tokens};
    uint32_t half = c->cols / 2;
    k->scan(&job, 0, half);
    k->scan(&job, half, c->cols);
}

static void call_wkv4(const struct states_case *c, const struct kernels *k, const struct io *io,
                      uint32_t at, uint32_t tokens) {
    struct wkv4_job job = {.k = io->in[0] + (size_t)at * c->cols,
                           .v = io->in[1] + (size_t)at * c->cols,
                           .decay = io->in[2],
                           .first = io->in[3],
                           .y = io->y + (size_t)at * c->cols,
                           .state = io->state,
                           .cols = c->cols,
                           .tokens = tokens};
    uint32_t half = c->cols / 2;
    k->wkv4(&job, 0, half);
    k->wkv4(&job, half, c->cols);
}

/* Keys of about length 1, as the delta rule has them: else its states grow without bound. */
static struct io make_delta(struct check_row *row, const struct states_case *c) {
    size_t t = c->tokens;
    float size = 1.7f / __builtin_sqrtf((float)c->n);
    return (struct io){.in = {check_input(row, t * c->n, -1, 1),
                              check_input(row, t * c->n, -size, size),
                              check_input(row, t * c->cols, -1, 1),
                              check_input(row, t * (c->each ? c->n : 1), 0.5f, 1),
                              check_input(row, t, 0, 1), check_input(row, 1, -1, 1)},
                       .states = (size_t)c->n * c->cols};
}

/* Gates of mlstm that leave exp(-m) in sight: where n . q is all, and near 0, nothing is near. */
static struct io make_io(struct check_row *row, const struct states_case *c, call_fn *call) {
    size_t t = c->tokens, all = t * c->cols, table = (size_t)c->n * c->cols;
    struct io io = {.states = table};
    if (call == call_delta) io = make_delta(row, c);
    if (call == call_compress)
        io = (struct io){.in = {check_input(row, 2 * all, -2, 2), check_input(row, 2 * all, -9, 9),
                                check_input(row, 2 * table, -3, 3)},
                         .states = (size_t)c->cols * (c->full ? 6 : 3)};
    if (call == call_conv1d)
        io = (struct io){.in = {check_input(row, all, -2, 2), check_input(row, table, -1, 1),
                                check_input(row, c->cols, -1, 1)},
                         .states = (table - c->cols) * (c->step ? c->step : 1)};
    if (call == call_token_shift)
        io = (struct io){.in = {check_input(row, all, -2, 2)}, .states = c->cols};
    if (call == call_mlstm)
        io = (struct io){.in = {check_input(row, t * c->n, -1, 1),
                                check_input(row, t * c->n, -1, 1),
                                check_input(row, all, -1, 1), check_input(row, t, -4, 1),
                                check_input(row, t, -9, 0)},
                         .states = table + c->n + 1};
    if (call == call_rglru)
        io = (struct io){.in = {check_input(row, all, -2, 2), check_input(row, all, -3, -1e-3f)},
                         .states = c->cols};
    if (call == call_scan)
        io = (struct io){.in = {check_input(row, all, -2, 2), check_input(row, all, 0, 1),
                                check_input(row, t * c->n, -1, 1),
                                check_input(row, t * c->n, -1, 1),
                                check_input(row, table, -9, -0.1f),
                                check_input(row, c->cols, -1, 1)},
                         .states = table};
    if (call == call_wkv4)
        io = (struct io){.in = {check_input(row, all, -20, 20), check_input(row, all, -2, 2),
                                check_input(row, c->cols, -4, -0.01f),
                                check_input(row, c->cols, -3, 3)},
                         .states = (size_t)3 * c->cols};
    io.ys = all;
    return io;
}

static void run_with(struct check_row *row, const struct states_case *c, call_fn *call) {
    struct io io[2] = {make_io(row, c, call)};
    io[1] = io[0];
    for (int side = 0; side < 2; side++) {
        bool scalar = c->isa == CPU_SCALAR;
        const struct kernels *k = side == 0 ? kernels_table(c->isa)
                                  : scalar  ? kernels_ref()
                                            : kernels_table(CPU_SCALAR);
        io[side].y = check_output(row, io[side].ys);
        io[side].state = check_output(row, io[side].states);
        for (size_t i = 0; i < io[side].states; i++) io[side].state[i] = 0;
        uint32_t first = c->tokens > 1 ? c->tokens / 3 + 1 : 1;
        if (side == 0)
            while (check_again(row, 4.0 * (double)(io->states * 2 + io->ys),
                               6.0 * (double)io->states * c->tokens))
                call(c, k, &io[0], 0, c->tokens);
        for (size_t i = 0; i < io[side].states; i++) io[side].state[i] = 0;
        call(c, k, &io[side], 0, first);
        if (first < c->tokens) call(c, k, &io[side], first, c->tokens - first);
    }
    if (c->isa != CPU_SCALAR) {
        check_equal(row, io[0].y, io[1].y, io->ys);
        check_equal(row, io[0].state, io[1].state, io->states);
        return;
    }
    const struct check_bound bound = {1e-5, 1e-5};
    check_close(row, io[0].y, io[1].y, io->ys, bound);
    check_close(row, io[0].state, io[1].state, io->states, bound);
}

#define RUN(op) \
    static void run_##op(struct check_row *row, const void *arg) { run_with(row, arg, call_##op); }
RUN(compress)
RUN(conv1d)
RUN(token_shift)
RUN(delta)
RUN(mlstm)
RUN(rglru)
RUN(scan)
RUN(wkv4)

static const uint32_t some_cols[] = {1, 15, 16, 48, 100, 130};
enum { SOME_COLS = sizeof some_cols / sizeof some_cols[0] };

/* Sizes of one op on one ISA; n: what some models have, and less usual ones. */
static void sizes(struct check *check, check_fn *fn, struct states_case c, const uint32_t *n,
                  uint32_t ns) {
    for (uint32_t i = 0; i < ns; i++)
        for (uint32_t s = 0; s < SOME_COLS; s++) {
            c.cols = some_cols[s];
            c.n = n[i];
            c.tokens = s % 3 == 0 ? 1 : s % 3 == 1 ? 5 : 31;
            c.full = (s + i) % 2;
            check_run(check, fn, &c, "%s.%s.%ux%u_tokens%u%s", c.name, cpu_isa_name(c.isa), c.n,
                      c.cols, c.tokens, c.full ? "_full" : "");
        }
}

static void deltas(struct check *check, enum cpu_isa isa) {
    static const uint32_t dims[] = {3, 64};
    static const char *const name[] = {"delta_plain", "delta", "delta_plain_each", "delta_each"};
    for (int kind = 0; kind < 4; kind++)
        sizes(check, run_delta,
              (struct states_case){.name = name[kind], .isa = isa, .delta = kind & 1,
                                   .each = kind & 2},
              dims, 2);
}

/* One of 32 heads of Qwen3-Next, and Mamba 2.8B. */
static void bench(struct check *check, enum cpu_isa isa) {
    for (uint32_t tokens = 1; tokens <= TOKENS_MAX; tokens *= TOKENS_MAX) {
        struct states_case d = {.isa = isa, .cols = 128, .n = 128, .tokens = tokens, .delta = true,
                                .full = true};
        check_run(check, run_delta, &d, "delta.%s.bench_1_of_32_heads_128x128_tokens%u",
                  cpu_isa_name(isa), tokens);
        struct states_case s = {.isa = isa, .cols = 5120, .n = 16, .tokens = tokens, .full = true};
        check_run(check, run_scan, &s, "scan.%s.bench_16x5120_tokens%u", cpu_isa_name(isa),
                  tokens);
        s.n = 4;
        check_run(check, run_conv1d, &s, "conv1d.%s.bench_4x5120_tokens%u", cpu_isa_name(isa),
                  tokens);
    }
}

void check_states(struct check *check) {
    static const uint32_t taps[] = {1, 2, 4}, states[] = {1, 16}, dims[] = {5, 64}, one[] = {1};
    CHECK_ISAS(check, isa) {
        struct states_case c = {.isa = isa};
        c.name = "compress";
        sizes(check, run_compress, c, states, 2);
        sizes(check, run_compress, c, taps + 2, 1);
        c.name = "conv1d";
        sizes(check, run_conv1d, c, taps, 3);
        c.name = "conv1d_apart";
        c.step = 3;
        sizes(check, run_conv1d, c, taps, 3);
        c.step = 0;
        c.name = "token_shift";
        sizes(check, run_token_shift, c, one, 1);
        deltas(check, isa);
        c.name = "mlstm";
        sizes(check, run_mlstm, c, dims, 2);
        c.name = "rglru";
        sizes(check, run_rglru, c, one, 1);
        c.name = "scan";
        sizes(check, run_scan, c, states, 2);
        c.name = "wkv4";
        sizes(check, run_wkv4, c, one, 1);
        if (check_bench(check)) bench(check, isa);
    }
}
