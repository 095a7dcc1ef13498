/* SPDX-License-Identifier: Apache-2.0
 * fuzz_modules.c: any bytes as a modules.json, and as the configuration of a pooling. */
#include <stdlib.h>
#include <string.h>

#include "format/hf_modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct str text = {(const char *)bytes, size};
    struct hf_pooling pooling;
    char *path;
    ob_status status = hf_modules_parse(text, &pooling, &path, NULL);
    if (path && (path[0] == '/' || strstr(path, ".."))) abort();
    if (status == OB_OK && pooling.found != (path != NULL)) abort();
    free(path);
    if (hf_pooling_parse(text, &pooling, NULL) == OB_OK && pooling.kind >= POOL_KINDS) abort();
    return 0;
}
