/* SPDX-License-Identifier: Apache-2.0
 * pretok_llama3.c: Llama 3: GPT-4's expression with up to three digits. */
#include "text/pretok.h"
#include "text/pretok_scan.h"

static size_t next(const char *p, size_t n) { return scan_gpt4(p, n, 3); }

static const char *const names[] = {"llama-bpe", "llama3", "llama-v3", NULL};

const struct pretok pretok_llama3 = {
    .name = "llama3",
    .gguf = names,
    .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
             " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    .next = next,
    .whole_words = true,
    .bos = true,
};
