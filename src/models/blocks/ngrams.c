/* SPDX-License-Identifier: Apache-2.0
 * ngrams.c: see ngrams.h. */
#include "models/blocks/ngrams.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { PRIMES_MAX = 4096 };

const struct key ngrams_keys[] = {
    WHOLE("ngram_order", NULL, "ngram_size", OPTIONAL, 3, 2, NGRAM_ORDER_MAX),
    WHOLE("ngram_heads", NULL, "heads_per_ngram", OPTIONAL, 8, 1, 64),
    WHOLE("ngram_base", NULL, "ngram_vocab_size_base", OPTIONAL, 20000000, 2, 1 << 30),
    WHOLE("ngram_multiple", NULL, "make_ngram_vocab_size_divisible_by", OPTIONAL, 128, 1, 1 << 20),
    WHOLE("ngram_seed", NULL, "seed", OPTIONAL, 1234, 0, 0),
    WHOLE("ngram_parts", NULL, "split_ngram_parts", OPTIONAL, 512, 1, 4096),
    WHOLE("ngram_width", NULL, "ple_embed_dim", OPTIONAL, 0, 1, 1 << 20),
    {0},
};

#define EMBEDDING "{m}layers.{i}.ple.ple_embedding."

const struct tensor ngrams_tensors[] = {
    MATRIX("blk.{i}.ngram_embd.weight", EMBEDDING "ngram_embedding.shard_{e}.weight", "ngram_rows",
           "ngram_dim", REQUIRED, .from_hf = "stack(ngram_parts)"),
    KNOWN("blk.{i}.ngram_multipliers", EMBEDDING "layer_multipliers", "computed from the keys"),
    KNOWN("blk.{i}.ngram_sizes", EMBEDDING "ngram_heads_vocab_sizes", "computed from the keys"),
    KNOWN("blk.{i}.ngram_offsets", EMBEDDING "ngram_heads_offsets", "computed from the keys"),
    {0},
};

/* ---- primes and hashes ----------------------------------------------------------------------- */

static bool is_prime(uint64_t n) {
    if (n % 2 == 0) return n == 2;
    for (uint64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0) return false;
    return n > 1;
}

static uint64_t next_prime(uint64_t n) {
    do n++;
    while (!is_prime(n));
    return n;
}

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t split_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Odd numbers by which no token's product is larger than 63 bits. */
static void make_multipliers(const struct build *b, uint32_t table, uint32_t order, uint64_t *out) {
    uint64_t half = INT64_MAX / b->hp->vocab / 2;
    uint64_t seed = (uint64_t)build_number(b, "ngram_seed") + 10007 * (uint64_t)table;
    for (uint32_t i = 0; i < order; i++)
        out[i] = 2 * (split_mix(seed + 0x9e3779b97f4a7c15 * (i + 1)) % half) + 1;
}

/* The numbers that a file has beside the table, if it does, against ours. */
static ob_status check_file(struct build *b, uint32_t layer, const char *what, const uint64_t *want,
                            uint32_t n, ob_error *error) {
    char name[256];
    snprintf(name, sizeof name, "%.*slayers.%u.ple.ple_embedding.%s", STR_ARG(b->root), layer,
             what);
    const struct source_tensor *have = source_tensor_find(b->source, str_of(name));
    if (!have || (str_is(have->type, "I64") && have->bytes == n * sizeof *want &&
                  memcmp(have->data, want, have->bytes) == 0))
        return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, name, name, error,
                        "is not what the keys of config.json give (seed, ngram_size)");
}

/* The number of rows of the layer's table, 0 on errors. */
static uint64_t make_table(struct build *b, uint32_t layer, uint32_t table, uint64_t *prime,
                           ob_error *error) {
    uint32_t order = build_whole(b, "ngram_order"), heads = build_whole(b, "ngram_heads");
    uint32_t n = (order - 1) * heads;
    uint64_t *multiplier = arena_array(b->arena, order, sizeof *multiplier), total = 0;
    uint64_t *size = arena_array(b->arena, n, sizeof *size);
    uint64_t *first = arena_array(b->arena, n, sizeof *first);
    if (!multiplier || !size || !first) {
        error_memory(error, "hashes", n * sizeof *size);
        return 0;
    }
    make_multipliers(b, table, order, multiplier);
    for (uint32_t i = 0; i < n; i++) {
        first[i] = total;
        size[i] = *prime = next_prime(*prime);
        total += size[i];
    }
    b->hp->ngrams[layer] = (struct ngram_args){.order = order, .heads = heads,
                                               .multiplier = multiplier, .size = size,
                                               .first = first};
    if (check_file(b, layer, "layer_multipliers", multiplier, order, error) != OB_OK ||
        check_file(b, layer, "ngram_heads_vocab_sizes", size, n, error) != OB_OK ||
        check_file(b, layer, "ngram_heads_offsets", first, n, error) != OB_OK)
        return 0;
    uint64_t multiple = build_whole(b, "ngram_multiple");
    return (total + multiple - 1) / multiple * multiple;
}

/* Marks the layers that have a table with a row. */
static ob_status mark_layers(struct build *b, uint32_t *tables, ob_error *error) {
    static const char list[] = "ple_layer_ids";
    struct hparams *hp = b->hp;
    *tables = 0;
    for (uint64_t i = 0, n = build_count(b, NULL, list), id; i < n; i++) {
        if (!build_u64_at(b, NULL, list, i, &id) || id < 1 || id > hp->layers)
            return build_refuse(b, OB_ERR_FORMAT, NULL, list, error,
                                "element %llu is no number from 1 to %u", (unsigned long long)i,
                                hp->layers);
        *tables += hp->ngram_rows[id - 1] == 0;
        hp->ngram_rows[id - 1] = 1;
    }
    return OB_OK;
}

static ob_status check_sizes(struct build *b, uint32_t tables, ob_error *error) {
    uint32_t n = (build_whole(b, "ngram_order") - 1) * build_whole(b, "ngram_heads");
    uint32_t width = build_whole(b, "ngram_width");
    if (width == 0) width = b->hp->width;
    if (width % n)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "ple_embed_dim", error,
                            "%u is no multiple of the %u heads of n-grams", width, n);
    if ((uint64_t)n * tables > PRIMES_MAX)
        return build_refuse(b, OB_ERR_LIMIT, NULL, "ple_layer_ids", error,
                            "%u tables of %u heads, %d are supported", tables, n, PRIMES_MAX);
    ob_status s = build_set(b, "ngram_width", width, error);
    const uint32_t each = width / n;
    return s == OB_OK ? build_set(b, "ngram_dim", each, error) : s;
}

ob_status ngrams_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t tables, table = 0, parts = build_whole(b, "ngram_parts");
    uint64_t prime = build_whole(b, "ngram_base") - 1, end = 0;
    hp->ngram_rows = arena_array(b->arena, hp->layers, sizeof *hp->ngram_rows);
    hp->ngrams = arena_array(b->arena, hp->layers, sizeof *hp->ngrams);
    if (!hp->ngram_rows || !hp->ngrams) return error_memory(error, "hyperparameters", hp->layers);
    ob_status s = mark_layers(b, &tables, error);
    if (s == OB_OK) s = check_sizes(b, tables, error);
    if (s != OB_OK || tables == 0) return s;
    if (!build_u64_at(b, NULL, "eos_token_id", 0, &end) || end >= hp->vocab)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "eos_token_id", error,
                            "n-grams need a token that ends a text");
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (hp->ngram_rows[i] == 0) continue;
        uint64_t rows = make_table(b, i, table++, &prime, error);
        if (rows == 0) return OB_ERR_UNSUPPORTED;
        if (rows % parts)
            return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "split_ngram_parts", error,
                                "%llu rows in %u parts", (unsigned long long)rows, parts);
        hp->ngram_rows[i] = (uint32_t)(rows / parts);
        hp->ngrams[i].end = (int32_t)end;
    }
    return OB_OK;
}

value_id ngrams_embed(struct build *b) {
    return graph_embed_ngrams(b->g, build_weight(b, "ngram_embd.weight"),
                              &b->hp->ngrams[b->layer]);
}
