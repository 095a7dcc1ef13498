/* SPDX-License-Identifier: Apache-2.0
 *
 * regex.c: compiling and searching by PCRE2; see regex.h.
 *
 * PCRE2 comes with the system and its Unicode may be older than the reference's. So it is asked
 * which of the code points that our table knows it takes for unassigned (one search through all of
 * them, some milliseconds), and these are written into the classes they belong to. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

enum {
    MATCH_LIMIT = 20000000,  /* steps of one search: a tenth of a second, thousands of pages */
    HEAP_LIMIT = 64 << 10,   /* KiB, without JIT */
    JIT_STACK = 64 << 20,
};

struct regex {
    pcre2_code *code;
    char *pattern;
    size_t n;
};

static pcre2_code *compile(const char *pattern, size_t n, uint32_t options, ob_error *error) {
    int problem;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_code *code = NULL;
    if (!context) {
        error_memory(error, "expression", n);
        return NULL;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    code = pcre2_compile((PCRE2_SPTR)pattern, n, PCRE2_UTF | PCRE2_UCP | options, &problem, &at,
                         context);
    pcre2_compile_context_free(context);
    if (!code) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(problem, text, sizeof text);
        error_set(error, OB_ERR_UNSUPPORTED, "the expression is not supported: %s", text);
        return NULL;
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, it is slower */
    return code;
}

/* ---- code points newer than PCRE2 ---- */

static bool put_run(struct regex_newer *newer, uint32_t code, uint8_t category) {
    struct regex_run *last = newer->n ? &newer->run[newer->n - 1] : NULL;
    if (last && last->last + 1 == code && last->category == category) {
        last->last = code;
        return true;
    }
    if (newer->n == newer->cap) {
        size_t cap = newer->cap ? newer->cap * 2 : 64;
        struct regex_run *run = realloc(newer->run, cap * sizeof *run);
        if (!run) return false;
        newer->run = run;
        newer->cap = cap;
    }
    newer->run[newer->n++] = (struct regex_run){code, code, category};
    return true;
}

static bool find_newer(struct regex_newer *newer) {
    static const char unassigned[] = "\\p{Cn}+";
    struct regex regex = {.code = compile(unassigned, sizeof unassigned - 1, 0, NULL)};
    struct regex_work work = {0};
    struct buf all = BUF_INIT;
    char bytes[4];
    for (uint32_t code = 0x80; code < 0x110000; code++)
        if ((unicode_of(code) & UNICODE_CATEGORY) != UNICODE_CN && (code < 0xd800 || code > 0xf8ff))
            buf_add(&all, bytes, code < 0xf0000 ? utf8_encode(code, bytes) : 0);
    bool ok = regex.code && !all.failed;
    size_t at = 0, start, end;
    while (ok && regex_find(&regex, &work, (struct str){all.p, all.n}, at, &start, &end) ==
                     REGEX_FOUND) {
        for (at = start; at < end && ok;) {
            uint32_t code;
            at += utf8_decode(all.p + at, end - at, &code);
            ok = put_run(newer, code, unicode_of(code) & UNICODE_CATEGORY);
        }
    }
    buf_free(&all);
    regex_work_free(&work);
    pcre2_code_free(regex.code);
    return ok;
}

/* Found once in a process and never freed; NULL when out of memory. */
static const struct regex_newer *known_newer(void) {
    static _Atomic(struct regex_newer *) known;
    struct regex_newer *have = atomic_load(&known);
    if (have) return have;
    struct regex_newer *mine = calloc(1, sizeof *mine);
    if (mine && find_newer(mine) && atomic_compare_exchange_strong(&known, &have, mine))
        return mine;
    if (mine) free(mine->run);
    free(mine);
    return have; /* another thread was first */
}

/* ---- opening ---- */

ob_status regex_open(struct str pattern, struct regex **out, ob_error *error) {
    struct buf text = BUF_INIT;
    const struct regex_newer *newer = known_newer();
    struct regex *regex = calloc(1, sizeof *regex);
    *out = NULL;
    ob_status status = OB_OK;
    if (regex) regex->pattern = malloc(pattern.n + 1);
    if (!regex || !regex->pattern || !newer)
        status = error_memory(error, "expression", pattern.n);
    if (status == OB_OK) status = regex_translate(pattern, newer, &text, error);
    if (status == OB_OK) {
        memcpy(regex->pattern, pattern.p, pattern.n);
        regex->n = pattern.n;
        regex->code = compile(text.p ? text.p : "", text.n, PCRE2_MULTILINE, error);
        if (!regex->code) status = error ? error->status : OB_ERR_UNSUPPORTED;
    }
    buf_free(&text);
    if (status == OB_OK) *out = regex;
    else regex_close(&regex);
    return status;
}

void regex_close(struct regex **regex) {
    if (!*regex) return;
    pcre2_code_free((*regex)->code);
    free((*regex)->pattern);
    free(*regex);
    *regex = NULL;
}

struct str regex_pattern(const struct regex *regex) {
    return (struct str){regex->pattern, regex->n};
}

/* ---- searching ---- */

void regex_work_free(struct regex_work *work) {
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->context);
    pcre2_jit_stack_free(work->stack);
    *work = (struct regex_work){0};
}

static bool prepare(struct regex_work *work) {
    if (work->match) return true;
    work->match = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    if (!work->match || !work->context) return false;
    pcre2_set_match_limit(work->context, MATCH_LIMIT);
    pcre2_set_heap_limit(work->context, HEAP_LIMIT);
    return true;
}

enum regex_result regex_find(const struct regex *regex, struct regex_work *work, struct str text,
                             size_t from, size_t *start, size_t *end) {
    if (!prepare(work)) {
        regex_work_free(work);
        return REGEX_MEMORY;
    }
    int n = pcre2_match(regex->code, (PCRE2_SPTR)text.p, text.n, from, PCRE2_NO_UTF_CHECK,
                        work->match, work->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT && !work->stack) {
        work->stack = pcre2_jit_stack_create(1 << 16, JIT_STACK, NULL);
        if (!work->stack) return REGEX_MEMORY;
        pcre2_jit_stack_assign(work->context, NULL, work->stack);
        n = pcre2_match(regex->code, (PCRE2_SPTR)text.p, text.n, from, PCRE2_NO_UTF_CHECK,
                        work->match, work->context);
    }
    if (n == PCRE2_ERROR_NOMATCH) return REGEX_NONE;
    if (n == PCRE2_ERROR_NOMEMORY) return REGEX_MEMORY;
    if (n < 0) return REGEX_LIMIT;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(work->match);
    *start = ends[0];
    *end = ends[1];
    return REGEX_FOUND;
}
