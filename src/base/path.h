/* SPDX-License-Identifier: Apache-2.0
 * path.h: names out of paths. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/str.h"

/* What people call the model at a path: its last part, without slashes at the end and without
 * ".gguf". Points into path. */
static inline struct str path_stem(const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    if (end - start > 5 && memcmp(path + end - 5, ".gguf", 5) == 0) end -= 5;
    return (struct str){path + start, end - start};
}

#endif
