#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/format/hf_defaults_table.h: what a config.json means that lacks a key.

A configuration class of transformers has a default for most keys, and those who publish models
leave such keys out. For each model type that src/models knows the table has the defaults of the
keys that recipes read; a default that the class computes from other keys is not in it, it is the
recipe's to compute. hf_defaults.h says how a row is written.

usage: make_config_defaults.py > src/format/hf_defaults_table.h    (needs: transformers)
"""
import dataclasses
import json
import pathlib
import re
import sys

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

MODELS = pathlib.Path(__file__).resolve().parent.parent / "src" / "models"
WIDTH = 96
# The class computes from them what it computes with (a list from a number, a number of layers from
# that of a stack); a file has the field, and so has a recipe.
AS_WRITTEN = {("gemma3n_text", "intermediate_size"), ("hrm_text", "num_hidden_layers"),
              ("qwen2", "sliding_window"), ("qwen2_moe", "sliding_window"),
              ("qwen3", "sliding_window"), ("qwen3_moe", "sliding_window")}
COMMON = {f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}
NO_MATTER = re.compile(r"initializer_range$|_token_id$|^rope_parameters$|_config$")
TIE = "tie_word_embeddings"


def texts() -> list[str]:
    return [p.read_text() for p in sorted(MODELS.rglob("*.[ch]"))]


def model_types() -> tuple[list[str], list[str]]:
    """Those of recipes, and those of wrappers."""
    found = set()
    for text in texts():
        for names in re.findall(r'\.(?:model_type|also_type) = "([^"]+)"', text):
            found.update(names.split("|"))
        found.update(re.findall(r'^ENCODER\w*\("([\w-]+)"', text, re.M))
    rows = (MODELS / "wrappers.def").read_text()
    return sorted(found), re.findall(r"^WRAPPER\((\w+)", rows, re.M)


def words() -> set[str]:
    """All that may be a key's name in a recipe."""
    strings = [s for text in texts() for s in re.findall(r'"([^"\n]*)"', text)]
    parts = [part.lstrip("/").split(".")[0] for s in strings for part in s.split("|")]
    return {p for p in parts if re.fullmatch(r"[A-Za-z_]\w*", p)}


def has(config, name: str):
    """An attribute's value, None if there is none; also of those that differ by layer."""
    if name in config.__dict__:
        return config.__dict__[name]
    return getattr(type(config), name, None)


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


def rope_rows(kind, config) -> dict:
    """A base and a part that turns, which count wherever the file names none; and the whole, where
    it has neither rope_parameters nor rope_scaling."""
    whole = has(config, "rope_parameters")
    theta, rows = kind.default_theta, {}
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
    return rows | {"rope_parameters": whole}


def row(name: str, kind, known: set[str]) -> dict:
    config = kind()
    fields = {f.name: field_default(f) for f in dataclasses.fields(kind) if f.name not in COMMON}
    others = changed(kind, fields)
    out, may_be_null, null_is_default = {}, [], []
    for key, field in fields.items():
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
        elif takes_null(kind, key):
            may_be_null.append(key)
    if "rope_parameters" in fields:
        out |= rope_rows(kind, config)
    names = {a: c for a, c in kind.attribute_map.items() if a in known or c in known}
    if may_be_null:
        out["?"] = may_be_null
    if null_is_default:
        out[":"] = null_is_default
    if names:
        out["="] = names
    return out


def takes_null(kind, key: str) -> bool:
    try:
        kind(**{key: None})
    except Exception:  # see changed
        return False
    return True


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
    for name in sorted(set(types) | set(wrappers)):
        if name not in CONFIG_MAPPING:
            print(f"{name}: not in transformers", file=sys.stderr)
            continue
        kind = CONFIG_MAPPING[name]
        both = wrapper_row(kind) if name in wrappers else row(name, kind, known)
        if TIE in known and name not in wrappers:
            both.setdefault(TIE, False)
        print(spelled(name, both))


main()
