/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_expr.c: expressions, by recursive descent with jinja2's precedence (which differs from
 * Python's: ** binds to the left, unary minus before **, and a filter after the sign). */
#include "text/jinja/builtin.h"
#include "text/jinja/parse.h"

static struct node *parse_or(struct parser *p);
static struct node *parse_unary(struct parser *p, bool with_filter);
static struct node *parse_primary(struct parser *p);
static struct node *parse_postfix(struct parser *p, struct node *node);

static struct node *unexpected(struct parser *p, const char *wanted) {
    char text[64];
    parse_fail(p, p->now.line, OB_ERR_FORMAT, "expected %s, got %s", wanted,
               lex_describe(&p->now, text, sizeof text));
    return NULL;
}

static struct node *join(struct parser *p, enum node_kind kind, enum node_op op, uint32_t line,
                         struct node *a, struct node *b) {
    struct node *node = a && b ? parse_node(p, kind, line) : NULL;
    if (!node || !parse_adopt(p, node, a) || !parse_adopt(p, node, b)) return NULL;
    node->op = (uint8_t)op;
    node->a = a;
    node->b = b;
    return node;
}

/* ---- conditions, logic, comparisons ---- */

static struct node *parse_cond(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *yes = parse_or(p);
    bool skipped;
    while (yes) {
        if (!parse_skip_name(p, "if", &skipped)) return NULL;
        if (!skipped) break;
        struct node *node = parse_node(p, NODE_COND, line);
        struct node *test = node ? parse_or(p) : NULL;
        if (!test || !parse_skip_name(p, "else", &skipped)) return NULL;
        struct node *no = NULL;
        if (skipped && !((no = parse_expression(p)) && parse_adopt(p, node, no))) return NULL;
        if (!parse_adopt(p, node, test) || !parse_adopt(p, node, yes)) return NULL;
        node->a = yes;
        node->b = test;
        node->c = no;
        yes = node;
    }
    return yes;
}

struct node *parse_expression(struct parser *p) {
    if (!parse_enter(p)) return NULL;
    struct node *node = parse_cond(p);
    p->level--;
    return node;
}

static struct node *parse_not(struct parser *p);

static struct node *parse_and(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *left = parse_not(p);
    bool skipped;
    while (left) {
        if (!parse_skip_name(p, "and", &skipped)) return NULL;
        if (!skipped) break;
        left = join(p, NODE_AND, 0, line, left, parse_not(p));
    }
    return left;
}

static struct node *parse_or(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *left = parse_and(p);
    bool skipped;
    while (left) {
        if (!parse_skip_name(p, "or", &skipped)) return NULL;
        if (!skipped) break;
        left = join(p, NODE_OR, 0, line, left, parse_and(p));
    }
    return left;
}

static struct node *unary(struct parser *p, enum node_op op, uint32_t line, struct node *a) {
    struct node *node = a ? parse_node(p, NODE_UNARY, line) : NULL;
    if (!node || !parse_adopt(p, node, a)) return NULL;
    node->op = (uint8_t)op;
    node->a = a;
    return node;
}

static struct node *parse_compare(struct parser *p);

static struct node *parse_not(struct parser *p) {
    uint32_t line = p->now.line;
    if (!parse_at_name(p, "not")) return parse_compare(p);
    if (!parse_enter(p) || !parse_next(p)) return NULL;
    struct node *node = unary(p, OP_NOT, line, parse_not(p));
    p->level--;
    return node;
}

/* The comparison operator here, consumed; -1 none, -2 an error. */
static int comparison(struct parser *p) {
    int op = -1;
    struct token next;
    if (p->now.kind >= TOKEN_EQ && p->now.kind <= TOKEN_GE) {
        op = OP_EQ + (int)(p->now.kind - TOKEN_EQ);
    } else if (parse_at_name(p, "in")) {
        op = OP_IN;
    } else if (parse_at_name(p, "not")) {
        if (!parse_peek(p, &next)) return -2;
        if (next.kind != TOKEN_NAME || !str_is(next.text, "in")) return -1;
        if (!parse_next(p)) return -2;
        op = OP_NOT_IN;
    }
    return op >= 0 && !parse_next(p) ? -2 : op;
}

static struct node *parse_sum(struct parser *p);

static struct node *parse_compare(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *first = parse_sum(p), *node = NULL;
    int op;
    size_t cap = 0;
    while (first && (op = comparison(p)) != -1) {
        struct node *right = op == -2 ? NULL : parse_sum(p);
        if (!right || (!node && !(node = parse_node(p, NODE_COMPARE, line)))) return NULL;
        if (node->compare.operand.n == cap) {
            uint8_t *grown = parse_alloc(p, cap = cap ? cap * 2 : 4);
            if (!grown) return NULL;
            if (node->compare.operand.n) memcpy(grown, node->compare.op, node->compare.operand.n);
            node->compare.op = grown;
        }
        node->compare.op[node->compare.operand.n] = (uint8_t)op;
        if (!parse_push(p, &node->compare.operand, right) || !parse_adopt(p, node, right))
            return NULL;
    }
    if (!node || !first) return first;
    node->compare.first = first;
    return parse_adopt(p, node, first) ? node : NULL;
}

/* ---- arithmetic ---- */

static struct node *parse_pow(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *left = parse_unary(p, true);
    while (left && parse_at(p, TOKEN_POW)) {
        if (!parse_next(p)) return NULL;
        left = join(p, NODE_BINARY, OP_POW, line, left, parse_unary(p, true));
    }
    return left;
}

static struct node *parse_product(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *left = parse_pow(p);
    while (left) {
        enum node_op op;
        if (parse_at(p, TOKEN_MUL)) op = OP_MUL;
        else if (parse_at(p, TOKEN_DIV)) op = OP_DIV;
        else if (parse_at(p, TOKEN_FLOORDIV)) op = OP_FLOORDIV;
        else if (parse_at(p, TOKEN_MOD)) op = OP_MOD;
        else break;
        if (!parse_next(p)) return NULL;
        left = join(p, NODE_BINARY, op, line, left, parse_pow(p));
    }
    return left;
}

static struct node *parse_concat(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *first = parse_product(p), *node = NULL;
    while (first && parse_at(p, TOKEN_TILDE)) {
        if (!node) {
            node = parse_node(p, NODE_CONCAT, line);
            if (!node || !parse_push(p, &node->items, first) || !parse_adopt(p, node, first))
                return NULL;
        }
        struct node *right = parse_next(p) ? parse_product(p) : NULL;
        if (!right || !parse_push(p, &node->items, right) || !parse_adopt(p, node, right))
            return NULL;
    }
    return node ? node : first;
}

static struct node *parse_sum(struct parser *p) {
    uint32_t line = p->now.line;
    struct node *left = parse_concat(p);
    while (left && (parse_at(p, TOKEN_ADD) || parse_at(p, TOKEN_SUB))) {
        enum node_op op = parse_at(p, TOKEN_ADD) ? OP_ADD : OP_SUB;
        if (!parse_next(p)) return NULL;
        left = join(p, NODE_BINARY, op, line, left, parse_concat(p));
    }
    return left;
}

/* ---- calls, filters, tests ---- */

/* The arguments in parentheses, from the opening one on. */
static struct node_args *parse_args(struct parser *p, struct node *node) {
    struct node_args *args = parse_alloc(p, sizeof *args);
    if (!args || !parse_expect(p, TOKEN_LPAREN, "'('")) return NULL;
    size_t cap = 0;
    for (bool first = true; !parse_at(p, TOKEN_RPAREN); first = false) {
        if (!first && !parse_expect(p, TOKEN_COMMA, "','")) return NULL;
        if (parse_at(p, TOKEN_RPAREN)) break;
        struct node **star = parse_at(p, TOKEN_MUL)   ? &args->star
                             : parse_at(p, TOKEN_POW) ? &args->star_star
                                                      : NULL;
        struct token next = {0};
        if (!star && parse_at(p, TOKEN_NAME) && !parse_peek(p, &next)) return NULL;
        bool keyword = !star && next.kind == TOKEN_ASSIGN;
        if (args->star_star || (star == &args->star && *star) ||
            (!star && !keyword && (args->star || args->keyword.n))) {
            unexpected(p, "a keyword argument");
            return NULL;
        }
        struct str name = p->now.text;
        if ((star || keyword) && !parse_next(p)) return NULL;
        if (keyword && !parse_next(p)) return NULL;
        struct node *value = parse_expression(p);
        if (!value || !parse_adopt(p, node, value)) return NULL;
        if (star) {
            *star = value;
        } else if (keyword) {
            if (args->keyword.n == cap) {
                cap = cap ? cap * 2 : 4;
                const struct text **grown = parse_alloc(p, cap * sizeof *grown);
                if (!grown) return NULL;
                if (args->keyword.n) memcpy(grown, args->name, args->keyword.n * sizeof *grown);
                args->name = grown;
            }
            const struct text *text = parse_text(p, name);
            if (!text) return NULL;
            args->name[args->keyword.n] = text;
            if (!parse_push(p, &args->keyword, value)) return NULL;
        } else if (!parse_push(p, &args->positional, value)) {
            return NULL;
        }
    }
    return parse_next(p) ? args : NULL;
}

static struct node *parse_call(struct parser *p, struct node *callee) {
    struct node *node = parse_node(p, NODE_CALL, p->now.line);
    if (!node || !parse_adopt(p, node, callee)) return NULL;
    struct node_args *args = parse_args(p, node);
    if (!args) return NULL;
    node->call.subject = callee;
    node->call.args = args;
    return node;
}

/* name or name.name, as filters and tests are called. */
static const struct text *parse_dotted(struct parser *p) {
    struct str name = p->now.text;
    if (!parse_expect(p, TOKEN_NAME, "a name")) return NULL;
    while (parse_at(p, TOKEN_DOT)) {
        struct token last;
        if (!parse_next(p)) return NULL;
        last = p->now;
        if (!parse_expect(p, TOKEN_NAME, "a name")) return NULL;
        name.n = (size_t)(last.text.p + last.text.n - name.p);
    }
    return parse_text(p, name);
}

struct node *parse_filters(struct parser *p, struct node *subject, bool first_without_pipe) {
    struct node *node = subject;
    while (parse_at(p, TOKEN_PIPE) || first_without_pipe) {
        if (!first_without_pipe && !parse_next(p)) return NULL;
        first_without_pipe = false;
        struct node *filter = parse_node(p, NODE_FILTER, p->now.line);
        const struct text *name = filter ? parse_dotted(p) : NULL;
        if (!name || (node && !parse_adopt(p, filter, node))) return NULL;
        struct node_args *args = parse_at(p, TOKEN_LPAREN) ? parse_args(p, filter)
                                                           : parse_alloc(p, sizeof *args);
        if (!args) return NULL;
        filter->call.subject = node;
        filter->call.builtin = jinja_filter_find(text_str(name));
        filter->call.name = name;
        filter->call.args = args;
        node = filter;
    }
    return node;
}

/* Whether a test's argument may follow without parentheses. */
static bool at_test_argument(const struct parser *p) {
    if (parse_at(p, TOKEN_NAME))
        return !parse_at_name(p, "else") && !parse_at_name(p, "or") && !parse_at_name(p, "and");
    return parse_at(p, TOKEN_STRING) || parse_at(p, TOKEN_INTEGER) || parse_at(p, TOKEN_FLOAT) ||
           parse_at(p, TOKEN_BIG) ||
           parse_at(p, TOKEN_LBRACKET) || parse_at(p, TOKEN_LBRACE);
}

static struct node *parse_test(struct parser *p, struct node *subject) {
    uint32_t line = p->now.line;
    bool negated;
    if (!parse_next(p) || !parse_skip_name(p, "not", &negated)) return NULL;
    struct node *node = parse_node(p, NODE_TEST, line);
    const struct text *name = node ? parse_dotted(p) : NULL;
    if (!name || !parse_adopt(p, node, subject)) return NULL;
    struct node_args *args;
    if (parse_at(p, TOKEN_LPAREN)) {
        args = parse_args(p, node);
    } else {
        args = parse_alloc(p, sizeof *args);
        if (args && at_test_argument(p)) {
            if (parse_at_name(p, "is")) return unexpected(p, "no second test");
            struct node *arg = parse_primary(p);
            if (arg) arg = parse_postfix(p, arg);
            if (!arg || !parse_adopt(p, node, arg) || !parse_push(p, &args->positional, arg))
                return NULL;
        }
    }
    if (!args) return NULL;
    node->call.subject = subject;
    node->call.builtin = jinja_test_find(text_str(name));
    node->call.name = name;
    node->call.args = args;
    return negated ? unary(p, OP_NOT, line, node) : node;
}

/* ---- subscripts ---- */

static struct node *constant(struct parser *p, uint32_t line, struct value value) {
    struct node *node = parse_node(p, NODE_CONST, line);
    if (node) node->constant = value;
    return node;
}

/* What stands in brackets: an expression, or start:stop:step. */
static struct node *parse_subscript(struct parser *p) {
    struct node *part[3] = {NULL, NULL, NULL};
    uint32_t line = p->now.line;
    bool slice = false;
    for (int i = 0; i < 3; i++) {
        if (!parse_at(p, TOKEN_COLON) && !parse_at(p, TOKEN_RBRACKET) &&
            !parse_at(p, TOKEN_COMMA)) {
            part[i] = parse_expression(p);
            if (!part[i]) return NULL;
        } else if (i == 0 && !parse_at(p, TOKEN_COLON)) {
            return unexpected(p, "an expression");
        }
        if (!parse_at(p, TOKEN_COLON) || i == 2) break;
        slice = true;
        if (!parse_next(p)) return NULL;
    }
    if (!slice) return part[0];
    struct node *node = parse_node(p, NODE_SLICE, line);
    if (!node) return NULL;
    for (int i = 0; i < 3; i++)
        if (part[i] && !parse_adopt(p, node, part[i])) return NULL;
    node->a = part[0];
    node->b = part[1];
    node->c = part[2];
    return node;
}

static struct node *parse_brackets(struct parser *p, struct node *of) {
    uint32_t line = p->now.line;
    if (!parse_next(p)) return NULL;
    struct node *arg = parse_subscript(p);
    if (arg && parse_at(p, TOKEN_COMMA)) { /* a[1, 2] subscripts with a tuple */
        struct node *tuple = parse_node(p, NODE_TUPLE, line);
        while (tuple && arg) {
            if (!parse_push(p, &tuple->items, arg) || !parse_adopt(p, tuple, arg)) return NULL;
            if (arg->kind == NODE_SLICE) return unexpected(p, "no slice in a tuple");
            if (parse_at(p, TOKEN_RBRACKET)) break;
            if (!parse_expect(p, TOKEN_COMMA, "','")) return NULL;
            arg = parse_subscript(p);
        }
        arg = arg ? tuple : NULL;
    }
    if (!arg || !parse_expect(p, TOKEN_RBRACKET, "']'")) return NULL;
    return join(p, NODE_ITEM, 0, line, of, arg);
}

static struct node *parse_dot(struct parser *p, struct node *of) {
    uint32_t line = p->now.line;
    if (!parse_next(p)) return NULL;
    struct token t = p->now;
    if (t.kind == TOKEN_INTEGER) {
        if (!parse_next(p)) return NULL;
        return join(p, NODE_ITEM, 0, line, of, constant(p, line, value_int(t.i, false)));
    }
    if (!parse_expect(p, TOKEN_NAME, "a name or number")) return NULL;
    struct node *node = parse_node(p, NODE_ATTR, line);
    const struct text *name = node ? parse_text(p, t.text) : NULL;
    if (!name || !parse_adopt(p, node, of)) return NULL;
    node->attr.of = of;
    node->attr.name = name;
    return node;
}

static struct node *parse_postfix(struct parser *p, struct node *node) {
    while (node) {
        if (parse_at(p, TOKEN_DOT)) node = parse_dot(p, node);
        else if (parse_at(p, TOKEN_LBRACKET)) node = parse_brackets(p, node);
        else if (parse_at(p, TOKEN_LPAREN)) node = parse_call(p, node);
        else break;
    }
    return node;
}

static struct node *parse_unary(struct parser *p, bool with_filter) {
    uint32_t line = p->now.line;
    struct node *node;
    if (parse_at(p, TOKEN_SUB) || parse_at(p, TOKEN_ADD)) {
        enum node_op op = parse_at(p, TOKEN_SUB) ? OP_NEG : OP_POS;
        if (!parse_enter(p) || !parse_next(p)) return NULL;
        node = unary(p, op, line, parse_unary(p, false));
        p->level--;
    } else {
        node = parse_primary(p);
    }
    node = node ? parse_postfix(p, node) : NULL;
    while (node && with_filter) {
        if (parse_at(p, TOKEN_PIPE)) node = parse_filters(p, node, false);
        else if (parse_at_name(p, "is")) node = parse_test(p, node);
        else if (parse_at(p, TOKEN_LPAREN)) node = parse_call(p, node);
        else break;
    }
    return node;
}

/* ---- literals and names ---- */

/* [a, b] or {k: v}, from the opening bracket on. */
static struct node *parse_display(struct parser *p, enum node_kind kind, enum token_kind close) {
    struct node *node = parse_node(p, kind, p->now.line);
    if (!node || !parse_next(p)) return NULL;
    for (bool first = true; !parse_at(p, close); first = false) {
        if (!first && !parse_expect(p, TOKEN_COMMA, "','")) return NULL;
        if (parse_at(p, close)) break;
        for (int i = 0; i < (kind == NODE_DICT ? 2 : 1); i++) {
            if (i == 1 && !parse_expect(p, TOKEN_COLON, "':'")) return NULL;
            struct node *item = parse_expression(p);
            if (!item || !parse_push(p, &node->items, item) || !parse_adopt(p, node, item))
                return NULL;
        }
    }
    return parse_next(p) ? node : NULL;
}

static struct node *parse_strings(struct parser *p) {
    uint32_t line = p->now.line;
    struct str text = p->now.text;
    if (!parse_next(p)) return NULL;
    while (parse_at(p, TOKEN_STRING)) { /* neighbours are one string */
        char *joined = parse_alloc(p, text.n + p->now.text.n + 1);
        if (!joined) return NULL;
        memcpy(joined, text.p, text.n);
        memcpy(joined + text.n, p->now.text.p, p->now.text.n);
        text = (struct str){joined, text.n + p->now.text.n};
        if (!parse_next(p)) return NULL;
    }
    const struct text *value = parse_text(p, text);
    return value ? constant(p, line, value_text(value)) : NULL;
}

static struct node *parse_name(struct parser *p) {
    struct token t = p->now;
    if (!parse_next(p)) return NULL;
    if (str_is(t.text, "true") || str_is(t.text, "True"))
        return constant(p, t.line, value_bool(true, false));
    if (str_is(t.text, "false") || str_is(t.text, "False"))
        return constant(p, t.line, value_bool(false, false));
    if (str_is(t.text, "none") || str_is(t.text, "None"))
        return constant(p, t.line, value_none(false));
    struct node *node = parse_node(p, NODE_NAME, t.line);
    if (!node || !parse_symbol(p, t.text, &node->symbol)) return NULL;
    uint32_t special = node->symbol - SYMBOL_CALLER;
    if (node->symbol >= SYMBOL_CALLER && special < 3) p->uses[special] = true;
    return node;
}

static struct node *parse_primary(struct parser *p) {
    struct token t = p->now;
    struct node *node = NULL;
    switch (t.kind) {
    case TOKEN_NAME: return parse_name(p);
    case TOKEN_STRING: return parse_strings(p);
    case TOKEN_BIG:
        node = parse_node(p, NODE_BIG, t.line);
        if (!node || !parse_next(p)) return NULL;
        node->whole.digit = t.text;
        node->whole.base = t.base;
        return node;
    case TOKEN_INTEGER:
        return parse_next(p) ? constant(p, t.line, value_int(t.i, false)) : NULL;
    case TOKEN_FLOAT:
        return parse_next(p) ? constant(p, t.line, value_float(t.f, false)) : NULL;
    case TOKEN_LPAREN:
        if (parse_next(p)) node = parse_tuple(p, true, true, NULL);
        return node && parse_expect(p, TOKEN_RPAREN, "')'") ? node : NULL;
    case TOKEN_LBRACKET: return parse_display(p, NODE_LIST, TOKEN_RBRACKET);
    case TOKEN_LBRACE: return parse_display(p, NODE_DICT, TOKEN_RBRACE);
    default: return unexpected(p, "an expression");
    }
}

static bool at_tuple_end(const struct parser *p, const char *end) {
    return parse_at(p, TOKEN_VARIABLE_END) || parse_at(p, TOKEN_BLOCK_END) ||
           parse_at(p, TOKEN_RPAREN) || (end && parse_at_name(p, end));
}

/* Items by `item`, as many as there are commas. */
static struct node *tuple_of(struct parser *p, struct node *(*item)(struct parser *),
                             bool parentheses, const char *end) {
    uint32_t line = p->now.line;
    struct node_list items = {0};
    bool tuple = false;
    for (;;) {
        if (items.n && !parse_expect(p, TOKEN_COMMA, "','")) return NULL;
        if (at_tuple_end(p, end)) break;
        struct node *node = item(p);
        if (!node || !parse_push(p, &items, node)) return NULL;
        if (!parse_at(p, TOKEN_COMMA)) break;
        tuple = true;
    }
    if (!tuple && items.n) return items.item[0];
    if (!tuple && !parentheses) return unexpected(p, "an expression");
    struct node *node = parse_node(p, NODE_TUPLE, line);
    if (!node) return NULL;
    node->items = items;
    for (size_t i = 0; i < items.n; i++)
        if (!parse_adopt(p, node, items.item[i])) return NULL;
    return node;
}

struct node *parse_tuple(struct parser *p, bool with_cond, bool parentheses, const char *end) {
    if (!parse_enter(p)) return NULL;
    struct node *node = tuple_of(p, with_cond ? parse_expression : parse_or, parentheses, end);
    p->level--;
    return node;
}

/* ---- assignment targets ---- */

static struct node *parse_member(struct parser *p) {
    struct token t = p->now;
    struct node *node = parse_primary(p);
    if (!node || !parse_at(p, TOKEN_DOT)) return node;
    struct node *member = parse_node(p, NODE_MEMBER, t.line);
    if (!member || node->kind != NODE_NAME || !parse_next(p)) return unexpected(p, "a name");
    struct str name = p->now.text;
    if (!parse_expect(p, TOKEN_NAME, "a name")) return NULL;
    member->ref.symbol = node->symbol;
    member->ref.name = parse_text(p, name);
    return member->ref.name ? member : NULL;
}

static bool assignable(struct parser *p, const struct node *node) {
    if (node->kind == NODE_MEMBER) return true;
    if (node->kind == NODE_NAME) {
        if (node->symbol != SYMBOL_LOOP || !p->loops) return true;
        return parse_fail(p, node->line, OB_ERR_FORMAT, "cannot assign to 'loop' inside a loop");
    }
    bool ok = node->kind == NODE_TUPLE;
    for (size_t i = 0; ok && i < node->items.n; i++)
        if (!assignable(p, node->items.item[i])) return false;
    return ok || parse_fail(p, node->line, OB_ERR_FORMAT, "cannot assign to this expression");
}

struct node *parse_target(struct parser *p, bool members, const char *end) {
    struct node *node = tuple_of(p, members ? parse_member : parse_primary, false, end);
    return node && assignable(p, node) ? node : NULL;
}
