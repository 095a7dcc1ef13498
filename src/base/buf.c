/* SPDX-License-Identifier: Apache-2.0
 * buf.c: see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool buf_reserve(struct buf *buf, size_t more) {
    if (buf->failed) return false;
    if (buf->cap - buf->n > more) return true;
    if (more > SIZE_MAX / 4 - buf->n) return !(buf->failed = true);
    size_t cap = buf->cap ? buf->cap * 2 : 64;
    if (cap < buf->n + more + 1) cap = buf->n + more + 1;
    char *p = realloc(buf->p, cap);
    if (!p) return !(buf->failed = true);
    buf->p = p;
    buf->cap = cap;
    p[buf->n] = 0;
    return true;
}

void buf_add(struct buf *buf, const void *data, size_t n) {
    if (!buf_reserve(buf, n)) return;
    if (n) memcpy(buf->p + buf->n, data, n);
    buf->n += n;
    buf->p[buf->n] = 0;
}

void buf_puts(struct buf *buf, const char *text) { buf_add(buf, text, strlen(text)); }
void buf_putc(struct buf *buf, char c) { buf_add(buf, &c, 1); }

void buf_printf(struct buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !buf_reserve(buf, (size_t)n)) {
        buf->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(buf->p + buf->n, (size_t)n + 1, format, args);
    va_end(args);
    buf->n += (size_t)n;
}

void buf_clear(struct buf *buf) {
    buf->n = 0;
    buf->failed = false;
    if (buf->p) buf->p[0] = 0;
}

void buf_free(struct buf *buf) {
    free(buf->p);
    *buf = (struct buf)BUF_INIT;
}
