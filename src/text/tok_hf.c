/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_hf.c: a tokenizer from a Hugging Face directory: tokenizer.json makes it, or tekken.json, or
 * a file in tiktoken's format; tokenizer_config.json names BOS and EOS and may hold chat templates,
 * chat_template.jinja and additional_chat_templates/ hold them otherwise, generation_config.json
 * (or config.json) lists the ends of generation. Only the first must be there. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "text/tok_impl.h"
#include "text/tok_tiktoken.h"

enum { LARGEST = 1 << 30 };

struct dir {
    struct tok *tok;
    const struct source *source;
    char path[256]; /* of the file being read, for errors */
    ob_error *error;
};

static ob_status at_file(struct dir *d, ob_status status, const char *where) {
    if (status != OB_OK) error_at(d->error, d->path, where, OB_NO_OFFSET);
    return status;
}

/* A file of the directory, malloc'd; *text stays NULL if it is not there. */
static ob_status read_file(struct dir *d, const char *name, char **text, size_t *n) {
    *text = NULL;
    int len = snprintf(d->path, sizeof d->path, "%s/%s", source_path(d->source), name);
    if (len < 0 || (size_t)len >= sizeof d->path)
        return error_set(d->error, OB_ERR_LIMIT, "the path of %s is too long", name);
    if (!os_exists(d->path)) return OB_OK;
    return at_file(d, os_read_file(d->path, LARGEST, text, n, d->error), NULL);
}

/* The same as JSON; NULL if not there. */
static ob_status read_json(struct dir *d, const char *name, size_t flags, json_t **out) {
    char *text;
    size_t n;
    json_error_t at;
    *out = NULL;
    ob_status status = read_file(d, name, &text, &n);
    if (status != OB_OK || !text) return status;
    *out = json_loadb(text, n, JSON_ALLOW_NUL | flags, &at);
    free(text);
    if (*out) return OB_OK;
    error_set(d->error, OB_ERR_FORMAT, "malformed JSON: %s", at.text);
    error_at(d->error, d->path, NULL, at.position > 0 ? (uint64_t)at.position : OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

/* ---- tokenizer_config.json ---- */

/* A token by its text, or by {"content": text}; *id unchanged if absent or null. */
static ob_status read_token(struct dir *d, const json_t *config, const char *key, int32_t *id) {
    const json_t *value = json_object_get(config, key);
    if (json_is_object(value)) value = json_object_get(value, "content");
    if (!value || json_is_null(value)) return OB_OK;
    struct str text = {json_string_value(value), json_string_length(value)};
    if (text.p && (*id = vocab_find(&d->tok->vocab, text)) >= 0) return OB_OK;
    error_set(d->error, OB_ERR_FORMAT, "not a token of the vocabulary");
    return at_file(d, OB_ERR_FORMAT, key);
}

static ob_status read_flag(struct dir *d, const json_t *config, const char *key, bool *flag) {
    const json_t *value = json_object_get(config, key);
    if (json_is_boolean(value)) *flag = json_is_true(value);
    if (!value || json_is_boolean(value) || json_is_null(value)) return OB_OK;
    error_set(d->error, OB_ERR_FORMAT, "not a boolean");
    return at_file(d, OB_ERR_FORMAT, key);
}

static ob_status add_template(struct dir *d, struct str name, struct str text) {
    if (str_is(name, "default")) name.n = 0;
    for (size_t i = 0; i < d->tok->template_count; i++) {
        const char *have = d->tok->templates[i].name;
        /* chat_template.jinja is read first and wins, as in the reference. */
        if (have ? str_is(name, have) : name.n == 0) return OB_OK;
    }
    return tok_add_template(d->tok, name, text, d->error);
}

/* One template, or a list of {"name", "template"}. */
static ob_status read_templates(struct dir *d, const json_t *value) {
    ob_status status = OB_OK;
    if (json_is_string(value))
        return add_template(d, (struct str){"", 0},
                            (struct str){json_string_value(value), json_string_length(value)});
    for (size_t i = 0; i < json_array_size(value) && status == OB_OK; i++) {
        const json_t *item = json_array_get(value, i);
        const json_t *name = json_object_get(item, "name"),
                     *text = json_object_get(item, "template");
        if (!json_is_string(name) || !json_is_string(text)) {
            error_set(d->error, OB_ERR_FORMAT, "a template without a name or text");
            return at_file(d, OB_ERR_FORMAT, "chat_template");
        }
        status = add_template(d, str_of(json_string_value(name)),
                              (struct str){json_string_value(text), json_string_length(text)});
    }
    return at_file(d, status, "chat_template");
}

static ob_status read_config(struct dir *d) {
    json_t *config;
    struct tok *tok = d->tok;
    ob_status s = read_json(d, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL, &config);
    if (s != OB_OK || !config) return s;
    s = read_token(d, config, "bos_token", &tok->bos);
    if (s == OB_OK) s = read_token(d, config, "eos_token", &tok->eos);
    if (s == OB_OK) s = read_flag(d, config, "add_bos_token", &tok->add_bos);
    if (s == OB_OK) s = read_flag(d, config, "add_eos_token", &tok->add_eos);
    if (s == OB_OK) s = read_templates(d, json_object_get(config, "chat_template"));
    json_decref(config);
    return s;
}

/* ---- chat templates in files of their own ---- */

static ob_status read_template_file(struct dir *d, const char *file, struct str name) {
    char *text;
    size_t n;
    ob_status status = read_file(d, file, &text, &n);
    if (status == OB_OK && text)
        status = at_file(d, add_template(d, name, (struct str){text, n}), NULL);
    free(text);
    return status;
}

static ob_status read_template_files(struct dir *d) {
    static const char folder[] = "additional_chat_templates", suffix[] = ".jinja";
    char path[512], **names;
    size_t n;
    ob_status status = read_template_file(d, "chat_template.jinja", (struct str){"", 0});
    snprintf(path, sizeof path, "%s/%s", source_path(d->source), folder);
    if (status != OB_OK || !os_is_dir(path)) return status;
    status = os_list_dir(path, &names, &n, d->error);
    if (status != OB_OK) return status;
    for (size_t i = 0; i < n && status == OB_OK; i++) {
        struct str name = str_of(names[i]);
        if (name.n < sizeof suffix || strcmp(names[i] + name.n - (sizeof suffix - 1), suffix) != 0)
            continue;
        name.n -= sizeof suffix - 1;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        status = read_template_file(d, path, name);
    }
    os_free_list(names, n);
    return status;
}

/* ---- ends of generation ---- */

static ob_status read_end(struct dir *d, const json_t *value) {
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= (json_int_t)d->tok->vocab.n) {
        error_set(d->error, OB_ERR_FORMAT, "not the id of a token");
        return at_file(d, OB_ERR_FORMAT, "eos_token_id");
    }
    tok_mark_end(d->tok, (int32_t)id);
    return OB_OK;
}

/* "eos_token_id": an id, a list, or null. */
static ob_status read_ends(struct dir *d, const char *file, bool *found) {
    json_t *config;
    ob_status status = read_json(d, file, 0, &config);
    if (status != OB_OK || !config) return status;
    const json_t *value = json_object_get(config, "eos_token_id");
    *found = value && !json_is_null(value);
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value) && status == OB_OK; i++)
            status = read_end(d, json_array_get(value, i));
    } else if (*found) {
        status = read_end(d, value);
    }
    json_decref(config);
    return status;
}

/* ---- the tokenizer itself ---- */

/* A file in tiktoken's format, if tokenizer_config.json tells whose it is. */
static ob_status read_tiktoken(struct dir *d, bool *found) {
    json_t *config;
    char **names, *text = NULL;
    size_t n = 0, size;
    ob_status status = read_json(d, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL, &config);
    const char *class = json_string_value(json_object_get(config, "tokenizer_class"));
    const struct tiktoken_kind *kind = class ? tiktoken_kind_of(str_of(class)) : NULL;
    if (status != OB_OK || !kind) {
        json_decref(config);
        return status;
    }
    status = os_list_dir(source_path(d->source), &names, &n, d->error);
    if (status != OB_OK) n = 0, names = NULL;
    for (size_t i = 0; i < n && status == OB_OK && !*found; i++) {
        if (!tiktoken_is_file(kind, str_of(names[i]))) continue;
        status = read_file(d, names[i], &text, &size);
        if (status != OB_OK || !text) continue;
        *found = true;
        status = at_file(
            d, tok_tiktoken(d->tok, kind, (struct str){text, size}, config, d->error), NULL);
    }
    free(text);
    if (names) os_free_list(names, n);
    json_decref(config);
    return status;
}

static ob_status read_tokenizer(struct dir *d) {
    static const struct {
        const char *file;
        ob_status (*read)(struct tok *tok, struct str json, ob_error *error);
    } files[] = {{"tokenizer.json", tok_hf_json}, {"tekken.json", tok_tekken}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text;
        size_t n;
        ob_status status = read_file(d, files[i].file, &text, &n);
        if (status != OB_OK) return status;
        if (!text) continue;
        status = at_file(d, files[i].read(d->tok, (struct str){text, n}, d->error), NULL);
        free(text);
        return status;
    }
    bool found = false;
    ob_status status = read_tiktoken(d, &found);
    if (status != OB_OK || found) return status;
    error_set(d->error, OB_ERR_NOT_FOUND, "the directory has no tokenizer.json");
    error_at(d->error, source_path(d->source), NULL, OB_NO_OFFSET);
    return OB_ERR_NOT_FOUND;
}

ob_status tok_open_hf(struct tok *tok, const struct source *source, ob_error *error) {
    struct dir d = {.tok = tok, .source = source, .error = error};
    ob_status status = read_tokenizer(&d);
    if (status == OB_OK) status = read_template_files(&d);
    if (status == OB_OK) status = read_config(&d);
    if (status != OB_OK) return status;
    tok_mark_end(tok, tok->eos);
    bool found = false;
    status = read_ends(&d, "generation_config.json", &found);
    if (status == OB_OK && !found) status = read_ends(&d, "config.json", &found);
    return status;
}
