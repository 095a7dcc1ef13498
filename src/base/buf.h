/* SPDX-License-Identifier: Apache-2.0
 *
 * buf.h: a growing byte buffer. A failed append sets `failed`, keeps what was there and ignores
 * what follows, so callers check once at the end. Data is always terminated by a NUL that `n`
 * does not count. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *p;
    size_t n, cap;
    bool failed;
};
#define BUF_INIT {0}

bool buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, const void *data, size_t n);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_free(struct buf *buf);

#endif
