/* SPDX-License-Identifier: Apache-2.0
 * tok_charsmap.c: see tok_charsmap.h. */
#include "text/tok_charsmap.h"

#include <utf8proc.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/base64.h"
#include "text/tok_normal.h"

enum { CLUSTER_MOST = 6 }; /* bytes: longer clusters are looked at by character alone */

struct charsmap {
    uint32_t *unit;
    size_t units;
    struct str replacement; /* ends with a NUL */
    bool clusters;
};

static uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

/* What replaces the shortest or longest beginning of the text that has a rule; *n: its length. */
static bool find(const struct charsmap *map, struct str text, bool longest, struct str *to,
                 size_t *n) {
    bool found = false;
    if (map->units == 0) return false;
    uint32_t at = offset_of(map->unit[0]);
    for (size_t i = 0; i < text.n; i++) {
        uint32_t byte = (unsigned char)text.p[i];
        at ^= byte;
        if (byte == 0 || at >= map->units) break;
        uint32_t unit = map->unit[at];
        if ((unit & (1u << 31 | 0xff)) != byte) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->units) break;
        uint32_t value = map->unit[at] & ((1u << 31) - 1);
        if (value >= map->replacement.n) break;
        *to = str_of(map->replacement.p + value);
        *n = i + 1;
        found = true;
        if (!longest) break;
    }
    return found;
}

/* ---- opening ---- */

ob_status charsmap_open(struct str bytes, bool clusters, struct arena *arena,
                        struct charsmap **out, ob_error *error) {
    struct charsmap *map = *out = arena_alloc(arena, sizeof *map);
    if (!map) return error_memory(error, "precompiled_charsmap", sizeof *map);
    map->clusters = clusters;
    if (bytes.n == 0) return OB_OK;
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t size = bytes.n < 4 ? SIZE_MAX
                              : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (size > bytes.n - 4 || size % 4 || (size < bytes.n - 4 && bytes.p[bytes.n - 1] != 0))
        return error_set(error, OB_ERR_FORMAT, "precompiled_charsmap is cut short");
    map->units = size / 4;
    map->unit = arena_array(arena, map->units, 4);
    char *rest = arena_copy(arena, bytes.p + 4 + size, bytes.n - 4 - size);
    if (!map->unit || !rest) return error_memory(error, "precompiled_charsmap", bytes.n);
    p += 4;
    for (size_t i = 0; i < map->units; i++, p += 4)
        map->unit[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    map->replacement = (struct str){rest, bytes.n - 4 - size};
    return OB_OK;
}

ob_status charsmap_base64(struct str text, bool clusters, struct arena *arena,
                          struct charsmap **out, ob_error *error) {
    char *bytes = arena_alloc(arena, text.n / 4 * 3 + 3);
    if (!bytes) return error_memory(error, "precompiled_charsmap", text.n);
    size_t n;
    if (!base64_decode(text, bytes, &n))
        return error_set(error, OB_ERR_FORMAT, "precompiled_charsmap is no base64");
    return charsmap_open((struct str){bytes, n}, clusters, arena, out, error);
}

/* ---- applying ---- */

static void put(struct normal_text *out, struct str text, uint8_t trust) {
    buf_add(&out->text, text.p, text.n);
    for (size_t i = 0; i < text.n; i++) buf_putc(&out->trust, (char)trust);
}

static uint8_t all_of(const uint8_t *trust, size_t n) {
    uint8_t all = 1;
    for (size_t i = 0; i < n; i++) all &= trust[i] != 0;
    return all;
}

static void by_longest(const struct charsmap *map, struct str in, const uint8_t *trust,
                       struct normal_text *out) {
    for (size_t at = 0, n; at < in.n; at += n) {
        struct str rest = {in.p + at, in.n - at}, to;
        if (!find(map, rest, true, &to, &n)) {
            uint32_t code;
            n = utf8_decode(rest.p, rest.n, &code);
            to = code == UTF8_BAD ? STR_LIT("\xef\xbf\xbd") : (struct str){rest.p, n};
        }
        put(out, to, all_of(trust + at, n));
    }
}

/* The end of the grapheme cluster at `at`. */
static size_t cluster_end(struct str in, size_t at) {
    utf8proc_int32_t state = 0;
    uint32_t code, next;
    size_t end = at + utf8_decode(in.p + at, in.n - at, &code);
    while (end < in.n) {
        size_t n = utf8_decode(in.p + end, in.n - end, &next);
        if (code == UTF8_BAD || next == UTF8_BAD ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state))
            break;
        code = next;
        end += n;
    }
    return end;
}

/* A rule for the beginning of a cluster or character replaces all of it: so the reference does. */
static void by_clusters(const struct charsmap *map, struct str in, const uint8_t *trust,
                        struct normal_text *out) {
    size_t n;
    struct str to;
    for (size_t at = 0, end; at < in.n; at = end) {
        end = cluster_end(in, at);
        struct str cluster = {in.p + at, end - at};
        if (cluster.n < CLUSTER_MOST && find(map, cluster, false, &to, &n)) {
            put(out, to, all_of(trust + at, cluster.n));
            continue;
        }
        for (size_t i = at, len; i < end; i += len) {
            uint32_t code;
            len = utf8_decode(in.p + i, end - i, &code);
            struct str one = {in.p + i, len};
            put(out, find(map, one, false, &to, &n) ? to : one, all_of(trust + i, len));
        }
    }
}

void normal_charsmap(const struct normal_step *step, struct str in, const uint8_t *trust,
                     bool start, struct normal_text *out) {
    const struct charsmap *map = step->table;
    (void)start;
    if (map->clusters) by_clusters(map, in, trust, out);
    else by_longest(map, in, trust, out);
}
