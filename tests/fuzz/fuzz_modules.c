/* SPDX-License-Identifier: Apache-2.0
 * fuzz_modules.c: any bytes as a modules.json, and as the configuration of a module. */
#include <stdlib.h>
#include <string.h>

#include "format/hf_modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct str text = {(const char *)bytes, size};
    struct hf_modules modules;
    struct hf_dense dense;
    char poolings[HF_POOLINGS];
    if (hf_modules_parse(text, &modules, NULL) == OB_OK) {
        for (uint32_t i = 0; i < modules.denses; i++)
            if (modules.dense[i].folder[0] == '/' || strstr(modules.dense[i].folder, "..")) abort();
        if (modules.pooling[0] == '/' || strstr(modules.pooling, "..")) abort();
    }
    if (hf_pooling_parse(text, &modules, NULL) == OB_OK) {
        struct hf_modules again = {0};
        hf_poolings_text(&modules, poolings);
        if (!hf_poolings_of(str_of(poolings), &again) || again.pools != modules.pools) abort();
    }
    if (hf_dense_parse(text, &dense, NULL) == OB_OK && (dense.in == 0 || dense.out == 0)) abort();
    return 0;
}
