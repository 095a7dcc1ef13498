/* SPDX-License-Identifier: Apache-2.0
 * think.c: see think.h. A tag's first byte occurs nowhere else in it, so after a mismatch only the
 * byte at hand can begin the tag anew. */
#include "server/think.h"

static const char open_tag[] = "<think>", close_tag[] = "</think>";

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static const char *awaited(const struct think *think) {
    return think->state == THINK_BEFORE ? open_tag : close_tag;
}

/* What was held back is text after all. */
static void flush(struct think *think, struct buf *thought, struct buf *answer) {
    bool inside = think->state == THINK_INSIDE;
    struct buf *out = inside ? thought : answer;
    if (!inside || think->begun) buf_add(out, think->space.p, think->space.n);
    buf_add(out, awaited(think), think->matched);
    buf_clear(&think->space);
    think->matched = 0;
    if (inside) think->begun = true;
    else think->state = THINK_ANSWER;
}

static void tag_found(struct think *think) {
    think->state = think->state == THINK_BEFORE ? THINK_INSIDE : THINK_AFTER;
    think->matched = 0;
    buf_clear(&think->space);
}

void think_add(struct think *think, struct str text, struct buf *thought, struct buf *answer) {
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (think->state == THINK_AFTER && is_space(c)) continue;
        if (think->state == THINK_AFTER) think->state = THINK_ANSWER;
        const char *tag = awaited(think);
        if (think->state != THINK_ANSWER && c != tag[think->matched] &&
            (think->matched || !is_space(c)))
            flush(think, thought, answer);
        if (think->state == THINK_ANSWER) {
            buf_add(answer, text.p + i, text.n - i);
            return;
        }
        if (c == tag[think->matched]) {
            if (!tag[++think->matched]) tag_found(think);
        } else {
            buf_putc(is_space(c) ? &think->space : thought, c);
        }
    }
}

void think_end(struct think *think, struct buf *thought, struct buf *answer) {
    if (think->state == THINK_BEFORE || (think->state == THINK_INSIDE && think->matched))
        flush(think, thought, answer);
}

void think_free(struct think *think) { buf_free(&think->space); }

bool think_is_open(struct str prompt) {
    size_t n = prompt.n, tag = sizeof open_tag - 1;
    while (n && is_space(prompt.p[n - 1])) n--;
    return n >= tag && memcmp(prompt.p + n - tag, open_tag, tag) == 0;
}

/* Bytes behind the last occurrence of the tag, n + 1 without one. */
static size_t since(struct str text, const char *tag) {
    for (size_t n = strlen(tag), behind = 0; behind + n <= text.n; behind++)
        if (memcmp(text.p + text.n - behind - n, tag, n) == 0) return behind;
    return text.n + 1;
}

bool think_is_inside(struct str text) { return since(text, open_tag) < since(text, close_tag); }
