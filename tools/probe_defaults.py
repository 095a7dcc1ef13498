#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a config.json means that lacks a key: transformers beside the engine, family by family.

Of each miniature in tests/golden/families each key is left out in turn, and then set to null.
transformers says what the rest means: other numbers, or that it does not fit the weights. The
engine must give the same numbers, or refuse as well; what differs is printed, in four kinds:

    wrong   both answer, and not the same
    lax     the engine answers what transformers refuses
    strict  the engine refuses what transformers answers
    other   a class that is told to be a decoder by a flag is an encoder for us without it

usage: probe_defaults.py BUILD [NAME...]    (needs: torch, transformers, safetensors, numpy)
With --write FILE the cases that give other numbers than the whole file does, with what they give,
are written for `1bit-check defaults`."""
import argparse
import copy
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
import numpy as np
import torch
import transformers
from safetensors.torch import load_file

import draw_model

FAMILIES = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "families"
TOKENS, OFF, TIE = 24, 2e-3, 1e-2
# Say nothing of what is computed, or of another part than the language model.
SKIPPED = {"architectures", "dtype", "id2label", "initializer_range", "label2id", "model_type",
           "torch_dtype", "transformers_version", "use_cache", "text_config",
           "quantization_config"}
NO_MATTER = re.compile(r"dropout|pdrop|aux_loss|output_|jitter|summary|gradient|_gain$|mapping")
PARTS = ("vision", "audio", "vq", "image", "boi", "eoi", "projector", "mm_")
GONE, NULL = "absent", "null"


def read_ids(folder: pathlib.Path) -> list[int]:
    """input_ids_b of golden.bin (README.md there)."""
    data = (folder / "golden.bin").read_bytes()
    at = data.index(b"\x0binput_ids_b") + 12
    whole, _, n = struct.unpack_from("<BII", data, at)
    assert whole
    return list(struct.unpack_from(f"<{n}i", data, at + 9))[:TOKENS]


def paths_of(config: dict, prefix: str = ""):
    for key, value in config.items():
        if key == "text_config" and isinstance(value, dict):
            yield from paths_of(value, "text_config.")
        if key in SKIPPED or key.endswith("_token_id") or key.startswith(PARTS) \
                or NO_MATTER.search(key):
            continue
        yield prefix + key
        if key.startswith("rope_") and isinstance(value, dict):
            for inner, below in value.items():
                yield f"{prefix}{key}.{inner}"
                if isinstance(below, dict):
                    yield from (f"{prefix}{key}.{inner}.{k}" for k in below)


def without(config: dict, path: str, how: str) -> dict:
    out = copy.deepcopy(config)
    at, *inner = out, *path.split(".")
    while len(inner) > 1:
        at = at[inner.pop(0)]
    if how == GONE:
        del at[inner[0]]
    else:
        at[inner[0]] = None
    return out


class Theirs:
    """transformers, of one family's weights."""

    def __init__(self, folder: pathlib.Path, config: dict, ids: list[int]):
        self.folder, self.ids, self.kind = folder, ids, draw_model.class_of(config)
        self.said = self.read(config)
        self.shapes = self.shape(self.said)
        self.write(config)
        self.direct = False
        self.base = self.load()

    def take_direct(self, config: dict) -> None:
        """Weights straight into the parameters, where from_pretrained changes one."""
        self.write(config)
        self.direct = True
        self.base = self.load()

    def write(self, config: dict) -> None:
        (self.folder / "config.json").write_text(json.dumps(config))

    def read(self, config: dict):
        self.write(config)
        return self.kind.config_class.from_pretrained(self.folder)

    def shape(self, config) -> dict:
        with torch.device("meta"):
            made = self.kind._from_config(config)
        return {k: tuple(v.shape) for k, v in made.state_dict().items()}

    def load(self) -> np.ndarray | None:
        how = {"attn_implementation": "eager", "dtype": torch.float32}
        if self.direct:
            config = self.kind.config_class.from_pretrained(self.folder)
            model = self.kind._from_config(config, **how)
            model.load_state_dict(load_file(self.folder / "model.safetensors"), strict=False)
            model.tie_weights()
            return draw_model.outputs(model.eval(), self.ids).float().numpy()
        model, info = self.kind.from_pretrained(self.folder, experts_implementation="eager",
                                                output_loading_info=True, **how)
        if info["missing_keys"] or info["mismatched_keys"]:
            raise ValueError(f"missing {sorted(info['missing_keys'])[:2]}")
        return draw_model.outputs(model.eval(), self.ids).float().numpy()

    def outputs(self, config: dict) -> np.ndarray | str:
        try:
            said = self.read(config)
            if said.to_dict() == self.said.to_dict():
                return self.base
            if self.shape(said) != self.shapes:
                return "other shapes"
            return self.load()
        except Exception as e:  # what a class raises, of whatever it is given
            return f"{type(e).__name__}: {str(e)[:200]}".replace("\n", " ")


def ours(build: pathlib.Path, folder: pathlib.Path, ids: list[int]) -> np.ndarray | str:
    out = folder / "out"
    done = subprocess.run([build / "tests/check/model_logits", "--exact", folder, out,
                           *map(str, ids)],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return np.fromfile(out, np.float32).reshape(len(ids), -1)
    return done.stderr.strip().replace(str(folder), "") or f"ended by {done.returncode}"


def furthest(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / b.std())


def kind_of(want, have, off: float) -> tuple[str, str]:
    if isinstance(want, str):
        return ("both", "") if isinstance(have, str) else ("lax", want)
    if isinstance(have, str):
        return "strict", have
    if have.shape != want.shape:
        return "other", "states of an encoder, and logits"
    far = furthest(have, want)
    return ("same", "") if far <= off else ("wrong", f"off by {far:.1e}")


def tops(rows: np.ndarray) -> list[int]:
    """The largest of each row, -1 where it is not much larger than the second."""
    order = np.argsort(-rows, -1)
    first, second = (np.take_along_axis(rows, order[:, k:k + 1], -1)[:, 0] for k in (0, 1))
    return [int(t) if a - b > TIE else -1 for t, a, b in zip(order[:, 0], first, second)]


def probe(build: pathlib.Path, name: str, cases: list[str]) -> dict[str, int]:
    count = {}
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        subprocess.run([build / "tests/check/golden_unpack", FAMILIES / name, folder], check=True)
        config, ids = json.loads((folder / "config.json").read_text()), read_ids(FAMILIES / name)
        off = 5e-2 if config.get("quantization_config") else OFF
        theirs = Theirs(folder, config, ids)
        kind, why = kind_of(theirs.base, ours(build, folder, ids), off)
        if kind != "same":
            theirs.take_direct(config)
            kind, why = kind_of(theirs.base, ours(build, folder, ids), off)
        if kind != "same":
            print(f"{name}: {kind} as it is: {why}", flush=True)
            return {"base": 1}
        for path in paths_of(config):
            for how in (GONE, NULL):
                want = theirs.outputs(without(config, path, how))
                kind, why = kind_of(want, ours(build, folder, ids), off)
                count[kind] = count.get(kind, 0) + 1
                if kind not in ("same", "both"):
                    print(f"{name}: {path} {how}: {kind}: {why}", flush=True)
                changed = kind == "same" and furthest(want, theirs.base) > 0.05
                if changed:
                    cases.append(f"{name} {path} {how} {' '.join(map(str, tops(want)))}")
    return count


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--write", type=pathlib.Path, help="the cases, for 1bit-check")
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("name", nargs="*")
    a = ap.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    total, cases = {}, []
    for name in a.name or sorted(p.parent.name for p in FAMILIES.glob("*/golden.bin")):
        try:
            for kind, n in probe(a.build.resolve(), name, cases).items():
                total[kind] = total.get(kind, 0) + n
        except Exception as e:  # one family's class
            print(f"{name}: FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)
    print(total, flush=True)
    if a.write:
        a.write.write_text("\n".join(cases) + "\n")


main()
