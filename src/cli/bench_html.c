/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_html.c: one page that needs nothing else: charts of the speed by depth and by batch as
 * inline SVG, and all results as a table. */
#include <math.h>
#include <string.h>

#include "cli/bench.h"

enum { WIDTH = 640, HEIGHT = 320, LEFT = 64, RIGHT = 16, TOP = 16, BOTTOM = 44, SERIES = 8 };

static const char *const color[SERIES] = {"#3366cc", "#dc3912", "#109618", "#ff9900",
                                          "#990099", "#0099c6", "#dd4477", "#66aa00"};

static void escaped(const char *text, struct buf *out) {
    for (const char *p = text; *p; p++) {
        const char *special = strchr("<>&\"", *p);
        if (!special)
            buf_putc(out, *p);
        else
            buf_printf(out, "&#%d;", *p);
    }
}

/* ---- charts ---------------------------------------------------------------------------------- */

/* A chart of one kind of test over depth or batch. */
struct chart {
    const struct bench *bench;
    const char *kind, *title, *axis;
    bool by_batch;
    double x_max, y_max, x_step, y_step;
};

static uint32_t x_of(const struct chart *c, const struct bench_result *r) {
    return c->by_batch ? r->batch : r->depth;
}

/* Whether two results differ in x alone: points of one line. */
static bool same_line(const struct chart *c, const struct bench_result *a,
                      const struct bench_result *b) {
    return a->n == b->n && a->threads == b->threads && strcmp(a->kv_type, b->kv_type) == 0 &&
           (c->by_batch ? a->depth == b->depth : a->batch == b->batch);
}

/* A step of 1, 2 or 5 times a power of ten, about five of which make up `most`. */
static double nice_step(double most) {
    double power = pow(10, floor(log10(most / 5)));
    double rest = most / 5 / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static double at_x(const struct chart *c, double x) {
    return LEFT + x / c->x_max * (WIDTH - LEFT - RIGHT);
}
static double at_y(const struct chart *c, double y) {
    return HEIGHT - BOTTOM - y / c->y_max * (HEIGHT - TOP - BOTTOM);
}

/* false: nothing to draw, or a single x. */
static bool find_scale(struct chart *c) {
    uint32_t first = 0;
    bool any = false, several = false;
    double x = 1, y = 0;
    for (size_t i = 0; i < c->bench->results; i++) {
        const struct bench_result *r = &c->bench->result[i];
        if (strcmp(r->kind, c->kind) != 0) continue;
        if (!any) first = x_of(c, r);
        several = several || x_of(c, r) != first;
        any = true;
        if (x_of(c, r) > x) x = x_of(c, r);
        if (r->max > y) y = r->max;
    }
    if (!any || !several || !(y > 0)) return false;
    c->x_step = nice_step(x);
    c->y_step = nice_step(y);
    c->x_max = x;
    c->y_max = ceil(y / c->y_step) * c->y_step;
    return true;
}

static void draw_axes(const struct chart *c, struct buf *out) {
    for (int i = 0; i <= (int)(c->y_max / c->y_step + 0.001); i++) {
        double y = i * c->y_step;
        buf_printf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT,
                   at_y(c, y), WIDTH - RIGHT, at_y(c, y));
        buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6,
                   at_y(c, y) + 4, y);
    }
    for (int i = 0; i <= (int)(c->x_max / c->x_step + 0.001); i++) {
        double x = i * c->x_step;
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", at_x(c, x),
                   HEIGHT - BOTTOM + 16, x);
    }
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
               (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, c->axis);
}

static void draw_point(const struct chart *c, const struct bench_result *r, const char *paint,
                       struct buf *out) {
    double x = at_x(c, x_of(c, r));
    buf_printf(out, "<line stroke=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", paint,
               x, at_y(c, r->min), x, at_y(c, r->max));
    buf_printf(out, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\">", paint, x,
               at_y(c, r->median));
    buf_printf(out, "<title>%s%u, depth %u, batch %u: %.2f (%.2f to %.2f)</title></circle>\n",
               r->kind, r->n, r->depth, r->batch, r->median, r->min, r->max);
}

/* The line that result `first` is the first point of. */
static void draw_line(const struct chart *c, size_t first, const char *paint, struct buf *out) {
    const struct bench_result *all = c->bench->result;
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", paint);
    for (size_t i = first; i < c->bench->results; i++)
        if (strcmp(all[i].kind, c->kind) == 0 && same_line(c, &all[first], &all[i]))
            buf_printf(out, "%.1f,%.1f ", at_x(c, x_of(c, &all[i])), at_y(c, all[i].median));
    buf_puts(out, "\"/>\n");
    for (size_t i = first; i < c->bench->results; i++)
        if (strcmp(all[i].kind, c->kind) == 0 && same_line(c, &all[first], &all[i]))
            draw_point(c, &all[i], paint, out);
}

static bool starts_line(const struct chart *c, size_t at) {
    const struct bench_result *all = c->bench->result;
    if (strcmp(all[at].kind, c->kind) != 0) return false;
    for (size_t i = 0; i < at; i++)
        if (strcmp(all[i].kind, c->kind) == 0 && same_line(c, &all[i], &all[at])) return false;
    return true;
}

static void draw_legend(const struct chart *c, struct buf *out) {
    size_t lines = 0;
    buf_puts(out, "<p class=\"legend\">");
    for (size_t i = 0; i < c->bench->results; i++) {
        const struct bench_result *r = &c->bench->result[i];
        if (!starts_line(c, i)) continue;
        buf_printf(out, "<span style=\"color:%s\">&#9679;</span> %s%u, %s %u, %u thread%s, kv %s ",
                   color[lines++ % SERIES], r->kind, r->n, c->by_batch ? "depth" : "batch",
                   c->by_batch ? r->depth : r->batch, r->threads, cli_plural(r->threads),
                   r->kv_type);
    }
    buf_puts(out, "</p>\n");
}

static void draw(struct chart *c, struct buf *out) {
    size_t lines = 0;
    if (!find_scale(c)) return;
    buf_printf(out, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
               c->title, WIDTH, HEIGHT, c->title);
    draw_axes(c, out);
    for (size_t i = 0; i < c->bench->results; i++)
        if (starts_line(c, i)) draw_line(c, i, color[lines++ % SERIES], out);
    buf_puts(out, "</svg>\n");
    draw_legend(c, out);
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char style[] =
    "<style>\nbody{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}\nsvg{max-width:100%;height:auto}\nsvg text{font:12px sans-serif;"
    "fill:currentColor}\n.grid{stroke:#8886}\n.legend{font-size:13px}\ntable{border-collapse:"
    "collapse}\ntd,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #8884}\n"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}\n</style>\n";

static void draw_table(const struct bench *b, struct buf *out) {
    buf_puts(out,
             "<h2>Results</h2>\n<table>\n<tr><th>test</th><th>depth</th><th>batch</th>"
             "<th>threads</th><th>kv</th><th>median</th><th>min</th><th>max</th>"
             "<th>of limit</th><th>limit</th></tr>\n");
    for (size_t i = 0; i < b->results; i++) {
        const struct bench_result *r = &b->result[i];
        bool prompt = r->kind[0] == 'p';
        double part = bench_share(r);
        buf_printf(out, "<tr><td>%s%u</td><td>%u</td><td>%u</td><td>%u</td><td>%s</td>", r->kind,
                   r->n, r->depth, r->batch, r->threads, r->kv_type);
        buf_printf(out, "<td>%.2f</td><td>%.2f</td><td>%.2f</td>", r->median, r->min, r->max);
        if (part < 0)
            buf_puts(out, "<td></td><td></td></tr>\n");
        else
            buf_printf(out, "<td>%.0f%%</td><td>%.1f %s</td></tr>\n", 100 * part,
                       (prompt ? r->int8_limit : r->read_limit) * 1e-9, prompt ? "GOPS" : "GB/s");
    }
    buf_puts(out, "</table>\n");
}

void bench_html(const struct bench *b, struct buf *out) {
    static const char *const title[2][2] = {
        {"Prompt by depth", "Prompt by batch"},
        {"Answer by depth", "Answer by batch"},
    };
    char weights[80];
    bench_weights(b, weights);
    buf_puts(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>");
    escaped(b->name, out);
    buf_puts(out, ": speed</title>\n");
    buf_puts(out, style);
    buf_puts(out, "</head>\n<body>\n<h1>");
    escaped(b->name, out);
    buf_puts(out, "</h1>\n<p>");
    escaped(b->family, out);
    buf_printf(out, ", %s, on ", weights);
    escaped(b->device, out);
    buf_puts(out,
             ". Tokens a second of all sequences: median, smallest and largest of the runs. "
             "\"Of limit\": for prompts the int8 operations, for answers the bytes read, of "
             "what the machine could do in the same minute.</p>\n");
    for (int kind = 0; kind < 2; kind++)
        for (int by_batch = 0; by_batch < 2; by_batch++) {
            struct chart chart = {.bench = b,
                                  .kind = kind ? "tg" : "pp",
                                  .title = title[kind][by_batch],
                                  .axis = by_batch ? "sequences" : "tokens in the cache",
                                  .by_batch = by_batch};
            draw(&chart, out);
        }
    draw_table(b, out);
    buf_puts(out, "</body>\n</html>\n");
}
