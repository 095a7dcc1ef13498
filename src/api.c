/* SPDX-License-Identifier: Apache-2.0
 * api.c: onebit.h over engine, decode, text and sample. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/error.h"
#include "base/os.h"
#include "base/path.h"
#include "decode/decode.h"
#include "format/sampling.h"
#include "onebit.h"
#include "sample/sample.h"
#include "sample/schema/schema.h"
#include "text/chat.h"

#define PUBLIC __attribute__((visibility("default")))

struct ob_engine {
    struct source *source;
    struct engine *engine;
    struct tok *tok;
    struct chat *chat; /* NULL: no template; chat_error says so */
    ob_error chat_error;
    struct loop *loop;
    struct source_sampling sampling; /* the model's own settings */
    char *name;
};

/* ---- devices --------------------------------------------------------------------------------- */

PUBLIC bool ob_device_at(size_t i, ob_device *out) { return engine_device_at(i, out); }

/* ---- opening --------------------------------------------------------------------------------- */

/* general.name, or the last part of the path without .gguf. */
static char *model_name(const struct source *source) {
    struct str name;
    if (source_kind(source) == SOURCE_GGUF && source_str(source, "general.name", 0, &name) &&
        name.n)
        return strndup(name.p, name.n);
    struct str stem = path_stem(source_path(source));
    return strndup(stem.p, stem.n);
}

static ob_status open_source(const ob_engine_options *options, struct source **out,
                             ob_error *error) {
    *out = NULL;
    if (!options || !options->model) return error_set(error, OB_ERR_ARGUMENT, "no model is given");
    return source_open(options->model, out, error);
}

/* What the files say of sampling, checked as a request's. */
static ob_status read_sampling(const struct source *source, struct source_sampling *out,
                               ob_error *error) {
    out->settings = ob_sampling_default();
    ob_status s = source_sampling_read(source, out, error);
    if (s != OB_OK || !out->order[0]) return s;
    ob_sampling ordered = ob_sampling_default();
    ordered.order = out->order;
    ob_error unknown;
    s = sample_check(&ordered, &unknown);
    if (s != OB_OK) {
        error_set(error, OB_ERR_FORMAT, "%s", unknown.message);
        error_at(error, source_path(source), SOURCE_SAMPLING_ORDER, OB_NO_OFFSET);
    }
    return s == OB_OK ? OB_OK : OB_ERR_FORMAT;
}

PUBLIC ob_status ob_engine_check(const ob_engine_options *options, ob_error *error) {
    struct source *source;
    const struct chat_format *format;
    ob_status s = options->chat_template ? chat_check(options->chat_template, error) : OB_OK;
    if (s == OB_OK && options->tool_format)
        s = chat_format_find(options->tool_format, &format, error);
    if (s != OB_OK) return s;
    s = open_source(options, &source, error);
    struct source_sampling sampling;
    if (s == OB_OK) s = read_sampling(source, &sampling, error);
    if (s == OB_OK) s = engine_check(source, options, error);
    source_close(&source);
    return s;
}

PUBLIC ob_status ob_engine_placement(const ob_engine_options *options,
                                     void (*row)(void *user, const ob_placement *place),
                                     void *user, ob_error *error) {
    struct source *source;
    ob_status s = open_source(options, &source, error);
    if (s == OB_OK) s = engine_placement(source, options, row, user, error);
    source_close(&source);
    return s;
}

PUBLIC ob_status ob_engine_open(const ob_engine_options *options, ob_engine **out,
                                ob_error *error) {
    *out = NULL;
    ob_engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    const struct chat_format *format;
    ob_status s = options && options->tool_format
                      ? chat_format_find(options->tool_format, &format, error) : OB_OK;
    if (s == OB_OK) s = open_source(options, &e->source, error);
    if (s == OB_OK) s = read_sampling(e->source, &e->sampling, error);
    const struct recipe *recipe; /* an architecture that is not known is the better reason */
    if (s == OB_OK) s = model_find(e->source, &recipe, error);
    if (s == OB_OK) s = tok_open(e->source, &e->tok, error);
    if (s == OB_OK) s = engine_open(e->source, options, &e->engine, error);
    if (s == OB_OK)
        chat_open(e->tok, options->chat_template,
                  options->chat_template ? NULL : source_path(e->source), &e->chat,
                  &e->chat_error);
    if (s == OB_OK && options->chat_template && !e->chat) {
        if (error) *error = e->chat_error; /* asked for, so not left for the first chat to find */
        s = e->chat_error.status;
    }
    if (s == OB_OK && options->tool_format && e->chat)
        s = chat_set_tool_format(e->chat, options->tool_format, error);
    if (s == OB_OK && !(e->name = model_name(e->source))) s = error_memory(error, "a name", 0);
    if (s == OB_OK) s = loop_open(e->engine, e->tok, &e->loop, error);
    if (s == OB_OK) loop_set_queue(e->loop, options->queue);
    if (s == OB_OK) loop_set_gap(e->loop, options->max_gap / 1e3);
    if (s == OB_OK && e->chat)
        loop_set_chat(e->loop, chat_tool_format(e->chat), chat_thought_style(e->chat));
    if (s != OB_OK) ob_engine_close(&e);
    *out = e;
    return s;
}

PUBLIC void ob_engine_close(ob_engine **engine) {
    ob_engine *e = *engine;
    if (!e) return;
    loop_close(&e->loop);
    if (e->chat) chat_close(&e->chat);
    engine_close(&e->engine);
    if (e->tok) tok_close(&e->tok);
    if (e->source) source_close(&e->source);
    free(e->name);
    free(e);
    *engine = NULL;
}

PUBLIC void ob_engine_get_info(const ob_engine *e, ob_engine_info *info) {
    const struct model *m = engine_model(e->engine);
    struct kv_types kv = engine_kv_types(e->engine);
    struct engine_work work = engine_work(e->engine);
    *info =
        (ob_engine_info){.name = e->name,
                         .family = model_family(m),
                         .device = engine_device(e->engine),
                         .parameters = m->parameters,
                         .active_parameters = m->active_parameters,
                         .weight_bytes = m->weight_bytes,
                         .token_bytes = work.token_bytes,
                         .expert_bytes = work.expert_bytes,
                         .token_products = work.token_products,
                         .logits_products = work.logits_products,
                         .kv_type = engine_kv_text(e->engine),
                         .kv_bytes_token = (model_kv_bytes(m, PAGE_TOKENS, kv) -
                                            model_kv_bytes(m, 0, kv)) / PAGE_TOKENS,
                         .kv_capacity = engine_capacity(e->engine),
                         .context = engine_context(e->engine),
                         .train_context = m->hp.context,
                         .vocab = m->hp.vocab,
                         .embedding = model_embedding_cols(m),
                         .encoder = !model_generates(m),
                         .experts = m->hp.expert_count,
                         .experts_used = m->hp.route.used,
                         .threads = engine_threads(e->engine),
                         .parallel = engine_parallel(e->engine),
                         .chat_error = e->chat ? NULL : &e->chat_error};
    if (!e->chat) return;
    info->tool_format = chat_format_name(chat_tool_format(e->chat));
    info->reasoning_style = chat_thought_name(chat_thought_style(e->chat));
}

PUBLIC uint64_t ob_engine_kv_bytes(const ob_engine *e, uint32_t tokens) {
    return model_kv_bytes(engine_model(e->engine), tokens, engine_kv_types(e->engine));
}

/* ---- text ------------------------------------------------------------------------------------ */

PUBLIC void ob_tokens_free(ob_tokens *tokens) {
    free(tokens->id);
    *tokens = (ob_tokens){0};
}

PUBLIC ob_status ob_tokenize(const ob_engine *e, const char *text, size_t n, bool add_special,
                             bool parse_special, ob_tokens *out, ob_error *error) {
    *out = (ob_tokens){0};
    ob_status s = tok_encode(e->tok, text, n, NULL, parse_special, add_special, out, error);
    if (s != OB_OK) ob_tokens_free(out);
    return s;
}

PUBLIC ob_status ob_detokenize(const ob_engine *e, const int32_t *id, size_t count, bool special,
                               char **out, size_t *n, ob_error *error) {
    struct buf text = BUF_INIT;
    buf_reserve(&text, 0);
    for (size_t i = 0; i < count; i++) tok_piece(e->tok, id[i], special, i == 0, &text);
    if (text.failed) {
        buf_free(&text);
        return error_memory(error, "text", 0);
    }
    *out = text.p;
    *n = text.n;
    return OB_OK;
}

PUBLIC ob_status ob_chat_prompt_json(const ob_engine *e, const json_t *request, ob_tokens *out,
                                     char **text, size_t *text_n, ob_error *error) {
    *out = (ob_tokens){0};
    if (!e->chat) {
        if (error) *error = e->chat_error;
        return e->chat_error.status;
    }
    struct buf rendered = BUF_INIT;
    ob_status s = chat_prompt(e->chat, request, out, text ? &rendered : NULL, error);
    if (s == OB_OK && rendered.failed) s = error_memory(error, "a prompt", 0);
    if (s != OB_OK) {
        ob_tokens_free(out);
        buf_free(&rendered);
        return s;
    }
    if (text) {
        buf_reserve(&rendered, 0);
        *text = rendered.p;
        *text_n = rendered.n;
    }
    return OB_OK;
}

PUBLIC ob_status ob_chat_prompt(const ob_engine *e, const char *request_json, size_t n,
                                ob_tokens *out, char **text, size_t *text_n, ob_error *error) {
    *out = (ob_tokens){0};
    json_error_t where;
    json_t *request = json_loadb(request_json, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!request) {
        error_set(error, OB_ERR_ARGUMENT, "not JSON: %s", where.text);
        error_at(error, NULL, NULL, (uint64_t)where.position);
        return OB_ERR_ARGUMENT;
    }
    ob_status s = ob_chat_prompt_json(e, request, out, text, text_n, error);
    json_decref(request);
    return s;
}

/* ---- generation ------------------------------------------------------------------------------ */

PUBLIC ob_sampling ob_sampling_default(void) {
    return (ob_sampling){
#define OB_SETTING(member, kind, otherwise, ...) .member = (otherwise),
#include "onebit_sampling.def"
#undef OB_SETTING
    };
}

PUBLIC ob_sampling ob_engine_sampling(const ob_engine *e) {
    ob_sampling out = e->sampling.settings;
    out.order = e->sampling.order[0] ? e->sampling.order : NULL;
    return out;
}

PUBLIC ob_status ob_sampling_check(const ob_sampling *sampling, ob_error *error) {
    return sample_check(sampling, error);
}

/* ---- grammars -------------------------------------------------------------------------------- */

/* Takes the grammar over. */
static ob_status give(struct grammar *grammar, ob_status s, ob_grammar **out, ob_error *error) {
    *out = NULL;
    if (s != OB_OK) return s;
    *out = malloc(sizeof **out);
    if (!*out) {
        grammar_drop(&grammar);
        return error_memory(error, "a grammar", sizeof **out);
    }
    (*out)->grammar = grammar;
    return OB_OK;
}

PUBLIC ob_status ob_grammar_gbnf(const ob_engine *e, const char *text, size_t n, ob_grammar **out,
                                 ob_error *error) {
    struct grammar *grammar;
    ob_status s = schema_gbnf((struct str){text, n}, loop_vocab(e->loop), &grammar, error);
    return give(grammar, s, out, error);
}

PUBLIC ob_status ob_grammar_regex(const ob_engine *e, const char *text, size_t n, ob_grammar **out,
                                  ob_error *error) {
    struct grammar *grammar;
    (void)e;
    ob_status s = schema_regex((struct str){text, n}, &grammar, error);
    return give(grammar, s, out, error);
}

PUBLIC ob_status ob_grammar_json_schema_json(const ob_engine *e, const json_t *schema,
                                             unsigned flags, ob_grammar **out, ob_error *error) {
    struct grammar *grammar;
    struct schema_options options = {.compact = flags & OB_JSON_COMPACT,
                                     .open = flags & OB_JSON_OPEN};
    (void)e;
    ob_status s = schema_json(schema, &options, &grammar, error);
    return give(grammar, s, out, error);
}

PUBLIC ob_status ob_grammar_json_schema(const ob_engine *e, const char *schema, size_t n,
                                        unsigned flags, ob_grammar **out, ob_error *error) {
    json_error_t where;
    *out = NULL;
    json_t *json = json_loadb(schema ? schema : "", n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                              &where);
    if (!json)
        return error_set(error, OB_ERR_ARGUMENT, "the JSON schema is not JSON: line %d, column "
                         "%d: %s", where.line, where.column, where.text);
    ob_status s = ob_grammar_json_schema_json(e, json, flags, out, error);
    json_decref(json);
    return s;
}

PUBLIC void ob_grammar_free(ob_grammar **grammar) {
    if (!*grammar) return;
    grammar_drop(&(*grammar)->grammar);
    free(*grammar);
    *grammar = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

PUBLIC ob_status ob_submit(ob_engine *e, const ob_request_options *options, ob_request **out,
                           ob_error *error) {
    *out = NULL;
    return loop_submit(e->loop, options, out, error);
}
PUBLIC void ob_cancel(ob_request *request) { loop_cancel(request); }
PUBLIC void ob_release(ob_request **request) { loop_release(request); }

/* ---- evaluation ------------------------------------------------------------------------------ */

struct eval {
    const int32_t *id;
    size_t n;
    uint32_t chunk;
    float *logits;
    double seconds;
};

static ob_status eval_run(struct engine *engine, void *arg, ob_error *error) {
    struct eval *eval = arg;
    size_t vocab = engine_model(engine)->hp.vocab;
    uint32_t most = engine_step_tokens(engine), rows = engine_step_logits(engine);
    if (eval->chunk && eval->chunk < most) most = eval->chunk;
    if (eval->logits && most > rows) most = rows;
    struct seq *seq = seq_new(engine);
    if (!seq) return error_memory(error, "a sequence", 0);
    ob_status s = OB_OK;
    for (size_t at = 0; s == OB_OK && at < eval->n;) {
        const float *row;
        uint32_t n = eval->n - at < most ? (uint32_t)(eval->n - at) : most;
        bool last = at + n == eval->n;
        struct engine_item item = {
            .seq = seq, .id = eval->id + at, .n = n, .logits = eval->logits ? n : last};
        double start = os_seconds();
        s = engine_step(engine, &item, 1, &row, error);
        eval->seconds += os_seconds() - start;
        if (s == OB_OK && eval->logits)
            memcpy(eval->logits + at * vocab, row, n * vocab * sizeof *row);
        at += n;
    }
    seq_free(&seq);
    return s;
}

PUBLIC ob_status ob_eval(ob_engine *e, const int32_t *id, size_t n, uint32_t chunk, float *logits,
                         double *seconds, ob_error *error) {
    if (!id || n == 0) return error_set(error, OB_ERR_ARGUMENT, "no tokens");
    ob_status can = decode_need_writer(e->engine, error);
    if (can != OB_OK) return can;
    struct eval eval = {.id = id, .n = n, .chunk = chunk, .logits = logits};
    ob_status s = loop_exclusive(e->loop, eval_run, &eval, error);
    if (seconds) *seconds = eval.seconds;
    return s;
}

PUBLIC ob_status ob_embed(const ob_engine *e, const ob_tokens *text, size_t n, float *out,
                          ob_error *error) {
    return embed(e->loop, e->engine, text, n, out, error);
}

PUBLIC ob_status ob_batch_open(ob_engine *e, uint32_t sequences, ob_batch **out, ob_error *error) {
    return batch_open(e->loop, e->engine, sequences, out, error);
}
PUBLIC void ob_batch_close(ob_batch **batch) { batch_close(batch); }
PUBLIC ob_status ob_batch_run(ob_batch *batch, const ob_batch_part *part, uint32_t parts,
                              uint32_t chunk, ob_batch_rows on_rows, void *user, double *seconds,
                              ob_error *error) {
    return batch_run(batch, part, parts, chunk, on_rows, user, seconds, error);
}
PUBLIC uint32_t ob_batch_keep(ob_batch *batch, uint32_t sequence, uint32_t n) {
    return batch_keep(batch, sequence, n);
}
