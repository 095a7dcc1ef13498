/* SPDX-License-Identifier: Apache-2.0
 * tok_hf_parts.c: the sections of tokenizer.json, see tok_hf_read.h; post-processors. */
#include <stdio.h>

#include "base/error.h"
#include "text/tok_hf_read.h"

ob_status tok_hf_refuse(ob_error *error, const char *section, const char *what) {
    error_set(error, OB_ERR_UNSUPPORTED, "\"%s\" is not supported", what);
    error_at(error, NULL, section, OB_NO_OFFSET);
    return OB_ERR_UNSUPPORTED;
}

struct str hf_str(const json_t *part, const char *key) {
    const json_t *value = json_object_get(part, key);
    const char *text = json_string_value(value);
    return text ? (struct str){text, json_string_length(value)} : (struct str){"", 0};
}

bool hf_bool(const json_t *part, const char *key, bool missing) {
    const json_t *value = json_object_get(part, key);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

ob_status hf_refuse(const struct hf_reader *r, const json_t *part, const char *setting) {
    char what[128];
    struct str type = hf_str(part, "type");
    snprintf(what, sizeof what, "%.*s %s", STR_ARG(type), setting);
    return tok_hf_refuse(r->error, r->section, what);
}

struct str hf_keep(const struct hf_reader *r, struct str text) {
    char *copy = arena_copy(&r->tok->arena, text.p, text.n);
    return copy ? (struct str){copy, text.n} : (struct str){NULL, 0};
}

ob_status hf_pattern(const struct hf_reader *r, const json_t *part, struct str *string,
                     struct str *regex) {
    const json_t *pattern = json_object_get(part, "pattern");
    *string = hf_str(pattern, "String");
    *regex = hf_str(pattern, "Regex");
    if (string->n == 0 && regex->n == 0) return hf_refuse(r, part, "without a pattern");
    if (string->n == 0) return OB_OK;
    *string = hf_keep(r, *string);
    return string->p ? OB_OK : error_memory(r->error, "pattern", string->n);
}

ob_status hf_step(const struct hf_reader *r, normal_fn *apply, struct str from, struct str to) {
    struct normal_step step = {.apply = apply, .from = hf_keep(r, from), .to = hf_keep(r, to)};
    if (!step.from.p || !step.to.p) return error_memory(r->error, "normalizer", from.n + to.n);
    return tok_add_step(&r->tok->normal, step, r->error);
}

static ob_status read_part(struct hf_reader *r, const struct hf_row *rows, const char *list,
                           const json_t *part, int depth) {
    if (!part || json_is_null(part)) return OB_OK;
    struct str type = hf_str(part, "type");
    if (str_is(type, "Sequence") && depth < 8) {
        const json_t *elements = json_object_get(part, list);
        for (size_t i = 0; i < json_array_size(elements); i++) {
            ob_status status = read_part(r, rows, list, json_array_get(elements, i), depth + 1);
            if (status != OB_OK) return status;
        }
        return OB_OK;
    }
    for (; rows->type; rows++)
        if (str_is(type, rows->type)) return rows->read(r, part);
    char name[128];
    snprintf(name, sizeof name, "%.*s", STR_ARG(type));
    return tok_hf_refuse(r->error, r->section, name);
}

/* ---- post-processors: BOS and EOS ---- */

static ob_status put_side(struct hf_reader *r, const json_t *part, bool after, bool last,
                          int32_t id) {
    struct tok *tok = r->tok;
    struct tok_side *more = after ? &tok->before_eos : &tok->after_bos;
    int32_t *end = after ? &tok->eos : &tok->bos;
    bool *adds = after ? &tok->add_eos : &tok->add_bos;
    if (after ? last : !*adds) {
        *end = id;
        *adds = true;
        return OB_OK;
    }
    if (more->n == TOK_SIDE) return hf_refuse(r, part, "with that many tokens");
    more->id[more->n++] = id;
    return OB_OK;
}

static ob_status read_template(struct hf_reader *r, const json_t *part) {
    const json_t *single = json_object_get(part, "single"), *item;
    const json_t *tokens = json_object_get(part, "special_tokens");
    bool after = false;
    size_t n = json_array_size(single);
    if (!json_is_array(single)) return hf_refuse(r, part, "without a list \"single\"");
    if (r->posted) return hf_refuse(r, part, "after another one");
    r->posted = true;
    for (size_t i = 0; (item = json_array_get(single, i)) != NULL; i++) {
        const json_t *special = json_object_get(item, "SpecialToken");
        if (!special) {
            if (after) return hf_refuse(r, part, "with two sequences");
            after = true;
            continue;
        }
        struct str name = hf_str(special, "id");
        const json_t *ids = json_object_get(json_object_get(tokens, name.p), "ids");
        for (size_t k = 0; k < json_array_size(ids) || k == 0; k++) {
            json_int_t id = json_integer_value(json_array_get(ids, k));
            if (!json_is_integer(json_array_get(ids, k)) || id < 0 ||
                id >= (json_int_t)r->tok->vocab.n)
                return hf_refuse(r, part, name.p);
            bool last = i + 1 == n && k + 1 == json_array_size(ids);
            ob_status status = put_side(r, part, after, last, (int32_t)id);
            if (status != OB_OK) return status;
        }
    }
    return OB_OK;
}

/* BertProcessing and RobertaProcessing: "cls" and "sep" are [text, id]. */
static ob_status read_ends(struct hf_reader *r, const json_t *part) {
    static const char *const keys[] = {"cls", "sep"};
    int32_t *id[] = {&r->tok->bos, &r->tok->eos};
    if (r->posted) return hf_refuse(r, part, "after another one");
    r->posted = true;
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_array_get(json_object_get(part, keys[i]), 1);
        json_int_t n = json_integer_value(value);
        if (!json_is_integer(value) || n < 0 || n >= (json_int_t)r->tok->vocab.n)
            return hf_refuse(r, part, keys[i]);
        *id[i] = (int32_t)n;
    }
    r->tok->add_bos = r->tok->add_eos = true;
    return OB_OK;
}

static ob_status read_nothing(struct hf_reader *r, const json_t *part) { /* it sets offsets only */
    (void)r, (void)part;
    return OB_OK;
}

const struct hf_row hf_post_processors[] = {{"BertProcessing", read_ends},
                                            {"ByteLevel", read_nothing},
                                            {"RobertaProcessing", read_ends},
                                            {"TemplateProcessing", read_template},
                                            {NULL, NULL}};

/* ---- the file ---- */

static ob_status read_section(struct hf_reader *r, const char *name, const struct hf_row *rows,
                              const char *list, struct str text) {
    if (!text.p) return OB_OK;
    json_error_t at;
    json_t *part = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &at);
    r->section = name;
    ob_status status = OB_OK;
    if (!part)
        status = error_set(r->error, OB_ERR_FORMAT, "malformed JSON: %s", at.text);
    else
        status = read_part(r, rows, list, part, 0);
    json_decref(part);
    error_at(r->error, NULL, status == OB_OK ? NULL : name, OB_NO_OFFSET);
    return status;
}

/* Bytes of the byte-level alphabet are made by the model where nothing comes after them. */
static ob_status settle_bytes(struct hf_reader *r) {
    struct tok *tok = r->tok;
    if (!r->bytes) return OB_OK;
    if (tok->model == &tokenizer_bpe) {
        tok->byte_level = true;
        tok->cuts--;
    }
    return OB_OK;
}

static bool is_null(struct str text) { return !text.p || str_is(text, "null"); }

ob_status tok_hf_json(struct tok *tok, struct str json, ob_error *error) {
    enum { ADDED, NORMALIZER, PRE, POST, DECODER, MODEL, MEMBERS };
    struct tok_hf_member m[MEMBERS] = {
        [ADDED] = {.name = "added_tokens"}, [NORMALIZER] = {.name = "normalizer"},
        [PRE] = {.name = "pre_tokenizer"},  [POST] = {.name = "post_processor"},
        [DECODER] = {.name = "decoder"},    [MODEL] = {.name = "model"}};
    struct hf_reader r = {.tok = tok, .error = error};
    ob_status s = tok_hf_members(json, json, m, MEMBERS, error);
    if (s == OB_OK && !m[MODEL].value.p)
        s = error_set(error, OB_ERR_FORMAT, "the file has no model");
    if (s == OB_OK)
        s = read_section(&r, "normalizer", hf_normalizers, "normalizers", m[NORMALIZER].value);
    if (s == OB_OK)
        s = read_section(&r, "pre_tokenizer", hf_pretokenizers, "pretokenizers", m[PRE].value);
    if (s == OB_OK) s = tok_hf_type(tok, m[MODEL].value, json, error);
    if (s == OB_OK) s = settle_bytes(&r);
    if (s == OB_OK) s = tok_hf_vocab(tok, m[MODEL].value, m[ADDED].value, json, error);
    if (s == OB_OK) s = read_section(&r, "decoder", hf_decoders, "decoders", m[DECODER].value);
    if (s == OB_OK && is_null(m[DECODER].value))
        s = tok_add_decoder(tok, (struct decode_step){.apply = decode_join}, error);
    if (s == OB_OK)
        s = read_section(&r, "post_processor", hf_post_processors, "processors", m[POST].value);
    if (s == OB_OK) s = tok_hf_added(tok, m[ADDED].value, json, error);
    if (s != OB_OK) return s;
    tok_find_ends(tok);
    const struct pretok *like = tok_pretok(tok);
    bool spaces = tok->model == &tokenizer_bpe && !tok->byte_level;
    if (spaces) tok->describe = arena_printf(&tok->arena, "bpe (sentencepiece)");
    else tok->describe = like ? arena_printf(&tok->arena, "%s (%s)", tok->model->name, like->name)
                         : arena_printf(&tok->arena, "%s", tok->model->name);
    return tok->describe ? OB_OK : error_memory(error, "tokenizer", 0);
}
