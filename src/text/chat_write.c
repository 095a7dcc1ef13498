/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_write.c: calls as the format has them (struct chat_write), as expressions of a grammar. A
 * value that stands between tags is a string as it is where the parser will take it for one
 * (chat_value.c), else JSON in which no tag can begin. */
#include "text/chat_write.h"

#include "base/error.h"
#include "sample/schema/list.h"

enum { CONTROL_MOST = 64 }; /* bytes of a control token's text */

/* ---- errors ---------------------------------------------------------------------------------- */

/* At "tools[2].function" and `at`. Keeps the first. */
static grammar_expr refuse(struct writer *w, ob_status status, const char *at, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
static grammar_expr refuse(struct writer *w, ob_status status, const char *at, const char *format,
                           ...) {
    char where[128], line[512];
    va_list list;
    if (w->status != OB_OK) return grammar_nothing(w->b);
    const json_t *tool = json_array_get(w->options->tools, w->tool);
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    w->status = error_set(w->error, status, "%s", line);
    snprintf(where, sizeof where, "tools[%zu]%s%.90s", w->tool,
             chat_choice_function(tool) == tool ? "" : ".function", at);
    error_at(w->error, NULL, where, OB_NO_OFFSET);
    return grammar_nothing(w->b);
}

static grammar_expr no_memory(struct writer *w) {
    if (w->status == OB_OK) w->status = error_memory(w->error, "a grammar", 0);
    return grammar_nothing(w->b);
}

/* ---- text ------------------------------------------------------------------------------------ */

int32_t write_control(const struct writer *w, struct str text, size_t *n, bool *ends) {
    const struct chat_tokens *tokens = w->options->tokens;
    *n = text.n < CONTROL_MOST ? text.n : CONTROL_MOST;
    for (; tokens && *n > 1; --*n) {
        int32_t id = tokens->control(tokens->user, (struct str){text.p, *n}, ends);
        if (id >= 0) return id;
    }
    return -1;
}

grammar_expr write_text(struct writer *w, struct str text) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    size_t from = 0, n;
    bool ends = false;
    if (!text.p) text.p = "";
    for (size_t i = 0; i < text.n;) {
        int32_t id = write_control(w, (struct str){text.p + i, text.n - i}, &n, &ends);
        if (id < 0) {
            i++;
            continue;
        }
        *(grammar_expr *)list_add(&parts) =
            grammar_text(w->b, (struct str){text.p + from, i - from});
        /* What ends an answer is allowed where it is whole, by itself. */
        if (!ends) *(grammar_expr *)list_add(&parts) = grammar_token(w->b, id, false);
        from = i += n;
    }
    *(grammar_expr *)list_add(&parts) =
        grammar_text(w->b, (struct str){text.p + from, text.n - from});
    grammar_expr out = parts.failed ? no_memory(w) : grammar_seq(w->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What is valid for `schema`, which stands in the tool's "parameters". */
static grammar_expr value_expr(struct writer *w, const json_t *schema, const char *type,
                               struct schema_spelling spelling) {
    const json_t *parameters = json_object_get(w->function, "parameters");
    struct schema_options options = {.spelling = spelling, .root = parameters, .type = type,
                                     .compact = w->options->compact, .open = w->options->open};
    grammar_expr out = 0;
    ob_error error;
    ob_status s = w->status == OB_OK ? schema_json_expr(w->b, schema, &options, &out, &error)
                                     : w->status;
    if (s == OB_OK) return out;
    if (w->status == OB_OK) {
        char at[128];
        snprintf(at, sizeof at, ".parameters%s%.90s", error.where[0] ? "#" : "", error.where);
        refuse(w, s, at, "%s", error.message);
    }
    return grammar_nothing(w->b);
}

/* All arguments together, an object. */
static grammar_expr object_expr(struct writer *w, struct schema_spelling spelling) {
    const json_t *parameters = json_object_get(w->function, "parameters");
    if (parameters && !json_is_null(parameters))
        return value_expr(w, parameters, "object", spelling);
    json_t *none = json_pack("{s:s, s:{}}", "type", "object", "properties");
    if (!none) return no_memory(w);
    grammar_expr out = value_expr(w, none, NULL, spelling);
    json_decref(none);
    return out;
}

/* ---- arguments one by one -------------------------------------------------------------------- */

/* What Kimi calls a value's type. */
static const char *type_word(const json_t *schema) {
    const json_t *type = json_object_get(schema, "type");
    const char *word = json_is_string(type) ? json_string_value(type) : "object";
    return strcmp(word, "integer") == 0 ? "number" : word;
}

/* The text where the parser takes a value to end. */
static const char *value_end(struct writer *w) {
    const char *at = strstr(w->options->format->parameter, "%V") + 2;
    snprintf(w->end, sizeof w->end, "%.*s", (int)strcspn(at, "%"), at);
    return w->end;
}

static grammar_expr tagged(struct writer *w, const char *name, const json_t *schema) {
    struct str tool = str_of(json_string_value(json_object_get(w->function, "name")));
    bool string = chat_value_type(w->options->tools, tool, str_of(name)) == CHAT_TYPE_STRING;
    bool truths = strstr(w->write->parameter, "string=\"") != NULL;
    struct schema_spelling raw = {SCHEMA_RAW, "", value_end(w)};
    struct schema_spelling marked = {.kind = SCHEMA_MARKED};
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    for (const char *at = w->write->parameter; *at && w->status == OB_OK;) {
        size_t n = strcspn(at, "%");
        if (n) *(grammar_expr *)list_add(&parts) = write_text(w, (struct str){at, n});
        at += n;
        if (!*at) break;
        grammar_expr e = 0;
        if (at[1] == 'K') e = grammar_text(w->b, str_of(name));
        else if (at[1] == 'V')
            e = value_expr(w, schema, string ? "string" : NULL, string ? raw : marked);
        else
            e = write_text(w, str_of(truths ? string ? "true" : "false"
                                            : string ? "string" : type_word(schema)));
        *(grammar_expr *)list_add(&parts) = e;
        at += 2;
    }
    grammar_expr out = parts.failed ? no_memory(w) : grammar_seq(w->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

static grammar_expr keyword_argument(struct writer *w, const char *name, const json_t *schema) {
    struct schema_spelling python = {.kind = SCHEMA_PYTHON};
    grammar_expr seq[] = {grammar_text(w->b, str_of(name)), grammar_text(w->b, STR_LIT("=")),
                          value_expr(w, schema, NULL, python)};
    return grammar_seq(w->b, seq, 3);
}

/* Names that the parser reads back. */
static bool is_plain(const char *name) {
    if (!*name || strlen(name) > 200) return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= '0' && *name <= '9') || strchr("_-.", *name)))
            return false;
    return true;
}

static bool is_required(const json_t *parameters, const char *name) {
    const json_t *list = json_object_get(parameters, "required");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *one = json_string_value(json_array_get(list, i));
        if (one && strcmp(one, name) == 0) return true;
    }
    return false;
}

/* Keywords that leave each argument to its own schema. */
static bool check_separate(struct writer *w, const json_t *parameters) {
    static const char *const fine[] = {"type", "properties", "required", "additionalProperties",
                                       "title", "description", "$schema", "$id", "$defs",
                                       "definitions", "$comment", "default", "examples", "strict"};
    const json_t *properties = json_object_get(parameters, "properties");
    const json_t *type = json_object_get(parameters, "type");
    const json_t *required = json_object_get(parameters, "required");
    const char *key;
    json_t *value;
    char at[96];
    json_object_foreach((json_t *)(uintptr_t)parameters, key, value) {
        size_t i = 0, n = sizeof fine / sizeof fine[0];
        while (i < n && strcmp(fine[i], key) != 0) i++;
        if (i < n || strncmp(key, "x-", 2) == 0) continue;
        snprintf(at, sizeof at, ".parameters#/%.60s", key);
        refuse(w, OB_ERR_ARGUMENT, at,
               "is not supported there: the model's tool format (%s) writes arguments one by one",
               w->options->format->name);
        return false;
    }
    if ((parameters && !json_is_object(parameters) && !json_is_null(parameters) &&
         !json_is_true(parameters)) ||
        (type && (!json_is_string(type) || strcmp(json_string_value(type), "object") != 0)) ||
        (properties && !json_is_object(properties)) || (required && !json_is_array(required))) {
        refuse(w, OB_ERR_ARGUMENT, ".parameters", "must be the schema of an object");
        return false;
    }
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *one = json_string_value(json_array_get(required, i));
        if (one && json_object_get(properties, one)) continue;
        refuse(w, OB_ERR_ARGUMENT, ".parameters#/required",
               "names \"%.60s\", which is not in \"properties\"", one ? one : "");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)properties, key, value) {
        snprintf(at, sizeof at, ".parameters#/properties/%.40s", key);
        if (!json_is_object(value) && !json_is_boolean(value)) {
            refuse(w, OB_ERR_ARGUMENT, at, "a schema must be an object, true or false");
            return false;
        }
        if (is_plain(key)) continue;
        refuse(w, OB_ERR_ARGUMENT, at,
               "has a character in its name that the model's tool format (%s) cannot write",
               w->options->format->name);
        return false;
    }
    return true;
}

/* From the last to the first: `tail` may follow an argument that is there, `head` comes first. */
static grammar_expr separate(struct writer *w, const char *separator,
                             grammar_expr (*one)(struct writer *, const char *, const json_t *)) {
    const json_t *parameters = json_object_get(w->function, "parameters");
    json_t *properties = json_object_get(parameters, "properties"), *schema;
    size_t n = json_object_size(properties), i = 0;
    const char *name;
    struct member { const char *name; const json_t *schema; } *m = calloc(n + 1, sizeof *m);
    grammar_expr tail = grammar_empty(w->b), head = grammar_nothing(w->b);
    bool may_be_empty = true;
    if (!m) return no_memory(w);
    if (!check_separate(w, parameters)) n = 0;
    else json_object_foreach(properties, name, schema) m[i++] = (struct member){name, schema};
    for (i = n; i-- > 0;) {
        bool required = is_required(parameters, m[i].name);
        grammar_rule rule = grammar_rule_new(w->b, "an argument"), rest;
        grammar_expr body = one(w, m[i].name, m[i].schema);
        if (w->status != OB_OK || grammar_builder_failed(w->b)) break;
        grammar_define(w->b, rule, body);
        grammar_expr first[] = {grammar_use(w->b, rule), tail};
        grammar_expr next[] = {grammar_text(w->b, str_of(separator)), grammar_use(w->b, rule)};
        grammar_expr here = grammar_seq(w->b, first, 2), more = grammar_seq(w->b, next, 2);
        head = required ? here : grammar_alt(w->b, (grammar_expr[]){here, head}, 2);
        if (!required) more = grammar_repeat(w->b, more, 0, 1);
        rest = grammar_rule_new(w->b, "arguments");
        grammar_expr both = grammar_seq(w->b, (grammar_expr[]){more, tail}, 2);
        if (grammar_builder_failed(w->b)) break;
        grammar_define(w->b, rest, both);
        tail = grammar_use(w->b, rest);
        may_be_empty &= !required;
    }
    free(m);
    return may_be_empty ? grammar_repeat(w->b, head, 0, 1) : head;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static grammar_expr ascii(struct writer *w, const char *ranges, uint32_t min, uint32_t max) {
    struct grammar_range range[4];
    size_t n = 0;
    for (; ranges[2 * n]; n++)
        range[n] = (struct grammar_range){(unsigned char)ranges[2 * n],
                                          (unsigned char)ranges[2 * n + 1]};
    return grammar_repeat(w->b, grammar_class(w->b, range, n, false), min, max);
}

static grammar_expr operation(struct writer *w, char name) {
    const char *tool = json_string_value(json_object_get(w->function, "name"));
    struct grammar_builder *b = w->b;
    switch (name) {
    case 'N': return grammar_text(b, str_of(tool));
    case 'J': return object_expr(w, (struct schema_spelling){0});
    case 'G':
        return object_expr(w, (struct schema_spelling){SCHEMA_RAW, w->options->format->quote,
                                                       w->options->format->quote});
    case 'P': return separate(w, "", tagged);
    case 'I': return ascii(w, "09AZaz", 9, 9);
    case '#': {
        grammar_expr first[] = {ascii(w, "19", 1, 1), ascii(w, "09", 0, 1)};
        return grammar_alt(b, (grammar_expr[]){grammar_text(b, STR_LIT("0")),
                                               grammar_seq(b, first, 2)}, 2);
    }
    default: { /* 'Y' */
        grammar_expr seq[] = {grammar_text(b, STR_LIT("(")), separate(w, ", ", keyword_argument),
                              grammar_text(b, STR_LIT(")"))};
        return grammar_seq(b, seq, 3);
    }
    }
}

/* A call of the tool at hand. */
static grammar_expr call_expr(struct writer *w) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    const char *name = json_string_value(json_object_get(w->function, "name"));
    bool python = strstr(w->write->call, "%Y") != NULL;
    if (!name || !is_plain(name) || (python && (str_ends(str_of(name), ".call") ||
                                                !(name[0] == '_' || (name[0] | 32) >= 'a'))))
        return refuse(w, OB_ERR_ARGUMENT, ".name", "must be letters, digits, \"_\", \"-\" or \".\""
                      " and begin with a letter, if a call is to be held to a grammar");
    for (const char *at = w->write->call; *at && w->status == OB_OK;) {
        size_t n = strcspn(at, "%");
        if (n) *(grammar_expr *)list_add(&parts) = write_text(w, (struct str){at, n});
        at += n;
        if (!*at) break;
        grammar_expr e = operation(w, at[1]);
        *(grammar_expr *)list_add(&parts) = e;
        at += 2;
    }
    grammar_expr out = parts.failed ? no_memory(w) : grammar_seq(w->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

grammar_expr write_calls(struct writer *w) {
    const struct chat_grammar_options *o = w->options;
    const struct chat_write *write = w->write;
    struct list calls = LIST_INIT(sizeof(grammar_expr));
    for (w->tool = 0; w->tool < json_array_size(o->tools) && w->status == OB_OK; w->tool++) {
        w->function = chat_choice_function(json_array_get(o->tools, w->tool));
        const char *name = json_string_value(json_object_get(w->function, "name"));
        if (o->choice.name.n && !(name && str_is(o->choice.name, name))) continue;
        *(grammar_expr *)list_add(&calls) = call_expr(w);
    }
    grammar_rule rule = grammar_rule_new(w->b, "a call");
    if (calls.failed) no_memory(w);
    grammar_expr any = calls.n && !calls.failed && !grammar_builder_failed(w->b)
                           ? grammar_alt(w->b, calls.p, calls.n) : grammar_nothing(w->b);
    list_free(&calls);
    if (w->status != OB_OK || grammar_builder_failed(w->b)) return grammar_nothing(w->b);
    grammar_define(w->b, rule, any);
    grammar_expr more[] = {write_text(w, str_of(write->between)), grammar_use(w->b, rule)};
    bool single = o->choice.single || write->single;
    grammar_expr seq[] = {
        write_text(w, str_of(write->before)), grammar_use(w->b, rule),
        single ? grammar_empty(w->b)
               : grammar_repeat(w->b, grammar_seq(w->b, more, 2), 0, GRAMMAR_NO_LIMIT),
        write_text(w, str_of(write->after))};
    return grammar_seq(w->b, seq, 4);
}
