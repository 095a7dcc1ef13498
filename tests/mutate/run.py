# SPDX-License-Identifier: Apache-2.0
"""Applies each breakage to a copy of the tree, builds, and expects a test to fail.

Usage: run.py [NAME_PART...]. The copy and its build stay in build-mutate/ for the next run. The
unbroken copy must pass first: otherwise a failure would prove nothing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from breakages import BREAKAGES

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / 'build-mutate' / 'tree'
BUILD = ROOT / 'build-mutate' / 'build'
PARTS = ['meson.build', 'meson_options.txt', 'include', 'src', 'tests', 'bench']
TIMEOUT = 600  # seconds; a test that hangs has noticed


def copy_tree():
    """Makes COPY equal to the tree; equal files keep their time, so that ninja skips them."""
    wanted = set()
    for part in PARTS:
        top = ROOT / part
        for file in [top] if top.is_file() else [f for f in top.rglob('*') if f.is_file()]:
            name = file.relative_to(ROOT)
            if '__pycache__' in name.parts:
                continue
            wanted.add(name)
            to = COPY / name
            if not to.exists() or to.read_bytes() != file.read_bytes():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)
    for file in [f for f in COPY.rglob('*') if f.is_file()]:
        if file.relative_to(COPY) not in wanted:
            file.unlink()


def run(*command):
    """(exit status, output); a timeout counts as status 124."""
    try:
        p = subprocess.run(command, cwd=COPY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors='replace', timeout=TIMEOUT)
        return p.returncode, p.stdout
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b'').decode(errors='replace')


def build():
    if not (BUILD / 'build.ninja').exists():
        status, out = run('meson', 'setup', str(BUILD), '-Dbuildtype=debugoptimized')
        if status:
            return status, out
    return run('ninja', '-C', str(BUILD))


def suite():
    """The test that noticed a fault first; '' if all pass."""
    # Without the minutes-long real models, so that a breakage costs one minute.
    status, out = run('meson', 'test', '-C', str(BUILD), '--no-rebuild', '--maxfail', '1',
                      '--no-suite', 'slow')
    failed = re.search(r'^ *\d+/\d+ (?:\S+ / )?(\S+) +(?:FAIL|TIMEOUT|ERROR)', out, flags=re.M)
    return '' if status == 0 else failed[1] if failed else f'status {status}'


def attempt(breakage):
    """(caught, what to print)"""
    file = COPY / breakage.file
    text = file.read_text()
    if text.count(breakage.old) != 1:
        return False, f'{breakage.file} has the text to replace {text.count(breakage.old)} times'
    file.write_text(text.replace(breakage.old, breakage.new))
    try:
        status, out = build()
        if status:
            return False, 'does not build:\n' + out[-2000:]
        noticed = suite()
        return bool(noticed), noticed or f'NOT NOTICED ({breakage.file})'
    finally:
        file.write_text(text)


def main():
    wanted = [b for b in BREAKAGES
              if not sys.argv[1:] or any(part in b.name for part in sys.argv[1:])]
    os.chdir(ROOT)
    copy_tree()
    status, out = build()
    if status:
        print(out[-4000:])
        return 1
    if noticed := suite():
        print(f'{noticed} fails on the unbroken tree')
        return 1
    failed = 0
    for b in wanted:
        start = time.monotonic()
        caught, text = attempt(b)
        failed += not caught
        verdict = 'ok' if caught else 'FAILED'
        print(f'{b.name:50} {verdict:6} {time.monotonic() - start:4.0f} s  {text}', flush=True)
    print(f'{len(wanted) - failed} passed, {failed} failed')
    return 1 if failed or not wanted else 0


if __name__ == '__main__':
    sys.exit(main())
