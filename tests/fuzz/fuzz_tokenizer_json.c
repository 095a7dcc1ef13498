/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tokenizer_json.c: any bytes as a tokenizer.json. What is read must tokenize a text and turn
 * any id back into bytes. */
#include <stdlib.h>

#include "base/base.h"
#include "text/tok_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char text[] = " Hello  world's <s>\n\xc3\xa9 e\xcc\x81 12\xff\xe2\x96\x81 ab";
    struct tok *tok = tok_new();
    if (!tok) return 0;
    ob_tokens ids = {0};
    struct buf out = BUF_INIT;
    if (tok_hf_json(tok, (struct str){(const char *)bytes, size}, NULL) == OB_OK &&
        tok_encode(tok, text, sizeof text, NULL, true, true, &ids, NULL) == OB_OK) {
        for (size_t i = 0; i < ids.n; i++) {
            if (ids.id[i] < 0 || (uint32_t)ids.id[i] >= tok_count(tok)) abort();
            tok_piece(tok, ids.id[i], true, i == 0, &out);
        }
        for (uint32_t id = 0; id < tok_count(tok) && id < 1000; id++)
            tok_piece(tok, (int32_t)id, false, false, &out);
    }
    buf_free(&out);
    free(ids.id);
    tok_close(&tok);
    return 0;
}
