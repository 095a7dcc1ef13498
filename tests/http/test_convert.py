# SPDX-License-Identifier: Apache-2.0
"""`1bit convert`: what it writes, what it refuses, and that an interrupted file is gone on with."""
import subprocess

import pytest

from harness import BUILD, unpack


def convert(*words):
    return subprocess.run([BUILD / 'src/cli/1bit', 'convert', *words], capture_output=True,
                          text=True, timeout=120)


@pytest.fixture(scope='module')
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp('llama')
    unpack('llama', folder)
    return folder


def test_the_file_is_read_again(llama, tmp_path):
    out = tmp_path / 'llama.gguf'
    result = convert(llama, out)
    assert result.returncode == 0, result.stderr
    info = subprocess.run([BUILD / 'src/cli/1bit', 'info', out], capture_output=True, text=True)
    assert info.returncode == 0 and 'llama' in info.stdout


@pytest.mark.parametrize('kind, smaller', [('f16', 1.9), ('bf16', 1.9), ('q8_0', 3.0)])
def test_matrices_become_smaller(llama, tmp_path, kind, smaller):
    sizes = []
    for name, words in (('whole', ()), (kind, ('--type', kind))):
        out = tmp_path / f'{name}.gguf'
        assert convert(*words, llama, out).returncode == 0
        sizes.append(out.stat().st_size)
    header = 8192  # about; it does not shrink
    assert (sizes[0] - header) / (sizes[1] - header) > smaller * 0.8


def test_a_dry_run_writes_nothing(llama, tmp_path):
    out = tmp_path / 'dry.gguf'
    result = convert('--dry-run', '--type', 'f16', llama, out)
    assert result.returncode == 0 and 'blk.1.ffn_down.weight' in result.stdout
    assert 'F32   -> F16' in result.stdout and not out.exists()


def test_an_interrupted_file_is_gone_on_with(llama, tmp_path):
    whole, out = tmp_path / 'whole.gguf', tmp_path / 'out.gguf'
    assert convert(llama, whole).returncode == 0
    data = whole.read_bytes()
    part = tmp_path / 'out.gguf.part'
    for keep in (0, 100, len(data) // 2, len(data) - 40):
        part.write_bytes(data[:keep])
        assert convert(llama, out).returncode == 0
        assert out.read_bytes() == data and not part.exists()
        out.unlink()
    part.write_bytes(b'GGUF of another model' + data[21:])
    assert convert(llama, out).returncode == 0 and out.read_bytes() == data


def test_what_is_refused(llama, tmp_path):
    out = tmp_path / 'there.gguf'
    out.write_bytes(b'mine')
    result = convert(llama, out)
    assert result.returncode == 1 and 'exists already' in result.stderr
    assert out.read_bytes() == b'mine'
    result = convert(llama)
    assert result.returncode == 2 and 'where to write' in result.stderr
    result = convert('--type', 'q9', llama, tmp_path / 'x.gguf')
    assert result.returncode == 2 and '--type' in result.stderr
    result = convert(llama, tmp_path / 'none' / 'x.gguf')
    assert result.returncode == 1 and 'x.gguf' in result.stderr
