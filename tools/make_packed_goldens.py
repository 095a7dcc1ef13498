#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of quantized Hugging Face directories: a tiny Llama, drawn here, in each method's public
layout, with what an independent reading of that layout (numpy, below) gives.

    make_packed_goldens.py     (needs numpy, torch, transformers, safetensors)

Writes tests/golden/packed/NAME/: config.json, model.safetensors, and expected.json: of each matrix
in the engine's order of rows the format and the checksum of its values in float32, and logits of
transformers in float32 with those values."""
import json
import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "packed"
WIDTH, FFN, VOCAB, HEADS, KV_HEADS, DIM, LAYERS = 64, 96, 48, 4, 2, 16, 1
IDS = [1, 7, 30, 2, 19, 44, 5, 11]
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
    "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "head_dim": DIM, "vocab_size": VOCAB, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "max_position_embeddings": 64, "tie_word_embeddings": False,
    "rope_theta": 10000.0, "bos_token_id": 1, "eos_token_id": 2,
}
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
T = torch.from_numpy
U64 = np.uint64


def mix(x):
    x = x + U64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


def checksum(data):
    """Sum over i of rng_u64(i, byte i), of src/base/rng.h."""
    byte = np.frombuffer(data, np.uint8).astype(U64)
    seed = np.arange(len(byte), dtype=U64)
    return int(mix(mix(seed) ^ mix(byte + U64(0x5851F42D4C957F2D))).sum(dtype=U64))


def half(x):
    """The float16 nearest, as float32."""
    return x.astype(np.float16).astype(np.float32)


def words(codes, bits, order=None):
    """Codes to words along the last axis, the first in the lowest bits; order[i] at place i."""
    each = 32 // bits
    n = -(-codes.shape[-1] // each) * each
    wide = np.zeros(codes.shape[:-1] + (n,), np.uint64)
    wide[..., :codes.shape[-1]] = codes
    wide = wide.reshape(codes.shape[:-1] + (n // each, each))
    order = order or range(each)
    out = np.zeros(wide.shape[:-1], np.uint64)
    for place, from_ in enumerate(order):
        out |= wide[..., from_] << np.uint64(place * bits)
    return T(out.astype(np.uint32).view(np.int32).copy())


def whole(w, group, bits, symmetric, group_of=None):
    """Codes [out, in], scales (exact in float16) and zero points [out, groups]."""
    top, middle = (1 << bits) - 1, 1 << (bits - 1)
    groups = -(-w.shape[1] // group)
    group_of = np.arange(w.shape[1]) // group if group_of is None else group_of
    scale, zero = np.zeros((len(w), groups), np.float32), np.full((len(w), groups), middle)
    for g in range(groups):
        part = w[:, group_of == g]
        if symmetric:
            scale[:, g] = half(np.abs(part).max(1) / middle)
        else:
            low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
            scale[:, g] = half((high - low) / top)
            zero[:, g] = np.clip(np.round(-low / scale[:, g]), 1, top)
    code = np.clip(np.round(w / scale[:, group_of]) + zero[:, group_of], 0, top).astype(np.int64)
    value = scale[:, group_of] * (code - zero[:, group_of]).astype(np.float32)
    return code, scale, zero, value


class Packer:
    """A method: tensors of a matrix; its values and the engine's format for them."""
    def __init__(self, config):
        self.config = config


class Gptq(Packer):
    def __init__(self, bits=4, group=32, symmetric=True, order=False, version="gptq"):
        super().__init__({"quant_method": "gptq", "bits": bits, "group_size": group,
                          "desc_act": order, "sym": symmetric, "checkpoint_format": version})
        self.bits, self.group, self.symmetric, self.order = bits, group, symmetric, order
        self.less = 1 if version == "gptq" else 0

    def pack(self, name, w, rng):
        cols = w.shape[1]
        group = cols if self.group < 0 else self.group
        order = np.arange(cols) // group
        if self.order:
            order = rng.permutation(order)
        code, scale, zero, value = whole(w, group, self.bits, self.symmetric, order)
        stored = (zero - self.less) & ((1 << self.bits) - 1)
        tensors = {"qweight": words(code, self.bits).T.contiguous(),
                   "qzeros": words(np.ascontiguousarray(stored.T), self.bits),
                   "scales": T(np.ascontiguousarray(scale.T)).half(),
                   "g_idx": T(order.astype(np.int32))}
        if self.group < 0:
            tensors["bias"] = torch.zeros(len(w), dtype=torch.float16)
        if self.order or cols % 32:
            return tensors, half(value), "F16"
        return tensors, value, "Q4_0" if self.symmetric and self.bits == 4 else "Q8_0"


class Awq(Packer):
    def __init__(self):
        super().__init__({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm",
                          "zero_point": True})

    def pack(self, name, w, rng):
        code, scale, zero, value = whole(w, 32, 4, False)
        return {"qweight": words(np.ascontiguousarray(code.T), 4, AWQ_ORDER),
                "qzeros": words(np.ascontiguousarray(zero.T), 4, AWQ_ORDER),
                "scales": T(np.ascontiguousarray(scale.T)).half()}, value, "Q8_0"


class Ints(Packer):
    """compressed-tensors, whole numbers."""
    def __init__(self, symmetric, group, bits=4):
        weights = {"num_bits": bits, "type": "int", "symmetric": symmetric,
                   "strategy": "group" if group > 0 else "channel", "group_size": group or None}
        super().__init__({
            "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
            "quantization_status": "compressed", "kv_cache_scheme": None,
            "config_groups": {"group_0": {"weights": weights, "input_activations": None,
                                          "output_activations": None, "targets": ["Linear"]}}})
        self.symmetric, self.group, self.bits = symmetric, group, bits

    def pack(self, name, w, rng):
        code, scale, zero, value = whole(w, self.group or w.shape[1], self.bits, self.symmetric)
        tensors = {"weight_packed": words(code, self.bits), "weight_scale": T(scale).half(),
                   "weight_shape": torch.tensor(w.shape)}
        if not self.symmetric:
            tensors["weight_zero_point"] = words(np.ascontiguousarray(zero.T), self.bits).T \
                .contiguous()
        if (self.group or 32) % 32:
            return tensors, half(value), "F16"
        return tensors, value, "Q4_0" if self.symmetric and self.bits == 4 else "Q8_0"


class Fp8(Packer):
    """block: rows and columns of a scale; "row"; or None: one."""
    def __init__(self, block, compressed=False, magnitude=1.0):
        if compressed:
            super().__init__({
                "quant_method": "compressed-tensors", "format": "float-quantized",
                "config_groups": {"group_0": {
                    "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                    "input_activations": {"num_bits": 8, "type": "float", "dynamic": True}}}})
        else:
            super().__init__({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                              "weight_block_size": list(block) if block else None})
        self.block, self.compressed, self.magnitude = block, compressed, magnitude

    def pack(self, name, w, rng):
        w = w * self.magnitude
        rows, cols = {None: w.shape, "row": (1, w.shape[1])}.get(self.block, self.block)
        shape = -(-w.shape[0] // rows), -(-w.shape[1] // cols)
        scale = np.zeros(shape, np.float32)
        for i in range(shape[0]):
            for j in range(shape[1]):
                part = w[i * rows:(i + 1) * rows, j * cols:(j + 1) * cols]
                scale[i, j] = np.abs(part).max() / 448
        wide = np.repeat(np.repeat(scale, rows, 0), cols, 1)[:w.shape[0], :w.shape[1]]
        code = T(w / wide).to(torch.float8_e4m3fn)
        value = code.float().numpy() * wide
        if self.block is None:
            scale = scale.reshape(1)
        part = "weight_scale" if self.compressed else "weight_scale_inv"
        kind = "BF16" if np.abs(scale).max() * 448 > 65504 else "F16"
        value = half(value) if kind == "F16" else T(value).bfloat16().float().numpy()
        return {"weight": code, part: T(scale)}, value, kind


class Nf4(Packer):
    MAP = np.array([-1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500,
                    0.0, 0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170,
                    0.7229568, 1.0], np.float32)

    def __init__(self, nested):
        super().__init__({"quant_method": "bitsandbytes", "load_in_4bit": True,
                          "load_in_8bit": False, "bnb_4bit_quant_type": "nf4",
                          "bnb_4bit_use_double_quant": nested})
        self.nested = nested

    def pack(self, name, w, rng):
        flat = w.reshape(-1, 64)
        absmax = np.abs(flat).max(1)
        state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": list(w.shape)}
        tensors = {}
        if self.nested:
            table = np.sort(rng.uniform(-1, 1, 256).astype(np.float32))
            offset = np.float32(absmax.mean())
            blocks = -(-len(absmax) // 16)
            top = np.array([np.abs(absmax[i * 16:i * 16 + 16] - offset).max()
                            for i in range(blocks)], np.float32)
            wide = np.repeat(top, 16)[:len(absmax)]
            code = np.abs(((absmax - offset) / wide)[:, None] - table).argmin(1)
            absmax = table[code] * wide + offset
            state |= {"nested_blocksize": 16, "nested_dtype": "float32",
                      "nested_offset": float(offset)}
            tensors = {"weight.nested_absmax": T(top), "weight.nested_quant_map": T(table)}
            tensors["weight.absmax"] = T(code.astype(np.uint8))
        else:
            tensors["weight.absmax"] = T(absmax)
        index = np.abs((flat / absmax[:, None])[:, :, None] - self.MAP).argmin(2)
        value = (self.MAP[index] * absmax[:, None]).reshape(w.shape)
        pairs = index.reshape(-1, 2)
        tensors |= {"weight": T((pairs[:, :1] << 4 | pairs[:, 1:]).astype(np.uint8)),
                    "weight.quant_map": T(self.MAP.copy()),
                    "weight.quant_state.bitsandbytes__nf4":
                        T(np.frombuffer(json.dumps(state).encode(), np.uint8).copy())}
        return tensors, half(value), "F16"


METHODS = {
    "awq": Awq(), "bnb_nf4": Nf4(False), "bnb_nf4_nested": Nf4(True),
    "ct_fp8": Fp8("row", compressed=True), "ct_int4": Ints(True, 32),
    "ct_int4_asym": Ints(False, 32), "ct_int4_row": Ints(True, 0), "ct_int4_small": Ints(False, 16),
    "ct_int8": Ints(True, 32, 8), "fp8_block": Fp8((40, 48)), "fp8_one": Fp8(None),
    "fp8_large": Fp8((64, 64), magnitude=1e6), "gptq": Gptq(), "gptq8": Gptq(8),
    "gptq_asym": Gptq(symmetric=False), "gptq_order": Gptq(symmetric=False, order=True),
    "gptq_row": Gptq(group=-1), "gptq_v2": Gptq(symmetric=False, version="gptq_v2"),
}


def canonical(name, value):
    """In the engine a head's rows are pairs, not halves."""
    heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name)
    if not heads:
        return value
    return value.reshape(heads, 2, DIM // 2, -1).transpose(0, 2, 1, 3).reshape(value.shape)


def write(name, tensors, config, expected, logits):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "expected.json").write_text(json.dumps(
        {"tensors": expected, "ids": IDS, "logits": [float(f"{x:.6g}") for x in logits.ravel()]}) +
        "\n")


def make_mixture(name, pick):
    """DeepSeek V3: experts, and a matrix that is taken apart by heads and transposed. pick: the
    packer of a matrix by its name."""
    rng = np.random.default_rng(6)
    config = json.loads((OUT.parent / "families" / "deepseek_v3" / "config.json").read_text())
    config |= {"vocab_size": VOCAB, "num_nextn_predict_layers": 0}
    tensors, state = {}, {}
    with tempfile.TemporaryDirectory() as plain:
        folder = pathlib.Path(plain)
        kind = transformers.DeepseekV3Config
        (folder / "config.json").write_text(json.dumps(config))
        model = transformers.DeepseekV3ForCausalLM(kind.from_pretrained(folder)).float()
        model.save_pretrained(folder)
        for key, old in load_file(folder / "model.safetensors").items():
            w = 0.3 * rng.standard_normal(old.shape).astype(np.float32)
            w = half(1 + w if "norm" in key else w)
            tensors[key] = state[key] = T(w)
            if "_proj" not in key:
                continue
            parts, value, _ = pick(key).pack(key, w, rng)
            del tensors[key]
            tensors |= {key.removesuffix("weight") + part: t.contiguous()
                        for part, t in parts.items()}
            state[key] = T(value)
        save_file(state, folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config))
        model = transformers.DeepseekV3ForCausalLM.from_pretrained(
            folder, attn_implementation="eager", dtype=torch.float32).eval()
        with torch.no_grad():
            logits = model(torch.tensor([IDS])).logits[0].numpy()
    write(name, tensors, config | {"quantization_config": pick("").config}, {}, logits)


def make(name, packer):
    rng = np.random.default_rng(5)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **{k: v for k, v in CONFIG.items() if k not in ("architectures", "model_type")},
        attn_implementation="eager")).float().eval()
    tensors, expected, state = {}, {}, {}
    for key, old in model.state_dict().items():
        w = rng.standard_normal(old.shape).astype(np.float32)
        stem = key.removesuffix(".weight")
        short = NAMES.get(stem.split(".", 3)[-1]) if stem.startswith("model.layers.") else None
        if not short:
            w = half(1 + 0.1 * w if "norm" in key else w)
            tensors[key] = T(w).half()
            state[key] = T(w)
            continue
        parts, value, kind = packer.pack(key, w / np.float32(8), rng)
        tensors |= {f"{stem}.{part}": t.contiguous() for part, t in parts.items()}
        assert value.dtype == np.float32
        state[key] = T(value)
        rows = np.ascontiguousarray(canonical(short, value))
        weight = f"blk.{stem.split('.')[2]}.{short}.weight"
        expected[weight] = [kind, f"{checksum(rows.tobytes()):016x}"]
    model.load_state_dict(state)
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].numpy()
    write(name, tensors, CONFIG | {"quantization_config": packer.config}, expected, logits)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    for name, packer in METHODS.items():
        make(name, packer)
    make_mixture("moe_fp8", lambda key: Fp8((16, 16)))
    # of each matrix one expert's format is wider
    make_mixture("moe_gptq", lambda key: Gptq(
        symmetric="experts.1." not in key))


if __name__ == "__main__":
    main()
