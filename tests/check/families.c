/* SPDX-License-Identifier: Apache-2.0
 * families.c: see families.h. */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "models/model.h"

typedef void family_fn(struct check *check, const struct family *family);

enum { PATH_SIZE = 1024 };

static void broken(struct check_row *row, const void *line) {
    check_end(row, "%s", (const char *)line);
}

/* The directory is named by the pattern, as mkdtemp does it; "" afterwards if there is none. */
static ob_status unpack(const struct golden *golden, const char *config, char *directory,
                        ob_error *error) {
    if (!mkdtemp(directory)) {
        *directory = 0;
        return error_set(error, OB_ERR_IO, "a temporary folder cannot be made");
    }
    return golden_unpack(golden, config, directory, error);
}

/* `why` there is no recipe, "" if there is: of the architecture, or of weights packed by a method
 * that is not read yet. Whatever else a model is refused for is a failed row. */
static ob_status find_recipe(const char *path, char *why, size_t n, ob_error *error) {
    struct source *source;
    struct model *model = NULL;
    const struct recipe *recipe;
    ob_status s = source_open(path, &source, error);
    if (s != OB_OK) return s;
    struct str arch = source_architecture(source), method;
    if (model_find(source, &recipe, NULL) != OB_OK)
        snprintf(why, n, "no recipe for %.*s", STR_ARG(arch));
    else if (source_str(source, "quantization_config.quant_method", 0, &method) &&
             model_open(source, NULL, &model, NULL) == OB_ERR_UNSUPPORTED)
        snprintf(why, n, "no recipe for weights of %.*s", STR_ARG(method));
    model_close(&model);
    source_close(&source);
    return OB_OK;
}

static void run_one(struct check *check, const char *folder, const char *name, family_fn *each) {
    char model[] = "/tmp/1bit-check-XXXXXX", legacy[] = "/tmp/1bit-check-XXXXXX";
    char gguf[PATH_SIZE + 16], why[PATH_SIZE] = "", line[PATH_SIZE];
    ob_error error = {0};
    struct golden *golden = NULL;
    ob_status s = golden_open(folder, &golden, &error);
    bool has_legacy = s == OB_OK && golden_has_file(golden, "config.legacy.json");
    if (s == OB_OK) s = unpack(golden, "config.json", model, &error);
    else *model = 0;
    if (s == OB_OK && has_legacy) s = unpack(golden, "config.legacy.json", legacy, &error);
    else *legacy = 0;
    if (s == OB_OK) s = find_recipe(model, why, sizeof why, &error);
    snprintf(gguf, sizeof gguf, "%s/model.gguf", folder);
    struct family family = {.name = name,
                            .golden = golden,
                            .model = model,
                            .legacy = *legacy ? legacy : NULL,
                            .gguf = os_is_file(gguf) ? gguf : NULL,
                            .unknown = *why ? why : NULL};
    if (s == OB_OK) each(check, &family);
    else check_run(check, broken, ob_error_line(&error, line, sizeof line), "%s", name);
    if (*model) golden_remove(model);
    if (*legacy) golden_remove(legacy);
    golden_close(&golden);
}

static void run_folder(struct check *check, const char *folder, const char *prefix,
                       family_fn *each) {
    char **name, path[PATH_SIZE], row[PATH_SIZE], line[PATH_SIZE];
    size_t n;
    ob_error error;
    if (os_list_dir(folder, &name, &n, &error) != OB_OK) {
        check_run(check, broken, ob_error_line(&error, line, sizeof line), "%sfamilies", prefix);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        if (!os_is_dir(path)) continue;
        snprintf(row, sizeof row, "%s%s", prefix, name[i]);
        run_one(check, path, row, each);
    }
    os_free_list(name, n);
}

void families_each(struct check *check, family_fn *each) {
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s/families", check_goldens(check));
    run_folder(check, folder, "", each);
    if (check_fixtures(check)) run_folder(check, check_fixtures(check), "fixture.", each);
}
