/* SPDX-License-Identifier: Apache-2.0
 * vocab.c: see vocab.h. */
#include "decode/vocab.h"

static ob_status encode(const void *user, struct str text, ob_tokens *out, ob_error *error) {
    return tok_encode(user, text.p, text.n, NULL, false, false, out, error);
}

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    tok_piece(user, id, special, false, out);
}

static bool is_end(const void *user, int32_t id) { return tok_is_end(user, id); }

struct sample_vocab vocab_of(const struct tok *tok, uint32_t size, uint32_t context) {
    return (struct sample_vocab){.user = tok, .size = size, .context = context,
                                 .end = tok_eos(tok), .encode = encode, .piece = piece,
                                 .is_end = is_end};
}
