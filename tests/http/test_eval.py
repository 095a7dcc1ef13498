# SPDX-License-Identifier: Apache-2.0
"""`1bit eval` from outside, on the tiny model: figures against each other, resuming, and messages.
The last ones take the default model."""
import json
import math
import pathlib
import re

import pytest

from test_cli import ROOT, call, fails, model  # noqa: F401 (model is a fixture)

TINY = ROOT / 'tests/golden/tiny.gguf'
QUESTIONS = [
    {'context': 'The capital of France is', 'choices': [' Paris', ' a banana', ' Berlin'],
     'answer': 0},
    {'context': 'Two plus two is', 'choices': [' purple', ' four'], 'answer': 1},
    {'context': 'Water is made of hydrogen and', 'choices': [' oxygen', ' music', ' hats', ' tin'],
     'answer': 0},
]


@pytest.fixture(scope='module')
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp('eval') / 'text.txt'
    path.write_text((ROOT / 'README.md').read_text()[:4000])
    return path


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / 'q.jsonl'
    path.write_text('\n'.join(map(json.dumps, QUESTIONS)) + '\n\n')
    return path


def run(*words, **options):
    result = call('eval', *words, '--json', **options)
    assert result.returncode == 0 and result.stderr == '', result
    return json.loads(result.stdout)


def perplexity(text, *words, model=TINY, **options):
    return run('perplexity', '-m', model, '-f', text, *words, **options)


# ---- perplexity ----------------------------------------------------------------------------------

def test_perplexity(text):
    out = perplexity(text, '--ctx', 32, '--chunks', 6)
    assert (out['chunks'], out['ctx'], out['scored'], out['stride']) == (6, 32, 6 * 15, 0)
    value, nll = out['perplexity'], out['nll']
    assert value['value'] == pytest.approx(math.exp(nll['value']))
    assert value['error'] == pytest.approx(value['value'] * nll['error'])
    assert out['running'][-1] == pytest.approx(value['value']) and len(out['running']) == 6
    printed = call('eval', 'perplexity', '-m', TINY, '-f', text, '--ctx', 32, '--chunks', 6).stdout
    assert f'perplexity {value["value"]:.4f} +/- ' in printed
    all_of_it = perplexity(text, '--ctx', 32)
    assert all_of_it['chunks'] == all_of_it['tokens'] // 32
    assert all_of_it['running'][:6] == out['running']


def test_perplexity_obeys_the_law(text):
    one = perplexity(text, '--ctx', 48, '--chunks', 7, '-t', 1)
    two = perplexity(text, '--ctx', 48, '--chunks', 7, '-t', 2)
    assert one['running'] == two['running']
    ref = perplexity(text, '--ctx', 48, '--chunks', 7, '--device', 'ref')
    assert ref['nll']['value'] == pytest.approx(one['nll']['value'], abs=0.02)


def test_perplexity_with_a_stride(text):
    out = perplexity(text, '--ctx', 32, '--stride', 8)
    assert out['chunks'] == (out['tokens'] - 32) // 8 + 1
    assert out['scored'] == out['chunks'] * 8


def test_perplexity_resumes(text, tmp_path):
    journal = tmp_path / 'journal'
    words = ['--ctx', 32, '--resume', journal]
    first = perplexity(text, *words, '--chunks', 4)
    done = journal.read_text()
    assert len(done.splitlines()) == 1 + 4
    journal.write_text(done[:-20])  # killed while writing the last
    again = perplexity(text, *words, '--chunks', 4)
    assert again['nll'] == first['nll'] and journal.read_text() == done
    more = perplexity(text, *words, '--chunks', 8, '-t', 1)  # threads change no result
    assert more['running'] == perplexity(text, '--ctx', 32, '--chunks', 8)['running']
    journal.write_text(done.replace('"chunk":2', '"chunk":3'))
    fails(call('eval', 'perplexity', '-m', TINY, '-f', text, *words), 1, 'eval',
          f'{journal}: line 4 is no record of this run')
    journal.write_text('nonsense\n')
    fails(call('eval', 'perplexity', '-m', TINY, '-f', text, *words), 1, 'eval', 'no JSON object')
    journal.write_text(done)
    fails(call('eval', 'perplexity', '-m', TINY, '-f', text, '--ctx', 64, '--resume', journal), 1,
          'eval', 'another model, text or setting')


# ---- divergence ----------------------------------------------------------------------------------

def kld(*words, **options):
    return run('kld', '-m', TINY, *words, **options)


def test_kld(text, tmp_path):
    table = tmp_path / 'ref.lpt'
    save = ['-f', text, '--ctx', 32, '--chunks', 6, '--save', table, '--device', 'ref',
            '--kv-type', 'f32']
    assert kld(*save)['found'] == 0
    whole = table.read_bytes()
    table.write_bytes(whole[:len(whole) * 2 // 3])
    assert 0 < kld(*save)['found'] < 6 and table.read_bytes() == whole
    assert kld(*save)['found'] == 6 and table.read_bytes() == whole

    same = kld('--ref', table, '--device', 'ref', '--kv-type', 'f32')
    assert same['chunks'] == 6 and same['scored'] == 90
    assert abs(same['kld']['value']) < 1e-5 and same['same_top']['value'] == 1
    assert same['ratio']['value'] == pytest.approx(1, abs=1e-6)
    assert same['perplexity']['value'] == pytest.approx(same['perplexity_ref']['value'])

    other = kld('--ref', table)
    assert 1e-5 < other['kld']['value'] < 0.01 and other['kld']['error'] > 0
    spread = other['kld_spread']
    order = ['min', '0.1%', '1%', '5%', '10%', 'median', '90%', '95%', '99%', '99.9%', 'max']
    assert [spread[k] for k in order] == sorted(spread[k] for k in order)
    assert other['perplexity_ref'] == same['perplexity_ref']
    plain = perplexity(text, '--ctx', 32, '--chunks', 6)
    assert other['perplexity']['value'] == pytest.approx(plain['perplexity']['value'])

    journal = tmp_path / 'journal'
    kld('--ref', table, '--chunks', 2, '--resume', journal)
    assert kld('--ref', table, '--resume', journal) == other
    printed = call('eval', 'kld', '-m', TINY, '--ref', table).stdout
    assert re.search(r'^mean KLD +0\.\d+ \+/- +0\.\d+$', printed, re.M)
    assert 'same top token' in printed


def test_kld_refuses(text, tmp_path):
    table = tmp_path / 'ref.lpt'
    save = ['-m', TINY, '-f', text, '--ctx', 32, '--chunks', 3]
    assert call('eval', 'kld', *save, '--save', table).returncode == 0
    whole = table.read_bytes()
    ref = ['eval', 'kld', '-m', TINY, '--ref', table]
    table.write_bytes(whole[:-1])
    fails(call(*ref), 1, 'eval', 'it holds 2 of 3 chunks')
    assert call(*ref, '--chunks', 2).returncode == 0
    broken = bytearray(whole)
    broken[-5] ^= 1
    table.write_bytes(broken)
    fails(call(*ref), 1, 'eval', "a chunk's checksum is wrong")
    table.write_bytes(b'something else' * 100)
    fails(call(*ref), 1, 'eval', 'this is no table of log probabilities')
    fails(call('eval', 'kld', *save, '--save', table), 1, 'eval', 'this is no table')
    table.write_bytes(whole)
    fails(call('eval', 'kld', *save, '--chunks', 2, '--save', table), 1, 'eval',
          'another model, text or setting')
    fails(call(*ref, '-f', text), 2, 'eval', '--ref holds the text')
    fails(call('eval', 'kld', '-m', TINY), 2, 'eval', '--save FILE')
    fails(call('eval', 'kld', '-m', TINY, '--save', table), 2, 'eval', 'needs a text')


# ---- choice --------------------------------------------------------------------------------------

def test_choice(questions, tmp_path):
    words = ['choice', '-m', TINY, '-f', questions]
    out = run(*words)
    assert out['questions'] == 3
    assert out['chance'] == pytest.approx((1 / 3 + 1 / 2 + 1 / 4) / 3)
    assert [len(s['log']) for s in out['scores']] == [3, 2, 4]
    assert out['scores'][0]['bytes'] == [6, 9, 7]
    right = [max(range(len(s['log'])), key=lambda i: s['log'][i]) == s['answer']
             for s in out['scores']]
    assert out['sum']['value'] == pytest.approx(sum(right) / 3)
    journal = tmp_path / 'journal'
    run(*words, '--chunks', 2, '--resume', journal)
    assert run(*words, '--resume', journal) == out
    assert 'right by a token' in call('eval', *words).stdout
    # Questions do not change each other's scores.
    questions.write_text(json.dumps(QUESTIONS[2]))
    assert run(*words)['scores'][0]['log'] == out['scores'][2]['log']


def test_choice_with_an_ending(questions):
    """Only the ending is scored, so equal endings after equal words are equally likely."""
    questions.write_text(json.dumps({'context': 'The cup broke because the', 'answer': 1,
                                     'choices': [' cup', ' cup', ' table'],
                                     'ending': ' was made of glass.'}))
    score = run('choice', '-m', TINY, '-f', questions)['scores'][0]
    assert score['log'][0] == score['log'][1] != score['log'][2]
    assert score['bytes'] == [len(' was made of glass.')] * 3


@pytest.mark.parametrize('line, message', [
    ('{"context": "a"', 'line 2: no JSON'),
    ('{"context": "a", "choices": ["b"], "answer": 0}', 'line 2, choices: '),
    ('{"context": "a", "choices": ["b", "c"], "answer": 7}', 'line 2, answer: '),
    (json.dumps({'context': 'a ' * 20000, 'choices': ['b', 'c'], 'answer': 0}),
     'line 2: choice 0 has'),
])
def test_choice_refuses(questions, line, message):
    questions.write_text(json.dumps(QUESTIONS[0]) + '\n' + line + '\n')
    result = call('eval', 'choice', '-m', TINY, '-f', questions)
    fails(result, 1, 'eval', message)
    assert str(questions) in result.stderr


# ---- words ---------------------------------------------------------------------------------------

def test_words(text, tmp_path):
    fails(call('eval'), 2, 'eval', 'perplexity|kld|choice is missing')
    fails(call('eval', 'speed'), 2, 'eval', '"speed" is none of')
    fails(call('eval', 'perplexity'), 2, 'eval', 'needs a text')
    fails(call('eval', 'choice'), 2, 'eval', 'needs questions')
    for kind, option in [('perplexity', '--save'), ('perplexity', '--ref'), ('choice', '--save'),
                         ('choice', '--ref'), ('choice', '--stride')]:
        fails(call('eval', kind, '-f', text, option, 64), 2, 'eval',
              f'{option}: not an option of {kind}')
    short = tmp_path / 'short.txt'
    short.write_text('ab\n')
    fails(call('eval', 'perplexity', '-m', TINY, '-f', short), 1, 'eval', 'a chunk takes 512')
    short.write_text('\n')
    fails(call('eval', 'perplexity', '-m', TINY, '-f', short), 1, 'eval', 'there is no text')
    fails(call('eval', 'perplexity', '-m', TINY, '-f', text, '--stride', 512), 1, 'eval',
          'stride of 512')


# ---- the real model ------------------------------------------------------------------------------

def test_real_perplexity_and_choice(model, text, questions):  # noqa: F811
    out = perplexity(text, '--ctx', 128, '--chunks', 3, model=model)
    assert 5 < out['perplexity']['value'] < 100
    assert run('choice', '-m', model, '-f', questions)['sum']['value'] == 1


def test_real_kld(model, text, tmp_path):  # noqa: F811
    table = tmp_path / 'ref.lpt'
    run('kld', '-m', model, '-f', text, '--ctx', 64, '--chunks', 2, '--save', table)
    out = run('kld', '-m', model, '--ref', table)
    assert abs(out['kld']['value']) < 1e-5 and out['same_top']['value'] == 1
