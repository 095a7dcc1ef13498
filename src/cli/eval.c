/* SPDX-License-Identifier: Apache-2.0
 * eval.c: `1bit eval`: which kind, and what the kinds share. Ctrl-C ends it at once: what --save
 * and --resume have kept is whole. */
#include "cli/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct kind {
    const char *name;
    int (*run)(const struct options *options);
} kinds[] = {
    {"perplexity", eval_perplexity},
    {"kld", eval_kld},
    {"choice", eval_choice},
};

/* Options of `1bit eval` that a kind has no use for: to ignore one would hide a mistake. */
static const struct {
    const char *kind;
    enum option_index option;
} useless[] = {
    {"perplexity", OPTION_INDEX_save}, {"perplexity", OPTION_INDEX_ref},
    {"choice", OPTION_INDEX_save},     {"choice", OPTION_INDEX_ref},
    {"choice", OPTION_INDEX_stride},
};

ob_status eval_open_engine(struct eval_job *job, uint32_t ctx, uint32_t parallel, ob_error *error) {
    ob_engine_options options = cli_engine_options(job->options);
    options.context = ctx;
    options.parallel = parallel;
    options.step_logits = EVAL_STEP_LOGITS;
    ob_status s = cli_engine_open_with(job->options, options, &job->engine, error);
    if (s == OB_OK) ob_engine_get_info(job->engine, &job->info);
    return s;
}

ob_status eval_read_text(struct eval_job *job, ob_error *error) {
    ob_status s = cli_read_text(job->options->file, &job->text, error);
    if (s != OB_OK) return s;
    if (job->text.n && job->text.p[job->text.n - 1] == '\n') job->text.n--;
    if (job->text.n) return OB_OK;
    s = error_set(error, OB_ERR_FORMAT, "there is no text in it");
    error_at(error, job->options->file, NULL, OB_NO_OFFSET);
    return s;
}

ob_status eval_open_text(struct eval_job *job, ob_error *error) {
    const struct options *o = job->options;
    uint32_t ctx = (uint32_t)o->ctx;
    ob_status s = eval_read_text(job, error);
    if (s == OB_OK) s = eval_open_engine(job, ctx, eval_chunks_parallel(ctx), error);
    if (s == OB_OK)
        s = eval_chunks_make(job->engine, job->text.p, job->text.n, ctx, (uint32_t)o->stride,
                             (uint32_t)o->chunks, &job->chunks, error);
    return s;
}

void eval_device(const struct eval_job *job, char out[64]) {
    snprintf(out, 64, "%.*s", (int)strcspn(job->info.device, ","), job->info.device);
}

void eval_hex(uint64_t hash, char out[17]) {
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}

ob_status eval_open_journal(struct eval_job *job, json_t *head, ob_error *error) {
    char device[64];
    eval_device(job, device);
    json_object_set_new(head, "model", cli_json_text(str_of(job->info.name)));
    json_object_set_new(head, "device", json_string(device));
    json_object_set_new(head, "weight_bytes", json_integer((json_int_t)job->info.weight_bytes));
    json_object_set_new(head, "kv_type", json_string(job->info.kv_type));
    ob_status s =
        head ? eval_journal_open(job->options->resume, head, &job->journal, &job->records, error)
             : error_memory(error, "a head", 0);
    json_decref(head);
    return s;
}

static ob_status bad_record(const struct eval_job *job, uint32_t chunk, ob_error *error) {
    error_set(error, OB_ERR_FORMAT, "line %u is no record of this run", chunk + 2);
    error_at(error, job->options->resume, NULL, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

ob_status eval_read_record(const struct eval_job *job, uint32_t chunk, size_t fields,
                           const char *const *field, size_t rows, double *out, ob_error *error) {
    const json_t *record = json_array_get(job->records, chunk);
    const json_t *number = json_object_get(record, "chunk");
    if (!json_is_integer(number) || json_integer_value(number) != chunk)
        return bad_record(job, chunk, error);
    for (size_t f = 0; f < fields; f++) {
        const json_t *list = json_object_get(record, field[f]);
        if (json_array_size(list) != rows) return bad_record(job, chunk, error);
        for (size_t i = 0; i < rows; i++) {
            const json_t *x = json_array_get(list, i);
            if (!json_is_number(x)) return bad_record(job, chunk, error);
            *out++ = json_number_value(x);
        }
    }
    return OB_OK;
}

json_t *eval_json_numbers(const double *x, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_real(x[i]));
    return list;
}

json_t *eval_json_real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *eval_json_stat(struct eval_stat stat) {
    return json_pack("{s:o, s:o}", "value", eval_json_real(stat.value), "error",
                     eval_json_real(stat.error));
}

void eval_close(struct eval_job *job) {
    eval_journal_close(&job->journal);
    json_decref(job->records);
    eval_chunks_free(&job->chunks);
    buf_free(&job->text);
    if (job->engine) ob_engine_close(&job->engine);
}

static int run(const struct options *options) {
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        if (strcmp(options->operand[0], useless[i].kind) == 0 && options->given[useless[i].option])
            return cli_misuse("--%s: not an option of %s", option_list[useless[i].option].flag,
                              useless[i].kind);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(options->operand[0], kinds[i].name) == 0) return kinds[i].run(options);
    return cli_misuse("\"%s\" is none of perplexity, kld, choice", options->operand[0]);
}

const struct command command_eval = {
    .name = "eval",
    .summary = "measure how good a model is",
    .operands = "perplexity|kld|choice",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "perplexity: how well the model predicts a text (-f). The text is cut into chunks of --ctx "
        "tokens, the second half of each is scored; with --stride, windows overlap. The figures "
        "are "
        "those of llama.cpp's tool on the same file and text.\n\n"
        "kld: how far the model's distributions are from a reference's. --save makes the "
        "reference's "
        "table from a model and a text (-f) and goes on with a table that was interrupted; --ref "
        "compares the model with it.\n\n"
        "choice: multiple choice over lines of JSON (-f): {\"context\": \"...\", \"choices\": "
        "[\"...\", ...], \"answer\": 0}; with an \"ending\", which follows each choice, only that "
        "is "
        "scored. Choices are judged by their log probability: whole, a token, a byte.\n\n"
        "--resume keeps what is done in a file, and goes on from there.\n\n"
        "  1bit eval perplexity -m qwen2.5-coder-0.5b -f text.txt --chunks 20\n"
        "  1bit eval kld -m model-f16.gguf -f text.txt --save ref.lpt\n"
        "  1bit eval kld -m model-q4.gguf --ref ref.lpt\n"
        "  1bit eval choice -m qwen2.5-coder-0.5b -f hellaswag.jsonl",
    .run = run,
};
