#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tok/: strings, small tokenizers trained here, and the reference's ids.

strings.json     the texts, shared by all tokenizers
small_*/         tokenizers as Hugging Face directories; small_*.gguf the same as GGUF vocabularies
NAME.ids         a line for each string: its ids, and after " | ", where they differ, its ids
                 when special tokens are not recognised

Ids for the real models are made if their files are in the models folder. What the reference is: a
`tokenizers` object; for GGUF files of SentencePiece models it gets the merges that the scores
imply, as transformers does. The trainer breaks ties at random: another run makes other small
tokenizers, with ids to match.

usage: make_tok_goldens.py [MODELS_FOLDER]     (needs: tokenizers, gguf, numpy)
"""
import json
import os
import random
import struct
import sys

import gguf
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "tok")
GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = ["<0x%02X>" % b for b in range(256)]

# ---- texts ----

SCRIPTS = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x52f),
           (0x590, 0x5ff), (0x600, 0x6ff), (0x900, 0x97f), (0xb80, 0xbff), (0xe00, 0xe7f),
           (0x1100, 0x11ff), (0x1e00, 0x1eff), (0x2000, 0x206f), (0x2070, 0x20cf),
           (0x2200, 0x23ff), (0x2460, 0x24ff), (0x2600, 0x27bf), (0x3000, 0x30ff),
           (0x4e00, 0x9fff), (0xac00, 0xd7a3),
           (0xf900, 0xfaff), (0xff00, 0xffef), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff),
           (0x20000, 0x2a6df), (0x2f800, 0x2fa1f), (0x10000, 0x1ffff), (0, 0x1f), (0x7f, 0x9f)]
SPACES = [" ", " ", "  ", "   ", "     ", "\t", "\n", "\n\n", "\r\n", "\r", "\xa0", "\u2003",
          "\u3000", "\u2028", "\v", "\f", "\x85", "\u200b", "\u200d", "\ufeff", " \n", "\n "]
WORDS = """the of and function return int void class def import Hello WORLD don't I'll we've they're
it's IT'S I'M 'Ll x1 3.14159 1234567890 42nd $99.99 http://example.com/a?b=c&d=e foo_bar CamelCase
naïve café résumé Straße 東京 日本語 한국어 привет мир שלום مرحبا नमस्ते ไทย தமிழ் 👩‍👩‍👧‍👦 🇩🇪 ✌🏽
e\u0301 A\u030a\u0323 \u1112\u1161\u11ab '\u017f {} [] (); -> != <<= /* */ // # ``` "quoted" ... ---
*** === <| |> <tool <table> </table> word words wordy""".split()
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_start", "<tool_call>",
           "</tool_call>", "<s>", "</s>", "<unk>", "<bos>", "<eos>", "<start_of_turn>",
           "<end_of_turn>", "<l>", "<r>", "<n>", "word", "<|eot_id|>"]


def strings(rng, count):
    out = [""]
    while len(out) < count:
        kind, text = rng.randrange(6), ""
        script = rng.choice(SCRIPTS)
        for _ in range(rng.choice([1, 2, 3, 4, 6, 10])):
            if kind == 0:
                text += chr(rng.randint(*rng.choice(SCRIPTS)))
            elif kind == 1:
                text += rng.choice(WORDS) + rng.choice(SPACES)
            elif kind == 2:
                text += rng.choice(SPACES + ["a", "1", "!"])
            elif kind == 3:
                text += rng.choice(SPECIAL + SPACES + WORDS)
            elif kind == 4:
                text += chr(rng.randint(*script))
            else:
                text += rng.choice("ab 1.-=\nxé京") * rng.choice([1, 2, 3, 7, 30])
        # The two references differ on U+2581 and on runs of more than 31 spaces: not here.
        if "\u2581" not in text and " " * 32 not in text:
            out.append(text)
    return out


def corpus():
    rng = random.Random(11)
    gaps = [" ", " ", " ", "\n", "  "]
    return ["".join(rng.choice(WORDS) + rng.choice(gaps) for _ in range(20)) +
            "".join(chr(rng.randint(*rng.choice(SCRIPTS[1:24]))) for _ in range(3))
            for _ in range(3000)]


# ---- tokenizers ----

def byte_level(digits, tokens, nfc=False, whole=False):
    t = Tokenizer(models.BPE(ignore_merges=whole))
    t.normalizer = normalizers.NFC() if nfc else None
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT4 % digits), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    add(t, tokens)
    return t


def add(t, tokens):
    for token in tokens:
        (t.add_special_tokens if token.special else t.add_tokens)([token])


def merges_of(vocab):
    """Every way to make a token of two others, best token first, as transformers derives them."""
    merges = []
    for text, i in vocab.items():
        ways = [(text[:k], text[k:]) for k in range(1, len(text))
                if text[:k] in vocab and text[k:] in vocab]
        merges += [(-i, len(a), len(b), a, b) for a, b in
                   sorted(ways, key=lambda w: (vocab[w[0]], vocab[w[1]]))]
    merges.sort(key=lambda m: m[:3], reverse=True)
    return [m[3:] for m in merges]


def sentencepiece(first, added):
    """A vocabulary in SentencePiece's order: special, user-defined, bytes, pieces."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=700, show_progress=False, limit_alphabet=150))
    learned = sorted(t.get_vocab().items(), key=lambda item: item[1])
    pieces = [p for p, _ in learned if len(p) > 1] + [p for p, _ in learned if len(p) == 1]
    if "\u2581" not in pieces:
        pieces.append("\u2581")
    return first + added + BYTES + [p for p in pieces if p not in first + added]


def char_level(texts, tokens, steps, decode, pre=None):
    vocab = {text: i for i, text in enumerate(texts)}
    t = Tokenizer(models.BPE(vocab, merges_of(vocab), unk_token="<unk>", fuse_unk=True,
                             byte_fallback=True))
    t.normalizer, t.pre_tokenizer = steps, pre
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                   decoders.Fuse()] + decode)
    add(t, tokens)
    return t


def control(text, **more):
    return AddedToken(text, special=True, normalized=more.pop("normalized", False), **more)


def plain(text, **more):
    return AddedToken(text, special=False, normalized=more.pop("normalized", False), **more)


# ---- files ----

def save_dir(name, t, config, **files):
    """A directory that opens as a model: one tensor of one number."""
    folder = os.path.join(ROOT, name)
    os.makedirs(folder, exist_ok=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + bytes(4))
    t.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    files = {"config": {"model_type": "llama"}, "tokenizer_config": config, **files}
    for file, content in files.items():
        with open(os.path.join(folder, file + ".json"), "w") as f:
            json.dump(content, f)
            f.write("\n")


def save_gguf(name, texts, kinds, **more):
    w = gguf.GGUFWriter(os.path.join(ROOT, name + ".gguf"), "llama")
    w.add_tokenizer_model(more["model"])
    w.add_token_list(texts)
    w.add_token_types(kinds)
    if "merges" in more:
        w.add_tokenizer_pre(more["pre"])
        w.add_token_merges(more["merges"])
    elif more["model"] != "bert":
        w.add_token_scores([float(-i) for i in range(len(texts))])
        w.add_add_space_prefix(more["prefix"])
        w.add_unk_token_id(texts.index("<unk>"))
    w.add_bos_token_id(more["bos"])
    w.add_eos_token_id(more["eos"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def save_ids(name, t, texts):
    with open(os.path.join(ROOT, name + ".ids"), "w") as f:
        for text in texts:
            t.encode_special_tokens = False
            ids = t.encode(text, add_special_tokens=False).ids
            t.encode_special_tokens = True
            data = t.encode(text, add_special_tokens=False).ids
            f.write(" ".join(map(str, ids)))
            f.write(" | " + " ".join(map(str, data)) if data != ids else "")
            f.write("\n")
    t.encode_special_tokens = False


def kinds_of(texts, tokens):
    special = {str(t.content): 3 if t.special else 4 for t in tokens}
    return [special.get(text, 6 if text in BYTES else 1) for text in texts]


# ---- the small ones ----

def small(texts):
    tokens = [control("<|endoftext|>"), control("<|im_start|>"), control("<|im_end|>"),
              plain("<tool_call>"), plain("</tool_call>")]
    t = byte_level("", tokens, nfc=True)
    save_ids("small_qwen2", t, texts)
    save_dir("small_qwen2", t, {"bos_token": None, "eos_token": "<|im_end|>",
                                "add_bos_token": False, "chat_template": "{{ 'plain' }}"},
             generation_config={"eos_token_id": [t.token_to_id("<|endoftext|>")]})
    model = json.loads(t.to_str())["model"]
    spelled = sorted(t.get_vocab(), key=t.token_to_id)
    save_gguf("small_qwen2", spelled, kinds_of(spelled, tokens), model="gpt2", pre="qwen2",
              merges=[" ".join(m) for m in model["merges"]], bos=t.token_to_id("<|endoftext|>"),
              eos=t.token_to_id("<|im_end|>"))

    tokens = [control("<s>"), control("<|eot_id|>"), control("<l>", lstrip=True),
              plain("<r>", rstrip=True), plain("word", single_word=True),
              plain("<n>", normalized=True)]
    t = byte_level("{1,3}", tokens, whole=True)
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", t.token_to_id("<s>"))])
    save_ids("small_llama3", t, texts)
    save_dir("small_llama3", t, {
        "bos_token": {"content": "<s>", "special": True}, "eos_token": "<|eot_id|>",
        "chat_template": [{"name": "default", "template": "{{ 'first' }}"},
                          {"name": "tool_use", "template": "{{ 'tools' }}"}]})

    tokens = [control("<unk>"), control("<s>"), control("</s>")]
    spelled = sentencepiece(["<unk>", "<s>", "</s>"], [])
    prefix = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t = char_level(spelled, tokens, prefix, [decoders.Strip(" ", 1, 0)])
    save_ids("small_llama", t, texts)
    save_dir("small_llama", t, {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True})
    save_gguf("small_llama", spelled, kinds_of(spelled, tokens), model="llama", prefix=True, bos=1,
              eos=2)
    t = char_level(spelled, tokens + [plain("<n>", normalized=True)], None,
                   [decoders.Strip(" ", 1, 0)],
                   pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    save_ids("small_metaspace", t, texts)
    save_dir("small_metaspace", t, {"bos_token": "<s>", "eos_token": "</s>"})

    runs = ["\n" * n for n in range(1, 32)] + ["\u2581" * n for n in range(2, 32)]
    runs += ["<table>", "</table>"]
    tokens = [control(x) for x in ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>",
                                   "<end_of_turn>")] + [plain(run) for run in runs]
    spelled = sentencepiece([x.content for x in tokens[:6]], runs)
    t = char_level(spelled, tokens, normalizers.Replace(" ", "\u2581"), [],
                   pre_tokenizers.Split(" ", "merged_with_previous"))
    save_ids("small_gemma", t, texts)
    save_dir("small_gemma", t, {"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": True},
             generation_config={"eos_token_id": [1, 5]})
    kinds = kinds_of(spelled, tokens)
    spelled = [s.replace("\u2581", " ") if k == 4 else s for s, k in zip(spelled, kinds)]
    save_gguf("small_gemma", spelled, kinds, model="llama", prefix=False, bos=2, eos=1)


    small_bert(texts)


def wordpiece(lower, chinese, alphabet):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=chinese,
                                              strip_accents=None, lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=700, show_progress=False, limit_alphabet=alphabet,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return t


def small_bert(texts):
    t = wordpiece(True, True, 200)
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    save_ids("small_bert", t, texts)
    save_dir("small_bert", t, {"cls_token": "[CLS]", "sep_token": "[SEP]"})
    spelled = sorted(t.get_vocab(), key=t.token_to_id)
    kinds = [3 if x in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") else 1 for x in spelled]
    spelled = [x if k == 3 else x[2:] if x.startswith("##") else "\u2581" + x
               for x, k in zip(spelled, kinds)]
    save_gguf("small_bert", spelled, kinds, model="bert", bos=cls, eos=sep)
    t = wordpiece(False, False, 150)
    t.post_processor = processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    save_ids("small_bert_cased", t, texts)
    save_dir("small_bert_cased", t, {})


# ---- real models ----

def read(path):
    fields = gguf.GGUFReader(path).fields
    return lambda key: fields["tokenizer.ggml." + key].contents()


def real_qwen2(path):
    get = read(path)
    texts, kinds = get("tokens"), get("token_type")
    t = Tokenizer(models.BPE({x: i for i, (x, k) in enumerate(zip(texts, kinds)) if k == 1},
                             [tuple(m.split(" ")) for m in get("merges")]))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT4 % ""), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    add(t, [control(x) if k == 3 else plain(x) for x, k in zip(texts, kinds) if k in (3, 4)])
    return t


def real_gemma(path):
    get = read(path)
    kinds = get("token_type")
    texts = [x.replace(" ", "\u2581") if k == 4 else x for x, k in zip(get("tokens"), kinds)]
    tokens = [control(x) if k == 3 else plain(x) for x, k in zip(texts, kinds) if k in (3, 4)]
    return char_level(texts, tokens, normalizers.Replace(" ", "\u2581"), [])


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.environ.get("XDG_DATA_HOME", os.path.expanduser("~/.local/share")), "1bit", "models")
    os.makedirs(ROOT, exist_ok=True)
    texts = strings(random.Random(5), 500)
    with open(os.path.join(ROOT, "strings.json"), "w") as f:
        f.write("[\n" + ",\n".join(map(json.dumps, texts)) + "\n]\n")
    small(texts)
    for name, make in (("qwen2.5-coder-0.5b", real_qwen2), ("gemma3-270m", real_gemma)):
        path = os.path.join(folder, name + ".gguf")
        if os.path.exists(path):
            save_ids(name, make(path), texts)
        else:
            print("skipped, not there:", path)
    path = os.path.join(folder, "minilm", "tokenizer.json")
    if os.path.exists(path):
        t = Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        save_ids("minilm", t, texts)
    else:
        print("skipped, not there:", path)


if __name__ == "__main__":
    main()
