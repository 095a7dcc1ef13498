/* SPDX-License-Identifier: Apache-2.0
 * cpu.c: opening the cpu and ref devices, their buffers and weights; see cpu.h. */
#include "devices/cpu/cpu.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/os.h"

enum { THREADS_MAX = 1024 };

static const struct cpu_device *self(const struct device *device) { return (const void *)device; }

/* ---- open and close ---- */

static void machine(ob_device *out) {
    uint32_t cores = os_cores();
    out->count = 1;
    out->memory_total = os_memory_total();
    out->memory_available = os_memory_available();
    snprintf(out->text, sizeof out->text, "%u core%s", cores, cores == 1 ? "" : "s");
}

static void append(char *to, size_t size, const char *before, const char *text) {
    size_t n = strlen(to);
    snprintf(to + n, size - n, "%s%s", before, text);
}

static void cpu_enumerate(uint32_t index, ob_device *out) {
    (void)index;
    machine(out);
    append(out->text, sizeof out->text, ", ", cpu_isa_name(cpu_best()));
    if (cpu_best() == CPU_SCALAR)
        append(out->text, sizeof out->text, ": plain C, slow, for want of ", cpu_wants());
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const char *refusal = cpu_refusal((enum cpu_isa)isa);
        if (cpu_has((enum cpu_isa)isa))
            append(out->isa, sizeof out->isa, out->isa[0] ? " " : "",
                   cpu_isa_name((enum cpu_isa)isa));
        if (refusal) append(out->text, sizeof out->text, "; ", refusal);
    }
}

static void ref_enumerate(uint32_t index, ob_device *out) {
    (void)index;
    machine(out);
    append(out->text, sizeof out->text, ", ", "plain C in double precision: slow, for comparison");
}

static ob_status open_with(const struct device_type *type, const struct kernels *kernels,
                           const struct device_options *options, struct device **out,
                           ob_error *error) {
    *out = NULL;
    if (options->index > 0)
        return error_set(error, OB_ERR_NOT_FOUND, "there is only one %s device, number 0",
                         type->name);
    if (options->threads > THREADS_MAX) {
        error_set(error, OB_ERR_ARGUMENT, "%u, the most is %d", options->threads, THREADS_MAX);
        error_at(error, NULL, "threads", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    struct cpu_device *d = calloc(1, sizeof *d);
    if (!d) return error_memory(error, "a device", sizeof *d);
    d->base.type = type;
    d->kernels = kernels;
    d->threads = options->threads ? options->threads : os_cores();
    d->pool = pool_new(d->threads, options->threads ? options->cpu : NULL);
    if (!d->pool) {
        free(d);
        return error_set(error, OB_ERR_MEMORY, "cannot start %u threads", options->threads);
    }
    *out = &d->base;
    return OB_OK;
}

static ob_status find_isa(const char *name, enum cpu_isa *isa, ob_error *error) {
    *isa = cpu_best();
    if (!name) return OB_OK;
    if (!cpu_isa_find(name, isa))
        return error_set(error, OB_ERR_ARGUMENT,
                         "unknown instruction set '%s' (scalar, avx2, avxvnni, avx512, amx, neon, "
                         "i8mm)",
                         name);
    if (cpu_has(*isa)) return OB_OK;
    const char *refusal = cpu_refusal(*isa), *best = cpu_isa_name(cpu_best());
    if (refusal)
        error_set(error, OB_ERR_UNSUPPORTED, "%s; the best here is %s", refusal, best);
    else
        error_set(error, OB_ERR_UNSUPPORTED, "this processor does not have %s; its best is %s",
                  name, best);
    error_at(error, NULL, "cpu_isa", OB_NO_OFFSET);
    return OB_ERR_UNSUPPORTED;
}

static ob_status cpu_open(const struct device_options *options, struct device **out,
                          ob_error *error) {
    enum cpu_isa isa;
    *out = NULL;
    ob_status status = find_isa(options->cpu_isa, &isa, error);
    if (status != OB_OK) return status;
    return open_with(&device_cpu, kernels_table(isa), options, out, error);
}

static ob_status ref_open(const struct device_options *options, struct device **out,
                          ob_error *error) {
    *out = NULL;
    if (options->cpu_isa)
        return error_set(error, OB_ERR_ARGUMENT,
                         "the ref device is plain C: it takes no instruction set ('%s')",
                         options->cpu_isa);
    return open_with(&device_ref, kernels_ref(), options, out, error);
}

static void cpu_close(struct device **device) {
    struct cpu_device *d = (void *)*device;
    if (!d) return;
    pool_free(&d->pool);
    free(d);
    *device = NULL;
}

static void cpu_describe(const struct device *device, char *text, size_t size) {
    const struct cpu_device *d = self(device);
    snprintf(text, size, "%s (%s), %u thread%s", device->type->name, d->kernels->name, d->threads,
             d->threads == 1 ? "" : "s");
}

static void cpu_memory(const struct device *device, uint64_t *available, uint64_t *total) {
    (void)device;
    *available = os_memory_available();
    *total = os_memory_total();
}

/* ---- buffers ---- */

static ob_status cpu_alloc(struct device *device, size_t bytes, struct device_buffer **out,
                           ob_error *error) {
    (void)device;
    *out = NULL;
    struct device_buffer *b = malloc(sizeof *b);
    if (!b) return error_memory(error, "a buffer", sizeof *b);
    *b = (struct device_buffer){.p = os_reserve(bytes ? bytes : 1), .bytes = bytes};
    if (!b->p) {
        free(b);
        return error_memory(error, "a buffer", bytes);
    }
    *out = b;
    return OB_OK;
}

static void cpu_free(struct device *device, struct device_buffer **buffer) {
    (void)device;
    if (!*buffer) return;
    os_unreserve((*buffer)->p, (*buffer)->bytes ? (*buffer)->bytes : 1);
    free(*buffer);
    *buffer = NULL;
}

static bool inside(const struct device_buffer *b, size_t offset, size_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static ob_status cpu_write(struct device *device, struct device_buffer *buffer, size_t offset,
                           const void *data, size_t bytes, ob_error *error) {
    (void)device, (void)error;
    assert(inside(buffer, offset, bytes));
    memcpy((char *)buffer->p + offset, data, bytes);
    return OB_OK;
}

static ob_status cpu_read(struct device *device, struct device_buffer *buffer, size_t offset,
                          void *data, size_t bytes, ob_error *error) {
    (void)device, (void)error;
    assert(inside(buffer, offset, bytes));
    memcpy(data, (const char *)buffer->p + offset, bytes);
    return OB_OK;
}

static ob_status cpu_copy(struct device *device, struct device_buffer *buffer, size_t to,
                          size_t from, size_t bytes, ob_error *error) {
    (void)device, (void)error;
    assert(inside(buffer, to, bytes) && inside(buffer, from, bytes));
    memcpy((char *)buffer->p + to, (const char *)buffer->p + from, bytes);
    return OB_OK;
}

/* ---- weights: used as they lie in the file ---- */

static ob_status cpu_bind_weight(struct device *device, struct weight *weight, ob_error *error) {
    (void)device, (void)error;
    weight->bound = NULL;
    return OB_OK;
}

static void cpu_unbind_weight(struct device *device, struct weight *weight) {
    (void)device, (void)weight;
}

/* ---- the two devices ---- */

#define SHARED                                                                          \
    .close = cpu_close, .describe = cpu_describe, .memory = cpu_memory,                 \
    .alloc = cpu_alloc, .free = cpu_free, .write = cpu_write, .read = cpu_read,         \
    .copy = cpu_copy,                                                                   \
    .bind_weight = cpu_bind_weight, .unbind_weight = cpu_unbind_weight,                 \
    .supports = cpu_supports, .kernel = cpu_kernel,                                     \
    .prepare = cpu_prepare, .release = cpu_release, .give = cpu_give,            \
    .run = cpu_run, .output = cpu_output

const struct device_type device_cpu = {
    .name = "cpu", .enumerate = cpu_enumerate, .open = cpu_open, SHARED};
const struct device_type device_ref = {
    .name = "ref", .enumerate = ref_enumerate, .open = ref_open, SHARED};
