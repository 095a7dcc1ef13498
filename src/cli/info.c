/* SPDX-License-Identifier: Apache-2.0
 * info.c: `1bit info`: what is in a model. All is collected as one JSON document; info_text.c
 * prints the text form from it, so the two cannot disagree. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "cli/sampling.h"
#include "format/source.h"
#include "text/chat.h"
#include "text/tok.h"

static json_t *tokenizer_of(const struct source *source) {
    struct tok *tok;
    ob_error error;
    char line[1024];
    if (tok_open(source, &tok, &error) != OB_OK)
        return json_pack("{s:o}", "error",
                         cli_json_text(str_of(ob_error_line(&error, line, sizeof line))));
    json_t *out =
        json_pack("{s:o, s:I, s:I, s:I, s:b, s:I}", "kind",
                  cli_json_text(str_of(tok_describe(tok))), "tokens", (json_int_t)tok_count(tok),
                  "bos", (json_int_t)tok_bos(tok), "eos", (json_int_t)tok_eos(tok), "adds_bos",
                  tok_adds_bos(tok), "chat_template_bytes", (json_int_t)tok_template(tok, NULL).n);
    struct chat *chat;
    ob_status status = chat_open(tok, NULL, NULL, &chat, &error);
    if (status == OB_OK) {
        json_object_set_new(out, "tool_format",
                            json_string(chat_format_name(chat_tool_format(chat))));
        json_object_set_new(out, "reasoning",
                            json_string(chat_thought_name(chat_thought_style(chat))));
        chat_close(&chat);
    } else if (status != OB_ERR_NOT_FOUND)
        json_object_set_new(out, "chat_template_error",
                            cli_json_text(str_of(ob_error_line(&error, line, sizeof line))));
    tok_close(&tok);
    return out;
}

static uint64_t weights_in(const struct source_tensor *t) {
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

/* How many tensors, weights and bytes each format has; types that are no weight format together. */
static json_t *formats_of(const struct source *source) {
    struct {
        uint64_t tensors, weights, bytes;
    } sum[QUANT_COUNT + 1] = {0};
    for (size_t i = 0; i < source_tensor_count(source); i++) {
        const struct source_tensor *t = source_tensor_at(source, i);
        size_t q = t->quant ? (size_t)quant_index_of(t->quant) : QUANT_COUNT;
        sum[q].tensors++;
        sum[q].weights += weights_in(t);
        sum[q].bytes += t->bytes;
    }
    json_t *out = json_array();
    for (size_t q = 0; q <= QUANT_COUNT; q++)
        if (sum[q].tensors)
            json_array_append_new(
                out, json_pack("{s:s, s:I, s:I, s:I}", "type",
                               q < QUANT_COUNT ? quant_list[q]->name : "other", "tensors",
                               (json_int_t)sum[q].tensors, "weights", (json_int_t)sum[q].weights,
                               "bytes", (json_int_t)sum[q].bytes));
    return out;
}

static json_t *tensors_of(const struct source *source) {
    json_t *out = json_array();
    for (size_t i = 0; i < source_tensor_count(source); i++) {
        const struct source_tensor *t = source_tensor_at(source, i);
        json_t *shape = json_array(); /* [rows, row length], the order of Hugging Face */
        for (uint32_t d = t->ndim; d-- > 0;)
            json_array_append_new(shape, json_integer((json_int_t)t->dim[d]));
        json_array_append_new(
            out, json_pack("{s:o, s:o, s:o, s:I}", "name", cli_json_text(t->name), "type",
                           cli_json_text(t->type), "shape", shape, "bytes", (json_int_t)t->bytes));
    }
    return out;
}

static json_t *file_of(const struct source *source) {
    const struct gguf *gguf = source_gguf(source);
    uint64_t weights = 0;
    for (size_t i = 0; i < source_tensor_count(source); i++)
        weights += weights_in(source_tensor_at(source, i));
    json_t *out = json_pack(
        "{s:o, s:s, s:o, s:I, s:I}", "path", cli_json_text(str_of(source_path(source))), "kind",
        gguf ? "GGUF" : "Hugging Face", "architecture", cli_json_text(source_architecture(source)),
        "bytes", (json_int_t)source_bytes(source), "weights", (json_int_t)weights);
    if (gguf) {
        json_object_set_new(out, "version", json_integer((json_int_t)gguf_version(gguf)));
        json_object_set_new(out, "files", json_integer((json_int_t)gguf_parts(gguf)));
    }
    return out;
}

static void add_place(void *user, const ob_placement *place) {
    json_array_append_new(
        user, json_pack("{s:o, s:s, s:I, s:s, s:s}", "tensor", cli_json_text(str_of(place->tensor)),
                        "type", place->format, "bytes", (json_int_t)place->bytes, "device",
                        place->device, "kernel", place->kernel));
}

static int show(const struct source *source, const struct options *options) {
    ob_error error;
    json_t *metadata, *placement = json_array();
    ob_engine_options engine = cli_engine_options(options);
    engine.model = source_path(source);
    ob_status placed = options->placement
                           ? ob_engine_placement(&engine, add_place, placement, &error)
                           : OB_OK;
    if (placed != OB_OK) {
        json_decref(placement);
        return cli_fail_error(&error);
    }
    if (inspect_metadata(source, &metadata, &error) != OB_OK) return cli_fail_error(&error);
    json_t *doc = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", file_of(source),
                            "formats", formats_of(source), "tokenizer", tokenizer_of(source),
                            "sampling", cli_sampling_json(source), "engine",
                            inspect_plan(source, options), "metadata", metadata, "tensors",
                            tensors_of(source));
    if (doc && options->placement) json_object_set(doc, "placement", placement);
    json_decref(placement);
    if (options->json || !doc) return cli_print_json(doc);
    inspect_print(doc, cli_style_for(stdout, options));
    json_decref(doc);
    return EXIT_OK;
}

static int run(const struct options *options) {
    ob_error error;
    char *path;
    struct source *source = NULL;
    if (options->architectures)
        return options->operands ? cli_misuse("--architectures takes no MODEL")
                                 : inspect_architectures(options);
    if (!options->operands) return cli_misuse("MODEL is missing (see 1bit info --help)");
    if (cli_check_kv_memory(options, &error) != OB_OK ||
        cli_model_path(options->operand[0], &path, &error) != OB_OK)
        return cli_fail_error(&error);
    int code = source_open(path, &source, &error) == OB_OK ? show(source, options)
                                                           : cli_fail_error(&error);
    free(path);
    if (code == EXIT_OK && options->verify) {
        if (inspect_verify(source, &error) != OB_OK)
            code = cli_fail_error(&error);
        else if (!options->json)
            puts("\nall weights are finite");
    }
    source_close(&source);
    return code;
}

const struct command command_info = {
    .name = "info",
    .summary = "tell what is in a model file",
    .operands = "[MODEL]",
    .operands_max = 1,
    .about =
        "Prints the format, weights and tokenizer of a GGUF file, a Hugging Face directory, or a "
        "model of the models folder, what the engine would do with it here, and all its metadata "
        "and tensors.\n\n"
        "With --architectures it lists instead which classes of models can be loaded at all.\n\n"
        "  1bit info qwen2.5-coder-0.5b\n  1bit info --json model.gguf | jq .tensors",
    .run = run,
};
