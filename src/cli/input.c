/* SPDX-License-Identifier: Apache-2.0
 * input.c: text that a command works on. It may come from a pipe as well as from a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

static ob_status read_all(FILE *file, struct buf *out, ob_error *error) {
    char part[65536];
    size_t n;
    while ((n = fread(part, 1, sizeof part, file)) > 0) {
        buf_add(out, part, n);
        if (out->failed) return error_memory(error, "a text", out->n + n);
        if (out->n > CLI_TEXT_MAX)
            return error_set(error, OB_ERR_LIMIT, "more than %d bytes", CLI_TEXT_MAX);
    }
    return ferror(file) ? error_set(error, OB_ERR_IO, "cannot read: %s", strerror(errno)) : OB_OK;
}

ob_status cli_read_text(const char *path, struct buf *out, ob_error *error) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    ob_status status =
        file ? read_all(file, out, error)
             : error_set(error, OB_ERR_IO, "cannot open%s: %s",
                         *path ? "" : " a file without a name", strerror(errno));
    if (file && !is_stdin) fclose(file);
    if (status != OB_OK) error_at(error, is_stdin ? "standard input" : path, NULL, OB_NO_OFFSET);
    return status;
}
