/* SPDX-License-Identifier: Apache-2.0
 * memory.c: does it all fit into the memory of a device that has its own? Said before anything goes
 * there, in figures. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/internal.h"

uint64_t engine_device_weights(const struct engine *e) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; e->type->weight_memory && i < e->model->weights; i++)
        bytes += e->type->weight_memory(e->device, e->model->weight[i]);
    return bytes;
}

uint64_t engine_device_plan(const struct engine *e, const uint64_t *group_bytes) {
    if (!e->type->plan_memory) return 0;
    const struct device_kv kv = {.type = e->kv_type, .page_bytes = e->group_page_bytes};
    return e->type->plan_memory(e->device, &e->model->graph, &kv, group_bytes, e->step_tokens,
                                e->step_logits);
}

static const char *size(uint64_t bytes, char out[24]) {
    const double mib = (double)bytes / (1 << 20);
    if (mib < 1024) snprintf(out, 24, "%.1f MiB", mib);
    else snprintf(out, 24, "%.2f GiB", mib / 1024);
    return out;
}

ob_status engine_check_memory(const struct engine *e, const uint64_t *group_bytes,
                              ob_error *error) {
    if (!e->type->weight_memory) return OB_OK;
    uint64_t available, total, kv = 0;
    for (uint32_t g = 0; g < e->groups; g++) kv += group_bytes[g];
    uint64_t weights = engine_device_weights(e), steps = engine_device_plan(e, group_bytes);
    e->type->memory(e->device, &available, &total);
    char a[24], b[24], c[24], d[24], sum[24], text[400];
    /* Each is less than the whole, so that the sum cannot wrap. */
    bool fits = weights <= available && kv <= available && steps <= available &&
                weights + kv + steps <= available;
    snprintf(text, sizeof text,
             "weights of %s, KV memory of %s for %" PRIu64 " tokens, %s for steps of %u tokens: %s "
             "of the %s that %s has free",
             size(weights, a), size(kv, b), e->capacity, size(steps, c), e->step_tokens,
             size(weights + kv + steps, sum), size(available, d), e->describe);
    if (fits) {
        log_info("%s", text);
        return OB_OK;
    }
    const char *help = weights > available
                           ? "a model of fewer weights, or of fewer bits, would fit"
                           : "less kv_memory, context, parallel or step_tokens may fit";
    return error_set(error, OB_ERR_MEMORY, "%s; %s", text, help);
}
