/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_gguf.c: a tokenizer from the metadata of a GGUF: vocabulary, special ids, templates. What
 * belongs to one model (merges, scores) is read by the model's own file. Everything is copied: the
 * tokenizer does not need the file afterwards. */
#include "base/error.h"
#include "text/tok_impl.h"

#define TOKENIZER(name) &tokenizer_##name,
static const struct tok_model *const models[] = {
#include "text/tokenizers.def"
};
#undef TOKENIZER

static ob_status bad(ob_error *error, const char *key, const char *what) {
    error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, NULL, key, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

static ob_status no_tokenizer(ob_error *error, const char *key) {
    error_set(error, OB_ERR_NOT_FOUND, "the file has no tokenizer");
    error_at(error, NULL, key, OB_NO_OFFSET);
    return OB_ERR_NOT_FOUND;
}

static ob_status find_model(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.model";
    const struct gguf_value *value = gguf_find(gguf, key);
    struct str name;
    if (!value) return no_tokenizer(error, key);
    if (!gguf_str(value, 0, &name)) return bad(error, key, "not a string");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (models[i]->gguf && str_is(name, models[i]->gguf)) tok->model = models[i];
    if (tok->model) return OB_OK;
    if (str_is(name, "none")) return no_tokenizer(error, key);
    error_set(error, OB_ERR_UNSUPPORTED, "tokenizer \"%.*s\" is not supported", STR_ARG(name));
    error_at(error, NULL, key, OB_NO_OFFSET);
    return OB_ERR_UNSUPPORTED;
}

static ob_status read_texts(struct tok *tok, const struct gguf_value *tokens, ob_error *error) {
    static const char key[] = "tokenizer.ggml.tokens";
    size_t total = 0;
    struct str text;
    for (uint64_t i = 0; i < tokens->n; i++) {
        if (!gguf_str(tokens, i, &text)) return bad(error, key, "not an array of strings");
        total += text.n;
    }
    char *copy = arena_alloc(&tok->arena, total);
    if (!copy) return error_memory(error, "vocabulary", total);
    for (uint64_t i = 0; i < tokens->n; i++) {
        gguf_str(tokens, i, &text);
        if (text.n) memcpy(copy, text.p, text.n);
        tok->vocab.text[i] = (struct str){copy, text.n};
        copy += text.n;
    }
    return OB_OK;
}

static ob_status read_vocab(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.tokens", type_key[] = "tokenizer.ggml.token_type";
    const struct gguf_value *tokens = gguf_find(gguf, key), *types = gguf_find(gguf, type_key);
    if (!tokens || tokens->type != GGUF_ARRAY || tokens->n == 0)
        return bad(error, key, "missing or no array of strings");
    if (tokens->n > INT32_MAX) return bad(error, key, "too many tokens");
    if (types && (types->type != GGUF_ARRAY || types->n != tokens->n))
        return bad(error, type_key, "not one a token");
    ob_status status = vocab_init(&tok->vocab, &tok->arena, (uint32_t)tokens->n, error);
    if (status == OB_OK) status = read_texts(tok, tokens, error);
    for (uint32_t i = 0; status == OB_OK && i < tok->vocab.n; i++) {
        uint64_t kind = TOK_NORMAL;
        if (types && (!gguf_u64(types, i, &kind) || kind == TOK_NONE || kind >= TOK_KINDS))
            return bad(error, type_key, "a token has a type that is not known");
        tok->vocab.kind[i] = (uint8_t)kind;
    }
    return status == OB_OK ? vocab_index(&tok->vocab, &tok->arena, error) : status;
}

/* A token id of a key, *id unchanged if the key is absent. */
static ob_status read_id(const struct tok *tok, const struct gguf *gguf, const char *key,
                         int32_t *id, ob_error *error) {
    const struct gguf_value *value = gguf_find(gguf, key);
    uint64_t wide;
    if (!value) return OB_OK;
    if (!gguf_u64(value, 0, &wide) || wide >= tok->vocab.n)
        return bad(error, key, "not the id of a token");
    *id = (int32_t)wide;
    return OB_OK;
}

static ob_status read_bool(const struct gguf *gguf, const char *key, bool *out, ob_error *error) {
    const struct gguf_value *value = gguf_find(gguf, key);
    return !value || gguf_bool(value, 0, out) ? OB_OK : bad(error, key, "not a boolean");
}

static ob_status read_special(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char *const ends[] = {
        "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
        "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id",
    };
    ob_status s = read_id(tok, gguf, "tokenizer.ggml.bos_token_id", &tok->bos, error);
    if (s == OB_OK) s = read_id(tok, gguf, "tokenizer.ggml.eos_token_id", &tok->eos, error);
    if (s == OB_OK) s = read_id(tok, gguf, "tokenizer.ggml.unknown_token_id", &tok->unk, error);
    if (s == OB_OK) s = read_bool(gguf, "tokenizer.ggml.add_bos_token", &tok->add_bos, error);
    if (s == OB_OK) s = read_bool(gguf, "tokenizer.ggml.add_eos_token", &tok->add_eos, error);
    if (s != OB_OK) return s;
    int32_t *defaults[] = {&tok->bos, &tok->eos, &tok->unk};
    for (size_t i = 0; i < 3; i++)
        if (*defaults[i] >= (int64_t)tok->vocab.n) *defaults[i] = -1;
    tok_mark_end(tok, tok->eos);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        int32_t id = -1;
        s = read_id(tok, gguf, ends[i], &id, error);
        if (s != OB_OK) return s;
        tok_mark_end(tok, id);
    }
    return OB_OK;
}

static ob_status read_added(struct tok *tok, ob_error *error) {
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        uint8_t kind = tok->vocab.kind[id];
        if (kind != TOK_CONTROL && kind != TOK_UNKNOWN && kind != TOK_ADDED) continue;
        struct added_token token = {.id = (int32_t)id, .control = kind != TOK_ADDED};
        struct str text = tok->vocab.text[id];
        bool normalized = tok->added_normalized && kind == TOK_ADDED;
        if (normalized && !tok_normalize(tok, text, &text)) return error_memory(error, "token", 0);
        ob_status status = added_put(normalized ? &tok->normalized : &tok->raw, text, token, error);
        if (status != OB_OK) return status;
    }
    return OB_OK;
}

static ob_status read_templates(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char prefix[] = "tokenizer.chat_template";
    for (size_t i = 0; i < gguf_value_count(gguf); i++) {
        const struct gguf_value *value = gguf_value_at(gguf, i);
        struct str key = value->key, text;
        if (!str_starts(key, prefix)) continue;
        key.p += sizeof prefix - 1;
        key.n -= sizeof prefix - 1;
        if (key.n == 1 || (key.n && key.p[0] != '.')) continue;
        if (!gguf_str(value, 0, &text)) return bad(error, prefix, "not a string");
        ob_status status = tok_add_template(
            tok, key.n ? (struct str){key.p + 1, key.n - 1} : (struct str){NULL, 0}, text, error);
        if (status != OB_OK) return status;
    }
    return OB_OK;
}

ob_status tok_open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    ob_status status = find_model(tok, gguf, error);
    if (status == OB_OK) status = read_vocab(tok, gguf, error);
    if (status == OB_OK) status = tok->model->open_gguf(tok, gguf, error);
    if (status == OB_OK) status = read_special(tok, gguf, error);
    if (status != OB_OK) return status;
    tok_find_ends(tok);
    status = read_added(tok, error);
    return status == OB_OK ? read_templates(tok, gguf, error) : status;
}
