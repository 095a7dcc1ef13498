#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/quant/<fmt>.bin: blocks and what the `gguf` package decodes them to.

File, little endian: u32 magic "QGLD", type id, weights a block, bytes a block, decode count, encode
count; then the raw blocks; a u64 hash of each block's floats; the float blocks to encode; their
encoded bytes. Hash: FNV-1a over the 32-bit patterns, every NaN as 0x7fc00000.

Blocks: a third with ordinary scales, a third random bytes, the rest special (each float16 scale an
infinity, NaN, denormal, zero or extreme in turn; all bytes equal). Needs: gguf, numpy.
"""
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

# Format: byte offsets of its float16 scales. IQ1_M's is in pieces, Q8_K's a float, MXFP4's and
# NVFP4's a byte: random bytes cover those.
FORMATS = {
    "F32": [], "F16": [0], "BF16": [0],
    "IQ1_M": [], "IQ1_S": [0], "IQ2_S": [0], "IQ2_XS": [0], "IQ2_XXS": [0], "IQ3_S": [0],
    "IQ3_XXS": [0], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": [], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208], "Q8_0": [0], "Q8_K": [], "TQ1_0": [52], "TQ2_0": [64],
}
ENCODED = ["F32", "F16", "BF16", "Q8_0"]
SPECIAL_HALF = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01,
                0x7e00, 0xffff]
SPECIAL_FLOAT = [0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
                 0x7f800000, 0xff800000, 0x7f800001, 0xffc00000, 0x7fffffff, 0x33000000, 0x33000001,
                 0x33800000, 0x387fc000, 0x387fe000, 0x387fffff, 0x38800000, 0x38801000, 0x38803000,
                 0x477fe000, 0x477fefff, 0x477ff000, 0x3f808000, 0x3f818000, 0x7f7f8000, 0x7f7f7fff]


def sizes(name):
    return gguf.GGML_QUANT_SIZES[Type[name]]


def decode(name, raw):
    """raw: uint8 [n, bytes]; returns float32 [n, block]."""
    with np.errstate(all="ignore"):
        if name == "Q8_K":  # the package lacks it: float scale, 256 int8, sums
            scale = np.ascontiguousarray(raw[:, :4]).view(np.float32)
            return scale * raw[:, 4:260].view(np.int8).astype(np.float32)
        return gguf.dequantize(raw, Type[name])


def encode(name, x):
    with np.errstate(all="ignore"):
        y = gguf.quantize(x, Type[name])
    return np.ascontiguousarray(y).view(np.uint8).reshape(len(x), -1)


def raw_blocks(name, rng, count):
    weights, nbytes = sizes(name)
    sane = rng.integers(0, 256, (count, nbytes), dtype=np.uint8)
    for at in FORMATS[name]:
        sane[:, at:at + 2] = rng.uniform(-0.05, 0.05, (count, 1)).astype(np.float16).view(np.uint8)
    noise = rng.integers(0, 256, (count, nbytes), dtype=np.uint8)
    n_half = len(SPECIAL_HALF)
    special = rng.integers(0, 256, (n_half * len(FORMATS[name]), nbytes), dtype=np.uint8)
    for i, at in enumerate(FORMATS[name]):
        for j, half in enumerate(SPECIAL_HALF):
            special[i * n_half + j, at:at + 2] = [half & 255, half >> 8]
    column = np.array([[0], [1], [0x7f], [0x80], [0xfe], [0xff]], dtype=np.uint8)
    same = np.repeat(column, nbytes, 1)
    return np.concatenate([sane, noise, special, same])


def float_blocks(name, rng, count):
    weights, _ = sizes(name)
    x = rng.standard_normal((count, weights)).astype(np.float32)
    x *= np.exp2(rng.integers(-30, 18, (count, 1))).astype(np.float32)
    if weights == 1:
        special = np.array(SPECIAL_FLOAT, dtype=np.uint32).view(np.float32).reshape(-1, 1)
        return np.concatenate([x, special])
    x[0] = 0
    x[1] = np.arange(weights) - weights / 2 + 0.5  # ties
    x[1, 0] = -127
    x[2] *= np.float32(1e30)  # scale beyond float16
    x[3] = rng.standard_normal(weights) * 1e-42  # denormal
    return x


def hashes(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    bits = np.where(np.isnan(values), np.uint64(0x7fc00000), bits)
    h = np.full(len(values), 0xcbf29ce484222325, dtype=np.uint64)
    for column in bits.T:
        h = (h ^ column) * np.uint64(0x100000001b3)
    return h


def main():
    out = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/quant"
    out.mkdir(parents=True, exist_ok=True)
    for name in FORMATS:
        rng = np.random.default_rng(int(Type[name]) + 1000)
        weights, nbytes = sizes(name)
        raw = raw_blocks(name, rng, 200 if weights == 1 else 24)
        x = float_blocks(name, rng, 200 if weights == 1 else 12) if name in ENCODED else None
        n_encode = 0 if x is None else len(x)
        head = struct.pack("<4s5I", b"QGLD", int(Type[name]), weights, nbytes, len(raw), n_encode)
        parts = [head, raw.tobytes(), hashes(decode(name, raw)).tobytes()]
        if n_encode:
            parts += [x.tobytes(), encode(name, x).tobytes()]
        (out / f"{name.lower()}.bin").write_bytes(b"".join(parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
