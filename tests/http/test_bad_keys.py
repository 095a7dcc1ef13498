# SPDX-License-Identifier: Apache-2.0
"""Keys of config.json, and of sentence-transformers' files, that are there and of another kind, of
another length or out of range: each is refused by its name, none counts as absent; null does where
the class has no default, or takes it."""
import json
import math
import struct
import subprocess

import pytest

from harness import BUILD, ROOT, unpack

PROGRAM = BUILD / 'src/cli/1bit'
GOLDEN = ROOT / 'tests/golden/families'
NAN, INF = float('nan'), float('inf')
YARN = {'rope_type': 'yarn', 'factor': 4.0, 'original_max_position_embeddings': 32,
        'rope_theta': 1e4}
LLAMA3 = {'rope_type': 'llama3', 'factor': 4.0, 'original_max_position_embeddings': 32,
          'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'rope_theta': 1e4}
GONE = object()

# family, key (of keys), value, what the message says behind the key
KEYS = [
    # another kind
    ('deepseek_v4', 'swiglu_limit', 'x', 'is not a finite number'),
    ('deepseek_v4', 'swiglu_limit', [], 'is not a finite number'),
    ('deepseek_v4', 'swiglu_limit', NAN, 'is not a finite number'),
    ('deepseek_v2', 'routed_scaling_factor', 'x', 'is not a finite number'),
    ('deepseek_v2', 'routed_scaling_factor', NAN, 'is not a finite number'),
    ('deepseek_v2', 'routed_scaling_factor', [1.5, 2], 'is not a finite number'),
    ('deepseek_v2', 'n_group', -1, 'is not a whole number'),
    ('deepseek_v2', 'n_group', 1 << 40, 'is not a whole number'),
    ('deepseek_v2', 'n_group', {}, 'is not a whole number'),
    ('afmoe', 'route_scale', 'x', 'is not a finite number'),
    ('afmoe', 'route_scale', INF, 'is not a finite number'),
    ('llama', 'rope_parameters', 'x', 'is not an object'),
    ('llama', 'rope_parameters', [], 'is not an object'),
    ('llama', 'rope_parameters.rope_theta', 'x', 'is not a finite number'),
    ('llama', 'rope_parameters.rope_theta', NAN, 'is not a finite number'),
    ('llama', 'rope_parameters.rope_type', 5, 'is not a string'),
    ('llama', 'rope_parameters.partial_rotary_factor', 'x', 'is not a finite number'),
    ('llama', 'text_config', 5, 'is not an object'),
    ('gemma3_text', 'use_bidirectional_attention', 'x', 'is not true or false'),
    ('gemma3_text', 'rope_parameters.sliding_attention', 'x', 'is not an object'),
    ('deberta-v2', 'norm_rel_ebd', [], 'is not a string'),
    ('deberta-v2', 'pos_att_type', ['x'], 'is not supported'),
    ('deberta-v2', 'pos_att_type', ['c2p', 5], 'entry 1 is not a string'),
    ('deberta-v2', 'max_relative_positions', 'x', 'is not a finite number'),
    ('deberta-v2', 'max_relative_positions', [], 'is not a finite number'),
    ('llama', 'tie_word_embeddings', 'x', 'is not true or false'),
    ('bert-causal', 'is_decoder', 'x', 'is not true or false'),
    # lists
    ('falcon_h1', 'ssm_multipliers', 'x', 'has 1 entries, 5 are wanted'),
    ('falcon_h1', 'ssm_multipliers', [1, 1], 'has 2 entries, 5 are wanted'),
    ('falcon_h1', 'ssm_multipliers', [1, 1, 1, 1, 'x'], 'entry 4 is not a finite number'),
    ('falcon_h1', 'mlp_multipliers', [1], 'has 1 entries, 2 are wanted'),
    ('falcon_h1', 'mlp_multipliers', [1, NAN], 'entry 1 is not a finite number'),
    ('gemma3n_text', 'activation_sparsity_pattern', 'x', ''),
    ('gemma3n_text', 'activation_sparsity_pattern', [], 'has 0 entries'),
    ('gemma3n_text', 'layer_types', ['full_attention'], 'has 1 entries, the model'),
    ('gemma3_text', 'layer_types', ['full_attention'], 'has 1 entries, the model'),
    ('gemma3_text', 'layer_types', 'x', 'has 1 entries, the model'),
    ('gemma3_text', 'layer_types', {}, 'has 1 entries, the model'),
    ('zaya', 'layer_types', [], 'has 0 entries, the model'),
    ('llama4_text', 'no_rope_layers', [1], 'has 1 entries'),
    ('llama4_text', 'no_rope_layers', ['x', 1, 1, 1], 'no_rope_layers: '),
    ('smollm3', 'no_rope_layers', [1], 'has 1 entries'),
    # ranges
    ('llama', 'rope_parameters.partial_rotary_factor', -1, '-1 is no part of a head'),
    ('zaya', 'rope_parameters.hybrid.rope_theta', 0, '0 is no base of a rotation'),
    ('zaya', 'rope_parameters.hybrid.rope_theta', -1, '-1 is no base of a rotation'),
    ('zaya-biased', 'rope_parameters.hybrid_sliding.rope_theta', NAN, 'is not a finite number'),
    ('beam', 'rope_parameters.sliding_attention.rope_theta', 0, '0 is no base of a rotation'),
    ('llama', 'rope_parameters', YARN | {'beta_fast': 0}, 'beta_fast: 0 is not above 0'),
    ('llama', 'rope_parameters', YARN | {'beta_fast': 'x'}, 'beta_fast: is not a finite number'),
    ('llama', 'rope_parameters', YARN | {'beta_slow': -1}, 'beta_slow: -1 is not above 0'),
    ('llama', 'rope_parameters', YARN | {'attention_factor': -1}, 'is not above 0, or infinite'),
    ('llama', 'rope_parameters', YARN | {'truncate': 'x'}, 'truncate: is not true or false'),
    ('llama', 'rope_parameters', LLAMA3 | {'low_freq_factor': 0}, 'low_freq_factor: 0 is not'),
    ('llama', 'rope_parameters', LLAMA3 | {'high_freq_factor': 1}, 'high_freq_factor: 1 is not'),
    ('bamba', 'time_step_limit', [0.1], 'has 1 entries, 2 are wanted'),
    ('falcon_h1', 'time_step_limit', [0.0, -1.0], 'is no range'),
    ('mamba2', 'time_step_limit', [0.0, NAN], 'entry 1 is not a number'),
    ('nemotron_h', 'time_step_limit', 'x', 'has 1 entries'),
    ('granitemoehybrid', 'time_step_limit', [-1, 2], 'is no range'),
]


def put(config, path, value):
    *folders, name = path.split('.')
    for folder in folders:
        config = config[folder]
    if value is GONE:
        config.pop(name, None)
    else:
        config[name] = value


@pytest.fixture
def info(tmp_path):
    """Changes files of a miniature and opens it: why it is refused."""
    def run(family, changes, name='config.json'):
        folder = tmp_path / family
        if not folder.exists():
            unpack(family, folder)
        file = folder / name
        config = json.loads(file.read_text())
        for path, value in changes.items():
            put(config, path, value)
        file.write_text(json.dumps(config))
        made = subprocess.run([PROGRAM, 'info', folder], capture_output=True, text=True)
        lines = made.stderr.splitlines() + [
            line.strip() for line in made.stdout.splitlines() if line.startswith('  refused ')]
        return '\n'.join(lines)
    return run


@pytest.mark.parametrize('family, key, value, says', KEYS,
                         ids=[f'{f}-{k}-{i}' for i, (f, k, *_) in enumerate(KEYS)])
def test_refused_by_name(info, family, key, value, says):
    assert info(family, {}) == ''
    text = info(family, {key: value})
    assert key in text and says in text and '(null)' not in text and '\n' not in text, text


@pytest.mark.parametrize('family, key', [
    ('falcon_h1', 'mlp_multipliers'), ('llama', 'text_config'), ('gemma3_text', 'layer_types'),
    ('llama', 'rope_scaling'), ('gemma3n_text', 'activation_sparsity_pattern'),
    ('mistral', 'sliding_window'), ('qwen2', 'rope_parameters')])
def test_null_is_absent(info, family, key):
    assert info(family, {key: None}) == ''


@pytest.mark.parametrize('family, key', [
    ('deepseek_v4', 'swiglu_limit'), ('bamba', 'time_step_limit'), ('llama', 'tie_word_embeddings'),
    ('gemma3', 'text_config.head_dim'), ('afmoe', 'route_scale'),
    ('llama', 'rope_parameters.rope_theta'),
    ('gemma3_text', 'rope_parameters.sliding_attention.rope_type')])
def test_null_where_a_number_belongs(info, family, key):
    text = info(family, {key: None})
    assert key.split('.')[-1] + ': is null' in text and '\n' not in text, text


@pytest.mark.parametrize('family, changes', [
    ('exaone4', {'sliding_window_pattern': 'LLLG'}),  # beside layer_types
    ('mamba2', {'time_step_limit': [0.0, INF]}),
    ('laguna', {'gating': 'per-head'}),
    ('deberta-v2', {'max_relative_positions': -1}),
    ('deberta-v2', {'pos_att_type': 'p2c|c2p'}),
    ('llama4_text', {'no_rope_layers': []}),
    ('llama', {'rope_parameters': YARN | {'beta_fast': 16}}),
])
def test_still_accepted(info, family, changes):
    assert info(family, changes) == ''


@pytest.mark.parametrize('value, says', [
    (0, 'short_factor: must be'), (-1, 'short_factor: must be'), (NAN, 'short_factor: must be')])
def test_longrope(info, tmp_path, value, says):
    unpack('phi3', tmp_path / 'phi3')
    config = json.loads((tmp_path / 'phi3/config.json').read_text())
    half = len((config.get('rope_scaling') or config['rope_parameters'])['short_factor'])
    where = 'rope_scaling' if config.get('rope_scaling') else 'rope_parameters'
    good = [1.5] * half
    text = info('phi3', {f'{where}.short_factor': good[:1] + [value] + good[2:]})
    assert says in text, text
    text = info('phi3', {f'{where}.short_factor': good,
                         f'{where}.original_max_position_embeddings': GONE,
                         'original_max_position_embeddings': 0.5})
    assert 'original_max_position_embeddings: 0.5 is less than 1' in text, text


POOL = {'pooling_mode_mean_tokens': True, 'word_embedding_dimension': 32}
MODULES = [{'type': 'sentence_transformers.models.Transformer', 'path': ''},
           {'type': 'sentence_transformers.models.Pooling', 'path': '1_Pooling'}]


@pytest.fixture
def encoder(tmp_path):
    folder = tmp_path / 'bert'
    unpack('bert', folder)
    (folder / '1_Pooling').mkdir()
    (folder / '1_Pooling/config.json').write_text(json.dumps(POOL))
    (folder / 'modules.json').write_text(json.dumps(MODULES))
    return folder


def test_modules_are_read(encoder, info):
    assert info('bert', {}) == ''


@pytest.mark.parametrize('text, says', [
    ('{}', 'modules.json: is no list of modules'), ('[]', 'modules.json: is no list of modules'),
    (None, 'modules.json: is a link to a file that is not there'),
    ('[{"path": ""}]', 'modules.json: a module has no "type"'),
    (json.dumps([{'type': 'Pooling', 'path': 5}]), 'modules.json: "path" is not a string')])
def test_modules(encoder, info, text, says):
    file = encoder / 'modules.json'
    file.unlink()
    if text is None:
        file.symlink_to('nowhere')
    else:
        file.write_text(text)
    assert says in info('bert', {})


@pytest.mark.parametrize('key, value, says', [
    ('word_embedding_dimension', 999, 'config.json: pools states of 999 numbers, the model has 32'),
    ('word_embedding_dimension', 'x', '"word_embedding_dimension" is not in 1 to'),
    ('pooling_mode_mean_tokens', 1, '"pooling_mode_mean_tokens" is not true or false'),
    ('pooling_mode_mean_tokens', False, 'names no pooling'),
    ('pooling_mode', 5, '"pooling_mode" is not a string'),
    ('pooling_mode', 'x', 'pooling "x" is not supported')])
def test_pooling(encoder, info, key, value, says):
    text = info('bert', {key: value}, '1_Pooling/config.json')
    assert says in text and '1_Pooling/config.json: ' in text, text


def test_a_config_that_is_missing_is_named_once(encoder, info):
    (encoder / '1_Pooling/config.json').unlink()
    text = info('bert', {})
    assert text.count('1_Pooling') == 1 and 'cannot open' in text, text


def dense(folder, has_bias, config):
    parts = {'linear.weight': [32, 32]} | ({'linear.bias': [32]} if has_bias else {})
    header, at = {}, 0
    for name, shape in parts.items():
        size = 4 * math.prod(shape)
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    (folder / '2_Dense').mkdir()
    (folder / '2_Dense/model.safetensors').write_bytes(
        struct.pack('<Q', len(text)) + text + bytes(at))
    (folder / '2_Dense/config.json').write_text(json.dumps(
        {'in_features': 32, 'out_features': 32} | config))
    (folder / 'modules.json').write_text(json.dumps(
        MODULES + [{'type': 'sentence_transformers.models.Dense', 'path': '2_Dense'}]))


@pytest.mark.parametrize('bias, config, says', [
    (True, {'bias': True}, ''), (True, {}, ''), (False, {'bias': False}, ''),
    (True, {'bias': False}, '2_Dense/linear.bias: is there, and "bias" of its config.json is'),
    (False, {'bias': True}, '2_Dense/linear.bias: is missing'),
    (True, {'bias': 1}, '"bias" is not true or false'),
    (True, {'activation_function': 5}, '"activation_function" is not a string')])
def test_dense(encoder, info, bias, config, says):
    dense(encoder, bias, config)
    text = info('bert', {})
    assert says in text and bool(says) == bool(text), text


@pytest.mark.parametrize('key, value, says', [
    ('checkpoint_format', 5, 'is not a string'), ('checkpoint_format', [], 'is not a string'),
    ('checkpoint_format', 'x', '"x" is not supported'), ('bits', '4', 'is not a whole number'),
    ('group_size', 'x', 'is no size of a group'), ('quant_method', 5, 'is not a string')])
def test_packed(info, key, value, says):
    config = {'quant_method': 'gptq', 'bits': 4, 'group_size': 32,
              'checkpoint_format': 'gptq_v2'} | {key: value}
    text = info('llama', {'quantization_config': config})
    assert f'quantization_config.{key}: ' in text and says in text, text
