/* SPDX-License-Identifier: Apache-2.0
 *
 * check_defaults.c: what a config.json means that lacks a key, one row a family: the goldens'
 * defaults.txt has what transformers says then, by tools/probe_defaults.py, where that is something
 * else than of the whole file. A line is a family, a key's path, "absent" or "null", and the
 * largest number's place in each of the first rows of logits (of an encoder: of states), -1 where
 * the second is near. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "families.h"
#include "whole.h"

enum { TOKENS = 24, PATH_SIZE = 1024 };

struct defaults {
    struct check_row *row;
    const struct family *family;
    json_t *config;
    int32_t *id;
    uint32_t lines;
};

/* The configuration without the key, or with null in its place. */
static void write_without(const struct defaults *d, const char *key, bool null) {
    char path[PATH_SIZE], part[PATH_SIZE];
    json_t *root = json_deep_copy(d->config), *at = root;
    snprintf(part, sizeof part, "%s", key);
    char *name = part;
    for (char *dot; at && (dot = strchr(name, '.')); name = dot + 1) {
        *dot = 0;
        at = json_object_get(at, name);
    }
    if (!json_object_get(at, name)) check_end(d->row, "config.json has no %s", key);
    if (null) json_object_set_new(at, name, json_null());
    else json_object_del(at, name);
    snprintf(path, sizeof path, "%s/config.json", d->family->model);
    if (json_dump_file(root, path, 0) != 0) check_end(d->row, "%s cannot be written", path);
    json_decref(root);
}

/* `want`: the places, separated by spaces. */
static void compare(const struct defaults *d, const char *key, char *want) {
    struct whole w;
    whole_open(&w, d->row, d->family->model,
               &(ob_engine_options){.device = "cpu", .kv_type = "f32", .threads = 1});
    struct seq *seq = seq_new(w.engine);
    seq_admit(seq, TOKENS);
    float *have = whole_run(&w, seq, d->id, TOKENS, TOKENS);
    seq_free(&seq);
    uint32_t r = 0;
    for (char *p = want, *end; r < TOKENS; r++, p = end) {
        long place = strtol(p, &end, 10);
        if (end == p) break;
        uint32_t top = whole_argmax(have + (size_t)r * w.cols, w.cols);
        if (place >= 0 && top != (uint32_t)place)
            check_fail(d->row, "without %s, row %u: %u is largest, should be %ld", key, r, top,
                       place);
    }
    if (r != TOKENS) check_end(d->row, "a line is wrong: %s has %u rows", key, r);
    free(have);
    whole_close(&w);
}

static void run_line(struct defaults *d, char *line) {
    char *key = strchr(line, ' '), *how = key ? strchr(key + 1, ' ') : NULL;
    char *want = how ? strchr(how + 1, ' ') : NULL;
    if (!want) check_end(d->row, "a line is wrong: %s", line);
    *key++ = *how++ = *want++ = 0;
    if (strcmp(line, d->family->name) != 0) return;
    write_without(d, key, strcmp(how, "null") == 0);
    compare(d, key, want);
    d->lines++;
}

static char *read_lines(struct check_row *row, size_t *n) {
    return check_file(row, check_golden(row, "defaults.txt"), n);
}

static void run_defaults(struct check_row *row, const void *arg) {
    struct defaults d = {.row = row, .family = arg};
    char path[PATH_SIZE];
    size_t n, ids;
    snprintf(path, sizeof path, "%s/config.json", d.family->model);
    d.config = json_load_file(path, 0, NULL);
    d.id = golden_ints(d.family->golden, "input_ids_b", &ids);
    if (!d.config || !d.id || ids < TOKENS) check_end(row, "no configuration, or no ids");
    char *text = read_lines(row, &n), *end = text + n;
    for (char *line = text, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) check_end(row, "the last line has no end");
        *stop = 0;
        run_line(&d, line);
    }
    json_dump_file(d.config, path, 0);
    check_compared(row, (size_t)d.lines * TOKENS, 0);
    check_note(row, "%u keys", d.lines);
    json_decref(d.config);
    free(d.id);
}

/* Has the file a line of this family? */
static bool is_listed(struct check *check, const char *name) {
    char path[PATH_SIZE], line[PATH_SIZE];
    bool found = false;
    snprintf(path, sizeof path, "%s/defaults.txt", check_goldens(check));
    FILE *file = fopen(path, "r");
    size_t n = strlen(name);
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, name, n) == 0 && line[n] == ' ';
    if (file) fclose(file);
    return found;
}

static void run_family(struct check *check, const struct family *f) {
    if (!f->unknown && is_listed(check, f->name)) check_run(check, run_defaults, f, "%s", f->name);
}

void check_defaults(struct check *check) {
    if (!check_device(check)) families_each(check, run_family);
}
