/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.c: libcuda.so.1 without a GPU, for test_cuda.c: memory is the host's, kernels are names
 * that are counted and written down with their arguments, at once or, while a stream is recorded,
 * when the graph is launched; and the next call of a kind can be made to fail. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda/driver.h"
#include "devices/cuda/kernels/args.h"

#define CALL __attribute__((visibility("default")))
CALL int fake_cuda_fails_at;      /* the n-th call from now on fails; 0: none */
CALL int fake_cuda_failure = 2;   /* with this */
CALL size_t fake_cuda_used;       /* bytes that are allocated */
CALL size_t fake_cuda_most = (size_t)1 << 30;
CALL int fake_cuda_launches, fake_cuda_version = 13000, fake_cuda_devices = 2;
CALL unsigned fake_cuda_largest_grid;

static int result(void) {
    if (fake_cuda_fails_at == 0 || --fake_cuda_fails_at > 0) return 0;
    return fake_cuda_failure;
}

#define DEFINE(name, parameters)   \
    CALL int name parameters;      \
    CALL int name parameters

DEFINE(cuInit, (unsigned flags)) { return flags != 0; }
DEFINE(cuDriverGetVersion, (int *version)) { return *version = fake_cuda_version, 0; }
DEFINE(cuGetErrorString, (int error, const char **text)) {
    *text = error == 2 ? "out of memory" : error == 999 ? "unknown error" : NULL;
    return *text == NULL;
}
DEFINE(cuDeviceGetCount, (int *count)) { return *count = fake_cuda_devices, 0; }
DEFINE(cuDeviceGet, (int *device, int ordinal)) { return *device = ordinal, result(); }
DEFINE(cuDeviceGetName, (char *name, int size, int device)) {
    strncpy(name, device == 0 ? "Fake 0" : "Fake 1", (size_t)size);
    return 0;
}
DEFINE(cuDeviceTotalMem_v2, (size_t *bytes, int device)) {
    (void)device;
    return *bytes = fake_cuda_most, 0;
}
DEFINE(cuDeviceGetAttribute, (int *value, int attribute, int device)) {
    (void)device;
    return *value = attribute == 75 ? 9 : attribute == 97 ? 227 << 10 : 0, 0;
}
DEFINE(cuDevicePrimaryCtxRetain, (void **context, int device)) {
    return *context = (void *)(intptr_t)(device + 1), result();
}
DEFINE(cuDevicePrimaryCtxRelease_v2, (int device)) { return (void)device, 0; }
DEFINE(cuCtxSetCurrent, (void *context)) { return (void)context, 0; }
DEFINE(cuMemGetInfo_v2, (size_t *available, size_t *total)) {
    *total = fake_cuda_most;
    return *available = fake_cuda_most - fake_cuda_used, 0;
}

/* A block begins with its size. */
static void *take(size_t bytes) {
    size_t *p = malloc(bytes + 16);
    if (p) *p = bytes;
    return p ? (char *)p + 16 : NULL;
}
static size_t give(void *p) {
    size_t *block = (size_t *)(void *)((char *)p - 16), bytes = *block;
    free(block);
    return bytes;
}

DEFINE(cuMemAlloc_v2, (uint64_t *out, size_t bytes)) {
    int failed = result();
    if (!failed && bytes > fake_cuda_most - fake_cuda_used) failed = 2;
    if (failed) return failed;
    fake_cuda_used += bytes;
    return *out = (uint64_t)(uintptr_t)take(bytes), 0;
}
DEFINE(cuMemFree_v2, (uint64_t memory)) {
    fake_cuda_used -= give((void *)(uintptr_t)memory);
    return 0;
}
DEFINE(cuMemAllocHost_v2, (void **out, size_t bytes)) {
    int failed = result();
    return failed ? failed : (*out = take(bytes), 0);
}
DEFINE(cuMemFreeHost, (void *memory)) { return give(memory), 0; }
DEFINE(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream)) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return result();
}
DEFINE(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream)) {
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return result();
}
DEFINE(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream)) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return result();
}
DEFINE(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, void *stream)) {
    (void)stream;
    memset((void *)(uintptr_t)to, value, bytes);
    return result();
}
DEFINE(cuStreamCreate, (void **out, unsigned flags)) {
    (void)flags;
    return *out = (void *)1, result();
}
DEFINE(cuStreamDestroy_v2, (void *stream)) { return (void)stream, 0; }
DEFINE(cuStreamSynchronize, (void *stream)) { return (void)stream, result(); }
DEFINE(cuModuleLoadData, (void **out, const void *image)) {
    return *out = (void *)(uintptr_t)image, result();
}
DEFINE(cuModuleUnload, (void *module)) { return (void)module, 0; }
/* A function is a copy of its name. */
DEFINE(cuModuleGetFunction, (void **out, void *module, const char *name)) {
    static char names[512][48];
    (void)module; /* one that is not in a module may be in the next: no failure */
    for (int i = 0; i < 512; i++) {
        if (!names[i][0]) strncpy(names[i], name, sizeof names[i] - 1);
        if (strcmp(names[i], name) == 0) return *out = names[i], 0;
    }
    return 500;
}
DEFINE(cuFuncSetAttribute, (void *function, int attribute, int value)) {
    return (void)function, (void)attribute, (void)value, 0;
}

/* ---- launches ---- */

struct list {
    char *text;
    size_t bytes;
    int launches;
};
/* Name, grid and arguments of each launch, one after the other. */
CALL char *fake_cuda_trace;
CALL size_t fake_cuda_traced;
CALL int fake_cuda_graphs; /* that there are */
static struct list *recorded; /* while a stream is recorded */

static void append(char **text, size_t *bytes, const void *more, size_t n) {
    *text = realloc(*text, *bytes + n);
    memcpy(*text + *bytes, more, n);
    *bytes += n;
}

/* Bytes of the argument of a kernel. */
static size_t argument_bytes(const char *name) {
    static const struct { const char *begin; size_t bytes; } kernel[] = {
        {"attention_store", sizeof(struct cuda_store)},
        {"attention_", sizeof(struct cuda_attention)},
        {"combine", sizeof(struct cuda_combine)},
        {"embed", sizeof(struct cuda_embed)},
        {"glu_row", sizeof(struct cuda_glu_row)},
        {"group", sizeof(struct cuda_group)},
        {"halve", sizeof(struct cuda_halve)},
        {"index_", sizeof(struct cuda_index)},
        {"linear", sizeof(struct cuda_linear)},
        {"map", sizeof(struct cuda_map)},
        {"mma_experts_", sizeof(struct cuda_mma_experts)},
        {"mma_", sizeof(struct cuda_mma)},
        {"move", sizeof(struct cuda_move)},
        {"norm_row", sizeof(struct cuda_norm_row)},
        {"pack", sizeof(struct cuda_pack)},
        {"peak", sizeof(struct cuda_peak)},
        {"rope_store", sizeof(struct cuda_rope_store)},
        {"rope_table", sizeof(struct cuda_rope_table)},
        {"rope", sizeof(struct cuda_rope)},
        {"route_group", sizeof(struct cuda_route_group)},
        {"route", sizeof(struct cuda_route)},
        {"rows", sizeof(struct cuda_rows)},
        {"thin_", sizeof(struct cuda_linear)},
    };
    for (size_t i = 0; i < sizeof kernel / sizeof kernel[0]; i++)
        if (strncmp(name, kernel[i].begin, strlen(kernel[i].begin)) == 0) return kernel[i].bytes;
    return 0;
}

DEFINE(cuLaunchKernel,
       (void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void *stream, void **arguments, void **extra)) {
    (void)stream, (void)extra;
    const unsigned grid[] = {x, y, z, bx, by, bz, shared};
    const char *name = function;
    size_t bytes = argument_bytes(name);
    if (x == 0 || y == 0 || z == 0 || bx == 0 || bx > 1024 || y > 65535 || z > 65535) return 1;
    if (bytes == 0) return 1; /* a kernel that the table above lacks */
    struct list plain = {fake_cuda_trace, fake_cuda_traced, fake_cuda_launches};
    struct list *to = recorded ? recorded : &plain;
    append(&to->text, &to->bytes, name, strlen(name) + 1);
    append(&to->text, &to->bytes, grid, sizeof grid);
    append(&to->text, &to->bytes, arguments[0], bytes);
    to->launches++;
    if (!recorded) {
        fake_cuda_trace = plain.text;
        fake_cuda_traced = plain.bytes;
        fake_cuda_launches = plain.launches;
    }
    if (x * y * z > fake_cuda_largest_grid) fake_cuda_largest_grid = x * y * z;
    return result();
}

CALL int fake_cuda_overlapping; /* launches that may overlap; outside a recording they fail */
DEFINE(cuLaunchKernelEx,
       (const struct cuda_launch *how, void *function, void **arguments, void **extra)) {
    const struct cuda_launch_attribute *with = how->attribute;
    if (!recorded || how->attributes != 1 || with->id != 6 || with->value.allowed != 1) return 1;
    fake_cuda_overlapping++;
    return cuLaunchKernel(function, how->grid_x, how->grid_y, how->grid_z, how->block_x,
                          how->block_y, how->block_z, how->shared_bytes, how->stream, arguments,
                          extra);
}
CALL int fake_cuda_ptx = 90;
DEFINE(cuFuncGetAttribute, (int *value, int attribute, void *function)) {
    (void)function;
    return *value = attribute == 5 ? fake_cuda_ptx : 0, 0;
}

DEFINE(cuStreamBeginCapture_v2, (void *stream, int mode)) {
    (void)stream, (void)mode;
    int failed = result();
    if (!failed) recorded = calloc(1, sizeof *recorded);
    return failed;
}
DEFINE(cuStreamEndCapture, (void *stream, void **out)) {
    (void)stream;
    *out = recorded;
    recorded = NULL;
    return result();
}
/* The graph as it is, made from the list. */
DEFINE(cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags)) {
    (void)flags;
    int failed = result();
    if (failed) return failed;
    struct list *list = graph, *made = calloc(1, sizeof *made);
    append(&made->text, &made->bytes, list->text, list->bytes);
    made->launches = list->launches;
    fake_cuda_graphs++;
    fake_cuda_used += list->bytes;
    return *out = made, 0;
}
DEFINE(cuGraphLaunch, (void *graph, void *stream)) {
    (void)stream;
    struct list *list = graph;
    append(&fake_cuda_trace, &fake_cuda_traced, list->text, list->bytes);
    fake_cuda_launches += list->launches;
    return result();
}
DEFINE(cuGraphDestroy, (void *graph)) {
    struct list *list = graph;
    free(list->text);
    free(list);
    return 0;
}
DEFINE(cuGraphExecDestroy, (void *graph)) {
    fake_cuda_graphs--;
    fake_cuda_used -= ((struct list *)graph)->bytes;
    return cuGraphDestroy(graph);
}
