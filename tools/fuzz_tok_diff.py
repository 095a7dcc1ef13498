#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small tokenizers over combinations of the components of tokenizer.json and compares ours
with the `tokenizers` package on random texts: ids with and without special tokens recognised, and
the text that the ids give back.

usage: fuzz_tok_diff.py [--texts 20000] [--seed 1] [--only NAME] [--keep FOLDER]
needs: tokenizers, gguf; the program tests/unit/tok_batch of $BUILD_DIR or build/
"""
import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

import make_tok_goldens as goldens

ROOT = pathlib.Path(__file__).resolve().parents[1]
N, P, D = normalizers, pre_tokenizers, decoders
GPT4 = goldens.GPT4
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


# ---- models ----

def train(t, trainer, most=800):
    t.train_from_iterator(goldens.corpus()[:most], trainer)
    return t


def bpe(size=500, alphabet=120, bytes_=False, **more):
    def make(t):
        special = [more["unk_token"]] if "unk_token" in more else []
        t.model = models.BPE(**more)
        marks = {k: v for k, v in more.items()
                 if k in ("continuing_subword_prefix", "end_of_word_suffix")}
        train(t, trainers.BpeTrainer(
            vocab_size=size, show_progress=False, limit_alphabet=alphabet, special_tokens=special,
            initial_alphabet=P.ByteLevel.alphabet() if bytes_ else [], **marks))
        saved = json.loads(t.to_str())
        model = saved["model"]
        if more.get("byte_fallback"):
            at = len(model["vocab"])
            for i, text in enumerate(goldens.BYTES):
                model["vocab"][text] = at + i
        for key in ("fuse_unk", "byte_fallback", "ignore_merges"):
            model[key] = more.get(key, False)
        return Tokenizer.from_str(json.dumps(saved))
    return make


def bytes_bpe(**more):
    return bpe(size=700, bytes_=True, **more)


def wordpiece(prefix="##", most=100):
    def make(t):
        t.model = models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=prefix,
                                   max_input_chars_per_word=most)
        return train(t, trainers.WordPieceTrainer(
            vocab_size=500, show_progress=False, limit_alphabet=120, special_tokens=["[UNK]"],
            continuing_subword_prefix=prefix))
    return make


def unigram(byte_fallback=False):
    def make(t):
        t.model = models.Unigram()
        train(t, trainers.UnigramTrainer(vocab_size=900, show_progress=False, unk_token="<unk>",
                                         special_tokens=["<unk>", "<s>"]), 100)
        saved = json.loads(t.to_str())
        if byte_fallback:
            saved["model"]["vocab"] += [[text, -20.0] for text in goldens.BYTES]
            saved["model"]["byte_fallback"] = True
        return Tokenizer.from_str(json.dumps(saved))
    return make


def wordlevel(t):
    t.model = models.WordLevel(unk_token="[UNK]")
    return train(t, trainers.WordLevelTrainer(vocab_size=300, show_progress=False,
                                              special_tokens=["[UNK]"]))


# ---- a charsmap: darts-clone's double array of a few rules, made here ----

def double_array(keys):
    """Units for sorted (bytes, value) pairs, placed first fit."""
    units, used = {0: 0}, {0}

    def place(at, group, depth):
        children = {}
        for key, value in group:
            label = key[depth] if depth < len(key) else 0
            children.setdefault(label, []).append((key, value))
        base = 1
        while any(((base ^ label) in used) for label in children) or (at ^ base) >= 1 << 21:
            base += 1
        for label in children:
            used.add(base ^ label)
        offset = at ^ base
        units[at] = (units[at] & ~(((1 << 21) - 1) << 10)) | offset << 10
        for label, below in children.items():
            to = base ^ label
            if label == 0:
                units[to] = below[0][1] | 1 << 31
                units[at] |= 1 << 8
            else:
                units[to] = label
                place(to, below, depth + 1)
    place(0, sorted(keys), 0)
    return [units.get(i, 1 << 31 | 0xff) for i in range((max(units) | 255) + 1)]


def charsmap():
    rules = {"ﬁ": "fi", "①": "1", "\u3000": " ", "e\u0301": "é", "Å": "Å", "\u200b": "",
             "ｶﾞ": "ガ", "…": "...", "\t": " ", "\n": " ", "½": "1/2", "👩": "woman"}
    text, keys = b"", []
    for key, to in rules.items():
        keys.append((key.encode(), len(text)))
        text += to.encode() + b"\0"
    units = double_array(keys)
    blob = struct.pack("<I", 4 * len(units)) + b"".join(struct.pack("<I", u) for u in units) + text
    return N.Precompiled(blob)


# ---- the list ----

def split(pattern, behavior="isolated", invert=False):
    return P.Split(pattern, behavior, invert)


BYTES = P.ByteLevel(add_prefix_space=False, use_regex=False)
BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
FALLBACK = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
META = D.Metaspace()
BYTES_META = D.Sequence([D.ByteFallback(), D.Metaspace()])


def cases():
    """(name, model, normalizer, pre-tokenizer, decoder)"""
    yield "gpt2", bytes_bpe(), None, P.ByteLevel(add_prefix_space=False), D.ByteLevel()
    yield "gpt2_prefix", bytes_bpe(), N.NFKC(), P.ByteLevel(add_prefix_space=True), D.ByteLevel()
    yield "whole", bytes_bpe(ignore_merges=True), None, P.Sequence(
        [split(Regex(GPT4 % "{1,3}")), BYTES]), D.ByteLevel()
    yield "qwen", bytes_bpe(), N.NFC(), P.Sequence(
        [split(Regex(GPT4 % ""), "removed", True), BYTES]), D.ByteLevel()
    yield "o200k", bytes_bpe(), None, P.Sequence([split(Regex(O200K)), BYTES]), D.ByteLevel()
    yield "kimi", bytes_bpe(), None, P.Sequence([split(Regex(KIMI)), BYTES]), D.ByteLevel()
    yield "starcoder", bytes_bpe(), None, P.Sequence(
        [P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)]), D.ByteLevel()
    yield "deepseek", bytes_bpe(), None, P.Sequence(
        [split(Regex(r"\p{N}{1,3}")), split(Regex("[一-龥\u3040-ゟ゠-ヿ]+")),
         split(Regex(r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
                     r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")), BYTES]), D.ByteLevel()
    yield "aya", bytes_bpe(), None, P.Sequence(
        [split(Regex(r"\d{1,3}(?=(?:\d{3})*\b)")), split(Regex(O200K)), BYTES]), D.ByteLevel()
    yield "superbpe", bytes_bpe(), None, P.Sequence(
        [split(Regex(r"\p{N}+")), split(Regex(r"(?=(\d{3})+(?!\d))")), BYTES]), D.ByteLevel()
    yield "bytes_then_digits", bytes_bpe(), None, P.Sequence(
        [P.ByteLevel(add_prefix_space=True), P.Digits(individual_digits=False)]), D.ByteLevel()
    yield "bytes_normal", bytes_bpe(), N.ByteLevel(), split(Regex("Ġ"), "merged_with_next"), \
        D.ByteLevel()
    for behavior in BEHAVIORS:
        for invert in (False, True):
            yield f"split_{behavior}_{invert}", bpe(unk_token="<unk>"), None, split(
                Regex(r"\s+|[\p{P}a]|(?=x)"), behavior, invert), None
    for behavior in BEHAVIORS:
        yield f"string_{behavior}", bpe(unk_token="<unk>", fuse_unk=True), None, split(
            "  ", behavior), None
        yield f"punctuation_{behavior}", bpe(unk_token="<unk>"), None, P.Punctuation(
            behavior), None
    yield "words", wordpiece(), N.BertNormalizer(), P.BertPreTokenizer(), D.WordPiece()
    yield "words_cased", wordpiece(most=6), N.BertNormalizer(
        lowercase=False, handle_chinese_chars=False), P.BertPreTokenizer(), D.WordPiece(
            cleanup=False)
    yield "words_other", wordpiece("@@"), N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()]), \
        P.Whitespace(), D.WordPiece("@@")
    yield "words_plain", wordpiece(), N.Strip(), P.WhitespaceSplit(), D.WordPiece()
    yield "level", wordlevel, N.Sequence([N.NFKD(), N.Lowercase()]), P.Whitespace(), None
    yield "level_scripts", wordlevel, None, P.Sequence([P.UnicodeScripts(), P.WhitespaceSplit()]), \
        None
    yield "scripts", bpe(unk_token="<unk>"), None, P.UnicodeScripts(), None
    yield "delimiter", bpe(unk_token="<unk>"), None, P.CharDelimiterSplit("a"), None
    yield "length", bpe(unk_token="<unk>"), None, P.FixedLength(length=5), None
    yield "digits", bpe(), N.StripAccents(), P.Digits(individual_digits=False), None
    yield "marks", bpe(unk_token="<unk>", continuing_subword_prefix="##",
                       end_of_word_suffix="</w>"), N.NFKD(), P.WhitespaceSplit(), D.BPEDecoder()
    yield "ends", bpe(unk_token="<unk>", end_of_word_suffix="</w>"), N.Lowercase(), \
        P.Sequence([P.Whitespace(), P.Punctuation()]), D.BPEDecoder()
    yield "goes_on", bpe(unk_token="<unk>", fuse_unk=True, continuing_subword_prefix="_"), None, \
        P.WhitespaceSplit(), None
    yield "fallback", bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True), N.Sequence(
        [N.Prepend("\u2581"), N.Replace(" ", "\u2581")]), None, FALLBACK
    yield "fallback_alone", bpe(byte_fallback=True), N.Replace(" ", "\u2581"), split(
        " ", "merged_with_previous"), D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(),
                                                  D.Fuse()])
    for scheme in ("always", "first", "never"):
        for whole in (True, False):
            yield f"meta_{scheme}_{whole}", bpe(unk_token="<unk>", fuse_unk=True), None, \
                P.Metaspace(prepend_scheme=scheme, split=whole), D.Metaspace(prepend_scheme=scheme)
    yield "meta_after", bpe(unk_token="<unk>"), None, P.Sequence(
        [P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")]), META
    yield "unigram", unigram(), None, P.Metaspace(), META
    yield "unigram_bytes", unigram(True), N.NFKC(), P.Metaspace(split=False), BYTES_META
    yield "t5", unigram(), charsmap(), P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), META
    yield "xlm", unigram(), N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")]), \
        P.Metaspace(), META
    yield "albert", unigram(), N.Sequence(
        [N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(),
         charsmap(), N.Replace(Regex(" {2,}"), " ")]), P.Metaspace(), META
    yield "deberta", unigram(True), N.Sequence([N.Strip(), charsmap(), N.Replace(
        Regex(r"[\n\r\t]"), " ")]), P.Sequence(
            [P.Punctuation("isolated"), P.Metaspace()]), BYTES_META
    for name, n in (("nfc", N.NFC()), ("nfd", N.NFD()), ("nfkc", N.NFKC()), ("nfkd", N.NFKD()),
                    ("lower", N.Lowercase()), ("accents", N.StripAccents()), ("nmt", N.Nmt()),
                    ("bert", N.BertNormalizer(strip_accents=True, lowercase=False)),
                    ("strip_left", N.Strip(right=False)), ("strip_right", N.Strip(left=False)),
                    ("regex", N.Replace(Regex(r"(\p{L})\s?|^x|(?=9)"), "_"))):
        yield f"normal_{name}", bytes_bpe(), n, P.ByteLevel(add_prefix_space=False), D.ByteLevel()


ADDED = [AddedToken("<|a|>", special=True, normalized=False),
         AddedToken("<|a|><|b|>", special=False, normalized=False),
         AddedToken("<l>", special=True, lstrip=True, normalized=False),
         AddedToken("<r>", special=False, rstrip=True, normalized=True),
         AddedToken("word", special=False, single_word=True, normalized=False),
         AddedToken("Café", special=False, normalized=True),
         AddedToken("<s>", special=True, normalized=False)]


def make(case):
    name, model, normalizer, pre, decoder = case
    t = Tokenizer(models.BPE())
    if normalizer is not None:
        t.normalizer = normalizer
    if pre is not None:
        t.pre_tokenizer = pre
    t = model(t)
    if decoder is not None:
        t.decoder = decoder
    for token in ADDED:
        (t.add_special_tokens if token.special else t.add_tokens)([token])
    a, s = t.token_to_id("<|a|>"), t.token_to_id("<s>")
    posts = [processors.TemplateProcessing(single="<s> $A <|a|>", special_tokens=[("<s>", s),
                                                                                 ("<|a|>", a)]),
             processors.BertProcessing(("<|a|>", a), ("<s>", s)),
             processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
                 single="<s> <|a|> $A <s> <|a|>", special_tokens=[("<s>", s), ("<|a|>", a)])]),
             processors.RobertaProcessing(("<|a|>", a), ("<s>", s)), None]
    post = posts[len(name) % len(posts)]
    if post is not None:
        t.post_processor = post
    return t


# ---- texts ----

def texts(rng, count):
    special = [token.content for token in ADDED] + ["<|a", "wordword", "cafe\u0301", "CAFÉ"]
    out = goldens.strings(rng, count * 2 // 3)
    parts = goldens.WORDS + special + goldens.SPACES + [
        "½", "①", "ﬁ", "ｶﾞ", "…", "Å", "\u200b", "\0", "\x7f", "\u2581", "İ", "ß", "ǆ", "``", "''",
        "1", "22", "1234567", "x", "a", "A", ".", ",", "!", "'", "\U0001d518",
        "\u1e9b\u0323"]
    while len(out) < count:
        n = rng.choice([1, 2, 3, 5, 8, 20])
        out.append("".join(rng.choice(parts) * rng.choice([1, 1, 1, 2, 5]) for _ in range(n)))
    return out[:count]


# ---- comparing ----

def ours(folder, strings, special):
    program = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")) / "tests/unit/tok_batch"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(strings, f)
        f.flush()
        run = subprocess.run([program, "--text"] + ["--special"] * special + [folder, f.name],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr.strip()


def reference(t, strings, special):
    t.encode_special_tokens = not special
    ids = [e.ids for e in t.encode_batch(strings, add_special_tokens=special)]
    return [(i, t.decode(i, skip_special_tokens=True)) for i in ids]


def explained(t, text, want, special):
    """Differences that are meant: ours never doubles BOS or EOS, data gives no control token."""
    control = {i for i, token in t.get_added_tokens_decoder().items() if token.special}
    if not special:
        return bool(control & set(want)) or "<unk>" in text
    inner = t.encode(text, add_special_tokens=False).ids
    return bool(inner) and bool({inner[0], inner[-1]} & {want[0], want[-1]} & control)


def shown(t, ids):
    return [t.id_to_token(i) for i in ids]


def compare(name, t, strings, folder):
    goldens.save_dir(str(folder), t, {})
    bad = bad_text = 0
    saved = json.loads(t.to_str())
    suffix = "BPEDecoder" in json.dumps(saved["decoder"])
    # The package knows these by their normalized text, ours by what the file says; the byte-level
    # decoder takes their letters for bytes.
    own = {t.token_to_id(token.content) for token in ADDED if token.normalized}
    own |= {token["id"] for token in saved["added_tokens"] if token["normalized"]}
    for special in (True, False):
        got = ours(folder, strings, special)
        if isinstance(got, str):
            print(f"{name}: refused: {got}")
            return 1
        wants = reference(t, strings, special)
        for text, (ids, chars), (want, back) in zip(strings, got, wants):
            if ids != want:
                if explained(t, text, want, special):
                    continue
                bad += 1
                if bad <= 3:
                    print(f"{name}: special {special}: {text!r}\n   ours {shown(t, ids)}\n"
                          f"   want {shown(t, want)}")
            elif "\ufffd" not in back and not set(ids) & own:
                mine = chars.encode("latin-1").decode("utf-8", "replace")
                if suffix and mine.endswith(" "):  # ours cannot know that it is the last token
                    mine = mine[:-1]
                bad_text += mine != back
                if mine != back and bad_text <= 2:
                    print(f"{name}: text of {shown(t, ids)}\n   ours {mine!r}\n   want {back!r}")
    print(f"{name}: {len(strings)} texts, {bad} with other ids, {bad_text} with another text",
          flush=True)
    return bad + bad_text


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--texts", type=int, default=20000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only")
    arguments.add_argument("--keep")
    options = arguments.parse_args()
    strings = texts(random.Random(options.seed), options.texts)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases():
            name = case[0]
            if options.only and options.only not in name:
                continue
            folder = os.path.join(options.keep or scratch, name)
            failed += compare(name, make(case), strings, folder) > 0
    print(f"{failed} tokenizers differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
