# SPDX-License-Identifier: Apache-2.0
"""Weights that are not there and that the model's class has: refused by name, never left out; and
what config.json need not say."""
import json
import struct
import subprocess

import pytest

from harness import BUILD, ROOT, unpack

PROGRAM = BUILD / 'src/cli/1bit'


def drop(path, part):
    """Takes the tensors with this in their names out of a file."""
    data = path.read_bytes()
    n = struct.unpack_from('<Q', data)[0]
    head, body, out = json.loads(data[8:8 + n]), data[8 + n:], b''
    kept = {k: v for k, v in head.items() if part not in k}
    assert len(kept) < len(head)
    for name, tensor in kept.items():
        if name != '__metadata__':
            start, end = tensor['data_offsets']
            tensor['data_offsets'] = [len(out), len(out) + end - start]
            out += body[start:end]
    text = json.dumps(kept).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + out)


def info(folder):
    made = subprocess.run([PROGRAM, 'info', folder], capture_output=True, text=True)
    lines = made.stderr.splitlines()
    return '\n'.join(lines + [line for line in made.stdout.splitlines() if 'refused ' in line])


def change(folder, change_it):
    config = json.loads((folder / 'config.json').read_text())
    change_it(config)
    (folder / 'config.json').write_text(json.dumps(config))


@pytest.mark.parametrize('family, part', [
    ('jamba', '.dt_layernorm.'), ('jamba', '.b_layernorm.'), ('jamba', '.c_layernorm.'),
    *((f, 'token_type_embeddings') for f in (
        'bert', 'bert-causal', 'camembert', 'ernie', 'electra', 'megatron-bert', 'nomic_bert',
        'roberta', 'roformer', 'xlm-roberta'))])
def test_weights_of_the_class(tmp_path, family, part):
    unpack(family, tmp_path / 'm')
    drop(tmp_path / 'm' / 'model.safetensors', part)
    text = info(tmp_path / 'm')
    assert part.strip('.') in text and 'required tensor is missing' in text, text


@pytest.mark.parametrize('family', ['gemma3', 'gemma4', 'gemma4_unified', 'got_ocr2',
                                    'moss_transcribe_diarize', 'gemma3_text'])
def test_no_output_and_not_tied(tmp_path, family):
    unpack(family, tmp_path / 'm')
    assert info(tmp_path / 'm') == ''
    change(tmp_path / 'm', lambda c: c.update(tie_word_embeddings=False))
    text = info(tmp_path / 'm')
    assert 'lm_head.weight: is missing and tie_word_embeddings is false' in text, text


@pytest.mark.parametrize('family, tied', [
    ('gemma3_text', True), ('gemma3', True), ('qwen3', False), ('llava', False)])
def test_tied_by_default(tmp_path, family, tied):
    unpack(family, tmp_path / 'm')
    change(tmp_path / 'm', lambda c: c.pop('tie_word_embeddings'))
    weights = tmp_path / 'm' / 'model.safetensors'
    if b'lm_head.weight' in weights.read_bytes():
        assert info(tmp_path / 'm') == ''
        drop(weights, 'lm_head.weight')
    text = info(tmp_path / 'm')
    assert ('lm_head.weight: is missing' in text) == (not tied), text


def test_model_types_of_a_class(tmp_path):
    unpack('deepseek_v3', tmp_path / 'm')
    change(tmp_path / 'm', lambda c: c.update(model_type='kimi_k2'))
    assert info(tmp_path / 'm') == ''
    listed = json.loads(subprocess.run([PROGRAM, 'info', '--architectures', '--json'],
                                       capture_output=True, text=True, check=True).stdout)
    types = {a['class']: a['model_types'] for a in listed['architectures']}
    assert types['DeepseekV3ForCausalLM'] == ['deepseek_v3', 'kimi_k2', 'sarvam_mla']


def test_a_text_part_that_names_no_type(tmp_path):
    """Its class is the one that the whole's has inside."""
    unpack('gemma3', tmp_path / 'm')
    change(tmp_path / 'm', lambda c: c['text_config'].pop('model_type'))
    assert info(tmp_path / 'm') == ''
