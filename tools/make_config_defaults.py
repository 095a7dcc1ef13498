#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/format/hf_defaults_table.h: what a config.json means that lacks a key.

A configuration class of transformers has a default for most keys, and those who publish models
leave such keys out. For each model type that src/models knows the table has the defaults of the
keys that recipes read; a default that the class computes from other keys is not in it, it is the
recipe's to compute. hf_defaults.h says how a row is written.

usage: make_config_defaults.py > src/format/hf_defaults_table.h    (needs: torch, transformers)
"""
import dataclasses
import json
import pathlib
import re

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import draw_model

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS, FAMILIES = ROOT / "src" / "models", ROOT / "tests" / "golden" / "families"
WIDTH = 96
# The class computes from them what it computes with (a list from a number, a number of layers from
# that of a stack); a file has the field, and so has a recipe.
AS_WRITTEN = {("gemma3n_text", "intermediate_size"), ("hrm_text", "num_hidden_layers"),
              ("qwen2", "sliding_window"), ("qwen2_moe", "sliding_window"),
              ("qwen3", "sliding_window"), ("qwen3_moe", "sliding_window")}
COMMON = {f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}
NO_MATTER = re.compile(r"initializer_range$|_token_id$|^rope_parameters$|_config$")
NAMES_OF = {"first_k_dense_replace": ("num_dense_layers", "moe_layer_start_index"),
            "sliding_window_pattern": ("global_attn_every_n_layers",)}
TIE = "tie_word_embeddings"


def texts() -> list[str]:
    return [p.read_text() for p in sorted(MODELS.rglob("*.[ch]"))]


def strings() -> set[str]:
    found = re.findall(r'"([^"\n]*)"', "\n".join(texts()))
    return {part.lstrip("/") for s in found for part in s.split("|")}


def model_types() -> tuple[set[str], set[str]]:
    """Those that recipes name, and those of wrappers."""
    rows = (MODELS / "wrappers.def").read_text()
    ours = {t for t in strings() & set(CONFIG_MAPPING)
            if not CONFIG_MAPPING[t].sub_configs_defaults}
    return ours, set(re.findall(r"^WRAPPER\((\w+)", rows, re.M))


def words() -> set[str]:
    """All that may be a key's name in a recipe."""
    return {p for s in strings() if re.fullmatch(r"[A-Za-z_]\w*", p := s.split(".")[0])}


def has(config, name: str):
    """An attribute's value, None if there is none; also of those that differ by layer."""
    if name in config.__dict__:
        return config.__dict__[name]
    of_class = getattr(type(config), name, None)
    return getattr(config, name) if isinstance(of_class, property) else of_class


def field_default(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    made = field.default_factory
    return made() if made is not dataclasses.MISSING else None


def changed(kind, fields: dict) -> list:
    """The class with one number or flag after the other other than by default."""
    out = []
    for name, value in fields.items():
        if isinstance(value, bool):
            other = not value
        elif isinstance(value, (int, float)) and value:
            other = value * 2
        else:
            continue
        try:
            out.append((name, kind(**{name: other})))
        except Exception:  # whatever a class says of a value it does not take
            continue
    return out


def plain(value) -> bool:
    return isinstance(value, (bool, int, float, str, list, tuple, dict))


def rope_rows(kind, config, others: list) -> dict:
    """A base and a part that turns, which count wherever the file names none; and the whole, where
    it has neither rope_parameters nor rope_scaling, unless other keys say what is in it."""
    whole = has(config, "rope_parameters")
    theta, rows = getattr(kind, "rope_theta", kind.default_theta), {}
    if isinstance(theta, dict):
        rows = {"rope_theta": theta["global"], "rope_local_base_freq": theta["local"]}
    else:
        rows["rope_theta"] = theta
    if not whole:
        return rows
    least = dict(whole)
    part = least.pop("partial_rotary_factor", None)
    if least == {"rope_type": "default", "rope_theta": rows["rope_theta"]}:
        return rows if part is None else rows | {"partial_rotary_factor": part}
    made = any(re.search("rope_theta|rotary", by) and has(o, "rope_parameters") != whole
               for by, o in others)
    return rows if made else rows | {"rope_parameters": whole}


def layer_rows(fields: dict, config) -> dict:
    """What recipes derive lists of layers' kinds from, by the names that other classes have."""
    rows = {}
    kinds, mlps = has(config, "layer_types"), has(config, "mlp_layer_types")
    if mlps and fields.get("mlp_layer_types") is None and set(mlps) <= {"dense", "sparse"}:
        dense = (mlps + ["sparse"]).index("sparse")
        if "dense" not in mlps[dense:]:
            rows["first_k_dense_replace"] = dense
    if kinds and fields.get("layer_types") is None:
        full = [i for i, k in enumerate(kinds) if k == "full_attention"]
        if len(full) > 1 and set(kinds) <= {"full_attention", "sliding_attention"}:
            rows["sliding_window_pattern"] = full[1] - full[0]
    return {k: v for k, v in rows.items() if not {k, *NAMES_OF[k]} & set(fields)}


def row(name: str, kind, known: set[str]) -> dict:
    config = kind()
    fields = {f.name: field_default(f) for f in dataclasses.fields(kind) if f.name not in COMMON}
    others = changed(kind, fields)
    out, may_be_null, null_is_default = {}, [], []
    for key, field in fields.items():
        own = kind.attribute_map.get(key, key)
        key = own if own in known else key
        value = has(config, key)
        if key not in known or NO_MATTER.search(key):
            continue
        if (name, key) in AS_WRITTEN:
            value = field
        elif value != field:  # computed; from others?
            moved = [o for by, o in others if by != key and has(o, key) != value]
            if moved:
                continue
        if value is None or not plain(value) or value == [] or value == {}:
            continue
        out[key] = value
        if field is None:
            null_is_default.append(key)
        elif takes_null(name, kind, key):
            may_be_null.append(key)
    out |= layer_rows(fields, config)
    if "rope_parameters" in fields:
        out |= rope_rows(kind, config, others)
    names = {a: c for a, c in kind.attribute_map.items() if a in known or c in known}
    if may_be_null:
        out["?"] = may_be_null
    if null_is_default:
        out[":"] = null_is_default
    if names:
        out["="] = names
    return out


def miniatures(name: str):
    """Configurations of models of this type, alone or inside another: copies, and the part."""
    for path in sorted(FAMILIES.glob("*/config.json")):
        config = json.loads(path.read_text())
        inside = config.get("text_config", {}).get("model_type")
        if name in (config["model_type"], inside) and "quantization_config" not in config:
            yield config, config if config["model_type"] == name else config["text_config"]


def takes_null(name: str, kind, key: str) -> bool:
    """Of some model: a class may take what its model then stumbles over."""
    tried = False
    for config, inner in miniatures(name):
        inner[key], tried = None, True
        try:
            made = draw_model.class_of(config)
            model = made._from_config(made.config_class.from_dict(config),
                                      attn_implementation="eager")
            draw_model.outputs(model.eval(), [9] * 16)
            return True
        except Exception:  # see changed
            continue
    try:
        return not tried and kind(**{key: None}) is not None
    except Exception:
        return False


def wrapper_row(kind) -> dict:
    """The language model inside, and whether the whole is tied."""
    config, spec = kind(), kind.sub_configs_defaults["text_config"]
    out = {"text": spec.model_type}
    if issubclass(spec.config_class, transformers.PreTrainedConfig):
        out["text_is"] = 1  # whatever text_config says that it is
    tied = [getattr(c, TIE, False)
            for c in (config, kind(text_config={TIE: True}), kind(text_config={TIE: False}))]
    if len(set(tied)) == 1:  # else the text part says it
        out[TIE] = tied[0]
    return out


def spelled(name: str, value: dict) -> str:
    text = json.dumps(value).replace('"', "'").replace("\\", "\\\\")
    lines = []
    while text:
        cut = len(text) if len(text) <= WIDTH - 6 else text.rfind(" ", 0, WIDTH - 6) + 1
        lines.append(f'    "{text[:cut]}"')
        text = text[cut:]
    return f'DEFAULTS("{name}",\n' + "\n".join(lines) + ")"


def main() -> None:
    transformers.logging.set_verbosity_error()
    types, wrappers = model_types()
    known = words()
    print("/* SPDX-License-Identifier: Apache-2.0\n"
          " * hf_defaults_table.h: the defaults of configuration classes, by model type: see\n"
          f" * hf_defaults.h. Generated by tools/make_config_defaults.py of transformers\n"
          f" * {transformers.__version__}. */")
    for name in sorted(types | wrappers):
        kind = CONFIG_MAPPING[name]
        both = wrapper_row(kind) if name in wrappers else row(name, kind, known)
        if TIE in known and name not in wrappers:
            both.setdefault(TIE, False)
        print(spelled(name, both))


main()
