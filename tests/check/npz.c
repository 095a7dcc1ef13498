/* SPDX-License-Identifier: Apache-2.0
 * npz.c: see npz.h. Layout: PKWARE's APPNOTE 4.3 (local headers one after the other, method 0) and
 * NumPy's format 1.0. */
#include "npz.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

static uint32_t u32(const char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint16_t u16(const char *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The member's bytes inside the file. */
static const char *member(const char *zip, size_t n, const char *name, size_t *size) {
    size_t want = strlen(name);
    for (size_t at = 0; at + 30 <= n && u32(zip + at) == 0x04034b50;) {
        const char *h = zip + at;
        size_t name_n = u16(h + 26), extra_n = u16(h + 28), bytes = u32(h + 18);
        if (bytes == UINT32_MAX) { /* zip64, as numpy writes it: sizes in the extra field */
            uint64_t big;
            memcpy(&big, h + 30 + name_n + 4, sizeof big);
            bytes = (size_t)big;
        }
        const char *data = h + 30 + name_n + extra_n;
        if (name_n == want + 4 && memcmp(h + 30, name, want) == 0) return *size = bytes, data;
        at = (size_t)(data - zip) + bytes;
    }
    return NULL;
}

void *npz_read(const char *path, const char *name, size_t *count, size_t *size) {
    char *zip, *out = NULL;
    size_t n, bytes;
    if (os_read_file(path, 1u << 30, &zip, &n, NULL) != OB_OK) return NULL;
    const char *npy = member(zip, n, name, &bytes);
    if (npy && bytes > 10) {
        size_t header = 10 + u16(npy + 8);
        const char *descr = strstr(npy + 10, "'descr': '<");
        *size = descr ? (size_t)(descr[12] - '0') : 0;
        if (*size) *count = (bytes - header) / *size;
        if (*size && (out = malloc(bytes))) memcpy(out, npy + header, bytes - header);
    }
    free(zip);
    return out;
}
