# SPDX-License-Identifier: Apache-2.0
"""llama.cpp gives the same top tokens as we do, reading what `1bit convert` wrote: for every
miniature of tests/golden/families whose architecture it has (tools/llama_cpp.py: READS), over
random ids, our reference device against its CPU in float32.

The library is that of the Python package xllamacpp (tests/requirements.txt), or ONEBIT_LLAMA_LIB's.
Where neither is to be had the tests are skipped, unless REQUIRE_TEST_DATA=1 (.ci/run)."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import llama_cpp

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('BUILD_DIR', ROOT / 'build')).resolve()
GOLDEN = ROOT / 'tests/golden/families'
IDS = random.Random(1).choices(range(8, 256), k=40)
# In deviations of the logits. llama.cpp's exponentials and masks are of 16 bits, and where an
# expert, a key or a ternary rounding is nearly tied it may choose the other: of a few positions.
TIE, NEAR, FAR_ROWS = 2e-2, 5e-2, 4


@pytest.fixture(scope='module')
def library():
    path = llama_cpp.library()
    if path:
        return path
    reason = 'no llama.cpp: neither the package xllamacpp nor ONEBIT_LLAMA_LIB'
    if os.environ.get('REQUIRE_TEST_DATA') == '1':
        pytest.fail(reason)
    pytest.skip(reason)


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120,
                          errors='replace')
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def is_encoder(folder):
    return b'hidden_a' in (folder / 'golden.bin').read_bytes()


def names_of_goldens():
    """{golden: names under which llama.cpp may have its architecture}: that which its class is
    written as, and its model types in all spellings of a name."""
    listed = json.loads(run(BUILD / 'src/cli/1bit', 'info', '--architectures', '--json'))
    by_class, by_type = {}, {}
    for r in listed['architectures']:
        by_class[r['class']] = r['gguf']
        for t in r['model_types']:
            by_type.setdefault(t, set()).add(r['gguf'])
    out = {}
    for folder in sorted(p for p in GOLDEN.iterdir() if p.is_dir()):
        config = json.loads((folder / 'config.json').read_text())
        types = {config['model_type'], config.get('text_config', config).get('model_type')}
        named = {by_class.get(c) for c in config['architectures']} - {None}
        named = named or set().union(*(by_type.get(t, set()) for t in types))
        for t in (t for t in types if t):
            short = t.removesuffix('_text')
            named |= {t, t.replace('_', '-'), short.replace('_', '-'), short.replace('_', '')}
        out[folder.name] = named - {None, 'own'}
    return out


def test_every_miniature_of_an_architecture_that_llama_cpp_has_is_listed(library):
    names = names_of_goldens()
    known = llama_cpp.known(library, set().union(*names.values()))
    assert {'bert', 'kimi-linear', 'llama'} <= known and 'rwkv' not in known
    listed = set(llama_cpp.READS) | set(llama_cpp.DIFFERS)
    unlisted = sorted({n for n, some in names.items() if some & known} - listed)
    assert not unlisted, f'neither in READS nor in DIFFERS: {" ".join(unlisted)}'


def test_only_miniatures_are_listed_and_each_once():
    assert not set(llama_cpp.READS) & set(llama_cpp.DIFFERS)
    assert set(llama_cpp.READS) | set(llama_cpp.DIFFERS) <= {p.name for p in GOLDEN.iterdir()}
    assert list(llama_cpp.READS) == sorted(llama_cpp.READS)
    assert all(reason and len(reason) < 100 for reason in llama_cpp.DIFFERS.values())


def both(name, library, folder, ours=(), theirs=()):
    """What we say of the ids, and what llama.cpp says that reads what we wrote."""
    model, gguf = folder / 'model', folder / 'model.gguf'
    run(BUILD / 'tests/check/golden_unpack', GOLDEN / name, model)
    llama_cpp.apply(llama_cpp.READS[name], model)
    run(BUILD / 'src/cli/1bit', 'convert', model, gguf)
    run(BUILD / 'tests/check/model_logits', *ours, model, folder / 'ours', *IDS)
    run(sys.executable, llama_cpp.__file__, *theirs, library, gguf, folder / 'theirs', *IDS)
    out = [np.fromfile(folder / name, np.float32).astype(np.float64) for name in ('ours', 'theirs')]
    shutil.rmtree(folder)
    assert out[0].shape == out[1].shape and np.isfinite(out).all()
    return out


@pytest.mark.parametrize('name', [n for n in llama_cpp.READS if n not in llama_cpp.SOFTMAX])
def test_llama_cpp_gives_the_same(name, library, tmp_path):
    encoder = is_encoder(GOLDEN / name)
    flags = ['--encoder'] * encoder + ['--flash'] * (name in llama_cpp.FLASH)
    ours, theirs = (rows.reshape(len(IDS), -1)
                    for rows in both(name, library, tmp_path, theirs=flags))
    off = np.abs(ours - theirs).max(-1) / ours.std()
    assert (off > NEAR).sum() <= FAR_ROWS, f'rows off by {np.sort(off)[::-1][:8]} deviations'
    if not encoder:
        want, have = ours.max(-1), ours[range(len(IDS)), theirs.argmax(-1)]
        assert ((want - have) / ours.std()).max() <= TIE, 'another top token'


@pytest.mark.parametrize('name', llama_cpp.SCORES)
def test_llama_cpp_gives_the_scores(name, library, tmp_path):
    ours, theirs = both(name, library, tmp_path, ['--scores'], ['--scores'])
    if name in llama_cpp.SOFTMAX:
        ours = np.exp(ours) / np.exp(ours).sum()
    assert ours.std() > 0.03 and np.abs(ours - theirs).max() < 1e-3
