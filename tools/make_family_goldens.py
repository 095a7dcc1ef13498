#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compact goldens of model families: the configuration, what redraws the weights, and what
transformers computes from the redrawn weights in float32 (needs torch, transformers, safetensors).

    make_family_goldens.py FIXTURES [NAME...]
        of folders FIXTURES/NAME with config.json, model.safetensors and reference.npz
    make_family_goldens.py --config NAME...
        of tests/golden/families/NAME/config.json alone: draw_model.py draws its first weights. The
        file may be written by hand, it becomes what save_pretrained writes

Writes tests/golden/families/NAME/ (README.md there: the layout of golden.bin). A fixture is first
run as it is and must give its own reference; the redrawn weights must give logits that are sane and
near enough to those in float64 to be a reference."""
import argparse
import copy
import json
import math
import os
import pathlib
import shutil
import struct
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiled layers round differently
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file as load_numpy, save_file
from safetensors.torch import load_file

import draw_model

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "families"
VERSION, GENERATED = 1, 16
MASK = (1 << 64) - 1
# Deviations of a logit: the reference's own error, and what token 80 must do to position 90 on.
EXACT, FELT = 4e-4, 5e-3
# Computed from the layer and head by those who publish such models.
STORED = ("slope_rate", "query_decay", "key_decay", "diagonal_decay",
          "encoder.embed_positions.weight")
U64 = np.uint64


def mix(x: np.ndarray) -> np.ndarray:
    x = x + U64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


def random_words(seed: int | np.ndarray, counter: np.ndarray) -> np.ndarray:
    """rng_u64 of src/base/rng.h."""
    seed = np.atleast_1d(np.asarray(seed, U64))
    return mix(mix(seed) ^ mix(counter + U64(0x5851F42D4C957F2D)))


def fnv1a(text: str) -> int:
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def checksum(data: bytes) -> int:
    """Of whole bytes: sum over i of random_words(i, byte i)."""
    words = np.frombuffer(data, np.uint8).astype(U64)
    return int(random_words(np.arange(len(words), dtype=U64), words).sum(dtype=U64))


class Drawn:
    """A tensor that its name, mean and deviation stand for."""
    UNIT = 1 / math.sqrt((2.0**32 - 1) / 3)  # four uniform 16-bit numbers to deviation 1

    def __init__(self, name: str, value: np.ndarray):
        self.name, self.shape, self.dtype = name, value.shape, "F32"
        wide = value.astype(np.float64)
        self.mean, self.std = np.float32(wide.mean()), np.float32(wide.std())
        # what is of one sign keeps its range: decay rates, steps, scales, norm weights
        one_sign = value.min() > 0 or value.max() < 0
        top = np.finfo(np.float32).max
        self.low, self.high = (value.min(), value.max()) if one_sign else (-top, top)

    def value(self) -> np.ndarray:
        n = math.prod(self.shape)
        w = random_words(fnv1a(self.name), np.arange(n, dtype=U64))
        total = sum(((w >> U64(16 * i)) & U64(0xFFFF)) for i in range(4)).astype(np.float64)
        x = float(self.mean) + float(self.std) * ((total - 131070.0) * self.UNIT)
        return np.clip(x, float(self.low), float(self.high)).astype("<f4").reshape(self.shape)

    def packed(self) -> bytes:
        return struct.pack("<4f", self.mean, self.std, self.low, self.high)


class Stored:
    """A tensor that is kept as it is."""
    SPELLED = {"float32": "F32", "int32": "I32", "int64": "I64", "uint8": "U8"}

    def __init__(self, name: str, value: np.ndarray):
        self.name, self.shape, self.dtype = name, value.shape, self.SPELLED[value.dtype.name]
        self.kept = value

    def value(self) -> np.ndarray:
        return self.kept

    def packed(self) -> bytes:
        return self.kept.tobytes()


def describe(name: str, value: np.ndarray):
    drawn = value.dtype == np.float32 and np.isfinite(value).all() and value.size > 0
    return (Drawn if drawn and not name.endswith(STORED) else Stored)(name, value)


# ---- transformers --------------------------------------------------------------------------------

def load(folder: pathlib.Path, direct: bool):
    """direct: the file's tensors straight into the parameters, for classes whose from_pretrained
    changes a weight."""
    config = json.loads((folder / "config.json").read_text())
    kind = draw_model.class_of(config)
    how = {"attn_implementation": "eager", "dtype": torch.float32}
    if not direct:
        return kind.from_pretrained(folder, experts_implementation="eager", **how).eval()
    model = kind._from_config(kind.config_class.from_pretrained(folder), **how)
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    model.tie_weights()
    return model.eval()


def logits(model, ids) -> np.ndarray:
    with torch.no_grad():
        x = torch.as_tensor(np.asarray(ids, np.int64))[None]
        return model(input_ids=x, use_cache=False).logits[0].numpy()


def greedy(model, ids) -> np.ndarray:
    ids = [int(i) for i in ids]
    start = len(ids)
    for _ in range(GENERATED):
        ids.append(int(logits(model, ids)[-1].argmax()))
    return np.array(ids[start:], np.int32)


def hidden_states(model, ids, part: str) -> dict[str, np.ndarray]:
    out = {}
    with torch.no_grad():
        x = torch.as_tensor(np.asarray(ids, np.int64))[None]
        kw = {"input_ids": x, "attention_mask": torch.ones_like(x)}
        whole, last = model(**kw), model.base_model(**kw).last_hidden_state[0]
        out["hidden_" + part] = last.numpy()
        out["mean_" + part] = last.mean(0).numpy()
        if getattr(whole, "pooler_output", None) is not None:
            out["pooler_" + part] = whole.pooler_output[0].numpy()
        if getattr(whole, "logits", None) is not None:
            out["class_logits_" + part] = whole.logits[0].numpy()
    return out


def run(model, ids: dict[str, np.ndarray], encoder: bool) -> dict[str, np.ndarray]:
    """Everything but the generated tokens."""
    out = {}
    for part, x in ids.items():
        if encoder:
            out |= hidden_states(model, x, part)
        else:
            out["logits_" + part] = logits(model, x)
            out["argmax_" + part] = out["logits_" + part].argmax(-1).astype(np.int32)
    return out


def furthest(a: np.ndarray, b: np.ndarray) -> float:
    """In deviations."""
    return float(np.abs(a.astype(np.float64) - b).max() / a.std())


def judge(model, ids: dict, have: dict, encoder: bool) -> str:
    """The figures of a reference; raises if it is none."""
    main = "hidden_a" if encoder else "logits_a"
    other = ids["a"].copy()
    other[80] = 8 + (other[80] - 1) % 240
    felt = furthest(have[main][90:], run(model, {"a": other}, encoder)[main][90:])
    try:
        twin = run(copy.deepcopy(model).double(), ids, encoder)
        exact = max(furthest(have[k], twin[k]) for k in have if k[:6] in ("logits", "hidden"))
    except (RuntimeError, TypeError):
        exact = math.nan  # a class that computes in float32 whatever its weights are
    std = float(have[main].std())
    said = f"deviation {std:.2f}, token 80 moves {felt:.1e}, float64 differs by {exact:.1e}"
    if not encoder:
        top = np.sort(have["logits_a"], -1)
        said += f", {int((top[:, -1] - top[:, -2] < 1e-3).sum())} ties"
        said += f", {int((have['argmax_a'] == ids['a']).sum())} echoes"
    finite = all(np.isfinite(x).all() for x in have.values())
    if not finite or not 0.3 <= std <= 10 or felt < FELT or exact > EXACT:
        raise ValueError("no reference: " + said)
    return said


# ---- files ---------------------------------------------------------------------------------------

def named(name: str) -> bytes:
    text = name.encode()
    return struct.pack("<B", len(text)) + text


def pack_tensor(t) -> bytes:
    head = named(t.name) + named(t.dtype) + struct.pack("<BB", isinstance(t, Stored), len(t.shape))
    shape = struct.pack(f"<{len(t.shape)}I", *t.shape)
    return head + shape + struct.pack("<Q", checksum(t.value().tobytes())) + t.packed()


def quantize(row: np.ndarray) -> bytes:
    low = float(row.min())
    step = float(np.float32((float(row.max()) - low) / 65535))
    q = np.rint((row - low) / step) if step > 0 else np.zeros(len(row))
    return struct.pack("<ff", low, step) + np.clip(q, 0, 65535).astype("<u2").tobytes()


def pack_array(name: str, x: np.ndarray) -> bytes:
    x = np.atleast_2d(x)
    whole = x.dtype.kind == "i"
    head = named(name) + struct.pack("<BII", whole, *x.shape)
    if whole:
        return head + x.astype("<i4").tobytes()
    return head + b"".join(quantize(row.astype(np.float64)) for row in x)


def reference(folder: pathlib.Path, encoder: bool, want: dict) -> tuple[bool, dict]:
    """How the fixture must be loaded to give its own reference, and its ids."""
    ids = {p: want["input_ids_" + p] for p in ("a", "b")}
    key = "hidden_a" if encoder else "logits_a"
    for direct in (False, True):
        if furthest(want[key], run(load(folder, direct), ids, encoder)[key]) < EXACT:
            return direct, ids
    raise ValueError("the fixture does not give its own reference")


def drop_wrong_legacy(folder: pathlib.Path, want: np.ndarray, ids: np.ndarray) -> None:
    """Older spellings that transformers reads as another model, or not at all."""
    legacy = folder / "config.legacy.json"
    if not legacy.exists():
        return
    with tempfile.TemporaryDirectory() as tmp:
        copied = pathlib.Path(tmp)
        shutil.copyfile(legacy, copied / "config.json")
        os.symlink(folder / "model.safetensors", copied / "model.safetensors")
        try:
            same = furthest(want, draw_model.outputs(load(copied, False), ids).numpy()) < EXACT
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            same = False
    if not same:
        legacy.unlink()


def make_drawn(name: str) -> str:
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        draw_model.draw(OUT / name / "config.json", name, folder)
        want = np.load(folder / "reference.npz")
        key = "logits_a" if "logits_a" in want.files else "hidden_a"
        drop_wrong_legacy(folder, want[key], want["input_ids_a"])
        (OUT / name / "config.legacy.json").unlink(missing_ok=True)
        return make(folder, OUT / name)


def make(folder: pathlib.Path, out: pathlib.Path) -> str:
    want = np.load(folder / "reference.npz")
    encoder = "logits_a" not in want.files
    direct, ids = reference(folder, encoder, want)
    tensors = [describe(k, v) for k, v in sorted(load_numpy(folder / "model.safetensors").items())]
    with tempfile.TemporaryDirectory() as tmp:
        copied = pathlib.Path(tmp)
        shutil.copyfile(folder / "config.json", copied / "config.json")
        save_file({t.name: t.value() for t in tensors}, copied / "model.safetensors",
                  metadata={"format": "pt"})
        model = load(copied, direct)
    have = run(model, ids, encoder)
    said = judge(model, ids, have, encoder)
    arrays = {}
    for part, x in ids.items():
        arrays["input_ids_" + part] = x
        arrays |= {k: v for k, v in have.items() if k.endswith("_" + part)}
        if not encoder:
            arrays["generated_" + part] = greedy(model, x)
    out.mkdir(parents=True, exist_ok=True)
    for config in ("config.json", "config.legacy.json"):
        if (folder / config).exists():
            shutil.copyfile(folder / config, out / config)
    data = b"OBGF" + struct.pack("<III", VERSION, len(tensors), len(arrays))
    data += b"".join(pack_tensor(t) for t in tensors)
    data += b"".join(pack_array(k, v) for k, v in arrays.items())
    (out / "golden.bin").write_bytes(data)
    return f"{said}, {len(data)} bytes"


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--config", action="store_true", help="of the configurations NAME alone")
    ap.add_argument("fixtures", type=pathlib.Path, nargs="?")
    ap.add_argument("name", nargs="*")
    a = ap.parse_args()
    if not a.fixtures:
        ap.error("FIXTURES, or --config and a NAME")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    if a.config:
        names = [a.fixtures.name, *a.name]
    else:
        names = a.name or sorted(p.parent.name for p in a.fixtures.glob("*/reference.npz"))
    for name in names:
        try:
            said = make_drawn(name) if a.config else make(a.fixtures / name, OUT / name)
            print(f"{name}: {said}", flush=True)
        except (ValueError, RuntimeError, KeyError, AttributeError, TypeError, OSError) as e:
            failed += 1
            print(f"{name}: FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)
    size = sum(p.stat().st_size for p in OUT.rglob("*") if p.is_file())
    print(f"{len(names) - failed} families, {failed} failed; {size / 1e6:.2f} MB in all")


if __name__ == "__main__":
    main()
