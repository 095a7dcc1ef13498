/* SPDX-License-Identifier: Apache-2.0
 * pretok_qwen2.c: Qwen 2, 2.5 and 3: GPT-4's expression with single digits, over NFC text. */
#include "text/pretok.h"
#include "text/pretok_scan.h"

static size_t next(const char *p, size_t n) { return scan_gpt4(p, n, 1); }

static const char *const names[] = {"qwen2", "deepseek-r1-qwen", NULL};

const struct pretok pretok_qwen2 = {
    .name = "qwen2",
    .gguf = names,
    .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
             " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    .next = next,
    .nfc = true,
};
