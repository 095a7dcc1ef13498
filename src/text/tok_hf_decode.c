/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_hf_decode.c: the decoders of tokenizer.json; see tok_hf_read.h. Ours turn one token after the
 * other to text, since they must do so while a model answers: what a decoder does after Fuse, to
 * the text as a whole, can only be the stripping of one space at its start. */
#include "base/error.h"
#include "text/tok_hf_read.h"

static ob_status add(struct hf_reader *r, const json_t *part, struct decode_step step) {
    if (r->fused) return hf_refuse(r, part, "after Fuse");
    return tok_add_decoder(r->tok, step, r->error);
}

static ob_status read_suffix(struct hf_reader *r, const json_t *part) {
    struct str suffix = hf_keep(r, hf_str(part, "suffix"));
    if (!suffix.p) return error_memory(r->error, "decoder", 0);
    if (suffix.n == 0) return hf_refuse(r, part, "without a suffix");
    return add(r, part, (struct decode_step){.apply = decode_suffix, .from = suffix});
}

static ob_status read_bytes(struct hf_reader *r, const json_t *part) {
    return add(r, part, (struct decode_step){.apply = decode_bytes});
}

static ob_status read_nothing(struct hf_reader *r, const json_t *part) {
    (void)r, (void)part;
    return OB_OK;
}

static ob_status read_fuse(struct hf_reader *r, const json_t *part) {
    (void)part;
    r->fused = true;
    return OB_OK;
}

static ob_status read_metaspace(struct hf_reader *r, const json_t *part) {
    struct str mark = hf_str(part, "replacement"), scheme = hf_str(part, "prepend_scheme");
    bool strips = scheme.n ? !str_is(scheme, "never") : hf_bool(part, "add_prefix_space", true);
    struct decode_step step = {.apply = strips ? decode_metaspace : decode_replace,
                               .from = hf_keep(r, mark),
                               .to = STR_LIT(" ")};
    if (mark.n == 0) return hf_refuse(r, part, "without a replacement");
    if (!step.from.p) return error_memory(r->error, "decoder", mark.n);
    return add(r, part, step);
}

static ob_status read_replace(struct hf_reader *r, const json_t *part) {
    struct str string, regex;
    ob_status status = hf_pattern(r, part, &string, &regex);
    if (status != OB_OK) return status;
    if (!string.n) return hf_refuse(r, part, "of an expression");
    struct decode_step step = {.apply = decode_replace, .from = string,
                               .to = hf_keep(r, hf_str(part, "content"))};
    if (!step.to.p) return error_memory(r->error, "decoder", 0);
    return add(r, part, step);
}

static ob_status read_strip(struct hf_reader *r, const json_t *part) {
    struct str content = hf_str(part, "content");
    json_int_t start = json_integer_value(json_object_get(part, "start"));
    json_int_t stop = json_integer_value(json_object_get(part, "stop"));
    if (r->fused) {
        if (!str_is(content, " ") || start != 1 || stop != 0)
            return hf_refuse(r, part, "of something else than one space at the start after Fuse");
        r->tok->strip_space = true;
        return OB_OK;
    }
    if (content.n == 0 || start < 0 || stop < 0 || start > 1000 || stop > 1000)
        return hf_refuse(r, part, "without a content and numbers");
    struct decode_step step = {.apply = decode_strip, .from = hf_keep(r, content),
                               .left = (uint32_t)start, .right = (uint32_t)stop};
    if (!step.from.p) return error_memory(r->error, "decoder", 0);
    return add(r, part, step);
}

static ob_status read_words(struct hf_reader *r, const json_t *part) {
    struct str prefix = hf_keep(r, hf_str(part, "prefix"));
    if (!prefix.p) return error_memory(r->error, "decoder", 0);
    return add(r, part, (struct decode_step){.apply = decode_words, .from = prefix,
                                             .left = hf_bool(part, "cleanup", true)});
}

const struct hf_row hf_decoders[] = {{"BPEDecoder", read_suffix},
                                     {"ByteFallback", read_nothing},
                                     {"ByteLevel", read_bytes},
                                     {"Fuse", read_fuse},
                                     {"Metaspace", read_metaspace},
                                     {"Replace", read_replace},
                                     {"Strip", read_strip},
                                     {"WordPiece", read_words},
                                     {NULL, NULL}};
