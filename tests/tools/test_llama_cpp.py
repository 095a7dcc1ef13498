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


def rows_of(path, n):
    rows = np.fromfile(path, np.float32).reshape(n, -1).astype(np.float64)
    assert np.isfinite(rows).all()
    return rows


def written_as():
    """{golden: general.architecture} of those that llama.cpp might read."""
    listed = json.loads(run(BUILD / 'src/cli/1bit', 'info', '--architectures', '--json'))
    known = {}
    for r in listed['architectures']:
        for t in r['model_types']:
            if known.get(t, 'own') == 'own':
                known[t] = r['gguf']
    out = {}
    for folder in sorted(p for p in GOLDEN.iterdir() if p.is_dir()):
        config = json.loads((folder / 'config.json').read_text())
        inner = config.get('text_config', config).get('model_type')
        name = known.get(config['model_type'], 'own') or known.get(inner)
        if name and name != 'own':
            out[folder.name] = name
    return out


def test_llama_cpp_has_the_architectures_that_are_listed():
    assert set(llama_cpp.READS) | set(llama_cpp.DIFFERS) <= set(written_as())
    assert not set(llama_cpp.READS) & set(llama_cpp.DIFFERS)


@pytest.mark.parametrize('name', llama_cpp.READS)
def test_llama_cpp_gives_the_same(name, library, tmp_path):
    model, gguf = tmp_path / 'model', tmp_path / 'model.gguf'
    run(BUILD / 'tests/check/golden_unpack', GOLDEN / name, model)
    llama_cpp.apply(llama_cpp.READS[name], model)
    run(BUILD / 'src/cli/1bit', 'convert', model, gguf)
    encoder = is_encoder(GOLDEN / name)
    run(BUILD / 'tests/check/model_logits', model, tmp_path / 'ours', *IDS)
    run(sys.executable, llama_cpp.__file__, *['--encoder'] * encoder, library, gguf,
        tmp_path / 'theirs', *IDS)
    ours, theirs = (rows_of(tmp_path / name, len(IDS)) for name in ('ours', 'theirs'))
    shutil.rmtree(tmp_path)
    assert ours.shape == theirs.shape
    off = np.abs(ours - theirs).max(-1) / ours.std()
    assert (off > NEAR).sum() <= FAR_ROWS, f'rows off by {np.sort(off)[::-1][:8]} deviations'
    if not encoder:
        want, have = ours.max(-1), ours[range(len(IDS)), theirs.argmax(-1)]
        assert ((want - have) / ours.std()).max() <= TIE, 'another top token'
