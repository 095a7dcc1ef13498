/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c: calling things: argument binding, macros, and the tables of the .def lists. */
#include <stdio.h>

#include "text/jinja/run.h"

/* ---- builtins ---- */

/* Takes the next name off a row's parameter list; false at its end. */
static bool next_param(const char **list, struct str *name) {
    while (**list == ' ') ++*list;
    name->p = *list;
    while (**list && **list != ' ') ++*list;
    name->n = (size_t)(*list - name->p);
    return name->n != 0;
}

bool jinja_call_builtin(struct run *r, const struct builtin *builtin, struct call *call,
                        struct value *out) {
    size_t n = 0, used = 0;
    struct str name;
    if (!jinja_steps(r, 1)) return false;
    if (!builtin->params) return builtin->fn(r, call, out);
    for (const char *list = builtin->params; next_param(&list, &name); n++) {
        call->arg[n] = n < call->n ? call->positional[n] : value_of(VALUE_MISSING);
        for (size_t i = 0; i < call->keywords; i++) {
            if (!str_eq(text_str(call->keyword[i].name), name)) continue;
            if (n < call->n)
                return jinja_fail(r, "%s() got multiple values for argument '%.*s'", builtin->name,
                                  STR_ARG(name));
            call->arg[n] = call->keyword[i].value;
            used++;
        }
        if (n < builtin->required && call->arg[n].kind == VALUE_MISSING)
            return jinja_fail(r, "%s() misses the argument '%.*s'", builtin->name, STR_ARG(name));
    }
    if (call->n > n)
        return jinja_fail(r, "%s() takes at most %zu arguments, %zu given", builtin->name, n,
                          call->n);
    if (used < call->keywords)
        return jinja_fail(r, "%s() got an unexpected keyword argument", builtin->name);
    return builtin->fn(r, call, out);
}

bool jinja_call_filter(struct run *r, const struct text *name, struct call *call,
                       struct value *out) {
    const struct builtin *builtin = jinja_filter_find(text_str(name));
    if (builtin) return jinja_call_builtin(r, builtin, call, out);
    return jinja_fail_status(r, OB_ERR_UNSUPPORTED, "No filter named '%.*s' found.",
                             STR_ARG(text_str(name)));
}

bool jinja_call_test(struct run *r, const struct text *name, struct call *call, bool *out) {
    const struct builtin *builtin = jinja_test_find(text_str(name));
    struct value v;
    if (!builtin)
        return jinja_fail_status(r, OB_ERR_UNSUPPORTED, "No test named '%.*s' found.",
                                 STR_ARG(text_str(name)));
    if (!jinja_call_builtin(r, builtin, call, &v)) return false;
    *out = jinja_truth(v);
    return true;
}

/* ---- macros ---- */

static bool take_keyword(const struct call *call, const struct text *name, bool *taken,
                         struct value *out) {
    for (size_t i = 0; i < call->keywords; i++) {
        if (!str_eq(text_str(call->keyword[i].name), text_str(name))) continue;
        *out = call->keyword[i].value;
        taken[i] = true;
        return true;
    }
    return false;
}

static bool bind_params(struct run *r, const struct macro_def *def, const struct call *call,
                        bool *taken) {
    for (size_t i = 0; i < def->n; i++) { /* all first: a default sees only the ones before it */
        const struct param *param = &def->param[i];
        struct value v;
        if (i < call->n) {
            v = call->positional[i];
        } else if (!take_keyword(call, param->name, taken, &v)) {
            if (param->value) {
                if (!jinja_eval(r, param->value, &v)) return false;
            } else {
                char *hint = jinja_alloc(r, 1, 96);
                if (!hint) return false;
                snprintf(hint, 96, "parameter '%.*s' was not provided",
                         (int)(param->name->n > 48 ? 48 : param->name->n), param->name->p);
                if (!jinja_undefined_hint(r, hint, &v)) return false;
            }
        }
        if (!jinja_bind(r, param->symbol, v)) return false;
    }
    return true;
}

/* caller, varargs and kwargs, if the macro reads them; otherwise nothing may be left over. */
static bool bind_rest(struct run *r, const struct macro_def *def, const struct call *call,
                      bool *taken) {
    static const struct text caller_name = TEXT_LITERAL("caller");
    const struct str name = def->name ? text_str(def->name) : STR_LIT("caller");
    struct value v;
    struct list *rest;
    struct dict *named;
    if (def->uses_caller) {
        if (!take_keyword(call, &caller_name, taken, &v) &&
            !jinja_undefined_hint(r, "No caller defined", &v))
            return false;
        if (!jinja_bind(r, SYMBOL_CALLER, v)) return false;
    }
    if (!jinja_dict_new(r, 0, &named) || !jinja_list_new(r, 0, &rest)) return false;
    for (size_t i = 0; i < call->keywords; i++) {
        if (taken[i]) continue;
        if (!def->uses_kwargs)
            return jinja_fail(r, "macro '%.*s' takes no keyword argument '%.*s'", STR_ARG(name),
                              STR_ARG(text_str(call->keyword[i].name)));
        if (!jinja_dict_set(r, named, value_text(call->keyword[i].name), call->keyword[i].value))
            return false;
    }
    if (def->uses_kwargs && !jinja_bind(r, SYMBOL_KWARGS, value_dict(named, false))) return false;
    if (call->n > def->n && !def->uses_varargs)
        return jinja_fail(r, "macro '%.*s' takes not more than %zu argument(s)", STR_ARG(name),
                          def->n);
    for (size_t i = def->n; i < call->n; i++)
        if (!jinja_push(r, rest, call->positional[i])) return false;
    return !def->uses_varargs ||
           jinja_bind(r, SYMBOL_VARARGS, value_list(VALUE_TUPLE, rest, false));
}

static bool call_macro(struct run *r, const struct macro *macro, const struct call *call,
                       struct value *out) {
    struct scope *saved = r->scope;
    if (!jinja_steps(r, macro->def->n * call->keywords / 8)) return false;
    bool *taken = jinja_alloc(r, call->keywords + 1, sizeof *taken);
    r->scope = macro->scope;
    bool ok = taken && jinja_scope_push(r) && bind_params(r, macro->def, call, taken) &&
              bind_rest(r, macro->def, call, taken) && jinja_capture(r) &&
              jinja_exec(r, macro->def->body) != FLOW_FAILED && jinja_captured(r, out);
    r->scope = saved;
    return ok;
}

bool jinja_call_value(struct run *r, struct value callee, const struct call *call,
                      struct value *out) {
    struct call bound = *call;
    bool ok;
    if (!r->depth)
        return jinja_fail_status(r, OB_ERR_LIMIT, "calls nested too deeply (limit: %u)",
                                 r->limits.depth);
    r->depth--;
    switch (callee.kind) {
    case VALUE_MACRO: ok = call_macro(r, callee.macro, call, out); break;
    case VALUE_LOOP: ok = jinja_call_loop(r, callee.loop, call, out); break;
    case VALUE_FUNCTION: ok = jinja_call_builtin(r, callee.builtin, &bound, out); break;
    case VALUE_METHOD:
        bound.self = callee.method->self;
        ok = jinja_call_builtin(r, callee.method->builtin, &bound, out);
        break;
    case VALUE_UNDEFINED: return jinja_fail_undefined(r, callee);
    default: return jinja_fail(r, "'%s' object is not callable", jinja_type_name(callee));
    }
    r->depth++;
    return ok;
}

/* ---- the lists ---- */

#define ROW(name, function, params, required) {#name, function, params, required},
#define FILTER ROW
#define TEST ROW
#define METHOD ROW
#define GLOBAL ROW
static const struct builtin filters[] = {
#include "text/jinja/filters.def"
};
static const struct builtin tests[] = {
#include "text/jinja/tests.def"
};
static const struct builtin methods[] = {
#include "text/jinja/methods.def"
};
static const struct builtin globals[] = {
#include "text/jinja/globals.def"
};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const struct builtin *find(const struct builtin *rows, size_t n, struct str name) {
    for (size_t i = 0; i < n; i++)
        if (str_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

const struct builtin *jinja_filter_find(struct str name) {
    return find(filters, LENGTH(filters), name);
}

/* Operators are tests too, for |select and the like. */
const struct builtin *jinja_test_find(struct str name) {
    static const struct {
        const char *spelling, *name;
    } operators[] = {{"!=", "ne"}, {"<", "lt"}, {"<=", "le"},
                     {"==", "eq"}, {">", "gt"}, {">=", "ge"}};
    for (size_t i = 0; i < LENGTH(operators); i++)
        if (str_is(name, operators[i].spelling)) name = str_of(operators[i].name);
    return find(tests, LENGTH(tests), name);
}

const struct builtin *jinja_method_find(enum value_kind of, struct str name) {
    static const char *const types[VALUE_LOOP + 1] = {
        [VALUE_BOOL] = "int_",     [VALUE_INT] = "int_",    [VALUE_BIG] = "int_",
        [VALUE_FLOAT] = "float_", [VALUE_STRING] = "str_", [VALUE_LIST] = "list_",
        [VALUE_TUPLE] = "tuple_", [VALUE_DICT] = "dict_",
        [VALUE_RANGE] = "range_",   [VALUE_LOOP] = "loop_"};
    for (size_t i = 0; types[of] && i < LENGTH(methods); i++) {
        struct str row = str_of(methods[i].name);
        if (str_starts(row, types[of]) && str_is(name, row.p + strlen(types[of])))
            return &methods[i];
    }
    return NULL;
}

const struct builtin *jinja_global_find(struct str name) {
    return find(globals, LENGTH(globals), name);
}
