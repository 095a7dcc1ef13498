/* SPDX-License-Identifier: Apache-2.0
 *
 * check_keys.c: what each key of config.json does, a row for each family of the goldens' keys/
 * (README.md there). A value that changes what transformers computes must change our numbers to the
 * same, or be refused by the key's name; one that changes nothing must change nothing, or be
 * refused by its name; what transformers refuses is refused. The first of each kind of rope is
 * converted to GGUF, too, and read again. A family's wrong values are all printed. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/os.h"
#include "base/rng.h"
#include "families.h"
#include "whole.h"

enum { QUICK = 9, DIGEST = 3, PATH_SIZE = 1024, LINE_SIZE = 1024 };

struct keys {
    struct check_row *row;
    const struct family *family;
    json_t *config;      /* changed from */
    const char *line;
    uint32_t lines, wrong, refused, computed, converted;
    bool convert[8]; /* kinds of ropes that were */
    double want[DIGEST]; /* without a change */
    double deviation;
    int32_t *id;
    size_t n;
};

static void wrong(struct keys *k, const char *format, ...) {
    char what[LINE_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    fprintf(stderr, "%s %s: %s\n", k->family->name, k->line, what);
    check_fail(k->row, "%s: %s", k->line, what);
    k->wrong++;
}

/* ---- the changed configuration ---- */

static json_t *read_config(struct check_row *row, const char *path) {
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    if (!root) check_end(row, "%s: %s", path, e.text);
    return root;
}

/* As probe_keys.py does it: in text_config, unless the key is at the top. */
static void write_changed(struct keys *k, json_t *change) {
    char path[PATH_SIZE];
    const char *key;
    json_t *value, *root = json_deep_copy(k->config), *text = json_object_get(root, "text_config");
    json_object_foreach(change, key, value) {
        json_t *at = json_is_object(text) && !json_object_get(root, key) ? text : root;
        json_object_set(at, key, value);
    }
    snprintf(path, sizeof path, "%s/config.json", k->family->model);
    if (json_dump_file(root, path, 0) != 0) check_end(k->row, "%s cannot be written", path);
    json_decref(root);
}

/* ---- what we make of it ---- */

/* Does the error name a key that was changed, or one inside it, or a tensor? Null is absent to us,
 * and then another key is what is missing. */
static bool names(const ob_error *error, json_t *change) {
    const char *key;
    json_t *value;
    if (strstr(error->where, ".weight") || strstr(error->where, ".bias") ||
        strstr(error->message, "this tensor"))
        return true;
    json_object_foreach(change, key, value) {
        if (strstr(error->where, key) || strstr(error->message, key)) return true;
        if (json_is_null(value) || (json_is_object(value) && names(error, value))) return true;
    }
    return false;
}

static void sum_with_signs(const float *x, size_t n, double *out) {
    for (int d = 0; d < DIGEST; d++) out[d] = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t w = rng_u64(1, i);
        for (int d = 0; d < DIGEST; d++) out[d] += w >> d & 1 ? -(double)x[i] : (double)x[i];
    }
}

static ob_status run_model(const struct keys *k, struct engine *engine, double *digest,
                           double *bound, ob_error *error) {
    const float *rows;
    struct str method;
    size_t n = k->n * model_output_cols(engine_model(engine));
    struct seq *seq = seq_new(engine);
    struct engine_item item = {
        .seq = seq, .id = k->id, .n = (uint32_t)k->n, .logits = (uint32_t)k->n};
    if (!seq) return error_memory(error, "a sequence", 0);
    seq_admit(seq, (uint32_t)k->n);
    ob_status s = engine_step(engine, &item, 1, &rows, error);
    if (s == OB_OK) sum_with_signs(rows, n, digest);
    seq_free(&seq);
    bool rounds = source_str(engine_model(engine)->source, "quantization_config.quant_method", 0,
                             &method) && str_is(method, "bitnet");
    *bound = (rounds ? 5e-2 : 2e-3) * k->deviation * sqrt((double)n);
    return s;
}

/* Of a directory or a file; `as`: where it is to be written as a GGUF file, or NULL. */
static ob_status run_path(const struct keys *k, const char *path, const char *as, double *digest,
                          double *bound, ob_error *error) {
    struct whole w = {.row = k->row};
    ob_status s = source_open(path, &w.source, error);
    if (s == OB_OK)
        s = engine_open(w.source,
                        &(ob_engine_options){.device = "cpu", .kv_type = "f32", .threads = 1},
                        &w.engine, error);
    if (s == OB_OK) s = run_model(k, w.engine, digest, bound, error);
    if (s == OB_OK && as) whole_export(&w, as);
    if (w.engine) engine_close(&w.engine);
    if (w.source) source_close(&w.source);
    return s;
}

/* Is it the first of its kind of rope? */
static bool new_rope(struct keys *k, json_t *change) {
    static const char *const kinds[8] = {"default", "linear", "dynamic", "yarn", "llama3",
                                         "longrope", "proportional"};
    json_t *rope = json_object_get(change, "rope_parameters"), *value;
    const char *key, *type = json_string_value(json_object_get(rope, "rope_type"));
    json_object_foreach(rope, key, value) /* of each kind of layer */
        if (!type) type = json_string_value(json_object_get(value, "rope_type"));
    for (int i = 0; type && kinds[i]; i++)
        if (strcmp(type, kinds[i]) == 0 && !k->convert[i]) return k->convert[i] = true;
    return false;
}

static ob_status run_changed(struct keys *k, json_t *change, double *digest, double *bound,
                             ob_error *error) {
    char path[PATH_SIZE];
    double again[DIGEST];
    bool convert = new_rope(k, change);
    snprintf(path, sizeof path, "%s/again.gguf", k->family->model);
    ob_status s = run_path(k, k->family->model, convert ? path : NULL, digest, bound, error);
    if (s != OB_OK || !convert) return s;
    ob_error second = {0};
    char line[LINE_SIZE];
    if (run_path(k, path, NULL, again, bound, &second) != OB_OK)
        wrong(k, "refused when it is converted: %s", ob_error_line(&second, line, sizeof line));
    else
        for (int d = 0; d < DIGEST; d++)
            if (fabs(digest[d] - again[d]) > *bound) {
                wrong(k, "other numbers when it is converted");
                break;
            }
    remove(path);
    k->converted++;
    return s;
}

/* `said`: what transformers did. */
static void check_value(struct keys *k, json_t *change, const char *said) {
    double have[DIGEST], want[DIGEST], bound = 0;
    char line[LINE_SIZE];
    ob_error error = {0};
    write_changed(k, change);
    ob_status s = run_changed(k, change, have, &bound, &error);
    bool refuses = *said == '!', nonsense = strncmp(said, "nan", 3) == 0;
    if (s != OB_OK) {
        k->refused++;
        if (!refuses && !nonsense && !names(&error, change))
            wrong(k, "refused, but not by its name: %s", ob_error_line(&error, line, sizeof line));
        return;
    }
    if (nonsense) return;
    if (refuses) {
        wrong(k, "is taken, transformers refuses it");
        return;
    }
    k->computed++;
    memcpy(want, k->want, sizeof want);
    if (*said != '=' &&
        sscanf(said, "%lf %lf %lf", &want[0], &want[1], &want[2]) != DIGEST)
        check_end(k->row, "a line is wrong: %s", said);
    for (int d = 0; d < DIGEST; d++) {
        if (fabs(have[d] - want[d]) <= bound) continue;
        bool same = fabs(have[d] - k->want[d]) <= bound;
        wrong(k, "%s", *said == '=' ? "changes our numbers, not those of transformers"
                       : same       ? "changes the numbers of transformers, not ours"
                                    : "other numbers than those of transformers");
        return;
    }
}

/* ---- lines ---- */

/* "@ config.json DEVIATION DIGEST": lines that follow change this file. */
static void start(struct keys *k, const char *line) {
    char name[64], path[PATH_SIZE];
    if (sscanf(line, "@ %63s %lf %lf %lf %lf", name, &k->deviation, &k->want[0], &k->want[1],
               &k->want[2]) != 2 + DIGEST)
        check_end(k->row, "a line is wrong: %s", line);
    snprintf(path, sizeof path, "%s/config.json",
             strcmp(name, "config.json") == 0 ? k->family->model : k->family->legacy);
    if (k->config) json_decref(k->config);
    k->config = read_config(k->row, path);
}

struct keys_case {
    const struct family *family;
    bool quick;
};

static void run_keys(struct check_row *row, const void *arg) {
    const struct keys_case *c = arg;
    const struct family *f = c->family;
    struct keys k = {.row = row, .family = f};
    size_t n;
    char *text = check_file(row, check_golden(row, "keys/%s.txt", f->name), &n);
    char *end = text + n;
    k.id = golden_ints(f->golden, "input_ids_a", &k.n);
    if (!k.id) check_end(row, "the golden has no ids");
    for (char *line = text, *next; line < end; line = next) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) check_end(row, "the last line has no end");
        *stop = 0;
        next = stop + 1;
        if (*line == '@') {
            start(&k, line);
            continue;
        }
        char *said = strchr(line, '\t');
        if (!said) check_end(row, "a line is wrong: %s", line);
        *said++ = 0;
        json_t *change = json_loads(line, 0, NULL);
        if (!change || !k.config) check_end(row, "a line is wrong: %s", line);
        k.line = line;
        if (k.lines++ % (c->quick ? QUICK : 1) == 0) check_value(&k, change, said);
        json_decref(change);
    }
    check_compared(row, k.lines, 0);
    check_note(row, "%u values: %u refused, %u computed, %u converted", k.lines, k.refused,
               k.computed, k.converted);
}

static void run_family(struct check *check, const struct family *f) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/keys/%s.txt", check_goldens(check), f->name);
    if (!f->unknown && os_is_file(path))
        check_run(check, run_keys, &(struct keys_case){f, check_quick(check)}, "%s", f->name);
}

void check_keys(struct check *check) {
    if (check_device(check)) return;
    families_each(check, run_family);
}
