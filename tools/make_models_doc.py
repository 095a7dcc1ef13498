#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/models.md: from `1bit info --architectures`, from what `1bit-check --tier models` says
about each golden, and from the recipes' tables of what they refuse. Usage: make_models_doc.py
[CHECK_LOG]; with the output of an earlier `1bit-check --tier models --verbose` it is not run."""
import collections
import os
import pathlib
import re
import subprocess
import sys

import census
import llama_cpp

ROOT = census.ROOT
PAGE = ROOT / 'docs/models.md'
CHECK = os.environ.get('ONEBIT_CHECK', str(ROOT / 'build/tests/check/1bit-check'))

TOP = """# Models
<!-- Made by tools/make_models_doc.py (`make docs`); do not edit. -->
Every class that `1bit info --architectures` lists. A class is **checked** when a randomly
initialised miniature of it (`tests/golden/families/`) gives the logits that transformers computes
in FP32: at every position of two sequences, of the prompt whole, token by token and in chunks, on
the reference device and on every instruction set of the machine, and the same tokens afterwards.
The figure is the largest difference of a logit in standard deviations of the logits; more than
2e-3 (models that round activations to 8 bits: 5e-2) fails the test. Of encoders it is the last
states that are compared, of whole sequences. Of such a miniature's further spellings, which give
the same numbers: *older keys* are those of configurations before transformers 5, *GGUF* is a file
as llama.cpp's converter writes it, *converted* one that `1bit convert` wrote and we read again
(of Falcon-H1, whose multipliers llama.cpp has in the weights, it gives the same but for rounding).
*llama.cpp*: it reads that file, too, and gives the same top tokens (of an encoder: the same
states); where it has constants that the miniature contradicts, both got the miniature with these
(data of `tools/llama_cpp.py`, tested by `tests/tools/test_llama_cpp.py`).

GGUF is the `general.architecture` that `1bit convert` writes, by which llama.cpp knows the class;
several classes may share one (Mistral and Mixtral are `llama`, DeepSeek-V3 is `deepseek2`), and
llama.cpp's own files of these are read as what they say. *own*: llama.cpp has none, or none that we
write or read; our files name the `model_type`.

A wrapper sees or hears; what is loaded is the language model in its `text_config`, and only text.
"""

LIMITS = """
## What every recipe refuses
Nothing is approximated. Loading ends with one line that names the key or tensor when
- a key of `config.json` that sounds like mathematics (`*scale*`, `rope_*`, `*softcap*`, ...) is not
  one that the recipe read, or has a value other than those in the column *refuses*;
- a tensor is missing, has another shape than the recipe's formula, or is not known to the recipe;
- a vocabulary, an activation or a kind of rope scaling is not known.

Known not to hold yet: a key whose value contradicts what the class does (`partial_rotary_factor`
in a class that turns whole heads, `use_sliding_window: false` beside `layer_types`) is obeyed or
passed over where transformers does otherwise, and a key that is absent has our default, which in
some families is not transformers' own.

A class is only mathematics; a model of it also needs a tokenizer that the README lists.
Classifiers (`*-classifier` above) load and convert; `1bit run`, `embed` and `serve` give no scores.

Limits of single classes that no table says:
- Doge: sequences longer than `keep_window_size`, beyond which it keeps the largest keys alone.
- dots.3 note: window layers with head sizes of their own.
- Qwen's, Gemma's and other wrappers: images and sound.
- Nemotron-H and Zamba2: transformers clamps step sizes to `time_step_min` in a prompt, not in the
  answer; here they are not clamped. Nemotron-H with another `time_step_limit` than 0 to infinity is
  refused.
"""


# ---- what was checked ----------------------------------------------------------------------------

class Checked:
    """One golden: the largest difference, positions of each sequence, and its further spellings."""
    def __init__(self):
        self.off, self.failed, self.skipped = 0.0, False, ''
        self.positions, self.forms = {}, set()


FORMS = {'legacy': 'older keys', 'gguf': 'GGUF', 'converted': 'converted'}


def parse_checks(text):
    """{golden: Checked} of the output of `1bit-check --tier models --verbose`."""
    found = collections.defaultdict(Checked)
    for line in text.splitlines():
        if m := re.match(r'skip models\.([^.:]+): (.*)', line):
            found[m[1]].skipped = m[2]
        if m := re.match(r'FAIL models\.([^.:]+)', line):
            found[m[1]].failed = True
        m = re.match(r'ok +models\.([^.\s]+)\.\w+\.(\w+)\s+(.*)', line)
        if not m:
            continue
        golden, part, said = m.groups()
        checked = found[golden]
        if part in FORMS:
            checked.forms.add(part)
        if figures := re.match(r'(\d+) x \d+ (?:logits|states).*; off by (\S+) deviations', said):
            checked.off = max(checked.off, float(figures[2]))
            if part not in FORMS and part != 'cut':  # the same positions as b
                checked.positions[part] = int(figures[1])
    return dict(found)


def run_checks():
    """Its output; meanwhile the terminal shows how far it is."""
    words = [CHECK, '--seed', '1', '--tier', 'models']
    rows = subprocess.run(words + ['--rows'], cwd=ROOT, capture_output=True, text=True).stdout
    total, lines, shown = len(rows.splitlines()), [], sys.stderr.isatty()
    with subprocess.Popen(words + ['--verbose'], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, bufsize=1) as p:
        for line in p.stdout:
            lines.append(line)
            if shown:
                print(f'\r{len(lines)} of {total} rows', end='', file=sys.stderr, flush=True)
    if shown:
        print(f'\r{" " * 40}\r', end='', file=sys.stderr)
    return ''.join(lines)


def describe(golden, checked):
    forms = ''.join(', ' + FORMS[f] for f in FORMS if f in checked.forms)
    if checked.failed:
        return f'`{golden}`: fails'
    if checked.skipped:
        return f'`{golden}`: not yet, {checked.skipped}'
    if golden in llama_cpp.READS:
        forms += ', llama.cpp'
    return f'`{golden}`: {sum(checked.positions.values())} positions, {checked.off:.1e}{forms}'


# ---- what is refused -----------------------------------------------------------------------------

def block_of(text, start):
    """From start to the end of the top-level braces or macro there."""
    end = re.compile(r'^\};?$|(?<!\\)\n(?=\n|#)', re.M).search(text, start)
    return text[start:end.start()] if end else text[start:]


def plain_tables(text):
    """{name: [(key, what)]} of the struct plain tables of a piece of C."""
    tables = {}
    for m in re.finditer(r'struct plain (\w+)\[\] = \{(.*?)\{0\}', text, re.S):
        rows = re.findall(r'\{(?:NULL|"[^"]*"), "([^"]+)",[^"{}]*"([^"]+)"\}', m[2])
        tables[m[1]] = rows
    return tables


def functions(text):
    return {m[1]: m[2] for m in re.finditer(
        r'^(?:static )?ob_status (\w+)\([^)]*\) \{\n(.*?)^\}', text, re.M | re.S)}


def refusals(text):
    """{recipe: [(key, what)]} of one recipe file: by the tables that its derive() asks about."""
    found, bodies = {}, functions(text)
    outer = plain_tables(re.sub(r'^(?:static )?ob_status .*?^\}', '', text, flags=re.M | re.S))
    macros = {m[1]: block_of(text, m.start()) for m in re.finditer(r'^#define (\w+)', text, re.M)}

    def tables_of(name, seen):
        if name not in bodies or name in seen:
            return []
        body, rows = bodies[name], []
        inner = plain_tables(body)
        for table in re.findall(r'build_plain\(b, (\w+),', body):
            rows += inner.get(table) or outer.get(table, [])
        for called in re.findall(r'\b(\w+)\(', body):
            rows += tables_of(called, seen | {name})
        return rows

    for m in re.finditer(r'^const struct recipe model_(\w+) = \{', text, re.M):
        block = block_of(text, m.start())
        for word in re.findall(r'\b[A-Z][A-Z_0-9]+\b', block):
            block += macros.get(word, '')
        if derive := re.search(r'\.derive = (\w+)', block):
            cls = re.search(r'\.hf_class = "(\w+)"', block)
            if cls and (rows := tables_of(derive[1], set())):
                found[cls[1]] = rows
    return found


def all_refusals():
    found = {}
    for file in sorted((ROOT / 'src/models').glob('*.c')):
        found |= refusals(file.read_text())
    return found


# ---- the page ------------------------------------------------------------------------------------

def page(rows, checks, goldens, refused, coverage, version):
    """rows: `1bit info --architectures`; goldens: census.golden_types()."""
    lines = [TOP, '| class | GGUF | family | has | checked: miniature, positions, difference | '
             'refuses: key, what it would ask for |', '|---|---|---|---|---|---|']
    for r in sorted(rows, key=lambda r: (r['wrapper'], r['class'].lower())):
        mine = [g for g, types in goldens.items() if types[0] in r['model_types'] and g in checks]
        mine = mine or [g for g, types in goldens.items()
                        if types[-1] in r['model_types'] and g in checks]
        told = '; '.join(describe(g, checks[g]) for g in mine) or 'no'
        refuses = ', '.join(f'`{key}`: {what}' for key, what in refused.get(r['class'], []))
        lines.append(f"| {r['class']} | {r['gguf'] or ''} | {r['family'] or 'wrapper'} | "
                     f"{', '.join(r['features'])} | {told} | {refuses} |")
    known = {t for r in rows for t in r['model_types']}
    rest = [g for g, types in goldens.items()
            if g in checks and types[0] not in known and checks[g].skipped]
    if rest:
        lines += ['', '## Miniatures without a recipe', ', '.join(f'`{g}`' for g in rest)]
    lines += ['', '## What llama.cpp has another way',
              'It knows these miniatures\' architectures, and gives other tokens or none: '
              + '; '.join(f'`{g}`, {why}' for g, why in sorted(llama_cpp.DIFFERS.items())) + '.']
    mapped, checked = len(coverage.mapped), len(coverage.checked)
    lines += ['', '## Coverage',
              f'Of the {coverage.classes} classes that transformers {version} can load as causal '
              'language models', f'(encoders with a head for it, and decoders of encoder-decoder '
              f'models, are among them), {mapped} are', f'mapped and {checked} of these checked. '
              '`tools/census.py DUMP` says the same of a list of classes and counts.', '',
              'Not mapped: ' + ', '.join(c for _, c in coverage.unmapped) + '.']
    return '\n'.join(lines) + '\n' + LIMITS


def main():
    log = pathlib.Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else run_checks()
    checks = parse_checks(log)
    if not checks:
        print(f'make_models_doc: {CHECK} said nothing about models', file=sys.stderr)
        return 1
    version = census.json.loads(census.CLASSES.read_text())['transformers']
    coverage = census.take(census.transformers_counts())
    rows = census.told(census.architectures())
    PAGE.write_text(page(rows, checks, census.golden_types(rows=rows), all_refusals(), coverage,
                         version))
    failed = [g for g, c in checks.items() if c.failed]
    print(f'{PAGE.relative_to(ROOT)}: {len(checks)} miniatures, failed: {failed or "none"}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
