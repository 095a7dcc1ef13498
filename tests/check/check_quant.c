/* SPDX-License-Identifier: Apache-2.0
 *
 * check_quant.c: every format of the list against the goldens that the reference package made
 * (tools/make_quant_goldens.py describes the file): decode and encode bit for bit, and the integer
 * view that kernels use against decode. */
#include <string.h>

#include "check.h"
#include "quant/quant.h"

enum { MOST_WEIGHTS = 256, HEADER = 24 };

struct golden {
    uint32_t id, block, bytes, n_decode, n_encode;
    const char *raw, *hash, *x, *coded; /* blocks, hashes of their floats; floats, their blocks */
};

static struct golden read_golden(struct check_row *row, const struct quant *q) {
    struct golden g;
    char name[32] = "";
    for (size_t i = 0; q->name[i] && i + 1 < sizeof name; i++)
        name[i] = (char)(q->name[i] >= 'A' && q->name[i] <= 'Z' ? q->name[i] + 32 : q->name[i]);
    size_t n;
    char *file = check_file(row, check_golden(row, "quant/%s.bin", name), &n);
    if (n < HEADER || memcmp(file, "QGLD", 4) != 0) check_end(row, "%s.bin is no golden", name);
    memcpy(&g, file + 4, HEADER - 4);
    g.raw = file + HEADER;
    g.hash = g.raw + (size_t)g.bytes * g.n_decode;
    g.x = g.hash + 8 * (size_t)g.n_decode;
    g.coded = g.x + sizeof(float) * g.block * g.n_encode;
    if (g.coded + (size_t)g.bytes * g.n_encode != file + n)
        check_end(row, "%s.bin has %zu bytes, other than its header says", name, n);
    if (q->id != g.id || q->block != g.block || q->bytes != g.bytes)
        check_end(row, "id %u, %u weights in %u bytes; should be id %u, %u in %u", q->id, q->block,
                  q->bytes, g.id, g.block, g.bytes);
    return g;
}

/* A float's pattern, all NaN being one. */
static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return f != f ? 0x7fc00000 : u;
}

static uint64_t hash_of(const float *x, size_t n) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) h = (h ^ bits_of(x[i])) * 0x100000001b3;
    return h;
}

/* Twice: blocks up to a page that cannot be read, and blocks at an odd address. */
static void decode(struct check_row *row, const void *arg) {
    const struct quant *q = arg;
    struct golden g = read_golden(row, q);
    size_t bytes = (size_t)g.n_decode * q->bytes, n = (size_t)g.n_decode * q->block;
    for (size_t odd = 0; odd < 2; odd++) {
        char *raw = check_bytes(row, bytes + odd);
        raw += odd && (uintptr_t)raw % 2 == 0;
        memcpy(raw, g.raw, bytes);
        float *out = check_output(row, n);
        q->decode(raw, out, g.n_decode);
        for (size_t i = 0; i < g.n_decode; i++) {
            uint64_t want;
            memcpy(&want, g.hash + 8 * i, sizeof want);
            if (hash_of(out + i * q->block, q->block) != want)
                check_fail(row, "block %zu decodes to other floats: %a, ...", i,
                           (double)out[i * q->block]);
        }
    }
    check_compared(row, n, 0);
    check_note(row, "%u blocks, %zu weights, bit for bit", g.n_decode, n);
}

static bool same_code(const struct quant *q, const void *mine, const void *want) {
    if (memcmp(mine, want, q->bytes) == 0) return true;
    float a, b;
    if (q->block != 1) return false;
    q->decode(mine, &a, 1); /* float formats: any NaN for a NaN */
    q->decode(want, &b, 1);
    return bits_of(a) == bits_of(b);
}

static void encode(struct check_row *row, const void *arg) {
    const struct quant *q = arg;
    struct golden g = read_golden(row, q);
    size_t n = (size_t)g.n_encode * q->block;
    if (!q->encode || g.n_encode == 0)
        check_end(row, "%s encode, %u blocks in the golden", q->encode ? "an" : "no", g.n_encode);
    float *x = check_input(row, n, 0, 0);
    memcpy(x, g.x, n * sizeof *x);
    char *out = check_scratch(row, (size_t)g.n_encode * q->bytes);
    q->encode(x, out, g.n_encode);
    for (size_t i = 0; i < g.n_encode; i++)
        if (!same_code(q, out + i * q->bytes, g.coded + i * q->bytes))
            check_fail(row, "block %zu encodes to other bytes", i);
    check_compared(row, n, 0);
    check_note(row, "%u blocks, %zu weights, bit for bit", g.n_encode, n);
}

static void unpack_block(struct check_row *row, const struct quant *q, const char *block,
                         size_t at) {
    uint8_t code[MOST_WEIGHTS];
    float scale[MOST_WEIGHTS / 16], min[MOST_WEIGHTS / 16], x[MOST_WEIGHTS];
    q->decode(block, x, 1);
    q->unpack(block, code, scale, min);
    for (size_t i = 0; i < q->block; i++) {
        int centred = code[i] - q->offset;
        float w = scale[i / q->sub] * (float)centred;
        w = w - min[i / q->sub];
        if (centred < -128 || centred > 127)
            check_fail(row, "block %zu, weight %zu: %d is no 8-bit code", at, i, centred);
        if (bits_of(w) != bits_of(x[i]))
            check_fail(row, "block %zu, weight %zu: unpack gives %a, decode %a", at, i, (double)w,
                       (double)x[i]);
        if (!q->has_min && bits_of(min[i / q->sub]) != 0)
            check_fail(row, "block %zu: a minimum in a format without", at);
    }
}

static void unpack(struct check_row *row, const void *arg) {
    const struct quant *q = arg;
    struct golden g = read_golden(row, q);
    if (!q->unpack || (q->sub != 16 && q->sub != 32) || q->block % q->sub != 0 ||
        q->block > MOST_WEIGHTS)
        check_end(row, "%s unpack, sub-blocks of %u", q->unpack ? "an" : "no", q->sub);
    for (size_t i = 0; i < g.n_decode; i++) unpack_block(row, q, g.raw + i * q->bytes, i);
    size_t n = (size_t)g.n_decode * q->block;
    check_compared(row, n, 0);
    check_note(row, "%u blocks, %zu weights, bit for bit", g.n_decode, n);
}

/* Formats of blocks have an unpack; which have an encode the goldens know too. */
static void complete(struct check_row *row, const void *arg) {
    size_t encodes = 0, unpacks = 0;
    (void)arg;
    for (size_t k = 0; k < QUANT_COUNT; k++) {
        const struct quant *q = quant_list[k];
        struct golden g = read_golden(row, q);
        if ((q->encode != NULL) != (g.n_encode > 0))
            check_fail(row, "%s: encode without a golden, or a golden without", q->name);
        if ((q->unpack != NULL) != (q->block > 1))
            check_fail(row, "%s: unpack is there exactly for formats of blocks", q->name);
        encodes += q->encode != NULL;
        unpacks += q->unpack != NULL;
    }
    check_note(row, "%d formats, %zu with encode, %zu with unpack", QUANT_COUNT, encodes, unpacks);
}

void check_quant(struct check *check) {
    check_run(check, complete, NULL, "list");
    for (size_t k = 0; k < QUANT_COUNT; k++) {
        const struct quant *q = quant_list[k];
        check_run(check, decode, q, "decode.%s", q->name);
        if (q->encode) check_run(check, encode, q, "encode.%s", q->name);
        if (q->unpack) check_run(check, unpack, q, "unpack.%s", q->name);
    }
}
