/* SPDX-License-Identifier: Apache-2.0
 * generate.c: see generate.h. The engine's thread hands over text under a lock; this thread prints
 * it, so a slow terminal never holds up the engine. */
#include "cli/generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/form.h"
#include "cli/parts.h"
#include "cli/sampling.h"
#include "text/chat_parse.h"

struct stream {
    os_mutex lock;
    os_cond news;
    struct buf text; /* not printed yet */
    ob_finish finish;
    ob_timings timings;
    ob_error error;
};

static void on_event(void *user, const ob_event *event) {
    struct stream *s = user;
    os_lock(&s->lock);
    buf_add(&s->text, event->text, event->text_n);
    s->timings = event->timings;
    s->finish = event->finish;
    if (event->error) s->error = *event->error;
    os_signal(&s->news);
    os_unlock(&s->lock);
}

void prompt_free(struct prompt *prompt) {
    ob_tokens_free(&prompt->ids);
    free(prompt->text);
    *prompt = (struct prompt){0};
}

void answer_free(struct answer *answer) {
    buf_free(&answer->text);
    buf_free(&answer->thought);
    json_decref(answer->calls);
    answer->calls = NULL;
}

static void print(const struct buf *text, struct answer *out) {
    if (!text->n || out->output_error) return;
    out->mid_line = text->p[text->n - 1] != '\n';
    if (fwrite(text->p, 1, text->n, stdout) != text->n || fflush(stdout) != 0)
        out->output_error = errno ? errno : EIO;
}

/* A piece of the answer, apart or as it is. */
static void take(struct parts *parts, const struct buf *piece, bool last, struct answer *out) {
    struct buf shown = BUF_INIT;
    struct str text = {piece->p ? piece->p : "", piece->n};
    if (parts) parts_add(parts, text, last, &shown);
    else buf_add(&out->text, text.p, text.n);
    print(parts ? &shown : piece, out);
    if (piece->failed || shown.failed) out->text.failed = true;
    buf_free(&shown);
}

/* Prints until the last event. A standard output that fails ends the request. */
static void follow(struct stream *s, ob_request *request, struct parts *parts,
                   struct answer *out) {
    unsigned interrupts = os_interrupts();
    bool cancelled = false;
    struct buf part = BUF_INIT;
    for (bool more = true; more;) {
        os_lock(&s->lock);
        /* A signal does not wake the condition, so look for Ctrl-C now and then. */
        if (s->text.n == 0 && s->finish == OB_FINISH_NONE) os_wait_for(&s->news, &s->lock, 0.05);
        struct buf swap = s->text;
        s->text = part;
        part = swap;
        more = s->finish == OB_FINISH_NONE;
        os_unlock(&s->lock);
        take(parts, &part, !more, out);
        buf_clear(&part);
        if (!cancelled && (out->output_error || os_end() || os_interrupts() != interrupts)) {
            ob_cancel(request);
            cancelled = true;
        }
    }
    buf_free(&part);
}

/* What closes the model's reasoning. */
static const char *thought_end(const ob_engine *engine) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    const struct chat_thought *style =
        info.reasoning_style ? chat_thought_find(info.reasoning_style) : NULL;
    return style ? chat_thought_close(style).p : NULL;
}

ob_status generate(ob_engine *engine, const struct prompt *prompt, const struct options *options,
                   struct answer *out, ob_error *error) {
    struct stream s = {0};
    struct parts *parts = NULL;
    ob_request *request = NULL;
    struct cli_sampling sampling;
    ob_grammar *grammar = NULL;
    ob_status status = cli_sampling_open(options, &sampling, error);
    if (status == OB_OK) status = cli_form_open(engine, options, &grammar, error);
    ob_request_options request_options = {
        .prompt = prompt->ids.id,
        .prompt_n = prompt->ids.n,
        .markers = prompt->text != NULL,
        .limit_reasoning = prompt->text && options->reasoning_budget >= 0,
        .reasoning_tokens = (uint32_t)options->reasoning_budget,
        .max_tokens = (uint32_t)options->max_tokens,
        .sampling = sampling.settings,
        .grammar = grammar,
        .on_event = on_event,
        .user = &s,
    };
    *out = (struct answer){.seed = request_options.sampling.seed};
    os_mutex_init(&s.lock);
    os_cond_init(&s.news);
    if (status == OB_OK) status = parts_open(engine, prompt, options, out, &parts, error);
    request_options.reasoning_open = parts_thinks(parts);
    if (grammar && parts_thinks(parts)) request_options.grammar_after = thought_end(engine);
    if (status == OB_OK) status = ob_submit(engine, &request_options, &request, error);
    cli_sampling_close(&sampling);
    ob_grammar_free(&grammar);
    if (status == OB_OK) {
        follow(&s, request, parts, out);
        ob_release(&request);
        out->finish = s.finish;
        out->timings = s.timings;
        if (s.finish == OB_FINISH_ERROR) {
            if (error) *error = s.error;
            status = s.error.status ? s.error.status : OB_ERR_IO;
        } else if (out->text.failed) {
            status = error_memory(error, "the answer", out->text.n);
        }
    }
    parts_close(&parts);
    buf_free(&s.text);
    os_cond_free(&s.news);
    os_mutex_free(&s.lock);
    return status;
}

bool generate_context_full(const struct answer *answer, const struct options *options) {
    return answer->finish == OB_FINISH_LENGTH &&
           (!options->max_tokens || answer->timings.predicted_n < options->max_tokens);
}

/* "answer 9 tokens 12.3 tok/s"; `timed` is how many of the n the time is of. */
static void rate(const char *what, uint32_t n, uint32_t timed, double ms, char *out, size_t size) {
    int at = snprintf(out, size, "%s %u token%s", what, n, cli_plural(n));
    if (timed && ms > 0) snprintf(out + at, size - (size_t)at, " %.1f tok/s", timed / ms * 1000);
}

void generate_report(const struct answer *answer, const struct options *options) {
    const ob_timings *t = &answer->timings;
    struct cli_style style = cli_style_for(stderr, options);
    char prompt[80], text[80], cached[40] = "", seed[40] = "";
    rate("prompt", t->prompt_n, t->prompt_n, t->prompt_ms, prompt, sizeof prompt);
    /* The clock of the answer starts with its first token: the prompt's time has that one. */
    rate("answer", t->predicted_n, t->predicted_n ? t->predicted_n - 1 : 0, t->predicted_ms, text,
         sizeof text);
    if (t->cache_n) snprintf(cached, sizeof cached, " (and %u cached)", t->cache_n);
    if (options->temperature > 0 || options->dynatemp_range > 0)
        snprintf(seed, sizeof seed, ", seed %llu", (unsigned long long)answer->seed);
    fprintf(stderr, "%s%s%s, %s%s%s\n", style.dim, prompt, cached, text, seed, style.off);
}
