/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h: body of attention. A call holds the query rows that share a KV head and walks the
 * pages of one split; for each page, rows that see some of it are taken VEC_ROWS at a time:
 *
 *     scores   lanes are positions: attention_score.h
 *     weights  page maximum, factor for what was summed before, p = exp(s - max)
 *     sums     lanes are features:    out[row][f] += p[row][pos] * V[pos][f]
 *
 * Every element is one chain of fused multiply-adds in a fixed order, so tiles change no bits. A
 * quantized V is summed as its codes, with the position's scale taken into p before. */

/* ---- weights: s becomes p; factor[row] scales what the part holds ---- */

static void hide(float *s, uint64_t sees) {
    for (int i = 0; i < ATTENTION_PAGE; i++)
        if (!(sees >> i & 1)) s[i] = -INFINITY;
}

/* The bias of each position's distance. */
static void page_bias(const struct seer *seer, float bias[ATTENTION_PAGE]) {
    for (int i = 0; i < ATTENTION_PAGE; i++) {
        int32_t distance = -(int32_t)seer->distance - i;
        bool near = distance >= 0 && (uint32_t)distance < seer->distances;
        bias[i] = near ? seer->by_distance[distance] : 0;
    }
}

/* Caps, slopes, biases and masks one row's scores and returns their maximum. */
VEC_INLINE float page_top(const struct attention_job *job, const struct seer *seer, float *s) {
    vf top = vf_set1(-INFINITY);
    float bias[ATTENTION_PAGE];
    if (seer->by_distance) page_bias(seer, bias);
    for (int w = 0; w < ATTENTION_PAGE / VF; w++) {
        vf x = vf_load(s + VF * w);
        if (job->softcap > 0) x = cap_vector(x, job->softcap);
        vf pos = vf_add(vf_iota(), vf_set1((float)(VF * w)));
        if (seer->slope != 0)
            x = vf_fma(vf_set1(seer->slope), vf_add(pos, vf_set1(seer->distance)), x);
        if (seer->by_distance) x = vf_add(x, vf_load(bias + VF * w));
        if (seer->from > 0 || seer->to < ATTENTION_PAGE) {
            x = vf_if_lt(pos, vf_set1((float)seer->from), vf_set1(-INFINITY), x);
            x = vf_if_lt(pos, vf_set1((float)seer->to), x, vf_set1(-INFINITY));
        }
        vf_store(s + VF * w, x);
        top = vf_max(top, x);
    }
    if (seer->sees == UINT64_MAX) return vf_top(top);
    hide(s, seer->sees);
    top = vf_set1(-INFINITY);
    for (int w = 0; w < ATTENTION_PAGE / VF; w++) top = vf_max(top, vf_load(s + VF * w));
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

/* Some features of one page, for a tile of rows. */
struct page_sum {
    const struct seer *seer;
    const float *p;       /* weights: [rows][64]; of a quantized V [rows][2][64], by block */
    const float *factor;  /* [rows] */
    const void *v;        /* at the tile's first feature; of a quantized V at its block's first */
    uint32_t v_dim, feature;
};

VEC_INLINE float weight(const struct page_sum *t, int r, int w, uint32_t pos, enum kv_type kv) {
    return t->p[(kv_is_quantized(kv) ? 2 * r + w / 2 : r) * ATTENTION_PAGE + pos];
}

VEC_INLINE void sum_span(vf *sum, const struct page_sum *t, const int r, uint32_t from, uint32_t to,
                         const int first, const int wide, enum kv_type kv) {
    for (uint32_t pos = from; pos < to; pos++)
        for (int w = 0; w < wide; w++)
            sum[w] = vf_fma(vf_set1(weight(t, r, w, pos, kv)),
                            kv_load(t->v, (size_t)pos * t->v_dim, first + w, kv), sum[w]);
}

/* Vectors first .. first + wide of v. What all rows see is summed together; positions at the
 * edges, seen by some, row by row, so that nothing unseen is touched. */
VEC_INLINE void sum_tile(const struct page_sum *t, const int first, const int wide,
                         enum kv_type kv, const int rows) {
    const struct seer *seer = t->seer;
    uint32_t all_from = 0, all_to = ATTENTION_PAGE, to = 16 + t->feature + VF * first;
    for (int r = 0; r < rows; r++) {
        all_from = seer[r].from > all_from ? seer[r].from : all_from;
        all_to = seer[r].to < all_to ? seer[r].to : all_to;
    }
    if (all_to < all_from) all_to = all_from;
    vf sum[VEC_ROWS][VEC_WIDE];
    for (int r = 0; r < rows; r++) {
        for (int w = 0; w < wide; w++)
            sum[r][w] = vf_mul(vf_load(seer[r].part + to + VF * w), vf_set1(t->factor[r]));
        if (seer[r].from < all_from)
            sum_span(sum[r], t, r, seer[r].from, seer[r].to < all_from ? seer[r].to : all_from,
                     first, wide, kv);
    }
    for (uint32_t pos = all_from; pos < all_to; pos++) {
        vf x[VEC_WIDE];
        for (int w = 0; w < wide; w++)
            x[w] = kv_load(t->v, (size_t)pos * t->v_dim, first + w, kv);
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < wide; w++)
                sum[r][w] = vf_fma(vf_set1(weight(t, r, w, pos, kv)), x[w], sum[r][w]);
    }
    for (int r = 0; r < rows; r++) {
        sum_span(sum[r], t, r, all_to, seer[r].to, first, wide, kv);
        for (int w = 0; w < wide; w++) vf_store(seer[r].part + to + VF * w, sum[r][w]);
    }
}

/* The last n < 16 features of one row. */
VEC_INLINE void sum_rest(const struct page_sum *t, int r, uint32_t n, enum kv_type kv) {
    const struct seer *seer = t->seer + r;
    vf sum = vf_mul(vf_load(seer->part + 16 + t->feature), vf_set1(t->factor[r]));
    for (uint32_t pos = seer->from; pos < seer->to; pos++)
        sum = vf_fma(vf_set1(weight(t, r, 0, pos, kv)),
                     kv_load_n(t->v, (size_t)pos * t->v_dim, n, kv), sum);
    vf_store(seer->part + 16 + t->feature, sum);
}

VEC_INLINE void float_rows(struct page_sum t, const void *v, enum kv_type kv, const int rows) {
    for (; t.feature + VF * VEC_WIDE <= t.v_dim; t.feature += VF * VEC_WIDE) {
        t.v = (const char *)v + kv_code_bytes(t.feature, kv);
        sum_tile(&t, 0, VEC_WIDE, kv, rows);
    }
    for (; VEC_WIDE > 1 && t.feature + VF <= t.v_dim; t.feature += VF) {
        t.v = (const char *)v + kv_code_bytes(t.feature, kv);
        sum_tile(&t, 0, 1, kv, rows);
    }
    t.v = (const char *)v + kv_code_bytes(t.feature, kv);
    for (int r = 0; t.feature < t.v_dim && r < rows; r++)
        sum_rest(&t, r, t.v_dim - t.feature, kv);
}

/* scaled[rows][2][64]: p times the scales of `blocks` blocks of features. */
VEC_INLINE void scale_weights(float *scaled, const float *p, const uint16_t *scale, int blocks,
                              const int rows) {
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < ATTENTION_PAGE; i += VF) {
            vf d = vf_load_f16(scale + b * ATTENTION_PAGE + i);
            for (int r = 0; r < rows; r++)
                vf_store(scaled + (2 * r + b) * ATTENTION_PAGE + i,
                         vf_mul(vf_load(p + r * ATTENTION_PAGE + i), d));
        }
}

VEC_INLINE void code_rows(struct page_sum t, const void *v, enum kv_type kv, const int rows) {
    float scaled[2 * VEC_ROWS * ATTENTION_PAGE];
    const uint16_t *scale = kv_scales(v, t.v_dim, kv);
    const float *p = t.p;
    t.p = scaled;
    while (t.feature < t.v_dim) {
        int blocks = VEC_WIDE == 4 && t.v_dim - t.feature >= 2 * KV_BLOCK ? 2 : 1;
        t.v = (const char *)v + kv_code_bytes(t.feature, kv);
        scale_weights(scaled, p, scale + t.feature / KV_BLOCK * ATTENTION_PAGE, blocks, rows);
        if (VEC_WIDE == 4 && blocks == 2) {
            sum_tile(&t, 0, VEC_WIDE, kv, rows);
        } else if (VEC_WIDE > 1) {
            sum_tile(&t, 0, 2, kv, rows);
        } else {
            sum_tile(&t, 0, 1, kv, rows);
            sum_tile(&t, 1, 1, kv, rows);
        }
        t.feature += blocks * KV_BLOCK;
    }
}

VEC_INLINE void page_sums(const struct attention_job *job, const struct seer *seer, uint32_t n,
                          const float *p, const float *factor, const void *v, enum kv_type kv) {
    for (uint32_t r = 0, rows; r < n; r += rows) {
        rows = tile_rows(n - r);
        struct page_sum t = {.seer = seer + r, .p = p + r * ATTENTION_PAGE, .factor = factor + r,
                             .v_dim = job->v_dim};
        if (kv_is_quantized(kv)) WITH_ROWS(rows, code_rows, t, v, kv)
        else WITH_ROWS(rows, float_rows, t, v, kv)
    }
}

static void sums(const struct attention_job *job, const struct seer *seer, uint32_t n,
                 const float *p, const float *factor, const void *block) {
    const void *v = kv_values(block, job->type.k, job->k_dim);
    WITH_KV(job->type.v, page_sums, job, seer, n, p, factor, v)
}

/* ---- a split ---- */

/* The bits of positions [from, to) of a page, of which there is one. */
VEC_INLINE uint64_t positions(uint32_t from, uint32_t to) {
    return UINT64_MAX >> (ATTENTION_PAGE - (to - from)) << from;
}

VEC_INLINE uint32_t page_seers(const struct attention_job *job, const char *query, uint32_t page,
                               struct seer *seer) {
    uint32_t n = 0, first = page * ATTENTION_PAGE;
    for (uint32_t r = 0; r < job->rows; r++) {
        const struct attention_row *row = &job->row[r];
        uint32_t from = row->begin > first ? row->begin - first : 0;
        uint32_t to = row->end > first ? row->end - first : 0;
        if (to > ATTENTION_PAGE) to = ATTENTION_PAGE;
        uint64_t sees = row->sees ? row->sees[page] : UINT64_MAX;
        if (from < to && (sees & positions(from, to)) != 0)
            seer[n++] = (struct seer){.q = row->q,
                                      .query = query + r * attention_query_bytes(job->k_dim),
                                      .part = row->part,
                                      .from = from,
                                      .to = to,
                                      .sees = sees,
                                      .slope = row->slope,
                                      .distance = (float)((int32_t)first - row->at),
                                      .by_distance = row->by_distance,
                                      .distances = row->distances};
    }
    return n;
}

static void attention_clear(float *state, uint32_t v_dim) {
    for (size_t i = 0; i < attention_part_floats(v_dim); i += VF) vf_store(state + i, vf_zero());
    state[0] = -INFINITY;
}

/* Scratch: scores [rows][64], then queries [rows]. */
static void attention(const struct attention_job *job) {
    float *s = job->scratch, factor[ATTENTION_ROWS];
    char *query = (char *)(s + ATTENTION_ROWS * ATTENTION_PAGE);
    struct seer seer[ATTENTION_ROWS];
    for (uint32_t r = 0; r < job->rows; r++) {
        attention_clear(job->row[r].part, job->v_dim);
        if (kv_is_quantized(job->type.k))
            make_query(job->row[r].q, job->k_dim, query + r * attention_query_bytes(job->k_dim));
    }
    for (uint32_t page = 0; page < job->pages; page++) {
        uint32_t n = page_seers(job, query, page, seer);
        if (n == 0) continue;
        scores(job, seer, n, job->block[page], s);
        page_weights(job, seer, n, s, factor);
        sums(job, seer, n, s, factor, job->block[page]);
    }
}

/* ---- merging ---- */

VEC_INLINE bool is_empty(const float *part) { return part[0] == -INFINITY && part[1] == 0; }

/* The state's maximum with that of a part; e[0] and e[1] are what scales each. */
VEC_INLINE void merge_tops(float *state, float part, float e[VF]) {
    float top = state[0] > part ? state[0] : part;
    vf_store(e, math_exp(vf_load_n((const float[2]){state[0] - top, part - top}, 2)));
    state[0] = top;
}

static void attention_merge(float *state, const float *from, uint32_t v_dim) {
    size_t floats = attention_part_floats(v_dim);
    if (is_empty(from)) return;
    if (is_empty(state)) {
        memcpy(state, from, floats * sizeof *state);
        return;
    }
    float e[VF];
    merge_tops(state, from[0], e);
    state[1] = __builtin_fmaf(from[1], e[1], state[1] * e[0]);
    for (size_t i = 16; i < floats; i += VF)
        vf_store(state + i, vf_fma(vf_load(from + i), vf_set1(e[1]),
                                   vf_mul(vf_load(state + i), vf_set1(e[0]))));
}

static void attention_sink(float *state, float logit, uint32_t v_dim) {
    float e[VF];
    merge_tops(state, logit, e);
    state[1] = __builtin_fmaf(1, e[1], state[1] * e[0]);
    for (size_t i = 16; i < attention_part_floats(v_dim); i += VF)
        vf_store(state + i, vf_mul(vf_load(state + i), vf_set1(e[0])));
}

static void attention_finish(const float *state, float *y, uint32_t v_dim) {
    for (uint32_t i = 0; i < v_dim; i += VF)
        put(y + i, vf_div(vf_load(state + 16 + i), vf_set1(state[1])), part(v_dim - i));
}
