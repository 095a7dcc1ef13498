/* SPDX-License-Identifier: Apache-2.0
 * tok_tiktoken.c: see tok_tiktoken.h. */
#include "text/tok_tiktoken.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "format/json_pull.h"
#include "text/base64.h"

enum { MOST_TOKENS = 1 << 24, TEKKEN_SPECIALS = 1000, HOLES = 65536 };

struct list { /* tokens as they are read; texts in the tokenizer's memory */
    struct tok *tok;
    struct str *text;
    uint8_t *kind;
    size_t n, cap;
    size_t limit; /* of ids: holes are allowed, but memory follows the size of the file */
    ob_error *error;
};

static struct list list_of(struct tok *tok, struct str file, ob_error *error) {
    size_t limit = file.n / 2 + HOLES; /* a token takes four bytes at least */
    return (struct list){
        .tok = tok, .limit = limit < MOST_TOKENS ? limit : MOST_TOKENS, .error = error};
}

static void list_free(struct list *list) {
    free(list->text);
    free(list->kind);
}

/* Puts a token at an id that none has yet. */
static ob_status put(struct list *list, uint64_t id, struct str text, enum tok_kind kind) {
    if (id >= list->limit)
        return error_set(list->error, OB_ERR_FORMAT,
                         "the rank %llu is out of proportion to the vocabulary",
                         (unsigned long long)id);
    if (id >= list->cap) {
        size_t cap = list->cap ? list->cap : 1024;
        while (cap <= id) cap *= 2;
        struct str *texts = realloc(list->text, cap * sizeof *texts);
        if (texts) list->text = texts;
        uint8_t *kinds = realloc(list->kind, cap);
        if (kinds) list->kind = kinds;
        if (!texts || !kinds) return error_memory(list->error, "vocabulary", cap);
        memset(kinds + list->cap, TOK_NONE, cap - list->cap);
        list->cap = cap;
    }
    if (list->kind[id] != TOK_NONE)
        return error_set(list->error, OB_ERR_FORMAT, "two tokens have the rank %llu",
                         (unsigned long long)id);
    char *copy = arena_copy(&list->tok->arena, text.p, text.n);
    if (!copy) return error_memory(list->error, "vocabulary", text.n);
    list->text[id] = (struct str){copy, text.n};
    list->kind[id] = (uint8_t)kind;
    if (id >= list->n) list->n = id + 1;
    return OB_OK;
}

/* The same of base64 of its bytes, spelled in the byte-level alphabet. */
static ob_status put_bytes(struct list *list, uint64_t id, struct str base64) {
    struct buf text = BUF_INIT;
    char *bytes = malloc(base64.n / 4 * 3 + 3);
    size_t n = 0;
    bool good = bytes && base64_decode(base64, bytes, &n);
    for (size_t i = 0; good && i < n; i++) {
        char c[4];
        buf_add(&text, c, utf8_encode(tok_byte_char((uint8_t)bytes[i]), c));
    }
    ob_status status = !bytes || text.failed ? error_memory(list->error, "vocabulary", base64.n)
                       : good && n ? put(list, id, (struct str){text.p, text.n}, TOK_NORMAL)
                                   : error_set(list->error, OB_ERR_FORMAT,
                                               "token %llu is no base64 of bytes",
                                               (unsigned long long)id);
    free(bytes);
    buf_free(&text);
    return status;
}

/* ---- from the list to a tokenizer ---- */

/* All ways to make each token of two others. */
static ob_status make_merges(struct tok *tok, ob_error *error) {
    struct buf scratch = BUF_INIT;
    const struct vocab *vocab = &tok->vocab;
    ob_status status = OB_OK;
    for (int pass = 0; pass < 2 && status == OB_OK; pass++) {
        uint64_t pairs = 0;
        for (uint32_t id = 0; id < vocab->n && status == OB_OK; id++) {
            struct str all = vocab->text[id];
            if (vocab->kind[id] != TOK_NORMAL) continue;
            for (size_t at = 1; at < all.n && status == OB_OK; at++) {
                struct str left = {all.p, at}, right = {all.p + at, all.n - at};
                if (((unsigned char)all.p[at] & 0xc0) == 0x80) continue; /* inside a character */
                int32_t l = vocab_find_data(vocab, left), r = vocab_find_data(vocab, right);
                if (l < 0 || r < 0) continue;
                pairs++;
                if (pass == 1) status = tok_pairs_put(tok, id, left, right, &scratch, error);
            }
        }
        if (pass == 0) status = tok_pairs_init(tok, pairs, error);
    }
    if (status == OB_OK) {
        tok_pairs_end(tok);
        tok->ranks = vocab->n;
    }
    buf_free(&scratch);
    return status;
}

static ob_status finish(struct list *list, struct str regex, bool nfc) {
    struct tok *tok = list->tok;
    ob_error *error = list->error;
    tok->model = &tokenizer_bpe;
    tok->byte_level = tok->whole_words = true;
    if (list->n == 0) return error_set(error, OB_ERR_FORMAT, "the vocabulary is empty");
    ob_status s = vocab_init(&tok->vocab, &tok->arena, (uint32_t)list->n, error);
    if (s != OB_OK) return s;
    memcpy(tok->vocab.text, list->text, list->n * sizeof *list->text);
    memcpy(tok->vocab.kind, list->kind, list->n);
    for (size_t i = 0; i < list->n; i++)
        if (list->kind[i] == TOK_NONE) tok->vocab.text[i] = (struct str){"", 0};
    s = vocab_index(&tok->vocab, &tok->arena, error);
    if (s == OB_OK) s = make_merges(tok, error);
    if (s == OB_OK && nfc)
        s = tok_add_step(&tok->normal, (struct normal_step){.apply = normal_nfc}, error);
    if (s == OB_OK) s = tok_add_regex(tok, regex, error);
    if (s == OB_OK) s = tok_add_decoder(tok, (struct decode_step){.apply = decode_bytes}, error);
    tok_find_bytes(tok);
    for (uint32_t id = 0; s == OB_OK && id < tok->vocab.n; id++) {
        if (tok->vocab.kind[id] != TOK_CONTROL && tok->vocab.kind[id] != TOK_ADDED) continue;
        struct added_token token = {.id = (int32_t)id,
                                    .control = tok->vocab.kind[id] == TOK_CONTROL};
        tok->vocab.outside[id] = true;
        s = added_put(&tok->raw, tok->vocab.text[id], token, error);
    }
    if (s != OB_OK) return s;
    tok_find_ends(tok);
    const struct pretok *like = tok_pretok(tok);
    tok->describe = arena_printf(&tok->arena, "bpe (%s)", like ? like->name : "tiktoken");
    return tok->describe ? OB_OK : error_memory(error, "tokenizer", 0);
}

/* ---- tekken.json ---- */

static ob_status malformed(const struct json_pull *j, struct str base, ob_error *error) {
    ob_status status = j->kind == PULL_BAD ? pull_error(j, error)
                                           : error_set(error, OB_ERR_FORMAT, "not as expected");
    if (error) error->offset = (uint64_t)(j->start - base.p) + pull_offset(j);
    return status;
}

/* "vocab" (special: false) or "special_tokens": objects with a rank and their bytes or text. */
static ob_status read_entries(struct list *list, struct str part, struct str base, bool special,
                              uint64_t first, uint64_t most) {
    struct json_pull j;
    struct buf text = BUF_INIT;
    ob_status s = OB_OK;
    pull_open(&j, part.p, part.n);
    if (pull_next(&j) != PULL_ARRAY) s = malformed(&j, base, list->error);
    while (s == OB_OK && pull_next(&j) == PULL_OBJECT) {
        uint64_t rank = UINT64_MAX;
        buf_clear(&text);
        while (pull_next(&j) == PULL_KEY) {
            bool is_rank = str_is(j.text, "rank");
            bool is_text = str_is(j.text, special ? "token_str" : "token_bytes");
            if (!is_rank && !is_text) {
                if (!pull_skip(&j)) break;
                continue;
            }
            pull_next(&j);
            if (is_rank && (j.kind != PULL_NUMBER || !pull_u64(&j, &rank))) break;
            if (is_text && j.kind != PULL_STRING) break;
            if (is_text) buf_add(&text, j.text.p, j.text.n);
        }
        if (j.kind != PULL_OBJECT_END || rank == UINT64_MAX || rank >= MOST_TOKENS) {
            s = malformed(&j, base, list->error);
            break;
        }
        if (rank >= most) continue; /* more than the model has */
        struct str t = {text.p ? text.p : "", text.n};
        s = special ? put(list, rank, t, TOK_CONTROL) : put_bytes(list, first + rank, t);
    }
    if (s == OB_OK && j.kind != PULL_ARRAY_END) s = malformed(&j, base, list->error);
    buf_free(&text);
    pull_close(&j);
    return s;
}

/* Files older than the list of special tokens in them have these. */
static ob_status put_old_specials(struct list *list) {
    static const char *const old[] = {
        "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
        "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
        "[TOOL_CONTENT]"};
    ob_status s = OB_OK;
    for (size_t i = 0; i < sizeof old / sizeof old[0] && s == OB_OK; i++)
        s = put(list, i, str_of(old[i]), TOK_CONTROL);
    return s;
}

static ob_status put_fillers(struct list *list, uint64_t n) {
    char name[32];
    ob_status s = OB_OK;
    for (uint64_t i = 0; i < n && s == OB_OK; i++) {
        if (i < list->cap && list->kind[i] != TOK_NONE) continue;
        snprintf(name, sizeof name, "<SPECIAL_%llu>", (unsigned long long)i);
        s = put(list, i, str_of(name), TOK_CONTROL);
    }
    return s;
}

static ob_status read_config(struct str part, json_t **config, ob_error *error) {
    json_error_t at;
    *config = part.p ? json_loadb(part.p, part.n, 0, &at) : NULL;
    if (*config && json_is_string(json_object_get(*config, "pattern"))) return OB_OK;
    json_decref(*config);
    *config = NULL;
    return error_set(error, OB_ERR_FORMAT, "config has no pattern");
}

static uint64_t whole_of(const json_t *config, const char *key, uint64_t missing) {
    json_int_t n = json_integer_value(json_object_get(config, key));
    return n > 0 ? (uint64_t)n : missing;
}

/* Not by the vocabulary's table: a token made of bytes may have the same text. */
static int32_t find_special(const struct tok *tok, const char *text, uint64_t n) {
    for (uint32_t id = 0; id < n && id < tok->vocab.n; id++)
        if (str_is(tok->vocab.text[id], text)) return (int32_t)id;
    return -1;
}

ob_status tok_tekken(struct tok *tok, struct str json, ob_error *error) {
    enum { CONFIG, VOCAB, SPECIALS, MEMBERS };
    struct tok_hf_member m[MEMBERS] = {[CONFIG] = {.name = "config"},
                                       [VOCAB] = {.name = "vocab"},
                                       [SPECIALS] = {.name = "special_tokens"}};
    struct list list = list_of(tok, json, error);
    json_t *config = NULL;
    ob_status s = tok_hf_members(json, json, m, MEMBERS, error);
    if (s == OB_OK) s = read_config(m[CONFIG].value, &config, error);
    if (s == OB_OK && !m[VOCAB].value.p)
        s = error_set(error, OB_ERR_FORMAT, "the file has no vocab");
    uint64_t specials = whole_of(config, "default_num_special_tokens", TEKKEN_SPECIALS);
    uint64_t all = whole_of(config, "default_vocab_size", MOST_TOKENS);
    bool listed = m[SPECIALS].value.p && !str_is(m[SPECIALS].value, "null");
    if (s == OB_OK && (specials > all || all > MOST_TOKENS))
        s = error_set(error, OB_ERR_FORMAT, "config has sizes that are none");
    if (s == OB_OK)
        s = listed ? read_entries(&list, m[SPECIALS].value, json, true, 0, specials)
                   : put_old_specials(&list);
    if (s == OB_OK) s = put_fillers(&list, specials);
    if (s == OB_OK) s = read_entries(&list, m[VOCAB].value, json, false, specials, all - specials);
    const char *pattern = json_string_value(json_object_get(config, "pattern"));
    if (s == OB_OK) s = finish(&list, str_of(pattern), false);
    json_decref(config);
    list_free(&list);
    if (s != OB_OK) return s;
    tok->bos = find_special(tok, "<s>", specials);
    tok->eos = find_special(tok, "</s>", specials);
    tok->unk = find_special(tok, "<unk>", specials);
    tok->add_bos = tok->bos >= 0;
    return OB_OK;
}

/* ---- tiktoken's format ---- */

struct tiktoken_kind {
    const char *class; /* tokenizer_class */
    const char *file;  /* its name, or how it ends */
    const struct rule *rule;
    bool nfc;
    const char *const *special; /* after the ranks, NULL: as the configuration says */
    unsigned extra;             /* "<|extra_N|>" after them */
};

static const char *const qwen[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL};

static const struct tiktoken_kind kinds[] = {
    {"ChatGLM4Tokenizer", "tokenizer.model", &rule_llama3, false, NULL, 0},
    {"QWenTokenizer", ".tiktoken", &rule_qwen2, true, qwen, 205},
    {"TikTokenTokenizer", "tiktoken.model", &rule_kimi_k2, false, NULL, 0},
};

const struct tiktoken_kind *tiktoken_kind_of(struct str class) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(class, kinds[i].class)) return &kinds[i];
    return NULL;
}

bool tiktoken_is_file(const struct tiktoken_kind *kind, struct str name) {
    return kind->file[0] == '.' ? str_ends(name, kind->file) : str_is(name, kind->file);
}

/* Lines of a base64 text, a space and a rank. */
static ob_status read_lines(struct list *list, struct str text) {
    for (size_t line = 1; text.n; line++) {
        const char *end = memchr(text.p, '\n', text.n);
        struct str row = {text.p, end ? (size_t)(end - text.p) : text.n};
        text.p += row.n + (end != NULL);
        text.n -= row.n + (end != NULL);
        if (row.n && row.p[row.n - 1] == '\r') row.n--;
        if (row.n == 0) continue;
        const char *space = memchr(row.p, ' ', row.n);
        size_t n = space ? (size_t)(space - row.p) : 0, digits = row.n - n - 1;
        uint64_t rank = 0;
        bool good = space && digits > 0 && digits < 10;
        for (size_t i = n + 1; good && i < row.n; i++) {
            good = row.p[i] >= '0' && row.p[i] <= '9';
            rank = rank * 10 + (uint64_t)(row.p[i] - '0');
        }
        if (!good)
            return error_set(list->error, OB_ERR_FORMAT, "line %zu is no token and its rank", line);
        ob_status s = put_bytes(list, rank, (struct str){row.p, n});
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

static ob_status put_listed(struct list *list, const struct tiktoken_kind *kind) {
    ob_status s = OB_OK;
    char name[32];
    uint64_t id = list->n;
    for (size_t i = 0; kind->special[i] && s == OB_OK; i++)
        s = put(list, id++, str_of(kind->special[i]), TOK_CONTROL);
    for (unsigned i = 0; i < kind->extra && s == OB_OK; i++) {
        snprintf(name, sizeof name, "<|extra_%u|>", i);
        s = put(list, id++, str_of(name), TOK_CONTROL);
    }
    return s;
}

/* "added_tokens_decoder": {"id": {"content", "special"}}. */
static ob_status put_configured(struct list *list, const json_t *config) {
    const char *key;
    json_t *value, *all = json_object_get(config, "added_tokens_decoder");
    json_object_foreach(all, key, value) {
        const json_t *content = json_object_get(value, "content");
        char *end;
        unsigned long long id = strtoull(key, &end, 10);
        if (*end || end == key || !json_is_string(content))
            return error_set(list->error, OB_ERR_FORMAT,
                             "added_tokens_decoder has an entry that is no token");
        bool control = !json_is_false(json_object_get(value, "special"));
        ob_status s =
            put(list, id, (struct str){json_string_value(content), json_string_length(content)},
                control ? TOK_CONTROL : TOK_ADDED);
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

ob_status tok_tiktoken(struct tok *tok, const struct tiktoken_kind *kind, struct str text,
                       const json_t *config, ob_error *error) {
    struct list list = list_of(tok, text, error);
    ob_status s = read_lines(&list, text);
    if (s == OB_OK) s = kind->special ? put_listed(&list, kind) : put_configured(&list, config);
    if (s == OB_OK) s = finish(&list, str_of(kind->rule->regex), kind->nfc);
    list_free(&list);
    if (s == OB_OK && kind->special) tok->eos = vocab_find(&tok->vocab, STR_LIT("<|endoftext|>"));
    return s;
}
