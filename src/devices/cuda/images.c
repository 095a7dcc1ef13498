/* SPDX-License-Identifier: Apache-2.0
 *
 * images.c: the kernels as nvcc compiled them, one fat binary a file of kernels/: machine code for
 * some GPUs, PTX for all others, which the driver compiles. A build without nvcc has none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "devices/cuda/cuda.h"

#ifdef HAVE_CUDA_IMAGES
#define IMAGE(name) extern const unsigned char cuda_image_##name[];
#include "devices/cuda/kernels/images.def"
#undef IMAGE
#endif

static const unsigned char *const image[] = {
#ifdef HAVE_CUDA_IMAGES
#define IMAGE(name) cuda_image_##name,
#include "devices/cuda/kernels/images.def"
#undef IMAGE
#endif
    NULL};

bool cuda_images_exist(void) { return image[0] != NULL; }

static CUfunction find(struct cuda_device *d, const char *name, ob_error *error) {
    CUfunction f;
    for (uint32_t i = 0; i < d->modules; i++)
        if (d->driver->module_function(&f, d->module[i], name) == 0) return f;
    error_set(error, OB_ERR_UNSUPPORTED, "the program's CUDA images lack the kernel %s", name);
    return NULL;
}

static bool find_linear(struct cuda_device *d, const char *prefix, CUfunction out[QUANT_COUNT],
                        ob_error *error) {
    static const char *const name[QUANT_COUNT] = {
#define QUANT(name) #name,
#include "quant/quants.def"
#undef QUANT
    };
    for (int q = 0; q < QUANT_COUNT; q++) {
        char text[64];
        snprintf(text, sizeof text, "%s_%s", prefix, name[q]);
        if (!(out[q] = find(d, text, error))) return false;
    }
    return true;
}

enum { SHARED_MAX = 227 << 10 /* bytes a block may have */ };

static bool find_mma(struct cuda_device *d, ob_error *error) {
    enum { EACH = 6 };
    static const struct { enum quant_index quant; const char *name[EACH]; } row[] = {
#define FORMAT(name)                                                                      \
    {QUANT_##name,                                                                        \
     {"mma_8_" #name, "mma_32_" #name, "mma_64_" #name, "mma_many_" #name,                \
      "mma_experts_8_" #name, "mma_experts_40_" #name}},
#include "devices/cuda/kernels/mma.def"
#undef FORMAT
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        CUfunction f[EACH];
        for (int k = 0; k < EACH; k++) {
            if (!(f[k] = find(d, row[i].name[k], error))) return false;
            d->driver->function_set(f[k], CUDA_FUNCTION_SHARED_MAX, SHARED_MAX);
        }
        d->mma[row[i].quant].few = f[0];
        d->mma[row[i].quant].some = f[1];
        d->mma[row[i].quant].more = f[2];
        d->mma[row[i].quant].many = f[3];
        d->mma[row[i].quant].experts_few = f[4];
        d->mma[row[i].quant].experts_many = f[5];
    }
    return true;
}

static bool find_thin(struct cuda_device *d, ob_error *error) {
    static const struct { enum quant_index quant; const char *one, *few, *many; } row[] = {
        {QUANT_bf16, "thin_1_bf16", "thin_4_bf16", "thin_16_bf16"},
        {QUANT_f16, "thin_1_f16", "thin_4_f16", "thin_16_f16"},
        {QUANT_f32, "thin_1_f32", "thin_4_f32", "thin_16_f32"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        enum quant_index q = row[i].quant;
        d->thin[q].one = find(d, row[i].one, error);
        d->thin[q].few = find(d, row[i].few, error);
        d->thin[q].many = find(d, row[i].many, error);
        if (!d->thin[q].one || !d->thin[q].few || !d->thin[q].many) return false;
    }
    return true;
}

ob_status cuda_images_load(struct cuda_device *d, ob_error *error) {
    static const char *const name[CUDA_KERNELS] = {
#define KERNEL(name) #name,
#include "devices/cuda/kernels/kernels.def"
#undef KERNEL
    };
    enum { NO_BINARY = 209, BAD_PTX = 218, NEWER_PTX = 222 };
    d->module = calloc(sizeof image / sizeof image[0], sizeof *d->module);
    if (!d->module) return error_memory(error, "modules", sizeof image);
    for (; image[d->modules]; d->modules++) {
        CUresult r = d->driver->module_load(&d->module[d->modules], image[d->modules]);
        if (r == 0) continue;
        bool old = r == NO_BINARY || r == BAD_PTX || r == NEWER_PTX;
        return error_set(error, OB_ERR_UNSUPPORTED, "cuda: no kernels for %s: %s%s", d->name,
                         cuda_error(d->driver, r), old ? " (a newer driver may help)" : "");
    }
    for (int k = 0; k < CUDA_KERNELS; k++)
        if (!(d->kernel[k] = find(d, name[k], error))) return OB_ERR_UNSUPPORTED;
    if (!find_linear(d, "linear", d->linear, error) ||
        !find_linear(d, "linear_experts", d->linear_experts, error) ||
        !find_linear(d, "linear_heads", d->linear_heads, error) || !find_mma(d, error) ||
        !find_thin(d, error))
        return OB_ERR_UNSUPPORTED;
    return OB_OK;
}
