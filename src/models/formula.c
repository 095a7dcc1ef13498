/* SPDX-License-Identifier: Apache-2.0
 * formula.c: see formula.h. */
#include "models/formula.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"

static uint64_t number(const struct hparams *hp, struct str name) {
    for (uint32_t i = 0; i < hp->numbers; i++)
        if (str_is(name, hp->number[i].name)) return (uint64_t)hp->number[i].value;
    log_error("a recipe's formula says '%.*s', which is no number of the model", STR_ARG(name));
    assert(false);
    return 0;
}

/* A hyperparameter by its name, or digits. */
static uint64_t term(const struct hparams *hp, uint32_t layer, struct str name) {
    uint64_t digits = 0;
    size_t n = 0;
    while (n < name.n && name.p[n] >= '0' && name.p[n] <= '9' && digits < FORMULA_LARGE)
        digits = digits * 10 + (uint64_t)(name.p[n++] - '0');
    if (n > 0 && n == name.n) return digits;
    const struct {
        const char *name;
        uint64_t value;
    } table[] = {
        {"attends", hp->heads[layer] > 0},
        {"chooses", hp->chooses && hp->chooses[layer]},
        {"compresses", hp->every && hp->every[layer] > 0},
        {"context", hp->context},       {"every", hp->every ? hp->every[layer] : 0},
        {"expert_ffn", hp->expert_ffn}, {"experts", hp->experts[layer]},
        {"ffn", hp->ffn[layer]},        {"hashes", hp->hashes && hp->hashes[layer]},
        {"heads", hp->heads[layer]},
        {"k_dim", hp->head_dim ? hp->head_dim[layer] : hp->k_dim},
        {"kv_heads", hp->kv_heads[layer]},
        {"is_last", layer + 1 == hp->layers},
        {"is_later", layer > 0},
        {"loops", hp->loops && hp->loops[layer]},
        {"ngram_rows", hp->ngram_rows ? hp->ngram_rows[layer] : 0},
        {"ngrams", hp->ngram_rows && hp->ngram_rows[layer]},
        {"owns", !hp->shared_use || !hp->shared_use[layer]},
        {"recurrent", hp->recurrent ? hp->recurrent[layer] : 0},
        {"ranks", !hp->hashes || !hp->hashes[layer]},
        {"rope_half", hp->rope.half},   {"shares", hp->shared_use && hp->shared_use[layer]},
        {"sees_all", hp->window[layer] == 0},
        {"slides", hp->window[layer] > 0}, {"sparse", hp->experts[layer] > 0},
        {"v_dim", hp->v_dim},           {"vocab", hp->vocab},
        {"width", hp->width},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (str_is(name, table[i].name)) return table[i].value;
    return number(hp, name);
}

/* Multiplied and divided from left to right. */
static uint64_t product(const struct hparams *hp, uint32_t layer, struct str formula) {
    uint64_t out = 1;
    char op = '*';
    for (size_t at = 0; at < formula.n;) {
        size_t n = 0;
        while (at + n < formula.n && formula.p[at + n] != '*' && formula.p[at + n] != '/') n++;
        uint64_t v = term(hp, layer, (struct str){formula.p + at, n});
        if (op == '*') out *= v;
        else out = v ? out / v : 0;
        if (out > FORMULA_LARGE) return FORMULA_OVERFLOW;
        at += n;
        if (at < formula.n) op = formula.p[at++];
    }
    return out;
}

uint64_t formula_value(const struct hparams *hp, uint32_t layer, struct str formula) {
    uint64_t out = 0;
    for (size_t at = 0; at < formula.n; at++) {
        size_t n = 0;
        while (at + n < formula.n && formula.p[at + n] != '+') n++;
        uint64_t v = product(hp, layer, (struct str){formula.p + at, n});
        if (v == FORMULA_OVERFLOW || (out += v) > FORMULA_LARGE) return FORMULA_OVERFLOW;
        at += n;
    }
    return out;
}
