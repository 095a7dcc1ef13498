/* SPDX-License-Identifier: Apache-2.0
 * keys.c: reads a recipe's keys[] into hparams. A value out of range, of the wrong kind or of the
 * wrong count is refused by its name; nothing is clamped. A key of config.json that sounds like
 * mathematics and that the recipe did not read is refused, too: never approximated. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/load.h"

/* ---- asking ---------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 256 };

static struct asked *find_asked(const struct build *b, const char *key) {
    for (uint32_t i = 0; i < b->asked_count; i++)
        if (strcmp(b->asked[i].name, key) == 0) return &b->asked[i];
    return NULL;
}

/* Remembers that a key was read; when out of memory it counts as unread and is refused. */
static void ask(struct build *b, const char *key) {
    if (find_asked(b, key)) return;
    if (b->asked_count == b->asked_cap) {
        uint32_t cap = b->asked_cap ? 2 * b->asked_cap : 64;
        struct asked *more = arena_array(b->arena, cap, sizeof *more);
        if (!more) return;
        if (b->asked_count) memcpy(more, b->asked, b->asked_count * sizeof *more);
        b->asked = more;
        b->asked_cap = cap;
    }
    char *copy = arena_copy(b->arena, key, strlen(key));
    if (copy) b->asked[b->asked_count++] = (struct asked){.name = copy};
}

/* ---- of another kind ---- */

static struct wrong *find_wrong(struct build *b, const char *key, uint64_t i) {
    for (uint32_t k = 0; k < b->wrongs; k++)
        if (b->wrong[k].i == i && strcmp(b->wrong[k].key, key) == 0) return &b->wrong[k];
    return NULL;
}

/* One that is full has enough to be refused for. */
static void add_wrong(struct build *b, const char *key, uint64_t i, const char *text) {
    if (b->wrongs == WRONG_MAX || find_wrong(b, key, i)) return;
    struct wrong *w = &b->wrong[b->wrongs++];
    w->i = i;
    snprintf(w->key, sizeof w->key, "%s", key);
    snprintf(w->text, sizeof w->text, "%s", text);
}

void build_wrong(struct build *b, const char *key, const char *format, ...) {
    char text[WRONG_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    add_wrong(b, key, UINT64_MAX, text); /* no read of another kind makes it good */
}

/* After a read of element i, which the source has or not. A key may be read as one kind and then
 * as another: one of these is enough. */
static bool noted(struct build *b, const char *key, uint64_t i, bool ok, const char *want) {
    char text[WRONG_TEXT];
    struct wrong *w = find_wrong(b, key, i);
    struct asked *a = find_asked(b, key);
    if (ok) {
        if (a && i == 0) a->read = true;
        if (w) *w = b->wrong[--b->wrongs];
    } else if (!(a && a->read && i == 0)) {
        if (i == 0) snprintf(text, sizeof text, "is not %s", want);
        else snprintf(text, sizeof text, "entry %llu is not %s", (unsigned long long)i, want);
        add_wrong(b, key, i, text);
    }
    return ok;
}

ob_status check_kinds(struct build *b, ob_status so_far, ob_error *error) {
    if (b->wrongs == 0 || so_far == OB_ERR_MEMORY) return so_far;
    const char *key = b->wrong[0].key;
    if (so_far != OB_OK && error && strcmp(error->where, key) == 0) return so_far; /* says more */
    return build_refuse(b, OB_ERR_FORMAT, key, key, error, "%s", b->wrong[0].text);
}

/* "rope_parameters.rope_theta" where rope_parameters is there, and no object. */
static void look_blocked(struct build *b, char *key) {
    size_t n = source_blocked(b->meta, key);
    if (n == 0) return;
    char end = key[n];
    key[n] = 0;
    add_wrong(b, key, 0, "is not an object");
    key[n] = end;
}

/* ---- reading ---- */

/* Is it, or the object it is in, in a list of names separated by '|'? */
static bool is_listed(const char *list, const char *name) {
    for (const char *p = list; p && *p; p += strcspn(p, "|"), p += *p == '|') {
        size_t n = strcspn(p, "|");
        if (strncmp(p, name, n) == 0 && (name[n] == 0 || name[n] == '.')) return true;
    }
    return false;
}

/* Has the source the key, for this class? `said`: itself, so that a default does not count. */
static bool has_key(struct build *b, const char *key, bool said) {
    if (!(said ? source_says(b->meta, key) : source_has(b->meta, key))) return false;
    if (source_kind(b->meta) == SOURCE_GGUF || !is_listed(b->recipe->foreign, key) ||
        !source_says(b->meta, key))
        return true;
    ask(b, key); /* not unread, but not heard */
    return false;
}

/* The first of these paths that the source has; of config.json that the file has, or that has a
 * default. */
static const char *find_key(struct build *b, const char *paths, bool said, char *scratch,
                            size_t size) {
    for (const char *p = paths; p && *p;) {
        size_t n = strcspn(p, "|");
        if (n < size) {
            memcpy(scratch, p, n);
            scratch[n] = 0;
            if (has_key(b, scratch, said)) return ask(b, scratch), scratch;
            look_blocked(b, scratch);
        }
        p += n + (p[n] == '|');
    }
    return NULL;
}

const char *build_key(struct build *b, const char *gguf, const char *hf, char *scratch,
                      size_t size) {
    const char *paths = source_kind(b->meta) == SOURCE_GGUF ? gguf : hf;
    const char *key = find_key(b, paths, true, scratch, size);
    return key ? key : find_key(b, paths, false, scratch, size);
}

bool build_says(struct build *b, const char *hf) {
    char scratch[NAME_MAX_BYTES];
    return source_kind(b->meta) == SOURCE_HF && find_key(b, hf, true, scratch, sizeof scratch);
}

bool build_has(struct build *b, const char *gguf, const char *hf) {
    char scratch[NAME_MAX_BYTES];
    return build_key(b, gguf, hf, scratch, sizeof scratch) != NULL;
}

uint64_t build_count(struct build *b, const char *gguf, const char *hf) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    return key ? source_count(b->meta, key) : 0;
}

#define BUILD_AT(name, read, type, fits, want)                                                   \
    bool name(struct build *b, const char *gguf, const char *hf, uint64_t i,                     \
              __typeof__(type) *out) {                                                           \
        char scratch[NAME_MAX_BYTES];                                                            \
        const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);                       \
        type v;                                                                                  \
        if (!key || i >= source_count(b->meta, key) ||                                           \
            !noted(b, key, i, read(b->meta, key, i, &v) && (fits), want))                        \
            return false;                                                                        \
        *out = v;                                                                                \
        return true;                                                                             \
    }
BUILD_AT(build_u64_at, source_u64, uint64_t, true, "a whole number >= 0")
BUILD_AT(build_f64_at, source_f64, double, isfinite(v), "a finite number")
BUILD_AT(build_real_at, source_f64, double, !isnan(v), "a number")
BUILD_AT(build_bool_at, source_bool, bool, true, "true or false")
BUILD_AT(build_str_at, source_str, struct str, true, "a string")
#undef BUILD_AT

static bool is_one(const struct build *b, const char *key) {
    return source_count(b->meta, key) == 1;
}

/* Of a key that is there: has it one value? */
static bool one_of(struct build *b, const char *gguf, const char *hf, const char *want, char *key) {
    if (!build_key(b, gguf, hf, key, NAME_MAX_BYTES)) return false;
    return is_one(b, key) || noted(b, key, 0, false, want);
}

bool build_f32(struct build *b, const char *gguf, const char *hf, float *out) {
    static const char want[] = "a finite number";
    char key[NAME_MAX_BYTES];
    double v;
    if (!one_of(b, gguf, hf, want, key) ||
        !noted(b, key, 0, source_f64(b->meta, key, 0, &v) && isfinite((float)v), want))
        return false;
    *out = (float)v;
    return true;
}

bool build_u32(struct build *b, const char *gguf, const char *hf, uint32_t *out) {
    static const char want[] = "a whole number from 0 to 4294967295";
    char key[NAME_MAX_BYTES];
    uint64_t v;
    if (!one_of(b, gguf, hf, want, key) ||
        !noted(b, key, 0, source_u64(b->meta, key, 0, &v) && v <= UINT32_MAX, want))
        return false;
    *out = (uint32_t)v;
    return true;
}

bool build_bool(struct build *b, const char *gguf, const char *hf, bool *out) {
    static const char want[] = "true or false";
    char key[NAME_MAX_BYTES];
    return one_of(b, gguf, hf, want, key) &&
           noted(b, key, 0, source_bool(b->meta, key, 0, out), want);
}

bool build_str(struct build *b, const char *gguf, const char *hf, struct str *out) {
    static const char want[] = "a string";
    char key[NAME_MAX_BYTES];
    return one_of(b, gguf, hf, want, key) &&
           noted(b, key, 0, source_str(b->meta, key, 0, out), want);
}

void build_wants(struct build *b, const char *gguf, const char *hf, uint64_t n) {
    char key[NAME_MAX_BYTES];
    if (!build_key(b, gguf, hf, key, sizeof key) || source_count(b->meta, key) == n) return;
    build_wrong(b, key, "has %llu entries, %llu are wanted",
                (unsigned long long)source_count(b->meta, key), (unsigned long long)n);
}

/* ---- refusing -------------------------------------------------------------------------------- */

ob_status build_refuse(const struct build *b, ob_status status, const char *gguf, const char *hf,
                       ob_error *error, const char *format, ...) {
    char what[256], name[NAME_MAX_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    error_set(error, status, "%s", what);
    const char *spelled = source_kind(b->meta) == SOURCE_GGUF ? gguf : hf;
    if (!spelled) spelled = gguf ? gguf : hf ? hf : "";
    static const char mark[] = "{arch}";
    for (const char *p = spelled; source_kind(b->meta) == SOURCE_HF && *p;
         p += strcspn(p, "|"), p += *p == '|') { /* the one that is there */
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "|"), p);
        if (!source_says(b->meta, name) && !source_null(b->meta, name)) continue;
        spelled = p;
        break;
    }
    size_t n = strcspn(spelled, "|"), skip = sizeof mark - 1;
    struct str arch = source_architecture(b->meta);
    if (n >= skip && strncmp(spelled, mark, skip) == 0)
        snprintf(name, sizeof name, "%.*s%.*s", STR_ARG(arch), (int)(n - skip), spelled + skip);
    else
        snprintf(name, sizeof name, "%.*s", (int)n, spelled);
    error_at(error, source_path(b->source), name, OB_NO_OFFSET);
    return status;
}

/* At a key whose spelling is known. */
#define REFUSE_AS(b, status, name, error, ...) \
    build_refuse(b, status, name, name, error, __VA_ARGS__)
#define REFUSE(b, name, error, ...) REFUSE_AS(b, OB_ERR_FORMAT, name, error, __VA_ARGS__)

ob_status build_flag(struct build *b, const char *gguf, const char *hf, bool *io, ob_error *error) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    if (!key) return *io ? build_not_null(b, hf, error) : OB_OK;
    if (is_one(b, key) && source_bool(b->meta, key, 0, io))
        return noted(b, key, 0, true, NULL), OB_OK;
    return REFUSE(b, key, error, "is not true or false");
}

ob_status build_plain(struct build *b, const struct plain *list, ob_error *error) {
    for (const struct plain *p = list; p->gguf || p->hf; p++) {
        char scratch[NAME_MAX_BYTES], is[32];
        double v;
        bool flag = false, is_flag;
        const char *key = build_key(b, p->gguf, p->hf, scratch, sizeof scratch);
        if (!key) continue;
        if (!is_one(b, key)) return REFUSE(b, key, error, "is not a number");
        is_flag = source_bool(b->meta, key, 0, &flag);
        if (is_flag) v = flag;
        else if (!source_f64(b->meta, key, 0, &v))
            return REFUSE(b, key, error, "is not a number");
        if (v != p->value && v != p->also)
            return build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error,
                                "%s, which is %s, is not supported in this family",
                                str_number(v, is), p->what);
        noted(b, key, 0, true, NULL);
    }
    return OB_OK;
}

static bool in_range(const struct key *k, double v) {
    return isfinite(v) && v >= k->min && (k->max == 0 || v <= k->max);
}

/* One number of a key, checked. */
static ob_status read_number(struct build *b, const struct key *k, const char *name, uint64_t i,
                             double *out, ob_error *error) {
    uint64_t whole;
    bool real = k->type == KEY_F32 || k->type == KEY_REAL, flag;
    bool ok = real ? source_f64(b->meta, name, i, out) : source_u64(b->meta, name, i, &whole);
    if (!ok && k->type == KEY_WHOLE && source_bool(b->meta, name, i, &flag)) {
        whole = flag;
        ok = true;
    }
    if (!ok)
        return REFUSE(b, name, error, "is not a %s", real ? "number" : "whole number >= 0");
    if (!real) {
        if (whole > UINT32_MAX) return REFUSE(b, name, error, "is too large");
        *out = (double)whole;
    }
    if (in_range(k, *out)) return noted(b, name, i, true, NULL), OB_OK;
    char is[32], min[32], max[32];
    str_number(*out, is);
    str_number(k->min, min);
    if (k->max == 0) return REFUSE(b, name, error, "%s is less than %s", is, min);
    return REFUSE(b, name, error, "%s is not in %s to %s", is, min, str_number(k->max, max));
}

static ob_status read_layers(struct build *b, const struct key *k, const char *name, uint32_t *out,
                             ob_error *error) {
    uint64_t n = name ? source_count(b->meta, name) : 0;
    if (name && n != 1 && n != b->hp->layers)
        return REFUSE(b, name, error, "has %llu entries, the model %u layers",
                      (unsigned long long)n, b->hp->layers);
    for (uint32_t i = 0; i < b->hp->layers; i++) {
        double v = k->otherwise;
        if (name) {
            ob_status s = read_number(b, k, name, n == 1 ? 0 : i, &v, error);
            if (s != OB_OK) return s;
        }
        out[i] = (uint32_t)v;
    }
    return OB_OK;
}

ob_status build_agree(struct build *b, const char *names, ob_error *error) {
    char other[NAME_MAX_BYTES], scratch[NAME_MAX_BYTES];
    const char *first = build_key(b, NULL, names, scratch, sizeof scratch);
    if (!first) return OB_OK;
    for (const char *p = names; p && *p; p += strcspn(p, "|"), p += *p == '|') {
        double v, w;
        struct str s, t;
        snprintf(other, sizeof other, "%.*s", (int)strcspn(p, "|"), p);
        if (strcmp(other, first) == 0 || !has_key(b, other, true)) continue;
        bool numbers = source_f64(b->meta, first, 0, &v) && source_f64(b->meta, other, 0, &w);
        bool words = source_str(b->meta, first, 0, &s) && source_str(b->meta, other, 0, &t);
        if ((!numbers || v == w) && (!words || str_eq(s, t))) continue;
        return REFUSE(b, other, error, "says another thing than %s", first);
    }
    return OB_OK;
}

ob_status build_not_null(struct build *b, const char *names, ob_error *error) {
    char key[NAME_MAX_BYTES];
    for (const char *p = names; p && *p; p += strcspn(p, "|"), p += *p == '|') {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(p, "|"), p);
        if (source_null(b->meta, key)) return REFUSE(b, key, error, "is null");
    }
    return OB_OK;
}

static ob_status read_key(struct build *b, const struct key *k, bool shared, ob_error *error) {
    char scratch[NAME_MAX_BYTES];
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    const char *name = build_key(b, k->gguf, k->hf, scratch, sizeof scratch);
    const char *spelled = gguf ? k->gguf : k->hf;
    ob_status s = OB_OK;
    /* Classes take null for 0, or for false. */
    if (!name && k->name && k->otherwise != 0) s = build_not_null(b, k->hf, error);
    if (name && !gguf && shared && k->field != offsetof(struct hparams, context))
        s = build_agree(b, k->hf, error);
    if (s != OB_OK) return s;
    if (!name && k->need == REQUIRED && spelled)
        return REFUSE(b, spelled, error, "required key is missing");
    char *field = (char *)b->hp + k->field;
    double v = k->otherwise;
    if (k->type == KEY_LAYERS) {
        uint32_t *list = arena_array(b->arena, b->hp->layers, sizeof *list);
        if (!list) return error_memory(error, "hyperparameters", b->hp->layers * sizeof *list);
        memcpy(field, &list, sizeof list);
        return read_layers(b, k, name, list, error);
    }
    struct str word;
    if (name && !gguf && k->type == KEY_COUNT && source_str(b->meta, name, 0, &word)) {
        v = (double)source_count(b->meta, name);
        if (!in_range(k, v)) return REFUSE(b, name, error, "has too many entries");
    } else if (name) {
        uint64_t n = source_count(b->meta, name);
        if (n == 0 || (n != 1 && n != b->hp->layers))
            return REFUSE(b, name, error, "has %llu entries, one number is wanted",
                          (unsigned long long)n);
        s = read_number(b, k, name, 0, &v, error);
        for (uint64_t i = 1; s == OB_OK && i < n; i++) { /* a number a layer, the same in all */
            double other;
            s = read_number(b, k, name, i, &other, error);
            if (s == OB_OK && other != v)
                return REFUSE(b, name, error, "layers differ, one number is wanted");
        }
        if (s != OB_OK) return s;
    }
    if (k->name) return build_set(b, k->name, v, error);
    if (k->type == KEY_F32)
        memcpy(field, &(float){(float)v}, sizeof(float));
    else
        memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
    return OB_OK;
}

/* ---- numbers by name ---- */

static struct number *find_number(const struct build *b, const char *name) {
    for (uint32_t i = 0; i < b->hp->numbers; i++)
        if (strcmp(b->hp->number[i].name, name) == 0) return &b->hp->number[i];
    return NULL;
}

ob_status build_set(struct build *b, const char *name, double value, ob_error *error) {
    struct number *n = find_number(b, name);
    if (!n && b->hp->numbers == NUMBERS_MAX)
        return error_memory(error, "hyperparameters", sizeof *n);
    if (!n) n = &b->hp->number[b->hp->numbers++];
    *n = (struct number){name, value};
    return OB_OK;
}

double build_number(const struct build *b, const char *name) {
    const struct number *n = find_number(b, name);
    assert(n); /* a recipe asks for what no key of it names */
    return n ? n->value : 0;
}

uint32_t build_whole(const struct build *b, const char *name) {
    return (uint32_t)build_number(b, name);
}

/* ---- activations ---- */

bool build_act_named(struct str name, enum act_kind *out) {
    static const struct {
        const char *name;
        enum act_kind kind;
    } list[] = {
        {"gelu", ACT_GELU_ERF},
        {"gelu_fast", ACT_GELU_TANH},
        {"gelu_new", ACT_GELU_TANH},
        {"gelu_python", ACT_GELU_ERF},
        {"gelu_pytorch_tanh", ACT_GELU_TANH},
        {"quick_gelu", ACT_GELU_QUICK},
        {"relu", ACT_RELU},
        {"relu2", ACT_RELU2},
        {"sigmoid", ACT_SIGMOID},
        {"silu", ACT_SILU},
        {"swish", ACT_SILU},
        {"tanh", ACT_TANH},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (str_is(name, list[i].name)) return *out = list[i].kind, true;
    return false;
}

/* The one that config.json names, or the family's. */
static ob_status read_act(struct build *b, ob_error *error) {
    const struct recipe *r = b->recipe;
    struct str act = str_of(r->act ? r->act : "silu");
    const char *keys = r->act_key ? r->act_key : "hidden_act|hidden_activation|activation_function";
    ob_status s = build_agree(b, keys, error);
    if (s != OB_OK) return s;
    build_str(b, NULL, keys, &act);
    if (build_act_named(act, &b->hp->act)) return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, keys, keys, error,
                        "activation \"%.*s\" is not known", STR_ARG(act));
}

/* ---- keys that nobody asked for -------------------------------------------------------------- */

/* Words in the names of keys that change what a model computes. */
static bool matters(struct str key) {
    static const char *const words[] = {"alibi",  "clamp",  "clip",    "multiplier", "rope_",
                                        "rotary", "scale",  "scaling", "softcap",    "temperature",
                                        "window", "use_qk", "limit"};
    static const char *const not_these[] = {"initializer", "layerscale_value", "image", "vision",
                                          "scale_factor" /* of an image */};
    for (size_t i = 0; i < sizeof not_these / sizeof not_these[0]; i++)
        if (str_contains(key, not_these[i])) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_contains(key, words[i])) return true;
    return false;
}

struct unread {
    struct build *b;
    char name[NAME_MAX_BYTES];
};

/* Keeps the first key that matters, has a value and was not read, nor any key inside it. */
static void look_unread(void *user, struct str key) {
    struct unread *u = user;
    if (u->name[0] || !matters(key) || key.n >= sizeof u->name) return;
    for (uint32_t i = 0; i < u->b->asked_count; i++) {
        const char *asked = u->b->asked[i].name;
        if (strncmp(asked, key.p, key.n) == 0 && (asked[key.n] == 0 || asked[key.n] == '.')) return;
    }
    snprintf(u->name, sizeof u->name, "%.*s", STR_ARG(key));
}

ob_status check_unread(struct build *b, ob_error *error) {
    struct unread u = {.b = b};
    source_each_key(b->meta, look_unread, &u);
    if (!u.name[0]) return OB_OK;
    return REFUSE_AS(b, OB_ERR_UNSUPPORTED, u.name, error,
                     "the %s recipe does not know this key, which may change what is computed",
                     b->recipe->family);
}

/* Numbers that mean "none" in hparams, or in a GGUF file, where they are 0; classes compute with a
 * 0, or fail. */
ob_status check_zeros(struct build *b, ob_error *error) {
    static const char *const list[] = {
        "attention_multiplier", "attn_logit_softcapping", "clip_qkv", "embedding_scale",
        "final_logit_softcapping", "gate_soft_cap", "local_attention", "mixer_rms_eps",
        "moe_routed_scaling_factor", "n_group", "num_expert_group",
        "num_blocks", "num_key_value_heads", "num_kv_heads", "route_scale", "routed_scaling_factor",
        "router_scaling_factor", "sliding_window", "swiglu_limit", "topk_group", "v_head_dim",
        "vocab_size_per_layer_input"};
    double v;
    const char *act = b->recipe->act_key ? b->recipe->act_key : "hidden_act";
    if (b->hp->glu_clamp.alpha > 0 && b->hp->act != ACT_SILU && build_has(b, NULL, act))
        return REFUSE_AS(b, OB_ERR_UNSUPPORTED, act, error,
                         "is not \"silu\", the one activation of this family");
    for (size_t i = 0; i < sizeof list / sizeof list[0] && source_kind(b->meta) == SOURCE_HF; i++)
        if (find_asked(b, list[i]) && has_key(b, list[i], true) &&
            source_f64(b->meta, list[i], 0, &v) && v == 0)
            return REFUSE(b, list[i], error, "is 0");
    return OB_OK;
}

/* One word a layer, whatever a family reads of it. */
static void check_layer_types(struct build *b) {
    static const char *const list[] = {"indexer_types", "layer_types", "layers_block_type",
                                       "mlp_layer_types"};
    struct str word;
    for (size_t k = 0; k < sizeof list / sizeof list[0] && source_kind(b->meta) == SOURCE_HF; k++) {
        if (!source_has(b->meta, list[k])) continue;
        uint64_t n = source_count(b->meta, list[k]);
        if (n != b->hp->layers)
            build_wrong(b, list[k], "has %llu entries, the model %u layers", (unsigned long long)n,
                        b->hp->layers);
        for (uint64_t i = 0; i < n; i++)
            noted(b, list[k], i, source_str(b->meta, list[k], i, &word), "a string");
    }
}

/* What a word says of a layer: is it so? */
static bool is_so(const struct hparams *hp, uint32_t i, struct str word, bool some) {
    static const char *const others[] = {
        "attention", "compressed_sparse_attention", "deepseek_sparse_attention",
        "hash_moe", "heavily_compressed_attention", "hybrid", "hybrid_sliding",
        "indexed_attention", "mamba",
        "minimax_m3_sparse", "moe", "qwen_sparse_attention", "window_attention"};
    bool state = hp->recurrent && hp->recurrent[i], window = hp->window && hp->window[i];
    if (str_is(word, "full_attention")) return !state && (!window || !some);
    if (str_is(word, "sliding_attention")) return !state && (window || hp->window_size == 0);
    if (str_is(word, "chunked_attention")) return hp->chunk && hp->chunk[i];
    if (str_is(word, "linear_attention") || str_is(word, "conv")) return state;
    if (str_is(word, "sparse")) return hp->experts && hp->experts[i];
    if (str_is(word, "dense")) return !hp->experts || !hp->experts[i];
    /* of some families: what these are their recipes say */
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        if (str_is(word, others[k])) return true;
    return false;
}

ob_status check_words(struct build *b, ob_error *error) {
    static const char *const list[] = {"layer_types", "mlp_layer_types"};
    struct str word;
    bool some = false; /* slide; elsewhere windows are not the list's to say */
    for (uint32_t i = 0; i < b->hp->layers; i++)
        some |= source_str(b->meta, list[0], i, &word) && str_is(word, "sliding_attention");
    for (size_t k = 0; k < 2 && source_kind(b->meta) == SOURCE_HF; k++)
        for (uint32_t i = 0; i < b->hp->layers; i++)
            if (source_count(b->meta, list[k]) == b->hp->layers && has_key(b, list[k], true) &&
                source_str(b->meta, list[k], i, &word) && !is_so(b->hp, i, word, some))
                return REFUSE_AS(b, OB_ERR_UNSUPPORTED, list[k], error,
                                 "layer %u is \"%.*s\", which it is not in this family, or not by "
                                 "the other keys",
                                 i, STR_ARG(word));
    return OB_OK;
}

ob_status load_keys(struct build *b, ob_error *error) {
    const char *null = source_wrong_null(b->meta);
    if (null) return REFUSE(b, null, error, "is null");
    for (const struct key *const *table = b->recipe->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++) {
            ob_status s = read_key(b, k, *table == decoder_keys || *table == moe_keys,
                                   error);
            if (s != OB_OK) return s;
        }
    check_layer_types(b);
    return read_act(b, error);
}
