/* SPDX-License-Identifier: Apache-2.0
 * journal.c: what is already done, as JSON lines; see eval.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "eval/eval.h"

enum { LIMIT = 1 << 30 };

struct eval_journal {
    FILE *file;
    char *path;
};

static ob_status fails(ob_error *error, const char *path, ob_status status, const char *what,
                       uint64_t offset) {
    error_set(error, status, "%s", what);
    error_at(error, path, NULL, offset);
    return status;
}

ob_status eval_journal_add(struct eval_journal *j, const json_t *record, ob_error *error) {
    if (!j) return OB_OK;
    char *line = json_dumps(record, JSON_COMPACT | JSON_SORT_KEYS);
    if (!line) return error_memory(error, "a record", 0);
    errno = 0;
    size_t n = strlen(line);
    line[n] = '\n'; /* over the terminator */
    bool ok = fwrite(line, 1, n + 1, j->file) == n + 1 && fflush(j->file) == 0;
    free(line);
    return ok ? OB_OK : fails(error, j->path, OB_ERR_IO, strerror(errno), OB_NO_OFFSET);
}

void eval_journal_close(struct eval_journal **journal) {
    struct eval_journal *j = *journal;
    if (!j) return;
    if (j->file) fclose(j->file);
    free(j->path);
    free(j);
    *journal = NULL;
}

/* Reads whole lines; *whole is where the first torn one starts. */
static ob_status read_lines(const char *path, const char *text, size_t n, const json_t *head,
                            json_t *records, size_t *whole, ob_error *error) {
    *whole = 0;
    for (const char *end; (end = memchr(text + *whole, '\n', n - *whole));) {
        const char *line = text + *whole;
        json_t *json = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(json)) {
            json_decref(json);
            return fails(error, path, OB_ERR_FORMAT, "a line is no JSON object", *whole);
        }
        if (*whole > 0) {
            json_array_append_new(records, json);
        } else {
            bool same = json_equal(json, head);
            json_decref(json);
            if (!same)
                return fails(
                    error, path, OB_ERR_ARGUMENT,
                    "it holds results of another model, text or setting; name another file", 0);
        }
        *whole = (size_t)(end - text) + 1;
    }
    return OB_OK;
}

ob_status eval_journal_open(const char *path, const json_t *head, struct eval_journal **out,
                            json_t **records, ob_error *error) {
    *out = NULL;
    if (!(*records = json_array())) return error_memory(error, "records", 0);
    if (!path) return OB_OK;
    char *text = NULL;
    size_t n = 0, whole = 0;
    ob_status s = OB_OK;
    if (os_is_file(path)) s = os_read_file(path, LIMIT, &text, &n, error);
    if (s == OB_OK && n) s = read_lines(path, text, n, head, *records, &whole, error);
    free(text);
    if (s == OB_OK && whole < n && !os_truncate(path, whole))
        s = fails(error, path, OB_ERR_IO, strerror(errno), OB_NO_OFFSET);
    struct eval_journal *j = s == OB_OK ? calloc(1, sizeof *j) : NULL;
    if (s == OB_OK && (!j || !(j->path = strdup(path)))) s = error_memory(error, "a journal", 0);
    if (s == OB_OK && !(j->file = fopen(path, "ab")))
        s = fails(error, path, OB_ERR_IO, strerror(errno), OB_NO_OFFSET);
    if (s == OB_OK && whole == 0) s = eval_journal_add(j, head, error);
    if (s != OB_OK) eval_journal_close(&j);
    *out = j;
    return s;
}
