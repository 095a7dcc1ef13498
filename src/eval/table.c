/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: reading the file of table.h, which may hold any bytes: the head is checked when it is
 * opened, each chunk before it is used; what then is handed out lies inside the file. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"
#include "eval/table.h"

/* Chunks whose rows can be asked for: as many as run together at most. */
enum { RING = 8 };

struct eval_table {
    struct map map; /* zeroed if the bytes are borrowed */
    const char *name;
    const uint8_t *p;
    size_t size;
    struct eval_table_head head;
    struct eval_chunks chunks;
    uint32_t there;     /* chunks in the file */
    uint64_t end;       /* of the last of them */
    uint64_t *chunk_at; /* [there]: their first rows */
    uint64_t *row_at;   /* [RING][rows]: of the chunks checked last, chunk c in place c % RING */
};

uint64_t eval_hash(const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    uint64_t lane[4] = {n, 1, 2, 3}, h = 0;
    for (; n >= 32; n -= 32, p += 32)
        for (size_t i = 0; i < 4; i++) {
            uint64_t word;
            memcpy(&word, p + 8 * i, 8);
            lane[i] = (lane[i] ^ word) * 0x9e3779b97f4a7c15u;
            lane[i] ^= lane[i] >> 29;
        }
    for (size_t i = 0; i < n; i++) lane[i % 4] = (lane[i % 4] ^ p[i]) * 0x100000001b3u;
    for (size_t i = 0; i < 4; i++) {
        h = (h ^ lane[i]) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 32;
    }
    return h;
}

double eval_table_log(uint32_t code) {
    double root = (double)code / 65535;
    return EVAL_TABLE_FLOOR * root * root;
}

/* ---- the head -------------------------------------------------------------------------------- */

static ob_status bad(const struct eval_table *t, const char *what, uint64_t offset,
                     ob_error *error) {
    error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, t->name, NULL, offset);
    return OB_ERR_FORMAT;
}

static bool sizes_fit(const struct eval_table *t) {
    const struct eval_chunks *c = &t->chunks;
    if (t->head.vocab == 0 || t->head.vocab > TABLE_VOCAB_MAX) return false;
    if (c->ctx < EVAL_CTX_MIN || c->ctx > EVAL_CTX_MAX || c->stride >= c->ctx) return false;
    if (c->rows != (c->stride ? c->stride : c->ctx - 1 - c->ctx / 2) || c->chunks == 0)
        return false;
    uint64_t step = c->stride ? c->stride : c->ctx;
    return (c->chunks - 1) * step + c->ctx <= c->n; /* 32-bit factors */
}

static ob_status read_head(struct eval_table *t, ob_error *error) {
    const uint8_t *p = t->p + 8;
    struct eval_chunks *c = &t->chunks;
    if (t->size < TABLE_FIXED || memcmp(t->p, TABLE_MAGIC, 8) != 0)
        return bad(t, "this is no table of log probabilities", 0, error);
    if (table_get(p, 4) != TABLE_VERSION) return bad(t, "a table of another version", 8, error);
    t->head.vocab = (uint32_t)table_get(p + 4, 4);
    c->ctx = (uint32_t)table_get(p + 8, 4);
    c->stride = (uint32_t)table_get(p + 12, 4);
    c->chunks = (uint32_t)table_get(p + 16, 4);
    c->rows = (uint32_t)table_get(p + 20, 4);
    c->bos = (int32_t)(uint32_t)table_get(p + 24, 4);
    memcpy(t->head.model, p + 28, sizeof t->head.model);
    t->head.text = table_get(p + 156, 8);
    uint64_t tokens = table_get(p + 164, 8);
    if (!memchr(t->head.model, 0, sizeof t->head.model))
        return bad(t, "the model's name has no end", 8 + 28, error);
    if (tokens > (t->size - TABLE_FIXED) / 4 || t->size - TABLE_FIXED - tokens * 4 < 8)
        return bad(t, "the file ends within the tokens", t->size, error);
    c->n = tokens;
    if (!sizes_fit(t)) return bad(t, "sizes in the head contradict each other", 8, error);
    size_t end = TABLE_FIXED + tokens * 4;
    if (table_get(t->p + end, 8) != eval_hash(t->p, end))
        return bad(t, "the head's checksum is wrong", end, error);
    if (c->bos < -1 || c->bos >= (int64_t)t->head.vocab)
        return bad(t, "BOS is outside the vocabulary", 8 + 24, error);
    if (!(c->id = malloc(tokens * sizeof *c->id))) return error_memory(error, "tokens", tokens * 4);
    for (size_t i = 0; i < tokens; i++) {
        uint32_t id = (uint32_t)table_get(t->p + TABLE_FIXED + i * 4, 4);
        if (id >= t->head.vocab)
            return bad(t, "a token is outside the vocabulary", TABLE_FIXED + i * 4, error);
        c->id[i] = (int32_t)id;
    }
    return OB_OK;
}

/* Finds the chunks by their sizes; the last may be torn. */
static ob_status find_chunks(struct eval_table *t, ob_error *error) {
    uint64_t at = TABLE_FIXED + (uint64_t)t->chunks.n * 4 + 8;
    uint64_t least = (uint64_t)t->chunks.rows * (TABLE_ROW + (t->head.vocab + 7) / 8);
    uint64_t most = (t->size - at) / (TABLE_CHUNK + least); /* chunks that the bytes may hold */
    if (most > t->chunks.chunks) most = t->chunks.chunks;
    t->chunk_at = malloc((most + 1) * sizeof *t->chunk_at);
    t->row_at = calloc(RING * (size_t)t->chunks.rows, sizeof *t->row_at);
    if (!t->chunk_at || !t->row_at) return error_memory(error, "a table", most);
    while (t->there < most && t->size - at >= TABLE_CHUNK) {
        uint64_t bytes = table_get(t->p + at, 8);
        if (bytes < least) return bad(t, "a chunk is too short", at, error);
        if (bytes > t->size - at - TABLE_CHUNK) break;
        t->chunk_at[t->there++] = at + TABLE_CHUNK;
        at += TABLE_CHUNK + bytes;
    }
    t->end = at;
    if (t->there == t->chunks.chunks && at != t->size)
        return bad(t, "bytes behind the last chunk", at, error);
    return OB_OK;
}

static ob_status open_bytes(struct eval_table *t, ob_error *error) {
    t->head.chunks = &t->chunks;
    ob_status s = read_head(t, error);
    return s == OB_OK ? find_chunks(t, error) : s;
}

ob_status eval_table_open_memory(const void *bytes, size_t size, const char *name,
                                 struct eval_table **out, ob_error *error) {
    *out = NULL;
    struct eval_table *t = calloc(1, sizeof *t);
    if (!t) return error_memory(error, "a table", sizeof *t);
    t->p = bytes;
    t->size = size;
    t->name = name;
    ob_status s = open_bytes(t, error);
    if (s != OB_OK) eval_table_close(&t);
    *out = t;
    return s;
}

ob_status eval_table_open(const char *path, struct eval_table **out, ob_error *error) {
    *out = NULL;
    struct eval_table *t = calloc(1, sizeof *t);
    if (!t) return error_memory(error, "a table", sizeof *t);
    ob_status s = map_open(path, &t->map, error);
    t->p = t->map.p;
    t->size = t->map.size;
    t->name = t->map.path;
    if (s == OB_OK) s = open_bytes(t, error);
    if (s != OB_OK) eval_table_close(&t);
    *out = t;
    return s;
}

void eval_table_close(struct eval_table **table) {
    struct eval_table *t = *table;
    if (!t) return;
    map_close(&t->map);
    eval_chunks_free(&t->chunks);
    free(t->chunk_at);
    free(t->row_at);
    free(t);
    *table = NULL;
}

const struct eval_table_head *eval_table_head(const struct eval_table *t) { return &t->head; }
uint32_t eval_table_chunks(const struct eval_table *t) { return t->there; }
uint64_t eval_table_size(const struct eval_table *t) { return t->end; }

/* ---- chunks ---------------------------------------------------------------------------------- */

static uint32_t ones(uint8_t byte) { return (uint32_t)__builtin_popcount(byte); }

/* A row that starts at `at` and ends before `end`: its size, or 0 with *what. */
static uint64_t check_row(const struct eval_table *t, uint64_t at, uint64_t end,
                          const char **what) {
    uint32_t vocab = t->head.vocab, bytes = (vocab + 7) / 8, count = 0;
    *what = "a row is cut off";
    if (end - at < TABLE_ROW + (uint64_t)bytes) return 0;
    const uint8_t *p = t->p + at, *bits = p + TABLE_ROW;
    for (uint32_t i = 0; i < bytes; i++) count += ones(bits[i]);
    uint64_t size = TABLE_ROW + (uint64_t)bytes + 2 * (uint64_t)count;
    if (end - at < size) return 0;
    *what = "a row's count is not that of its bits";
    if (count != table_get(p, 4) || (vocab % 8 && bits[bytes - 1] >> vocab % 8)) return 0;
    *what = "a row's most likely token is outside the vocabulary";
    if (table_get(p + 4, 4) >= vocab) return 0;
    struct eval_table_row row;
    uint32_t word = (uint32_t)table_get(p + 8, 4);
    memcpy(&row.target, &word, 4);
    *what = "a row's log probability is none";
    return isfinite(row.target) && row.target <= 0 ? size : 0;
}

ob_status eval_table_check(struct eval_table *t, uint32_t chunk, ob_error *error) {
    if (chunk >= t->there)
        return bad(t, "the table ends before this chunk: its making was interrupted", t->size,
                   error);
    uint64_t at = t->chunk_at[chunk], bytes = table_get(t->p + at - TABLE_CHUNK, 8);
    uint64_t end = at + bytes, *row_at = t->row_at + (size_t)(chunk % RING) * t->chunks.rows;
    if (table_get(t->p + at - 8, 8) != eval_hash(t->p + at, bytes))
        return bad(t, "a chunk's checksum is wrong", at - TABLE_CHUNK, error);
    for (uint32_t row = 0; row < t->chunks.rows; row++) {
        const char *what;
        uint64_t size = check_row(t, at, end, &what);
        if (size == 0) return bad(t, what, at, error);
        row_at[row] = at;
        at += size;
    }
    return at == end ? OB_OK : bad(t, "bytes behind a chunk's rows", at, error);
}

void eval_table_row(const struct eval_table *t, uint32_t chunk, uint32_t row,
                    struct eval_table_row *out) {
    const uint8_t *p = t->p + t->row_at[(size_t)(chunk % RING) * t->chunks.rows + row];
    uint32_t word = (uint32_t)table_get(p + 8, 4);
    out->count = (uint32_t)table_get(p, 4);
    out->top = (uint32_t)table_get(p + 4, 4);
    memcpy(&out->target, &word, 4);
    out->listed = p + TABLE_ROW;
    out->code = out->listed + (t->head.vocab + 7) / 8;
}
