/* SPDX-License-Identifier: Apache-2.0
 * tok_hf_cuts.c: the pre-tokenizers of tokenizer.json; see tok_hf_read.h. */
#include "base/error.h"
#include "base/utf8.h"
#include "text/tok_hf_read.h"

static ob_status add(struct hf_reader *r, struct cut cut) {
    r->bytes = false;
    return tok_add_cut(r->tok, cut, r->error);
}

static struct cut by_class(bool (*in)(uint32_t), enum cut_behavior behavior) {
    return (struct cut){.apply = cut_split, .find = cut_find_class, .in = in, .behavior = behavior};
}

/* Spelled as the file does, or as Python shows it. */
static ob_status read_behavior(struct hf_reader *r, const json_t *part, enum cut_behavior *out) {
    static const struct {
        const char *name;
        enum cut_behavior is;
    } names[] = {{"Contiguous", CUT_CONTIGUOUS},
                 {"Isolated", CUT_ISOLATED},
                 {"MergedWithNext", CUT_WITH_NEXT},
                 {"MergedWithPrevious", CUT_WITH_PREVIOUS},
                 {"Removed", CUT_REMOVED}};
    struct str name = hf_str(part, "behavior");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_is(name, names[i].name)) return *out = names[i].is, OB_OK;
    return hf_refuse(r, part, name.n ? name.p : "without a behavior");
}

static ob_status read_bert(struct hf_reader *r, const json_t *part) {
    (void)part;
    r->bytes = false;
    return tok_add_bert_cuts(r->tok, r->error);
}

static ob_status read_byte_level(struct hf_reader *r, const json_t *part) {
    ob_status status = OB_OK;
    if (hf_bool(part, "add_prefix_space", true))
        status = add(r, (struct cut){.apply = cut_prefix, .string = STR_LIT(" ")});
    if (status == OB_OK && hf_bool(part, "use_regex", true))
        status = add(r, (struct cut){.apply = cut_by_rule, .rule = &rule_gpt2});
    if (status == OB_OK) status = add(r, (struct cut){.apply = cut_bytes});
    r->bytes = true;
    return status;
}

static ob_status read_delimiter(struct hf_reader *r, const json_t *part) {
    struct str c = hf_str(part, "delimiter");
    uint32_t code;
    if (c.n == 0 || utf8_decode(c.p, c.n, &code) != c.n)
        return hf_refuse(r, part, "whose delimiter is no character");
    c = hf_keep(r, c);
    if (!c.p) return error_memory(r->error, "pre-tokenizer", 4);
    return add(r, (struct cut){.apply = cut_split, .find = cut_find_string, .string = c,
                               .behavior = CUT_REMOVED});
}

static ob_status read_digits(struct hf_reader *r, const json_t *part) {
    return add(r, by_class(cut_is_number, hf_bool(part, "individual_digits", false)
                                              ? CUT_ISOLATED
                                              : CUT_CONTIGUOUS));
}

static ob_status read_length(struct hf_reader *r, const json_t *part) {
    json_int_t n = json_integer_value(json_object_get(part, "length"));
    if (n <= 0) return hf_refuse(r, part, "without a length");
    return add(r, (struct cut){.apply = cut_length, .length = (size_t)n});
}

static ob_status read_metaspace(struct hf_reader *r, const json_t *part) {
    struct str mark = hf_str(part, "replacement"), scheme = hf_str(part, "prepend_scheme");
    struct cut cut = {.apply = cut_metaspace, .string = hf_keep(r, mark), .prefix = CUT_ALWAYS};
    if (mark.n == 0) return hf_refuse(r, part, "without a replacement");
    if (!cut.string.p) return error_memory(r->error, "pre-tokenizer", mark.n);
    /* Older files have a boolean for the scheme. */
    bool never = scheme.n ? str_is(scheme, "never") : !hf_bool(part, "add_prefix_space", true);
    if (never) cut.prefix = CUT_NEVER;
    else if (str_is(scheme, "first")) cut.prefix = CUT_FIRST;
    else if (scheme.n && !str_is(scheme, "always")) return hf_refuse(r, part, scheme.p);
    cut.behavior = hf_bool(part, "split", true) ? CUT_WITH_NEXT : CUT_ISOLATED;
    return add(r, cut);
}

static ob_status read_punctuation(struct hf_reader *r, const json_t *part) {
    enum cut_behavior behavior = CUT_ISOLATED;
    if (json_object_get(part, "behavior")) {
        ob_status status = read_behavior(r, part, &behavior);
        if (status != OB_OK) return status;
    }
    return add(r, by_class(cut_is_punctuation, behavior));
}

/* The rules of the list stand for the expression where its matches become pieces. */
static ob_status read_split(struct hf_reader *r, const json_t *part) {
    struct str string, regex;
    enum cut_behavior behavior;
    bool invert = hf_bool(part, "invert", false);
    ob_status status = hf_pattern(r, part, &string, &regex);
    if (status == OB_OK) status = read_behavior(r, part, &behavior);
    if (status != OB_OK) return status;
    struct cut cut = {.apply = cut_split, .behavior = behavior, .invert = invert};
    if (string.n) {
        cut.find = cut_find_string;
        cut.string = string;
        return add(r, cut);
    }
    const struct rule *rule = rule_find(regex);
    bool everywhere = rule && rule->next && behavior == CUT_REMOVED && invert;
    if (everywhere || (rule && behavior == CUT_ISOLATED)) {
        status = cut_open_regex(regex, &cut, r->error);
        return status == OB_OK ? add(r, cut) : status;
    }
    cut.find = cut_find_regex;
    status = regex_open(regex, &cut.regex, r->error);
    return status == OB_OK ? add(r, cut) : status;
}

static ob_status read_scripts(struct hf_reader *r, const json_t *part) {
    (void)part;
    return add(r, (struct cut){.apply = cut_scripts});
}

static ob_status read_whitespace(struct hf_reader *r, const json_t *part) {
    (void)part;
    return add(r, (struct cut){.apply = cut_split, .find = cut_find_words, .invert = true,
                               .behavior = CUT_REMOVED});
}

static ob_status read_whitespace_split(struct hf_reader *r, const json_t *part) {
    (void)part;
    return add(r, by_class(cut_is_space, CUT_REMOVED));
}

const struct hf_row hf_pretokenizers[] = {{"BertPreTokenizer", read_bert},
                                          {"ByteLevel", read_byte_level},
                                          {"CharDelimiterSplit", read_delimiter},
                                          {"Digits", read_digits},
                                          {"FixedLength", read_length},
                                          {"Metaspace", read_metaspace},
                                          {"Punctuation", read_punctuation},
                                          {"Split", read_split},
                                          {"UnicodeScripts", read_scripts},
                                          {"Whitespace", read_whitespace},
                                          {"WhitespaceSplit", read_whitespace_split},
                                          {NULL, NULL}};
