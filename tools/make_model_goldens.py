#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of real models: transformers reads the same GGUF (it decodes the weights to FP32) and its
logits are kept for 96 positions: the 20 largest and the deviation of the row.

    make_model_goldens.py NAME...        (names in the models folder; needs torch, transformers,
                                          gguf, accelerate)

Writes tests/golden/logits/NAME.bin, little endian: "OBLG", u32 positions, u32 k, u32 vocabulary;
i32 ids[positions]; then for each position f32 deviation, and k pairs (i32 id, f32 logit), largest
first."""
import os
import pathlib
import struct
import sys

TEXT = """\
The engine reads a model file, checks every byte of it, and answers. A kernel that is fast and
wrong is worth nothing, so each one is compared with a plain definition.

def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a

Die Hauptstadt von Frankreich ist Paris; 7 * 6 = 42, and 2 to the power of 10 is 1024.
"""
POSITIONS, K = 96, 20


def main() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    models = pathlib.Path(data) / "1bit" / "models"
    out = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "logits"
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:]:
        file = name + ".gguf"
        tokenizer = AutoTokenizer.from_pretrained(models, gguf_file=file)
        model = AutoModelForCausalLM.from_pretrained(models, gguf_file=file, dtype=torch.float32)
        model.eval()
        ids = tokenizer(TEXT)["input_ids"][:POSITIONS]
        assert len(ids) == POSITIONS, len(ids)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].float()
        with open(out / (name + ".bin"), "wb") as f:
            f.write(b"OBLG" + struct.pack("<III", POSITIONS, K, logits.shape[1]))
            f.write(struct.pack(f"<{POSITIONS}i", *ids))
            for row in logits:
                value, index = row.topk(K)
                f.write(struct.pack("<f", row.std().item()))
                for i, v in zip(index.tolist(), value.tolist()):
                    f.write(struct.pack("<if", i, v))
        print(name, "vocabulary", logits.shape[1], "deviation", logits.std().item())


main()
