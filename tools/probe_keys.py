#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each key of config.json does in transformers: tests/golden/keys/ (README.md there), which
`1bit-check --tier keys` holds the engine to (needs torch, transformers, safetensors).

    probe_keys.py [NAME...]     of these miniatures of tests/golden/families; all
    probe_keys.py --leave LOG   leaves out what the engine takes and transformers refuses, as the
                                standard error of `1bit-check --tier keys` has it: to be looked at
                                first. Mostly sizes that contradict each other, and types

For every key of a miniature's config.json, every further key that its configuration class has, and
some keys that other classes have, one or two other values are tried: a flag turned, a number
scaled or 0, another word of the same kind, another list, null. transformers then refuses the
configuration, or gives logits: the same as before, or others, of which a digest is kept."""
import argparse
import copy
import json
import math
import pathlib
import re
import signal
import struct
import tempfile
import warnings

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers.activations import ACT2FN

import draw_model
import make_family_goldens as goldens
from make_family_goldens import random_words

FAMILIES = goldens.OUT
OUT = FAMILIES.parent / "keys"
SECONDS = 20  # for one configuration; longer ones are refused (a size that became huge)
SAME = 3e-4   # deviations: less is no change
DIGEST = 3
# No mathematics of a model that is not being trained, and what tells the class.
SKIP = re.compile(
    r"dropout|drop$|pdrop|initializer|init_|_init|_std$|_token_id|_token_index|use_cache|^_"
    r"|^architectures$|^model_type$|transformers_version|dtype|id2label|label2id|problem_type"
    r"|output_|return_|aux_loss|_loss_|jitter|vision_|audio_|image_|video_|projector|gradient"
    r"|^init|^summary_|layerdrop|quantization_config|keep_window|num_labels|^is_decoder$|^loss"
    r"|kernel$|mambapy|use_mem_eff|deterministic|tokenizer_class|prefix|task_specific"
    r"|chunk_size_feed|cross_attention_hid|^is_encoder_dec|tie_encoder|add_cross|^name_or"
    r"|^vq_config|vocabulary_map|num_logits_to_keep|qa_dropout|seq_classif|z_loss")
# Keys that some classes have: one that has not must not be read by us as if it had.
FOREIGN = {
    "partial_rotary_factor": 0.5, "rotary_pct": 0.5, "rotary_dim": 8, "rope_theta": 500.0,
    "rope_scaling": {"rope_type": "linear", "factor": 4.0},
    "sliding_window": 9, "use_sliding_window": False, "head_dim": 8, "layer_types": "full",
    "final_logit_softcapping": 2.0, "attn_logit_softcapping": 2.0, "attention_bias": True,
    "mlp_bias": True, "use_qk_norm": True, "qk_layernorm": True, "qkv_bias": True,
    "norm_topk_prob": True, "routed_scaling_factor": 2.5, "n_group": 2, "topk_group": 1,
    "scoring_func": "sigmoid", "attention_multiplier": 0.3, "residual_multiplier": 0.3,
    "embedding_multiplier": 3.0, "logits_scaling": 3.0, "logit_scale": 3.0, "clip_qkv": 0.5,
    "hidden_act": "relu", "hidden_activation": "relu", "activation_function": "relu",
    "query_pre_attn_scalar": 50, "scale_attn_weights": False, "attention_chunk_size": 7,
    "scale_attn_by_inverse_layer_idx": True, "moe_norm_min": 0.9,
    "use_bidirectional_attention": True,
    "alibi": True, "parallel_attn": True, "num_key_value_heads": 1, "no_rope_layers": [0, 0],
    "original_max_position_embeddings": 16, "num_experts_per_tok": 1, "sliding_window_pattern": 1,
    "max_window_layers": 1, "norm_eps": 0.5, "rms_norm_eps": 0.5, "layer_norm_eps": 0.5,
}
# Of these, when they change nothing, the ones that are kept.
HEARD = ("partial_rotary_factor", "rotary_pct", "rope_theta", "rope_scaling", "sliding_window",
         "routed_scaling_factor", "norm_topk_prob", "n_group", "attn_logit_softcapping",
         "final_logit_softcapping", "hidden_act", "rms_norm_eps", "scale_attn_by_inverse_layer_idx",
         "original_max_position_embeddings")
ROPES = (
    {"rope_type": "default"}, {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
     "mscale": 0.7, "mscale_all_dim": 0.5, "truncate": False},
    {"rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 32,
     "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    {"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 32},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    {"rope_type": "nosuch", "factor": 4.0},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
)
# What they are when they are absent is another question.
ABSENT = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
WORDS = (("sigmoid", "softmax"), ("greedy", "group_limited_greedy", "noaux_tc"),
         ("absolute", "relative_key", "relative_key_query", "rope", "none"),
         ("full_attention", "sliding_attention", "chunked_attention", "linear_attention"),
         ("dense", "sparse"), ("full", "shared"), ("mean", "cls"), ("global", "local"),
         ("rmsnorm", "layernorm"), ("attention", "mamba", "hybrid"))


# ---- the miniatures ------------------------------------------------------------------------------

class Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, form: str):
        out = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return out if len(out) > 1 else out[0]

    def name(self) -> str:
        n = self.take("B")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def array(self, dtype, shape) -> np.ndarray:
        n = math.prod(shape)
        out = np.frombuffer(self.data, dtype, n, self.at).reshape(shape)
        self.at += out.nbytes
        return out


def read_golden(path: pathlib.Path) -> tuple[dict, dict]:
    """Tensors and arrays of a golden.bin (tests/golden/families/README.md)."""
    r = Reader(path.read_bytes())
    assert r.data[:4] == b"OBGF"
    r.at = 4
    _, tensors, arrays = r.take("III")
    weights, have = {}, {}
    for _ in range(tensors):
        name, dtype = r.name(), r.name()
        stored, dims = r.take("BB")
        shape = [r.take("I") for _ in range(dims)]
        r.take("Q")
        if stored:
            spelled = {v: k for k, v in goldens.Stored.SPELLED.items()}[dtype]
            weights[name] = r.array(np.dtype(spelled), shape).copy()
            continue
        t = object.__new__(goldens.Drawn)
        t.name, t.shape = name, tuple(shape)
        t.mean, t.std, t.low, t.high = r.take("4f")
        weights[name] = t.value()
    for _ in range(arrays):
        name = r.name()
        whole, rows, cols = r.take("BII")
        if whole:
            have[name] = r.array("<i4", (rows, cols)).copy()
            continue
        x = np.empty((rows, cols), np.float32)
        for i in range(rows):
            low, step = r.take("ff")
            x[i] = low + step * r.array("<u2", (cols,)).astype(np.float64)
        have[name] = x
    return weights, have


class Miniature:
    """transformers' model of one folder, and what it makes of another configuration."""

    def __init__(self, name: str, config: str):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        weights, have = read_golden(FAMILIES / name / "golden.bin")
        self.config = json.loads((FAMILIES / name / config).read_text())
        self.kind = draw_model.class_of(self.config)
        self.ids = have["input_ids_a"].reshape(-1)
        self.encoder = "logits_a" not in have
        want = have["hidden_a" if self.encoder else "logits_a"]
        save_file(weights, self.path / "model.safetensors", metadata={"format": "pt"})
        self.write({})
        for self.direct in (False, True):
            model = goldens.load(self.path, self.direct)
            self.base = self.outputs(model)
            if goldens.furthest(want, self.base) < goldens.EXACT:
                break
        else:
            raise ValueError("the golden is not what transformers gives")
        self.state = {k: v.clone() for k, v in model.state_dict().items()}
        self.std = float(self.base.std())

    def write(self, change: dict) -> None:
        (self.path / "config.json").write_text(json.dumps(changed(self.config, change)))

    def outputs(self, model) -> np.ndarray:
        with torch.no_grad():
            x = torch.as_tensor(self.ids.astype(np.int64))[None]
            if not self.encoder:
                return model(input_ids=x, use_cache=False).logits[0].numpy()
            return model.base_model(input_ids=x, attention_mask=torch.ones_like(x)
                                    ).last_hidden_state[0].numpy()

    def open(self, change: dict):
        """The weights as the miniature's own model has them; what is not as they are is loaded
        as files are."""
        self.write(change)
        if not any("tie" in k for k in change):
            config = self.kind.config_class.from_pretrained(self.path)
            model = self.kind._from_config(config, attn_implementation="eager",
                                           dtype=torch.float32)
            own = model.state_dict()
            if all(k in self.state and v.shape == self.state[k].shape for k, v in own.items()):
                for k, v in own.items():
                    v.copy_(self.state[k])
                return model.eval()
        if self.direct:
            raise ValueError("other tensors")
        model, info = self.kind.from_pretrained(
            self.path, experts_implementation="eager", attn_implementation="eager",
            dtype=torch.float32, output_loading_info=True)
        if info["missing_keys"] or info["mismatched_keys"]:
            raise ValueError("other tensors")
        return model.eval()

    def try_one(self, change: dict) -> str:
        try:
            signal.alarm(SECONDS)
            with torch.no_grad():
                out = self.outputs(self.open(change))
            signal.alarm(0)
        except Exception:  # whatever a class throws, it does not take it
            signal.alarm(0)
            return "!"
        if out.shape != self.base.shape:
            return "!"
        if not np.isfinite(out).all():
            return "nan"
        if goldens.furthest(self.base, out) * float(self.base.std()) / self.std < SAME:
            return "="
        return " ".join(digest(out))


def late(_signal, _frame):
    raise TimeoutError("too long")


def digest(x: np.ndarray) -> list[str]:
    """Sums of all numbers with signs: bit k of random_words(1, i) for sum k."""
    w = random_words(1, np.arange(x.size, dtype=np.uint64))
    flat = x.astype(np.float64).reshape(-1)
    return [f"{flat @ (1 - 2.0 * ((w >> np.uint64(k)) & np.uint64(1)).astype(np.float64)):.6g}"
            for k in range(DIGEST)]


# ---- other values --------------------------------------------------------------------------------

def changed(config: dict, change: dict) -> dict:
    out = copy.deepcopy(config)
    inner = out.get("text_config")
    for k, v in change.items():
        at = inner if isinstance(inner, dict) and k not in config else out
        at[k] = v
    return out


def words_for(value: str) -> list:
    if value in ACT2FN:
        return [x for x in ("relu", "gelu") if x != value][:1] + ["nosuch"]
    for group in WORDS:
        if value in group:
            return [x for x in group if x != value] + ["nosuch"]
    return ["nosuch"]


def others(key: str, value, layers: int) -> list:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value, 0] if value else [1]
    if isinstance(value, float):
        return [1.5 * value, 0.0] if value and math.isfinite(value) else [0.5]
    if value is None:
        return [True, 3, 0.5, "relu"]
    if isinstance(value, str):
        return words_for(value)
    if isinstance(value, list) and value:
        out = [[o] + value[1:] for o in others(key, value[0], layers)] + [value[:-1]]
        if len(set(map(str, value))) > 1:
            out += [value[::-1]]
            out += [[v] * len(value) for v in {str(x): x for x in value}.values()]
        return [x for x in out if x != value]
    return []


def in_object(value: dict, layers: int):
    """A whole object for each change inside it."""
    for k, v in value.items():
        if isinstance(v, dict):
            for inner in in_object(v, layers):
                yield {**value, k: inner}
            continue
        for o in others(k, v, layers):
            yield {**value, k: o}
        if k not in ABSENT:
            yield {x: y for x, y in value.items() if x != k}


def ropes(value: dict, half: int):
    for r in ROPES:
        r = dict(r)
        if r["rope_type"] == "longrope":
            r |= {"short_factor": [1.0 + 0.1 * i for i in range(half)],
                  "long_factor": [2.0 + 0.2 * i for i in range(half)]}
        r = {k: value[k] for k in ABSENT[:2] if k in value} | r
        yield r


def half_of(model) -> int:
    for name, b in model.named_buffers():
        if name.endswith("inv_freq"):
            return b.numel()
    return 4


def changes(m: Miniature, half: int, legacy: bool):
    config = m.config
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    own = m.kind.config_class()
    full = own.get_text_config().to_dict() if text is not config else own.to_dict()
    layers = next((text[k] for k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
                   if isinstance(text.get(k), int)), 2)
    base = set(transformers.PreTrainedConfig().to_dict()) - {"tie_word_embeddings"}
    rope = ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "rotary_pct",
            "rope_local_base_freq", "rope_interleave")
    if legacy:
        full = {}
        text = {k: v for k, v in text.items() if k in rope}
    for k, v in {**full, **text}.items():
        if SKIP.search(k) or k in base and k not in text:
            continue
        if isinstance(v, dict) and "rope" not in k:
            continue
        if k in ("rope_parameters", "rope_scaling") and isinstance(v, dict):
            for o in in_object(v, layers):
                yield {k: o}
            nested = next((x for x in v.values() if isinstance(x, dict)), None)
            flat = v | {"rope_theta": 10000.0} if k == "rope_parameters" else {}
            for r in ropes(nested or flat, half):
                yield {k: {x: r for x in v} if nested else r}
            continue
        if k == "use_bidirectional_attention" and "gemma3" in config["model_type"]:
            continue  # chooses the class
        here = text.get(k, v)
        for o in others(k, here, layers):
            yield {k: o}
        if k in text and text[k] is not None and k not in ("layer_types", "mlp_layer_types"):
            yield {k: None}
    for k, v in FOREIGN.items():
        if k in text or k in full or legacy and k not in rope:
            continue
        if v == "full":
            v = ["full_attention"] * layers
        yield {k: v}
    if legacy and "rope_scaling" in text and not isinstance(text["rope_scaling"], dict):
        for r in ropes({}, half):
            yield {"rope_scaling": r}
            if r["rope_type"] in ("linear", "yarn"):
                yield {"rope_scaling": {("type" if a == "rope_type" else a): b
                                        for a, b in r.items()}}


def probe(name: str, config: str, out) -> int:
    m = Miniature(name, config)
    model = m.open({})
    half, n, seen, refused = half_of(model), 0, set(), set()
    out.write(f"@ {config} {m.std:.6g} {' '.join(digest(m.base))}\n")
    for change in changes(m, half, "legacy" in config):
        spelled = json.dumps(change, separators=(",", ":"))
        if spelled in seen:
            continue
        seen.add(spelled)
        said = m.try_one(change)
        key = next(iter(change))
        if said == "!" and (None in change.values() or key in refused):  # null is absent to us
            continue
        if said == "=" and key in FOREIGN and key not in (*HEARD, *m.config):
            continue
        if said == "!" and "rope" not in key:
            refused.add(key)
        out.write(f"{spelled}\t{said}\n")
        n += 1
    return n


def leave_out(log: pathlib.Path) -> None:
    taken = set()
    for line in log.read_text().splitlines():
        found = re.match(r"(\S+) (\{.*\}): is taken", line)
        if found:
            taken.add(found.groups())
    for path in OUT.glob("*.txt"):
        lines = path.read_text().splitlines(keepends=True)
        kept = [x for x in lines
                if not x.endswith("\t!\n") or (path.stem, x.split("\t")[0]) not in taken]
        if kept != lines:
            path.write_text("".join(kept))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--leave", type=pathlib.Path, metavar="LOG")
    ap.add_argument("name", nargs="*")
    a = ap.parse_args()
    if a.leave:
        leave_out(a.leave)
        return
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, late)
    OUT.mkdir(exist_ok=True)
    for name in a.name or sorted(p.parent.name for p in FAMILIES.glob("*/config.json")):
        try:
            with open(OUT / (name + ".part"), "w") as out:
                n = sum(probe(name, c, out) for c in ("config.json", "config.legacy.json")
                        if (FAMILIES / name / c).exists())
            (OUT / (name + ".part")).rename(OUT / (name + ".txt"))
            print(f"{name}: {n} values", flush=True)
        except (ValueError, RuntimeError, KeyError, TypeError, AttributeError, OSError,
                ImportError) as e:
            print(f"{name}: FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)


if __name__ == "__main__":
    main()
