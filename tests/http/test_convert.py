# SPDX-License-Identifier: Apache-2.0
"""`1bit convert`: what it writes, what it refuses, and that an interrupted file is gone on with."""
import fcntl
import json
import os
import resource
import shutil
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


def test_an_encoder_has_what_llama_cpp_asks_of_one(tmp_path):
    gguf = pytest.importorskip('gguf')
    unpack('bert', tmp_path / 'bert')
    out = tmp_path / 'bert.gguf'
    assert convert('--type', 'q8_0', tmp_path / 'bert', out).returncode == 0
    read = gguf.GGUFReader(out)
    keys = {key: read.fields[key].contents() for key in read.fields if 'config' not in key}
    assert keys['tokenizer.ggml.token_type_count'] == 2
    assert keys['bert.attention.causal'] is False and keys['1bit.pooling_unit'] is False
    kept = {t.name for t in read.tensors if t.tensor_type == gguf.GGMLQuantizationType.F32}
    assert {'position_embd.weight', 'token_types.weight'} <= kept
    assert 'token_embd.weight' not in kept


def test_roberta_is_written_as_llama_cpp_does(tmp_path):
    """A bert, its positions without those before the first one that is used, its classes named."""
    gguf = pytest.importorskip('gguf')
    unpack('xlm-roberta-classifier', tmp_path / 'm')
    out = tmp_path / 'm.gguf'
    assert convert(tmp_path / 'm', out).returncode == 0
    read = gguf.GGUFReader(out)
    keys = {key: read.fields[key].contents() for key in read.fields if 'config' not in key}
    assert keys['general.architecture'] == 'bert' and keys['bert.context_length'] == 250
    assert keys['bert.classifier.output_labels'] == ['a', 'b', 'c']
    shapes = {t.name: list(t.shape) for t in read.tensors}
    assert shapes['position_embd.weight'] == [32, 250]
    assert shapes['cls.weight'] == [32, 32] and shapes['cls.output.weight'] == [32, 3]


def test_a_dry_run_writes_nothing(llama, tmp_path):
    out = tmp_path / 'dry.gguf'
    result = convert('--dry-run', '--type', 'f16', llama, out)
    assert result.returncode == 0 and 'blk.1.ffn_down.weight' in result.stdout
    assert 'F32   -> F16' in result.stdout and not out.exists()


def interrupted(keep, *words):
    """A run that ends when the file it writes has this many bytes, as on a full disk."""
    return subprocess.run([BUILD / 'src/cli/1bit', 'convert', *words], capture_output=True,
                          timeout=120, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_FSIZE, (keep, keep)))


def facts(path):
    """What must not change of a file that is none of ours."""
    stat = path.lstat()
    return (stat.st_ino, stat.st_mtime_ns, stat.st_mode, stat.st_size,
            path.read_bytes() if path.is_file() else None)


def test_an_interrupted_file_is_gone_on_with(llama, tmp_path):
    whole, out = tmp_path / 'whole.gguf', tmp_path / 'out.gguf'
    assert convert(llama, whole).returncode == 0
    data = whole.read_bytes()
    part = tmp_path / 'out.gguf.part'
    for keep in (0, 10, 100, len(data) // 2, len(data) - 40):
        assert interrupted(keep, llama, out).returncode != 0 and not out.exists()
        assert part.stat().st_size <= keep and not part.read_bytes().startswith(b'GGUF')
        assert convert(llama, out).returncode == 0
        assert out.read_bytes() == data and not part.exists()
        out.unlink()
    # What is there is kept, not written again, and a line says so.
    interrupted(len(data) - 40, llama, out)
    kept = bytearray(part.read_bytes())
    at = len(data) // 2
    kept[at] ^= 1
    part.write_bytes(kept)
    again = convert(llama, out)
    assert again.returncode == 0 and f'{part} is taken up at ' in again.stderr
    assert [i for i, (a, b) in enumerate(zip(out.read_bytes(), data)) if a != b] == [at]


def test_a_file_without_a_tokenizer_is_converted_again(llama, tmp_path):
    first = tmp_path / f'{llama.name}.gguf'  # the name of the model
    second = tmp_path / 'again.gguf'
    assert convert(llama, first).returncode == 0
    again = convert(first, second)
    assert again.returncode == 0 and 'the file will have none' in again.stderr
    assert second.read_bytes() == first.read_bytes()


@pytest.mark.parametrize('change', ['weights', 'date', 'type', 'config'])
def test_no_file_is_made_of_two_models(llama, tmp_path, change):
    """The part of another model, of the same name and shapes, is not gone on with."""
    model, out = tmp_path / 'm', tmp_path / 'out.gguf'
    shutil.copytree(llama, model)
    assert interrupted(llama.joinpath('model.safetensors').stat().st_size // 2, model,
                       out).returncode != 0
    part = tmp_path / 'out.gguf.part'
    before = facts(part)
    weights, words = model / 'model.safetensors', ()
    stat = weights.stat()
    if change == 'weights':
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
        os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == 'date':
        os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    elif change == 'config':
        config = model / 'config.json'
        config.write_text(config.read_text().replace('{', '{"about": "another",', 1))
    else:
        words = ('--type', 'f16')
    result = convert(*words, model, out)
    assert result.returncode == 1 and not out.exists()
    assert f'{part}: is there and is of another conversion' in result.stderr
    assert facts(part) == before


def test_a_part_may_have_moved_with_its_model(llama, tmp_path):
    """Where the model and the file lie is no part of what is compared, and not in the file."""
    first, second = tmp_path / 'a' / 'm', tmp_path / 'b' / 'm'
    shutil.copytree(llama, first)
    shutil.copytree(first, second)
    assert interrupted(50000, first, tmp_path / 'x.gguf').returncode != 0
    (tmp_path / 'x.gguf.part').rename(tmp_path / 'y.gguf.part')
    assert convert(second, tmp_path / 'y.gguf').returncode == 0
    os.utime(second / 'model.safetensors', (1, 1))
    assert convert(second, tmp_path / 'z.gguf').returncode == 0
    assert (tmp_path / 'y.gguf').read_bytes() == (tmp_path / 'z.gguf').read_bytes()


def tokenizer(model, pretok, normalizer, decoder, vocab, **keys):
    (model / 'tokenizer.json').write_text(json.dumps({
        'version': '1.0', 'added_tokens': [], 'pre_tokenizer': pretok, 'normalizer': normalizer,
        'post_processor': None, 'decoder': decoder,
        'model': {'type': 'BPE', 'vocab': vocab, 'merges': [], **keys}}))


@pytest.mark.parametrize('how', ['file', 'gguf', 'link', 'dangling', 'fifo', 'folder', 'model',
                                 'weights'])
def test_a_part_that_is_not_ours_is_left_alone(llama, tmp_path, how):
    out, part, other = (tmp_path / name for name in ('x.gguf', 'x.gguf.part', 'other'))
    other.write_bytes(b'mine')
    model = llama
    if how == 'file':
        part.write_bytes(b'mine')
    elif how == 'gguf':
        assert convert(llama, other.with_suffix('.gguf')).returncode == 0
        part.write_bytes(other.with_suffix('.gguf').read_bytes()[:9000])
    elif how == 'link':
        interrupted(50000, llama, out)  # even where the link leads to a part of ours
        part.rename(other)
        part.symlink_to(other)
    elif how == 'dangling':
        part.symlink_to(tmp_path / 'nothing')
    elif how == 'fifo':
        os.mkfifo(part)
    elif how == 'folder':
        part.mkdir()
    elif how == 'weights':  # of the model itself
        model = tmp_path / 'm'
        shutil.copytree(llama, model)
        os.link(model / 'model.safetensors', part)
    else:  # the model itself
        model = tmp_path / 'm'
        shutil.copytree(llama, model)
        tokenizer(model, {'type': 'ByteLevel', 'add_prefix_space': False}, None,
                  {'type': 'ByteLevel'}, {chr(c): c - 33 for c in range(33, 127)})
        assert convert(model, part).returncode == 0
        model = part
    before = facts(part), facts(other)
    result = convert(model, out)
    assert result.returncode == 1 and not out.exists()
    line = f'1bit convert: {part}: is there and is not of this conversion: move it away\n'
    assert result.stderr.endswith(line)
    assert (facts(part), facts(other)) == before and not (tmp_path / 'nothing').exists()


@pytest.mark.parametrize('how', ['unreadable', 'dangling', 'fifo', 'folder'])
def test_what_exists_is_not_replaced(llama, tmp_path, how):
    out = tmp_path / 'x.gguf'
    if how == 'unreadable':
        out.write_bytes(b'mine')
        out.chmod(0)
    elif how == 'dangling':
        out.symlink_to(tmp_path / 'nothing')
    elif how == 'fifo':
        os.mkfifo(out)
    else:
        out.mkdir()
    before = out.lstat()
    result = convert(llama, out)
    assert result.returncode == 1
    assert result.stderr == f'1bit convert: {out} exists already\n'
    assert out.lstat() == before and list(tmp_path.iterdir()) == [out]


def test_one_run_at_a_time(llama, tmp_path):
    out, part = tmp_path / 'x.gguf', tmp_path / 'x.gguf.part'
    interrupted(50000, llama, out)
    with open(part, 'rb') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = facts(part)
        result = convert(llama, out)
        assert result.returncode == 1 and facts(part) == before
        assert result.stderr.endswith(f'1bit convert: {part}: another conversion is writing it\n')
    assert convert(llama, out).returncode == 0


def test_a_tokenizer_without_a_form_names_its_model(llama, tmp_path):
    model = tmp_path / 'm'
    shutil.copytree(llama, model)
    tokenizer(model, None, {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\u2581'},
              {'type': 'Sequence', 'decoders': [
                  {'type': 'Replace', 'pattern': {'String': '\u2581'}, 'content': ' '},
                  {'type': 'ByteFallback'}, {'type': 'Fuse'}]},
              {f'<0x{i:02X}>': i for i in range(200)}, byte_fallback=False)
    result = convert(model, tmp_path / 'x.gguf')
    assert result.returncode == 1
    assert result.stderr == f'1bit convert: {model}: bpe (sentencepiece) has no form in GGUF\n'
    assert list(tmp_path.iterdir()) == [model]


def test_what_is_refused(llama, tmp_path):
    out = tmp_path / 'there.gguf'
    out.write_bytes(b'mine')
    result = convert(llama, out)
    assert result.returncode == 1 and 'exists already' in result.stderr
    assert out.read_bytes() == b'mine'
    result = convert(llama)
    assert result.returncode == 2 and 'where to write' in result.stderr
    result = convert('/nonexistent', '')
    assert result.returncode == 2
    assert result.stderr.startswith('1bit convert: the name of the file to write is empty')
    result = convert('--type', 'q9', llama, tmp_path / 'x.gguf')
    assert result.returncode == 2 and '--type' in result.stderr
    result = convert(llama, tmp_path / 'none' / 'x.gguf')
    assert result.returncode == 1 and 'x.gguf' in result.stderr
