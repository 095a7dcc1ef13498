/* SPDX-License-Identifier: Apache-2.0
 * driver.c: finding the driver; see driver.h. */
#include "devices/cuda/driver.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

#ifndef CUDA_LIBRARY
#define CUDA_LIBRARY "libcuda.so.1"
#endif

static struct {
    struct cuda_driver calls;
    bool found;
    char why[128];
} driver;

static bool find_calls(void *library) {
#define FIND(result, name, symbol, parameters)                                     \
    {                                                                              \
        void *at = os_library_symbol(library, #symbol);                            \
        if (!at) {                                                                 \
            snprintf(driver.why, sizeof driver.why,                                \
                     "the NVIDIA driver is too old: it has no " #symbol);          \
            return false;                                                          \
        }                                                                          \
        memcpy(&driver.calls.name, &at, sizeof at);                                \
    }
    CUDA_CALLS(FIND)
#undef FIND
#define FIND(result, name, symbol, parameters)                                     \
    {                                                                              \
        void *at = os_library_symbol(library, #symbol);                            \
        memcpy(&driver.calls.name, &at, sizeof at);                                \
    }
    CUDA_GRAPH_CALLS(FIND)
    CUDA_OVERLAP_CALLS(FIND)
#undef FIND
    return true;
}

static bool serves(void) {
    int version = 0;
    CUresult result = driver.calls.init(0);
    if (result == 0) result = driver.calls.version(&version);
    if (result != 0) {
        snprintf(driver.why, sizeof driver.why, "the NVIDIA driver says: %s",
                 cuda_error(&driver.calls, result));
        return false;
    }
    if (version >= CUDA_OLDEST_DRIVER) return true;
    snprintf(driver.why, sizeof driver.why,
             "the NVIDIA driver is too old: it knows CUDA %d.%d, we need %d.%d", version / 1000,
             version % 1000 / 10, CUDA_OLDEST_DRIVER / 1000, CUDA_OLDEST_DRIVER % 1000 / 10);
    return false;
}

static void open_driver(void) {
    void *library = os_library_open(CUDA_LIBRARY);
    if (!library)
        snprintf(driver.why, sizeof driver.why, "there is no NVIDIA driver (no " CUDA_LIBRARY ")");
    else driver.found = find_calls(library) && serves();
}

const struct cuda_driver *cuda_driver(char *why, size_t size) {
    static os_once once = OS_ONCE_INIT;
    os_call_once(&once, open_driver);
    if (driver.found) return &driver.calls;
    snprintf(why, size, "%s", driver.why);
    return NULL;
}

const char *cuda_error(const struct cuda_driver *calls, CUresult result) {
    const char *text = NULL;
    if (calls->error_text(result, &text) != 0 || !text) return "an unknown error";
    return text;
}
