/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_hf_parts.c: the small components of tokenizer.json: normalizer, pre_tokenizer, post_processor
 * and decoder. Each type has a row that says how to read it; a Sequence is its elements in order.
 * What has no row, and a setting that asks for something we lack, is refused by its name. */
#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "text/tok_impl.h"

#define SPACE "\xe2\x96\x81"

ob_status tok_hf_refuse(ob_error *error, const char *section, const char *what) {
    error_set(error, OB_ERR_UNSUPPORTED, "\"%s\" is not supported", what);
    error_at(error, NULL, section, OB_NO_OFFSET);
    return OB_ERR_UNSUPPORTED;
}

struct reader { /* what reading a section needs and finds */
    struct tok *tok;
    const char *section;
    ob_error *error;
    bool space_replaced; /* a normalizer replaced all spaces by U+2581 */
    bool split, bytes;   /* pre_tokenizer: a regular expression, the byte-level alphabet */
    bool words;            /* pre_tokenizer: BERT's */
    bool decoder_bytes, decoder_space; /* decoder: byte-level alphabet, U+2581 to space */
    bool decoder_words;    /* WordPiece's */
    size_t before, after;              /* post_processor: tokens around the text */
};

struct row {
    const char *type;
    ob_status (*read)(struct reader *r, const json_t *part);
};

static const char *text_of(const json_t *part, const char *key) {
    const char *text = json_string_value(json_object_get(part, key));
    return text ? text : "";
}

static bool true_of(const json_t *part, const char *key, bool missing) {
    const json_t *value = json_object_get(part, key);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

static ob_status refuse(const struct reader *r, const json_t *part, const char *setting) {
    char what[128];
    snprintf(what, sizeof what, "%s %s", text_of(part, "type"), setting);
    return tok_hf_refuse(r->error, r->section, what);
}

static ob_status read_part(struct reader *r, const struct row *rows, const char *list,
                           const json_t *part, int depth) {
    if (!part || json_is_null(part)) return OB_OK;
    const char *type = text_of(part, "type");
    if (strcmp(type, "Sequence") == 0 && depth < 8) {
        const json_t *elements = json_object_get(part, list);
        for (size_t i = 0; i < json_array_size(elements); i++) {
            ob_status status = read_part(r, rows, list, json_array_get(elements, i), depth + 1);
            if (status != OB_OK) return status;
        }
        return OB_OK;
    }
    for (; rows->type; rows++)
        if (strcmp(rows->type, type) == 0) return rows->read(r, part);
    return tok_hf_refuse(r->error, r->section, type);
}

static ob_status add_step(struct reader *r, struct tok_steps *steps, normal_fn *apply,
                          const char *from, const char *to) {
    struct normal_step step = {.apply = apply};
    const char *text[2] = {from, to};
    struct str *into[2] = {&step.from, &step.to};
    for (int i = 0; i < 2; i++) {
        size_t n = text[i] ? strlen(text[i]) : 0;
        char *copy = arena_copy(&r->tok->arena, text[i], n);
        if (!copy) return error_memory(r->error, "normalizer", n);
        *into[i] = (struct str){copy, n};
    }
    return tok_add_step(steps, step, r->error);
}

/* ---- normalizers ---- */

static ob_status read_nfc(struct reader *r, const json_t *part) {
    (void)part;
    return add_step(r, &r->tok->normal, normal_nfc, NULL, NULL);
}

static ob_status read_prepend(struct reader *r, const json_t *part) {
    return add_step(r, &r->tok->normal, normal_prepend, NULL, text_of(part, "prepend"));
}

static ob_status read_replace(struct reader *r, const json_t *part) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *from = text_of(pattern, "String"), *to = text_of(part, "content");
    if (from[0] == 0) return refuse(r, part, "without a string to replace");
    if (strcmp(from, " ") == 0 && strcmp(to, SPACE) == 0) r->space_replaced = true;
    return add_step(r, &r->tok->normal, normal_replace, from, to);
}

/* strip_accents: null is "as lowercase". */
static ob_status read_bert(struct reader *r, const json_t *part) {
    bool lower = true_of(part, "lowercase", true);
    const struct {
        bool on;
        normal_fn *apply;
    } steps[] = {{true_of(part, "clean_text", true), normal_bert_clean},
                 {true_of(part, "handle_chinese_chars", true), normal_bert_chinese},
                 {true_of(part, "strip_accents", lower), normal_bert_strip},
                 {lower, normal_bert_lower}};
    ob_status status = OB_OK;
    for (size_t i = 0; i < 4 && status == OB_OK; i++)
        if (steps[i].on) status = add_step(r, &r->tok->normal, steps[i].apply, NULL, NULL);
    return status;
}

static const struct row normalizers[] = {
    {"BertNormalizer", read_bert},
    {"NFC", read_nfc},
    {"Prepend", read_prepend}, {"Replace", read_replace}, {NULL, NULL}};

/* ---- pre-tokenizers ---- */

static ob_status set_pretok(struct reader *r, const json_t *part, const struct pretok *pretok) {
    if (!pretok) return refuse(r, part, "with this expression");
    if (r->split) return refuse(r, part, "as a second split");
    r->split = true;
    r->tok->pretok = pretok;
    return OB_OK;
}

static ob_status read_split(struct reader *r, const json_t *part) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *behavior = text_of(part, "behavior");
    bool invert = true_of(part, "invert", false);
    /* Gemma's: there are no spaces left to split at. */
    if (r->space_replaced && strcmp(text_of(pattern, "String"), " ") == 0) return OB_OK;
    if (r->bytes) return refuse(r, part, "after ByteLevel");
    /* Our expressions match everywhere, so that these two are one. */
    if (!(strcmp(behavior, "Isolated") == 0 && !invert) &&
        !(strcmp(behavior, "Removed") == 0 && invert))
        return refuse(r, part, behavior);
    return set_pretok(r, part, pretok_for_regex(str_of(text_of(pattern, "Regex"))));
}

static ob_status read_byte_level(struct reader *r, const json_t *part) {
    if (true_of(part, "add_prefix_space", true)) {
        if (r->split) return refuse(r, part, "add_prefix_space after a split");
        ob_status status = add_step(r, &r->tok->pre, normal_prefix, NULL, " ");
        if (status != OB_OK) return status;
    }
    r->bytes = r->tok->byte_level = true;
    if (!true_of(part, "use_regex", true)) return OB_OK;
    return set_pretok(r, part, pretok_for_gguf(STR_LIT("gpt-2")));
}

static ob_status read_metaspace(struct reader *r, const json_t *part) {
    const char *scheme = text_of(part, "prepend_scheme");
    if (strcmp(text_of(part, "replacement"), SPACE) != 0) return refuse(r, part, "replacement");
    if (r->bytes) return refuse(r, part, "after ByteLevel");
    if (true_of(part, "split", true)) return refuse(r, part, "split");
    bool always = true_of(part, "add_prefix_space", true), first = strcmp(scheme, "first") == 0;
    if (scheme[0]) always = strcmp(scheme, "always") == 0;
    ob_status status = add_step(r, &r->tok->pre, normal_replace, " ", SPACE);
    if (status != OB_OK || (!always && !first)) return status;
    return add_step(r, &r->tok->pre, first ? normal_prefix_start : normal_prefix, NULL, SPACE);
}

static ob_status read_bert_words(struct reader *r, const json_t *part) {
    r->words = true;
    return set_pretok(r, part, &pretok_bert);
}

static const struct row pretokenizers[] = {{"BertPreTokenizer", read_bert_words},
                                           {"ByteLevel", read_byte_level},
                                           {"Metaspace", read_metaspace},
                                           {"Split", read_split},
                                           {NULL, NULL}};

/* ---- post-processors: BOS and EOS ---- */

static ob_status read_template(struct reader *r, const json_t *part) {
    const json_t *single = json_object_get(part, "single"), *item;
    const json_t *tokens = json_object_get(part, "special_tokens");
    struct tok *tok = r->tok;
    bool after = false;
    for (size_t i = 0; (item = json_array_get(single, i)) != NULL; i++) {
        const json_t *special = json_object_get(item, "SpecialToken");
        if (!special) {
            if (after) return refuse(r, part, "with two sequences");
            after = true;
            continue;
        }
        const json_t *ids = json_object_get(json_object_get(tokens, text_of(special, "id")), "ids");
        json_int_t id = json_integer_value(json_array_get(ids, 0));
        if (json_array_size(ids) != 1 || id < 0 || id >= (json_int_t)tok->vocab.n)
            return refuse(r, part, text_of(special, "id"));
        size_t *count = after ? &r->after : &r->before;
        if ((*count)++) return refuse(r, part, "with several tokens a side");
        *(after ? &tok->eos : &tok->bos) = (int32_t)id;
        *(after ? &tok->add_eos : &tok->add_bos) = true;
    }
    return OB_OK;
}

/* BertProcessing and RobertaProcessing: "cls" and "sep" are [text, id]. */
static ob_status read_ends(struct reader *r, const json_t *part) {
    static const char *const keys[] = {"cls", "sep"};
    int32_t *id[] = {&r->tok->bos, &r->tok->eos};
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_array_get(json_object_get(part, keys[i]), 1);
        json_int_t n = json_integer_value(value);
        if (!json_is_integer(value) || n < 0 || n >= (json_int_t)r->tok->vocab.n)
            return refuse(r, part, keys[i]);
        *id[i] = (int32_t)n;
    }
    r->tok->add_bos = r->tok->add_eos = true;
    return OB_OK;
}

static ob_status read_nothing(struct reader *r, const json_t *part) { /* it sets offsets only */
    (void)r, (void)part;
    return OB_OK;
}

static const struct row post_processors[] = {
    {"BertProcessing", read_ends},        {"ByteLevel", read_nothing},
    {"RobertaProcessing", read_ends}, {"TemplateProcessing", read_template}, {NULL, NULL}};

/* ---- decoders ---- */

static ob_status read_decode_bytes(struct reader *r, const json_t *part) {
    (void)part;
    r->decoder_bytes = true;
    return OB_OK;
}

static ob_status read_decode_replace(struct reader *r, const json_t *part) {
    const json_t *pattern = json_object_get(part, "pattern");
    if (strcmp(text_of(pattern, "String"), SPACE) != 0 ||
        strcmp(text_of(part, "content"), " ") != 0)
        return refuse(r, part, "of something else than U+2581 by a space");
    r->decoder_space = true;
    return OB_OK;
}

static ob_status read_decode_metaspace(struct reader *r, const json_t *part) {
    const char *scheme = text_of(part, "prepend_scheme");
    if (strcmp(text_of(part, "replacement"), SPACE) != 0) return refuse(r, part, "replacement");
    r->decoder_space = true;
    r->tok->strip_space =
        scheme[0] ? strcmp(scheme, "never") != 0 : true_of(part, "add_prefix_space", true);
    return OB_OK;
}

static ob_status read_strip(struct reader *r, const json_t *part) {
    if (strcmp(text_of(part, "content"), " ") != 0 ||
        json_integer_value(json_object_get(part, "start")) != 1 ||
        json_integer_value(json_object_get(part, "stop")) != 0)
        return refuse(r, part, "of something else than one space at the start");
    r->tok->strip_space = true;
    return OB_OK;
}

static ob_status read_decode_words(struct reader *r, const json_t *part) {
    (void)part;
    r->decoder_words = r->tok->strip_space = true;
    return OB_OK;
}

static const struct row decoders[] = {{"ByteFallback", read_nothing},
                                      {"ByteLevel", read_decode_bytes},
                                      {"Fuse", read_nothing},
                                      {"Metaspace", read_decode_metaspace},
                                      {"Replace", read_decode_replace},
                                      {"Strip", read_strip},
                                      {"WordPiece", read_decode_words},
                                      {NULL, NULL}};

/* ---- the file ---- */

static ob_status read_section(struct reader *r, const char *name, const struct row *rows,
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

static ob_status check(const struct reader *r) {
    if (r->words != r->decoder_words)
        return tok_hf_refuse(r->error, "decoder", "one that does not undo the pre_tokenizer");
    if (r->words) return OB_OK;
    if (r->bytes && !r->split) /* the whole text is one piece: no model we know */
        return tok_hf_refuse(r->error, "pre_tokenizer", "ByteLevel without an expression");
    if (!r->bytes && r->split) return tok_hf_refuse(r->error, "pre_tokenizer", "Split");
    if (r->bytes != r->decoder_bytes || r->bytes == r->decoder_space)
        return tok_hf_refuse(r->error, "decoder", "one that does not undo the pre_tokenizer");
    return OB_OK;
}

ob_status tok_hf_json(struct tok *tok, struct str json, ob_error *error) {
    enum { ADDED, NORMALIZER, PRE, POST, DECODER, MODEL, MEMBERS };
    struct tok_hf_member m[MEMBERS] = {
        [ADDED] = {.name = "added_tokens"}, [NORMALIZER] = {.name = "normalizer"},
        [PRE] = {.name = "pre_tokenizer"},  [POST] = {.name = "post_processor"},
        [DECODER] = {.name = "decoder"},    [MODEL] = {.name = "model"}};
    struct reader r = {.tok = tok, .error = error};
    ob_status s = tok_hf_members(json, json, m, MEMBERS, error);
    if (s == OB_OK && !m[MODEL].value.p)
        s = error_set(error, OB_ERR_FORMAT, "the file has no model");
    if (s == OB_OK)
        s = read_section(&r, m[NORMALIZER].name, normalizers, "normalizers", m[NORMALIZER].value);
    if (s == OB_OK) s = read_section(&r, m[PRE].name, pretokenizers, "pretokenizers", m[PRE].value);
    if (s == OB_OK) s = read_section(&r, m[DECODER].name, decoders, "decoders", m[DECODER].value);
    if (s == OB_OK) s = check(&r);
    if (s == OB_OK) s = tok_hf_vocab(tok, m[MODEL].value, m[ADDED].value, json, error);
    if (s == OB_OK)
        s = read_section(&r, m[POST].name, post_processors, "processors", m[POST].value);
    if (s == OB_OK) s = tok_hf_added(tok, m[ADDED].value, json, error);
    if (s != OB_OK) return s;
    tok_find_ends(tok);
    tok->describe = arena_printf(&tok->arena, "%s (%s)", tok->model->name,
                                 tok->pretok ? tok->pretok->name : "sentencepiece");
    return tok->describe ? OB_OK : error_memory(error, "tokenizer", 0);
}
