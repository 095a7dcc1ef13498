#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of tokenizers, one thread: ours, the `tokenizers` package's, llama.cpp's.

    bench/tok_speed.py [--text FILE] [--size 10] [--rounds 3] [--odd] MODEL.gguf...

The text, if none is given: a third each of English (Perl's and Python's documentation), code
(Python's library) and Chinese (translated messages of programs), as this machine has them. --odd:
1 MB of one character, of letters without spaces, of digits, of spaces, too. The package gets the
tokenizer that the GGUF describes (Qwen 2's kind and Gemma's); llama.cpp the file (its library:
tools/llama_cpp.py). Needs: tokenizers, gguf; tests/unit/tok_batch of $BUILD_DIR or build/."""
import argparse
import glob
import gzip
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tools'))
import gguf  # noqa: E402
import llama_cpp  # noqa: E402
import make_tok_goldens  # noqa: E402


# ---- the text ----

def messages(path):
    """The translations of a .mo file."""
    data = open(path, 'rb').read()
    if data[:4] != b'\xde\x12\x04\x95':
        return ''
    n, _, at = struct.unpack('<3I', data[8:20])
    out = []
    for i in range(1, n):
        size, start = struct.unpack('<2I', data[at + 8 * i:at + 8 * i + 8])
        out.append(data[start:start + size].decode('utf-8', 'ignore'))
    return '\n'.join(out).replace('\0', '\n')


def plain(path):
    opener = gzip.open if path.endswith('.gz') else open
    with opener(path, 'rb') as f:
        return f.read().decode('utf-8', 'ignore')


def gather(patterns, read, size):
    out = ''
    for path in sorted(p for pattern in patterns for p in glob.glob(pattern, recursive=True)):
        out += read(path)
        if len(out.encode()) >= size:
            break
    if not out:
        sys.exit('nothing to tokenize in ' + ' '.join(patterns))
    data = out.encode()
    while len(data) < size:
        data += data
    return data[:size].decode('utf-8', 'ignore')


def mixed(size):
    third = size // 3
    english = gather(['/usr/share/perl/*/pod/*.pod', '/usr/share/doc/**/*.txt',
                      '/usr/share/doc/**/README*', '/usr/share/doc/**/changelog*.gz'], plain, third)
    code = gather(['/usr/lib/python3*/*.py'], plain, third)
    chinese = gather(['/usr/share/locale/zh_CN/LC_MESSAGES/*.mo'], messages, third)
    pieces = [(t[i:i + 4000]) for t in (english, code, chinese) for i in range(0, len(t), 4000)]
    random.Random(1).shuffle(pieces)
    return ''.join(pieces)


ODD = {'1 MB of "a"': 'a' * 1000000,
       '1 MB of "京"': '京' * 333333,
       '1 MB of letters': ''.join(random.Random(2).choices('etaoinshrdlu', k=1000000)),
       '1 MB of Chinese letters': ''.join(map(chr, random.Random(3).choices(range(0x4e00, 0x9fa5),
                                                                           k=333333))),
       '1 MB of digits': ''.join(random.Random(4).choices('0123456789', k=1000000)),
       '1 MB of "!"': '!' * 1000000,
       '1 MB of spaces': ' ' * 1000000}


# ---- who is measured ----

def ours(model, path, rounds):
    program = pathlib.Path(os.environ.get('BUILD_DIR', ROOT / 'build')) / 'tests/unit/tok_batch'
    return rate([program, '--time', model, path])


def rate(words):
    run = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    if run.returncode:
        return None, run.stderr.strip().splitlines()[-1:]
    speed, _, tokens, _ = run.stdout.split()
    return float(speed), int(tokens)


def package(model, path, rounds):
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    get = gguf.GGUFReader(model).fields['tokenizer.ggml.model'].contents()
    t = (make_tok_goldens.real_qwen2 if get == 'gpt2' else make_tok_goldens.real_gemma)(model)
    text = open(path, encoding='utf-8', newline='').read()
    best, n = 0, 0
    for _ in range(rounds):
        start = time.perf_counter()
        n = len(t.encode(text, add_special_tokens=False).ids)
        best = max(best, len(text.encode()) / 1e6 / (time.perf_counter() - start))
    return best, n


def llama(model, path, rounds):
    library = llama_cpp.library()
    if not library:
        return None, 'no library'
    return rate([sys.executable, ROOT / 'tools/llama_tok.py', library, model, '--time', path])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('models', nargs='+')
    arguments.add_argument('--text')
    arguments.add_argument('--size', type=float, default=10)
    arguments.add_argument('--rounds', type=int, default=3)
    arguments.add_argument('--odd', action='store_true')
    arguments.add_argument('--ours', action='store_true', help='nobody else')
    options = arguments.parse_args()
    texts = {'mixed': open(options.text, encoding='utf-8').read() if options.text
             else mixed(int(options.size * 1e6))}
    texts.update(ODD if options.odd else {})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'text')
        for model in options.models:
            for name, text in texts.items():
                with open(path, 'w', encoding='utf-8', newline='') as f:
                    f.write(text)
                line = f'{pathlib.Path(model).stem}, {name}:'
                base = None
                for who, measure in (('ours', ours), ('tokenizers', package),
                                     ('llama.cpp', llama))[:1 if options.ours else 3]:
                    if who == 'llama.cpp' and name != 'mixed':
                        continue  # quadratic
                    speed, tokens = measure(model, path, options.rounds)
                    if speed is None:
                        line += f' {who} {tokens};'
                        continue
                    base = base or speed
                    times = '' if who == 'ours' else f' (ours {base / speed:.1f}x)'
                    line += f' {who} {speed:.2f} MB/s{times}, {tokens} tokens;'
                print(line, flush=True)


if __name__ == '__main__':
    main()
