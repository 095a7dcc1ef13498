#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the tree that a compiler does not see. Usage: check_lists.py [ROOT].

Lists: every .def row has its file, every descriptor its row, alphabetical lists are sorted.
Sources: licence line, at most 100 columns and 1,000 lines (generated tables may be longer), no work
left as a marker. C in src/: getenv, exit and printing only where they belong, no type named *_t.
Folders of src/: a README.md of at most 40 lines. Prints each violation, exit status 1.
"""
import pathlib
import re
import sys
from typing import NamedTuple


class List(NamedTuple):
    macro: str    # of a row: MACRO(name, ...)
    file: str     # the row's file, "{}" is the name; '' if rows share files
    prefix: str   # the row's descriptor is an object PREFIX_name; '' if rows have none
    folder: str   # where such descriptors are defined, and nowhere without a row


# Every .def file of the tree, by its path.
LISTS = {
    'include/onebit_errors.def': List('ERROR_CODE', '', '', ''),
    'include/onebit_sampling.def': List('OB_SETTING', '', '', ''),
    'tests/check/checks.def': List('CHECK', 'tests/check/check_{}.c', '', ''),
    'src/cli/commands.def': List('COMMAND', 'src/cli/{}.c', 'command', 'src/cli'),
    'src/cli/options.def': List('OPTION', '', '', ''),
    'src/decode/drafters.def': List('DRAFTER', 'src/decode/draft_{}.c', 'drafter', 'src/decode'),
    'src/devices/cuda/kernels/images.def': List('IMAGE', 'src/devices/cuda/kernels/{}.cu', '', ''),
    'src/devices/cuda/kernels/kernels.def': List('KERNEL', '', '', ''),
    'src/devices/cuda/kernels/mma.def': List('FORMAT', '', '', ''),
    'src/devices/devices.def': List('DEVICE', '', 'device', 'src/devices'),
    'src/engine/caches.def': List('CACHE', 'src/engine/cache_{}.c', 'cache', 'src/engine'),
    'src/graph/ops.def': List('OP', 'src/kernels/ref/{}.c', '', ''),
    'src/models/models.def': List('MODEL', '', 'model', 'src/models'),
    'src/models/wrappers.def': List('WRAPPER', '', '', ''),
    'src/quant/kv_types.def': List('KV_TYPE', 'src/quant/{}.c', '', ''),
    'src/quant/quants.def': List('QUANT', 'src/quant/{}.c', 'quant', 'src/quant'),
    'src/sample/samplers.def': List('SAMPLER', 'src/sample/{}.c', 'sampler', 'src/sample'),
    'src/sample/schema/json_formats.def': List('FORMAT', '', '', ''),
    'src/sample/schema/json_keywords.def': List('KEYWORD', '', '', ''),
    'src/server/routes.def': List('ROUTE', 'src/server/routes/{}.c', 'route', 'src/server'),
    'src/text/chat_formats.def': List('FORMAT', 'src/text/chat_{}.c', 'chat_format', 'src/text'),
    'src/text/chat_thoughts.def': List('THOUGHT', '', '', ''),
    'src/text/ends.def': List('END', '', '', ''),
    'src/text/jinja/filters.def': List('FILTER', '', '', ''),
    'src/text/jinja/globals.def': List('GLOBAL', '', '', ''),
    'src/text/jinja/methods.def': List('METHOD', '', '', ''),
    'src/text/jinja/tests.def': List('TEST', '', '', ''),
    'src/text/pretok.def': List('PRETOK', '', '', ''),
    'src/text/rules.def': List('RULE', '', 'rule', 'src/text'),
    'src/text/templates.def': List('BUILTIN', '', '', ''),
    'src/text/tokenizers.def': List('TOKENIZER', 'src/text/tok_{}.c', 'tokenizer', 'src/text'),
    'tests/check/checks.def': List('CHECK', 'tests/check/check_{}.c', '', ''),
    'tests/check/tiers.def': List('TIER', '', '', ''),
}

MADE_BY = r'\b([Gg]enerated|[Mm]ade) by tools/\w+'  # on top of a generated file
MAX_COLUMNS = 100
MAX_LINES = 1000
MAX_README = 40
SOURCES = ('*.c', '*.css', '*.def', '*.h', '*.html', '*.js', '*.py', '*.sh', 'meson.build')
FOLDERS = ('include', 'src', 'tests', 'tools', 'bench', 'scripts', '.ci')

# Calls that only these files may make (a folder counts with all it holds).
CALLS = [
    (r'(?:secure_)?getenv', ('src/base/os_posix.c', 'src/cli/options.c')),
    # A mapped file that was cut short ends the program from its signal handler.
    (r'_?exit|abort|quick_exit', ('src/cli/', 'src/base/map_posix.c')),
    (r'v?f?printf|puts|fputs|putchar|perror', ('src/cli/', 'src/base/log.c')),
]


def code_only(text):
    """C without comments and string contents; line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: '""' * (m[0][0] == '"') + '\n' * m[0].count('\n'), text,
                  flags=re.S)


def line_of(text, at):
    return text.count('\n', 0, at) + 1


def check_list(root, path, rule):
    text = (root / path).read_text()
    code = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    rows = re.findall(rf'^{rule.macro}\(\s*("[^"]*"|\w+)', code, flags=re.M)
    if not rows:
        yield f'{path}: no {rule.macro}() rows'
    lines = [l for l in code.splitlines() if l.startswith(rule.macro)]
    for line in sorted({l for l in lines if lines.count(l) > 1}):
        yield f'{path}: listed twice: {line}'
    if re.search('alphabetical', text, flags=re.I) and rows != sorted(rows):
        first = next(a for a, b in zip(rows, sorted(rows)) if a != b)
        yield f'{path}: not alphabetical at {first}'
    if rule.file:
        for name in rows:
            if not (root / rule.file.format(name)).exists():
                yield f'{path}: {name} has no {rule.file.format(name)}'
    if rule.prefix:
        defined = {}
        pattern = rf'^(?:\w+ )*const struct \w+ {rule.prefix}_(\w+)\s*=\s*(?:\{{|[A-Z])'
        for file in sorted((root / rule.folder).rglob('*.c')):
            for m in re.finditer(pattern, file.read_text(), flags=re.M):
                if not m[0].startswith('static'):
                    defined[m[1]] = file.relative_to(root)
        for name in rows:
            if name not in defined:
                yield f'{path}: {name}: nothing in {rule.folder} defines {rule.prefix}_{name}'
            elif rule.file and str(defined[name]) != rule.file.format(name):
                yield f'{path}: {name}: defined in {defined[name]}'
        for name, file in sorted(defined.items()):
            if name not in rows:
                yield f'{file}: {rule.prefix}_{name} has no row in {path}'


def check_lists(root):
    for file in sorted(root.glob('*/**/*.def')):
        path = str(file.relative_to(root))
        if path.startswith('build'):
            continue
        if path in LISTS:
            yield from check_list(root, path, LISTS[path])
        else:
            yield f'{path}: a list without a row in tools/check_lists.py'


def sources(root):
    for folder in FOLDERS:
        for pattern in SOURCES:
            yield from (root / folder).rglob(pattern)
    for folder in ('scripts', '.ci'):  # programs without a suffix
        yield from (f for f in (root / folder).glob('*') if f.is_file() and not f.suffix)
    yield from (f for name in ('Makefile', 'meson.build', 'meson_options.txt')
                if (f := root / name).exists())


def check_source(path, text):
    lines = text.splitlines()
    if not any('SPDX-License-Identifier: Apache-2.0' in l for l in lines[:3]):
        yield f'{path}:1: no SPDX-License-Identifier line'
    generated = any(re.search(MADE_BY, l) for l in lines[:12])
    if len(lines) > MAX_LINES and not generated:
        yield f'{path}: {len(lines)} lines, at most {MAX_LINES}'
    for n, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f'{path}:{n}: {len(line)} columns, at most {MAX_COLUMNS}'
        if line != line.rstrip():
            yield f'{path}:{n}: blanks at the end of the line'
        if re.search(r'\b(TO' r'DO|FIX' r'ME|XX' r'X)\b', line):
            yield f'{path}:{n}: unfinished work belongs in an issue'
    if text and not text.endswith('\n'):
        yield f'{path}: no newline at the end'


def check_c(path, text):
    code = code_only(text)
    for call, where in CALLS:
        if not path.startswith(where):
            for m in re.finditer(rf'\b({call})\s*\(', code):
                yield f'{path}:{line_of(code, m.start())}: {m[1]}() only in {", ".join(where)}'
    for m in re.finditer(r'^(?:typedef\b[^;{]*\b|\}\s*)(\w+_t);', code, flags=re.M):
        yield f'{path}:{line_of(code, m.start())}: type {m[1]}: the suffix _t is not ours'


def check_readmes(root):
    for folder in sorted(p for p in (root / 'src').iterdir() if p.is_dir()):
        if not any(folder.rglob('*.[ch]')):
            continue
        readme = folder / 'README.md'
        path = readme.relative_to(root)
        if not readme.exists():
            yield f'{path}: missing'
        elif (n := len(readme.read_text().splitlines())) > MAX_README:
            yield f'{path}: {n} lines, at most {MAX_README}'


def check(root):
    """Yields one line for each violation."""
    yield from check_lists(root)
    for file in sorted(set(sources(root))):
        path = str(file.relative_to(root))
        text = file.read_text()
        yield from check_source(path, text)
        if path.startswith(('src/', 'include/')) and file.suffix in ('.c', '.h'):
            yield from check_c(path, text)
    yield from check_readmes(root)


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems = list(check(root.resolve()))
    print('\n'.join(problems) or 'lists: ok')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
