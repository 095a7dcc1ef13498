/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_regex.c: the expressions that go through PCRE2, as the models' tokenizer.json spells them
 * (or GGUF files of theirs imply them), grouped by family. */
#include "text/pretok.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "\\s+(?!\\S)|\\s+"
#define LINES_SPACES "\\s*[\\r\\n]+|" SPACES
#define ASCII_MARKS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"

/* ---- words by case: GPT-4o and its heirs ---- */

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define CASED(after) BEFORE UPPER "*" LOWER "+" after "|" BEFORE UPPER "+" LOWER "*" after

const struct rule rule_gpt4o = {
    .regex = CASED(CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_SPACES};
const struct rule rule_tekken = {
    .regex = CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_SPACES};
const struct rule rule_youtu = {
    .regex = CASED(CONTRACTIONS "?") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_SPACES};
const struct rule rule_youtu_scripts = {
    .regex = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"};

#define NOT_HAN "&&[^\\p{Han}]]"
#define UPPER_NOT_HAN "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
#define LOWER_NOT_HAN "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
const struct rule rule_kimi_k2 = {
    .regex = "[\\p{Han}]+|"
             BEFORE UPPER_NOT_HAN "*" LOWER_NOT_HAN "+" CONTRACTIONS "?|"
             BEFORE UPPER_NOT_HAN "+" LOWER_NOT_HAN "*" CONTRACTIONS "?|"
             "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES_SPACES};

/* ---- words of letters: relatives of GPT-4's ---- */

#define WORDS BEFORE "\\p{L}+"
#define OTHERS " ?[^\\s\\p{L}\\p{N}]+"

const struct rule rule_bailingmoe = {
    .regex = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
             " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" SPACES};
const struct rule rule_exaone_moe = {
    .regex = CONTRACTIONS "|" BEFORE "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
             OTHERS "[\\r\\n/]?|\\s*[\\r\\n]|" SPACES};
const struct rule rule_jais2 = {
    .regex = CONTRACTIONS "|" WORDS "|\\p{N}{1,3}|" OTHERS "[\\r\\n]*|\\s*[\\r\\n]+|"
             "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"
             "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"};
const struct rule rule_minicpm5 = {
    .regex = CONTRACTIONS "|" WORDS "|\\p{N}+|" OTHERS "[\\r\\n]*|" LINES_SPACES};
const struct rule rule_seed_coder = {
    .regex = CONTRACTIONS "|" WORDS "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES_SPACES};
const struct rule rule_ufakzeka = {
    .regex = WORDS "|\\p{N}|" OTHERS "[\\r\\n]*|" LINES_SPACES};

/* ---- DeepSeek and its heirs ---- */

#define DEEPSEEK3 ASCII_MARKS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
                  " ?[\\p{P}\\p{S}]+"

const struct rule rule_deepseek3 = {.regex = DEEPSEEK3 "[\\r\\n]*|" LINES_SPACES};
const struct rule rule_spark = {.regex = DEEPSEEK3 "|[\\r\\n]|" SPACES};
const struct rule rule_asian = {
    .regex = "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"};
const struct rule rule_han_hangul = {.regex = "[一-龥ࠀ-一가-퟿]+"};
const struct rule rule_han_kana = {.regex = "[一-龥぀-ゟ゠-ヿ]+"};
const struct rule rule_space_ascii = {.regex = "\\s?[!-/:-~！-／：-～‘-‟　-。]+"};
const struct rule rule_space_cased = {
    .regex = "\\s?["
             "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"
             "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}"
             "\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"
             "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"
             "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"
             "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}"
             "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"
             "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"
             "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"
             "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"
             "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}"
             "\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"
             "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}"
             "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"
             "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"
             "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"
             "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"
             "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"
             "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]+"};
const struct rule rule_space_end = {.regex = "\\s+$"};
const struct rule rule_space_letters = {.regex = "\\s?\\p{L}+"};
const struct rule rule_space_marks = {.regex = "\\s?\\p{P}+"};

/* ---- others ---- */

const struct rule rule_ascii3 = {.regex = "[0-9][0-9][0-9]"};
const struct rule rule_blanks = {.regex = "\\S+"};
const struct rule rule_bloom = {.regex = " ?[^(\\s|.,!?…。，、।۔،)]+"};
const struct rule rule_falcon = {.regex = "[\\p{P}\\$\\+<=>\\^~\\|`]+"};
const struct rule rule_image = {.regex = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"};
const struct rule rule_indent = {.regex = "([\\t\\n]|    |  )"};
const struct rule rule_marks = {.regex = "[\\p{P}!-/:-@\\[-`{-~]"};
const struct rule rule_sentinel = {.regex = "<sentinel:[0-9]+>"};
const struct rule rule_symbols = {.regex = "[\\p{P}\\$\\+<=>\\^~\\|]+"};
