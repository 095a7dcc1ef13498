#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tiny.gguf: a qwen2 with two layers and random weights in the formats a Q4_K_M
file mixes, so that tests of the engine and the program need no download. Its tokenizer knows the
256 bytes, a few merges and three control tokens. What it says is noise. tiny_moe.gguf is the same
as a mixture of experts.

    make_tiny_gguf.py      (needs numpy and gguf)"""
import pathlib

import gguf
import numpy as np

WIDTH, FFN, HEADS, KV_HEADS, LAYERS = 256, 512, 4, 2, 2
USED, EXPERT_FFN = 2, 64
T = gguf.GGMLQuantizationType
rng = np.random.default_rng(7)


def byte_alphabet() -> list[str]:
    """GPT-2's printable spelling of the 256 bytes, in byte order."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(b) if b in keep else chr(next(spare)) for b in range(256)]


def vocabulary() -> tuple[list[str], list[str], list[int]]:
    tokens = byte_alphabet()
    pairs = [("t", "h"), ("th", "e"), ("Ġ", "a"), ("Ġ", "the"), ("i", "n"), ("a", "n"), ("an", "d"),
             ("e", "r"), ("o", "n"), ("Ġ", "s")]
    tokens += [a + b for a, b in pairs]
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    types = [gguf.TokenType.NORMAL] * len(tokens) + [gguf.TokenType.CONTROL] * len(control)
    tokens += control
    while len(tokens) % 32:
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(gguf.TokenType.UNUSED)
    return tokens, [f"{a} {b}" for a, b in pairs], types


def half(x: np.ndarray) -> np.ndarray:
    return x.astype("<f2").view(np.uint8).reshape(len(x), 2)


def random_blocks(kind: T, rows: int, cols: int) -> np.ndarray:
    """Blocks of random codes whose weights have a deviation of about 1/sqrt(cols)."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    n, d = rows * cols // block, 1.0 / np.sqrt(cols)
    out = rng.integers(0, 256, (n, size), dtype=np.uint8)
    spread = rng.uniform(0.7, 1.3, n)
    if kind == T.Q4_K:    # d, dmin: codes are 0-15, scales and mins 0-63
        out[:, 0:2] = half(d * spread / (4.6 * 32))
        out[:, 2:4] = half(d * spread / (4.6 * 32) * 7.5)
    elif kind == T.Q6_K:  # int8 scales, codes -32..31, d last
        out[:, 192:208] = rng.integers(20, 60, (n, 16), dtype=np.uint8)
        out[:, 208:210] = half(d * spread / (18.5 * 40))
    elif kind == T.Q5_0:
        out[:, 0:2] = half(d * spread / 9.2)
    elif kind == T.Q8_0:
        out[:, 0:2] = half(d * spread / 74)
    return out.reshape(rows, cols // block * size)


def write(name: str, arch: str, experts: int) -> None:
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / name
    tokens, merges, types = vocabulary()
    w = gguf.GGUFWriter(str(path), arch)
    w.add_name("Tiny mixture" if experts else "Tiny")
    w.add_block_count(LAYERS)
    w.add_context_length(2048)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(FFN)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(USED)
        w.add_expert_feed_forward_length(EXPERT_FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_eos_token_id(tokens.index("<|im_end|>"))
    w.add_add_bos_token(False)
    w.add_chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

    def matrix(name: str, kind: T, rows: int, cols: int) -> None:
        w.add_tensor(name + ".weight", random_blocks(kind, rows, cols), raw_dtype=kind)

    def stack(name: str, kind: T, rows: int, cols: int) -> None:
        blocks = random_blocks(kind, experts * rows, cols)
        w.add_tensor(name + ".weight", blocks.reshape(experts, rows, -1), raw_dtype=kind)

    def vector(name: str, n: int, mean: float) -> None:
        w.add_tensor(name, (mean + rng.normal(0, 0.1, n)).astype(np.float32))

    kv = WIDTH // HEADS * KV_HEADS
    matrix("token_embd", T.Q8_0, len(tokens), WIDTH)
    matrix("output", T.Q6_K, len(tokens), WIDTH)
    vector("output_norm.weight", WIDTH, 2.0)
    for i in range(LAYERS):
        b = f"blk.{i}."
        vector(b + "attn_norm.weight", WIDTH, 1.0)
        vector(b + "ffn_norm.weight", WIDTH, 1.0)
        for name, rows, kind in (("attn_q", WIDTH, T.Q4_K), ("attn_k", kv, T.Q5_0),
                                 ("attn_v", kv, T.Q6_K)):
            matrix(b + name, kind, rows, WIDTH)
            if not experts:
                vector(b + name + ".bias", rows, 0.0)
        matrix(b + "attn_output", T.Q4_K, WIDTH, WIDTH)
        if experts:
            vector(b + "attn_q_norm.weight", WIDTH // HEADS, 1.0)
            vector(b + "attn_k_norm.weight", WIDTH // HEADS, 1.0)
            w.add_tensor(b + "ffn_gate_inp.weight",
                         rng.normal(0, 2 / WIDTH ** 0.5, (experts, WIDTH)).astype(np.float32))
            stack(b + "ffn_gate_exps", T.Q4_K, EXPERT_FFN, WIDTH)
            stack(b + "ffn_up_exps", T.Q4_K if i else T.Q6_K, EXPERT_FFN, WIDTH)
            stack(b + "ffn_down_exps", T.Q8_0 if i else T.Q5_0, WIDTH, EXPERT_FFN)
            continue
        matrix(b + "ffn_gate", T.Q4_K, FFN, WIDTH)
        matrix(b + "ffn_up", T.Q5_0, FFN, WIDTH)
        matrix(b + "ffn_down", T.Q8_0 if i else T.Q6_K, WIDTH, FFN)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(path, path.stat().st_size)


write("tiny.gguf", "qwen2", 0)
write("tiny_moe.gguf", "qwen3moe", 6)
