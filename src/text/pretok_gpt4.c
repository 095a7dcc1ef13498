/* SPDX-License-Identifier: Apache-2.0
 * pretok_gpt4.c: GPT-4's expression: with up to three digits Llama 3's, with single ones Qwen 2's,
 * and with marks among the letters Qwen 3.5's. */
#include "text/pretok.h"
#include "text/pretok_scan.h"

static size_t next_llama3(const char *p, size_t n) { return scan_gpt4(p, n, 3, 0); }
static size_t next_qwen2(const char *p, size_t n) { return scan_gpt4(p, n, 1, 0); }
static size_t next_qwen35(const char *p, size_t n) { return scan_gpt4(p, n, 1, SCAN_MARK); }

const struct rule rule_llama3 = {
    .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
             " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    .next = next_llama3,
};

const struct rule rule_qwen2 = {
    .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
             " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    .next = next_qwen2,
};

const struct rule rule_qwen35 = {
    .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
             " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    .next = next_qwen35,
};
