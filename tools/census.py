#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a list of model classes can be loaded, and how much of that is checked.

    census.py [DUMP]            DUMP: JSON, {class: count} or [[class, count], ...]
    census.py --transformers    prints the list for tools/transformers_classes.json (needs
                                transformers; the committed list needs none)

Without a dump: the causal language models of transformers, each counting once. A class is mapped if
`1bit info --architectures` has it, checked if one of its model types has a golden
(tests/golden/families) whose language model is mapped."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLASSES = ROOT / 'tools/transformers_classes.json'
GOLDENS = ROOT / 'tests/golden/families'
PROGRAM = os.environ.get('ONEBIT_PROGRAM', str(ROOT / 'build/src/cli/1bit'))


def architectures():
    """The rows of `1bit info --architectures`."""
    out = subprocess.run([PROGRAM, 'info', '--architectures', '--json'], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)['architectures']


def told(rows):
    """The rows, those that a flag of the configuration tells from others with it in their types."""
    return [r | {'model_types': [f'{t}, {r["when"]}' for t in r['model_types']]}
            if r.get('when') else r for r in rows]


def golden_types(goldens=GOLDENS, rows=()):
    """{golden: its model types}: the configuration's, then that of the language model inside. Rows
    are told() ones."""
    types, known = {}, {t for r in rows for t in r['model_types']}
    for file in sorted(goldens.glob('*/config.json')):
        config = json.loads(file.read_text())
        inner, own = config.get('text_config', {}).get('model_type'), config['model_type']
        flagged = [f'{own}, {k}' for k, v in config.items() if v is True]
        own = next((t for t in flagged if t in known), own)
        types[file.parent.name] = [own] + [inner] * bool(inner)
    return types


def checked_classes(rows, goldens):
    """Classes of rows one of whose model types a golden of `goldens` (golden_types) has."""
    known = {t for r in rows for t in r['model_types']}
    wrappers = {t for r in rows if r['wrapper'] for t in r['model_types']}
    fit = {types[0] for types in goldens.values()
           if types[0] in known and (types[0] not in wrappers or types[-1] in known)}
    return {r['class'] for r in rows if fit & set(r['model_types'])}


class Census:
    def __init__(self, counts, mapped, checked):
        self.total = sum(counts.values())
        self.classes = len(counts)
        self.mapped = {c: n for c, n in counts.items() if c in mapped}
        self.checked = {c: n for c, n in self.mapped.items() if c in checked}
        self.unmapped = sorted(((n, c) for c, n in counts.items() if c not in mapped),
                               key=lambda x: (-x[0], x[1]))

    def text(self, top):
        def line(what, part):
            n = sum(part.values())
            return (f'{what:8} {len(part):6} of {self.classes} classes, {n} of {self.total} models '
                    f'({100 * n / self.total if self.total else 0:.1f}%)')
        lines = [line('mapped', self.mapped), line('checked', self.checked)]
        if self.unmapped:
            lines.append('not mapped, the most frequent first:')
        lines += [f'{n:8} {c}' for n, c in self.unmapped[:top]]
        if len(self.unmapped) > top:
            lines.append(f'         and {len(self.unmapped) - top} more')
        return '\n'.join(lines)


def read_dump(text):
    """{class: count} of a dump; ValueError says what is wrong with it."""
    data = json.loads(text)
    pairs = list(data.items()) if isinstance(data, dict) else data
    if not isinstance(pairs, list):
        raise ValueError('neither an object nor a list')
    counts = {}
    for i, pair in enumerate(pairs):
        good = (isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str)
                and type(pair[1]) is int and pair[1] >= 0)
        if not good:
            raise ValueError(f'entry {i} is no class and count: {json.dumps(pair)}')
        counts[pair[0]] = counts.get(pair[0], 0) + pair[1]
    return counts


def transformers_counts():
    return {c: 1 for c in json.loads(CLASSES.read_text())['classes']}


def take(counts):
    rows = told(architectures())
    return Census(counts, {r['class'] for r in rows},
                  checked_classes(rows, golden_types(rows=rows)))


def list_transformers():
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as names
    return {'transformers': transformers.__version__, 'classes': sorted(set(names.values()))}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('dump', nargs='?')
    parser.add_argument('--top', type=int, default=20, help='unmapped classes to print (20)')
    parser.add_argument('--transformers', action='store_true', help='print the list of classes')
    args = parser.parse_args()
    if args.transformers:
        print(json.dumps(list_transformers(), indent=1))
        return 0
    try:
        counts = read_dump(pathlib.Path(args.dump).read_text()) if args.dump else \
            transformers_counts()
    except (OSError, ValueError) as e:
        print(f'census: {args.dump}: {e}', file=sys.stderr)
        return 1
    print(take(counts).text(args.top))
    return 0


if __name__ == '__main__':
    sys.exit(main())
