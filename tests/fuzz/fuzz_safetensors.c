/* SPDX-License-Identifier: Apache-2.0
 * fuzz_safetensors.c: any bytes as a safetensors file; what opens is read to its last byte. */
#include <stdlib.h>

#include "base/base.h"
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct safetensors *st;
    ob_error error;
    volatile uint64_t sum = 0;
    if (safetensors_open_memory(bytes, size, "fuzz", &st, &error) != OB_OK) {
        if (st || !error.message[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < safetensors_tensor_count(st); i++) {
        const struct safetensors_tensor *t = safetensors_tensor_at(st, i);
        sum = sum + str_hash((struct str){t->data, t->bytes}) + str_hash(t->dtype);
        if (safetensors_tensor_find(st, t->name) != t) abort();
    }
    safetensors_close(&st);
    return 0;
}
