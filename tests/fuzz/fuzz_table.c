/* SPDX-License-Identifier: Apache-2.0
 * fuzz_table.c: any bytes as a table of log probabilities; what is found sound is read to its last
 * code. Checksums are made right first, or nothing else would ever be reached. */
#include <stdlib.h>

#include "eval/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void repair(uint8_t *p, size_t size) {
    if (size < TABLE_FIXED) return;
    uint64_t tokens = table_get(p + TABLE_FIXED - 8, 8);
    if (tokens > (size - TABLE_FIXED) / 4) return;
    size_t at = TABLE_FIXED + tokens * 4;
    if (size - at < 8) return;
    table_set(p + at, 8, eval_hash(p, at));
    at += 8;
    while (size - at >= TABLE_CHUNK) {
        uint64_t n = table_get(p + at, 8);
        if (n > size - at - TABLE_CHUNK) return;
        table_set(p + at + 8, 8, eval_hash(p + at + TABLE_CHUNK, n));
        at += TABLE_CHUNK + n;
    }
}

static void read_rows(struct eval_table *t) {
    const struct eval_table_head *head = eval_table_head(t);
    volatile uint64_t sum = 0;
    ob_error error;
    for (uint32_t chunk = 0; chunk < eval_table_chunks(t); chunk++) {
        if (eval_table_check(t, chunk, &error) != OB_OK) continue;
        for (uint32_t row = 0; row < head->chunks->rows; row++) {
            struct eval_table_row r;
            eval_table_row(t, chunk, row, &r);
            sum = sum + (uint64_t)eval_chunks_target(head->chunks, chunk, row) + r.top;
            for (uint32_t i = 0; i < r.count; i++) sum = sum + table_get(r.code + 2 * i, 2);
            for (uint32_t i = 0; i < (head->vocab + 7) / 8; i++) sum = sum + r.listed[i];
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct eval_table *t;
    ob_error error;
    uint8_t *copy = malloc(size + 1);
    if (!copy) return 0;
    if (size) memcpy(copy, bytes, size);
    repair(copy, size);
    if (eval_table_open_memory(copy, size, "fuzz", &t, &error) != OB_OK) {
        if (t || !error.message[0]) abort();
    } else {
        read_rows(t);
    }
    eval_table_close(&t);
    free(copy);
    return 0;
}
