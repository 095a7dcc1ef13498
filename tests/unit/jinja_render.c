/* SPDX-License-Identifier: Apache-2.0
 *
 * jinja_render.c: the template engine on the command line, for comparisons with jinja2.
 *   jinja_render TEMPLATE DATA.json    prints the text
 *   jinja_render --batch CASES.json    [{"template": ..., "data": {...}}, ...] to a JSON array of
 *                                      {"text": ..., "trust": "1100..."} or {"error": ...} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "text/jinja/jinja.h"

static ob_status render(const char *source, size_t n, const json_t *data, const json_t *trusted,
                        double now, struct buf *text, struct buf *trust, ob_error *error) {
    struct jinja *jinja;
    ob_status status = jinja_parse(source, n, &jinja, error);
    if (status) return status;
    status = jinja_render(jinja, data, trusted, now, NULL, text, trust, error);
    jinja_free(&jinja);
    return status;
}

static json_t *one_case(const json_t *one) {
    struct buf text = BUF_INIT, trust = BUF_INIT;
    ob_error error;
    char line[1024];
    const json_t *source = json_object_get(one, "template");
    double now = json_number_value(json_object_get(one, "now"));
    json_t *result;
    if (render(json_string_value(source), json_string_length(source), json_object_get(one, "data"),
               json_object_get(one, "trusted"), now, &text, &trust, &error)) {
        result = json_pack("{s:s}", "error", ob_error_line(&error, line, sizeof line));
    } else {
        for (size_t i = 0; i < trust.n; i++) trust.p[i] = trust.p[i] ? '1' : '0';
        result = json_pack("{s:s%, s:s%}", "text", text.n ? text.p : "", text.n, "trust",
                           trust.n ? trust.p : "", trust.n);
    }
    buf_free(&text);
    buf_free(&trust);
    return result ? result : json_pack("{s:s}", "error", "the output is not UTF-8");
}

static int batch(const char *path) {
    json_error_t problem;
    json_t *cases = json_load_file(path, JSON_ALLOW_NUL, &problem), *one, *out = json_array();
    size_t i;
    if (!cases) {
        fprintf(stderr, "%s: %s\n", path, problem.text);
        return 1;
    }
    json_array_foreach(cases, i, one) json_array_append_new(out, one_case(one));
    json_dumpf(out, stdout, JSON_COMPACT);
    json_decref(cases);
    json_decref(out);
    return 0;
}

int main(int argc, char **argv) {
    ob_error error;
    json_error_t problem;
    char line[1024], *source;
    size_t n;
    struct buf text = BUF_INIT;
    if (argc != 3) {
        fprintf(stderr, "usage: jinja_render TEMPLATE DATA.json | --batch CASES.json\n");
        return 2;
    }
    if (strcmp(argv[1], "--batch") == 0) return batch(argv[2]);
    json_t *data = json_load_file(argv[2], JSON_ALLOW_NUL, &problem);
    if (!data) {
        fprintf(stderr, "%s: %s\n", argv[2], problem.text);
        return 1;
    }
    ob_status status = os_read_file(argv[1], (size_t)1 << 20, &source, &n, &error);
    if (!status) {
        status = render(source, n, data, NULL, 0, &text, NULL, &error);
        free(source);
    }
    if (status) fprintf(stderr, "%s\n", ob_error_line(&error, line, sizeof line));
    else fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
    json_decref(data);
    return status != OB_OK;
}
