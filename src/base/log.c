/* SPDX-License-Identifier: Apache-2.0
 * log.c: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int shown = LOG_WARN;

void log_set_level(enum log_level level) { atomic_store(&shown, (int)level); }

void log_line(enum log_level level, const char *format, ...) {
    static const char *const prefix[] = {"error: ", "warning: ", "", ""};
    if ((int)level > atomic_load(&shown)) return;
    char line[1024];
    int n = snprintf(line, sizeof line - 1, "1bit: %s", prefix[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - 1 - (size_t)n, format, args);
    va_end(args);
    if (m < 0) return;
    size_t len = (size_t)n + (size_t)m;
    if (len > sizeof line - 2) len = sizeof line - 2;
    line[len++] = '\n';
    fwrite(line, 1, len, stderr);
}
