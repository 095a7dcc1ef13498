# SPDX-License-Identifier: Apache-2.0
"""What a model's files say of sampling: shown, used, overridden by options and by requests, refused
by name when it is wrong. And the sampling options themselves, on a tiny model of random weights."""
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from harness import BUILD, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / 'tests/golden/tiny.gguf'
F32, I32, STRING = 6, 5, 8


def text_of(value):
    return struct.pack('<Q', len(value)) + value.encode()


def with_keys(path, keys):
    """The tiny model with more metadata in front."""
    data = bytearray(TINY.read_bytes())
    more = b''
    for key, value in keys.items():
        kind = {float: F32, int: I32, str: STRING}[type(value)]
        more += text_of('general.sampling.' + key) + struct.pack('<I', kind)
        more += text_of(value) if kind == STRING else struct.pack('<f' if kind == F32 else '<i',
                                                                  value)
    # A key in front of them makes the length a multiple of the tensors' alignment.
    filler = text_of('filler') + struct.pack('<I', STRING)
    more += filler + text_of('x' * (-(len(more) + len(filler) + 8) % 32))
    count, = struct.unpack_from('<Q', data, 16)
    struct.pack_into('<Q', data, 16, count + len(keys) + 1)
    path.write_bytes(data[:24] + more + data[24:])
    return path


def call(*words):
    return subprocess.run([BUILD / 'src/cli/1bit', *map(str, words)], capture_output=True,
                          timeout=60, stdin=subprocess.DEVNULL, errors='replace')


def answer(model, *words):
    result = call('run', '-m', model, '--raw', '-p', 'hello', '-n', 30, *words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def sampling(model):
    result = call('info', '--json', model)
    assert result.returncode == 0
    return json.loads(result.stdout)['sampling']


def test_a_gguf_s_keys(tmp_path):
    path = with_keys(tmp_path / 'm.gguf', {
        'temp': 0.0, 'top_k': 7, 'penalty_repeat': 1.25, 'mirostat_tau': 2.5,
        'sequence': 'penalties;top_k;temperature'})
    told = sampling(path)
    assert told['from_files'] == ['mirostat_tau', 'repeat_penalty', 'temperature', 'top_k', 'order']
    assert (told['temperature'], told['top_k'], told['repeat_penalty']) == (0, 7, 1.25)
    assert told['order'] == 'penalties;top_k;temperature' and told['top_p'] == 0.95
    assert 'repeat_penalty 1.25, temperature 0.0, top_k 7' in call('info', path).stdout
    greedy = answer(path)
    assert greedy == answer(path) == answer(TINY, '--temp', 0, '--repeat-penalty', 1.25)
    assert ', seed' not in call('run', '-m', path, '--raw', '-p', 'x', '-n', 2).stderr
    assert len({answer(path, '--temp', 3, '--top-k', 0) for _ in range(3)}) == 3


def test_a_directory_s_file(llama, tmp_path):
    folder = shutil.copytree(llama, tmp_path / 'm')
    file = folder / 'generation_config.json'
    file.write_text(json.dumps({'temperature': 0.25, 'top_k': 3.0, 'top_p': None, 'do_sample': True,
                                'repetition_penalty': 1, 'eos_token_id': [1]}))
    told = sampling(folder)
    assert told['from_files'] == ['repeat_penalty', 'temperature', 'top_k']
    assert (told['temperature'], told['top_k'], told['top_p']) == (0.25, 3, 0.95)


def test_a_converted_directory_keeps_them(llama, tmp_path):
    folder = shutil.copytree(llama, tmp_path / 'm')
    (folder / 'generation_config.json').write_text(json.dumps(
        {'temperature': 0.25, 'top_k': 3, 'top_p': 0.5, 'min_p': 0.125, 'typical_p': 0.75,
         'repetition_penalty': 1.5}))
    assert call('convert', folder, tmp_path / 'm.gguf').returncode == 0
    assert sampling(tmp_path / 'm.gguf') == sampling(folder)
    ordered = with_keys(tmp_path / 'o.gguf', {'temp': 0.5, 'sequence': 'top_k;temperature'})
    assert call('convert', ordered, tmp_path / 'again.gguf').returncode == 0
    assert sampling(tmp_path / 'again.gguf') == sampling(ordered)


@pytest.mark.parametrize('keys, key, what', [
    ({'temp': -1.0}, 'general.sampling.temp', 'must be a number from 0 to 1000000'),
    ({'top_p': 'x'}, 'general.sampling.top_p', 'must be a number from 0 to 1'),
    ({'top_k': 1.5}, 'general.sampling.top_k', 'must be an integer, -1 or more'),
    ({'sequence': 'top_k;beam'}, 'general.sampling.sequence', 'sampler "beam" is unknown'),
    ({'sequence': 'x' * 300}, 'general.sampling.sequence', 'must be names of samplers'),
])
def test_a_gguf_s_bad_keys(tmp_path, keys, key, what):
    path = with_keys(tmp_path / 'm.gguf', keys)
    result = call('run', '-m', path, '-p', 'x')
    assert result.returncode == 1 and result.stdout == '' and result.stderr.count('\n') == 1
    assert f'{key}: {what}' in result.stderr
    assert what in sampling(path)['error']


@pytest.mark.parametrize('text, what', [
    ('{"temperature": "1"}', 'temperature: must be a number from 0 to 1000000'),
    ('{"top_k": 1.5}', 'top_k: must be an integer, -1 or more'),
    ('{"top_p": 1e999}', 'top_p: must be a number from 0 to 1'),
    ('{"min_p": [1]}', 'min_p: must be a number from 0 to 1'),
])
def test_a_directory_s_bad_file(llama, tmp_path, text, what):
    folder = shutil.copytree(llama, tmp_path / 'm')
    (folder / 'generation_config.json').write_text(text)
    result = call('run', '-m', folder, '-p', 'x')
    assert result.returncode == 1 and result.stderr.count('\n') == 1
    assert f'generation_config.json: {what}' in result.stderr


@pytest.mark.parametrize('words, what', [
    (['--logit-bias', 'x'], '--logit-bias: not JSON'),
    (['--logit-bias', '5'], '--logit-bias: must be an object or an array'),
    (['--logit-bias', '{"1": "x"}'], '--logit-bias: must be numbers from'),
    (['--dry-breakers', '["a", ""]'], '--dry-breakers: must be strings of 1 to 40 bytes'),
    (['--xtc-probability', '1.5'], '--xtc-probability: 1.5 is not from 0 to 1'),
    (['--mirostat', '3'], '--mirostat: 3 is not from 0 to 2'),
    (['--samplers', 'top_k;mirostat'], '--samplers: sampler "mirostat" is unknown'),
])
def test_bad_options(words, what):
    for command in ['run', '-p', 'x'], ['serve', '-p', '0']:
        result = call(command[0], '-m', TINY, *command[1:], *words)
        assert result.returncode == 2 and result.stdout == '', result
        assert f'1bit {command[0]}: {what}' in result.stderr


def test_a_bias_outside_the_vocabulary():
    result = call('run', '-m', TINY, '-p', 'x', '--logit-bias', '{"999999": 1}')
    assert result.returncode == 1
    assert re.search(r'--logit-bias: entry 0: token 999999 is not in the vocabulary', result.stderr)


@pytest.mark.parametrize('words', [
    ['--top-k', 1], ['--samplers', 'top-k;temp', '--top-k', 1], ['--top-n-sigma', 0.01],
    ['--min-p', 1], ['--top-p', 0], ['--mirostat', 2, '--mirostat-tau', 0]])
def test_options_that_leave_the_best(words):
    assert answer(TINY, '--temp', 0) == answer(TINY, '--temp', 1, *words)


@pytest.mark.parametrize('words', [
    ['--xtc-probability', 1, '--xtc-threshold', 0.0001], ['--typical-p', 0.01],
    ['--dry-multiplier', 5, '--dry-allowed-length', 0], ['--repeat-penalty', 3],
    ['--logit-bias', json.dumps({str(i): False for i in range(0, 288, 2)})]])
def test_options_that_change_the_best(words):
    changed = answer(TINY, '--temp', 0, *words)
    assert changed != answer(TINY, '--temp', 0) and changed == answer(TINY, '--temp', 0, *words)


def test_a_server_s_defaults_and_log_probabilities(tmp_path):
    path = with_keys(tmp_path / 'm.gguf', {'temp': 0.0, 'top_k': 5})
    server = Server(BUILD / 'src/cli/1bit', 'serve', '-m', path, '-p', '0', '--top-p',
                    '0.5').wait_ready()
    try:
        fields = {'max_tokens': 12, 'ignore_eos': True}
        a, b = (server.complete('hello', **fields).json['choices'][0]['text'] for _ in '12')
        assert a == b
        fields |= {'temperature': 2, 'top_p': 1, 'min_p': 0, 'seed': 4, 'logprobs': 8}
        one = server.complete('hello', **fields).json['choices'][0]['logprobs']
        assert len(one['tokens']) == len(one['token_logprobs']) == len(one['top_logprobs']) == 12
        for value, top in zip(one['token_logprobs'], one['top_logprobs']):
            assert value <= max(top.values()) + 1e-6 and max(top.values()) < 0
        after = server.complete('hello', post_sampling_probs=True, **fields)
        for token in after.json['choices'][0]['logprobs']['content']:
            assert len(token['top_probs']) == 5  # the file's top_k
            assert math.isclose(sum(t['prob'] for t in token['top_probs']), 1, abs_tol=1e-5)
            assert token['prob'] in [t['prob'] for t in token['top_probs']]
        for field, value in ('logit_bias', {'999999': 1}), ('samplers', ['beam']):
            reply = server.complete('x', **{field: value})
            assert (reply.status, reply.json['error']['param']) == (400, field)
        model, = server.ask('GET', '/v1/models').json['data']
        all_of_them = [[i, False] for i in range(model['meta']['n_vocab'])]
        reply = server.complete('x', logit_bias=all_of_them)
        assert reply.status == 400
        assert reply.json['error']['message'] == 'logit_bias: every token is forbidden'
    finally:
        assert server.stop() == 0, server.lines


def test_a_server_s_seed():
    """Of requests that name none; -1 is still a random one."""
    server = Server(BUILD / 'src/cli/1bit', 'serve', '-m', TINY, '-p', '0', '--seed',
                    '7').wait_ready()
    def text(**fields):
        reply = server.complete('hello', max_tokens=20, temperature=2, top_k=0, top_p=1, **fields)
        return reply.json['choices'][0]['text']
    try:
        assert text() == text() == text(seed=7) and text() != text(seed=8)
        assert len({text(seed=-1) for _ in range(4)}) > 1
    finally:
        assert server.stop() == 0, server.lines
