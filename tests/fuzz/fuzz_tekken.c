/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tekken.c: any bytes as a tekken.json, or, after a first byte of 't', as a file in tiktoken's
 * format. What is read must tokenize a text and turn any id back into bytes. */
#include <stdlib.h>

#include "base/base.h"
#include "text/tok_tiktoken.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char text[] = " Hello  world's <s>\n\xc3\xa9 e\xcc\x81 12\xff\xe2\x96\x81 abc";
    struct tok *tok = tok_new();
    if (!tok) return 0;
    ob_tokens ids = {0};
    struct buf out = BUF_INIT;
    struct str file = {(const char *)bytes, size};
    ob_status status;
    if (size && bytes[0] == 't') {
        file = (struct str){(const char *)bytes + 1, size - 1};
        status = tok_tiktoken(tok, tiktoken_kind_of(STR_LIT("QWenTokenizer")), file, NULL, NULL);
    } else {
        status = tok_tekken(tok, file, NULL);
    }
    if (status == OB_OK &&
        tok_encode(tok, text, sizeof text, NULL, true, true, &ids, NULL) == OB_OK)
        for (size_t i = 0; i < ids.n; i++) {
            if (ids.id[i] < 0 || (uint32_t)ids.id[i] >= tok_count(tok)) abort();
            tok_piece(tok, ids.id[i], true, i == 0, &out);
        }
    buf_free(&out);
    free(ids.id);
    tok_close(&tok);
    return 0;
}
