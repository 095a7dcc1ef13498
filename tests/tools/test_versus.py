# SPDX-License-Identifier: Apache-2.0
"""bench/versus with peers that only pretend: what it asks of them, and what it makes of answers."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Prints what a llama-bench would, at rates that show where they came from; notes how it was called.
BENCH = '''#!{python}
import json, sys
words = sys.argv[1:]
if words == ['--help']:
    print('  -p, --n-prompt <n>\\n  {depth_flag}')
    sys.exit()
open('{log}', 'a').write('{name} ' + ' '.join(words) + '\\n')
def of(flag, default=''):
    return words[words.index(flag) + 1] if flag in words else default
lists = [[int(x) for x in of(f, '0').split(',')] for f in ('-p', '-n', '-d')]
rows = []
for d in lists[2]:
    rows += [dict(n_prompt=p, n_gen=0, n_depth=d, avg_ts=p + d) for p in lists[0] if p]
    rows += [dict(n_prompt=0, n_gen=n, n_depth=d, avg_ts=n + d) for n in lists[1] if n]
for i, word in enumerate(words):
    if word == '-gp':
        d, n = map(int, words[i + 1].split(','))
        rows.append(dict(n_prompt=d, n_gen=n, avg_ts=1000, samples_ts=[900, 1000, 1100]))
print(json.dumps(rows))
'''
BATCHED = '''#!{python}
import sys
open('{log}', 'a').write('batched ' + ' '.join(sys.argv[1:]) + '\\n')
def of(flag):
    return int(sys.argv[sys.argv.index(flag) + 1])
print('|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |    T s |')
print('|-------|--------|------|--------|----------|----------|----------|----------|--------|')
print('|%6d | %6d | %4d | %6d | %8.3f | %8.2f | %8.3f | %8.2f | %8.3f | %8.2f |'
      % (of('-npp'), of('-ntg'), of('-npl'), 9, 1, 2, 3, 50, 5, 6))
'''
OURS = '''#!{python}
import json, sys
words = sys.argv[1:]
open('{log}', 'a').write('ours ' + ' '.join(words) + '\\n')
def of(flag):
    return [int(x) for x in words[words.index(flag) + 1].split(',')]
rows = [dict(test=t, tokens=n, depth=d, batch=b, runs=[10.0 * n * b], share=0.5)
        for d in of('-d') for b in of('-b') for t, f in (('pp', '-p'), ('tg', '-n'))
        for n in of(f) if n]
print(json.dumps(dict(results=rows)))
'''


@pytest.fixture
def engines(tmp_path):
    def write(file, text, **fields):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(python=sys.executable, log=tmp_path / 'log', **fields))
        path.chmod(0o755)
        return path
    (tmp_path / 'model.gguf').touch()
    new = write('new/llama-bench', BENCH, name='new', depth_flag='-d, --n-depth <n>')
    old = write('old/llama-bench', BENCH, name='old', depth_flag='-gp <pp,tg>')
    write('new/llama-batched-bench', BATCHED)
    return [sys.executable, str(ROOT / 'bench/versus'), '--ours', str(write('ours', OURS)),
            '--peer', f'new={new} -fa 1', '--peer', f'old={old}', '-m',
            str(tmp_path / 'model.gguf')]


def run(command, *words):
    return subprocess.run([*command, *map(str, words)], capture_output=True, text=True)


def test_versus(engines, tmp_path):
    out, page = tmp_path / 'out.json', tmp_path / 'out.md'
    done = run(engines, '-t', '1', '-p', '512', '-n', '128', '-d', '0,100', '-b', '1,4', '-r', 2,
               '--json', out, '--md', page)
    assert done.returncode == 0, done.stderr
    rows = {r['test']: r for r in json.loads(out.read_text())}
    assert list(rows) == ['pp512', 'tg128', 'pp512 x4', 'tg128 x4',
                          'pp512@100', 'tg128@100', 'pp512@100 x4', 'tg128@100 x4']
    assert rows['pp512']['median'] == {'ours': 5120, 'new': 512, 'old': 512}
    assert rows['pp512']['ratio'] == {'new': 10, 'old': 10}
    assert rows['pp512']['rates']['new'] == [512, 512] and rows['pp512']['share'] == 0.5
    assert rows['pp512@100']['median'] == {'ours': 5120, 'new': 612}  # the old one cannot
    assert rows['tg128@100']['median'] == {'ours': 1280, 'new': 228, 'old': 1000}
    assert len(rows['tg128@100']['rates']['old']) == 6
    assert rows['tg128@100 x4']['median'] == {'ours': 5120, 'new': 50}
    assert rows['pp512 x4']['median'] == {'ours': 20480}
    lines = page.read_text().splitlines()
    assert {line.count('|') for line in lines[2:]} == {11}
    assert '| model | 1 | f16 | tg128@100 | 1280.0 | 50% | 228.0 | 5.61 | 1000.0 | 1.28 |' in lines
    assert re.search(r'^model +1 +f16 +pp512@100 +5120.0 +50% +612.0 +8.37 +- +-$', done.stdout,
                     re.M)
    log = (tmp_path / 'log').read_text().splitlines()
    order = [line.split()[0] for line in log]
    assert order == ['ours', 'new', 'batched', 'batched', 'old', 'old',
                     'new', 'batched', 'batched', 'old', 'old', 'ours']
    assert f'new -fa 1 -m {tmp_path}/model.gguf -t 1 -ctk f16 -ctv f16 -r 1' in log[1]


@pytest.mark.parametrize('words, message', [
    (['-p', '1,x'], 'is no list of numbers'),
    (['-t', '0'], 'at least 1'),
    (['--peer', 'new=x'], 'two peers of one name'),
    (['--peer', 'x'], 'is not NAME=PROGRAM'),
    (['--batched', 'new=./nosuch', '-b', '2'], './nosuch: No such file'),
    (['--peer', 'gone=./nosuch'], './nosuch: No such file'),
    (['--batched', 'other=./nosuch'], 'no peer of this name'),
    (['--json', '/nosuch/v.json'], '/nosuch/v.json: No such file'),
    (['-m', 'nosuch'], 'nosuch: no such model'),
])
def test_wrong_words(engines, words, message):
    done = run(engines, *words)
    assert done.returncode != 0 and message in done.stderr and 'Traceback' not in done.stderr


def test_a_peer_that_fails(engines, tmp_path):
    broken = tmp_path / 'new/llama-bench'
    broken.write_text(broken.read_text().replace('lists =', 'sys.exit("no such device") #'))
    done = run(engines, '-t', 1, '-r', 1)
    assert done.returncode == 1 and 'no such device' in done.stderr
    assert 'Traceback' not in done.stderr


def test_a_table_among_errors(engines, tmp_path):
    batched = tmp_path / 'new/llama-batched-bench'
    text = batched.read_text().replace('import sys', 'import sys; sys.stdout = sys.stderr')
    batched.write_text(text)
    done = run(engines, '-t', 1, '-r', 1, '-b', 2, '-p', 0)
    assert done.returncode == 0 and ' 50.0 ' in done.stdout, done.stderr
