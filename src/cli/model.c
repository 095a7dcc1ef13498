/* SPDX-License-Identifier: Apache-2.0
 * model.c: from what the user calls a model to its files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os.h"
#include "cli/cli.h"
#include "format/source.h"
#include "text/tok.h"

/* Whether a name in the models folder is a model, and the length of what users call it. */
static bool is_model(struct arena *arena, const char *folder, const char *name, size_t *n) {
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    *n = strlen(name);
    if (!path) return false;
    if (os_is_dir(path)) {
        path = arena_printf(arena, "%s/%s/config.json", folder, name);
        return path && os_is_file(path);
    }
    if (*n <= 5 || strcmp(name + *n - 5, ".gguf") != 0) return false;
    *n -= 5;
    return os_is_file(path);
}

static ob_status not_found(struct arena *arena, const char *name, const char *folder,
                           ob_error *error) {
    struct buf list = BUF_INIT;
    char **names = NULL;
    size_t count = 0, n;
    if (os_list_dir(folder, &names, &count, NULL) != OB_OK) count = 0;
    for (size_t i = 0; i < count; i++)
        if (is_model(arena, folder, names[i], &n)) {
            buf_puts(&list, list.n ? ", " : "");
            buf_add(&list, names[i], n);
        }
    error_set(error, OB_ERR_NOT_FOUND,
              "no such file or model; give a path, or a name that is in %s (%s); "
              "from the source tree, scripts/fetch-model NAME brings one",
              folder, list.n ? list.p : "now empty");
    error_at(error, name, NULL, OB_NO_OFFSET);
    os_free_list(names, count);
    buf_free(&list);
    return OB_ERR_NOT_FOUND;
}

/* A path as it is: there must be something that can be a model. */
static ob_status check_path(const char *path, ob_error *error) {
    ob_status status = OB_OK;
    errno = 0;
    if (!os_exists(path))
        status = error_set(error, OB_ERR_NOT_FOUND, "%s",
                           errno == ENOENT ? "no such file or directory" : strerror(errno));
    else if (!os_is_file(path) && !os_is_dir(path))
        status = error_set(error, OB_ERR_IO,
                           "not a regular file (a model cannot be a pipe or a device)");
    if (status != OB_OK) error_at(error, path, NULL, OB_NO_OFFSET);
    return status;
}

ob_status cli_model_path(const char *name, char **out, ob_error *error) {
    *out = NULL;
    if (!*name) return error_set(error, OB_ERR_ARGUMENT, "the name of the model is empty");
    struct arena arena = ARENA_INIT;
    char *folder = os_models_dir();
    const char *try = arena_printf(&arena, "%s", name);
    ob_status status = OB_OK;
    if (!folder || !try) {
        status = error_memory(error, "a path", strlen(name));
        goto done;
    }
    /* Anything with a slash, and what exists here, is a path. */
    if (!strchr(name, '/') && !os_exists(name)) {
        try = arena_printf(&arena, "%s/%s", folder, name);
        if (try && !os_is_file(try) && !os_is_dir(try)) {
            try = arena_printf(&arena, "%s/%s.gguf", folder, name);
            if (try && !os_is_file(try)) status = not_found(&arena, name, folder, error);
        }
    } else {
        status = check_path(name, error);
    }
    if (status == OB_OK && (!try || !(*out = strdup(try))))
        status = error_memory(error, "a path", strlen(name));
done:
    free(folder);
    arena_free(&arena);
    return status;
}

ob_status cli_tok_open(const char *name, struct source **source, struct tok **tok,
                       ob_error *error) {
    char *path;
    *source = NULL;
    *tok = NULL;
    ob_status status = cli_model_path(name, &path, error);
    if (status != OB_OK) return status;
    status = source_open(path, source, error);
    free(path);
    if (status == OB_OK) status = tok_open(*source, tok, error);
    if (status != OB_OK) source_close(source);
    return status;
}
