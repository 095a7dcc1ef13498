/* SPDX-License-Identifier: Apache-2.0
 * info_text.c: the text form of `1bit info`, from its JSON document. Names come from files that may
 * be hostile: no control character reaches the terminal. */
#include <string.h>

#include "cli/cli.h"
#include "cli/inspect.h"

enum { TEXT = 600 };

static uint64_t number(const json_t *object, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *printable(const char *from, char out[TEXT]) {
    snprintf(out, TEXT, "%s", from ? from : "");
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    return out;
}

static const char *text(const json_t *object, const char *key, char out[TEXT]) {
    return printable(json_string_value(json_object_get(object, key)), out);
}

static void print_tokenizer(const json_t *tok) {
    char line[TEXT];
    if (json_object_get(tok, "error")) {
        printf("  tokenizer     %s\n", text(tok, "error", line));
        return;
    }
    printf("  tokenizer     %s, %d tokens\n  chat template ", text(tok, "kind", line),
           (int)number(tok, "tokens"));
    if (number(tok, "chat_template_bytes"))
        printf("%d bytes%s%s\n", (int)number(tok, "chat_template_bytes"),
               json_object_get(tok, "chat_template_error") ? ", broken: " : "",
               text(tok, "chat_template_error", line));
    else
        puts("none");
    if (json_object_get(tok, "tool_format"))
        printf("  tool calls    as %s writes them; reasoning as %s does\n",
               json_string_value(json_object_get(tok, "tool_format")),
               json_string_value(json_object_get(tok, "reasoning")));
}

/* What the files say, and the most important of what they do not. */
static void print_sampling(const json_t *sampling) {
    static const char *const always[] = {"temperature", "top_k", "top_p", "min_p"};
    const json_t *files = json_object_get(sampling, "from_files");
    char line[TEXT];
    size_t n = json_array_size(files);
    if (json_object_get(sampling, "error")) {
        printf("  sampling      refused: %s\n", text(sampling, "error", line));
        return;
    }
    printf("  sampling      ");
    for (size_t i = 0; i < n + 4; i++) {
        struct buf value = BUF_INIT;
        const char *name = i < n ? json_string_value(json_array_get(files, i)) : always[i - n];
        bool told = i < n;
        for (size_t j = 0; i >= n && j < n; j++)
            told |= strcmp(name, json_string_value(json_array_get(files, j))) == 0;
        if (i >= n && told) continue;
        inspect_line(json_object_get(sampling, name), &value);
        printf("%s%s %s%s", i ? ", " : "", name, value.p ? value.p : "",
               told ? "" : " (ours)");
        buf_free(&value);
    }
    putchar('\n');
}

static void print_file(const json_t *doc, struct cli_style style) {
    const json_t *file = json_object_get(doc, "file"), *formats = json_object_get(doc, "formats");
    char a[24], b[24], line[TEXT];
    printf("%s%s%s\n", style.bold, text(file, "path", line), style.off);
    printf("  format        %s", text(file, "kind", line));
    if (number(file, "version")) printf(" version %d", (int)number(file, "version"));
    if (number(file, "files") > 1) printf(", %d files", (int)number(file, "files"));
    cli_bytes(number(file, "bytes"), a);
    printf(", %s\n  architecture  %s\n", a, text(file, "architecture", line));
    cli_count(number(file, "weights"), a);
    size_t tensors = json_array_size(json_object_get(doc, "tensors"));
    printf("  weights       %s in %zu tensor%s\n", a, tensors, cli_plural(tensors));
    for (size_t i = 0; i < json_array_size(formats); i++) {
        const json_t *row = json_array_get(formats, i);
        cli_count(number(row, "weights"), a);
        cli_bytes(number(row, "bytes"), b);
        printf("    %-8s %10s weights in %4d tensor%s, %s\n", text(row, "type", line), a,
               (int)number(row, "tensors"), cli_plural(number(row, "tensors")), b);
    }
    print_tokenizer(json_object_get(doc, "tokenizer"));
    print_sampling(json_object_get(doc, "sampling"));
}

/* What files have is not what is loaded. */
static void print_loaded(const json_t *plan) {
    const json_t *loaded = json_object_get(plan, "loaded");
    char a[24], b[24], line[TEXT];
    if (json_string_length(json_object_get(plan, "packed")))
        printf("\n  packed        %s; unpacked while loading", text(plan, "packed", line));
    for (size_t i = 0; number(plan, "copied_bytes") && i < json_array_size(loaded); i++) {
        const json_t *row = json_array_get(loaded, i);
        cli_count(number(row, "weights"), a);
        cli_bytes(number(row, "bytes"), b);
        printf("\n  %-13s %-8s %10s weights, %s", i ? "" : "loaded", text(row, "type", line), a, b);
    }
}

static void print_plan(const json_t *plan, struct cli_style style) {
    const json_t *devices = json_object_get(plan, "devices");
    const json_t *unused = json_object_get(plan, "unused_tensors");
    char a[24], b[24], line[TEXT];
    printf("\n%sengine%s\n", style.bold, style.off);
    if (json_object_get(plan, "refused")) {
        printf("  refused       %s\n", text(plan, "refused", line));
        return;
    }
    cli_count(number(plan, "weights"), a);
    cli_bytes(number(plan, "weight_bytes"), b);
    printf("  family        %s, %s weights used, %s", text(plan, "family", line), a, b);
    cli_bytes(number(plan, "copied_bytes"), a);
    if (number(plan, "copied_bytes")) printf(" (%s of it copied into another form)", a);
    print_loaded(plan);
    if (number(plan, "experts")) {
        cli_count(number(plan, "active_weights"), a);
        printf("\n  experts       %d of %d for a token, which uses %s weights",
               (int)number(plan, "experts_used"), (int)number(plan, "experts"), a);
    }
    printf("\n  context       %llu tokens", (unsigned long long)number(plan, "context"));
    if (number(plan, "context") != number(plan, "train_context"))
        printf(" (made for %llu)", (unsigned long long)number(plan, "train_context"));
    const json_t *embedding = json_object_get(plan, "embedding");
    if (embedding)
        printf("\n  embedding     %d numbers, pooling of the last states: %s%s%s",
               (int)number(embedding, "dimensions"), text(embedding, "pooling", line),
               number(embedding, "dense_layers") ? ", dense layers" : "",
               json_is_true(json_object_get(embedding, "unit_length")) ? ", of length 1" : "");
    cli_bytes(number(plan, "kv_bytes_1000_tokens"), a);
    cli_bytes(number(plan, "kv_memory"), b);
    char fit[24] = "more than 4 billion";
    if (number(plan, "tokens_that_fit") < UINT32_MAX)
        snprintf(fit, sizeof fit, "%llu", (unsigned long long)number(plan, "tokens_that_fit"));
    printf("\n  cache         %s for 1,000 tokens; %s tokens fit in %s\n  devices       ", a, fit,
           b);
    for (size_t i = 0; i < json_array_size(devices); i++)
        printf("%s%s (%s)", i ? ", " : "", text(json_array_get(devices, i), "name", line),
               json_string_value(json_object_get(json_array_get(devices, i), "description")));
    putchar('\n');
    for (size_t i = 0; i < json_array_size(unused); i++)
        printf("  not needed    %s\n",
               printable(json_string_value(json_array_get(unused, i)), line));
}

static void print_metadata(json_t *metadata, struct cli_style style) {
    printf("\n%smetadata%s (%zu)\n", style.bold, style.off, json_object_size(metadata));
    for (void *it = json_object_iter(metadata); it; it = json_object_iter_next(metadata, it)) {
        struct buf value = BUF_INIT;
        char key[TEXT];
        inspect_line(json_object_iter_value(it), &value);
        printf("  %-40s %s\n", printable(json_object_iter_key(it), key), value.p ? value.p : "");
        buf_free(&value);
    }
}

static void print_tensors(const json_t *tensors, struct cli_style style) {
    printf("\n%stensors%s (%zu)\n", style.bold, style.off, json_array_size(tensors));
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *row = json_array_get(tensors, i), *shape = json_object_get(row, "shape");
        char bytes[24], name[TEXT], type[TEXT], dims[96]; /* 4 numbers of at most 20 digits */
        int n = 0;
        for (size_t d = 0; d < json_array_size(shape); d++)
            n += snprintf(dims + n, sizeof dims - (size_t)n, "%s%lld", d ? ", " : "[",
                          (long long)json_integer_value(json_array_get(shape, d)));
        snprintf(dims + n, sizeof dims - (size_t)n, "]");
        cli_bytes(number(row, "bytes"), bytes);
        printf("  %-40s %-8s %-18s %10s\n", text(row, "name", name), text(row, "type", type), dims,
               bytes);
    }
}

static void print_placement(const json_t *placement, struct cli_style style) {
    if (!placement) return;
    printf("\n%splacement%s (in the order of use)\n", style.bold, style.off);
    for (size_t i = 0; i < json_array_size(placement); i++) {
        const json_t *row = json_array_get(placement, i);
        char bytes[24], name[TEXT], type[TEXT], device[TEXT], kernel[TEXT];
        cli_bytes(number(row, "bytes"), bytes);
        printf("  %-40s %-8s %10s  %s %s\n", text(row, "tensor", name), text(row, "type", type),
               bytes, text(row, "device", device), text(row, "kernel", kernel));
    }
}

void inspect_print(const json_t *doc, struct cli_style style) {
    print_file(doc, style);
    print_plan(json_object_get(doc, "engine"), style);
    print_metadata(json_object_get(doc, "metadata"), style);
    print_tensors(json_object_get(doc, "tensors"), style);
    print_placement(json_object_get(doc, "placement"), style);
}
