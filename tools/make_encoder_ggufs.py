#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes encoders of tests/golden/families/ as model.gguf, too, as llama.cpp's converter spells
them: names by the gguf package's own table; RoBERTa as a bert without its first positions and
without the pooler. No tokenizer: what reads them feeds ids.

    make_encoder_ggufs.py      (needs gguf, safetensors and build/tests/check/golden_unpack)"""
import json
import pathlib
import subprocess
import tempfile

import gguf
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ROOT / "tests" / "golden" / "families"


def write(family: str, arch: gguf.MODEL_ARCH, drop: tuple[str, ...] = ()) -> None:
    config = json.loads((FAMILIES / family / "config.json").read_text())
    with tempfile.TemporaryDirectory() as model:
        subprocess.run([ROOT / "build/tests/check/golden_unpack", FAMILIES / family, model],
                       check=True)
        tensors = load_file(pathlib.Path(model) / "model.safetensors")
    layers = config["num_hidden_layers"]
    before = config["pad_token_id"] + 1 if config["model_type"] == "roberta" else 0
    w = gguf.GGUFWriter(str(FAMILIES / family / "model.gguf"), gguf.MODEL_ARCH_NAMES[arch])
    w.add_block_count(layers)
    w.add_context_length(config["max_position_embeddings"] - before)
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_layer_norm_eps(config.get("layer_norm_eps", config.get("norm_eps")))
    w.add_causal_attention(False)
    w.add_pooling_type(gguf.PoolingType.MEAN)
    if "type_vocab_size" in config:
        w.add_token_type_count(config["type_vocab_size"])
    if "head_dim" in config:
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    rope = config.get("rope_parameters", {})
    if rope:
        w.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if "sliding_attention" in rope:
        w.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
        w.add_sliding_window(config["local_attention"])
        w.add_sliding_window_pattern(config["global_attn_every_n_layers"])
        pooling = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS}
        w.add_uint32(w.arch + ".classifier.pooling_type", pooling[config["classifier_pooling"]])
    names = gguf.get_tensor_name_map(arch, layers)
    for name, data in tensors.items():
        if name.startswith(drop):
            continue
        if name == "embeddings.position_embeddings.weight":
            data = data[before:]
        spelled = name.removeprefix("model.")
        spelled = spelled.replace("classifier.", "classifier.out_proj.")
        w.add_tensor(names.get_name(spelled, try_suffixes=(".weight", ".bias")), data)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write("roberta", gguf.MODEL_ARCH.BERT, drop=("pooler.",))
write("nomic_bert", gguf.MODEL_ARCH.NOMIC_BERT)
write("modernbert-classifier", gguf.MODEL_ARCH.MODERN_BERT)
