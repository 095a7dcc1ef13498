/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h: the file of a reference's distributions, between its reader and its writer. All numbers
 * are little-endian.
 *
 *   "1BITLPT\n"   8 bytes
 *   version, vocab, ctx, stride, chunks, rows   u32 each
 *   bos           i32, -1: none
 *   model         128 bytes, terminated
 *   text          u64, hash of the text
 *   tokens        u64, how many
 *   id            i32 [tokens]
 *   checksum      u64 of all before
 *   chunk         [chunks]: bytes u64, checksum u64 of them, then rows:
 *     count, top  u32; target f32
 *     listed      (vocab + 7) / 8 bytes, a bit a token
 *     code        u16 [count]
 *
 * A file may end between two chunks, or within one that was being written. */
#ifndef EVAL_TABLE_H
#define EVAL_TABLE_H

#include <string.h>

#include "eval/eval.h"

#define TABLE_MAGIC "1BITLPT\n"
enum {
    TABLE_VERSION = 1,
    TABLE_FIXED = 8 + 6 * 4 + 4 + 128 + 8 + 8, /* bytes before the tokens */
    TABLE_CHUNK = 16,                          /* bytes before a chunk's rows */
    TABLE_ROW = 12,
    TABLE_VOCAB_MAX = 1 << 24,
};

static inline uint64_t table_get(const uint8_t *p, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}
static inline uint8_t *table_set(uint8_t *p, size_t n, uint64_t x) {
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(x >> 8 * i);
    return p + n;
}

#endif
