/* SPDX-License-Identifier: Apache-2.0
 * tempdir.h: a directory for one test program, as cmocka's group setup and teardown; *state is its
 * path. */
#ifndef TESTS_TEMPDIR_H
#define TESTS_TEMPDIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"

static int tempdir_make(void **state) {
    static char path[] = "/tmp/1bit-test-XXXXXX";
    *state = mkdtemp(path);
    return *state ? 0 : -1;
}

/* Files and links only, no directories. */
static void tempdir_empty(const char *path) {
    char **name, file[512];
    size_t n;
    if (os_list_dir(path, &name, &n, NULL) != OB_OK) return;
    for (size_t i = 0; i < n; i++) {
        snprintf(file, sizeof file, "%s/%s", path, name[i]);
        unlink(file);
    }
    os_free_list(name, n);
}

static int tempdir_remove(void **state) {
    tempdir_empty(*state);
    return rmdir(*state);
}

static inline void tempdir_write(const char *path, const char *name, const void *data, size_t n) {
    char file[512];
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) abort();
}

#endif
