/* SPDX-License-Identifier: Apache-2.0
 * output.c: colours, progress, sizes and JSON. */
#include <string.h>

#include "base/os.h"
#include "base/utf8.h"
#include "cli/cli.h"

struct cli_style cli_style_for(FILE *stream, const struct options *options) {
    if (options->no_color || !os_terminal_colors(fileno(stream)))
        return (struct cli_style){"", "", "", ""};
    return (struct cli_style){"\033[1m", "\033[2m", "\033[32m", "\033[0m"};
}

void cli_progress(const char *text, uint64_t done, uint64_t total) {
    static unsigned shown = 101; /* percent; 101: nothing is on the screen */
    if (!os_is_terminal(fileno(stderr))) return;
    if (done >= total) {
        if (shown <= 100) fprintf(stderr, "\r%*s\r", (int)strlen(text) + 5, "");
        shown = 101;
        return;
    }
    unsigned percent = (unsigned)((double)done / (double)total * 100);
    if (percent == shown) return;
    fprintf(stderr, "\r%s %3u%%", text, percent);
    fflush(stderr);
    shown = percent;
}

static void scaled(uint64_t value, const char *tail, char out[24]) {
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;
    double x = (double)value;
    for (; x >= 999.95 && i < sizeof unit / sizeof unit[0] - 1; i++) x /= 1000;
    const char *space = i || *tail ? " " : "";
    if (i)
        snprintf(out, 24, "%.1f%s%s%s", x, space, unit[i], tail);
    else
        snprintf(out, 24, "%.0f%s%s%s", x, space, unit[i], tail);
}

void cli_bytes(uint64_t bytes, char out[24]) { scaled(bytes, "B", out); }
void cli_count(uint64_t count, char out[24]) { scaled(count, "", out); }

const char *cli_plural(uint64_t count) { return count == 1 ? "" : "s"; }

int cli_print_json(json_t *json) {
    if (!json) return cli_fail("out of memory");
    int bad = json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    json_decref(json);
    if (!bad) putchar('\n');
    return bad ? EXIT_FAILED : EXIT_OK;
}

json_t *cli_json_text(struct str text) {
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < text.n;) {
        uint32_t code;
        size_t n = utf8_decode(text.p + i, text.n - i, &code);
        if (code == UTF8_BAD)
            buf_puts(&out, "\xef\xbf\xbd");
        else
            buf_add(&out, text.p + i, n);
        i += n;
    }
    json_t *json = out.failed ? NULL : json_stringn(out.p ? out.p : "", out.n);
    buf_free(&out);
    return json;
}
