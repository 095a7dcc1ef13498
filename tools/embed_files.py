#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of the server's page (src/server/ui) as C, for src/server/ui/files.h.
Usage: embed_files.py OUT FILE... (the build calls it). A file's tag is a hash of its bytes, so that
a browser that kept it learns in one short answer whether it still is the same."""
import hashlib
import pathlib
import sys

TYPES = {
    '.css': 'text/css; charset=utf-8',
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.svg': 'image/svg+xml',
}


def main():
    out, *names = map(pathlib.Path, sys.argv[1:])
    arrays, rows = [], []
    for i, path in enumerate(sorted(names, key=lambda p: p.name)):
        data = path.read_bytes()
        numbers = [f'{byte},' for byte in data]
        lines = '\n'.join(''.join(numbers[at:at + 24]) for at in range(0, len(numbers), 24))
        arrays.append(f'static const unsigned char file_{i}[] = {{\n{lines}\n}};')
        tag = hashlib.sha256(data).hexdigest()[:16]
        rows.append(f'    {{"{path.name}", "{TYPES[path.suffix]}", "\\"{tag}\\"", '
                    f'file_{i}, {len(data)}}},')
    out.write_text('\n'.join([
        '/* SPDX-License-Identifier: Apache-2.0', ' * Made by tools/embed_files.py. */',
        '#include "server/ui/files.h"', *arrays,
        'const struct ui_file ui_files[] = {', *rows, '};',
        'const size_t ui_files_n = sizeof ui_files / sizeof ui_files[0];', '']))


if __name__ == '__main__':
    main()
