/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c: the parser's plumbing, statements, and jinja_parse. Tags that need a loader (include,
 * import, extends) are refused here: a chat template is one text. */
#include "text/jinja/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "text/jinja/builtin.h"

/* ---- plumbing ---- */

bool parse_fail(struct parser *p, uint32_t line, ob_status status, const char *format, ...) {
    char message[256], where[32];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(where, sizeof where, "line %u", line);
    error_set(p->error, status, "%s", message);
    error_at(p->error, NULL, where, OB_NO_OFFSET);
    return false;
}

void *parse_alloc(struct parser *p, size_t size) {
    void *memory = arena_alloc(&p->jinja->arena, size);
    if (!memory) error_memory(p->error, "the template", size);
    return memory;
}

bool parse_enter(struct parser *p) {
    if (p->level < PARSE_DEPTH) return p->level++, true;
    return parse_fail(p, p->now.line, OB_ERR_LIMIT,
                          "nested too deeply (limit: %d levels)", PARSE_DEPTH);
}

bool parse_next(struct parser *p) {
    if (p->has_ahead) {
        p->now = p->ahead;
        p->has_ahead = false;
        return true;
    }
    return lex_next(&p->lexer, &p->now, p->error);
}

bool parse_peek(struct parser *p, struct token *out) {
    if (!p->has_ahead && !lex_next(&p->lexer, &p->ahead, p->error)) return false;
    p->has_ahead = true;
    *out = p->ahead;
    return true;
}

bool parse_expect(struct parser *p, enum token_kind kind, const char *what) {
    char text[64];
    if (p->now.kind == kind) return parse_next(p);
    return parse_fail(p, p->now.line, OB_ERR_FORMAT, "expected %s, got %s", what,
                      lex_describe(&p->now, text, sizeof text));
}

bool parse_skip(struct parser *p, enum token_kind kind, bool *skipped) {
    *skipped = p->now.kind == kind;
    return !*skipped || parse_next(p);
}

bool parse_skip_name(struct parser *p, const char *name, bool *skipped) {
    *skipped = parse_at_name(p, name);
    return !*skipped || parse_next(p);
}

struct node *parse_node(struct parser *p, enum node_kind kind, uint32_t line) {
    struct node *node = parse_alloc(p, sizeof *node);
    if (!node) return NULL;
    node->kind = (uint8_t)kind;
    node->line = line;
    node->depth = 1;
    return node;
}

bool parse_adopt(struct parser *p, struct node *node, const struct node *child) {
    if (!child) return false;
    if (child->depth >= PARSE_DEPTH)
        return parse_fail(p, child->line, OB_ERR_LIMIT,
                          "nested too deeply (limit: %d levels)", PARSE_DEPTH);
    if (node->depth <= child->depth) node->depth = (uint16_t)(child->depth + 1);
    return true;
}

/* The capacity is the power of two at or above n, so it need not be kept. */
bool parse_push(struct parser *p, struct node_list *list, struct node *node) {
    if ((list->n & (list->n - 1)) == 0) {
        size_t cap = list->n ? list->n * 2 : 1;
        struct node **grown = parse_alloc(p, cap * sizeof *grown);
        if (!grown) return false;
        if (list->n) memcpy(grown, list->item, list->n * sizeof *grown);
        list->item = grown;
    }
    list->item[list->n++] = node;
    return true;
}

const struct text *parse_text(struct parser *p, struct str text) {
    struct text *out = parse_alloc(p, sizeof *out);
    if (out) *out = text_of(text.p, text.n, true);
    return out;
}

static bool grow_symbols(struct parser *p) {
    struct jinja *j = p->jinja;
    size_t slots = p->slots ? p->slots * 2 : 64;
    uint32_t *slot = parse_alloc(p, slots * sizeof *slot);
    const struct text **symbol = parse_alloc(p, slots * sizeof *symbol);
    if (!slot || !symbol) return false;
    for (uint32_t i = 0; i < j->symbols; i++) {
        size_t at = str_hash(text_str(j->symbol[i])) & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
        symbol[i] = j->symbol[i];
    }
    p->slot = slot;
    p->slots = slots;
    j->symbol = symbol;
    return true;
}

bool parse_symbol(struct parser *p, struct str name, uint32_t *out) {
    struct jinja *j = p->jinja;
    if (j->symbols * 2 >= p->slots && !grow_symbols(p)) return false;
    size_t at = str_hash(name) & (p->slots - 1);
    for (; p->slot[at]; at = (at + 1) & (p->slots - 1)) {
        if (!str_eq(text_str(j->symbol[p->slot[at] - 1]), name)) continue;
        *out = p->slot[at] - 1;
        return true;
    }
    const struct text *text = parse_text(p, name);
    if (!text) return false;
    j->symbol[j->symbols++] = text;
    p->slot[at] = (uint32_t)j->symbols;
    *out = (uint32_t)j->symbols - 1;
    return true;
}

/* ---- bodies ---- */

static struct node *parse_statement(struct parser *p);

/* Text, output and statements up to a tag whose name is one of `ends` (NULL-terminated; empty for
 * the whole template), which becomes the current token. */
static struct node *parse_until(struct parser *p, const char *const *ends) {
    struct node *body = parse_node(p, NODE_BODY, p->now.line), *output = NULL;
    if (!body || !parse_enter(p)) return NULL;
    for (;;) {
        struct node *node;
        uint32_t line = p->now.line;
        if (parse_at(p, TOKEN_EOF)) {
            if (!ends[0]) break;
            parse_fail(p, line, OB_ERR_FORMAT, "end of template, expected '{%% %s %%}'", ends[0]);
            return NULL;
        }
        if (parse_at(p, TOKEN_BLOCK_BEGIN)) {
            if (!parse_next(p)) return NULL;
            bool end = false;
            for (size_t i = 0; ends[i] && !end; i++) end = parse_at_name(p, ends[i]);
            if (end) break;
            output = NULL;
            node = parse_statement(p);
            if (!node || !parse_expect(p, TOKEN_BLOCK_END, "'%}'")) return NULL;
            if (!parse_push(p, &body->items, node) || !parse_adopt(p, body, node)) return NULL;
            continue;
        }
        if (parse_at(p, TOKEN_DATA)) {
            const struct text *text = parse_text(p, p->now.text);
            node = text ? parse_node(p, NODE_CONST, line) : NULL;
            if (!node || !parse_next(p)) return NULL;
            node->constant = value_text(text);
        } else {
            node = parse_next(p) ? parse_tuple(p, true, false, NULL) : NULL;
            if (!node || !parse_expect(p, TOKEN_VARIABLE_END, "'}}'")) return NULL;
        }
        if (!output) {
            output = parse_node(p, NODE_OUTPUT, line);
            if (!output || !parse_push(p, &body->items, output)) return NULL;
        }
        if (!parse_push(p, &output->items, node) || !parse_adopt(p, output, node) ||
            !parse_adopt(p, body, output))
            return NULL;
    }
    p->level--;
    return body;
}

/* The rest of an opening tag and the body after it. `drop` consumes the end's name. */
static struct node *parse_body(struct parser *p, const char *const *ends, bool drop) {
    bool colon;
    if (!parse_skip(p, TOKEN_COLON, &colon) || !parse_expect(p, TOKEN_BLOCK_END, "'%}'"))
        return NULL;
    struct node *body = parse_until(p, ends);
    return body && (!drop || parse_next(p)) ? body : NULL;
}

static struct node *parse_simple_body(struct parser *p, const char *end) {
    const char *const ends[] = {end, NULL};
    return parse_body(p, ends, true);
}

/* ---- statements; the tag's name is the current token ---- */

static struct node *parse_for(struct parser *p) {
    static const char *const ends[] = {"endfor", "else", NULL};
    struct node *node = parse_node(p, NODE_FOR, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    p->loops++;
    node->loop.target = parse_target(p, false, "in");
    p->loops--;
    if (!node->loop.target) return NULL;
    if (!parse_at_name(p, "in")) return parse_expect(p, TOKEN_EOF, "'in'"), NULL;
    if (!parse_next(p)) return NULL;
    node->loop.iter = parse_tuple(p, false, false, "recursive");
    bool test, otherwise;
    if (!parse_adopt(p, node, node->loop.iter) || !parse_skip_name(p, "if", &test)) return NULL;
    if (test && !((node->loop.test = parse_expression(p)) && parse_adopt(p, node, node->loop.test)))
        return NULL;
    if (!parse_skip_name(p, "recursive", &node->loop.recursive)) return NULL;
    p->loops++;
    node->loop.body = parse_body(p, ends, false);
    p->loops--;
    if (!parse_adopt(p, node, node->loop.body) || !parse_skip_name(p, "else", &otherwise))
        return NULL;
    if (!otherwise) return parse_next(p) ? node : NULL;
    node->loop.otherwise = parse_simple_body(p, "endfor");
    return parse_adopt(p, node, node->loop.otherwise) ? node : NULL;
}

static struct node *parse_if(struct parser *p) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct node *node = parse_node(p, NODE_IF, p->now.line);
    if (!node) return NULL;
    do {
        struct node *test = parse_next(p) ? parse_tuple(p, false, false, NULL) : NULL;
        struct node *body = test ? parse_body(p, ends, false) : NULL;
        if (!body || !parse_adopt(p, node, test) || !parse_adopt(p, node, body) ||
            !parse_push(p, &node->branch.test, test) || !parse_push(p, &node->branch.body, body))
            return NULL;
    } while (parse_at_name(p, "elif"));
    bool otherwise;
    if (!parse_skip_name(p, "else", &otherwise)) return NULL;
    if (!otherwise) return parse_next(p) ? node : NULL;
    node->branch.otherwise = parse_simple_body(p, "endif");
    return parse_adopt(p, node, node->branch.otherwise) ? node : NULL;
}

static struct node *parse_set(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *target = parse_next(p) ? parse_target(p, true, NULL) : NULL;
    bool assign;
    if (!target || !parse_skip(p, TOKEN_ASSIGN, &assign)) return NULL;
    struct node *node = parse_node(p, assign ? NODE_SET : NODE_SET_BLOCK, line);
    if (!node) return NULL;
    node->a = target;
    if (assign) {
        node->b = parse_tuple(p, true, false, NULL);
        return parse_adopt(p, node, node->b) ? node : NULL;
    }
    if (parse_at(p, TOKEN_PIPE)) {
        node->c = parse_filters(p, NULL, false);
        if (!parse_adopt(p, node, node->c)) return NULL;
    }
    node->b = parse_simple_body(p, "endset");
    return parse_adopt(p, node, node->b) ? node : NULL;
}

/* (a, b=default) of a macro or call block. */
static bool parse_signature(struct parser *p, struct node *node, struct macro_def *def) {
    size_t cap = 0;
    if (!parse_expect(p, TOKEN_LPAREN, "'('")) return false;
    while (!parse_at(p, TOKEN_RPAREN)) {
        if (def->n && !parse_expect(p, TOKEN_COMMA, "','")) return false;
        struct str name = p->now.text;
        uint32_t line = p->now.line;
        bool assign;
        if (!parse_expect(p, TOKEN_NAME, "a name") || !parse_skip(p, TOKEN_ASSIGN, &assign))
            return false;
        struct param param = {.name = parse_text(p, name)};
        if (!param.name || !parse_symbol(p, name, &param.symbol)) return false;
        if (assign && !((param.value = parse_expression(p)) && parse_adopt(p, node, param.value)))
            return false;
        if (!assign && def->n && def->param[def->n - 1].value)
            return parse_fail(p, line, OB_ERR_FORMAT,
                              "parameter '%.*s' without a default follows one with a default",
                              STR_ARG(name));
        if (def->n == cap) {
            struct param *grown = parse_alloc(p, (cap = cap ? cap * 2 : 4) * sizeof *grown);
            if (!grown) return false;
            if (def->n) memcpy(grown, def->param, def->n * sizeof *grown);
            def->param = grown;
        }
        def->param[def->n++] = param;
    }
    return parse_next(p);
}

/* The body of a macro: a function of its own, so loops outside do not reach in. */
static bool parse_function(struct parser *p, struct node *node, struct macro_def *def,
                           const char *end) {
    bool outer[3];
    unsigned loops = p->loops;
    memcpy(outer, p->uses, sizeof outer);
    memset(p->uses, 0, sizeof p->uses);
    p->loops = 0;
    def->body = parse_simple_body(p, end);
    p->loops = loops;
    def->uses_caller = p->uses[0];
    def->uses_kwargs = p->uses[1];
    def->uses_varargs = p->uses[2];
    for (int i = 0; i < 3; i++) p->uses[i] = p->uses[i] || outer[i];
    for (size_t i = 0; i < def->n; i++) { /* a parameter of that name is just a parameter */
        if (def->param[i].symbol == SYMBOL_CALLER) def->uses_caller = false;
        if (def->param[i].symbol == SYMBOL_KWARGS) def->uses_kwargs = false;
        if (def->param[i].symbol == SYMBOL_VARARGS) def->uses_varargs = false;
    }
    return parse_adopt(p, node, def->body);
}

static struct node *parse_macro(struct parser *p) {
    struct node *node = parse_node(p, NODE_MACRO, p->now.line);
    struct macro_def *def = node ? parse_alloc(p, sizeof *def) : NULL;
    if (!def || !parse_next(p)) return NULL;
    struct str name = p->now.text;
    if (!parse_expect(p, TOKEN_NAME, "a name") || !parse_symbol(p, name, &node->macro.symbol))
        return NULL;
    def->name = parse_text(p, name);
    node->macro.def = def;
    if (!def->name || !parse_signature(p, node, def)) return NULL;
    return parse_function(p, node, def, "endmacro") ? node : NULL;
}

static struct node *parse_call_block(struct parser *p) {
    struct node *node = parse_node(p, NODE_CALL_BLOCK, p->now.line);
    struct macro_def *def = node ? parse_alloc(p, sizeof *def) : NULL;
    if (!def || !parse_next(p)) return NULL;
    if (parse_at(p, TOKEN_LPAREN) && !parse_signature(p, node, def)) return NULL;
    struct node *call = parse_expression(p);
    if (!call || !parse_adopt(p, node, call)) return NULL;
    if (call->kind != NODE_CALL)
        return parse_fail(p, node->line, OB_ERR_FORMAT, "expected a call"), NULL;
    node->macro.def = def;
    node->macro.call = call;
    return parse_function(p, node, def, "endcall") ? node : NULL;
}

static struct node *parse_filter_block(struct parser *p) {
    struct node *node = parse_node(p, NODE_FILTER_BLOCK, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    node->b = parse_filters(p, NULL, true);
    if (!parse_adopt(p, node, node->b)) return NULL;
    node->a = parse_simple_body(p, "endfilter");
    return parse_adopt(p, node, node->a) ? node : NULL;
}

static struct node *parse_with(struct parser *p) {
    struct node *node = parse_node(p, NODE_WITH, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    while (!parse_at(p, TOKEN_BLOCK_END)) {
        if (node->with.items.n && !parse_expect(p, TOKEN_COMMA, "','")) return NULL;
        struct node *target = parse_target(p, false, NULL);
        if (!target || !parse_expect(p, TOKEN_ASSIGN, "'='")) return NULL;
        struct node *value = parse_expression(p);
        if (!value || !parse_adopt(p, node, value) || !parse_push(p, &node->with.items, target) ||
            !parse_push(p, &node->with.items, value))
            return NULL;
    }
    node->with.body = parse_simple_body(p, "endwith");
    return parse_adopt(p, node, node->with.body) ? node : NULL;
}

static struct node *parse_print(struct parser *p) {
    struct node *node = parse_node(p, NODE_OUTPUT, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    while (!parse_at(p, TOKEN_BLOCK_END)) {
        if (node->items.n && !parse_expect(p, TOKEN_COMMA, "','")) return NULL;
        struct node *item = parse_expression(p);
        if (!item || !parse_push(p, &node->items, item) || !parse_adopt(p, node, item)) return NULL;
    }
    return node;
}

/* {% generation %}: marks what the assistant wrote; only its scope matters here. */
static struct node *parse_generation(struct parser *p) {
    struct node *node = parse_node(p, NODE_SCOPE, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    unsigned loops = p->loops;
    p->loops = 0;
    node->a = parse_simple_body(p, "endgeneration");
    p->loops = loops;
    return parse_adopt(p, node, node->a) ? node : NULL;
}

static struct node *parse_block(struct parser *p) {
    struct node *node = parse_node(p, NODE_BLOCK, p->now.line);
    bool skipped;
    if (!node || !parse_next(p)) return NULL;
    struct str name = p->now.text;
    if (!parse_expect(p, TOKEN_NAME, "a name") || !parse_skip_name(p, "scoped", &skipped))
        return NULL;
    unsigned loops = p->loops;
    p->loops = 0;
    node->a = parse_simple_body(p, "endblock");
    p->loops = loops;
    if (!parse_adopt(p, node, node->a)) return NULL;
    if (parse_at(p, TOKEN_NAME) && str_eq(p->now.text, name) && !parse_next(p)) return NULL;
    return node;
}

static struct node *parse_jump(struct parser *p) {
    bool leave = parse_at_name(p, "break");
    uint32_t line = p->now.line;
    if (!p->loops) {
        parse_fail(p, line, OB_ERR_FORMAT, "'%s' outside a loop", leave ? "break" : "continue");
        return NULL;
    }
    return parse_next(p) ? parse_node(p, leave ? NODE_BREAK : NODE_CONTINUE, line) : NULL;
}

static const struct {
    const char *name;
    struct node *(*parse)(struct parser *);
} statements[] = {
    {"block", parse_block}, {"break", parse_jump}, {"call", parse_call_block},
    {"continue", parse_jump}, {"filter", parse_filter_block}, {"for", parse_for},
    {"generation", parse_generation}, {"if", parse_if}, {"macro", parse_macro},
    {"print", parse_print}, {"set", parse_set}, {"with", parse_with},
};

static struct node *parse_statement(struct parser *p) {
    static const char *const refused[] = {"autoescape", "extends", "from", "import", "include"};
    if (!parse_at(p, TOKEN_NAME)) return parse_expect(p, TOKEN_NAME, "the name of a tag"), NULL;
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        if (parse_at_name(p, statements[i].name)) return statements[i].parse(p);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (!parse_at_name(p, refused[i])) continue;
        parse_fail(p, p->now.line, OB_ERR_UNSUPPORTED, "the tag '%s' is not supported", refused[i]);
        return NULL;
    }
    parse_fail(p, p->now.line, OB_ERR_FORMAT, "unknown tag '%.*s'", STR_ARG(p->now.text));
    return NULL;
}

/* ---- the whole template ---- */

static bool parse_template(struct parser *p, const char *source, size_t n) {
    static const char *const fixed[SYMBOLS_FIXED] = {"loop", "caller", "kwargs", "varargs"};
    static const char *const no_end[] = {NULL};
    for (uint32_t i = 0, at; i < SYMBOLS_FIXED; i++)
        if (!parse_symbol(p, str_of(fixed[i]), &at)) return false;
    if (!lex_init(&p->lexer, &p->jinja->arena, source, n, p->error) || !parse_next(p)) return false;
    p->jinja->body = parse_until(p, no_end);
    return p->jinja->body != NULL;
}

enum { LARGEST = 1 << 20 };

ob_status jinja_parse(const char *source, size_t n, struct jinja **out, ob_error *error) {
    ob_error local;
    struct parser p = {.error = error ? error : &local};
    *out = NULL;
    if (n > LARGEST)
        return error_set(error, OB_ERR_LIMIT, "a template of %zu bytes is too large (limit: %d)", n,
                         LARGEST);
    p.jinja = calloc(1, sizeof *p.jinja);
    if (!p.jinja) return error_memory(error, "a template", sizeof *p.jinja);
    if (!parse_template(&p, source, n)) {
        jinja_free(&p.jinja);
        return p.error->status;
    }
    *out = p.jinja;
    return OB_OK;
}

void jinja_free(struct jinja **jinja) {
    if (!*jinja) return;
    arena_free(&(*jinja)->arena);
    free(*jinja);
    *jinja = NULL;
}
