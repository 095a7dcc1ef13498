/* SPDX-License-Identifier: Apache-2.0
 * clean.c: see clean.h. */
#include "server/clean.h"

#include "base/utf8.h"

void clean_text(struct buf *out, struct str text) {
    size_t good = 0; /* start of the run not yet appended */
    for (size_t i = 0; i < text.n;) {
        uint32_t code;
        size_t n = utf8_decode(text.p + i, text.n - i, &code);
        if (code == UTF8_BAD) {
            buf_add(out, text.p + good, i - good);
            buf_puts(out, "\xEF\xBF\xBD");
            good = i + n;
        }
        i += n;
    }
    if (good < text.n) buf_add(out, text.p + good, text.n - good);
}

json_t *clean_json(struct str text) {
    struct buf clean = BUF_INIT;
    clean_text(&clean, text);
    json_t *json = clean.failed ? NULL : json_stringn(clean.p ? clean.p : "", clean.n);
    buf_free(&clean);
    return json;
}
