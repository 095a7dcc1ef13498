#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of a published model's shapes, with fewer layers and random weights; see README.md.

    bench/synth_gguf.py MODEL OUT.gguf --vocab VOCAB.gguf [--mix q4_k_m] [--layers N] [--experts N]

A layer reads as many bytes and computes as much as the model's own, in both engines that versus
compares; what it writes is noise. The vocabulary is that of another GGUF file, as it is: a small
one leaves the time to the layers. Tensors are written one after the other, none is kept.
Needs numpy and gguf (PyPI)."""
import argparse

import gguf
import numpy as np

Q = gguf.GGMLQuantizationType
# What most matrices are; those a mix is careful with (v, down in half of the layers); the output.
MIXES = {'q4_k_m': (Q.Q4_K, Q.Q6_K, Q.Q6_K), 'q8_0': (Q.Q8_0,) * 3, 'f16': (Q.F16,) * 3,
         'bf16': (Q.BF16,) * 3}
# Where rows are no multiple of 256.
NARROW = {Q.Q4_K: Q.Q5_0, Q.Q6_K: Q.Q8_0}
# Where a block has its scales, and about the largest size of its numbers beside a scale.
SCALES = {Q.Q4_K: ((0, 200), (2, 26)), Q.Q6_K: ((208, 1300),), Q.Q8_0: ((0, 74),),
          Q.Q5_0: ((0, 9),)}
SPREAD = 0.02  # of weights
NOISE = np.random.default_rng(1)
BYTES = NOISE.integers(0, 256, 1 << 20, dtype=np.uint8)


def rows_of(quant, rows, cols):
    """The bytes of a random matrix."""
    if quant in (Q.F32, Q.F16, Q.BF16):
        some = np.resize((SPREAD * NOISE.standard_normal(1 << 18)).astype(np.float32), rows * cols)
        if quant == Q.F16:
            some = some.astype(np.float16)
        elif quant == Q.BF16:
            some = (some.view(np.uint32) >> 16).astype(np.uint16)
        return some.view(np.uint8).reshape(rows, -1)
    block, size = gguf.GGML_QUANT_SIZES[quant]
    raw = np.resize(BYTES, rows * cols // block * size).reshape(-1, size)
    if quant == Q.MXFP4:
        raw[:, 0] = 121  # 2 to this, less 127
    for at, largest in SCALES.get(quant, ()):
        raw[:, at:at + 2] = np.frombuffer(np.float16(SPREAD / largest).tobytes(), np.uint8)
    return raw.reshape(rows, -1)


class File:
    """Keys and tensors of a file: first all their sizes, then, on write(), their contents."""

    def __init__(self, path, arch, mix):
        self.writer = gguf.GGUFWriter(path, arch)
        self.arch, self.mix, self.contents = arch, MIXES[mix], []

    def keys(self, **keys):
        """A dot in a key's name is written as two underscores here."""
        for name, value in keys.items():
            name = f"{self.arch}.{name.replace('__', '.')}"
            if isinstance(value, list):
                self.writer.add_array(name, value)
            elif isinstance(value, bool):
                self.writer.add_bool(name, value)
            elif isinstance(value, float):
                self.writer.add_float32(name, value)
            else:
                self.writer.add_uint32(name, value)

    def tensor(self, name, shape, quant, make):
        block, size = gguf.GGML_QUANT_SIZES[quant]
        count = int(np.prod(shape))
        stored = (*shape[:-1], shape[-1] // block * size)
        dtype = {Q.F32: np.float32, Q.F16: np.float16}.get(quant, np.uint8)
        self.writer.add_tensor_info(name, shape if dtype != np.uint8 else stored, np.dtype(dtype),
                                    count // block * size, quant)
        self.contents.append(make)

    def matrix(self, name, rows, cols, careful=False, heads=None, quant=None):
        """`heads`: so many of them behind each other, of experts or of heads."""
        quant = quant or self.mix[1 if careful else 0]
        if cols % gguf.GGML_QUANT_SIZES[quant][0]:
            quant = NARROW[quant]
        shape = (heads, rows, cols) if heads else (rows, cols)
        self.tensor(name + '.weight', shape, quant,
                    lambda: rows_of(quant, rows * (heads or 1), cols).reshape(-1))

    def small(self, name, *shape, low=0.9, high=1.1):
        """F32 between two numbers: norms, biases, what recurrent layers decay by."""
        self.tensor(name, shape, Q.F32, lambda: NOISE.uniform(low, high, shape).astype(np.float32))

    def vocabulary(self, path):
        self.tokens = 0
        for name, field in gguf.GGUFReader(path).fields.items():
            if not name.startswith('tokenizer.ggml.'):
                continue
            value, kinds = field.contents(), field.types
            self.writer.add_key_value(name, value, kinds[0],
                                      kinds[-1] if len(kinds) > 1 else None)
            if name == 'tokenizer.ggml.tokens':
                self.tokens = len(value)

    def write(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_ti_data_to_file()
        for make in self.contents:
            self.writer.write_tensor_data(make())
        self.writer.close()


# ---- parts of layers -----------------------------------------------------------------------------

def is_careful(s, i):
    """About half of the layers, as llama.cpp's mixes choose them."""
    n = s['layers']
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def ends(f, s, norm='output_norm'):
    f.keys(block_count=s['layers'], context_length=32768, embedding_length=s['width'],
           attention__layer_norm_rms_epsilon=1e-6)
    f.matrix('token_embd', f.tokens, s['width'])
    f.small(norm + '.weight', s['width'])
    f.matrix('output', f.tokens, s['width'], quant=f.mix[2])


def attention_keys(f, s, kv_heads=None):
    f.keys(attention__head_count=s['heads'], attention__head_count_kv=kv_heads or s['kv_heads'],
           attention__key_length=s['head'], attention__value_length=s['head'],
           rope__dimension_count=s.get('rotated', s['head']), rope__freq_base=1e6)


def attention(f, s, i, qk_norms=False, biases=(), q_times=1):
    b = f'blk.{i}.'
    kv, q = s['kv_heads'] * s['head'], s['heads'] * s['head']
    f.matrix(b + 'attn_q', q_times * q, s['width'])
    f.matrix(b + 'attn_k', kv, s['width'])
    f.matrix(b + 'attn_v', kv, s['width'], is_careful(s, i))
    f.matrix(b + 'attn_output', s['width'], q)
    for part in biases:
        rows = {'q': q, 'output': s['width']}.get(part, kv)
        f.small(f'{b}attn_{part}.bias', rows, low=-0.1, high=0.1)
    if qk_norms:
        f.small(b + 'attn_q_norm.weight', s['head'])
        f.small(b + 'attn_k_norm.weight', s['head'])


def mlp(f, s, i, ffn, suffix='', parts=('gate', 'up')):
    for part in parts:
        f.matrix(f'blk.{i}.ffn_{part}{suffix}', ffn, s['width'])
    f.matrix(f'blk.{i}.ffn_down{suffix}', s['width'], ffn, is_careful(s, i))


def expert_keys(f, s):
    f.keys(expert_count=s['experts'], expert_used_count=s['used'],
           expert_feed_forward_length=s['expert_ffn'])


def experts(f, s, i, quant=None):
    b, n, ffn = f'blk.{i}.', s['experts'], s['expert_ffn']
    f.small(b + 'ffn_gate_inp.weight', n, s['width'], low=-0.05, high=0.05)
    for part in ('gate', 'up'):
        f.matrix(f'{b}ffn_{part}_exps', ffn, s['width'], heads=n, quant=quant)
    f.matrix(b + 'ffn_down_exps', s['width'], ffn, is_careful(s, i), heads=n, quant=quant)


def norms(f, s, i, *names):
    for name in names:
        f.small(f'blk.{i}.{name}.weight', s['width'])


# ---- families ------------------------------------------------------------------------------------

def qwen2(f, s):
    ends(f, s)
    attention_keys(f, s)
    f.keys(feed_forward_length=s['ffn'])
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm', 'ffn_norm')
        attention(f, s, i, biases='qkv')
        mlp(f, s, i, s['ffn'])


def qwen3moe(f, s):
    ends(f, s)
    attention_keys(f, s)
    expert_keys(f, s)
    f.keys(feed_forward_length=s['expert_ffn'] * s['used'])
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm', 'ffn_norm')
        attention(f, s, i, qk_norms=True)
        experts(f, s, i)


def deepseek2(f, s):
    """Latent attention: one KV head of the latent and a rotated part; a dense layer first."""
    latent, still, turned, value = s['latent'], s['still'], s['rotated'], s['value']
    heads, q_latent = s['heads'], s.get('q_latent', 0)
    ends(f, s)
    expert_keys(f, s)
    f.keys(attention__head_count=heads, attention__head_count_kv=1,
           attention__key_length=latent + turned, attention__value_length=latent,
           attention__key_length_mla=still + turned, attention__value_length_mla=value,
           attention__kv_lora_rank=latent, attention__q_lora_rank=q_latent,
           rope__dimension_count=turned, rope__freq_base=1e4, feed_forward_length=s['ffn'],
           leading_dense_block_count=1, expert_shared_count=s['shared'],
           expert_weights_scale=1.0, expert_gating_func=1)
    for i in range(s['layers']):
        b = f'blk.{i}.'
        norms(f, s, i, 'attn_norm', 'ffn_norm')
        if q_latent:
            f.matrix(b + 'attn_q_a', q_latent, s['width'])
            f.small(b + 'attn_q_a_norm.weight', q_latent)
            f.matrix(b + 'attn_q_b', heads * (still + turned), q_latent)
        else:
            f.matrix(b + 'attn_q', heads * (still + turned), s['width'])
        f.matrix(b + 'attn_kv_a_mqa', latent + turned, s['width'])
        f.small(b + 'attn_kv_a_norm.weight', latent)
        f.matrix(b + 'attn_k_b', latent, still, heads=heads)
        f.matrix(b + 'attn_v_b', value, latent, heads=heads)
        f.matrix(b + 'attn_output', s['width'], heads * value)
        if i == 0:
            mlp(f, s, i, s['ffn'])
        else:
            experts(f, s, i)
            mlp(f, s, i, s['shared'] * s['expert_ffn'], '_shexp')


def delta_keys(f, s):
    f.keys(ssm__conv_kernel=4, ssm__state_size=s['delta'], ssm__group_count=s['k_heads'],
           ssm__time_step_rank=s['v_heads'], ssm__inner_size=s['v_heads'] * s['delta'],
           full_attention_interval=4)


def delta_net(f, s, i, one_ba):
    b, heads = f'blk.{i}.', s['v_heads']
    key, value = s['k_heads'] * s['delta'], heads * s['delta']
    f.matrix(b + 'attn_qkv', 2 * key + value, s['width'])
    f.matrix(b + 'attn_gate', value, s['width'])
    f.small(b + 'ssm_conv1d.weight', 2 * key + value, 4, low=-0.5, high=0.5)
    f.small(b + 'ssm_dt.bias', heads, low=-1, high=1)
    f.small(b + 'ssm_a', heads, low=-4, high=-0.1)
    f.small(b + 'ssm_norm.weight', s['delta'])
    f.matrix(b + 'ssm_out', s['width'], value)
    for part, rows in (('ba', 2 * heads),) if one_ba else (('beta', heads), ('alpha', heads)):
        f.matrix(f'{b}ssm_{part}', rows, s['width'])


def qwen3next(f, s):
    ends(f, s)
    attention_keys(f, s)
    expert_keys(f, s)
    delta_keys(f, s)
    f.keys(feed_forward_length=s['ffn'], expert_shared_feed_forward_length=s['shared_ffn'])
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm', 'post_attention_norm')
        if i % 4 == 3:
            attention(f, s, i, qk_norms=True, q_times=2)
        else:
            delta_net(f, s, i, one_ba=True)
        experts(f, s, i)
        f.small(f'blk.{i}.ffn_gate_inp_shexp.weight', s['width'], low=-0.05, high=0.05)
        mlp(f, s, i, s['shared_ffn'], '_shexp')


def qwen35(f, s):
    ends(f, s)
    attention_keys(f, s)
    delta_keys(f, s)
    f.keys(feed_forward_length=s['ffn'], rope__dimension_sections=[11, 11, 10, 0])
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm', 'post_attention_norm')
        if i % 4 == 3:
            attention(f, s, i, qk_norms=True, q_times=2)
        else:
            delta_net(f, s, i, one_ba=False)
        mlp(f, s, i, s['ffn'])


def mamba(f, s):
    inner, n, rank = s['inner'], s['state'], s['rank']
    ends(f, s)
    f.keys(feed_forward_length=0, attention__head_count=0, ssm__conv_kernel=4,
           ssm__inner_size=inner, ssm__state_size=n, ssm__time_step_rank=rank)
    for i in range(s['layers']):
        b = f'blk.{i}.'
        norms(f, s, i, 'attn_norm')
        f.matrix(b + 'ssm_in', 2 * inner, s['width'])
        f.small(b + 'ssm_conv1d.weight', inner, 4, low=-0.5, high=0.5)
        f.small(b + 'ssm_conv1d.bias', inner, low=-0.1, high=0.1)
        f.matrix(b + 'ssm_x', rank + 2 * n, inner)
        f.matrix(b + 'ssm_dt', inner, rank)
        f.small(b + 'ssm_dt.bias', inner, low=-5, high=-1)
        f.small(b + 'ssm_a', inner, n, low=-n, high=-1)
        f.small(b + 'ssm_d', inner)
        f.matrix(b + 'ssm_out', s['width'], inner)


def mamba2_keys(f, s):
    f.keys(ssm__conv_kernel=4, ssm__inner_size=s['inner'], ssm__state_size=s['state'],
           ssm__time_step_rank=s['mamba_heads'], ssm__group_count=s['groups'])


def mamba2_mixer(f, s, i):
    b, inner, heads, groups = f'blk.{i}.', s['inner'], s['mamba_heads'], s['groups']
    mixed = inner + 2 * groups * s['state']
    f.matrix(b + 'ssm_in', inner + mixed + heads, s['width'])
    f.small(b + 'ssm_conv1d.weight', mixed, 4, low=-0.5, high=0.5)
    f.small(b + 'ssm_conv1d.bias', mixed, low=-0.1, high=0.1)
    f.small(b + 'ssm_dt.bias', heads, low=-5, high=-1)
    f.small(b + 'ssm_a', heads, 1, low=-16, high=-1)
    f.small(b + 'ssm_d', heads, 1)
    f.small(b + 'ssm_norm.weight', groups, inner // groups)
    f.matrix(b + 'ssm_out', s['width'], inner)


def mamba2(f, s):
    ends(f, s)
    mamba2_keys(f, s)
    f.keys(feed_forward_length=0, attention__head_count=0)
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm')
        mamba2_mixer(f, s, i)


def nemotron_h(f, s):
    """One sub-layer a layer: M Mamba-2, - a plain MLP, * attention."""
    kinds = (s['kinds'] * s['layers'])[:s['layers']]
    ends(f, s)
    attention_keys(f, s, [s['kv_heads'] if k == '*' else 0 for k in kinds])
    mamba2_keys(f, s)
    f.keys(feed_forward_length=[s['ffn'] if k == '-' else 0 for k in kinds],
           attention__layer_norm_epsilon=1e-5)
    for i, kind in enumerate(kinds):
        norms(f, s, i, 'attn_norm')
        if kind == 'M':
            mamba2_mixer(f, s, i)
        elif kind == '*':
            attention(f, s, i)
        else:
            mlp(f, s, i, s['ffn'], parts=('up',))


def lfm2(f, s):
    """Short convolutions, attention in some layers."""
    attends = [i % 3 == 2 for i in range(s['layers'])]
    ends(f, s, norm='token_embd_norm')
    attention_keys(f, s, [s['kv_heads'] * a for a in attends])
    f.keys(feed_forward_length=s['ffn'], shortconv__l_cache=3)
    for i in range(s['layers']):
        b = f'blk.{i}.'
        norms(f, s, i, 'attn_norm', 'ffn_norm')
        if attends[i]:
            attention(f, s, i, qk_norms=True)
        else:
            f.matrix(b + 'shortconv.in_proj', 3 * s['width'], s['width'])
            f.small(b + 'shortconv.conv.weight', s['width'], 3, low=-0.5, high=0.5)
            f.matrix(b + 'shortconv.out_proj', s['width'], s['width'])
        mlp(f, s, i, s['ffn'])


def gpt_oss(f, s):
    """Windows in every other layer, sinks, biases, experts in MXFP4 whatever the mix."""
    ends(f, s)
    attention_keys(f, s)
    expert_keys(f, s)
    f.keys(feed_forward_length=s['expert_ffn'], attention__sliding_window=128)
    for i in range(s['layers']):
        b, n = f'blk.{i}.', s['experts']
        norms(f, s, i, 'attn_norm', 'post_attention_norm')
        attention(f, s, i, biases=('q', 'k', 'v', 'output'))
        f.small(b + 'attn_sinks.weight', s['heads'], low=-1, high=1)
        experts(f, s, i, quant=Q.MXFP4)
        f.small(b + 'ffn_gate_inp.bias', n, low=-0.1, high=0.1)
        for part, rows in (('gate', s['expert_ffn']), ('up', s['expert_ffn']),
                           ('down', s['width'])):
            f.small(f'{b}ffn_{part}_exps.bias', n, rows, low=-0.1, high=0.1)


def gemma3(f, s):
    ends(f, s)
    attention_keys(f, s)
    f.keys(feed_forward_length=s['ffn'], attention__sliding_window=s['window'])
    for i in range(s['layers']):
        norms(f, s, i, 'attn_norm', 'post_attention_norm', 'ffn_norm', 'post_ffw_norm')
        attention(f, s, i, qk_norms=True)
        mlp(f, s, i, s['ffn'])


# name: what writes it, its architecture's name in GGUF, sizes; layers: of the file, not the model.
MODELS = {
    'qwen2.5-1.5b': (qwen2, 'qwen2', dict(
        layers=12, width=1536, ffn=8960, heads=12, kv_heads=2, head=128)),
    'qwen3-30b-a3b': (qwen3moe, 'qwen3moe', dict(
        layers=4, width=2048, heads=32, kv_heads=4, head=128, experts=128, used=8,
        expert_ffn=768)),
    'deepseek-v2-lite': (deepseek2, 'deepseek2', dict(
        layers=5, width=2048, ffn=10944, heads=16, latent=512, still=128, rotated=64, value=128,
        experts=64, used=6, expert_ffn=1408, shared=2)),
    'qwen3-next-80b-a3b': (qwen3next, 'qwen3next', dict(
        layers=4, width=2048, ffn=5120, heads=16, kv_heads=2, head=256, rotated=64, k_heads=16,
        v_heads=32, delta=128, experts=128, used=10, expert_ffn=512, shared_ffn=512)),
    'qwen3.5-4b': (qwen35, 'qwen35', dict(
        layers=8, width=2560, ffn=9216, heads=16, kv_heads=4, head=256, rotated=64, k_heads=16,
        v_heads=32, delta=128)),
    'mamba-2.8b': (mamba, 'mamba', dict(layers=16, width=2560, inner=5120, state=16, rank=160)),
    'mamba2-2.7b': (mamba2, 'mamba2', dict(
        layers=16, width=2560, inner=5120, state=128, mamba_heads=80, groups=1)),
    'nemotron-h-8b': (nemotron_h, 'nemotron_h', dict(
        layers=12, kinds='M-M-M-M*-M-M', width=4096, ffn=21504, heads=32, kv_heads=8, head=128,
        inner=8192, state=128, mamba_heads=128, groups=8)),
    'lfm2-1.2b': (lfm2, 'lfm2', dict(
        layers=12, width=2048, ffn=8192, heads=32, kv_heads=8, head=64)),
    'gpt-oss-20b': (gpt_oss, 'gpt-oss', dict(
        layers=4, width=2880, heads=64, kv_heads=8, head=64, experts=32, used=4,
        expert_ffn=2880)),
    'gemma3-4b': (gemma3, 'gemma3', dict(
        layers=8, width=2560, ffn=10240, heads=8, kv_heads=4, head=256, window=1024)),
}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('model', choices=MODELS)
    p.add_argument('out')
    p.add_argument('--vocab', required=True, help='a GGUF file with the vocabulary to take')
    p.add_argument('--mix', choices=MIXES, default='q4_k_m', help='types of the matrices')
    p.add_argument('--layers', type=int, help='so many')
    p.add_argument('--experts', type=int, help='so many of them a layer')
    args = p.parse_args()
    family, arch, sizes = MODELS[args.model]
    sizes |= {k: v for k, v in (('layers', args.layers), ('experts', args.experts)) if v}
    f = File(args.out, arch, args.mix)
    f.writer.add_name(f'{args.model}, random weights')
    f.vocabulary(args.vocab)
    family(f, sizes)
    f.write()


if __name__ == '__main__':
    main()
