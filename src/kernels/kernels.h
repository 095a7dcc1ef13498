/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h: face of kernels/: CPU code on plain pointers. `ref` defines every op (FP32 between
 * ops, double inside one). `scalar` is the CPU device's own arithmetic in plain C; each ISA folder
 * replaces what it does faster with the same result: bit for bit for everything but `ref`.
 *
 * An ISA folder holds a const table with NULL where it has nothing; kernels_table() overlays them
 * in ascending order. No kernel allocates, none depends on how many rows it is given, which thread
 * runs it, or what came before. Float rows are contiguous ([rows, cols], no padding), so only a
 * value's first row is sure to be 64-byte aligned; weights may have any alignment.
 *
 * Arithmetic that all tables but ref share (the law: docs/ARCHITECTURE.md):
 *   - exp, log, tanh, erf, sin, cos are ours (body/math.h, scalar/), the same polynomial for every
 *     ISA.
 *   - a sum over a row of floats runs in 16 lanes: lane l sums elements l, l+16, ... in order, with
 *     one fused multiply-add each; lanes are added as ((l, l+8), (l, l+4), (l, l+2), (l, l+1));
 *     rows that are no multiple of 16 are continued with zeros.
 *   - linear over integer formats: see struct act and linear_job below. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/kinds.h"
#include "quant/kv.h"
#include "quant/quant.h"

/* ---- activations quantized to 8 bits for the integer formats ----
 * A row of `cols` (multiple of 32) floats in blocks of 32: q = nearest even of x * (127 / amax),
 * d = amax / 127 with its last two mantissa bits cleared: then 1.5 * 2^23 * d is exact, and a
 * kernel can turn (float)dot * d into one fused multiply-add on the integer's bits (see
 * body/linear_tile.h). A block whose amax is below 2^-100 is zero (q and d are 0); one with a NaN,
 * an infinity or an amax of 2^100 or more has q = 0 and d = NaN, so that it shows in every output.
 * sum16 are the sums of q over each 16, in which offsets of unsigned codes and mins are taken.
 *
 * Byte layout of one row (act_row_bytes): q[cols], pad to 64 · d[cols/32], pad to 64 ·
 * sum16[cols/16] as int32, pad to 64.
 *
 * A table's linear takes the rows as its `act_pack` arranges them for a format, which is opaque;
 * without act_pack it takes them as they are. */
struct act {
    const int8_t *q;
    const float *d;
    const int32_t *sum16;
};
size_t act_row_bytes(uint32_t cols);
struct act act_row(const void *rows, uint32_t cols, size_t index);
/* Room for `tokens` rows packed for one format, by any table. */
size_t act_packed_bytes(uint32_t cols, uint32_t tokens);

/* ---- linear: y[t][r] = sum_k x[t][k] * w[r][k] + bias[r] for rows r of [row0, row1) ----
 *
 * Integer formats (a weight is scale * (code - offset) - min over sub-blocks of 32 or 16):
 * acc = 0; for each sub-block in order of k:
 *     dot  = sum of (code - offset) * q               exact in int32
 *     acc  = fma((float)dot * d_act, scale, acc)
 *     acc  = fma(-(d_act * (float)sum_q), min, acc)   only in formats that have mins
 * then bias is added. No other rounding. Lanes are outputs (rows or tokens), never k.
 *
 * Float formats (F32, F16, BF16): x is float rows, the 16-lane sum above over w converted to float,
 * but for tables that pack floats, see below.
 */
struct linear_job {
    const struct quant *quant; /* format of w */
    const void *w;          /* the weight as bound, row 0 */
    size_t row_bytes;
    uint32_t cols;
    uint32_t tokens;
    const void *x;          /* integer formats: act rows, packed for `quant` if the table packs;
                               others: float rows [tokens, cols], packed if
                               kernels_packs_floats() */
    const float *bias;      /* [rows] or NULL */
    float *y;               /* [tokens, y_stride] */
    size_t y_stride;        /* in floats */
    void *scratch;          /* this thread's, kernels_linear_scratch() bytes, 64-byte aligned */
};
typedef void linear_fn(const struct linear_job *job, uint32_t row0, uint32_t row1);
size_t kernels_linear_scratch(void);
/* Does this format take act rows (true) or float rows? */
bool kernels_linear_takes_act(const struct quant *quant);

/* A table with float_pack takes the rows for F16 and BF16 weights packed in groups of FLOAT_GROUP
 * tokens, the last with what is left, one after the other; and adds them up as AMX does (Intel's
 * manual, TDPBF16PS), denormals and what would be one being 0 in all of this:
 *     x ~ x0 + x1    x0 = bf16(x), x1 = bf16(x - x0), both to nearest even
 *     w = w0 + w1    F16: w0 its upper 8 bits, w1 the others; BF16: w0 = w
 *     y = 0; for each block of 32 columns, filled up with zeros:
 *         y = y + (w0 . x1); y = y + (w0 . x0); F16: y = y + (w1 . x0)
 *     a . b: in each half of the columns (BF16: even and odd, F16: the first and the last 16) one
 *            fused multiply-add a column in order from zero; then the halves' sum
 * then bias is added. What is not finite, in FP32 or in BF16, makes a y that is not. */
enum { FLOAT_GROUP = 16 };
size_t float_packed_bytes(uint32_t cols, uint32_t tokens);

/* ---- attention ----
 * The cache holds, for each layer, page and KV head, one block of 64 positions, K before V, each in
 * a format of its own (quant/kv_types.def):
 *
 *     F32, F16, BF16   K transposed [k_dim][64]         lanes are positions in q . k
 *                      V            [64][v_dim]         lanes are features in p . v
 *     Q8_0             K codes [k_dim/4][64][4] int8    4 features of a position are neighbours
 *                      V codes [64][v_dim] int8
 *     Q4_0             K codes [k_dim/8][64][4] bytes   low nibbles 4 features, high the next 4
 *                      V codes [64][v_dim/32][16]       low nibbles 16 features, high the next 16
 *                      a nibble is its code + 8
 *     after the codes of both: scales [dim/32][64] halves, of 32 features of a position each
 *
 * F16 and BF16 are rounded to nearest even. A quantized K holds H k / 32 for each 32 features, and
 * is multiplied by H q: H is the Walsh-Hadamard matrix (symmetric, H H = 32), applied as sums and
 * differences of elements 1, 2, 4, 8, 16 apart in this order. The product is that of q and k, but a
 * feature that is large at every position, as keys have them, no longer sets the step of 31 others
 * (arXiv 2404.00456). The 32 features x of a block are quantized by
 *     Q8_0   d = half(max |x| / 127)                     code = x * (1 / d) within -127 .. 127
 *     Q4_0   d = half(m / -8), m the x of largest size   code = x * (1 / d) within -8 .. 7
 * to nearest even (m: of two such the negative one). d = 0: codes are 0. With a NaN or an infinity
 * in x, or a d of 65520 or more, d is NaN and codes are 0, so that it shows in what sees it.
 *
 * Positions are cut into splits of ATTENTION_SPLIT at absolute multiples. A split is reduced, for
 * one query row, from zero and page by page, to a part: the maximum m of the scores, the sum of
 * exp(score - m), and the sum of exp(score - m) * v. Parts are merged in order of the split. So the
 * bits of a row depend on its own positions alone, not on which rows share a call.
 *
 *     score   one fused multiply-add a feature in order from zero, then * scale, then the softcap;
 *             then, if the row has a slope, fma(slope, (float)(position - at), score), and if it
 *             has a bias by distance, score + that of at - position, of those beyond it 0.
 *             Quantized K: H q is quantized like an act row; for each 32 features in order
 *             score = fma((float)dot, d_q * d, score)
 *     page    c = exp(m_old - m_new); p = exp(score - m_new); sum = sum * c + lanes of p (position
 *             j in lane j % 16, then the tree above); out = fma(p, v, ...) in order from out * c.
 *             Quantized V: out = fma(p * d, (float)code, out)
 *     merge   a = exp(m - m_new), b = exp(m_part - m_new); sum = sum * a + sum_part * b;
 *             out = fma(out_part, b, out * a)
 *     sink    a logit without a value, merged last: m_part is the logit; sum = sum * a + b;
 *             out = out * a
 *     finish  y = out / sum
 *
 * Positions outside a row's [begin, end) are not read into its result, whatever they hold. */
enum { ATTENTION_PAGE = 64, ATTENTION_SPLIT = 512, ATTENTION_ROWS = 64 };

/* A part or a merged state: max, sum, and from float 16 on the v_dim sums. */
static inline size_t attention_part_floats(uint32_t v_dim) {
    return 16 + (((size_t)v_dim + 15) & ~(size_t)15);
}
/* A query in int8, its scales and sums; k_dim a multiple of 32. */
static inline size_t attention_query_bytes(uint32_t k_dim) {
    return ((size_t)k_dim + k_dim / 4 + 63) & ~(size_t)63;
}
/* Bytes of attention_job.scratch. */
size_t attention_scratch(uint32_t k_dim);

struct attention_row {
    const float *q;        /* [k_dim] */
    float *part;           /* 64-byte aligned, attention_part_floats() */
    uint32_t begin, end;   /* positions it sees, counted from the split's start; end may be past
                              the split; begin >= end or outside it: the part is empty */
    float slope;           /* of ALiBi; 0: none */
    int32_t at;            /* the query's position, counted as these; below 0 if before them */
    const uint64_t *sees;  /* [pages] a bit for each position; NULL: all. One without weighs 0 */
    const float *by_distance; /* [distances] added to the score; NULL: nothing */
    uint32_t distances;
};
struct attention_job {
    uint32_t k_dim, v_dim;
    struct kv_types type;
    float scale, softcap;             /* softcap 0: none */
    const void *const *block;         /* the KV head's block of each page of the split */
    uint32_t pages;                   /* up to ATTENTION_SPLIT / ATTENTION_PAGE */
    const struct attention_row *row;  /* that share the KV head: heads and tokens */
    uint32_t rows;                    /* up to ATTENTION_ROWS */
    void *scratch;                    /* this thread's, 64-byte aligned */
};

/* Rows to store in one block, at positions slot .. slot + rows - 1 of the page. */
struct attention_store {
    const float *k, *v;               /* of the KV head, first row */
    size_t k_stride, v_stride;        /* floats from row to row */
    uint32_t k_dim, v_dim, slot, rows;
    struct kv_types type;
    void *block;                      /* ATTENTION_PAGE * kv_position_bytes() */
};

/* ---- choosing what to attend to ----
 * Scores positions of some pages for one token: from zero, head after head,
 * score = fma(weight, max(q . k, 0), score), with q . k as in attention, unscaled; without weights,
 * of one head, the score is q . k. */
struct index_job {
    uint32_t heads, dim;
    enum kv_type type;         /* of the keys */
    const float *q, *weight;   /* [heads * dim], [heads] or NULL */
    const void *const *block;  /* of each page: keys, as a KV head's with v_dim 0 */
    uint32_t pages;
    void *scratch;             /* attention_scratch(dim) */
    float *score;              /* [pages * ATTENTION_PAGE] */
};
/* The `used` positions of largest score among those pushed, of equal ones the earliest, a NaN above
 * all; as a list in ascending order, filled up with infinities, after which `top` is spent. */
struct index_top {
    uint32_t used, count;
    uint64_t *heap;            /* [used] */
};
void index_push(struct index_top *top, const float *score, uint32_t first, uint32_t n);
void index_list(struct index_top *top, float *out);

/* ---- mixtures of experts ----
 * The pairs of token and expert of `tokens` rows as route_* give them, grouped by expert, within an
 * expert in order of token: first[experts + 1] the first pair of each expert, token[tokens * used]
 * of each pair, pair[tokens * used] where each token's went. */
void experts_group(const float *route, uint32_t tokens, uint32_t experts, uint32_t used,
                   uint32_t *first, uint32_t *token, uint32_t *pair);

/* y [rows][cols]: of rows of x `stride` floats apart the first cols columns. */
void heads_gather(const float *x, size_t stride, uint32_t rows, uint32_t cols, float *y);

/* ---- recurrent layers ----
 * `tokens` adjacent tokens of one sequence, in order, on a state that they change. What one token
 * does depends on the state alone, so the bits are those of one token at a time. Columns do not
 * meet, nor do heads: a job may be any range of them. Strides are in floats from token to token.
 * (The chunked forms of these recurrences, which would make products of matrices of a prompt, round
 * otherwise than one token at a time, and cannot keep the law.) */

/* acc = bias; acc = fma(w[j], the input (kernel - 1 - j) * step tokens ago, acc) for j in order. */
struct conv1d_job {
    const float *x, *w, *bias; /* w [kernel][cols], bias [cols] or NULL */
    float *y, *state;          /* [(kernel - 1) * step][cols], oldest input first */
    uint32_t cols, kernel, step, tokens;
};
typedef void conv1d_fn(const struct conv1d_job *job, uint32_t col0, uint32_t col1);

/* A mean of exponent `top` for each column, with x = gate + bias of the token's place in its block:
 *     t = max(top, x); e = exp(top - t); f = exp(x - t)
 *     sum = fma(e, sum, f * kv); weights = fma(e, weights, f); top = t; y = sum / weights
 * A block's first token begins with an empty mean (weights 0), or where blocks overlap with that of
 * the first half of the columns over the block before, the means being of the second half then. */
struct compress_job {
    const float *kv, *gate, *bias; /* [halves * cols], [halves * cols], [every][halves * cols] */
    float *y, *state;              /* sum, weights, top: [cols] each; where blocks overlap then
                                      those of the first half */
    uint32_t cols, every, tokens;
    uint32_t at;                   /* the first token's place in its block */
    bool overlaps;
};
typedef void compress_fn(const struct compress_job *job, uint32_t col0, uint32_t col1);

/* One head; lanes are columns of S [k_dim][v_dim]:
 *     r = 0; for i in order: r = fma(k[i], a[i] * S[i], r)            delta
 *     d = beta * (v - r)                                              else beta * v
 *     y = 0; for i in order: S[i] = fma(k[i], d, a[i] * S[i]); y = fma(q[i], S[i], y)
 *     y = fma(skip, v, scale * y)                                     without skip: scale * y */
struct delta_job {
    const float *q, *k, *v;
    const float *decay;        /* one number a token, or k_dim if decay_each */
    const float *beta, *skip;  /* one number a token; one; NULL: 1; 0 */
    float *y, *state;
    size_t k_stride, v_stride; /* of q and k, of v and y */
    size_t decay_stride, beta_stride;
    uint32_t k_dim, v_dim, tokens;
    float scale;
    bool delta, decay_each;
};

/* One head; state: S [k_dim][v_dim], n [k_dim], m.
 *     t = max(log_decay + m, gate); f = exp(log_decay + m - t); e = exp(gate - t); m = t
 *     S and y as delta without the rule, its decay f and its beta e
 *     n[i] = fma(e, k[i], f * n[i]); r = scale * the 16-lane sum of n[i] * q[i]
 *     y = y / (max(|r|, exp(-m)) + eps) */
struct mlstm_job {
    const float *q, *k, *v;
    const float *gate, *log_decay; /* one number a token */
    float *y, *state;
    size_t k_stride, v_stride, gate_stride;
    uint32_t k_dim, v_dim, tokens;
    float scale, eps;
};

/* For each column, with log_decay <= 0:
 *     a = exp(log_decay); s = sqrt(-expm1(2 * log_decay)); h = fma(a, h, s * x); y = h
 * and h = x for the first token of a sequence. */
struct rglru_job {
    const float *x, *log_decay;
    float *y, *state;          /* h [cols] */
    uint32_t cols, tokens;
    bool starts;               /* the first token is the sequence's first */
};
typedef void rglru_fn(const struct rglru_job *job, uint32_t col0, uint32_t col1);

/* Columns that share B and C [n]; a and state [n][cols]; for i in order, from y = 0:
 *     h[i] = fma(dt * x, B[i], exp(dt * a[i]) * h[i]); y = fma(C[i], h[i], y)
 *     y = fma(d, x, y) */
struct scan_job {
    const float *x, *dt, *b, *c;
    const float *a, *d;        /* d [cols] or NULL */
    float *y, *state;
    size_t bc_stride;
    uint32_t cols, n, tokens;
};
typedef void scan_fn(const struct scan_job *job, uint32_t col0, uint32_t col1);

/* The sums are kept as multiples of exp(-top), top the largest exponent so far; a state whose sum
 * of weights is 0 is empty. For each column, with decay < 0:
 *     t = max(top, first + k); e = exp(top - t); f = exp(first + k - t)
 *     y = fma(e, sum, f * v) / fma(e, weights, f)
 *     t = max(top + decay, k); e = exp(top + decay - t); f = exp(k - t)
 *     sum = fma(e, sum, f * v); weights = fma(e, weights, f); top = t */
struct wkv4_job {
    const float *k, *v, *decay, *first;
    float *y, *state;          /* sum, weights, top: [cols] each */
    uint32_t cols, tokens;
};
typedef void wkv4_fn(const struct wkv4_job *job, uint32_t col0, uint32_t col1);
/* A router: see graph.h's route_args for what the members mean, ref/route.c for the formulas. */
struct route_job {
    enum route_score score;
    enum route_group group;
    uint32_t experts, used, always;
    const float *bias;         /* [experts] or NULL */
    bool bias_to_logits;
    uint32_t groups, groups_used; /* groups <= 1: none */
    bool group_zero;
    bool normalize;
    float normalize_eps, scale;
    const float *expert_scale; /* [experts] or NULL */
    float jitter_eps;
    const float *chosen;       /* [used], or NULL */
};
/* The chosen experts as floats: those of the job; or first by what `score` of the experts and the
 * job's bias and groups say, then those that are always used. Plain C, for every table. */
void route_choose(const struct route_job *job, const float *logits, const float *score,
                  float *expert);

struct concat {
    const float *a, *b;
    uint32_t a_cols, b_cols, groups;
    bool a_once, b_once; /* the same columns in all groups */
};

/* Of each token in turn, for orders 2 .. `order` and their `heads` heads, rows of a table decoded
 * side by side; see graph.h. Plain C, for every table. */
struct ngram_job {
    const struct quant *quant;
    const void *const *part;   /* the table: row r is row r % part_rows of part r / part_rows */
    uint32_t part_rows, cols;
    size_t row_bytes;
    uint32_t order, heads, tokens;
    int32_t end;
    const uint64_t *multiplier, *size, *first; /* [order], [(order - 1) * heads] each */
    const int32_t *id;
    float *y, *state;          /* [order - 1] the token ids before, + 1, newest first; 0: none */
};
void embed_ngrams(const struct ngram_job *job);

/* The row of a table of `rows` positions for pos + offset, decoded. */
void embed_position(const struct quant *quant, const void *table, size_t row_bytes, uint32_t cols,
                    uint32_t row, float *y);

struct kernels {
    const char *name;
    void (*act_quantize)(const float *x, uint32_t cols, void *act_row);
    /* Row t of `tokens`, from the form above to this table's own; rows may be packed in any order
     * and at the same time. NULL: linear takes act rows. */
    void (*act_pack)(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                     uint32_t tokens, void *packed);
    /* One group: `tokens` rows, of FLOAT_GROUP. NULL: linear takes float rows. */
    void (*float_pack)(const struct quant *quant, const float *const *row, uint32_t tokens,
                       uint32_t cols, void *packed);
    linear_fn *linear[QUANT_COUNT];
    /* One row of the embedding matrix, decoded and times scale. */
    void (*embed)(const struct quant *quant, const void *row, uint32_t cols, float scale, float *y);
    /* y[i] = x[row[i]], rows of cols. */
    void (*gather_rows)(const float *x, const uint32_t *row, uint32_t rows, uint32_t cols,
                        float *y);
    /* One row of the `rows` of a sequence. */
    void (*pool)(enum pool_kind kind, const float *x, uint32_t rows, uint32_t cols, float *y);
    void (*add)(const float *a, const float *b, float *y, size_t n);
    void (*scale)(const float *x, float s, float *y, size_t n);
    void (*softcap)(const float *x, float cap, float *y, size_t n);
    void (*clamp)(const float *x, float low, float high, float *y, size_t n);
    /* y[i] = a[i] * b[i / run]; n is a multiple of run. */
    void (*mul)(const float *a, const float *b, float *y, size_t n, size_t run);
    /* One row; w and b [n] or NULL. A product, then a sum. */
    void (*affine)(const float *x, const float *w, const float *b, float *y, size_t n);
    void (*act[ACT_KINDS])(const float *x, float *y, size_t n);
    /* y[i] = act(gate[i / run]) * up[i]; n is a multiple of run. */
    void (*glu[ACT_KINDS])(const float *gate, const float *up, float *y, size_t n, size_t run);
    void (*glu_clamped)(const float *gate, const float *up, const struct glu_clamp *clamp,
                        float *y, size_t n);
    void (*xielu)(const float *x, const struct xielu *args, float *y, size_t n);
    /* One row; see graph_concat. */
    void (*concat)(const struct concat *from, float *y);
    /* y = columns [start, start + len) of each of `groups` groups of `total`. */
    void (*slice)(const float *x, size_t groups, uint32_t total, uint32_t start, uint32_t len,
                  float *y);
    void (*tile)(const float *x, size_t groups, uint32_t width, uint32_t times, float *y);
    /* 1 + beta * log(1 + floor((pos + offset) / period)) */
    float (*position_factor)(uint32_t pos, float beta, uint32_t offset, float period);
    /* (1 + (pos + offset) / period)^exponent */
    float (*position_power)(uint32_t pos, float exponent, uint32_t offset, float period);
    /* One run: the 16-lane sum of a[i] * b[i]. */
    float (*dot)(const float *a, const float *b, uint32_t n);
    /* One row; see graph.h. A row of zeros, and what a NaN or an infinity makes of one, divides by
     * 1e-5 in place of its largest size. */
    void (*sparsify)(const float *x, float by, float *y, uint32_t n);
    void (*match_rms)(const float *a, const float *b, float floor, float *y, uint32_t n);
    void (*round_act)(const float *x, float *codes, float *step, uint32_t n);
    /* 1 + beta * log(max((pos + offset) / period, 1)) */
    float (*position_log)(uint32_t pos, float beta, uint32_t offset, float period);
    /* One run of `width` elements; w and b [width] or NULL. */
    void (*norm[NORM_KINDS])(const float *x, const float *w, const float *b, float eps, float *y,
                             uint32_t width);
    /* out: cos[half], sin[half] of (float)pos * freq[i], each times magnitude. */
    void (*rope_table)(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out);
    void (*rope)(const float *x, const float *table, float *y, uint32_t heads, uint32_t head_dim,
                 uint32_t half, bool interleaved);
    /* One token: the `used` experts with the largest score + bias, in descending order, equal ones
     * by number, a NaN above all, as floats to out[used ..), and their weights to out[0 .. used).
     * Where nothing but the logits orders them they are chosen by logit, so a choice is then never
     * a matter of rounding. Sums run in 16 lanes, over the experts or over the chosen in this
     * order. */
    void (*route)(const struct route_job *job, const float *logits, float *out);
    /* The sum of the weights of those experts of a token's route that are numbered from `first`, in
     * order. */
    void (*route_rest)(const float *route, uint32_t used, uint32_t first, float *y);
    /* Of one token: y[i] = x[row[i]] side by side, and y[row[i]] = x[i]; rows of cols. */
    void (*join_pairs)(const float *x, const uint32_t *row, uint32_t used, uint32_t cols, float *y);
    void (*split_pairs)(const float *x, const uint32_t *row, uint32_t used, uint32_t cols,
                        float *y);
    /* y = sum of weight[i] * x[row[i]], rows of cols: a product, then fused multiply-adds. */
    void (*combine)(const float *x, const uint32_t *row, const float *weight, uint32_t used,
                    uint32_t cols, float *y);
    /* One row: a product, then fused multiply-adds in order of the groups of x. */
    void (*mix)(const float *x, const float *w, uint32_t from, uint32_t to, uint32_t width,
                float *y);
    /* One row: x [n][n]; y = exp(x - top) by row, over its sum, + eps; then columns over their
     * sum + eps, and `rounds` - 1 times rows, then columns. Sums in order of the index. */
    void (*sinkhorn)(const float *x, uint32_t n, uint32_t rounds, float eps, float *y);
    compress_fn *compress;
    conv1d_fn *conv1d;
    /* y[t] = x[t - 1]; state [cols]: the last row. */
    void (*token_shift)(const float *x, float *state, float *y, uint32_t cols, uint32_t tokens);
    void (*delta)(const struct delta_job *job);
    void (*mlstm)(const struct mlstm_job *job);
    rglru_fn *rglru;
    scan_fn *scan;
    wkv4_fn *wkv4;
    void (*attention_store)(const struct attention_store *job);
    void (*attention)(const struct attention_job *job);
    void (*attention_clear)(float *state, uint32_t v_dim); /* the empty part */
    void (*attention_merge)(float *state, const float *part, uint32_t v_dim);
    void (*attention_sink)(float *state, float logit, uint32_t v_dim);
    void (*attention_finish)(const float *state, float *y, uint32_t v_dim);
    void (*index_scores)(const struct index_job *job);
};

/* The overlay for an ISA the machine has; constant after the first call, thread safe. */
const struct kernels *kernels_table(enum cpu_isa isa);
/* Does its linear take packed float rows for this format? */
bool kernels_packs_floats(const struct kernels *table, const struct quant *quant);
/* The folder that the member at `offset` of struct kernels comes from: "avx2". */
const char *kernels_origin(const struct kernels *table, size_t offset);
/* The definition: same signatures; linear takes float rows for every format. */
const struct kernels *kernels_ref(void);

#endif
