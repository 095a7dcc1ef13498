#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks from the #include lines who sees whom in src/ (see docs/ARCHITECTURE.md).

Dependencies point downwards only. MAY is the whole rule: a folder may include itself, onebit.h and
what its row names. A recipe (models) cannot know where it runs, kernels know no graph, nothing
above engine sees tensors. Usage: check_layers.py [ROOT]; prints each violation, exit status 1.
"""
import pathlib
import re
import sys

MAY = {
    'base': [],
    'quant': ['base'],
    'sample': ['base'],
    'format': ['base', 'quant'],
    'text': ['base', 'format', 'sample'],
    'graph': ['base', 'quant'],
    'kernels': ['base', 'quant'],
    'devices': ['base', 'quant', 'graph'],
    'devices/cpu': ['base', 'quant', 'graph', 'kernels', 'devices'],
    'devices/cuda': ['base', 'quant', 'graph', 'devices'],
    'devices/vulkan': ['base', 'quant', 'graph', 'devices'],
    'models': ['base', 'quant', 'format', 'graph'],
    'engine': ['base', 'quant', 'sample', 'format', 'text', 'graph', 'devices', 'models'],
    'decode': ['base', 'sample', 'format', 'text', 'engine'],
    'api': ['base', 'sample', 'format', 'text', 'engine', 'decode'],
    'route': ['base', 'text', 'engine', 'decode'],
    'server': ['base', 'text', 'route'],
    'eval': ['base'],
    'cli': ['base', 'quant', 'format', 'text', 'models', 'route', 'server', 'eval'],
}


def area(path):
    """The row of MAY for a path below src/: "devices/cpu/x.c" -> "devices/cpu"; None if unknown."""
    if path == 'api.c':
        return 'api'
    parts = path.split('/')
    for n in (2, 1):
        if len(parts) > n and '/'.join(parts[:n]) in MAY:
            return '/'.join(parts[:n])
    return None


def check(root):
    """Yields one line for each violation."""
    src = root / 'src'
    for file in sorted([*src.rglob('*.c'), *src.rglob('*.h')]):
        own = area(str(file.relative_to(src)))
        if own is None:
            yield f'{file}: a folder without a row in tools/check_layers.py'
            continue
        for n, line in enumerate(file.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            included = m[1]
            if (root / 'include' / included).exists():
                continue
            if not (src / included).exists():
                yield f'{file}:{n}: "{included}" is not a path from src/'
            elif area(included) not in (own, *MAY[own]):
                yield f'{file}:{n}: {own} may not include "{included}"'


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems = list(check(root))
    print('\n'.join(problems) or 'layers: ok')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
