# SPDX-License-Identifier: Apache-2.0
"""--gpu-layers: the last layers on the device, those before on the CPU. Plain C is the device."""
import pathlib
import subprocess

import pytest

from harness import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / 'tests/golden/tiny.gguf'


def call(*words):
    return subprocess.run([BUILD / 'src/cli/1bit', *map(str, words)], capture_output=True,
                          timeout=60, stdin=subprocess.DEVNULL, text=True, errors='replace')


def devices(*words):
    """The device of each tensor that --placement lists."""
    result = call('info', TINY, '--placement', '--device', 'ref', *words)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if '.weight  ' in line]
    return {row[0]: row[4] for row in rows}


def test_which_layers():
    whole = devices()
    assert set(whole.values()) == {'ref'} and devices('--gpu-layers', 'auto') == whole
    layers = 1 + max(int(name.split('.')[1]) for name in whole if name.startswith('blk.'))
    assert devices('--gpu-layers', layers + 1) == devices('--gpu-layers', 99) == whole
    assert set(devices('--gpu-layers', 0).values()) == {'cpu'}
    some = devices('--gpu-layers', 2)
    for name, device in some.items():
        if name.startswith('blk.'):
            last = int(name.split('.')[1]) == layers - 1
            assert device == ('ref' if last else 'cpu'), name
    assert some['output_norm.weight'] == 'ref'


def test_the_answer_is_the_same():
    words = ['run', '-m', TINY, '--raw', '-p', 'hello', '-n', 12, '--temp', 0, '--device', 'ref',
             '--kv-type', 'f32']
    whole = call(*words)
    assert whole.returncode == 0, whole.stderr
    assert call(*words, '--gpu-layers', 1).stdout == whole.stdout


@pytest.mark.parametrize('words, what', [
    (['--device', 'cpu', '--gpu-layers', 1], 'device cpu runs all layers as it is'),
    (['--device', 'ref', '--gpu-layers', 'x'], '"x" is neither a number nor auto'),
    (['--device', 'ref', '--gpu-layers', '-1'], '"-1" is neither a number nor auto'),
])
def test_refused(words, what):
    result = call('run', '-m', TINY, '--raw', '-p', 'x', '-n', 1, *words)
    assert result.returncode != 0 and result.stdout == '' and result.stderr.count('\n') == 1
    assert f'--gpu-layers: {what}' in result.stderr
