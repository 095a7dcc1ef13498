# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's tokenizers through its C API (the library: llama_cpp.library()).

    llama_tok.py LIBRARY MODEL.gguf TEXTS.json           ["text", ...] to an array of arrays of ids
    llama_tok.py LIBRARY MODEL.gguf --time FILE          megabytes a second, the best of three

A process of its own: llama.cpp ends it where a file breaks a rule. Only the vocabulary is read."""
import ctypes
import json
import sys
import time

import llama_cpp

VOCAB_ONLY = 72  # in llama_model_params: after two pointers, five numbers, four pointers


def open_vocab(lib, path):
    llama_cpp.declare(lib)
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.bytes[VOCAB_ONLY] = 1
    model = lib.llama_model_load_from_file(path.encode(), params)
    if not model:
        sys.exit('the vocabulary does not load')
    lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                   ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool,
                                   ctypes.c_bool]
    return lib.llama_model_get_vocab(model)


def encode(lib, vocab, text, ids):
    n = lib.llama_tokenize(vocab, text, len(text), ids, len(ids), False, False)
    return n if n >= 0 else sys.exit('more tokens than bytes')


def main():
    lib = ctypes.CDLL(sys.argv[1])
    vocab = open_vocab(lib, sys.argv[2])
    if sys.argv[3] == '--time':
        text = open(sys.argv[4], 'rb').read()
        ids, best = (ctypes.c_int32 * (len(text) + 8))(), 0
        for _ in range(3):
            start = time.perf_counter()
            n = encode(lib, vocab, text, ids)
            best = max(best, len(text) / 1e6 / (time.perf_counter() - start))
        print(f'{best:.2f} MB/s, {n} tokens')
        return
    out = []
    for text in json.load(open(sys.argv[3], encoding='utf-8')):
        text = text.encode()
        ids = (ctypes.c_int32 * (4 * len(text) + 8))()
        out.append(list(ids[:encode(lib, vocab, text, ids)]))
    json.dump(out, sys.stdout)


if __name__ == '__main__':
    main()
