#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mask times of ours, llguidance and xgrammar on the same schemas, texts and tokens.

  grammar_peers.py MODEL.gguf [--bench build/bench/bench_grammar]

Needs the packages transformers, torch, gguf, llguidance and xgrammar. All run on one thread, with
nothing cached between schemas: `first` is compiling and the first mask, as a request waits for
it; then each mask of all texts, microseconds. `other` counts how many tokens the peer's masks
allow that ours do not, and the other way round, on average of a mask: white space and number
formats differ.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time

import numpy as np

import grammar_cases


def rows(times):
    us = np.array(times) * 1e6
    return {'mean': us.mean(), 'p50': np.percentile(us, 50), 'p99': np.percentile(us, 99),
            'max': us.max()}


class Xgrammar:
    name = 'xgrammar'

    def __init__(self, tokenizer, size):
        import xgrammar
        self.x = xgrammar
        self.info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size)
        self.mask = xgrammar.allocate_token_bitmask(1, size)

    def compile(self, schema):
        compiler = self.x.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        return compiler.compile_json_schema(json.dumps(schema), any_whitespace=True)

    def start(self, compiled):
        self.m = self.x.GrammarMatcher(compiled)

    def fill(self):
        self.m.fill_next_token_bitmask(self.mask)

    def words(self):
        return self.mask[0].numpy().view(np.uint32)

    def accept(self, token):
        return self.m.accept_token(token)


class Llguidance:
    name = 'llguidance'

    def __init__(self, tokenizer, size):
        import llguidance
        import llguidance.hf
        import llguidance.numpy
        self.l, self.n = llguidance, llguidance.numpy
        self.t = llguidance.hf.from_tokenizer(tokenizer, n_vocab=size)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, size)

    def compile(self, schema):
        grammar = self.l.LLMatcher.grammar_from_json_schema(schema)
        return self.l.LLMatcher(self.t, grammar)

    def start(self, compiled):
        self.m = compiled.deep_copy()
        if self.m.is_error():
            raise ValueError(self.m.get_error())

    def fill(self):
        self.n.fill_next_token_bitmask(self.m, self.mask, 0)

    def words(self):
        return self.mask[0].view(np.uint32)

    def accept(self, token):
        return self.m.consume_token(token)


def run_peer(peer, case, tokens, ours):
    start = time.perf_counter()
    compiled = peer.compile(case['schema'])
    compile_time = time.perf_counter() - start
    times, first, step, other = [], None, 0, [0, 0]
    for ids in tokens:
        peer.start(compiled)
        for k in range(len(ids) + 1):
            start = time.perf_counter()
            peer.fill()
            times.append(time.perf_counter() - start)
            if first is None:
                first = compile_time + times[0]
            a, b = ours[step], peer.words()
            other[0] += int(np.bitwise_count(b & ~a).sum())
            other[1] += int(np.bitwise_count(a & ~b).sum())
            step += 1
            if k < len(ids) and not peer.accept(ids[k]):
                return {'error': f'token {k} of a text is refused'}
    return {'first': first * 1e6, **rows(times), 'other': [o / step for o in other]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('--bench', default='build/bench/bench_grammar')
    args = parser.parse_args()
    import os
    import transformers
    folder, file = os.path.split(os.path.abspath(args.model))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    cases = grammar_cases.cases()
    with tempfile.TemporaryDirectory() as tmp:
        json.dump(cases, open(f'{tmp}/cases.json', 'w'))
        out = subprocess.run([args.bench, args.model, f'{tmp}/cases.json', f'{tmp}/masks'],
                             capture_output=True, text=True, check=True).stdout
        results = [json.loads(line) for line in out.splitlines()]
        masks = np.fromfile(f'{tmp}/masks', dtype=np.uint32)
    steps = sum(r['tokens'] for r in results)
    masks = masks.reshape(steps, -1)
    peers = [Llguidance(tokenizer, masks.shape[1] * 32), Xgrammar(tokenizer, masks.shape[1] * 32)]
    print(f'{"case":14}{"engine":12}{"first":>10}{"mean":>9}{"p50":>9}{"p99":>9}{"max":>10}'
          '  other')
    at = 0
    for case, ours in zip(cases, results):
        tokens = [tokenizer.encode(t, add_special_tokens=False) for t in case['texts']]
        if sum(len(t) + 1 for t in tokens) != ours['tokens']:
            sys.exit(f'{case["name"]}: the tokenizers differ')
        line = f'{case["name"]:14}'
        first = ours['compile'] + ours['cold_first']
        for kind in ('cold', 'mask'):
            print(f'{line}{"ours, " + kind:12}{first:10.0f}' +
                  ''.join(f'{ours[kind + "_" + k]:9.1f}' for k in ('mean', 'p50', 'p99')) +
                  f'{ours[kind + "_max"]:10.1f}')
        for peer in peers:
            r = run_peer(peer, case, tokens, masks[at:at + ours['tokens']])
            if 'error' in r:
                print(f'{line}{peer.name:12}{r["error"]}')
                continue
            print(f'{line}{peer.name:12}{r["first"]:10.0f}' +
                  ''.join(f'{r[k]:9.1f}' for k in ('mean', 'p50', 'p99')) + f'{r["max"]:10.1f}' +
                  '  +{:.1f} -{:.1f}'.format(*r['other']))
        at += ours['tokens']


if __name__ == '__main__':
    main()
