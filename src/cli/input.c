/* SPDX-License-Identifier: Apache-2.0
 * input.c: text that a command works on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/cli.h"

static ob_status read_stdin(struct buf *out, ob_error *error) {
    char part[65536];
    size_t n;
    while ((n = fread(part, 1, sizeof part, stdin)) > 0) {
        buf_add(out, part, n);
        if (out->n > CLI_TEXT_MAX)
            return error_set(error, OB_ERR_LIMIT, "more than %d bytes on the standard input",
                             CLI_TEXT_MAX);
    }
    if (ferror(stdin))
        return error_set(error, OB_ERR_IO, "cannot read the standard input: %s", strerror(errno));
    return out->failed ? error_memory(error, "a text", out->n) : OB_OK;
}

ob_status cli_read_text(const char *path, struct buf *out, ob_error *error) {
    if (strcmp(path, "-") == 0) return read_stdin(out, error);
    char *text;
    size_t n;
    ob_status status = os_read_file(path, CLI_TEXT_MAX, &text, &n, error);
    if (status != OB_OK) return status;
    buf_add(out, text, n);
    free(text);
    return out->failed ? error_memory(error, "a text", n) : OB_OK;
}
