# SPDX-License-Identifier: Apache-2.0
"""`1bit bench` from outside, on the tiny model: every combination measured, and every form of the
report saying the same. No test looks at a speed."""
import csv
import io
import itertools
import json
import re
import statistics
import xml.dom.minidom

import pytest

from test_cli import ROOT, call, fails

TINY = ROOT / 'tests/golden/tiny.gguf'
PLAN = ['-m', TINY, '-p', '9,20', '-n', '3', '-d', '0,70', '-b', '1,3', '-t', '1,2',
        '--kv-type', 'f16,f32', '-r', 2]
COLUMNS = ('model,family,device,weights,weight_bytes,test,tokens,depth,batch,threads,kv_type,runs,'
           'median,mean,stddev,min,max,bytes_token,ops_token,read_limit,int8_limit').split(',')


def bench(*words):
    result = call('bench', *words)
    assert result.returncode == 0 and result.stderr == '', result
    return result.stdout


def keys(results):
    return [(r['kv_type'], int(r['threads']), int(r['depth']), int(r['batch']), r['test'],
             int(r['tokens'])) for r in results]


def combinations():
    tests = [('pp', 9), ('pp', 20), ('tg', 3)]
    return [(*c[:4], *c[4]) for c in
            itertools.product(['f16', 'f32'], [1, 2], [0, 70], [1, 3], tests)]


def test_json_and_page(tmp_path):
    page = tmp_path / 'page.html'
    out = json.loads(bench(*PLAN, '--json', '--html', page))
    assert keys(out['results']) == combinations()
    for r in out['results']:
        runs = r['runs']
        assert len(runs) == 2 and min(runs) > 0
        assert r['min'] == min(runs) and r['max'] == max(runs)
        assert r['median'] == pytest.approx(statistics.median(runs))
        assert r['mean'] == pytest.approx(statistics.mean(runs))
        assert r['stddev'] == pytest.approx(statistics.stdev(runs), rel=1e-6)
        assert r['read_limit'] > 0 and r['share'] > 0
        cost, limit = (('ops_token', 'int8_limit') if r['test'] == 'pp'
                       else ('bytes_token', 'read_limit'))
        assert r['share'] == pytest.approx(r['median'] * r[cost] / r[limit])
    by = dict(zip(keys(out['results']), out['results']))
    one, three = by['f16', 1, 0, 1, 'tg', 3], by['f16', 1, 0, 3, 'tg', 3]
    assert three['bytes_token'] < one['bytes_token'] / 2  # one reading of the weights for three
    deep = by['f16', 1, 70, 1, 'tg', 3]
    assert one['bytes_token'] < deep['bytes_token'] < by['f32', 1, 70, 1, 'tg', 3]['bytes_token']

    text = page.read_text()
    html = xml.dom.minidom.parseString(text.replace('<!DOCTYPE html>', ''))
    assert 'http' not in text.replace('http-equiv', '')  # needs nothing else
    charts = html.getElementsByTagName('svg')
    assert [c.getAttribute('aria-label') for c in charts] == [
        'Prompt by depth', 'Prompt by batch', 'Answer by depth', 'Answer by batch']
    # Two lengths, two batches (depths), two thread counts and two types; two points each.
    assert [len(c.getElementsByTagName('polyline')) for c in charts] == [16, 16, 8, 8]
    points = [line.getAttribute('points').split() for c in charts
              for line in c.getElementsByTagName('polyline')]
    assert all(len(p) == 2 for p in points)
    for x, y in (map(float, p.split(',')) for line in points for p in line):
        assert 0 <= x <= 640 and 0 <= y <= 320
    rows = html.getElementsByTagName('tr')
    assert len(rows) == 1 + len(out['results'])


def test_csv():
    text = bench(*PLAN, '--csv')
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == COLUMNS
    assert keys(rows) == combinations()
    assert all(float(r['min']) <= float(r['median']) <= float(r['max']) for r in rows)
    assert {r['model'] for r in rows} == {'Tiny'} and {r['runs'] for r in rows} == {'2'}


def test_markdown_and_table():
    lines = bench(*PLAN, '--md').splitlines()
    assert lines[0].startswith('**Tiny** (qwen2, ')
    cells = [[c.strip() for c in line.strip('|').split('|')] for line in lines[2:]]
    assert {len(c) for c in cells} == {9}
    assert [(c[4], int(c[3]), int(c[1]), int(c[2]), c[0][:2], int(c[0][2:]))
            for c in cells[2:]] == combinations()
    table = bench('-m', TINY, '-p', 9, '-n', 0, '-r', 1)
    assert re.search(r'^ +pp9 +0 +1 +\d+ +f16 +[\d.]+ +[\d.]+ +[\d.]+ +\d+% of [\d.]+ TOPS$',
                     table, re.M)
    assert 'tg' not in table
    table = bench('-m', TINY, '-p', 0, '-n', 2, '-r', 1)
    assert re.search(r'^ +tg2 .* \d+% of [\d.]+ GB/s$', table, re.M) and 'pp' not in table


def test_the_reference_device_has_no_limit():
    out = json.loads(bench('-m', TINY, '-p', 5, '-n', 2, '-r', 1, '--device', 'ref', '--json'))
    assert [r['share'] for r in out['results']] == [None, None]


def test_warm_up():
    out = json.loads(bench('-m', TINY, '-p', 5, '-n', 0, '-r', 3, '--warm-up', 0, '--json'))
    assert len(out['results'][0]['runs']) == 3


@pytest.mark.parametrize('words, message', [
    (['-d', '-1'], '--depth: "-1" is no list'),
    (['-b', '0'], '--batch: "0" is no list'),
    (['-b', '1,'], '--batch: "1," is no list'),
    (['-t', 'all'], '--threads: "all" is no list'),
    (['--kv-type', 'f16,f17'], '--kv-type: "f16,f17" is no list of f16|bf16|f32|q8_0|q4_0'),
    (['--csv', '--md'], '--csv, --md and --json exclude each other'),
    (['-p', '0', '-n', '0'], 'nothing to measure'),
])
def test_wrong_words(words, message):
    fails(call('bench', '-m', TINY, *words), 2, 'bench', message.split(' of f16')[0])


def test_more_than_the_context():
    result = call('bench', '-m', TINY, '-p', 8, '-n', 0, '-d', 1 << 29)
    assert result.returncode == 1 and result.stdout == ''
    assert 'context' in result.stderr or 'KV memory' in result.stderr


def test_a_page_that_cannot_be_written(tmp_path):
    result = call('bench', '-m', TINY, '-p', 4, '-n', 0, '-r', 1, '--html', tmp_path / 'no/page')
    assert result.returncode == 1 and 'no/page: cannot write' in result.stderr
