/* SPDX-License-Identifier: Apache-2.0
 *
 * eval.c: expressions to values. */
#include "text/jinja/run.h"

static bool eval_name(struct run *r, const struct node *node, struct value *out) {
    if (!jinja_lookup(r, node->symbol, out)) return false;
    return out->kind != VALUE_MISSING ||
           jinja_undefined(r, VALUE_MISSING, r->jinja->symbol[node->symbol], out);
}

static bool eval_items(struct run *r, const struct node_list *nodes, struct list **out) {
    if (!jinja_list_new(r, nodes->n, out)) return false;
    for (size_t i = 0; i < nodes->n; i++) {
        struct value v;
        if (!jinja_eval(r, nodes->item[i], &v) || !jinja_push(r, *out, v)) return false;
    }
    return true;
}

static bool eval_list(struct run *r, const struct node *node, struct value *out) {
    struct list *list;
    if (!eval_items(r, &node->items, &list)) return false;
    *out = value_list(node->kind == NODE_LIST ? VALUE_LIST : VALUE_TUPLE, list, false);
    return true;
}

static bool eval_dict(struct run *r, const struct node *node, struct value *out) {
    struct dict *dict;
    if (!jinja_dict_new(r, node->items.n / 2, &dict)) return false;
    for (size_t i = 0; i < node->items.n; i += 2) {
        struct value key, v;
        if (!jinja_eval(r, node->items.item[i], &key) ||
            !jinja_eval(r, node->items.item[i + 1], &v) || !jinja_dict_set(r, dict, key, v))
            return false;
    }
    *out = value_dict(dict, false);
    return true;
}

static bool eval_concat(struct run *r, const struct node *node, struct value *out) {
    struct list *parts;
    struct value v;
    if (!eval_items(r, &node->items, &parts) || !jinja_text_literal(r, "", true, out)) return false;
    for (size_t i = 0; i < parts->n; i++) {
        v = parts->item[i];
        const struct text *text;
        if (!jinja_to_text(r, v, &text) || !jinja_concat(r, out->text, text, out)) return false;
    }
    return true;
}

static bool eval_logic(struct run *r, const struct node *node, struct value *out) {
    if (!jinja_eval(r, node->a, out)) return false;
    return jinja_truth(*out) == (node->kind == NODE_OR) || jinja_eval(r, node->b, out);
}

static bool eval_cond(struct run *r, const struct node *node, struct value *out) {
    struct value test;
    if (!jinja_eval(r, node->b, &test)) return false;
    if (jinja_truth(test)) return jinja_eval(r, node->a, out);
    if (node->c) return jinja_eval(r, node->c, out);
    return jinja_undefined_hint(r, "the inline if-expression evaluated to false and no else "
                                   "section was defined", out);
}

static bool eval_compare(struct run *r, const struct node *node, struct value *out) {
    struct value left, right;
    if (!jinja_eval(r, node->compare.first, &left)) return false;
    bool data = value_is_data(left), result = true;
    for (size_t i = 0; i < node->compare.operand.n && result; i++) {
        if (!jinja_eval(r, node->compare.operand.item[i], &right) ||
            !jinja_compare(r, node->compare.op[i], left, right, &result))
            return false;
        data = data || value_is_data(right);
        left = right;
    }
    *out = value_bool(result, data);
    return true;
}

static bool eval_binary(struct run *r, const struct node *node, struct value *out) {
    struct value a, b;
    return jinja_eval(r, node->a, &a) && jinja_eval(r, node->b, &b) &&
           jinja_binary(r, node->op, a, b, out);
}

static bool eval_item(struct run *r, const struct node *node, struct value *out) {
    struct value of, key, part[3];
    if (!jinja_eval(r, node->a, &of)) return false;
    if (node->b->kind != NODE_SLICE)
        return jinja_eval(r, node->b, &key) && jinja_item(r, of, key, out);
    const struct node *bound[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        part[i] = value_none(false);
        if (bound[i] && !jinja_eval(r, bound[i], &part[i])) return false;
    }
    return jinja_slice(r, of, part, out);
}

/* ---- calls ---- */

static bool add_keyword(struct run *r, struct call *call, struct keyword *into,
                        const struct text *name, struct value v) {
    for (size_t i = 0; i < call->keywords; i++)
        if (str_eq(text_str(into[i].name), text_str(name)))
            return jinja_fail(r, "got multiple values for keyword argument '%.*s'",
                              STR_ARG(text_str(name)));
    if (!jinja_steps(r, call->keywords)) return false;
    into[call->keywords++] = (struct keyword){name, v};
    return true;
}

/* *args and **kwargs after the ordinary ones; `caller` of a call block last. */
static bool eval_args(struct run *r, const struct node_args *args, struct value caller,
                      struct call *call) {
    struct list *positional, *more = NULL;
    struct value v, extra = value_of(VALUE_MISSING);
    static const struct text caller_name = TEXT_LITERAL("caller");
    if (!eval_items(r, &args->positional, &positional)) return false;
    if (args->star) {
        if (!jinja_eval(r, args->star, &v) || !jinja_elements(r, v, &more)) return false;
        for (size_t i = 0; i < more->n; i++)
            if (!jinja_push(r, positional, more->item[i])) return false;
    }
    struct keyword *keyword = NULL;
    size_t n = args->keyword.n + 1;
    if (args->star_star) {
        if (!jinja_eval(r, args->star_star, &extra)) return false;
        if (extra.kind != VALUE_DICT)
            return jinja_fail(r, "argument after ** must be a mapping, not %s",
                              jinja_type_name(extra));
        n += extra.dict->n;
    }
    if (n > 1 || caller.kind != VALUE_MISSING) {
        keyword = jinja_alloc(r, n, sizeof *keyword);
        if (!keyword) return false;
    }
    for (size_t i = 0; i < args->keyword.n; i++)
        if (!jinja_eval(r, args->keyword.item[i], &v) ||
            !add_keyword(r, call, keyword, args->name[i], v))
            return false;
    for (size_t i = 0; extra.kind == VALUE_DICT && i < extra.dict->n; i++) {
        struct pair *pair = &extra.dict->pair[i];
        if (pair->key.kind != VALUE_STRING) return jinja_fail(r, "keywords must be strings");
        if (!add_keyword(r, call, keyword, pair->key.text, pair->value)) return false;
    }
    if (caller.kind != VALUE_MISSING && !add_keyword(r, call, keyword, &caller_name, caller))
        return false;
    call->positional = positional->item;
    call->n = positional->n;
    call->keyword = keyword;
    return true;
}

static bool eval_call(struct run *r, const struct node *node, struct value *out) {
    struct call call = {0};
    struct value callee, caller = r->caller;
    r->caller = value_of(VALUE_MISSING);
    return jinja_eval(r, node->call.subject, &callee) &&
           eval_args(r, node->call.args, caller, &call) &&
           jinja_call_value(r, callee, &call, out);
}

static bool eval_builtin(struct run *r, const struct node *node, struct value *out) {
    struct call call = {0};
    const struct builtin *builtin = node->call.builtin;
    if (!builtin)
        return jinja_fail_status(r, OB_ERR_UNSUPPORTED, "No %s named '%.*s' found.",
                                 node->kind == NODE_FILTER ? "filter" : "test",
                                 STR_ARG(text_str(node->call.name)));
    if (!node->call.subject) call.self = r->block;
    else if (!jinja_eval(r, node->call.subject, &call.self)) return false;
    struct value self = call.self;
    if (!eval_args(r, node->call.args, value_of(VALUE_MISSING), &call)) return false;
    call.self = self;
    return jinja_call_builtin(r, builtin, &call, out);
}

static bool eval(struct run *r, const struct node *node, struct value *out) {
    struct value a;
    switch (node->kind) {
    case NODE_CONST: *out = node->constant; return true;
    case NODE_BIG:
        return whole_parse(r, node->whole.digit.p, node->whole.digit.n, node->whole.base, false,
                           out);
    case NODE_NAME: return eval_name(r, node, out);
    case NODE_LIST: case NODE_TUPLE: return eval_list(r, node, out);
    case NODE_DICT: return eval_dict(r, node, out);
    case NODE_CONCAT: return eval_concat(r, node, out);
    case NODE_UNARY: return jinja_eval(r, node->a, &a) && jinja_unary(r, node->op, a, out);
    case NODE_BINARY: return eval_binary(r, node, out);
    case NODE_AND: case NODE_OR: return eval_logic(r, node, out);
    case NODE_COND: return eval_cond(r, node, out);
    case NODE_COMPARE: return eval_compare(r, node, out);
    case NODE_ATTR:
        return jinja_eval(r, node->attr.of, &a) && jinja_attr(r, a, node->attr.name, out);
    case NODE_ITEM: return eval_item(r, node, out);
    case NODE_CALL: return eval_call(r, node, out);
    default: return eval_builtin(r, node, out);
    }
}

bool jinja_eval(struct run *r, const struct node *node, struct value *out) {
    if (!jinja_steps(r, 1) || !jinja_enter(r)) return false;
    bool ok = eval(r, node, out);
    r->level--;
    if (!ok && !r->line) r->line = node->line;
    return ok;
}
