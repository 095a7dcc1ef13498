/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.c: libcuda.so.1 without a GPU, for test_cuda.c: memory is the host's, kernels are names
 * that are counted, and the next call of a kind can be made to fail. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
    return *value = attribute == 75 ? 9 : 0, 0;
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
DEFINE(cuModuleGetFunction, (void **out, void *module, const char *name)) {
    (void)module; /* one that is not in a module may be in the next: no failure */
    return *out = (void *)(uintptr_t)name, 0;
}
DEFINE(cuFuncSetAttribute, (void *function, int attribute, int value)) {
    return (void)function, (void)attribute, (void)value, 0;
}
DEFINE(cuLaunchKernel,
       (void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void *stream, void **arguments, void **extra)) {
    (void)function, (void)by, (void)bz, (void)shared, (void)stream, (void)arguments, (void)extra;
    if (x == 0 || y == 0 || z == 0 || bx == 0 || bx > 1024 || y > 65535 || z > 65535) return 1;
    fake_cuda_launches++;
    if (x * y * z > fake_cuda_largest_grid) fake_cuda_largest_grid = x * y * z;
    return result();
}
