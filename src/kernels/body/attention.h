/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h: body of attention. A call holds the query rows that share a KV head and walks the
 * pages of one split; for each page, rows that see some of it are taken VEC_ROWS at a time:
 *
 *     scores   lanes are positions:   s[row][pos]  = sum over d of q[row][d] * K[d][pos]
 *     weights  page maximum, factor for what was summed before, p = exp(s - max)
 *     sums     lanes are features:    out[row][f] += p[row][pos] * V[pos][f]
 *
 * Every element is one chain of fused multiply-adds in a fixed order, so tiles change no bits. */

VEC_INLINE vf kv_load(const void *block, size_t i, enum kernels_kv kv) {
    return kv == KERNELS_KV_F16 ? vf_load_f16((const uint16_t *)block + i)
                                : vf_load((const float *)block + i);
}
VEC_INLINE vf kv_load_n(const void *block, size_t i, uint32_t n, enum kernels_kv kv) {
    return kv == KERNELS_KV_F16 ? vf_load_f16_n((const uint16_t *)block + i, n)
                                : vf_load_n((const float *)block + i, n);
}

/* A row that sees positions [from, to) of the page at hand. */
struct seer {
    const float *q;
    float *part;
    uint32_t from, to;
};

/* ---- scores ---- */

VEC_INLINE void score_tile(const struct attention_job *job, const struct seer *seer,
                           const void *block, float *s, const int rows, enum kernels_kv kv) {
    for (int at = 0; at < ATTENTION_PAGE; at += VF * VEC_WIDE) {
        vf sum[VEC_ROWS][VEC_WIDE];
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < VEC_WIDE; w++) sum[r][w] = vf_zero();
        for (uint32_t d = 0; d < job->k_dim; d++) {
            vf k[VEC_WIDE];
            for (int w = 0; w < VEC_WIDE; w++)
                k[w] = kv_load(block, (size_t)d * ATTENTION_PAGE + at + VF * w, kv);
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

/* ---- weights: s becomes p; factor[row] scales what the part holds ---- */

/* Caps and masks one row's scores and returns their maximum. */
VEC_INLINE float page_top(const struct attention_job *job, const struct seer *seer, float *s) {
    vf top = vf_set1(-INFINITY);
    for (int w = 0; w < ATTENTION_PAGE / VF; w++) {
        vf x = vf_load(s + VF * w);
        if (job->softcap > 0) x = cap_vector(x, job->softcap);
        if (seer->from > 0 || seer->to < ATTENTION_PAGE) {
            vf pos = vf_add(vf_iota(), vf_set1((float)(VF * w)));
            x = vf_if_lt(pos, vf_set1((float)seer->from), vf_set1(-INFINITY), x);
            x = vf_if_lt(pos, vf_set1((float)seer->to), x, vf_set1(-INFINITY));
        }
        vf_store(s + VF * w, x);
        top = vf_max(top, x);
    }
    return vf_top(top);
}

static void page_weights(const struct attention_job *job, const struct seer *seer, uint32_t rows,
                         float *s, float *factor) {
    float top[ATTENTION_ROWS], before[ATTENTION_ROWS + VF];
    for (uint32_t r = 0; r < rows; r++) {
        float t = page_top(job, &seer[r], s + r * ATTENTION_PAGE), old = seer[r].part[0];
        top[r] = old > t ? old : t;
        before[r] = old - top[r];
    }
    for (uint32_t r = 0; r < rows; r += VF)
        vf_store(factor + r, math_exp(get(before + r, part(rows - r))));
    for (uint32_t r = 0; r < rows; r++) {
        vf sum = vf_zero();
        for (int w = 0; w < ATTENTION_PAGE / VF; w++) {
            float *at = s + r * ATTENTION_PAGE + VF * w;
            vf p = math_exp(vf_sub(vf_load(at), vf_set1(top[r])));
            vf_store(at, p);
            sum = vf_add(sum, p);
        }
        seer[r].part[0] = top[r];
        seer[r].part[1] = __builtin_fmaf(seer[r].part[1], factor[r], vf_sum(sum));
    }
}

/* ---- sums ---- */

VEC_INLINE void sum_span(vf *sum, const float *p, const void *v, uint32_t v_dim, uint32_t from,
                         uint32_t to, const int wide, enum kernels_kv kv) {
    for (uint32_t pos = from; pos < to; pos++)
        for (int w = 0; w < wide; w++)
            sum[w] = vf_fma(vf_set1(p[pos]), kv_load(v, (size_t)pos * v_dim + VF * w, kv), sum[w]);
}

/* Features [0, 16 * wide) of v and out. What all rows see is summed together; positions at the
 * edges, seen by some, row by row, so that nothing unseen is touched. */
VEC_INLINE void sum_tile(const struct seer *seer, const float *p, const float *factor,
                         const void *v, uint32_t v_dim, uint32_t feature, const int rows,
                         const int wide, enum kernels_kv kv) {
    uint32_t all_from = 0, all_to = ATTENTION_PAGE;
    for (int r = 0; r < rows; r++) {
        all_from = seer[r].from > all_from ? seer[r].from : all_from;
        all_to = seer[r].to < all_to ? seer[r].to : all_to;
    }
    if (all_to < all_from) all_to = all_from;
    vf sum[VEC_ROWS][VEC_WIDE];
    for (int r = 0; r < rows; r++) {
        for (int w = 0; w < wide; w++)
            sum[r][w] = vf_mul(vf_load(seer[r].part + 16 + feature + VF * w), vf_set1(factor[r]));
        if (seer[r].from < all_from)
            sum_span(sum[r], p + r * ATTENTION_PAGE, v, v_dim, seer[r].from,
                     seer[r].to < all_from ? seer[r].to : all_from, wide, kv);
    }
    for (uint32_t pos = all_from; pos < all_to; pos++) {
        vf x[VEC_WIDE];
        for (int w = 0; w < wide; w++) x[w] = kv_load(v, (size_t)pos * v_dim + VF * w, kv);
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < wide; w++)
                sum[r][w] = vf_fma(vf_set1(p[r * ATTENTION_PAGE + pos]), x[w], sum[r][w]);
    }
    for (int r = 0; r < rows; r++) {
        sum_span(sum[r], p + r * ATTENTION_PAGE, v, v_dim, all_to, seer[r].to, wide, kv);
        for (int w = 0; w < wide; w++)
            vf_store(seer[r].part + 16 + feature + VF * w, sum[r][w]);
    }
}

/* The last n < 16 features of one row. */
VEC_INLINE void sum_rest(const struct seer *seer, const float *p, float factor, const void *v,
                         uint32_t v_dim, uint32_t feature, uint32_t n, enum kernels_kv kv) {
    vf sum = vf_mul(vf_load(seer->part + 16 + feature), vf_set1(factor));
    for (uint32_t pos = seer->from; pos < seer->to; pos++)
        sum = vf_fma(vf_set1(p[pos]), kv_load_n(v, (size_t)pos * v_dim, n, kv), sum);
    vf_store(seer->part + 16 + feature, sum);
}

VEC_INLINE const void *kv_at(const void *block, size_t i, enum kernels_kv kv) {
    return (const char *)block + i * (kv == KERNELS_KV_F16 ? 2 : 4);
}

VEC_INLINE void page_sums(const struct attention_job *job, const struct seer *seer, const float *p,
                          const float *factor, const void *block, const int rows,
                          enum kernels_kv kv) {
    uint32_t f = 0, v_dim = job->v_dim;
    const void *v = kv_at(block, (size_t)job->k_dim * ATTENTION_PAGE, kv);
    for (; f + VF * VEC_WIDE <= v_dim; f += VF * VEC_WIDE)
        sum_tile(seer, p, factor, kv_at(v, f, kv), v_dim, f, rows, VEC_WIDE, kv);
    for (; VEC_WIDE > 1 && f + VF <= v_dim; f += VF)
        sum_tile(seer, p, factor, kv_at(v, f, kv), v_dim, f, rows, 1, kv);
    for (int r = 0; f < v_dim && r < rows; r++)
        sum_rest(seer + r, p + r * ATTENTION_PAGE, factor[r], kv_at(v, f, kv), v_dim, f, v_dim - f,
                 kv);
}

/* ---- a split ---- */

/* Calls body(..., rows, kv) with `rows` a constant, so that its sums stay in registers. */
#define WITH_ROWS(count, body, ...)                                     \
    switch (count) {                                                    \
    case 1: body(__VA_ARGS__, 1, kv); break;                            \
    case 2: body(__VA_ARGS__, 2 < VEC_ROWS ? 2 : VEC_ROWS, kv); break;  \
    case 3: body(__VA_ARGS__, 3 < VEC_ROWS ? 3 : VEC_ROWS, kv); break;  \
    case 4: body(__VA_ARGS__, 4 < VEC_ROWS ? 4 : VEC_ROWS, kv); break;  \
    case 5: body(__VA_ARGS__, 5 < VEC_ROWS ? 5 : VEC_ROWS, kv); break;  \
    default: body(__VA_ARGS__, VEC_ROWS, kv);                           \
    }

/* The next tile of `left` rows: as even as tiles of at most VEC_ROWS can be. */
VEC_INLINE uint32_t tile_rows(uint32_t left) {
    uint32_t tiles = (left + VEC_ROWS - 1) / VEC_ROWS;
    return (left + tiles - 1) / tiles;
}

VEC_INLINE uint32_t page_seers(const struct attention_job *job, uint32_t page, struct seer *seer) {
    uint32_t n = 0, first = page * ATTENTION_PAGE;
    for (uint32_t r = 0; r < job->rows; r++) {
        const struct attention_row *row = &job->row[r];
        uint32_t from = row->begin > first ? row->begin - first : 0;
        uint32_t to = row->end > first ? row->end - first : 0;
        if (to > ATTENTION_PAGE) to = ATTENTION_PAGE;
        if (from < to)
            seer[n++] = (struct seer){.q = row->q, .part = row->part, .from = from, .to = to};
    }
    return n;
}

static void attention_clear(float *state, uint32_t v_dim) {
    for (size_t i = 0; i < attention_part_floats(v_dim); i += VF) vf_store(state + i, vf_zero());
    state[0] = -INFINITY;
}

VEC_INLINE void attend(const struct attention_job *job, enum kernels_kv kv) {
    float *s = job->scratch, factor[ATTENTION_ROWS];
    struct seer seer[ATTENTION_ROWS];
    for (uint32_t r = 0; r < job->rows; r++) attention_clear(job->row[r].part, job->v_dim);
    for (uint32_t page = 0; page < job->pages; page++) {
        const void *block = job->block[page];
        uint32_t n = page_seers(job, page, seer);
        for (uint32_t r = 0, rows; r < n; r += rows) {
            rows = tile_rows(n - r);
            WITH_ROWS(rows, score_tile, job, seer + r, block, s + r * ATTENTION_PAGE)
        }
        page_weights(job, seer, n, s, factor);
        for (uint32_t r = 0, rows; r < n; r += rows) {
            rows = tile_rows(n - r);
            WITH_ROWS(rows, page_sums, job, seer + r, s + r * ATTENTION_PAGE, factor + r, block)
        }
    }
}
static void attention_f32(const struct attention_job *job) { attend(job, KERNELS_KV_F32); }
static void attention_f16(const struct attention_job *job) { attend(job, KERNELS_KV_F16); }

/* ---- merging ---- */

VEC_INLINE bool is_empty(const float *part) { return part[0] == -INFINITY && part[1] == 0; }

static void attention_merge(float *state, const float *from, uint32_t v_dim) {
    size_t floats = attention_part_floats(v_dim);
    if (is_empty(from)) return;
    if (is_empty(state)) {
        memcpy(state, from, floats * sizeof *state);
        return;
    }
    float top = state[0] > from[0] ? state[0] : from[0], e[VF];
    vf_store(e, math_exp(vf_load_n((const float[2]){state[0] - top, from[0] - top}, 2)));
    state[0] = top;
    state[1] = __builtin_fmaf(from[1], e[1], state[1] * e[0]);
    for (size_t i = 16; i < floats; i += VF)
        vf_store(state + i, vf_fma(vf_load(from + i), vf_set1(e[1]),
                                   vf_mul(vf_load(state + i), vf_set1(e[0]))));
}

static void attention_finish(const float *state, float *y, uint32_t v_dim) {
    for (uint32_t i = 0; i < v_dim; i += VF)
        put(y + i, vf_div(vf_load(state + 16 + i), vf_set1(state[1])), part(v_dim - i));
}

/* ---- storing ---- */

VEC_INLINE void store_row(void *to, const float *x, uint32_t n, enum kernels_kv kv) {
    if (kv == KERNELS_KV_F32) {
        memcpy(to, x, n * sizeof *x);
        return;
    }
    uint16_t *half = to;
    uint32_t i = 0;
    for (; i + VF <= n; i += VF) vf_store_f16(half + i, vf_load(x + i));
    if (i < n) vf_store_f16_n(half + i, vf_load_n(x + i, n - i), n - i);
}

/* Writes x[0..n) down the column `slot`. */
VEC_INLINE void store_column(void *block, const float *x, uint32_t n, uint32_t slot,
                             enum kernels_kv kv) {
    if (kv == KERNELS_KV_F32) {
        for (uint32_t d = 0; d < n; d++) ((float *)block)[d * ATTENTION_PAGE + slot] = x[d];
        return;
    }
    for (uint32_t d = 0; d < n; d += VF) {
        uint16_t half[VF], *to = (uint16_t *)block + d * ATTENTION_PAGE + slot;
        uint32_t m = part(n - d);
        vf_store_f16(half, get(x + d, m));
        for (uint32_t i = 0; i < m; i++) to[i * ATTENTION_PAGE] = half[i];
    }
}

VEC_INLINE void store(const struct attention_store *job, enum kernels_kv kv) {
    size_t v_base = (size_t)job->k_dim * ATTENTION_PAGE;
    for (uint32_t r = 0; r < job->rows; r++) {
        uint32_t slot = job->slot + r;
        store_column(job->block, job->k + r * job->k_stride, job->k_dim, slot, kv);
        void *row = (char *)job->block + (v_base + (size_t)slot * job->v_dim) *
                                             (kv == KERNELS_KV_F16 ? 2 : 4);
        store_row(row, job->v + r * job->v_stride, job->v_dim, kv);
    }
}
static void attention_store_f32(const struct attention_store *job) { store(job, KERNELS_KV_F32); }
static void attention_store_f16(const struct attention_store *job) { store(job, KERNELS_KV_F16); }
