# SPDX-License-Identifier: Apache-2.0
"""A miniature model from a configuration alone: transformers' class of it with weights that matter.

transformers' own initialisation leaves nearly flat logits in models this small and many parameters
at 0 or 1, where a missing term goes unnoticed. So each tensor is drawn again, of a fixed seed:
matrices with deviation 1/sqrt(fan in), those of queries and keys 1.5 times that (attention is not
uniform then), norm weights 0.1 around their default, biases, sinks and corrections non-zero; the
output matrix is scaled until the logits' deviation is near 2. With tied embeddings a token would
be its own best guess: then inner matrices and norms after a sub-layer are larger."""
import json
import math
import pathlib
import re
import zlib

import numpy as np
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

FIRST_TOKEN = 8  # ids below are special tokens'
LENGTHS = {"a": 96, "b": 40}
GAINS = [(1.0, 2.0), (1.5, 2.0), (2.0, 2.0), (2.0, 1.3), (3.0, 1.3)]  # and the logits' deviation
SHARPER = re.compile(r"(q_proj|k_proj|query|\.key|q_b_proj|kv_b_proj|q_up_proj|wq_b|\.Wq|\.Wk)"
                     r"(\.linear)?\.weight$")
NORM = re.compile(r"(norm|ln_\d|ln)\.?(weight)?$")
COMPUTED = re.compile(r"inv_freq|position|embed_scale|mask|pos_emb|slope|decay")
SLIDING, FULL = "sliding_attention", "full_attention"


def class_of(config: dict):
    return getattr(transformers, config["architectures"][0])


def redraw(name: str, module: nn.Module, was: torch.Tensor, gain: float, gen) -> torch.Tensor:
    """A parameter's new value; `was` is what its module starts with."""
    z = torch.randn(was.shape, generator=gen)
    leaf, kind = name.split(".")[-1], type(module).__name__.lower()
    known = bool(torch.isfinite(was).all())
    same = known and was.numel() > 0 and float(was.max()) == float(was.min())
    if isinstance(module, nn.Embedding):
        return 0.5 * z
    layers = (nn.Linear, Conv1D, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    if isinstance(module, layers) and leaf == "weight":
        fan = was.shape[0] if isinstance(module, Conv1D) else was[0].numel()
        return z * (1.5 if SHARPER.search(name) else gain) / math.sqrt(fan)
    if "norm" in kind or "norm" in "".join(name.split(".")[-2:-1]) or NORM.search(name):
        louder = gain - 1 if re.search(r"post_\w*norm\.weight$", name) else 0
        return (was if known else torch.zeros_like(was)) + 0.1 * z + louder
    if leaf.endswith("bias") and was.dim() == 1 and (same or not known):
        return 0.1 * z
    if was.dim() >= 3 and min(was.shape[-2:]) > 1:  # experts
        return z * gain / math.sqrt(min(was.shape[-2:]))
    if not known:
        return z / math.sqrt(was.shape[-1]) if was.dim() > 1 else 0.3 * z
    if same:
        value = float(was.flatten()[0])
        return 0.3 * z if value == 0 else value * (1 + 0.1 * z)
    if was.dim() >= 2 and float(was.std()) < 0.12:
        return z / math.sqrt(was.shape[-1])
    return was + 0.1 * z


def redraw_all(model: nn.Module, start: dict, seed: int, gain: float) -> None:
    """Of each parameter, and of each buffer that a checkpoint has and that is no table."""
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.requires_grad:  # a table of sines and cosines
                continue
            module = model.get_submodule(name.rpartition(".")[0])
            p.copy_(redraw(name, module, start[name].float(), gain, gen))
        for name, b in model.named_buffers():
            if name not in start or not b.is_floating_point() or COMPUTED.search(name):
                continue
            was, z = start[name], torch.randn(b.shape, generator=gen)
            zero = b.numel() and bool((was == 0).all())
            b.copy_(0.2 * z if zero else was * (1 + 0.1 * z))


def outputs(model, ids) -> torch.Tensor:
    with torch.no_grad():
        x = torch.as_tensor(ids)[None]
        if model.can_generate():
            return model(input_ids=x, use_cache=False).logits[0]
        out = model.base_model(input_ids=x, attention_mask=torch.ones_like(x))
        return out.last_hidden_state[0]


def calibrate(model, ids, target: float) -> None:
    output = model.get_output_embeddings()
    for _ in range(8 if output is not None and model.can_generate() else 0):
        deviation = float(outputs(model, ids).std(-1).mean())
        if not math.isfinite(deviation) or 0.6 * target <= deviation <= 1.4 * target:
            return
        with torch.no_grad():
            output.weight.mul_(min(8.0, max(0.125, target / max(deviation, 1e-6))))


def legacy(config: dict) -> dict | None:
    """As checkpoints from before `rope_parameters` write it; None where they cannot."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters", None) or {})
    if "text_config" in config or not rope:
        return None
    if "rope_type" not in rope:  # of each kind of layer
        if set(rope) != {SLIDING, FULL} or rope[SLIDING].get("rope_type") != "default":
            return None
        if "gemma" in config["model_type"]:  # others never had a key of it
            config["rope_local_base_freq"] = rope[SLIDING]["rope_theta"]
        rope = dict(rope[FULL])
    config["rope_theta"], kind = rope.pop("rope_theta"), rope.pop("rope_type")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if kind == "default" and rope:
        return None
    config["rope_scaling"] = None if kind == "default" else rope | {"rope_type": kind, "type": kind}
    config["torch_dtype"] = config.pop("dtype", "float32")
    return config


def spelled(config: dict) -> str:
    return json.dumps(config, indent=1, sort_keys=True) + "\n"


def draw(source: pathlib.Path, name: str, folder: pathlib.Path) -> None:
    """A fixture's folder (make_family_goldens.py): config.json, config.legacy.json if there is one,
    model.safetensors, reference.npz."""
    kind = class_of(json.loads(source.read_text()))
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    config = kind.config_class.from_pretrained(source)
    model = kind._from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    written = model.get_output_embeddings() if model.can_generate() else None
    vocabulary = config.get_text_config().vocab_size
    if written is not None:  # some read tokens that they do not write
        vocabulary = min(vocabulary, written.weight.shape[0])
    rng = np.random.RandomState(seed)
    ids = {k: rng.randint(FIRST_TOKEN, vocabulary, n).astype(np.int64) for k, n in LENGTHS.items()}
    start = {k: v.clone() for k, v in model.state_dict().items()}
    for gain, target in GAINS:
        redraw_all(model, start, seed, gain)
        calibrate(model, ids["a"], target)
        out = outputs(model, ids["a"])
        echoes = float((out.argmax(-1).numpy() == ids["a"]).mean())
        if not model.can_generate() or (bool(torch.isfinite(out).all()) and echoes <= 0.35):
            break
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    written = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(spelled(written))
    older, beside = legacy(written), source.parent / "config.legacy.json"
    if older is None and beside.exists():
        older = json.loads(beside.read_text())
    if older:
        (folder / "config.legacy.json").write_text(spelled(older))
    key = "logits_" if model.can_generate() else "hidden_"
    arrays = {key + k: outputs(model, x).numpy() for k, x in ids.items()}
    arrays |= {"input_ids_" + k: x.astype(np.int32) for k, x in ids.items()}
    np.savez(folder / "reference.npz", **arrays)
