/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: weights on the GPU. A matrix lies there as kernels/formats.cuh says, those of experts
 * one after the other, each from a multiple of 16 bytes on; a vector as F32, whatever its
 * format. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "devices/cuda/cuda.h"

static uint32_t matrices(const struct weight *w) { return w->experts ? w->experts : 1; }

static const void *matrix_of(const struct weight *w, uint32_t m) {
    return w->expert ? w->expert[m] : (const char *)w->data + m * weight_matrix_bytes(w);
}

/* Row r of matrix m, as floats. */
static void decode_row(const struct weight *w, uint32_t m, uint32_t r, float *out) {
    const char *row = (const char *)matrix_of(w, m) + r * w->row_bytes;
    w->quant->decode(row, out, w->cols / w->quant->block);
}

static bool upload_vectors(struct cuda_device *d, const struct weight *w, CUdeviceptr to) {
    float *row = malloc(w->cols * sizeof *row);
    bool good = row != NULL;
    for (uint32_t m = 0; m < matrices(w) && good; m++) {
        decode_row(w, m, 0, row);
        good = cuda_upload(d, to + m * w->cols * sizeof *row, row, w->cols * sizeof *row);
    }
    free(row);
    return good;
}

/* ---- matrices that are packed ---- */

static size_t round16(size_t n) { return (n + 15) & ~(size_t)15; }

static bool is_packed(const struct quant *q) {
    return q == quant_list[QUANT_q6_k] || q == quant_list[QUANT_q8_0];
}

/* Some rows at a time go up as they are, and are packed there. */
static bool upload_packed(struct cuda_device *d, const struct weight *w, const void *from,
                          CUdeviceptr raw, CUdeviceptr to) {
    enum { THREADS = 128 };
    uint32_t most = (uint32_t)(CUDA_STAGING / w->row_bytes);
    struct cuda_pack args = {.from = raw,
                             .from_bytes = w->row_bytes,
                             .to_bytes = round16(w->row_bytes),
                             .blocks = w->cols / w->quant->block,
                             .quant = quant_index_of(w->quant)};
    bool good = true;
    for (uint32_t row = 0; row < w->rows && good; row += args.rows) {
        args.rows = w->rows - row < most ? w->rows - row : most;
        args.to = to + row * args.to_bytes;
        good = cuda_upload(d, raw, (const char *)from + row * w->row_bytes,
                           args.rows * w->row_bytes);
        uint64_t blocks = (uint64_t)args.rows * args.blocks;
        void *list[] = {&args};
        good = good && cuda_ok(d, d->driver->launch(d->kernel[CUDA_pack],
                                                    (unsigned)((blocks + THREADS - 1) / THREADS), 1,
                                                    1, THREADS, 1, 1, 0, d->stream, list, NULL),
                               "packing a weight");
    }
    return good && cuda_ok(d, d->driver->stream_wait(d->stream), "packing a weight");
}

static bool upload_matrices(struct cuda_device *d, const struct weight *w, size_t each, bool packed,
                            CUdeviceptr to) {
    CUdeviceptr raw = packed ? cuda_memory_new(d, CUDA_STAGING) : 0;
    bool good = raw || !packed;
    for (uint32_t m = 0; m < matrices(w) && good; m++)
        good = packed ? upload_packed(d, w, matrix_of(w, m), raw, to + m * each)
                      : cuda_upload(d, to + m * each, matrix_of(w, m),
                                    (size_t)weight_matrix_bytes(w));
    if (raw) d->driver->memory_free(raw);
    return good;
}

/* ---- powers of two ---- */

/* What brings the largest weight to 128 .. 256 (kernels/mma.cuh). */
static float power_for(float peak) {
    enum { LIMIT = 100, UP_TO = 7 };
    int power = peak > 0 && isfinite(peak) ? UP_TO - ilogbf(peak) : 0;
    return ldexpf(1, power > LIMIT ? LIMIT : power < -LIMIT ? -LIMIT : power);
}

/* Of each of n matrices. */
static bool measure_peaks(struct cuda_device *d, const struct cuda_matrix *matrix, uint32_t n,
                          float *by) {
    enum { THREADS = 128 };
    CUdeviceptr out = cuda_memory_new(d, n * sizeof *by);
    struct cuda_peak args = {.w = *matrix, .out = out};
    void *list[] = {&args};
    bool good = out != 0 &&
                cuda_ok(d, d->driver->launch(d->kernel[CUDA_peak], matrix->rows, n, 1, THREADS, 1,
                                             1, 0, d->stream, list, NULL), "a weight") &&
                cuda_ok(d, d->driver->download(by, out, n * sizeof *by, d->stream), "a weight") &&
                cuda_ok(d, d->driver->stream_wait(d->stream), "a weight");
    if (out) d->driver->memory_free(out);
    for (uint32_t i = 0; i < n && good; i++) by[i] = power_for(by[i]);
    return good;
}

/* Of a matrix, here; of those of experts, on the GPU at `each`. */
static bool scale_matrices(struct cuda_device *d, const struct weight *w, struct cuda_weight *bound,
                           CUdeviceptr each) {
    if (!w->experts) return measure_peaks(d, &bound->matrix, 1, &bound->by);
    float *by = malloc(w->experts * sizeof *by);
    bool good = by && measure_peaks(d, &bound->matrix, w->experts, by) &&
                cuda_upload(d, each, by, w->experts * sizeof *by);
    free(by);
    if (good) bound->each = each;
    return good;
}
/* Bytes of a row, of a matrix, of the powers of two behind all. */
struct layout { size_t row, each, powers; bool vector, packed; };

static struct layout layout_of(const struct cuda_device *d, const struct weight *w) {
    struct layout l = {.vector = w->rows == 1};
    l.packed = !l.vector && is_packed(w->quant);
    l.row = l.vector   ? w->cols * sizeof(float)
            : l.packed ? round16(w->row_bytes)
                       : w->row_bytes;
    l.each = l.vector ? l.row : round16(l.row * w->rows);
    if (!l.vector && d->mma[quant_index_of(w->quant)].few) l.powers = w->experts * sizeof(float);
    return l;
}

uint64_t cuda_weight_memory(const struct device *device, const struct weight *w) {
    const struct layout l = layout_of((const void *)device, w);
    return (uint64_t)l.each * matrices(w) + l.powers;
}

ob_status cuda_bind_weight(struct device *device, struct weight *w, ob_error *error) {
    struct cuda_device *d = (void *)device;
    struct cuda_weight *bound = calloc(1, sizeof *bound);
    if (!bound) return error_memory(error, "a weight", sizeof *bound);
    const struct layout l = layout_of(d, w);
    const struct quant *quant = l.vector ? quant_list[QUANT_f32] : w->quant;
    bound->data = cuda_memory_new(d, l.each * matrices(w) + l.powers);
    bound->matrix = (struct cuda_matrix){.data = bound->data, .row_bytes = l.row,
                                         .matrix_bytes = l.each, .rows = w->rows, .cols = w->cols,
                                         .quant = quant_index_of(quant), .matrices = matrices(w)};
    bool good = bound->data != 0;
    if (good) good = l.vector ? upload_vectors(d, w, bound->data)
                              : upload_matrices(d, w, l.each, l.packed, bound->data);
    if (good && d->mma[bound->matrix.quant].few)
        good = scale_matrices(d, w, bound, bound->data + l.each * matrices(w));
    w->bound = bound;
    if (good) return OB_OK;
    cuda_unbind_weight(device, w);
    ob_status status = cuda_report(d, error);
    if (status == OB_OK) status = error_memory(error, "a vector", w->cols * sizeof(float));
    error_at(error, NULL, w->name, OB_NO_OFFSET);
    return status;
}

void cuda_unbind_weight(struct device *device, struct weight *w) {
    struct cuda_device *d = (void *)device;
    struct cuda_weight *bound = w->bound;
    if (!bound) return;
    d->driver->context_set(d->context);
    if (bound->data) d->driver->memory_free(bound->data);
    free(bound);
    w->bound = NULL;
}

/* ---- what ops take in another form ---- */

CUdeviceptr cuda_plan_vector(struct device_plan *p, const struct weight *w) {
    if (!w) return 0;
    if (w->rows == 1 && w->bound) return ((const struct cuda_weight *)w->bound)->data;
    float *row = malloc(w->cols * sizeof *row);
    if (!row) return 0;
    decode_row(w, 0, 0, row);
    CUdeviceptr at = cuda_plan_copy(p, row, w->cols * sizeof *row);
    free(row);
    return at;
}

CUdeviceptr cuda_plan_matrix(struct device_plan *p, const struct weight *w, enum cuda_form form) {
    size_t n = (size_t)w->rows * w->cols;
    float *row = malloc(w->cols * sizeof *row), *to = malloc(n * sizeof *to);
    for (uint32_t r = 0; row && to && r < w->rows; r++) {
        decode_row(w, 0, r, row);
        for (uint32_t c = 0; c < w->cols; c++)
            if (form == CUDA_TRANSPOSED) to[(size_t)c * w->rows + r] = row[c];
            else to[(size_t)r * w->cols + c] = form == CUDA_PLAIN ? row[c]
                                                                  : (float)-exp((double)row[c]);
    }
    CUdeviceptr at = row && to ? cuda_plan_copy(p, to, n * sizeof *to) : 0;
    free(row);
    free(to);
    return at;
}
