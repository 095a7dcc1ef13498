# SPDX-License-Identifier: Apache-2.0
"""Embeddings: the route over the fake engine, then all-MiniLM-L6-v2 through OpenAI's client and
through the program (scripts/fetch-model minilm brings it; without it these are skipped)."""
import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import threading

import pytest

from harness import BUILD, ROOT, Server

PROGRAM = BUILD / 'src/cli/1bit'
EMBEDDINGS = '/v1/embeddings'


def ask(server, **fields):
    return server.ask('POST', EMBEDDINGS, fields)


# ---- the route: the fake's vector of a text is (how many tokens, the first) ----------------------

@pytest.mark.parametrize('input, vectors', [
    ('abc', [[3, 97]]),
    (['abc', 'b'], [[3, 97], [1, 98]]),
    ([5, 6], [[2, 5]]),
    ([[5, 6], [7]], [[2, 5], [1, 7]]),
    ([[5], 'b'], [[1, 5], [1, 98]]),
])
def test_inputs(fake, input, vectors):
    reply = ask(fake, input=input, model='any', user='me')
    assert reply.status == 200
    assert reply.json == {
        'object': 'list', 'model': 'fake',
        'data': [{'object': 'embedding', 'index': i, 'embedding': v}
                 for i, v in enumerate(vectors)],
        'usage': {'prompt_tokens': sum(v[0] for v in vectors),
                  'total_tokens': sum(v[0] for v in vectors)}}


def test_formats(fake):
    text = ask(fake, input='abc', encoding_format='base64').json['data'][0]['embedding']
    assert struct.unpack('<2f', base64.b64decode(text, validate=True)) == (3, 97)
    text = ask(fake, input='abc', encoding_format='base64', dimensions=1).json['data'][0]
    assert struct.unpack('<f', base64.b64decode(text['embedding'], validate=True)) == (1,)
    for fields, vector in (({'encoding_format': None, 'dimensions': None}, [3, 97]),
                           ({'encoding_format': 'float', 'dimensions': 2}, [3, 97]),
                           ({'dimensions': 1}, [1])):
        assert ask(fake, input='abc', **fields).json['data'][0]['embedding'] == vector


@pytest.mark.parametrize('field, value', [
    *(('input', v) for v in (None, 1, {}, [], [-1], [256], [1, 'a'], ['a', 1], [[1], [256]],
                             [None], ['a'] * 2049)),
    *(('encoding_format', v) for v in ('hex', 1, [])),
    *(('dimensions', v) for v in (0, 3, 1.5, '1', True)),
])
def test_bad_values_are_refused_by_name(fake, field, value):
    reply = ask(fake, **{'input': 'x', field: value})
    assert reply.status == 400 and reply.json['error']['param'] == field, reply.body


# ---- a real encoder ------------------------------------------------------------------------------

def minilm():
    data = os.environ.get('XDG_DATA_HOME') or os.path.expanduser('~/.local/share')
    if not (pathlib.Path(data) / '1bit/models/minilm').exists():
        pytest.skip('minilm is not there: scripts/fetch-model minilm')
    return 'minilm'


def golden():
    """Texts with transformers' vectors (tools/make_embed_goldens.py)."""
    data = (ROOT / 'tests/golden/embeddings/minilm.bin').read_bytes()
    magic, texts, cols = struct.unpack_from('<4sII', data)
    assert magic == b'OBEM'
    at, out = 12, []
    for _ in range(texts):
        n, = struct.unpack_from('<I', data, at)
        text = data[at + 4:at + 4 + n].decode()
        out.append((text, struct.unpack_from(f'<{cols}f', data, at + 4 + n)))
        at += 4 + n + 4 * cols
    return out


def near(have, want):
    return len(have) == len(want) and max(abs(a - b) for a, b in zip(have, want)) < 1e-5


@pytest.fixture(scope='module')
def encoder():
    server = Server(PROGRAM, 'serve', '-m', minilm(), '-p', '0').wait_ready()
    yield server
    assert server.stop() == 0, server.lines


@pytest.fixture
def client(encoder):
    openai = pytest.importorskip('openai')
    return openai.OpenAI(base_url=encoder.url + '/v1', api_key='none', max_retries=0)


def test_vectors_of_all_texts(client):
    want = golden()
    texts = [text for text, _ in want]
    for format in 'float', 'base64', None:  # the client asks for base64 by itself
        fields = {'encoding_format': format} if format else {}
        reply = client.embeddings.create(model='any', input=texts, **fields)
        assert [d.index for d in reply.data] == list(range(len(texts)))
        for d, (_, vector) in zip(reply.data, want):
            have = d.embedding
            if format == 'base64':
                have = struct.unpack('<384f', base64.b64decode(have))
            assert near(have, vector)
    assert reply.usage.prompt_tokens == reply.usage.total_tokens > len(texts)


def test_shorter_vectors(client):
    text, vector = golden()[0]
    have = client.embeddings.create(model='any', input=text, dimensions=100).data[0].embedding
    length = math.sqrt(sum(v * v for v in vector[:100]))
    assert near(have, [v / length for v in vector[:100]])


def test_many_at_once(client):
    want, wrong = golden(), []

    def work(i):
        text, vector = want[i % len(want)]
        have = client.embeddings.create(model='any', input=[text] * 3).data
        if not all(near(d.embedding, vector) for d in have):
            wrong.append(text)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_an_encoder_refuses(encoder):
    reply = ask(encoder, input='word ' * 600)
    assert reply.status == 400 and reply.json['error']['param'] == 'input'
    assert '602 tokens, the model reads 512' in reply.json['error']['message']
    for reply in encoder.complete('x'), encoder.chat('x'):
        assert reply.status == 400 and EMBEDDINGS in reply.json['error']['message']


def test_program():
    want = [(text, vector) for text, vector in golden() if '\n' not in text and '\0' not in text]
    for words, lines in (([text for text, _ in want], None), ([], [text for text, _ in want])):
        out = subprocess.run([PROGRAM, 'embed', '-m', minilm(), '--json', *words],
                             input=None if lines is None else '\n'.join(lines) + '\n',
                             capture_output=True, encoding='utf-8')
        assert out.returncode == 0, out.stderr
        rows = [json.loads(line) for line in out.stdout.splitlines()]
        assert [row['text'] for row in rows] == [text for text, _ in want]
        assert all(near(row['embedding'], vector) for row, (_, vector) in zip(rows, want))
    out = subprocess.run([PROGRAM, 'embed', '-m', minilm(), want[0][0]], capture_output=True,
                         encoding='utf-8')
    assert near([float(word) for word in out.stdout.split()], want[0][1])


@pytest.mark.parametrize('words, line', [
    (['run', '-p', 'hi'], 'reads texts and writes none'),
    (['bench'], 'reads texts and writes none'),
    (['embed', 'word ' * 600], 'text 0 has 602 tokens, the model reads 512'),
])
def test_what_the_program_refuses(words, line):
    out = subprocess.run([PROGRAM, words[0], '-m', minilm(), *words[1:]], capture_output=True,
                         encoding='utf-8')
    assert out.returncode == 1 and out.stdout == ''
    assert line in out.stderr and out.stderr.count('\n') == 1
