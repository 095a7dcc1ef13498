/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_score.h: body of the scores of attention: lanes are positions,
 *
 *     s[row][pos] = scale * sum over d of q[row][d] * K[d][pos]
 *
 * A quantized K takes the queries as int8 too, in integer dot products of 32 features. */

/* A row that sees positions [from, to) of the page at hand. */
struct seer {
    const float *q;
    const char *query; /* for a quantized K: see below */
    float *part;
    uint32_t from, to;
    uint64_t sees;         /* of these, the bits of those that count */
    float slope, distance; /* of ALiBi; from the query to the page's first position */
    const float *by_distance; /* [distances] or NULL */
    uint32_t distances;
};

/* Calls body(..., rows) with `rows` a constant, so that its sums stay in registers. */
#define WITH_ROWS(count, body, ...)                                \
    switch (count) {                                               \
    case 1: body(__VA_ARGS__, 1); break;                           \
    case 2: body(__VA_ARGS__, 2 < VEC_ROWS ? 2 : VEC_ROWS); break; \
    case 3: body(__VA_ARGS__, 3 < VEC_ROWS ? 3 : VEC_ROWS); break; \
    case 4: body(__VA_ARGS__, 4 < VEC_ROWS ? 4 : VEC_ROWS); break; \
    case 5: body(__VA_ARGS__, 5 < VEC_ROWS ? 5 : VEC_ROWS); break; \
    default: body(__VA_ARGS__, VEC_ROWS);                          \
    }

/* The next tile of `left` rows: as even as tiles of at most VEC_ROWS can be. */
VEC_INLINE uint32_t tile_rows(uint32_t left) {
    uint32_t tiles = (left + VEC_ROWS - 1) / VEC_ROWS;
    return (left + tiles - 1) / tiles;
}

/* ---- float K ---- */

VEC_INLINE void score_tile(const struct attention_job *job, const struct seer *seer,
                           const void *block, float *s, enum kv_type kv, const int rows) {
    for (int at = 0; at < ATTENTION_PAGE; at += VF * VEC_WIDE) {
        vf sum[VEC_ROWS][VEC_WIDE];
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < VEC_WIDE; w++) sum[r][w] = vf_zero();
        for (uint32_t d = 0; d < job->k_dim; d++) {
            vf k[VEC_WIDE];
            for (int w = 0; w < VEC_WIDE; w++)
                k[w] = kv_load(block, (size_t)d * ATTENTION_PAGE + at, w, kv);
            for (int r = 0; r < rows; r++)
                for (int w = 0; w < VEC_WIDE; w++)
                    sum[r][w] = vf_fma(vf_set1(seer[r].q[d]), k[w], sum[r][w]);
        }
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < VEC_WIDE; w++)
                vf_store(s + r * ATTENTION_PAGE + at + VF * w,
                         vf_mul(sum[r][w], vf_set1(job->scale)));
    }
}

/* ---- queries in int8: code[k_dim], then a scale and the sum of the codes for each 32 ---- */

VEC_INLINE const int8_t *query_code(const char *query) { return (const void *)query; }
VEC_INLINE float *query_scale(const char *query, uint32_t k_dim) {
    return (float *)(void *)(query + k_dim);
}
VEC_INLINE int32_t *query_sum(const char *query, uint32_t k_dim) {
    return (int32_t *)(void *)(query + k_dim + k_dim / KV_BLOCK * sizeof(float));
}

static void make_query(const float *q, uint32_t k_dim, char *query) {
    int8_t *code = (int8_t *)query;
    for (uint32_t b = 0; b < k_dim / KV_BLOCK; b++, code += KV_BLOCK) {
        float x[KV_BLOCK];
        kv_turn(q + b * KV_BLOCK, 1, x);
        float top = vf_top(vf_max(vf_abs(vf_load(x)), vf_abs(vf_load(x + VF)))) + kv_spoiled(x);
        uint32_t bits;
        memcpy(&bits, &top, sizeof bits);
        float inverse = act_scale(bits & 0x7fffffff, query_scale(query, k_dim) + b);
        kv_codes(x, inverse, -127, 127, code);
        int32_t sum = 0;
        for (int i = 0; i < KV_BLOCK; i++) sum += code[i];
        query_sum(query, k_dim)[b] = sum;
    }
}

/* ---- quantized K ---- */

/* Adds the products of block b of 32 features, at positions at .. at + 16 * wide. */
VEC_INLINE void dot_block(vi dot[VEC_ROWS][VEC_WIDE], const struct seer *seer, const void *code,
                          uint32_t b, int at, const int rows, const int wide, enum kv_type kv) {
    enum { GROUPS = KV_BLOCK / 4 };
    const int nibbles = kv == KV_q4_0 ? 2 : 1; /* groups of 4 features that share bytes */
    const uint8_t *from = (const uint8_t *)code + 4 * at +
                          (size_t)b * GROUPS / nibbles * 4 * ATTENTION_PAGE;
    UNROLL
    for (int g = 0; g < GROUPS / nibbles; g++, from += 4 * ATTENTION_PAGE)
        for (int w = 0; w < wide; w++) {
            vb k[2];
            if (kv == KV_q8_0) k[0] = vb_load((const int8_t *)from + 4 * VF * w);
            else vb_load_nibbles(from + 4 * VF * w, &k[0], &k[1]);
            for (int i = 0; i < nibbles; i++)
                for (int r = 0; r < rows; r++)
                    dot[r][w] = vi_dot(dot[r][w], k[i], query_code(seer[r].query) +
                                                            b * KV_BLOCK + 4 * (g * nibbles + i));
        }
}

VEC_INLINE void dot_tile(const struct attention_job *job, const struct seer *seer,
                         const void *block, float *s, enum kv_type kv, const int rows) {
    const int wide = VEC_WIDE < 4 ? 1 : rows <= 2 ? 4 : 2; /* what registers hold */
    const uint32_t k_dim = job->k_dim;
    const uint16_t *scale = kv_scales(block, k_dim, kv);
    for (int at = 0; at < ATTENTION_PAGE; at += VF * wide) {
        vf sum[VEC_ROWS][VEC_WIDE];
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < wide; w++) sum[r][w] = vf_zero();
        for (uint32_t b = 0; b < k_dim / KV_BLOCK; b++) {
            vi dot[VEC_ROWS][VEC_WIDE];
            for (int r = 0; r < rows; r++) {
                int32_t q_sum = query_sum(seer[r].query, k_dim)[b];
                for (int w = 0; w < wide; w++)
                    dot[r][w] = kv == KV_q8_0 ? vi_start(q_sum) : vi_set1(-8 * q_sum);
            }
            dot_block(dot, seer, block, b, at, rows, wide, kv);
            for (int w = 0; w < wide; w++) {
                vf d = vf_load_f16(scale + b * ATTENTION_PAGE + at + VF * w);
                for (int r = 0; r < rows; r++) {
                    vf both = vf_mul(vf_set1(query_scale(seer[r].query, k_dim)[b]), d);
                    sum[r][w] = vf_fma(vf_from_vi(dot[r][w]), both, sum[r][w]);
                }
            }
        }
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < wide; w++)
                vf_store(s + r * ATTENTION_PAGE + at + VF * w,
                         vf_mul(sum[r][w], vf_set1(job->scale)));
    }
}

/* ---- a page ---- */

VEC_INLINE void page_scores(const struct attention_job *job, const struct seer *seer, uint32_t n,
                            const void *block, float *s, enum kv_type kv) {
    for (uint32_t r = 0, rows; r < n; r += rows) {
        rows = tile_rows(n - r);
        float *to = s + r * ATTENTION_PAGE;
        if (kv_is_quantized(kv)) WITH_ROWS(rows, dot_tile, job, seer + r, block, to, kv)
        else WITH_ROWS(rows, score_tile, job, seer + r, block, to, kv)
    }
}

static void scores(const struct attention_job *job, const struct seer *seer, uint32_t n,
                   const void *block, float *s) {
    WITH_KV(job->type.k, page_scores, job, seer, n, block, s)
}
