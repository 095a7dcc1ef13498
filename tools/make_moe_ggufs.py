#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the mixtures of experts of tests/golden/families/ as model.gguf, too, as llama.cpp's
converter spells them: the experts of a layer in one tensor, Mixtral's q and k with rotary pairs
side by side. No tokenizer: what reads them feeds ids.

    make_moe_ggufs.py      (needs numpy, gguf, safetensors and build/tests/check/golden_unpack)"""
import json
import pathlib
import subprocess
import tempfile

import gguf
import numpy as np
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ROOT / "tests" / "golden" / "families"
GLOBAL = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}


def pairs(w: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head from (i, i + d/2) to (2i, 2i + 1)."""
    return w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def write(family: str, arch: str, experts: str, gate: str, names: dict[str, str]) -> None:
    config = json.loads((FAMILIES / family / "config.json").read_text())
    with tempfile.TemporaryDirectory() as model:
        subprocess.run([ROOT / "build/tests/check/golden_unpack", FAMILIES / family, model],
                       check=True)
        tensors = load_file(pathlib.Path(model) / "model.safetensors")
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    w = gguf.GGUFWriter(str(FAMILIES / family / "model.gguf"), arch)
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    w.add_expert_count(config["num_local_experts"])
    w.add_expert_used_count(config["num_experts_per_tok"])
    if "head_dim" in config:
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    if "moe_intermediate_size" in config:
        w.add_expert_feed_forward_length(config["moe_intermediate_size"])
    dense = config.get("mlp_only_layers", [])
    assert dense == list(range(len(dense)))
    if dense:
        w.add_leading_dense_block_count(len(dense))

    for ours, theirs in GLOBAL.items():
        w.add_tensor(ours + ".weight", tensors[theirs + ".weight"])
    for i in range(config["num_hidden_layers"]):
        b, layer = f"blk.{i}.", f"model.layers.{i}."
        for ours, theirs in LAYER.items():
            x = tensors.get(layer + theirs + ".weight")
            if x is None:
                continue
            if arch == "llama" and ours in ("attn_q", "attn_k"):
                x = pairs(x, heads if ours == "attn_q" else kv_heads)
            w.add_tensor(b + ours + ".weight", x)
        if i in dense:
            continue
        w.add_tensor(b + "ffn_gate_inp.weight", tensors[layer + gate + ".weight"])
        for ours, theirs in names.items():
            stack = [tensors[f"{layer}{experts}.{e}.{theirs}.weight"]
                     for e in range(config["num_local_experts"])]
            w.add_tensor(b + ours + ".weight", np.stack(stack))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write("mixtral", "llama", "block_sparse_moe.experts", "block_sparse_moe.gate",
      {"ffn_gate_exps": "w1", "ffn_up_exps": "w3", "ffn_down_exps": "w2"})
write("qwen3_moe", "qwen3moe", "mlp.experts", "mlp.gate",
      {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"})
