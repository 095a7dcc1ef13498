# SPDX-License-Identifier: Apache-2.0
"""Model directories that lack a tensor or whose keys contradict one another: refused in one line
that names it, whatever the program would do with them."""
import json
import struct
import subprocess

import pytest

from harness import BUILD, unpack


def load(model):
    """What `1bit convert` says of a model, which loads all of it."""
    out = model.parent / f'{model.name}.converted'
    return subprocess.run([BUILD / 'src/cli/1bit', 'convert', model, out], capture_output=True,
                          text=True, timeout=60)


def drop(folder, *ends):
    """Takes the tensors away whose name ends so."""
    path = folder / 'model.safetensors'
    data = path.read_bytes()
    size, = struct.unpack('<Q', data[:8])
    header, kept, body = json.loads(data[8:8 + size]), {}, b''
    for name, tensor in header.items():
        if name == '__metadata__' or name.endswith(ends):
            continue
        first, last = (8 + size + offset for offset in tensor['data_offsets'])
        kept[name] = tensor | {'data_offsets': [len(body), len(body) + last - first]}
        body += data[first:last]
    assert len(kept) + ('__metadata__' in header) < len(header), f'no tensor ends with {ends}'
    text = json.dumps(kept).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + body)


def change(folder, **keys):
    path = folder / 'config.json'
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def refused(model, at, what):
    result = load(model)
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and len(lines) == 1, (result.returncode, result.stderr)
    assert model.name in lines[0] and f'{at}: ' in lines[0] and what in lines[0], lines[0]


ROUTERS = [
    ('deepseek_v2', 'n_group', {'topk_group': 1, 'num_experts_per_tok': 3}),
    ('deepseek_v2', 'n_group', {'n_group': 8}),
    ('axk1', 'n_group', {'n_group': 8}),
    ('beam', 'n_group', {'n_group': 8}),
    ('beam', 'n_group', {'num_experts_per_tok': 7}),
    ('glm4_moe', 'n_group', {'num_experts_per_tok': 7}),
    ('bailing_hybrid', 'num_expert_group', {'num_expert_group': 8}),
    ('bailing_hybrid', 'num_expert_group', {'num_experts_per_token': 7}),
    ('kimi_linear', 'num_expert_group', {'num_expert_group': 4}),
    ('hy_v4', 'n_group', {'n_group': 4}),
    ('mimo_v2_flash', 'n_group', {'n_group': 4}),
    ('nemotron_h', 'n_group', {'n_group': 4}),
    ('inkling_text', 'n_group', {'n_group': 2, 'topk_group': 1}),
    ('zaya', 'num_experts', {'num_experts': 4096}),
]


@pytest.mark.parametrize('family, at, keys', ROUTERS)
def test_routers_that_cannot_choose(tmp_path, family, at, keys):
    unpack(family, tmp_path)
    change(tmp_path, **keys)
    refused(tmp_path, at, 'group' if 'group' in at else '4096')


MISSING = [
    ('qwen3_next', 'model.layers.0.linear_attn.conv1d.weight'),
    ('qwen3_next', 'model.layers.0.linear_attn.in_proj_qkvz.weight'),
    ('qwen3_5_text', 'model.layers.0.linear_attn.conv1d.weight'),
    ('qwen3_5_text', 'model.layers.0.linear_attn.in_proj_qkv.weight'),
    ('qwen3_5_moe_text', 'model.layers.0.linear_attn.in_proj_qkv.weight'),
    ('qwen4_exp_text', 'linear_attn.conv1d.weight'),
    ('lara_mini', 'linear_attn.conv1d.weight'),
    ('olmo_hybrid', 'model.layers.0.linear_attn.q_conv1d.weight'),
    ('olmo_hybrid', 'model.layers.0.linear_attn.k_conv1d.weight'),
    ('olmo_hybrid', 'model.layers.0.linear_attn.v_conv1d.weight'),
    ('dots3_note_text', 'model.layers.0.self_attn.indexer.wk.weight'),
    ('dots3_note_text', 'model.layers.0.self_attn.indexer.wq_b.weight'),
    ('dots3_note_text', 'model.layers.0.self_attn.indexer.weights_proj.weight'),
    ('dots3_note_text', 'model.layers.0.self_attn.indexer.k_norm.weight'),
    ('dots3_note_text', 'model.layers.0.self_attn.indexer.k_norm.bias'),
    ('glm_moe_dsa', 'model.layers.0.self_attn.indexer.wq_b.weight'),
    ('glm_moe_dsa', 'model.layers.0.self_attn.indexer.weights_proj.weight'),
    ('hy_v4', 'model.layers.0.self_attn.indexer.weights_proj.weight'),
    ('deepseek_v32', 'model.layers.1.self_attn.indexer.k_norm.weight'),
    ('electra', 'embeddings_project.weight'),
    ('electra', 'embeddings_project.bias'),
    ('electra-causal', 'electra.embeddings_project.weight'),
    ('roformer', 'embeddings_project.weight'),
    ('roformer-causal', 'roformer.embeddings_project.bias'),
    ('hrm_text', 'model.L_module.layers.0.attn.gqkv_proj.weight'),
    ('hrm_text', 'model.L_module.layers.0.attn.o_proj.weight'),
    ('hrm_text', 'model.L_module.layers.0.mlp.gate_up_proj.weight'),
    ('hrm_text', 'model.H_module.layers.0.mlp.down_proj.weight'),
    ('deberta-v2', 'encoder.LayerNorm.weight'),
    ('deberta-v2', 'encoder.LayerNorm.bias'),
    ('modernbert', 'layers.1.attn_norm.weight'),
    ('modernbert-decoder', 'layers.1.attn_norm.weight'),
    ('bert-classifier', 'classifier.bias'),
    ('deberta-v2-classifier', 'classifier.bias'),
    ('electra-classifier', 'classifier.dense.weight'),
    ('electra-classifier', 'classifier.out_proj.bias'),
    ('eurobert-classifier', 'dense.weight'),
    ('modernbert-classifier', 'head.norm.weight'),
    ('modernbert-classifier', 'classifier.bias'),
    ('mpnet-classifier', 'classifier.dense.bias'),
    ('xlm-roberta-classifier', 'classifier.dense.weight'),
    ('gpt_neox_japanese', 'layers.1.attention.dense_bias'),
    ('ernie4_5', 'model.layers.0.mlp.gate_proj.bias'),
    ('ernie4_5_moe', 'lm_head.bias'),
    ('eurobert', 'layers.0.mlp.gate_proj.bias'),
    ('internlm3', 'model.layers.0.mlp.gate_proj.bias'),
    ('seed_oss', 'model.layers.0.mlp.gate_proj.bias'),
    ('zaya-biased', 'lm_head.bias'),
    ('zaya-biased', 'model.layers.1.mlp.gate.router_states_scale'),
] + [('zaya-biased', f'model.layers.0.self_attn.qkv_proj.{part}.bias')
     for part in ('q_proj', 'k_proj', 'v_proj_current', 'v_proj_delayed')
] + [(family, 'layers.0.self_attn.o_proj.bias')
     for family in ('apertus1p5_text', 'cohere2', 'dots1', 'ernie4_5', 'ernie4_5_moe', 'eurobert',
                    'gpt_oss', 'granite', 'hunyuan_v1_moe', 'internlm3', 'jais2', 'olmo3',
                    'phimoe', 'starcoder2', 'zaya-biased')
] + [('granitemoehybrid-dense', 'model.layers.1.self_attn.o_proj.bias')]


@pytest.mark.parametrize('family, name', MISSING)
def test_tensors_that_are_missing(tmp_path, family, name):
    unpack(family, tmp_path)
    drop(tmp_path, name)
    refused(tmp_path, name, 'is missing')


@pytest.mark.parametrize('family', sorted({family for family, _ in MISSING}))
def test_whole_ones_load(tmp_path, family):
    unpack(family, tmp_path)
    result = load(tmp_path)
    assert result.returncode == 0, result.stderr


def test_one_key_is_of_few_biases(tmp_path):
    """InternLM3's key of attention means q, k and v, the other all else."""
    unpack('internlm3', tmp_path)
    change(tmp_path, mlp_bias=False)
    drop(tmp_path, 'o_proj.bias', 'gate_proj.bias', 'up_proj.bias', 'down_proj.bias')
    result = load(tmp_path)
    assert result.returncode == 0, result.stderr


def test_an_architecture_is_refused_before_its_tokenizer(tmp_path):
    unpack('llama', tmp_path)
    change(tmp_path, model_type='t5')
    (tmp_path / 'tokenizer.json').write_text('{"model": {"type": "Nosuch"}}')
    result = subprocess.run([BUILD / 'src/cli/1bit', 'run', '-m', tmp_path, '-p', 'hi'],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and 'architecture "t5" has no recipe' in result.stderr


# ---- GGUF ----

def converted(folder, family, **keys):
    unpack(family, folder)
    change(folder, **keys)
    result = load(folder)
    assert result.returncode == 0, result.stderr
    path = folder.parent / f'{folder.name}.converted'
    # Without config.json in it, as other programs write it.
    path.write_bytes(path.read_bytes().replace(b'1bit.config', b'1bit.unread'))
    return path


@pytest.mark.parametrize('family, name', [
    ('qwen3_next', 'blk.0.ssm_conv1d.weight'),
    ('qwen3_5_text', 'blk.0.attn_qkv.weight'),
    ('glm_moe_dsa', 'blk.0.indexer.proj.weight'),
])
def test_tensors_that_a_gguf_lacks(tmp_path, family, name):
    path, taken = converted(tmp_path, family), 'taken' + name[5:]
    data = path.read_bytes()
    assert data.count(name.encode()) == 1
    path.write_bytes(data.replace(name.encode(), taken.encode()))
    refused(path, name, 'is missing')


def test_a_gguf_whose_router_cannot_choose(tmp_path):
    path = converted(tmp_path, 'deepseek_v2', num_experts_per_tok=3)
    key = b'deepseek2.expert_group_used_count'
    data = path.read_bytes()
    at = data.index(key) + len(key) + 4  # the value behind its type
    path.write_bytes(data[:at] + struct.pack('<I', 1) + data[at + 4:])
    refused(path, 'deepseek2.expert_group_count', '4 groups, of which 1 are used')
