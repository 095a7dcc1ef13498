/* SPDX-License-Identifier: Apache-2.0
 * form.c: see form.h. */
#include "cli/form.h"

#include <string.h>

#include "base/error.h"

int cli_form_read(struct options *options, struct buf *text) {
    const char **to = options->grammar_file ? &options->grammar : &options->json_schema;
    const char **file = options->grammar_file ? &options->grammar_file
                                              : &options->json_schema_file;
    int n = (options->grammar != NULL) + (options->grammar_file != NULL) +
            (options->json_schema != NULL) + (options->json_schema_file != NULL) +
            (options->regex != NULL);
    ob_error error;
    if (n > 1)
        return cli_misuse("--grammar, --grammar-file, --json-schema, --json-schema-file and "
                          "--regex exclude each other");
    if (options->json_compact && !options->json_schema && !options->json_schema_file)
        return cli_misuse("--json-compact is for --json-schema");
    if (!*file) return EXIT_OK;
    if (strcmp(*file, "-") == 0)
        return cli_misuse("--grammar-file and --json-schema-file do not read the standard input");
    if (cli_read_text(*file, text, &error) != OB_OK) return cli_fail_error(&error);
    buf_puts(text, "");
    buf_reserve(text, 1);
    if (text->failed) return cli_fail("out of memory for a grammar");
    if (strlen(text->p) != text->n) return cli_fail("%s: there is a NUL in it", *file);
    *to = text->p;
    *file = NULL;
    return EXIT_OK;
}

ob_status cli_form_open(const ob_engine *engine, const struct options *options, ob_grammar **out,
                        ob_error *error) {
    ob_status s = OB_OK;
    *out = NULL;
    if (options->grammar)
        s = ob_grammar_gbnf(engine, options->grammar, strlen(options->grammar), out, error);
    else if (options->json_schema)
        s = ob_grammar_json_schema(engine, options->json_schema, strlen(options->json_schema),
                                   options->json_compact ? OB_JSON_COMPACT : 0, out, error);
    else if (options->regex)
        s = ob_grammar_regex(engine, options->regex, strlen(options->regex), out, error);
    else
        return OB_OK;
    /* What the error names is a place inside the option's value. */
    const char *flag = options->grammar ? "grammar" : options->json_schema ? "json-schema"
                                                                           : "regex";
    if (s != OB_OK && error) {
        char place[sizeof error->where];
        snprintf(place, sizeof place, "--%s%s%.100s", flag, error->where[0] ? "#" : "",
                 error->where);
        snprintf(error->where, sizeof error->where, "%s", place);
    }
    return s;
}
