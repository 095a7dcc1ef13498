/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c: statements. Scoping follows jinja2: the bodies of for, macro, call, filter, with and of
 * block sets have a scope of their own, if has none; a loop's scope starts empty in every
 * iteration. A loop pulls its elements one by one (its test may read what the body changed in a
 * namespace); loop.last looks one ahead and loop.length pulls the rest. */
#include "text/jinja/run.h"

struct loop {
    const struct node *node;
    struct scope *outer; /* where the loop stands */
    struct cursor cursor;
    struct list *rest; /* pulled ahead of time: [at, n) */
    int64_t index0;    /* -1 before the first */
    int64_t length;    /* -1: not known yet */
    int64_t depth0;
    struct value before, now;
    struct value changed; /* arguments of the last loop.changed, as a tuple */
};

bool jinja_assign(struct run *r, const struct node *target, struct value v) {
    if (target->kind == NODE_NAME) return jinja_bind(r, target->symbol, v);
    if (target->kind == NODE_MEMBER) {
        struct value space;
        if (!jinja_lookup(r, target->ref.symbol, &space)) return false;
        if (space.kind != VALUE_NAMESPACE)
            return jinja_fail(r, "cannot assign attribute on non-namespace object");
        if (target->ref.name->n && target->ref.name->p[0] == '_')
            return jinja_fail(r, "namespace attributes must not start with an underscore");
        return jinja_dict_set(r, space.dict, value_text(target->ref.name), v);
    }
    struct list *items;
    if (v.kind == VALUE_NONE || !jinja_iterable(v))
        return jinja_fail(r, "cannot unpack non-iterable %s object", jinja_type_name(v));
    if (!jinja_elements(r, v, &items)) return false;
    if (items->n != target->items.n)
        return jinja_fail(r, "%s values to unpack (expected %zu)",
                          items->n < target->items.n ? "not enough" : "too many", target->items.n);
    for (size_t i = 0; i < items->n; i++)
        if (!jinja_assign(r, target->items.item[i], items->item[i])) return false;
    return true;
}

/* ---- loops ---- */

/* The next element that passes the loop's test. */
static bool pull_source(struct run *r, struct loop *loop, struct value *out, bool *done) {
    const struct node *node = loop->node;
    for (;;) {
        struct value test;
        if (!jinja_next(r, &loop->cursor, out, done)) return false;
        if (*done || !node->loop.test) return true;
        struct scope *saved = r->scope;
        r->scope = loop->outer;
        bool ok = jinja_scope_push(r) && jinja_assign(r, node->loop.target, *out) &&
                  jinja_eval(r, node->loop.test, &test);
        r->scope = saved;
        if (!ok) return false;
        if (jinja_truth(test)) return true;
    }
}

static bool pull(struct run *r, struct loop *loop, struct value *out, bool *done) {
    if (loop->rest->at == loop->rest->n) return pull_source(r, loop, out, done);
    *out = loop->rest->item[loop->rest->at++];
    *done = false;
    return true;
}

/* The element after the current one; VALUE_MISSING at the end. */
static bool peek(struct run *r, struct loop *loop, struct value *out) {
    bool done = false;
    if (loop->rest->at == loop->rest->n) {
        if (!pull_source(r, loop, out, &done)) return false;
        if (!done && !jinja_push(r, loop->rest, *out)) return false;
    }
    *out = done ? value_of(VALUE_MISSING) : loop->rest->item[loop->rest->at];
    return true;
}

static bool loop_length(struct run *r, struct loop *loop) {
    struct value item;
    bool done;
    if (loop->length >= 0) return true;
    if (loop->cursor.of.kind != VALUE_ITERATOR && !loop->node->loop.test)
        return jinja_length(r, loop->cursor.of, &loop->length);
    for (;;) {
        if (!pull_source(r, loop, &item, &done)) return false;
        if (done) break;
        if (!jinja_push(r, loop->rest, item)) return false;
    }
    loop->length = loop->index0 + 1 + (int64_t)(loop->rest->n - loop->rest->at);
    return true;
}

static bool is_counter(const struct text *name) {
    static const char *const names[] = {"length", "revindex", "revindex0", NULL};
    for (size_t i = 0; names[i]; i++)
        if (text_is(name, names[i])) return true;
    return false;
}

bool jinja_loop_attr(struct run *r, struct loop *loop, const struct text *name,
                     struct value *out) {
    bool data = loop->cursor.of.data;
    int64_t index = loop->index0 + 1;
    if (is_counter(name) && !loop_length(r, loop)) return false;
    if (text_is(name, "index")) *out = value_int(index, false);
    else if (text_is(name, "index0")) *out = value_int(loop->index0, false);
    else if (text_is(name, "first")) *out = value_bool(loop->index0 == 0, false);
    else if (text_is(name, "depth")) *out = value_int(loop->depth0 + 1, false);
    else if (text_is(name, "depth0")) *out = value_int(loop->depth0, false);
    else if (text_is(name, "length")) *out = value_int(loop->length, data);
    else if (text_is(name, "revindex")) *out = value_int(loop->length - loop->index0, data);
    else if (text_is(name, "revindex0")) *out = value_int(loop->length - index, data);
    else if (text_is(name, "last") || text_is(name, "nextitem")) {
        if (!peek(r, loop, out)) return false;
        bool none = out->kind == VALUE_MISSING;
        if (text_is(name, "last")) *out = value_bool(none, data);
        else if (none) return jinja_undefined_hint(r, "there is no next item", out);
    } else if (text_is(name, "previtem")) {
        if (loop->index0 == 0) return jinja_undefined_hint(r, "there is no previous item", out);
        *out = loop->before;
    } else {
        const struct builtin *builtin = jinja_method_find(VALUE_LOOP, text_str(name));
        struct method *method = builtin ? jinja_alloc(r, 1, sizeof *method) : NULL;
        if (!builtin) return true;
        if (!method) return false;
        method->self = value_of(VALUE_LOOP);
        method->self.loop = loop;
        method->builtin = builtin;
        *out = value_of(VALUE_METHOD);
        out->method = method;
    }
    return true;
}

bool method_loop_cycle(struct run *r, const struct call *call, struct value *out) {
    if (!call->n) return jinja_fail(r, "no items for cycling given");
    *out = call->positional[(size_t)call->self.loop->index0 % call->n];
    return true;
}

bool method_loop_changed(struct run *r, const struct call *call, struct value *out) {
    struct loop *loop = call->self.loop;
    struct list *list;
    bool same = false;
    if (!jinja_list_new(r, call->n, &list)) return false;
    for (; list->n < call->n; list->n++) list->item[list->n] = call->positional[list->n];
    struct value now = value_list(VALUE_TUPLE, list, false);
    if (!jinja_equal(r, loop->changed, now, &same)) return false;
    if (!same) loop->changed = now;
    *out = value_bool(!same, true);
    return true;
}

static enum flow run_loop(struct run *r, const struct node *node, struct scope *outer,
                          struct value of, int64_t depth0) {
    struct loop *loop = jinja_alloc(r, 1, sizeof *loop);
    struct value self = value_of(VALUE_LOOP), item;
    bool done = false, any = false;
    if (!loop) return FLOW_FAILED;
    *loop = (struct loop){.node = node, .outer = outer, .index0 = -1, .length = -1,
                          .depth0 = depth0};
    self.loop = loop;
    if (!jinja_cursor(r, of, &loop->cursor) || !jinja_list_new(r, 0, &loop->rest))
        return FLOW_FAILED;
    struct scope *saved = r->scope;
    enum flow flow = FLOW_NEXT;
    r->scope = outer;
    if (!jinja_scope_push(r)) return FLOW_FAILED;
    while (flow != FLOW_BREAK) {
        if (!pull(r, loop, &item, &done)) return FLOW_FAILED;
        if (done) break;
        any = true;
        loop->index0++;
        loop->before = loop->now;
        loop->now = item;
        r->scope->n = 0;
        if (!jinja_bind(r, SYMBOL_LOOP, self) || !jinja_assign(r, node->loop.target, item))
            return FLOW_FAILED;
        flow = jinja_exec(r, node->loop.body);
        if (flow == FLOW_FAILED) return flow;
    }
    r->scope = outer;
    if (!any && node->loop.otherwise) {
        if (!jinja_scope_push(r)) return FLOW_FAILED;
        flow = jinja_exec(r, node->loop.otherwise);
    }
    r->scope = saved;
    return flow == FLOW_BREAK && any ? FLOW_NEXT : flow == FLOW_CONTINUE && any ? FLOW_NEXT : flow;
}

static enum flow exec_for(struct run *r, const struct node *node) {
    struct value of;
    if (!jinja_eval(r, node->loop.iter, &of)) return FLOW_FAILED;
    return run_loop(r, node, r->scope, of, 0);
}

/* loop(items) in a recursive loop: the text of the loop over them. */
bool jinja_call_loop(struct run *r, struct loop *loop, const struct call *call,
                     struct value *out) {
    if (!loop->node->loop.recursive)
        return jinja_fail(r, "the loop must have the 'recursive' marker to be called recursively");
    if (call->n != 1 || call->keywords) return jinja_fail(r, "loop() takes one argument");
    if (!jinja_capture(r)) return false;
    enum flow flow = run_loop(r, loop->node, loop->outer, call->positional[0], loop->depth0 + 1);
    return flow != FLOW_FAILED && jinja_captured(r, out);
}

/* ---- the other statements ---- */

static enum flow exec_body(struct run *r, const struct node *node) {
    for (size_t i = 0; i < node->items.n; i++) {
        enum flow flow = jinja_exec(r, node->items.item[i]);
        if (flow != FLOW_NEXT) return flow;
    }
    return FLOW_NEXT;
}

static enum flow exec_output(struct run *r, const struct node *node) {
    struct value v;
    for (size_t i = 0; i < node->items.n; i++)
        if (!jinja_eval(r, node->items.item[i], &v) || !jinja_put_value(r, v)) return FLOW_FAILED;
    return FLOW_NEXT;
}

static enum flow exec_if(struct run *r, const struct node *node) {
    struct value v;
    for (size_t i = 0; i < node->branch.test.n; i++) {
        if (!jinja_eval(r, node->branch.test.item[i], &v)) return FLOW_FAILED;
        if (jinja_truth(v)) return jinja_exec(r, node->branch.body.item[i]);
    }
    return node->branch.otherwise ? jinja_exec(r, node->branch.otherwise) : FLOW_NEXT;
}

static enum flow exec_set(struct run *r, const struct node *node) {
    struct value v;
    return jinja_eval(r, node->b, &v) && jinja_assign(r, node->a, v) ? FLOW_NEXT : FLOW_FAILED;
}

/* A body in a scope of its own. */
static enum flow exec_inner(struct run *r, const struct node *body) {
    struct scope *saved = r->scope;
    if (!jinja_scope_push(r)) return FLOW_FAILED;
    enum flow flow = jinja_exec(r, body);
    r->scope = saved;
    return flow;
}

/* The text of a body, through a filter if there is one. A jump out of the body drops the text. */
static enum flow capture(struct run *r, const struct node *body, const struct node *filter,
                         struct value *out) {
    struct scope *saved = r->scope;
    if (!jinja_capture(r) || !jinja_scope_push(r)) return FLOW_FAILED;
    enum flow flow = jinja_exec(r, body);
    if (flow == FLOW_BREAK || flow == FLOW_CONTINUE) jinja_drop(r);
    if (flow == FLOW_NEXT) {
        if (!jinja_captured(r, out)) return FLOW_FAILED;
        struct value outer = r->block;
        r->block = *out;
        if (filter && !jinja_eval(r, filter, out)) return FLOW_FAILED;
        r->block = outer;
    }
    r->scope = saved;
    return flow;
}

static enum flow exec_set_block(struct run *r, const struct node *node) {
    struct value v;
    enum flow flow = capture(r, node->b, node->c, &v);
    if (flow != FLOW_NEXT) return flow;
    return jinja_assign(r, node->a, v) ? FLOW_NEXT : FLOW_FAILED;
}

static enum flow exec_filter_block(struct run *r, const struct node *node) {
    struct value v;
    enum flow flow = capture(r, node->a, node->b, &v);
    if (flow != FLOW_NEXT) return flow;
    return jinja_put_value(r, v) ? FLOW_NEXT : FLOW_FAILED;
}

static enum flow exec_with(struct run *r, const struct node *node) {
    struct scope *saved = r->scope, *inner = jinja_scope_push(r);
    struct value v;
    if (!inner) return FLOW_FAILED;
    for (size_t i = 0; i < node->with.items.n; i += 2) {
        r->scope = saved; /* the values do not see each other */
        if (!jinja_eval(r, node->with.items.item[i + 1], &v)) return FLOW_FAILED;
        r->scope = inner;
        if (!jinja_assign(r, node->with.items.item[i], v)) return FLOW_FAILED;
    }
    r->scope = inner;
    enum flow flow = jinja_exec(r, node->with.body);
    r->scope = saved;
    return flow;
}

static bool new_macro(struct run *r, const struct macro_def *def, struct value *out) {
    struct macro *macro = jinja_alloc(r, 1, sizeof *macro);
    if (!macro) return false;
    *macro = (struct macro){def, r->scope};
    *out = value_of(VALUE_MACRO);
    out->macro = macro;
    return true;
}

static enum flow exec_macro(struct run *r, const struct node *node) {
    struct value v;
    return new_macro(r, node->macro.def, &v) && jinja_bind(r, node->macro.symbol, v) ? FLOW_NEXT
                                                                                    : FLOW_FAILED;
}

static enum flow exec_call_block(struct run *r, const struct node *node) {
    struct value caller, v, outer = r->caller;
    if (!new_macro(r, node->macro.def, &caller)) return FLOW_FAILED;
    r->caller = caller; /* taken by the call that is evaluated next */
    bool ok = jinja_eval(r, node->macro.call, &v);
    r->caller = outer;
    return ok && jinja_put_value(r, v) ? FLOW_NEXT : FLOW_FAILED;
}

/* A block sees the top level's names only. */
static enum flow exec_block(struct run *r, const struct node *node) {
    struct scope *saved = r->scope;
    r->scope = r->root;
    enum flow flow = exec_inner(r, node->a);
    r->scope = saved;
    return flow;
}

static enum flow exec(struct run *r, const struct node *node) {
    switch (node->kind) {
    case NODE_BODY: return exec_body(r, node);
    case NODE_OUTPUT: return exec_output(r, node);
    case NODE_FOR: return exec_for(r, node);
    case NODE_IF: return exec_if(r, node);
    case NODE_SET: return exec_set(r, node);
    case NODE_SET_BLOCK: return exec_set_block(r, node);
    case NODE_MACRO: return exec_macro(r, node);
    case NODE_CALL_BLOCK: return exec_call_block(r, node);
    case NODE_FILTER_BLOCK: return exec_filter_block(r, node);
    case NODE_WITH: return exec_with(r, node);
    case NODE_SCOPE: return exec_inner(r, node->a);
    case NODE_BLOCK: return exec_block(r, node);
    case NODE_BREAK: return FLOW_BREAK;
    default: return FLOW_CONTINUE;
    }
}

enum flow jinja_exec(struct run *r, const struct node *node) {
    if (!jinja_steps(r, 1) || !jinja_enter(r)) return FLOW_FAILED;
    enum flow flow = exec(r, node);
    r->level--;
    if (flow == FLOW_FAILED && !r->line) r->line = node->line;
    return flow;
}
