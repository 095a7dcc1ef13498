/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tok.c: any bytes as a text, with any trust, into a byte-level tokenizer: the text comes back
 * from its tokens, as a whole and as a stream of whole characters, and no control token comes from
 * data. The first byte chooses the trust. */
#include <stdlib.h>

#include "base/base.h"
#include "text/tok_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool good) {
    if (!good) abort();
}

/* All bytes, a few merges, a control and an added token. */
static struct tok *make(void) {
    static const char *const merges[] = {"h e", "l l", "he ll", "hell o", "a a", "aa aa", "- -"};
    struct buf vocab = BUF_INIT, list = BUF_INIT, json = BUF_INIT;
    for (uint32_t b = 0; b < 256; b++) {
        char c[4];
        size_t n = utf8_encode(tok_byte_char((uint8_t)b), c);
        buf_printf(&vocab, "\"%s%.*s\":%u,", c[0] == '"' || c[0] == '\\' ? "\\" : "", (int)n, c, b);
    }
    for (unsigned i = 0; i < sizeof merges / sizeof merges[0]; i++) {
        const char *space = strchr(merges[i], ' ');
        buf_printf(&vocab, "\"%.*s%s\":%u,", (int)(space - merges[i]), merges[i], space + 1,
                   256 + i);
        buf_printf(&list, "%s\"%s\"", i ? "," : "", merges[i]);
    }
    buf_printf(&json,
               "{\"added_tokens\":[{\"id\":300,\"content\":\"<s>\",\"special\":true},"
               "{\"id\":301,\"content\":\"<s><s>x\",\"special\":false}],"
               "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
               "\"decoder\":{\"type\":\"ByteLevel\"},"
               "\"model\":{\"type\":\"BPE\",\"vocab\":{%s\"zz\":299},\"merges\":[%s]}}",
               vocab.p, list.p);
    struct tok *tok = tok_new();
    check(tok && tok_hf_json(tok, (struct str){json.p, json.n}, NULL) == OB_OK);
    buf_free(&vocab);
    buf_free(&list);
    buf_free(&json);
    return tok;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static struct tok *tok;
    if (!tok) tok = make();
    if (size == 0) return 0;
    uint8_t seed = *bytes++;
    const char *text = (const char *)bytes;
    size_t n = size - 1;
    uint8_t *trust = malloc(n + 1);
    check(trust != NULL);
    for (size_t i = 0; i < n; i++) trust[i] = rng_u64(seed, i / 4) & 1;
    ob_tokens ids = {0};
    struct buf whole = BUF_INIT, streamed = BUF_INIT;
    struct tok_stream stream;
    size_t boundary = 0;
    uint32_t code;
    check(tok_encode(tok, text, n, seed ? trust : NULL, false, false, &ids, NULL) == OB_OK);
    tok_stream_init(&stream, tok, true);
    for (size_t i = 0; i < ids.n; i++) {
        size_t at = whole.n;
        tok_piece(tok, ids.id[i], true, i == 0, &whole);
        for (size_t k = at; k < whole.n; k++)
            check(!tok_is_control(tok, ids.id[i]) || (seed && trust[k]));
        tok_stream_add(&stream, ids.id[i], &streamed);
        while (boundary < streamed.n) boundary += utf8_decode(text + boundary, n - boundary, &code);
        check(boundary == streamed.n); /* no character is cut */
    }
    tok_stream_end(&stream, &streamed);
    check(whole.n == n && (n == 0 || memcmp(whole.p, text, n) == 0));
    check(streamed.n == n && (n == 0 || memcmp(streamed.p, text, n) == 0));
    tok_stream_free(&stream);
    buf_free(&whole);
    buf_free(&streamed);
    free(ids.id);
    free(trust);
    return 0;
}
