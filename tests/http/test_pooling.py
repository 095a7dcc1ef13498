# SPDX-License-Identifier: Apache-2.0
"""How one vector is made of a text: every way of sentence-transformers, side by side, behind dense
layers, of encoders and of models that write, as a directory and converted, against its formulas in
NumPy on transformers' last states (tests/golden/families)."""
import json
import math
import struct
import subprocess

import pytest

from harness import BUILD, ROOT, Server, unpack

np = pytest.importorskip('numpy')
PROGRAM = BUILD / 'src/cli/1bit'
WIDTH = 32


def arrays(family):
    """Those of golden.bin (tests/golden/families/README.md)."""
    data = (ROOT / 'tests/golden/families' / family / 'golden.bin').read_bytes()
    at, out = 16, {}
    tensors, count = struct.unpack_from('<II', data, 8)

    def name():
        nonlocal at
        text = data[at + 1:at + 1 + data[at]].decode()
        at += 1 + data[at]
        return text
    for _ in range(tensors):
        name()
        size = {'F32': 4, 'I32': 4, 'I64': 8, 'U8': 1}[name()]
        stored, dims = data[at], data[at + 1]
        shape = struct.unpack_from(f'<{dims}I', data, at + 2)
        at += 2 + 4 * dims + 8 + (size * math.prod(shape) if stored else 16)
    for _ in range(count):
        key = name()
        whole, rows, cols = struct.unpack_from('<BII', data, at)
        at += 9
        if whole:
            out[key] = np.frombuffer(data, '<i4', rows * cols, at)
            at += 4 * rows * cols
            continue
        out[key] = np.empty((rows, cols))
        for r in range(rows):
            low, step = struct.unpack_from('<ff', data, at)
            out[key][r] = low + step * np.frombuffer(data, '<u2', cols, at + 8)
            at += 8 + 2 * cols
    return out


POOL = {
    'cls': lambda x: x[0],
    'max': lambda x: x.max(0),
    'mean': lambda x: x.mean(0),
    'mean_sqrt_len_tokens': lambda x: x.sum(0) / np.sqrt(len(x)),
    'weightedmean': lambda x: (np.arange(1, len(x) + 1) @ x) / np.arange(1, len(x) + 1).sum(),
    'lasttoken': lambda x: x[-1],
}
FLAG = {'cls': 'cls_token', 'max': 'max_tokens', 'mean': 'mean_tokens', 'lasttoken': 'lasttoken',
        'mean_sqrt_len_tokens': 'mean_sqrt_len_tokens', 'weightedmean': 'weightedmean_tokens'}
ACT = {'Tanh': np.tanh, 'Identity': lambda x: x, 'ReLU': lambda x: np.maximum(x, 0)}


class Dense:
    def __init__(self, rng, cols, rows, act, bias):
        self.w, self.act = rng.normal(0, 1 / math.sqrt(cols), (rows, cols)).astype('<f4'), act
        self.b = rng.normal(0, .3, rows).astype('<f4') if bias else None

    def __call__(self, x):
        return ACT[self.act](self.w @ x + (0 if self.b is None else self.b))

    def write(self, folder):
        folder.mkdir()
        rows, cols = self.w.shape
        (folder / 'config.json').write_text(json.dumps({
            'in_features': cols, 'out_features': rows, 'bias': self.b is not None,
            'activation_function': f'torch.nn.modules.activation.{self.act}'}))
        parts = {'linear.weight': self.w} | ({} if self.b is None else {'linear.bias': self.b})
        header, at = {}, 0
        for name, x in parts.items():
            header[name] = {'dtype': 'F32', 'shape': list(x.shape),
                            'data_offsets': [at, at + x.nbytes]}
            at += x.nbytes
        text = json.dumps(header).encode()
        (folder / 'model.safetensors').write_bytes(
            struct.pack('<Q', len(text)) + text + b''.join(x.tobytes() for x in parts.values()))


def byte_tokenizer(folder):
    """Ids 0 to 254 stand for bytes, as in GPT-2's alphabet; a GGUF wants a merge: 255."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    text = {b: chr(b) for b in plain}
    text |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in text)}
    (folder / 'tokenizer.json').write_text(json.dumps({
        'version': '1.0', 'added_tokens': [], 'normalizer': None, 'post_processor': None,
        'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True},
        'decoder': {'type': 'ByteLevel'}, 'truncation': None, 'padding': None,
        'model': {'type': 'BPE', 'merges': ['a b'],
                  'vocab': {text[b]: b for b in range(255)} | {'ab': 255},
                  'unk_token': None}}))


def directory(folder, family, ways, denses=(), unit=False, newer=False):
    unpack(family, folder)
    byte_tokenizer(folder)
    package = 'sentence_transformers.models.'
    modules = [{'type': package + 'Transformer', 'path': ''},
               {'type': package + 'Pooling', 'path': '1_Pooling'}]
    (folder / '1_Pooling').mkdir()
    flags = {f'pooling_mode_{FLAG[way]}': way in ways for way in POOL}
    (folder / '1_Pooling/config.json').write_text(
        json.dumps({'pooling_mode': list(ways)} if newer else flags))
    for i, dense in enumerate(denses):
        dense.write(folder / f'{i + 2}_Dense')
        modules.append({'type': package + 'Dense', 'path': f'{i + 2}_Dense'})
    if unit:
        modules.append({'type': package + 'Normalize', 'path': '9_Normalize'})
    (folder / 'modules.json').write_text(json.dumps(modules))
    return folder


def vectors(model, texts):
    server = Server(PROGRAM, 'serve', '-m', model, '-p', '0').wait_ready()
    try:
        reply = server.ask('POST', '/v1/embeddings', {'input': texts})
        assert reply.status == 200, reply.body
        refused = server.complete('x')
        assert refused.status == 400 and '/v1/embeddings' in refused.json['error']['message']
        return [np.array(d['embedding']) for d in reply.json['data']]
    finally:
        server.stop()


def check(folder, states, ids, ways, denses=(), unit=False):
    """The directory, then a GGUF made of it."""
    want = []
    for x in states:
        y = np.concatenate([POOL[way](x) for way in ways])
        for dense in denses:
            y = dense(y)
        want.append(y / np.linalg.norm(y) if unit else y)
    have = vectors(folder, ids)
    for h, w in zip(have, want):
        assert h.shape == w.shape and np.abs(h - w).max() < 3e-4 * max(1, np.abs(w).max())
    gguf = folder.parent / 'converted.gguf'
    made = subprocess.run([PROGRAM, 'convert', folder, gguf], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for a, b in zip(have, vectors(gguf, ids)):
        assert np.array_equal(a, b)


def bert():
    golden = arrays('bert')
    return ([golden['hidden_a'], golden['hidden_b']],
            [golden[f'input_ids_{p}'].tolist() for p in 'ab'])


@pytest.mark.parametrize('ways', [*((way,) for way in POOL), ('cls', 'mean'), tuple(POOL)])
def test_ways(tmp_path, ways):
    states, ids = bert()
    check(directory(tmp_path / 'm', 'bert', ways), states, ids, ways)


def test_the_order_of_a_list(tmp_path):
    states, ids = bert()
    ways = ('lasttoken', 'max')
    check(directory(tmp_path / 'm', 'bert', ways, newer=True, unit=True), states, ids, ways,
          unit=True)


@pytest.mark.parametrize('unit', [False, True])
def test_dense_layers(tmp_path, unit):
    rng = np.random.default_rng(3)
    states, ids = bert()
    ways = ('cls', 'mean')
    for n, denses in enumerate(([Dense(rng, 64, 24, 'Tanh', True)],
                                [Dense(rng, 64, 48, 'Identity', False),
                                 Dense(rng, 48, 40, 'ReLU', True)])):
        (tmp_path / str(n)).mkdir()
        check(directory(tmp_path / str(n) / 'm', 'bert', ways, denses, unit), states, ids, ways,
              denses, unit)


def test_embedding_gemma(tmp_path):
    """Tokens see later ones; the mean, two dense layers."""
    rng, family = np.random.default_rng(4), 'gemma3_text-embedding'
    golden = arrays(family)
    denses = [Dense(rng, WIDTH, 64, 'Identity', False), Dense(rng, 64, WIDTH, 'Identity', False)]
    check(directory(tmp_path / 'm', family, ('mean',), denses, True),
          [golden['hidden_a'], golden['hidden_b']],
          [golden[f'input_ids_{p}'].tolist() for p in 'ab'], ('mean',), denses, True)


@pytest.mark.parametrize('way', ['lasttoken', 'mean'])
def test_a_model_that_writes(tmp_path, way):
    """Its states are those behind the last norm, of which the logits are a linear function: so are
    the vector's products with the output matrix, where it is a mean or a row."""
    golden = arrays('qwen3')
    folder = directory(tmp_path / 'm', 'qwen3', (way,))
    ids = [golden[f'input_ids_{p}'].tolist() for p in 'ab']
    data = (folder / 'model.safetensors').read_bytes()
    n, = struct.unpack_from('<Q', data)
    header = json.loads(data[8:8 + n])
    at = header.get('lm_head.weight', header.get('model.embed_tokens.weight'))
    from_, to = at['data_offsets']
    out = np.frombuffer(data[8 + n:][from_:to], '<f4').reshape(at['shape'])
    have = vectors(folder, ids)
    for v, p in zip(have, 'ab'):
        want = POOL[way](golden[f'logits_{p}'])
        assert np.abs(out @ v - want).max() < 1e-3
    prefix = vectors(folder, [ids[0][:50]])[0]
    if way == 'lasttoken':
        assert np.abs(out @ prefix - golden['logits_a'][49]).max() < 1e-3  # causal
    gguf = tmp_path / 'q.gguf'
    assert subprocess.run([PROGRAM, 'convert', folder, gguf], capture_output=True).returncode == 0
    for a, b in zip(have, vectors(gguf, ids)):
        assert np.array_equal(a, b)


@pytest.mark.parametrize('module, says', [
    ('WeightedLayerPooling', 'a module "WeightedLayerPooling" is not supported'),
    ('Dense', 'two others'),
])
def test_what_is_refused(tmp_path, module, says):
    rng = np.random.default_rng(5)
    folder = directory(tmp_path / 'm', 'bert', ('mean',),
                       [Dense(rng, WIDTH, WIDTH, 'Tanh', True) for _ in range(2)])
    modules = json.loads((folder / 'modules.json').read_text())
    modules.append({'type': 'sentence_transformers.models.' + module, 'path': 'x'})
    (folder / 'modules.json').write_text(json.dumps(modules))
    out = subprocess.run([PROGRAM, 'embed', '-m', folder, 'x'], capture_output=True, text=True)
    assert out.returncode == 1 and says in out.stderr and 'modules.json' in out.stderr


def test_a_dense_layer_of_another_width(tmp_path):
    rng = np.random.default_rng(6)
    folder = directory(tmp_path / 'm', 'bert', ('mean',), [Dense(rng, 48, 8, 'Tanh', True)])
    out = subprocess.run([PROGRAM, 'embed', '-m', folder, 'x'], capture_output=True, text=True)
    assert out.returncode == 1 and 'reads 48 numbers of 32' in out.stderr


@pytest.mark.parametrize('key, value',
                         [('is_causal', False), ('use_bidirectional_attention', True)])
def test_a_decoder_that_would_see_later_tokens(tmp_path, key, value):
    folder = directory(tmp_path / 'm', 'qwen3', ('lasttoken',))
    config = json.loads((folder / 'config.json').read_text()) | {key: value}
    (folder / 'config.json').write_text(json.dumps(config))
    out = subprocess.run([PROGRAM, 'embed', '-m', folder, 'x'], capture_output=True, text=True)
    assert out.returncode == 1 and key in out.stderr
