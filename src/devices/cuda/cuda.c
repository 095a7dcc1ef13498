/* SPDX-License-Identifier: Apache-2.0
 * cuda.c: opening a GPU, its memory and buffers; see cuda.h. */
#include "devices/cuda/cuda.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static struct cuda_device *self(struct device *device) { return (void *)device; }

/* ---- failures ---- */

bool cuda_ok(struct cuda_device *d, CUresult result, const char *at) {
    if (result != 0 && d->failed == 0) {
        d->failed = result;
        d->at = at;
    }
    return result == 0;
}

ob_status cuda_report(struct cuda_device *d, ob_error *error) {
    enum { OUT_OF_MEMORY = 2 };
    if (d->failed == 0) return OB_OK;
    CUresult failed = d->failed;
    d->failed = 0;
    return error_set(error, failed == OUT_OF_MEMORY ? OB_ERR_MEMORY : OB_ERR_IO, "cuda: %s: %s",
                     d->at, cuda_error(d->driver, failed));
}

/* ---- what there is ---- */

static void describe_gpu(const struct cuda_driver *driver, uint32_t index, ob_device *out) {
    CUdevice device;
    char name[96] = "a GPU";
    int major = 0, minor = 0;
    size_t bytes = 0;
    if (driver->device(&device, (int)index) != 0) return;
    driver->device_name(name, sizeof name, device);
    driver->device_memory(&bytes, device);
    driver->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, device);
    driver->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, device);
    out->memory_total = out->memory_available = bytes;
    snprintf(out->text, sizeof out->text, "%s (sm_%d%d)%s", name, major, minor,
             cuda_has_graphs(driver) ? "" : "; no CUDA graphs: the driver is too old");
}

static void cuda_enumerate(uint32_t index, ob_device *out) {
    int count = 0;
    const struct cuda_driver *driver = cuda_driver(out->text, sizeof out->text);
    if (!cuda_images_exist())
        snprintf(out->text, sizeof out->text, "this program was built without nvcc");
    if (!driver || !cuda_images_exist()) return;
    if (driver->device_count(&count) != 0 || count == 0) {
        snprintf(out->text, sizeof out->text, "the NVIDIA driver finds no GPU");
        return;
    }
    out->count = (uint32_t)count;
    if (index < out->count) describe_gpu(driver, index, out);
}

/* Names those that there are. */
static ob_status refuse_index(uint32_t index, uint32_t count, ob_error *error) {
    char text[400] = "";
    for (uint32_t i = 0; i < count; i++) {
        ob_device one = {0};
        size_t n = strlen(text);
        cuda_enumerate(i, &one);
        snprintf(text + n, sizeof text - n, "%scuda:%u (%s)", i ? ", " : "", i, one.text);
    }
    error_set(error, OB_ERR_NOT_FOUND, "there is no cuda:%u; there %s: %s", index,
              count == 1 ? "is" : "are", text);
    error_at(error, NULL, "device", OB_NO_OFFSET);
    return OB_ERR_NOT_FOUND;
}

/* ---- open and close ---- */

static void cuda_close(struct device **device) {
    struct cuda_device *d = (void *)*device;
    if (!d) return;
    const struct cuda_driver *call = d->driver;
    if (d->context) {
        call->context_set(d->context);
        if (d->staging) call->host_free(d->staging);
        if (d->stream) call->stream_free(d->stream);
        for (uint32_t i = 0; i < d->modules; i++) call->module_unload(d->module[i]);
        call->context_set(NULL);
        call->context_release(d->device);
    }
    free(d->module);
    free(d);
    *device = NULL;
}

static bool open_context(struct cuda_device *d, int index) {
    const struct cuda_driver *call = d->driver;
    return cuda_ok(d, call->device(&d->device, index), "opening the GPU") &&
           cuda_ok(d, call->context_retain(&d->context, d->device), "opening the GPU") &&
           cuda_ok(d, call->context_set(d->context), "opening the GPU") &&
           cuda_ok(d, call->device_name(d->name, sizeof d->name, d->device), "its name") &&
           cuda_ok(d, call->stream_create(&d->stream, 1), "a stream") &&
           cuda_ok(d, call->host_alloc(&d->staging, CUDA_STAGING), "pinned memory");
}

static ob_status cuda_open(const struct device_options *options, struct device **out,
                           ob_error *error) {
    *out = NULL;
    ob_device have = {0};
    cuda_enumerate(0, &have);
    if (have.count == 0) return error_set(error, OB_ERR_NOT_FOUND, "no cuda device: %s", have.text);
    if (options->cpu_isa)
        return error_set(error, OB_ERR_ARGUMENT, "the cuda device takes no instruction set ('%s')",
                         options->cpu_isa);
    if (options->index >= have.count) return refuse_index(options->index, have.count, error);
    struct cuda_device *d = calloc(1, sizeof *d);
    if (!d) return error_memory(error, "a device", sizeof *d);
    *out = &d->base;
    d->base.type = &device_cuda;
    d->driver = cuda_driver(have.text, sizeof have.text);
    d->unfused = options->unfused;
    d->plain = options->plain || !cuda_has_graphs(d->driver);
    ob_status status = open_context(d, (int)options->index) ? OB_OK : cuda_report(d, error);
    if (status == OB_OK) status = cuda_images_load(d, error);
    if (status == OB_OK) d->overlaps = cuda_can_overlap(d);
    int shared = 0;
    if (d->context) d->driver->device_attribute(&shared, CUDA_ATTRIBUTE_SHARED_MOST, d->device);
    d->shared_most = (uint32_t)shared;
    if (status != OB_OK) cuda_close(out);
    return status;
}

static void cuda_describe(const struct device *device, char *text, size_t size) {
    const struct cuda_device *d = (const void *)device;
    if (d->device) snprintf(text, size, "cuda:%d (%s)", d->device, d->name);
    else snprintf(text, size, "cuda (%s)", d->name);
}

static void cuda_memory(const struct device *device, uint64_t *available, uint64_t *total) {
    const struct cuda_device *d = (const void *)device;
    size_t free_bytes = 0, all = 0;
    d->driver->context_set(d->context);
    d->driver->memory_info(&free_bytes, &all);
    *available = free_bytes;
    *total = all;
}

/* ---- memory ---- */

CUdeviceptr cuda_memory_new(struct cuda_device *d, size_t bytes) {
    CUdeviceptr p = 0;
    d->driver->context_set(d->context);
    if (!cuda_ok(d, d->driver->memory_alloc(&p, bytes ? bytes : 1), "memory")) return 0;
    cuda_ok(d, d->driver->fill(p, 0, bytes ? bytes : 1, d->stream), "memory");
    return p;
}

bool cuda_upload(struct cuda_device *d, CUdeviceptr to, const void *from, size_t bytes) {
    const struct cuda_driver *call = d->driver;
    bool good = cuda_ok(d, call->context_set(d->context), "upload");
    for (size_t at = 0; at < bytes && good; at += CUDA_STAGING) {
        size_t n = bytes - at < CUDA_STAGING ? bytes - at : CUDA_STAGING;
        memcpy(d->staging, (const char *)from + at, n);
        good = cuda_ok(d, call->upload(to + at, d->staging, n, d->stream), "upload") &&
               cuda_ok(d, call->stream_wait(d->stream), "upload");
    }
    return good;
}

static ob_status cuda_alloc(struct device *device, size_t bytes, struct device_buffer **out,
                            ob_error *error) {
    struct cuda_device *d = self(device);
    *out = NULL;
    struct device_buffer *b = calloc(1, sizeof *b);
    if (!b) return error_memory(error, "a buffer", sizeof *b);
    b->p = cuda_memory_new(d, bytes);
    b->bytes = bytes;
    if (!b->p) {
        free(b);
        cuda_report(d, NULL);
        return error_memory(error, "a buffer of the GPU", bytes);
    }
    *out = b;
    return cuda_report(d, error);
}

static void cuda_free(struct device *device, struct device_buffer **buffer) {
    struct cuda_device *d = self(device);
    if (!*buffer) return;
    d->driver->context_set(d->context);
    d->driver->memory_free((*buffer)->p);
    free(*buffer);
    *buffer = NULL;
}

static bool inside(const struct device_buffer *b, size_t offset, size_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static ob_status cuda_write(struct device *device, struct device_buffer *buffer, size_t offset,
                            const void *data, size_t bytes, ob_error *error) {
    assert(inside(buffer, offset, bytes));
    cuda_upload(self(device), buffer->p + offset, data, bytes);
    return cuda_report(self(device), error);
}

static ob_status cuda_read(struct device *device, struct device_buffer *buffer, size_t offset,
                           void *data, size_t bytes, ob_error *error) {
    struct cuda_device *d = self(device);
    assert(inside(buffer, offset, bytes));
    bool good = cuda_ok(d, d->driver->context_set(d->context), "download");
    for (size_t at = 0; at < bytes && good; at += CUDA_STAGING) {
        size_t n = bytes - at < CUDA_STAGING ? bytes - at : CUDA_STAGING;
        good = cuda_ok(d, d->driver->download(d->staging, buffer->p + offset + at, n, d->stream),
                       "download") &&
               cuda_ok(d, d->driver->stream_wait(d->stream), "download");
        if (good) memcpy((char *)data + at, d->staging, n);
    }
    return cuda_report(d, error);
}

static ob_status cuda_copy(struct device *device, struct device_buffer *buffer, size_t to,
                           size_t from, size_t bytes, ob_error *error) {
    struct cuda_device *d = self(device);
    assert(inside(buffer, to, bytes) && inside(buffer, from, bytes));
    d->driver->context_set(d->context);
    cuda_ok(d, d->driver->copy(buffer->p + to, buffer->p + from, bytes, d->stream), "a copy");
    return cuda_report(d, error);
}

const struct device_type device_cuda = {
    .name = "cuda",
    .enumerate = cuda_enumerate,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .memory = cuda_memory,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy,
    .weight_memory = cuda_weight_memory,
    .plan_memory = cuda_plan_bytes,
    .bind_weight = cuda_bind_weight,
    .unbind_weight = cuda_unbind_weight,
    .supports = cuda_supports,
    .kernel = cuda_kernel_text,
    .prepare = cuda_prepare,
    .release = cuda_release,
    .give = cuda_give,
    .run = cuda_run,
    .output = cuda_output,
};
