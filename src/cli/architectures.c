/* SPDX-License-Identifier: Apache-2.0
 * architectures.c: `1bit info --architectures`: the classes of models that can be loaded. */
#include <string.h>

#include "cli/inspect.h"
#include "models/registry.h"

static json_t *text_or_null(const char *text) { return text ? json_string(text) : json_null(); }

static json_t *features_of(size_t i) {
    const char *feature;
    json_t *out = json_array();
    for (size_t n = 0; (feature = registry_feature(i, n)); n++)
        json_array_append_new(out, json_string(feature));
    return out;
}

static json_t *types_of(const struct registered *r) {
    json_t *out = json_pack("[s]", r->model_type);
    for (const char *p = r->also_type; p && *p; p += strcspn(p, "|"), p += *p == '|')
        json_array_append_new(out, json_stringn(p, strcspn(p, "|")));
    return out;
}

/* "own": files that only we write. A wrapper has what its language model's row has. */
static const char *gguf_of(const struct registered *r) {
    return r->gguf ? r->gguf : r->family ? "own" : NULL;
}

static int print_json(void) {
    json_t *list = json_array();
    for (size_t i = 0; i < registry_count(); i++) {
        struct registered r = registry_at(i);
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "class", r.hf_class,
                            "model_types", types_of(&r), "when", text_or_null(r.when), "gguf",
                            text_or_null(gguf_of(&r)), "family", text_or_null(r.family), "wrapper",
                            !r.family, "features", features_of(i)));
    }
    return cli_print_json(json_pack("{s:o}", "architectures", list));
}

int inspect_architectures(const struct options *options) {
    if (options->json) return print_json();
    struct cli_style style = cli_style_for(stdout, options);
    printf("%s%-36s %-20s %-14s %s%s\n", style.bold, "class", "model_type", "GGUF", "has",
           style.off);
    for (size_t i = 0; i < registry_count(); i++) {
        struct registered r = registry_at(i);
        const char *feature, *gguf = gguf_of(&r);
        printf("%-36s %-20s %-14s", r.hf_class, r.model_type, gguf ? gguf : "-");
        if (!r.family) fputs(" what the class of text_config has", stdout);
        for (size_t n = 0; (feature = registry_feature(i, n)); n++)
            printf("%s %s", n ? "," : "", feature);
        putchar('\n');
    }
    return EXIT_OK;
}
