/* SPDX-License-Identifier: Apache-2.0
 * export_keys.c: the keys of a model's GGUF file, as llama.cpp's converters write them: from the
 * recipe's keys[], and from what was derived where llama.cpp says it in another way. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/blocks/deltanet.h"
#include "models/blocks/pooling.h"
#include "models/export_inside.h"

/* The first of '|'-separated names, or where there are two and the norm is no RMS norm, the second:
 * only epsilons have two. */
static bool full_key(const struct export *e, const char *pattern, char out[NAME_BYTES]) {
    const char *bar = strchr(pattern, '|');
    if (bar && e->model->hp.norm == NORM_LAYER) pattern = bar + 1;
    size_t n = strcspn(pattern, "|");
    if (strncmp(pattern, "{arch}", 6) != 0) return snprintf(out, NAME_BYTES, "%s", pattern) > 0;
    return snprintf(out, NAME_BYTES, "%s%.*s", export_architecture(e), (int)(n - 6),
                    pattern + 6) < NAME_BYTES;
}

static void put_whole(const struct export *e, struct gguf_writer *w, const char *pattern,
                      enum gguf_type type, uint64_t value) {
    char name[NAME_BYTES];
    if (full_key(e, pattern, name)) gguf_put_whole(w, name, type, value);
}
static void put_u32(const struct export *e, struct gguf_writer *w, const char *pattern,
                    uint64_t value) {
    put_whole(e, w, pattern, GGUF_U32, value);
}
static void put_flag(const struct export *e, struct gguf_writer *w, const char *pattern,
                     bool value) {
    put_whole(e, w, pattern, GGUF_BOOL, value);
}
static void put_f32(const struct export *e, struct gguf_writer *w, const char *pattern,
                    float value) {
    char name[NAME_BYTES];
    if (full_key(e, pattern, name)) gguf_put_f32(w, name, value);
}
static void put_str(const struct export *e, struct gguf_writer *w, const char *pattern,
                    const char *value) {
    char name[NAME_BYTES];
    if (full_key(e, pattern, name)) gguf_put_str(w, name, str_of(value));
}
/* Of one element a layer. */
static void put_list(const struct export *e, struct gguf_writer *w, const char *pattern,
                     enum gguf_type element, const void *value) {
    char name[NAME_BYTES];
    if (full_key(e, pattern, name)) gguf_put_array(w, name, element, value, e->model->hp.layers);
}

/* Has llama.cpp a list of the recurrent layers? Else it knows them by having no key heads. */
static bool lists_recurrent(const struct model *m) {
    for (const struct key *const *table = m->recipe->keys; *table; table++)
        if (*table == deltanet_keys) return true;
    return m->recipe->gguf_lists_recurrent;
}

/* May layers in which it is 0 be given what the others have? Those with experts have no MLP of
 * their own, recurrent ones no heads, and what shares keys has none. */
static bool may_differ(const struct model *m, const uint32_t *value, uint32_t layer) {
    const struct hparams *hp = &m->hp;
    if (value == hp->ffn) return !hp->recurrent || (hp->experts && hp->experts[layer] > 0);
    if (value == hp->kv_heads) return !hp->recurrent || lists_recurrent(m);
    return value == hp->heads;
}

/* One number if all layers have it. The MLP of a layer with experts counts as wide as an expert
 * where no other layer has one. */
static void put_layers(const struct export *e, struct gguf_writer *w, const char *key,
                       const uint32_t *value) {
    const struct hparams *hp = &e->model->hp;
    const bool ffn = value == hp->ffn;
    bool same = true;
    uint32_t one = 0, *each = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *each);
    for (uint32_t i = 0; i < hp->layers && one == 0; i++) one = value[i];
    if (one == 0 && ffn) one = hp->expert_ffn;
    for (uint32_t i = 0; each && i < hp->layers; i++) {
        same &= value[i] == one || (value[i] == 0 && may_differ(e->model, value, i));
        each[i] = ffn && hp->experts && hp->experts[i] > 0 ? hp->expert_ffn : value[i];
    }
    if (same) gguf_put_whole(w, key, GGUF_U32, one);
    else if (each) gguf_put_array(w, key, GGUF_U32, each, hp->layers);
}

static void put_number(const struct export *e, struct gguf_writer *w, const struct key *k,
                       const char *name) {
    const struct hparams *hp = &e->model->hp;
    for (uint32_t i = 0; i < hp->numbers; i++) {
        double v = hp->number[i].value;
        if (strcmp(hp->number[i].name, k->name) != 0) continue;
        if (k->type == KEY_WHOLE && k->min == 0 && k->max == 1) { /* a flag */
            gguf_put_whole(w, name, GGUF_BOOL, v != 0);
            return;
        }
        if (v == 0 && k->need != REQUIRED) return;
        bool whole = str_ends(str_of(name), "_length"); /* as llama.cpp wants lengths */
        if (k->type == KEY_REAL && !whole) gguf_put_f32(w, name, (float)v);
        else gguf_put_whole(w, name, GGUF_U32, (uint64_t)v);
    }
}

/* As keys.c reads it, after the recipe has derived what files leave out. */
static void put_key(const struct export *e, struct gguf_writer *w, const struct key *k) {
    const char *field = (const char *)&e->model->hp + k->field;
    char name[NAME_BYTES];
    uint32_t whole, *list;
    float real;
    if (!k->gguf || !full_key(e, k->gguf, name)) return;
    if (k->name) return put_number(e, w, k, name);
    switch (k->type) {
    case KEY_COUNT:
    case KEY_U32:
        memcpy(&whole, field, sizeof whole);
        if (whole != 0 || k->need == REQUIRED) gguf_put_whole(w, name, GGUF_U32, whole);
        break;
    case KEY_F32:
        memcpy(&real, field, sizeof real);
        if (real != 0 || k->need == REQUIRED) gguf_put_f32(w, name, real);
        break;
    case KEY_LAYERS:
        memcpy(&list, field, sizeof list);
        put_layers(e, w, name, list);
        break;
    default: break;
    }
}

/* How the pairs are shared by the three positions of an image's patch; in a text they are equal. */
static void put_rope_sections(const struct export *e, struct gguf_writer *w) {
    static const char *const list[] = {"rope_parameters.mrope_section",
                                       "rope_scaling.mrope_section",
                                       "{arch}.rope.dimension_sections"};
    const struct source *meta = source_meta(e->model->source);
    char name[NAME_BYTES];
    uint32_t pairs[4] = {0};
    bool any = false;
    for (size_t k = 0; k < sizeof list / sizeof list[0] && !any; k++)
        for (uint64_t v, i = 0; i < 4 && source_u64(meta, list[k], i, &v); i++) {
            pairs[i] = (uint32_t)v;
            any = true;
        }
    if (any && full_key(e, "{arch}.rope.dimension_sections", name))
        gguf_put_array(w, name, GGUF_U32, pairs, 4);
}

static void put_longrope(const struct export *e, struct gguf_writer *w) {
    const struct rope *r = &e->model->hp.rope;
    put_str(e, w, "{arch}.rope.scaling.type", "longrope");
    put_u32(e, w, "{arch}.rope.scaling.original_context_length", r->original);
    put_f32(e, w, "{arch}.rope.scaling.attn_factor", r->magnitude);
}

/* The rope that is scaled: all layers', or of layers with a rope of their own. */
static const struct rope *scaled(const struct hparams *hp) {
    for (uint32_t i = 0; hp->layer_rope && hp->rope.scaling[0] == 0 && i < hp->layers; i++)
        if (hp->layer_rope[i]->scaling[0]) return hp->layer_rope[i];
    return &hp->rope;
}

static void put_rope(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    put_rope_sections(e, w);
    if (!hp->rope.freq) return;
    if (hp->rope_dim == 0) put_u32(e, w, "{arch}.rope.dimension_count", 2 * hp->rope.half);
    put_f32(e, w, "{arch}.rope.freq_base", hp->rope.base);
    if (hp->rope_window.freq) put_f32(e, w, "{arch}.rope.freq_base_swa", hp->rope_window.base);
    if (hp->rope_window.freq && hp->rope_window.half != hp->rope.half)
        put_u32(e, w, "{arch}.rope.dimension_count_swa", 2 * hp->rope_window.half);
    if (hp->rope.freq_long) put_longrope(e, w);
    const struct rope *rope = scaled(hp);
    bool keyed = strcmp(rope->scaling, "yarn") == 0 || strcmp(rope->scaling, "linear") == 0;
    if (!keyed) return;
    put_str(e, w, "{arch}.rope.scaling.type", rope->scaling);
    put_f32(e, w, "{arch}.rope.scaling.factor", rope->factor);
    put_u32(e, w, "{arch}.rope.scaling.original_context_length", (uint64_t)rope->trained);
    if (rope->beta_fast == 0) return;
    put_f32(e, w, "{arch}.rope.scaling.yarn_beta_fast", rope->beta_fast);
    put_f32(e, w, "{arch}.rope.scaling.yarn_beta_slow", rope->beta_slow);
}

/* What llama.cpp asks of mixtures. A softmax of the chosen is one over all, normalized. */
static void put_router(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    const struct route_args *r = &hp->route;
    uint32_t dense = 0;
    if (hp->expert_count == 0 || !hp->experts) return;
    while (dense < hp->layers && hp->experts[dense] == 0) dense++;
    put_u32(e, w, "{arch}.leading_dense_block_count", dense);
    static const uint32_t func[ROUTE_SCORES] = {
        [ROUTE_SOFTMAX] = 1, [ROUTE_SIGMOID] = 2, [ROUTE_SQRT_SOFTPLUS] = 4};
    if (func[r->score]) put_u32(e, w, "{arch}.expert_gating_func", func[r->score]);
    put_flag(e, w, "{arch}.expert_weights_norm", r->normalize || r->score == ROUTE_SOFTMAX_CHOSEN);
    if (r->scale != 0) put_f32(e, w, "{arch}.expert_weights_scale", r->scale);
    if (r->groups <= 1) return;
    put_u32(e, w, "{arch}.expert_group_count", r->groups);
    put_u32(e, w, "{arch}.expert_group_used_count", r->groups_used);
}

/* A number of the family's own? */
static bool names_key(const struct recipe *r, const char *gguf) {
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (k->name && k->gguf && strcmp(k->gguf, gguf) == 0) return true;
    return false;
}

/* Of layers with windows beside others. */
static void put_windows(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    uint32_t windows = 0;
    if (names_key(e->model->recipe, "{arch}.attention.sliding_window_pattern")) return;
    for (uint32_t i = 0; hp->window && i < hp->layers; i++) windows += hp->window[i] > 0;
    if (windows == 0 || windows == hp->layers) return;
    bool *slides = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *slides);
    for (uint32_t i = 0; slides && i < hp->layers; i++) slides[i] = hp->window[i] > 0;
    if (slides) put_list(e, w, "{arch}.attention.sliding_window_pattern", GGUF_BOOL, slides);
}

static void put_recurrent(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    if (!lists_recurrent(e->model)) return;
    bool *recurrent = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *recurrent);
    for (uint32_t i = 0; recurrent && i < hp->layers; i++) recurrent[i] = hp->recurrent[i];
    if (recurrent) put_list(e, w, "{arch}.attention.recurrent_layers", GGUF_BOOL, recurrent);
}

/* Which layers choose their keys, where others take what these chose. */
static void put_indexers(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    if (hp->chooses) put_list(e, w, "{arch}.attention.indexer.types", GGUF_BOOL, hp->chooses);
}

/* Layers whose keys are blocks beside a window. */
static void put_blocks(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    if (hp->every) put_list(e, w, "{arch}.attention.compress_ratios", GGUF_U32, hp->every);
    if (hp->glu_clamp.alpha == 1) put_f32(e, w, "{arch}.swiglu_clamp_exp", hp->glu_clamp.limit);
}

/* Numbers that are tensors elsewhere, a layer each. */
static void put_listed(struct export *e, struct gguf_writer *w, const struct tensor *t) {
    const struct model *m = e->model;
    float *list = arena_array(&e->arena, m->hp.layers, sizeof *list);
    for (uint32_t i = 0, layer = 0; list && i < m->weights; i++)
        if (export_names(t, m->weight[i]->name, &layer) && layer < m->hp.layers)
            memcpy(&list[layer], m->weight[i]->data, sizeof *list);
    if (list) gguf_put_array(w, t->gguf_key, GGUF_F32, list, m->hp.layers);
}

/* Each row of every table is put once: a later table may name a key again. */
static bool is_later(const struct recipe *r, const struct key *k) {
    bool seen = false;
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *other = *table; other->gguf || other->hf; other++) {
            if (other == k) seen = true;
            else if (seen && other->gguf && k->gguf && strcmp(other->gguf, k->gguf) == 0)
                return true;
        }
    return false;
}

/* put_router, put_windows and put_rope write these from what was derived; layers that guess further
 * tokens are not written, nor is their number. */
static bool is_computed(const struct key *k) {
    static const char *const list[] = {
        "{arch}.leading_dense_block_count", "{arch}.attention.sliding_window_pattern",
        "{arch}.expert_gating_func", "{arch}.rope.freq_base", "{arch}.rope.freq_base_swa",
        "{arch}.vocab_size",
        "{arch}.rope.scaling.type", "{arch}.rope.scaling.factor",
        "{arch}.rope.scaling.original_context_length", "{arch}.rope.scaling.yarn_beta_fast",
        "{arch}.rope.scaling.yarn_beta_slow", "{arch}.expert_weights_norm",
        "{arch}.expert_weights_scale", "{arch}.expert_group_count",
        "{arch}.expert_group_used_count", "{arch}.nextn_predict_layers",
    };
    const size_t first = k->name ? 2 : 0; /* the first two may be a family's own numbers */
    for (size_t i = first; i < sizeof list / sizeof list[0]; i++)
        if (k->gguf && strcmp(k->gguf, list[i]) == 0) return true;
    return false;
}

/* Frequencies as GGUF files have them: a divisor a pair. */
static void put_divisors(struct export *e, struct gguf_writer *w, const char *name,
                         const float *freq) {
    const struct rope *r = &e->model->hp.rope;
    float *divisor = arena_array(&e->arena, r->half, sizeof *divisor);
    if (!divisor) return;
    for (uint32_t i = 0; i < r->half; i++)
        divisor[i] = freq[i] > 0 ? (float)(pow((double)r->base, -(double)i / r->half) /
                                           (double)freq[i])
                                 : 1e30f; /* as llama.cpp has pairs that do not turn */
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = str_of(name),
                                                 .quant = quant_list[QUANT_f32],
                                                 .ndim = 1,
                                                 .dim = {r->half},
                                                 .data = divisor});
}

/* The names of a classifier's classes, by whose number llama.cpp knows the scores. */
static void put_labels(struct export *e, struct gguf_writer *w) {
    const struct new_tensor *scores = export_find(e, "cls.output.weight");
    char name[NAME_BYTES], key[32];
    struct str *label;
    if (!scores || !full_key(e, "{arch}.classifier.output_labels", name)) return;
    if (!(label = arena_array(&e->arena, scores->rows, sizeof *label))) return;
    for (uint32_t i = 0; i < scores->rows; i++) {
        const char *otherwise = arena_printf(&e->arena, "LABEL_%u", i);
        snprintf(key, sizeof key, "id2label.%u", i);
        if (!source_str(source_meta(e->model->source), key, 0, &label[i]))
            label[i] = str_of(otherwise ? otherwise : "");
    }
    gguf_put_strs(w, name, label, scores->rows);
}

static void put_rope_tensors(struct export *e, struct gguf_writer *w) {
    const struct rope *r = &e->model->hp.rope;
    if (!r->freq) return; /* the family turns nothing */
    bool still = r->freq[r->half - 1] == 0;
    if (still || strcmp(r->scaling, "llama3") == 0)
        put_divisors(e, w, "rope_freqs.weight", r->freq);
    if (!r->freq_long) return;
    put_divisors(e, w, "rope_factors_long.weight", r->freq_long);
    put_divisors(e, w, "rope_factors_short.weight", r->freq);
}

void export_put_keys(struct export *e, struct gguf_writer *w) {
    const struct recipe *r = e->model->recipe;
    const struct hparams *hp = &e->model->hp;
    gguf_put_str(w, "general.architecture", str_of(export_architecture(e)));
    struct str config = source_config_text(e->model->source);
    if (config.n) gguf_put_str(w, SOURCE_CONFIG_KEY, config);
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (!is_later(r, k) && !is_computed(k)) put_key(e, w, k);
    for (const struct tensor *const *table = r->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++)
            if (t->gguf_key) put_listed(e, w, t);
    put_rope(e, w);
    put_router(e, w);
    put_windows(e, w);
    put_recurrent(e, w);
    put_indexers(e, w);
    put_blocks(e, w);
    put_u32(e, w, "{arch}.vocab_size", hp->vocab); /* for files without a tokenizer */
    if (hp->bidirectional) put_flag(e, w, "{arch}.attention.causal", false);
    pooling_put(hp, export_architecture(e), w);
    put_labels(e, w);
    put_rope_tensors(e, w);
}
