/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h: the part of the CUDA driver API that we call, opened at run time: nothing is linked,
 * and the same program runs where there is no driver. Names, numbers and signatures are NVIDIA's
 * (CUDA Driver API reference, 12.0: its oldest names of today's versions). */
#ifndef DEVICES_CUDA_DRIVER_H
#define DEVICES_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUstream_st *CUstream;

enum { CUDA_OLDEST_DRIVER = 12000 }; /* as cuDriverGetVersion counts: 1000 * major + 10 * minor */

enum cuda_attribute {
    CUDA_ATTRIBUTE_PROCESSORS = 16,
    CUDA_ATTRIBUTE_MAJOR = 75,
    CUDA_ATTRIBUTE_MINOR = 76,
    CUDA_ATTRIBUTE_SHARED_MOST = 97, /* bytes that a block may be allowed */
};
enum { CUDA_FUNCTION_SHARED_MAX = 8 };
enum { CUDA_CAPTURE_THREAD = 1 }; /* other threads may do what they like meanwhile */

/* F(result, name in our table, name of the symbol, parameters) */
#define CUDA_CALLS(F)                                                                          \
    F(CUresult, init, cuInit, (unsigned flags))                                                \
    F(CUresult, version, cuDriverGetVersion, (int *version))                                   \
    F(CUresult, error_text, cuGetErrorString, (CUresult error, const char **text))             \
    F(CUresult, device_count, cuDeviceGetCount, (int *count))                                  \
    F(CUresult, device, cuDeviceGet, (CUdevice *device, int ordinal))                          \
    F(CUresult, device_name, cuDeviceGetName, (char *name, int size, CUdevice device))         \
    F(CUresult, device_memory, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))          \
    F(CUresult, device_attribute, cuDeviceGetAttribute,                                        \
      (int *value, int attribute, CUdevice device))                                            \
    F(CUresult, context_retain, cuDevicePrimaryCtxRetain,                                      \
      (CUcontext *context, CUdevice device))                                                   \
    F(CUresult, context_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))              \
    F(CUresult, context_set, cuCtxSetCurrent, (CUcontext context))                             \
    F(CUresult, memory_info, cuMemGetInfo_v2, (size_t *available, size_t *total))              \
    F(CUresult, memory_alloc, cuMemAlloc_v2, (CUdeviceptr *out, size_t bytes))                 \
    F(CUresult, memory_free, cuMemFree_v2, (CUdeviceptr memory))                               \
    F(CUresult, host_alloc, cuMemAllocHost_v2, (void **out, size_t bytes))                     \
    F(CUresult, host_free, cuMemFreeHost, (void *memory))                                      \
    F(CUresult, upload, cuMemcpyHtoDAsync_v2,                                                  \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                       \
    F(CUresult, download, cuMemcpyDtoHAsync_v2,                                                \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                             \
    F(CUresult, copy, cuMemcpyDtoDAsync_v2,                                                    \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                       \
    F(CUresult, fill, cuMemsetD8Async,                                                         \
      (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                    \
    F(CUresult, stream_create, cuStreamCreate, (CUstream *out, unsigned flags))                \
    F(CUresult, stream_free, cuStreamDestroy_v2, (CUstream stream))                            \
    F(CUresult, stream_wait, cuStreamSynchronize, (CUstream stream))                           \
    F(CUresult, module_load, cuModuleLoadData, (CUmodule *out, const void *image))             \
    F(CUresult, module_unload, cuModuleUnload, (CUmodule module))                              \
    F(CUresult, module_function, cuModuleGetFunction,                                          \
      (CUfunction *out, CUmodule module, const char *name))                                    \
    F(CUresult, function_set, cuFuncSetAttribute,                                              \
      (CUfunction function, int attribute, int value))                                         \
    F(CUresult, launch, cuLaunchKernel,                                                        \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                 \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,            \
       CUstream stream, void **arguments, void **extra))

/* The same of those that a driver may lack: then NULL. */
#define CUDA_GRAPH_CALLS(F)                                                                    \
    F(CUresult, capture_begin, cuStreamBeginCapture_v2, (CUstream stream, int mode))           \
    F(CUresult, capture_end, cuStreamEndCapture, (CUstream stream, CUgraph *out))              \
    F(CUresult, graph_make, cuGraphInstantiateWithFlags,                                       \
      (CUgraphExec *out, CUgraph graph, unsigned long long flags))                             \
    F(CUresult, graph_launch, cuGraphLaunch, (CUgraphExec graph, CUstream stream))             \
    F(CUresult, graph_free, cuGraphDestroy, (CUgraph graph))                                   \
    F(CUresult, graph_unmake, cuGraphExecDestroy, (CUgraphExec graph))

/* And those that let a kernel begin before the last one ends; from 12.3 on they can be recorded. */
#define CUDA_OVERLAP_CALLS(F)                                                                  \
    F(CUresult, launch_with, cuLaunchKernelEx,                                                 \
      (const struct cuda_launch *how, CUfunction function, void **arguments, void **extra))    \
    F(CUresult, function_get, cuFuncGetAttribute, (int *value, int attribute, CUfunction function))
enum { CUDA_OVERLAP_DRIVER = 12030 };
enum { CUDA_FUNCTION_PTX = 5 };   /* 10 * major + minor of what the function was compiled for */
enum { CUDA_LAUNCH_OVERLAPS = 6 };

struct cuda_launch_attribute {
    int id, padding;
    union { int allowed; char size[64]; } value;
};
struct cuda_launch {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    struct cuda_launch_attribute *attribute;
    unsigned attributes;
};

struct cuda_driver {
#define MEMBER(result, name, symbol, parameters) result(*name) parameters;
    CUDA_CALLS(MEMBER)
    CUDA_GRAPH_CALLS(MEMBER)
    CUDA_OVERLAP_CALLS(MEMBER)
#undef MEMBER
};

/* The driver, initialized; NULL and in `why` one line where there is none that serves. Opened once
 * a process, thread safe. */
const struct cuda_driver *cuda_driver(char *why, size_t size);
/* What the driver calls an error; never NULL. */
const char *cuda_error(const struct cuda_driver *driver, CUresult result);

#endif
