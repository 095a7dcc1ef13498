/* SPDX-License-Identifier: Apache-2.0
 *
 * jinja_render.c: the template engine on the command line, for comparisons with jinja2.
 *   jinja_render TEMPLATE DATA.json    prints the text
 *   jinja_render --lines
 *       reads a JSON object a line, {"template": ..., "data": {...}, "trusted": {...}, "now":
 *       seconds} (without "template": that of the line before), and answers each with a line,
 *       {"text": ..., "trust": "1100..."} or {"error": ..., "message": ...} */
#define _GNU_SOURCE /* getline */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "text/jinja/jinja.h"

static json_t *failure(const ob_error *error) {
    char line[1024];
    return json_pack("{s:s, s:s}", "error", ob_error_line(error, line, sizeof line), "message",
                     error->message);
}

/* The answer to one line; *jinja is the template of the line before. */
static json_t *answer(const json_t *one, struct jinja **jinja) {
    struct buf text = BUF_INIT, trust = BUF_INIT;
    ob_error error = {0};
    const json_t *source = json_object_get(one, "template");
    double now = json_number_value(json_object_get(one, "now"));
    if (source) {
        jinja_free(jinja);
        if (jinja_parse(json_string_value(source), json_string_length(source), jinja, &error))
            return failure(&error);
    }
    if (!*jinja) return json_pack("{s:s, s:s}", "error", "no template", "message", "");
    json_t *result;
    if (jinja_render(*jinja, json_object_get(one, "data"), json_object_get(one, "trusted"), now,
                     NULL, &text, &trust, &error)) {
        result = failure(&error);
    } else {
        for (size_t i = 0; i < trust.n; i++) trust.p[i] = trust.p[i] ? '1' : '0';
        result = json_pack("{s:s%, s:s%}", "text", text.n ? text.p : "", text.n, "trust",
                           trust.n ? trust.p : "", trust.n);
    }
    buf_free(&text);
    buf_free(&trust);
    return result ? result
                  : json_pack("{s:s, s:s}", "error", "the output is not UTF-8", "message", "");
}

static int lines(void) {
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    struct jinja *jinja = NULL;
    int code = 0;
    while (!code && (n = getline(&line, &cap, stdin)) > 0) {
        json_error_t problem;
        json_t *one = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &problem), *result;
        if (!one) {
            fprintf(stderr, "not JSON: %s\n", problem.text);
            code = 1;
            continue;
        }
        result = answer(one, &jinja);
        json_dumpf(result, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(result);
        json_decref(one);
    }
    jinja_free(&jinja);
    free(line);
    return code;
}

static int file(const char *template, const char *data_path) {
    ob_error error;
    json_error_t problem;
    char line[1024], *source = NULL;
    size_t n = 0;
    struct jinja *jinja = NULL;
    struct buf text = BUF_INIT;
    json_t *data = json_load_file(data_path, JSON_ALLOW_NUL, &problem);
    if (!data) {
        fprintf(stderr, "%s: %s\n", data_path, problem.text);
        return 1;
    }
    ob_status status = os_read_file(template, (size_t)1 << 20, &source, &n, &error);
    if (!status) status = jinja_parse(source, n, &jinja, &error);
    if (!status) status = jinja_render(jinja, data, NULL, 0, NULL, &text, NULL, &error);
    if (status) fprintf(stderr, "%s\n", ob_error_line(&error, line, sizeof line));
    else if (text.n) fwrite(text.p, 1, text.n, stdout);
    jinja_free(&jinja);
    buf_free(&text);
    json_decref(data);
    free(source);
    return status != OB_OK;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--lines") == 0) return lines();
    if (argc == 3) return file(argv[1], argv[2]);
    fprintf(stderr, "usage: jinja_render TEMPLATE DATA.json | --lines\n");
    return 2;
}
