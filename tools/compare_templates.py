# SPDX-License-Identifier: Apache-2.0
"""Chat templates through our engine and jinja2, set up as transformers does: every template of a
folder over every conversation of jinja_reference.py, byte for byte; where jinja2 or the template's
raise_exception refuses it, the message too.

    compare_templates.py build/tests/unit/jinja_render FOLDER [--show N]"""
import argparse
import json
import pathlib

from jinja_reference import conversations, ours, reference

# Of jinja2 itself; a TypeError is worded by the version of Python. TemplateError is what the
# template's own raise_exception gives.
COMPARED = {"SecurityError", "TemplateError", "TemplateRuntimeError", "UndefinedError"}


def differences(binary, folder):
    """(files, conversations, rendered, refused, [(name, jinja2's, ours)])."""
    files = sorted(pathlib.Path(folder).glob("*.jinja"))
    chats = conversations()
    cases = [(file.read_text(encoding="utf-8"), chat) for file in files for chat in chats.values()]
    names = [f"{file.name} {name}" for file in files for name in chats]
    got = ours(binary, cases)
    assert len(got) == len(cases)
    differ, rendered = [], 0
    for name, (template, chat), one in zip(names, cases, got):
        want, why = reference(template, json.loads(json.dumps(chat)))
        rendered += want is not None
        same = one.get("text") == want
        kind, _, message = (why or "").partition(": ")
        if kind in COMPARED:
            same = same and one["message"] == message
        if not same:
            differ.append((name, want if why is None else why, one.get("text", one.get("error"))))
    return len(files), len(chats), rendered, len(cases) - rendered, differ


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder")
    parser.add_argument("--show", type=int, default=10)
    args = parser.parse_args()
    files, chats, rendered, refused, differ = differences(args.binary, args.folder)
    for name, want, got in differ[:args.show]:
        at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), 0)
        at = max(0, at - 40)
        print(f"{name}\n  jinja2: {want[at:at + 120]!r}\n  ours:   {got[at:at + 120]!r}")
    print(f"{files} templates x {chats} conversations: {rendered} rendered, {refused} refused, "
          f"{len(differ)} differ")
    return len(differ) != 0


if __name__ == "__main__":
    raise SystemExit(main())
