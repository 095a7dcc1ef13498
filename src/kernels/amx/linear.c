/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: products with F16 and BF16 weights by tdpbf16ps, which adds 32 products to each of 16 x
 * 16 sums in 16 cycles: eight times what fused multiply-adds do, so that activations in two pieces
 * and F16 weights in two still leave several times the speed. Sums stay in the tile from block to
 * block of columns, so nothing is scaled or stored between; one token takes the same path (a tile
 * is told that it has one column), and weights of BF16 are then read where they lie.
 *
 * Many tokens: `DEPTH` columns of `ROWS` rows are put together as tiles in the first- and
 * second-level caches and multiplied with up to `TOKENS` tokens, by 2 x 2 tiles of sums, so that
 * each tile of weights or activations is loaded once for two; sums rest in the scratch between
 * blocks of columns. */
#include "kernels/amx/few.h"

/* ---- sums to y ---- */

/* Tokens [t, t + tokens) of a block's rows [r, r + rows): at most a group each. */
static void put_sums(const float (*sum)[GROUP], const struct linear_job *job, uint32_t r,
                     uint32_t rows, uint32_t t, uint32_t tokens) {
    __mmask16 mask = (__mmask16)(0xffff >> (GROUP - rows));
    __m512 bias = job->bias ? _mm512_maskz_loadu_ps(mask, job->bias + r) : _mm512_setzero_ps();
    __m512i v[GROUP];
    UNROLL for (int i = 0; i < GROUP; i++) v[i] = _mm512_load_si512(sum[i]);
    transpose(v);
    for (uint32_t i = 0; i < tokens; i++) {
        __m512 y = (__m512)v[i];
        if (job->bias) y = _mm512_add_ps(y, bias);
        _mm512_mask_storeu_ps(job->y + (t + i) * job->y_stride + r, mask, y);
    }
}

/* ---- loops ---- */

/* From column k of the groups of tokens t and t + 16. */
INLINE struct inputs inputs_at(const struct linear_job *job, uint32_t t, uint32_t k) {
    size_t group = (size_t)blocks_of(job->cols) * PIECES * TILE, block = k / BLOCK;
    const char *at = (const char *)job->x + t / GROUP * group;
    size_t tile = 64 * at_most(job->tokens - t, GROUP), second_tile = 0;
    if (t + GROUP < job->tokens) second_tile = 64 * at_most(job->tokens - t - GROUP, GROUP);
    return (struct inputs){at + block * PIECES * tile, at + group + block * PIECES * second_tile,
                           tile, second_tile};
}

INLINE struct weights tiles_at(const struct scratch *s, uint32_t row) {
    return (struct weights){.at = s->w[row / GROUP][0][0],
                            .group = sizeof s->w[0],
                            .block = sizeof s->w[0][0],
                            .stride = 2 * BLOCK};
}

/* Rows [r, r + rows), columns [k, k + cols), while those `next` bytes after them are fetched. */
INLINE void put_tiles(const struct linear_job *job, uint32_t r, uint32_t rows, uint32_t k,
                      uint32_t cols, size_t next, const int pieces) {
    struct scratch *s = job->scratch;
    const uint8_t *w = (const uint8_t *)job->w + r * job->row_bytes + 2 * (size_t)k;
    for (uint32_t i = 0; i < rows; i++, w += job->row_bytes)
        for (uint32_t c = 0; c < cols; c += BLOCK) {
            __builtin_prefetch(w + next + 2 * c);
            put_weights(w + 2 * c, cols - c < BLOCK ? cols - c : BLOCK,
                        s->w[i / GROUP][c / BLOCK][0] + i % GROUP * 64, pieces);
        }
}

/* Rows [r, r + rows) of a block of tokens: `rows` up to ROWS, `tokens` up to TOKENS. */
INLINE void block(const struct linear_job *job, uint32_t r, uint32_t rows, uint32_t t,
                  uint32_t tokens, struct shape *shape, const int pieces) {
    struct scratch *s = job->scratch;
    size_t below = rows * job->row_bytes;
    for (uint32_t k = 0; k < job->cols; k += DEPTH) {
        uint32_t cols = at_most(job->cols - k, DEPTH);
        size_t next = k + cols < job->cols ? 2 * cols : below - 2 * (size_t)k;
        put_tiles(job, r, rows, k, cols, next, pieces);
        for (uint32_t j = 0; j < tokens; j += 2 * GROUP)
            for (uint32_t i = 0; i < rows; i += 2 * GROUP) {
                struct shape now = {at_most(rows - i, 2 * GROUP), at_most(tokens - j, 2 * GROUP)};
                configure(shape, now);
                multiply_shape(tiles_at(s, i), inputs_at(job, t + j, k), blocks_of(cols),
                               k == 0, s->sum[j / GROUP][i / GROUP][0], now, pieces);
            }
    }
    for (uint32_t j = 0; j < tokens; j += GROUP)
        for (uint32_t i = 0; i < rows; i += GROUP)
            put_sums(s->sum[j / GROUP][i / GROUP], job, r + i, at_most(rows - i, GROUP), t + j,
                     at_most(tokens - j, GROUP));
}

/* Up to two groups of rows by one of tokens. */
INLINE void few(const struct linear_job *job, uint32_t r, uint32_t rows, struct shape *shape,
                const int pieces) {
    struct scratch *s = job->scratch;
    struct few f = {.w = (const char *)job->w + r * job->row_bytes,
                    .stride = job->row_bytes,
                    .rows = rows,
                    .cols = job->cols,
                    .ring = (void *)s->w};
    configure(shape, (struct shape){rows, job->tokens});
    if (rows > GROUP) multiply_few(&f, inputs_at(job, 0, 0), s->sum[0][0][0], pieces, 2);
    else multiply_few(&f, inputs_at(job, 0, 0), s->sum[0][0][0], pieces, 1);
    for (uint32_t i = 0; i < rows; i += GROUP)
        put_sums(s->sum[0][i / GROUP], job, r + i, at_most(rows - i, GROUP), 0, job->tokens);
}

INLINE void all(const struct linear_job *job, uint32_t row0, uint32_t row1, const int pieces) {
    struct shape shape = {0, 0};
    if (job->tokens <= GROUP)
        for (uint32_t r = row0; r < row1; r += 2 * GROUP)
            few(job, r, at_most(row1 - r, 2 * GROUP), &shape, pieces);
    else
        for (uint32_t t = 0; t < job->tokens; t += TOKENS)
            for (uint32_t r = row0; r < row1; r += ROWS)
                block(job, r, at_most(row1 - r, ROWS), t, at_most(job->tokens - t, TOKENS), &shape,
                      pieces);
    _tile_release(); /* else the system saves eight kilobytes at each switch */
}

void linear_bf16_amx(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    all(job, row0, row1, 1);
}

void linear_f16_amx(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    all(job, row0, row1, 2);
}
