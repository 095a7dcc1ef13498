# SPDX-License-Identifier: Apache-2.0
"""bench/load over the server with the fake engine: what it asks, and that its figures are there."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKE = ROOT / 'build/tests/server/fake_server'
COMMAND = f'{FAKE} fake 127.0.0.1 {{port}}'


def load(tmp_path, *words):
    return subprocess.run([sys.executable, ROOT / 'bench/load', *words], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_two_servers_beside_each_other(tmp_path):
    done = load(tmp_path, '--server', f'one={COMMAND}', '--server', f'two={COMMAND}', '-c', '1,3',
                '-n', '6', '--scale', '0.05', '-r', '2', '--json', 'out.json', '--html', 'out.html')
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / 'out.json').read_text())
    assert [(r['server'], r['clients']) for r in rows] == [
        ('one', 1), ('two', 1), ('one', 3), ('two', 3)]
    for row in rows:
        assert row['answer tok/s'] > 0 and row['all tok/s'] > row['answer tok/s']
        assert 0 < row['first p50 s'] <= row['first p99 s']
        assert row['MB'] > 0
    # Rounds begin with another server each.
    started = [line.split()[-4].rstrip(':') for line in done.stderr.splitlines()]
    assert started == ['one', 'two', 'one', 'two', 'two', 'one', 'two', 'one']
    page = (tmp_path / 'out.html').read_text()
    assert page.count('<svg') == 8 and page.count('<polyline') == 16 and 'http' not in page


def test_a_server_that_does_not_start(tmp_path):
    done = load(tmp_path, '--server', f'one={FAKE} bad 127.0.0.1 {{port}}', '-c', '1')
    assert done.returncode == 1
    assert done.stderr == 'load: one ended at its start: see load-one.log\n'
