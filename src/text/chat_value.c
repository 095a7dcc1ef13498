/* SPDX-License-Identifier: Apache-2.0
 * chat_value.c: values of parameters that a format writes as text: their types come from the tool's
 * schema, so that "007" stays a string where a string is wanted and becomes a number where not. */
#include "text/chat_loose.h"
#include "text/chat_parse_impl.h"

static const json_t *find_tool(const json_t *tools, struct str name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const json_t *function = json_object_get(tool, "function");
        if (!function) function = tool;
        const json_t *given = json_object_get(function, "name");
        if (json_is_string(given) &&
            str_eq(name, (struct str){json_string_value(given), json_string_length(given)}))
            return function;
    }
    return NULL;
}

bool chat_value_knows(const json_t *tools, struct str tool) {
    return find_tool(tools, tool) != NULL;
}

/* Of "type": a word or a list of them, of which null does not count. */
static enum chat_type type_of(const json_t *type) {
    if (json_is_string(type))
        return strcmp(json_string_value(type), "string") == 0 ? CHAT_TYPE_STRING : CHAT_TYPE_OTHER;
    enum chat_type found = CHAT_TYPE_UNKNOWN;
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *word = json_string_value(json_array_get(type, i));
        if (!word || strcmp(word, "null") == 0) continue;
        if (strcmp(word, "string") != 0) return CHAT_TYPE_OTHER;
        found = CHAT_TYPE_STRING;
    }
    return found;
}

static bool are_strings(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i))) return false;
    return json_array_size(list) > 0;
}

enum chat_type chat_value_type(const json_t *tools, struct str tool, struct str key) {
    const json_t *function = find_tool(tools, tool);
    const json_t *parameters = json_object_get(function, "parameters");
    const json_t *one = json_object_getn(json_object_get(parameters, "properties"), key.p, key.n);
    const json_t *type = json_object_get(one, "type");
    if (!type && are_strings(json_object_get(one, "enum"))) return CHAT_TYPE_STRING;
    return type_of(type);
}

static struct str trimmed(struct str text) {
    while (text.n && match_space(text.p[0])) text.p++, text.n--;
    while (text.n && match_space(text.p[text.n - 1])) text.n--;
    return text;
}

/* As Python would print it; the text ends with the value, so it is given a blank to end before. */
static bool put_loose(struct buf *out, struct str value) {
    struct buf padded = BUF_INIT, made = BUF_INIT;
    size_t at = 0;
    buf_add(&padded, value.p, value.n);
    buf_putc(&padded, ' ');
    bool ok = !padded.failed && loose_value((struct str){padded.p, padded.n}, &at, (struct str){0},
                                            &made) == LOOSE_OK && at == value.n && !made.failed;
    if (ok) buf_add(out, made.p, made.n);
    buf_free(&padded);
    buf_free(&made);
    return ok;
}

static void put_string(struct buf *out, struct str value) {
    buf_putc(out, '"');
    scan_put_string(out, value);
    buf_putc(out, '"');
}

void chat_value_put(struct buf *out, struct str value, enum chat_type type) {
    static const char open[] = "<![CDATA[", close[] = "]]>";
    struct str inside = trimmed(value);
    if (str_starts(inside, open) && str_ends(inside, close) &&
        inside.n >= sizeof open + sizeof close - 2) {
        inside.p += sizeof open - 1;
        inside.n -= sizeof open + sizeof close - 2;
        put_string(out, inside);
    } else if (type != CHAT_TYPE_STRING && scan_is_json(inside)) {
        buf_add(out, inside.p, inside.n);
    } else if (type == CHAT_TYPE_STRING || !put_loose(out, inside)) {
        put_string(out, value);
    }
}
