/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: one render: its limits, memory, output, scopes, and what the evaluator's files call of
 * each other. Functions returning bool return false when the render has failed; the reason is in
 * the run and everybody just returns. Memory of a render is freed at its end only. */
#ifndef TEXT_JINJA_RUN_H
#define TEXT_JINJA_RUN_H

#include "base/arena.h"
#include "base/buf.h"
#include "text/jinja/ast.h"
#include "text/jinja/builtin.h"
#include "text/jinja/whole.h"

/* Nesting of the evaluator's own recursion, whatever the template: bounds the C stack. */
enum { RUN_LEVELS = 2000 };

struct binding {
    uint32_t symbol;
    struct value value;
};

struct scope {
    struct scope *parent;
    struct binding *binding;
    size_t n, cap;
};

/* A macro and the scope it was defined in. */
struct macro {
    const struct macro_def *def;
    struct scope *scope;
};

/* Text being produced: the output, or what a macro, set or filter block captures. */
struct sink {
    struct buf text, trust;
};

struct run {
    const struct jinja *jinja;
    struct value *global; /* by symbol */
    struct scope *scope, *root;
    struct value block;  /* the text that a filter without a subject takes */
    struct value caller; /* of the call block being entered, for the next call */

    struct arena arena;
    struct { /* where texts are made; the last one can grow in place */
        char *p;
        uint8_t *trust;
        size_t used, cap;
    } store;
    struct jinja_limits limits; /* none is 0 */
    size_t memory, steps;       /* left */
    unsigned depth;             /* calls left */
    unsigned level;

    struct sink *sink;
    size_t sinks, sinks_cap, sinks_made;

    double now;

    ob_status status;
    uint32_t line;
    char message[400];
};

/* ---- limits and errors (run.c) ---- */
/* A TypeError and the like: what the template does with these values does not work. */
bool jinja_fail(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool jinja_fail_status(struct run *r, ob_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool jinja_steps(struct run *r, size_t n);
bool jinja_fail_memory(struct run *r); /* the limit, not the machine's */
/* Work on n bytes. */
static inline bool jinja_steps_bytes(struct run *r, size_t n) { return jinja_steps(r, n / 64 + 1); }
bool jinja_enter(struct run *r); /* r->level-- to leave */
/* Zeroed and accounted. */
void *jinja_alloc(struct run *r, size_t count, size_t size);

/* ---- text (text.c) ---- */
/* A text of n bytes to be filled in. */
bool jinja_text_new(struct run *r, size_t n, struct text **out, char **p, uint8_t **trust);
bool jinja_text_copy(struct run *r, struct text slice, struct value *out); /* shares the bytes */
bool jinja_text_literal(struct run *r, const char *s, bool trusted, struct value *out);
bool jinja_concat(struct run *r, const struct text *a, const struct text *b, struct value *out);
/* Output of n bytes, all of one provenance; of a text; of printf. */
bool jinja_put(struct run *r, const char *p, size_t n, bool trusted);
bool jinja_put_text(struct run *r, const struct text *t);
bool jinja_put_slice(struct run *r, const struct text *t, size_t from, size_t n);
bool jinja_put_code(struct run *r, uint32_t code, bool trusted);
bool jinja_capture(struct run *r);                             /* opens a sink */
bool jinja_captured(struct run *r, struct value *out);         /* closes it */
void jinja_drop(struct run *r);                                /* closes it, without the text */
/* Byte offset of character `at` counting from byte `from`; t->n if there are fewer. */
size_t jinja_offset(const struct text *t, size_t from, size_t at);
/* First occurrence at or after byte `from`, in linear time; SIZE_MAX if there is none. */
size_t jinja_find(const struct text *t, const struct text *what, size_t from);

/* ---- printing (print.c) ---- */
bool jinja_put_value(struct run *r, struct value v); /* str(v) */
bool jinja_put_repr(struct run *r, struct value v);
bool jinja_to_text(struct run *r, struct value v, const struct text **out); /* str(v) */
struct json_style {
    const struct text *item, *key; /* separators; NULL: the usual ones */
    const struct text *indent;     /* NULL: one line */
    bool ascii, sort;
};
bool jinja_put_json(struct run *r, struct value v, const struct json_style *style);
/* Python's repr of a float; returns out. */
enum { FLOAT_TEXT = 40 };
const char *jinja_float_text(double f, char out[FLOAT_TEXT]);

/* ---- formatting (format.c) ---- */
bool jinja_percent(struct run *r, const struct text *format, struct value args, struct value *out);

/* ---- values (value.c) ---- */
const char *jinja_type_name(struct value v); /* Python's: "str", "dict", ... */
bool jinja_truth(struct value v);
bool jinja_equal(struct run *r, struct value a, struct value b, bool *out);
/* Ordering for sort and comparison operators; `op` names the operator in the error. */
bool jinja_less(struct run *r, struct value a, struct value b, const char *op, bool *out);
bool jinja_hash(struct run *r, struct value v, uint64_t *out);
bool jinja_length(struct run *r, struct value v, int64_t *out);
bool jinja_contains(struct run *r, struct value item, struct value in, bool *out);
struct value jinja_range_at(const struct range *range, size_t i, bool data);

struct cursor {
    struct value of;
    size_t at;
};
bool jinja_iterable(struct value v);
bool jinja_cursor(struct run *r, struct value of, struct cursor *out); /* fails if not iterable */
bool jinja_next(struct run *r, struct cursor *cursor, struct value *out, bool *done);
/* All elements as a list; shared with v where v is one. */
bool jinja_elements(struct run *r, struct value v, struct list **out);

bool jinja_list_new(struct run *r, size_t cap, struct list **out);
bool jinja_push(struct run *r, struct list *list, struct value v);
bool jinja_pair(struct run *r, struct value a, struct value b, struct value *out); /* a tuple */
bool jinja_dict_new(struct run *r, size_t cap, struct dict **out);
bool jinja_dict_set(struct run *r, struct dict *dict, struct value key, struct value v);
/* *out is VALUE_MISSING if there is no such key. */
bool jinja_dict_get(struct run *r, const struct dict *dict, struct value key, struct value *out);
bool jinja_dict_get_text(struct run *r, const struct dict *dict, const struct text *key,
                         struct value *out);
/* Sorts by key, stable. */
bool jinja_sort(struct run *r, struct pair *pair, size_t n, bool reverse);
/* The member at the path "a.b.0", as attribute= arguments have it (filters_seq.c). */
bool jinja_path(struct run *r, struct value item, struct value path, struct value missing,
                struct value *out);
bool jinja_from_json(struct run *r, const json_t *json, bool trusted, struct value *out);

/* ---- operators and members (op.c) ---- */
bool jinja_binary(struct run *r, enum node_op op, struct value a, struct value b,
                  struct value *out);
bool jinja_unary(struct run *r, enum node_op op, struct value a, struct value *out);
bool jinja_compare(struct run *r, enum node_op op, struct value a, struct value b, bool *out);
bool jinja_attr(struct run *r, struct value of, const struct text *name, struct value *out);
bool jinja_item(struct run *r, struct value of, struct value key, struct value *out);
/* part: start, stop, step; VALUE_NONE where absent. */
bool jinja_slice(struct run *r, struct value of, const struct value part[3], struct value *out);
bool jinja_undefined(struct run *r, uint8_t of, const struct text *name, struct value *out);
bool jinja_undefined_hint(struct run *r, const char *hint, struct value *out);
/* Fails with the reason why v is undefined. */
bool jinja_fail_undefined(struct run *r, struct value v);

/* ---- evaluation (eval.c, call.c, exec.c) ---- */
bool jinja_eval(struct run *r, const struct node *node, struct value *out);
bool jinja_call_value(struct run *r, struct value callee, const struct call *call,
                      struct value *out);
bool jinja_call_builtin(struct run *r, const struct builtin *builtin, struct call *call,
                        struct value *out);
/* By name, as |map and |select do. */
bool jinja_call_filter(struct run *r, const struct text *name, struct call *call,
                       struct value *out);
bool jinja_call_test(struct run *r, const struct text *name, struct call *call, bool *out);
bool jinja_call_loop(struct run *r, struct loop *loop, const struct call *call, struct value *out);
bool jinja_loop_attr(struct run *r, struct loop *loop, const struct text *name, struct value *out);

enum flow { FLOW_FAILED, FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };
enum flow jinja_exec(struct run *r, const struct node *node);

struct scope *jinja_scope_push(struct run *r); /* NULL: failed. r->scope = scope->parent to leave */
bool jinja_bind(struct run *r, uint32_t symbol, struct value v); /* in the innermost scope */
bool jinja_lookup(struct run *r, uint32_t symbol, struct value *out);
bool jinja_assign(struct run *r, const struct node *target, struct value v);

#endif
