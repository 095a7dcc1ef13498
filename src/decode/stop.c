/* SPDX-License-Identifier: Apache-2.0
 * stop.c: see stop.h. */
#include "decode/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct pattern {
    char *text;
    size_t n;
    size_t *fail;   /* [n]: longest proper border of text[0..i] */
    size_t matched; /* bytes of the pattern that the text now ends with */
};

struct stop {
    struct pattern *pattern;
    size_t n;
    const char *found;
    struct buf held; /* the longest suffix of the text that begins some pattern */
};

static bool pattern_init(struct pattern *p, const char *text) {
    p->n = strlen(text);
    p->text = strdup(text);
    p->fail = calloc(p->n, sizeof *p->fail);
    if (!p->text || !p->fail) return false;
    for (size_t i = 1, k = 0; i < p->n; i++) {
        while (k && text[i] != text[k]) k = p->fail[k - 1];
        if (text[i] == text[k]) k++;
        p->fail[i] = k;
    }
    return true;
}

ob_status stop_open(const char *const *strings, size_t n, struct stop **out, ob_error *error) {
    struct stop *stop = calloc(1, sizeof *stop);
    if (stop) stop->pattern = calloc(n ? n : 1, sizeof *stop->pattern);
    ob_status s = stop && stop->pattern ? OB_OK : error_memory(error, "stop strings", n);
    for (size_t i = 0; s == OB_OK && i < n; i++) {
        if (!strings[i] || !strings[i][0]) {
            s = error_set(error, OB_ERR_ARGUMENT, "stop string %zu is empty", i);
            error_at(error, NULL, "stop", OB_NO_OFFSET);
            break;
        }
        stop->n = i + 1;
        if (!pattern_init(&stop->pattern[i], strings[i]))
            s = error_memory(error, "stop strings", n);
    }
    if (s != OB_OK) stop_close(&stop);
    *out = stop;
    return s;
}

void stop_close(struct stop **p) {
    struct stop *stop = *p;
    if (!stop) return;
    for (size_t i = 0; i < stop->n; i++) {
        free(stop->pattern[i].text);
        free(stop->pattern[i].fail);
    }
    free(stop->pattern);
    buf_free(&stop->held);
    free(stop);
    *p = NULL;
}

static bool advance(struct pattern *p, char c) {
    while (p->matched && p->text[p->matched] != c) p->matched = p->fail[p->matched - 1];
    if (p->text[p->matched] == c) p->matched++;
    return p->matched == p->n;
}

bool stop_add(struct stop *stop, const char *text, size_t n, struct buf *out) {
    for (size_t i = 0; i < n; i++) {
        size_t longest = 0, cut = 0;
        buf_putc(&stop->held, text[i]);
        for (size_t k = 0; k < stop->n; k++) {
            struct pattern *p = &stop->pattern[k];
            if (advance(p, text[i]) && p->n > cut) {
                cut = p->n;
                stop->found = p->text;
            }
            if (p->matched > longest) longest = p->matched;
        }
        /* held always contains the longest partial match, so a whole one too */
        size_t pass = stop->held.n - (cut ? cut : longest);
        buf_add(out, stop->held.p, pass);
        memmove(stop->held.p, stop->held.p + pass, stop->held.n - pass);
        stop->held.n -= pass;
        if (cut) return true;
    }
    return false;
}

const char *stop_found(const struct stop *stop) { return stop->found; }

void stop_end(struct stop *stop, struct buf *out) {
    buf_add(out, stop->held.p, stop->held.n);
    buf_clear(&stop->held);
}
