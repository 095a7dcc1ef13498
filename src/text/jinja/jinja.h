/* SPDX-License-Identifier: Apache-2.0
 *
 * jinja.h: the template language of chat templates, as jinja2 runs it under transformers
 * (trim_blocks, lstrip_blocks, keep_trailing_newline off, loop controls, tojson without HTML
 * escapes). Rendering is bounded in steps, memory, depth and output; no files, no environment.
 *
 * Provenance: each output byte is trusted (it came from the template's own text, its literals, or
 * the trusted context) or data (it came from the data context), through every filter and method; a
 * byte computed from both is data. Parsed templates are immutable: thread safe. */
#ifndef TEXT_JINJA_JINJA_H
#define TEXT_JINJA_JINJA_H

#include <jansson.h>

#include "base/buf.h"
#include "onebit.h"

struct jinja;

ob_status jinja_parse(const char *source, size_t n, struct jinja **out, ob_error *error);
void jinja_free(struct jinja **jinja);

struct jinja_limits {
    size_t steps;   /* 0 = 5,000,000 */
    size_t memory;  /* bytes, 0 = 256 MiB */
    size_t output;  /* bytes, 0 = 64 MiB */
    unsigned depth; /* nesting of calls, 0 = 200 */
    /* Words (NULL-terminated, may be NULL) that are trusted as the value of a "role" member of the
     * data: templates build control tokens from them ('<|' + role + '|>'). */
    const char *const *roles;
};

/* data and trusted: JSON objects whose members become globals (trusted may be NULL; on a clash data
 * wins). now: seconds since 1970 on the clock that strftime_now shows. Appends the text to `out`
 * and as many bytes, 1 = trusted, to `trust` (may be NULL). raise_exception and limits give an
 * error with the template's line in `where` ("line 12"). */
ob_status jinja_render(const struct jinja *jinja, const json_t *data, const json_t *trusted,
                       double now, const struct jinja_limits *limits, struct buf *out,
                       struct buf *trust, ob_error *error);

#endif
