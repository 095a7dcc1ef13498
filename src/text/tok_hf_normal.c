/* SPDX-License-Identifier: Apache-2.0
 * tok_hf_normal.c: the normalizers of tokenizer.json; see tok_hf_read.h. */
#include "base/error.h"
#include "text/tok_charsmap.h"
#include "text/tok_hf_read.h"

#define NOTHING ((struct str){"", 0})

static ob_status add(struct hf_reader *r, normal_fn *apply) {
    return hf_step(r, apply, NOTHING, NOTHING);
}

/* strip_accents: null is "as lowercase". */
static ob_status read_bert(struct hf_reader *r, const json_t *part) {
    bool lower = hf_bool(part, "lowercase", true);
    const struct {
        bool on;
        normal_fn *apply;
    } steps[] = {{hf_bool(part, "clean_text", true), normal_bert_clean},
                 {hf_bool(part, "handle_chinese_chars", true), normal_bert_chinese},
                 {hf_bool(part, "strip_accents", lower), normal_bert_strip},
                 {lower, normal_bert_lower}};
    ob_status status = OB_OK;
    for (size_t i = 0; i < 4 && status == OB_OK; i++)
        if (steps[i].on) status = add(r, steps[i].apply);
    return status;
}

#define SIMPLE(name, apply)                                          \
    static ob_status name(struct hf_reader *r, const json_t *part) { \
        (void)part;                                                  \
        return add(r, apply);                                        \
    }
SIMPLE(read_bytes, normal_bytes)
SIMPLE(read_lowercase, normal_bert_lower)
SIMPLE(read_nfc, normal_nfc)
SIMPLE(read_nfd, normal_nfd)
SIMPLE(read_nmt, normal_nmt)
SIMPLE(read_accents, normal_accents)

static ob_status read_nfkc(struct hf_reader *r, const json_t *part) {
    (void)part;
    ob_status status = add(r, normal_compat);
    return status == OB_OK ? add(r, normal_nfc) : status;
}

static ob_status read_nfkd(struct hf_reader *r, const json_t *part) {
    (void)part;
    ob_status status = add(r, normal_compat);
    return status == OB_OK ? add(r, normal_nfd) : status;
}

static ob_status read_precompiled(struct hf_reader *r, const json_t *part) {
    struct charsmap *map;
    ob_status status = charsmap_base64(hf_str(part, "precompiled_charsmap"), true, &r->tok->arena,
                                       &map, r->error);
    if (status != OB_OK) return status;
    return tok_add_step(&r->tok->normal,
                        (struct normal_step){.apply = normal_charsmap, .table = map}, r->error);
}

static ob_status read_prepend(struct hf_reader *r, const json_t *part) {
    return hf_step(r, normal_prepend, NOTHING, hf_str(part, "prepend"));
}

static ob_status read_replace(struct hf_reader *r, const json_t *part) {
    struct str string, regex, to = hf_str(part, "content");
    ob_status status = hf_pattern(r, part, &string, &regex);
    if (status != OB_OK) return status;
    if (string.n) return hf_step(r, normal_replace, string, to);
    struct normal_step step = {.apply = normal_regex, .to = hf_keep(r, to)};
    if (!step.to.p) return error_memory(r->error, "normalizer", to.n);
    status = regex_open(regex, &step.regex, r->error);
    if (status == OB_OK) status = tok_add_step(&r->tok->normal, step, r->error);
    if (status != OB_OK) regex_close(&step.regex);
    return status;
}

static ob_status read_strip(struct hf_reader *r, const json_t *part) {
    ob_status status = OB_OK;
    if (hf_bool(part, "strip_left", true)) status = add(r, normal_strip_left);
    if (status == OB_OK && hf_bool(part, "strip_right", true)) status = add(r, normal_strip_right);
    return status;
}

const struct hf_row hf_normalizers[] = {{"BertNormalizer", read_bert},
                                        {"ByteLevel", read_bytes},
                                        {"Lowercase", read_lowercase},
                                        {"NFC", read_nfc},
                                        {"NFD", read_nfd},
                                        {"NFKC", read_nfkc},
                                        {"NFKD", read_nfkd},
                                        {"Nmt", read_nmt},
                                        {"Precompiled", read_precompiled},
                                        {"Prepend", read_prepend},
                                        {"Replace", read_replace},
                                        {"Strip", read_strip},
                                        {"StripAccents", read_accents},
                                        {NULL, NULL}};
