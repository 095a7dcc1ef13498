#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of a real embedding model: what transformers computes in FP32 from its directory, pooled
and normed as sentence-transformers does it for this model (mean, length 1), and all tokens read.

    make_embed_goldens.py [MODELS_FOLDER]     (needs torch, transformers, tokenizers)

Writes tests/golden/embeddings/minilm.bin, little endian: "OBEM", u32 texts, u32 columns; then for
each text u32 bytes, the bytes, f32 vector[columns]."""
import os
import pathlib
import struct
import sys

TEXTS = [
    "A cat sat on the mat.",
    "Ein Hund läuft über die Straße.",
    "東京は日本の首都です。",
    "What is the capital of France?",
    "Paris is the capital of France.",
    "HELLO world!!! 123 \U0001f44d",
    "def f(x): return x * x  # naïve café",
    "The quick brown fox jumps over the lazy dog. " * 12,
    "\t\n control \x01 characters",
    # of little or too much of the same: hard for rounded activations
    "x",
    "",
    "word " * 300,
]


def main() -> None:
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModel

    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(data, "1bit", "models")
    path = os.path.join(folder, "minilm")
    tokenizer = Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = AutoModel.from_pretrained(path, dtype=torch.float32,
                                      attn_implementation="eager").eval()
    out = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "embeddings"
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "minilm.bin", "wb") as f:
        f.write(struct.pack("<4sII", b"OBEM", len(TEXTS), model.config.hidden_size))
        for text in TEXTS:
            with torch.no_grad():
                ids = torch.tensor([tokenizer.encode(text).ids])
                mean = model(input_ids=ids).last_hidden_state[0].mean(0)
            vector = mean / mean.norm().clamp(min=1e-12)
            data = text.encode()
            f.write(struct.pack("<I", len(data)) + data + vector.numpy().astype("<f4").tobytes())


if __name__ == "__main__":
    main()
