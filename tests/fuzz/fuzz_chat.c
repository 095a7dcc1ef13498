/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chat.c: a chat template and a request: the input is the template, a NUL, and the request as
 * JSON. Whatever they are there is a prompt or a reason, the request is not changed, and no token
 * of the tokenizer made here ("<c>", control) comes from a byte of the request alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In place of the library's: an id a byte, 256 for a trusted "<c>". */
struct tok {
    struct str source;
};

ob_status tok_encode(const struct tok *tok, const char *text, size_t n, const uint8_t *trust,
                     bool parse_special, bool add_special, ob_tokens *ids, ob_error *error) {
    (void)tok, (void)error;
    if (!parse_special || add_special) abort();
    ids->id = realloc(ids->id, (ids->n + n + 1) * sizeof *ids->id);
    if (!ids->id) abort();
    for (size_t i = 0; i < n; i++) {
        if (trust[i] > 1) abort();
        bool control = n - i >= 3 && memcmp(text + i, "<c>", 3) == 0 && !memchr(trust + i, 0, 3);
        ids->id[ids->n++] = control ? 256 : (unsigned char)text[i];
        if (control) i += 2;
    }
    return OB_OK;
}
int32_t tok_bos(const struct tok *tok) { return (void)tok, 256; }
int32_t tok_eos(const struct tok *tok) { return (void)tok, -1; }
bool tok_adds_bos(const struct tok *tok) { return (void)tok, true; }
struct str tok_text(const struct tok *tok, int32_t id) {
    (void)tok, (void)id;
    return (struct str){"<c>", 3};
}
struct str tok_template(const struct tok *tok, const char *name) {
    return name ? (struct str){0} : tok->source;
}

static void ask(const struct chat *chat, const json_t *request, bool template_has) {
    ob_tokens ids = {0};
    struct buf text = BUF_INIT;
    ob_error error = {0};
    json_t *before = json_deep_copy(request);
    ob_status status = chat_prompt(chat, request, &ids, &text, &error);
    if (status != OB_OK && !error.message[0]) abort();
    if (!json_equal(before, request)) abort();
    /* one BOS of ours; others only if the template can write them */
    for (size_t i = 1; i < ids.n && !template_has; i++)
        if (ids.id[i] == 256) abort();
    free(ids.id);
    buf_free(&text);
    json_decref(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = memchr(data, 0, size);
    if (!nul) return 0;
    size_t n = (size_t)(nul - data);
    const char *source = (const char *)data;
    json_t *request = json_loadb((const char *)nul + 1, size - n - 1, JSON_ALLOW_NUL, NULL);
    const struct tok tok = {{source, n}};
    struct chat *chat;
    ob_error error = {0};
    if (request && chat_open(&tok, NULL, NULL, &chat, &error) == OB_OK) {
        /* its characters, escapes and the name of the token are enough to make one */
        bool has = strpbrk(source, "<\\") || strstr(source, "bos_token") || strstr(source, "%c");
        ask(chat, request, has);
        chat_close(&chat);
    } else if (request && !error.message[0]) {
        abort();
    }
    json_decref(request);
    return 0;
}
