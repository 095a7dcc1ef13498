/* SPDX-License-Identifier: Apache-2.0
 * ternary.c: see ternary.h. */
#include "models/ternary.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define CONFIG "quantization_config."

ob_status ternary_check(struct build *b, bool *is, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, CONFIG "use_rms_norm", 0, 0, "a norm in each linear layer"}, {0}};
    struct str method, mode;
    *is = build_str(b, NULL, CONFIG "quant_method", &method) && str_is(method, "bitnet");
    if (!*is) return OB_OK;
    if (build_str(b, NULL, CONFIG "quantization_mode", &mode) && !str_is(mode, "offline"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", CONFIG "quantization_mode", error,
                            "\"%.*s\": only weights that are ternary already are supported",
                            STR_ARG(mode));
    return build_plain(b, plain, error);
}

bool ternary_scale_name(const struct build *b, const char *name, char *out, size_t size) {
    static const char end[] = ".weight";
    size_t n = strlen(name), tail = sizeof end - 1;
    if (n < tail || strcmp(name + n - tail, end) != 0) return false;
    if (source_kind(b->source) == SOURCE_HF) snprintf(out, size, "%s_scale", name);
    else snprintf(out, size, "%.*s.scale", (int)(n - tail), name);
    return true;
}

/* Row r of the file: bits 2i of its bytes are row r + i * rows. */
static void unpack(const uint8_t *packed, size_t rows, size_t cols, uint16_t *out) {
    static const uint16_t bf16[4] = {0xbf80, 0, 0x3f80, 0x4000};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < rows * cols; k++)
            out[i * rows * cols + k] = bf16[(packed[k] >> 2 * i) & 3];
}

ob_status ternary_read(struct build *b, const struct source_tensor *have,
                       const struct source_tensor *scale, struct source_tensor *out,
                       float *factor, ob_error *error) {
    struct str linear;
    char name[256];
    snprintf(name, sizeof name, "%.*s", STR_ARG(scale->name));
    if (!scale->quant || scale->quant->block > 1 || scale->dim[0] * scale->dim[1] != 1 ||
        scale->ndim > 2)
        return build_refuse(b, OB_ERR_FORMAT, name, name, error, "must be one number");
    scale->quant->decode(scale->data, factor, 1);
    if (!(*factor > 0) || *factor > 1e30f)
        return build_refuse(b, OB_ERR_FORMAT, name, name, error, "is no factor of weights");
    *out = *have;
    if (have->quant) return OB_OK; /* of our own: unpacked */
    /* One class of linear layers multiplies, the other divides. */
    if (!build_str(b, NULL, CONFIG "linear_class", &linear) || !str_is(linear, "autobitlinear"))
        *factor = 1 / *factor;
    if (!str_is(have->type, "U8") || have->ndim != 2) return OB_OK; /* refused by its type */
    uint16_t *codes = arena_array(b->arena, 4 * have->bytes, sizeof *codes);
    if (!codes) return error_memory(error, name, 8 * have->bytes);
    b->model->copied++;
    b->model->copied_bytes += 8 * have->bytes;
    unpack(have->data, (size_t)have->dim[1], (size_t)have->dim[0], codes);
    out->quant = quant_list[QUANT_bf16];
    out->dim[1] = 4 * have->dim[1];
    out->data = codes;
    out->bytes = 8 * have->bytes;
    return OB_OK;
}
