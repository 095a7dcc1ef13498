/* SPDX-License-Identifier: Apache-2.0
 * tok_hf.c: a tokenizer from a Hugging Face directory. */
#include "base/error.h"
#include "text/tok_impl.h"

ob_status tok_open_hf(struct tok *tok, const char *dir, ob_error *error) {
    (void)tok, (void)dir;
    return error_set(error, OB_ERR_UNSUPPORTED, "tokenizers of directories are not read yet");
}
