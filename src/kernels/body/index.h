/* SPDX-License-Identifier: Apache-2.0
 * index.h: body of index_scores: the heads of one token are rows of attention_score.h. */

/* score += weight[r] * max(s[r], 0), row after row; a NaN stays. */
VEC_INLINE void index_add(const float *weight, uint32_t rows, const float *s, float *score) {
    for (int w = 0; w < ATTENTION_PAGE / VF; w++) {
        vf sum = vf_load(score + VF * w);
        for (uint32_t r = 0; r < rows; r++) {
            vf x = vf_load(s + r * ATTENTION_PAGE + VF * w);
            sum = vf_fma(vf_set1(weight[r]), vf_if_lt(x, vf_zero(), vf_zero(), x), sum);
        }
        vf_store(score + VF * w, sum);
    }
}

/* Scratch as attention. */
static void index_scores(const struct index_job *job) {
    const struct attention_job keys = {.k_dim = job->dim, .type.k = job->type, .scale = 1};
    float *s = job->scratch;
    char *query = (char *)(s + ATTENTION_ROWS * ATTENTION_PAGE);
    struct seer seer[ATTENTION_ROWS];
    for (uint32_t i = 0; i < job->pages * ATTENTION_PAGE; i++) job->score[i] = 0;
    for (uint32_t h = 0, rows; h < job->heads; h += rows) {
        rows = job->heads - h < ATTENTION_ROWS ? job->heads - h : ATTENTION_ROWS;
        for (uint32_t r = 0; r < rows; r++) {
            char *at = query + r * attention_query_bytes(job->dim);
            seer[r] = (struct seer){.q = job->q + (size_t)(h + r) * job->dim, .query = at};
            if (kv_is_quantized(job->type)) make_query(seer[r].q, job->dim, at);
        }
        for (uint32_t page = 0; page < job->pages; page++) {
            scores(&keys, seer, rows, job->block[page], s);
            float *score = job->score + page * ATTENTION_PAGE;
            if (job->weight) index_add(job->weight + h, rows, s, score);
            else memcpy(score, s, ATTENTION_PAGE * sizeof *s);
        }
    }
}
