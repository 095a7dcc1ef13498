# SPDX-License-Identifier: Apache-2.0
"""Each sampler, and chains of them, against a plain model in NumPy: every step sorts and sums all
candidates in double precision. Compared is the distribution that a token is drawn from; how often
tokens are drawn is compared with it by chi-square. Seeds are fixed."""
import json
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('BUILD_DIR', ROOT / 'build')).resolve()
PROGRAM = BUILD / 'tests/unit/sample_run'
PIECES = ['</s>', 'a', 'b', 'c', ' ', ':', 'ab', '\n', '"', '*', 'c:', ' a', 'bc', 'xy', 'x', 'y']
ENDS = [0]
OFF = {'temperature': 1, 'top_k': 0, 'top_p': 1, 'min_p': 0}
ORDER = ['penalties', 'dry', 'top_n_sigma', 'top_k', 'typ_p', 'top_p', 'min_p', 'xtc',
         'temperature']
DEFAULT = {'temperature': 0.8, 'top_k': 40, 'top_p': 0.95, 'min_p': 0.05, 'typical_p': 1,
           'top_n_sigma': -1, 'min_keep': 0, 'xtc_probability': 0, 'xtc_threshold': 0.1,
           'repeat_penalty': 1, 'frequency_penalty': 0, 'presence_penalty': 0,
           'penalty_last_n': 64, 'dry_multiplier': 0, 'dry_base': 1.75, 'dry_allowed_length': 2,
           'dry_penalty_last_n': 64, 'dynatemp_range': 0, 'dynatemp_exponent': 1, 'mirostat': 0,
           'mirostat_tau': 5, 'mirostat_eta': 0.1, 'adaptive_target': -1, 'adaptive_decay': 0.9,
           'samplers': ORDER, 'logit_bias': {},
           'dry_sequence_breakers': ['\n', ':', '"', '*']}


# ---- the model -----------------------------------------------------------------------------------
# Candidates are two arrays, ids and logits, most likely first, equal ones by id.

def ranked(ids, logits):
    at = np.lexsort((ids, -logits))
    return ids[at], logits[at]


def softmax(logits):
    e = np.exp(logits - logits.max())
    return e / e.sum()


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def penalties(ids, x, s, history):
    last = s['penalty_last_n']
    window = history[-last:] if last > 0 else history if last < 0 else []
    x = x.copy()
    for i, token in enumerate(ids):
        n = window.count(token)
        if n:
            x[i] = x[i] / s['repeat_penalty'] if x[i] > 0 else x[i] * s['repeat_penalty']
            x[i] -= n * s['frequency_penalty'] + s['presence_penalty']
    return ids, x


def encode(text, pieces):
    out = []
    while text:
        best = max((p for p in pieces if text.startswith(p)), key=len, default=None)
        if best:
            out.append(pieces.index(best))
        text = text[len(best or 'x'):]
    return out


def heads(pieces, breakers):
    """Of each token the lists of tokens that complete a breaker which begins in it."""
    found = [[] for _ in pieces]
    for token, piece in enumerate(pieces):
        for text in breakers:
            if text in piece:
                found[token].append([])
                continue
            for n in range(1, len(text)):
                if piece.endswith(text[:n]):
                    found[token].append(encode(text[n:], pieces)[:20])
    return found


def dry(ids, x, s, history):
    last, allowed = s['dry_penalty_last_n'], s['dry_allowed_length']
    if s['dry_multiplier'] == 0 or s['dry_base'] < 1 or last == 0:
        return ids, x
    window = history[-last:] if last > 0 else history
    n = len(window)
    if n <= allowed:
        return ids, x
    found = heads(PIECES, s['dry_sequence_breakers'])
    limit = n
    for i in range(n):
        after = window[n - i:]
        fits = [len(t) for t in found[window[n - 1 - i]] if after[:len(t)] == t]
        if fits:
            limit = i - max(fits)
            break
    if limit < allowed:
        return ids, x
    lengths = {}
    for at in range(1, n):  # window[at] follows what ends at `at`
        same = 0
        while same < at and window[at - 1 - same] == window[n - 1 - same]:
            same += 1
        same = min(same, limit)
        if same >= allowed:
            lengths[window[at]] = max(lengths.get(window[at], 0), same)
    x = x.copy()
    most = int(88.7228391 / math.log(s['dry_base'])) if s['dry_base'] > 1.000001 else 10**9
    for i, token in enumerate(ids):
        if token in lengths and [] not in found[token]:
            power = min(lengths[token] - allowed, most)
            x[i] -= s['dry_multiplier'] * s['dry_base'] ** power
    return ids, x


def top_n_sigma(ids, x, s, history):
    if s['top_n_sigma'] <= 0:
        return ids, x
    keep = x >= x.max() - s['top_n_sigma'] * x.std()
    return ids[keep], x[keep]


def top_k(ids, x, s, history):
    ids, x = ranked(ids, x)
    return (ids[:s['top_k']], x[:s['top_k']]) if s['top_k'] > 0 else (ids, x)


def typ_p(ids, x, s, history):
    if s['typical_p'] >= 1:
        return ids, x
    ids, x = ranked(ids, x)
    p = softmax(x)
    at = np.argsort(np.abs(-np.log(p) - entropy(p)), kind='stable')
    n = int(np.argmax(np.cumsum(p[at]) > s['typical_p'])) + 1
    at = at[:max(n, s['min_keep'])]
    return ids[at], x[at]


def top_p(ids, x, s, history):
    if s['top_p'] >= 1:
        return ids, x
    ids, x = ranked(ids, x)
    n = int(np.argmax(np.cumsum(softmax(x)) >= s['top_p'])) + 1
    n = max(n, s['min_keep'])
    return ids[:n], x[:n]


def min_p(ids, x, s, history):
    if s['min_p'] <= 0:
        return ids, x
    ids, x = ranked(ids, x)
    n = max(int((x >= x[0] + math.log(s['min_p'])).sum()), s['min_keep'])
    return ids[:n], x[:n]


def xtc(ids, x, s, history):
    """As if it always happened: only probabilities 0 and 1 are compared."""
    if s['xtc_probability'] <= 0 or s['xtc_threshold'] > 0.5:
        return ids, x
    ids, x = ranked(ids, x)
    above = int((softmax(x) >= s['xtc_threshold']).sum())
    if above < 2 or len(x) - (above - 1) < s['min_keep']:
        return ids, x
    return ids[above - 1:], x[above - 1:]


def temperature(ids, x, s, history):
    t = s['temperature']
    if s['dynatemp_range'] > 0 and len(x) > 1:
        h = entropy(softmax(x)) / math.log(len(x))
        low, high = max(0, t - s['dynatemp_range']), t + s['dynatemp_range']
        t = low + (high - low) * h ** s['dynatemp_exponent']
    ids, x = ranked(ids, x)
    return (ids, x / t) if t > 0 else (ids[:1], x[:1])


def infill(ids, x, s, history):
    ids, x = ranked(ids, x)
    p = softmax(x)
    ends = np.isin(ids, ENDS)
    if 3 * p[ends].sum() * len(p) > p[~ends].sum():
        return ids[ends], x[ends]
    text = ['' if e else PIECES[i] for i, e in zip(ids, ends)]
    gone = [False] * len(p)
    for i in range(len(p)):
        for j in range(len(p)):
            if gone[i]:
                break
            if i == j or gone[j] or not text[i] or not text[j].startswith(text[i]):
                continue
            to, of = (j, i) if p[j] > p[i] else (i, j)
            p[to] += p[of]
            p[of], gone[of] = 0, True
    keep = (p >= 0.2) | ends
    words = (keep & ~ends).sum()
    if words == 0:
        return np.array(ENDS[:1]), np.array([0.])
    p = p / p[keep].sum()
    keep &= (p >= 1 / (words + 1)) | ends
    return ids[keep], x[keep]


class Mirostat:
    def __init__(self, s):
        self.s, self.mu = s, 2 * s['mirostat_tau']

    def apply(self, ids, x):
        ids, x = ranked(*temperature(ids, x, self.s, []))
        if len(x) < 2:
            return ids, x
        p = softmax(x)
        if self.s['mirostat'] == 2:
            n = max(1, int((-np.log2(p) <= self.mu).sum()))
            return ids[:n], x[:n]
        m = min(100, len(x)) - 1
        t = np.log((np.arange(m) + 2) / (np.arange(m) + 1))
        b = x[:m] - x[1:m + 1]
        exponent = (t * b).sum() / (t * t).sum()
        e = exponent - 1
        k = (e * 2 ** self.mu / (1 - len(PIECES) ** -e)) ** (1 / exponent)
        n = max(1, int(min(k, len(x))))
        return ids[:n], x[:n]

    def drawn(self, p):
        self.mu -= self.s['mirostat_eta'] * (-math.log2(p) - self.s['mirostat_tau'])


class Adaptive:
    def __init__(self, s):
        self.s = s
        self.weight = 1 / (1 - s['adaptive_decay'])
        self.sum = s['adaptive_target'] * self.weight

    def apply(self, ids, x):
        self.p = dict(zip(ids.tolist(), softmax(x)))
        target = min(1, max(0, 2 * self.s['adaptive_target'] - self.sum / self.weight))
        d = np.abs(softmax(x) - target) / 0.3
        return ids, 5 - 10 * d * d / (1 + d)

    def drawn(self, token):
        self.sum = self.p[token] + self.s['adaptive_decay'] * self.sum
        self.weight = 1 + self.s['adaptive_decay'] * self.weight


def start(row, s):
    x = np.array([-np.inf if v is None else v for v in row])
    for token, bias in s['logit_bias'].items():
        x[int(token)] += -np.inf if bias is False else bias
    ids = np.flatnonzero(x > -np.inf)
    return ids, x[ids]


def predict(case, steps):
    """Each step's (ids, probabilities); what was drawn is the program's word."""
    s = DEFAULT | case['settings']
    history = list(case['history'])
    mirostat = Mirostat(s)
    adaptive = Adaptive(s) if s['adaptive_target'] >= 0 and 'adaptive_p' in s['samplers'] else None
    for row, got in zip(case['rows'], steps):
        ids, x = start(row, s)
        if s['mirostat']:
            ids, x = mirostat.apply(ids, x)
        else:
            for name in s['samplers']:
                if name != 'adaptive_p':
                    ids, x = globals()[name](ids, x, s, history)
        if adaptive:
            ids, x = adaptive.apply(ids, x)
        ids, x = ranked(ids, x)
        p = softmax(x)
        yield ids, p
        token = got['id']
        if s['mirostat']:
            mirostat.drawn(p[ids.tolist().index(token)])
        if adaptive:
            adaptive.drawn(token)
        history.append(token)


# ---- comparing -----------------------------------------------------------------------------------

def run(tmp_path, cases, pieces=PIECES):
    path = tmp_path / 'cases.json'
    path.write_text(json.dumps({'pieces': pieces, 'ends': ENDS, 'cases': cases}))
    done = subprocess.run([PROGRAM, path], capture_output=True, check=True, timeout=120)
    return json.loads(done.stdout)


def compare(tmp_path, cases):
    for case, out in zip(cases, run(tmp_path, cases), strict=True):
        assert 'error' not in out, (case['settings'], out)
        for i, (ids, p) in enumerate(predict(case, out['steps'])):
            got = out['steps'][i]
            where = case['settings'], i
            mine, theirs = dict(zip(ids.tolist(), p)), dict(zip(got['ids'], got['logprobs']))
            # a candidate whose probability is 0 in floats may be there or not
            assert {k for k, v in mine.items() if v > 1e-30} <= set(theirs), where
            for token, logprob in theirs.items():
                assert abs(math.exp(logprob) - mine.get(token, 0)) < 2e-5, (where, token)
            assert got['id'] in mine, where


def rows_of(random, n, spread=3.0):
    return [[float(np.float32(v)) for v in random.normal(0, spread, len(PIECES))]
            for _ in range(n)]


def cases_of(random, settings, n=25, history=40, words=range(6), spread=3.0, steps=1):
    out = []
    for i in range(n):
        given = {k: v(random) if callable(v) else v for k, v in settings.items()}
        out.append({'settings': OFF | given, 'seed': int(random.integers(2**31)),
                    'history': random.choice(words, random.integers(0, history)).tolist(),
                    'rows': rows_of(random, steps, spread if i % 2 else spread / 6)})
    return out


def between(low, high):
    return lambda random: round(float(random.uniform(low, high)), 4)


def whole(low, high):
    return lambda random: int(random.integers(low, high + 1))


ALONE = {
    'temperature': {'temperature': between(0.1, 3)},
    'greedy': {'temperature': 0},
    'dynamic temperature': {'temperature': between(0.2, 1.5), 'dynatemp_range': between(0.1, 2),
                            'dynatemp_exponent': between(0.3, 3)},
    'top_k': {'top_k': whole(1, 20)},
    'top_p': {'top_p': between(0, 1), 'min_keep': whole(0, 3)},
    'min_p': {'min_p': between(0.001, 0.9), 'min_keep': whole(0, 3)},
    'typ_p': {'typical_p': between(0.05, 0.99), 'min_keep': whole(0, 3)},
    'top_n_sigma': {'top_n_sigma': between(0.1, 3)},
    'xtc': {'xtc_probability': 1, 'xtc_threshold': between(0.01, 0.5), 'min_keep': whole(0, 10)},
    'penalties': {'repeat_penalty': between(0.5, 2), 'frequency_penalty': between(-0.5, 1),
                  'presence_penalty': between(-0.5, 1), 'penalty_last_n': whole(-1, 30)},
    'dry': {'dry_multiplier': between(0.1, 2), 'dry_base': between(1, 3),
            'dry_allowed_length': whole(0, 4), 'dry_penalty_last_n': whole(-1, 60)},
    'dry, no breakers': {'dry_multiplier': 1, 'dry_sequence_breakers': [],
                         'dry_penalty_last_n': -1},
    'dry, long breakers': {'dry_multiplier': 1, 'dry_penalty_last_n': -1,
                           'dry_sequence_breakers': ['abc', 'bcab', ' ab', 'c:', 'bb a']},
    'logit_bias': {'logit_bias': {'1': 3, '2': False, '15': -2.5}, 'top_k': whole(1, 20)},
    'infill': {'samplers': ['top_k', 'infill'], 'top_k': whole(4, 20)},
}


@pytest.mark.parametrize('name', ALONE)
def test_alone(tmp_path, name):
    random = np.random.default_rng(sum(name.encode()))
    words = range(3 if 'dry' in name else 6)
    compare(tmp_path, cases_of(random, ALONE[name], n=60, words=words))
    if 'dry' in name:  # with breakers among the words, in one token or several
        words = [1, 2, 2, 4, 6, 10, 11, 12]
        compare(tmp_path, cases_of(random, ALONE[name], n=150, words=words))


@pytest.mark.parametrize('settings, n', [
    ({'top_p': 0.5}, 8), ({'typical_p': 0.5}, 9), ({'min_p': 1}, 16), ({'top_k': 5}, 5)])
def test_equal_candidates(tmp_path, settings, n):
    """Where a sum meets the limit, top_p is content and typ_p wants more; lower ids come first."""
    case = {'settings': OFF | settings, 'seed': 1, 'history': [], 'rows': [[0.5] * 16]}
    ids = run(tmp_path, [case])[0]['steps'][0]['ids']
    assert ids == list(range(n))


@pytest.mark.parametrize('settings', [
    {'mirostat': 1, 'mirostat_tau': 2, 'mirostat_eta': 0.3, 'temperature': 0.9},
    {'mirostat': 2, 'mirostat_tau': 1.5, 'mirostat_eta': 0.5, 'temperature': 1.2},
    {'samplers': ['adaptive_p', 'min_p'], 'adaptive_target': 0.3, 'min_p': 0.02},
    {'samplers': ['adaptive_p'], 'adaptive_target': 0.6, 'adaptive_decay': 0.5},
], ids=['mirostat', 'mirostat 2', 'adaptive_p', 'adaptive_p alone'])
def test_those_that_learn(tmp_path, settings):
    compare(tmp_path, cases_of(np.random.default_rng(8), settings, n=20, steps=12))


EVERY = {'temperature': between(0.3, 2), 'top_k': whole(2, 20), 'top_p': between(0.3, 1),
         'min_p': between(0, 0.3), 'typical_p': between(0.5, 1), 'top_n_sigma': between(0.5, 4),
         'repeat_penalty': between(0.8, 1.5), 'frequency_penalty': between(0, 0.3),
         'dry_multiplier': between(0, 1), 'min_keep': whole(0, 4), 'xtc_probability': 1,
         'xtc_threshold': between(0.05, 0.6), 'dynatemp_range': between(0, 0.3)}


def test_all_in_the_default_order(tmp_path):
    compare(tmp_path, cases_of(np.random.default_rng(9), EVERY, n=200, words=range(5)))


def test_all_in_any_order(tmp_path):
    def order(random):
        return [str(name) for name in random.permutation(ORDER)[:random.integers(0, 10)]]
    compare(tmp_path, cases_of(np.random.default_rng(10), EVERY | {'samplers': order}, n=300,
                               words=range(5)))


@pytest.mark.parametrize('settings', [
    {'temperature': 0.7}, {'temperature': 1.5, 'top_k': 6}, {'top_p': 0.8}, {'min_p': 0.2},
    {'typical_p': 0.6}, {'top_n_sigma': 1}, {'temperature': 0.5, 'dynatemp_range': 0.4},
    {'logit_bias': {'3': 2, '1': False}},
], ids=lambda s: ' '.join(s))
def test_draws(tmp_path, settings):
    random = np.random.default_rng(11)
    case = cases_of(random, settings, n=1, history=1, spread=6)[0]
    step = run(tmp_path, [case])[0]['steps']
    (ids, p), = predict(case, step)
    assert_drawn(tmp_path, case, dict(zip(ids.tolist(), p)))


def test_draws_of_xtc(tmp_path):
    """It happens in as many draws as it should, and neither knows of the other's numbers."""
    random = np.random.default_rng(12)
    case = cases_of(random, {'xtc_probability': 0.3, 'xtc_threshold': 0.1}, n=1, history=1)[0]
    want = {i: 0.0 for i in range(len(PIECES))}
    for chance, probability in (0.3, 1), (0.7, 0):
        ids, x = start(case['rows'][0], DEFAULT)
        ids, x = xtc(ids, x, DEFAULT | {'xtc_probability': probability}, [])
        for token, p in zip(ids.tolist(), softmax(x)):
            want[token] += chance * p
    assert_drawn(tmp_path, case, want)


def assert_drawn(tmp_path, case, want):
    draws = 60000
    counts = run(tmp_path, [case | {'draws': draws}])[0]['counts']
    chi = freedom = 0
    for token, count in enumerate(counts):
        p = want.get(token, 0)
        if p * draws < 5:  # too few for the statistic
            assert count < 30
            continue
        chi += (count - p * draws) ** 2 / (p * draws)
        freedom += 1
    assert freedom > 2 and chi < freedom - 1 + 5 * math.sqrt(2 * freedom), (chi, freedom)


def test_a_vocabulary_of_many(tmp_path):
    """Large enough for the ways around sorting: blocks, bands and quickselect."""
    random = np.random.default_rng(13)
    pieces = [f't{i}' for i in range(20000)]
    cases = []
    for i, settings in enumerate([{'top_k': 40}, {'top_k': 5000}, {'top_p': 0.9}, {'min_p': 0.1},
                                  {'typical_p': 0.3}, {'typical_p': 0.9}, {'top_n_sigma': 1.5},
                                  {'top_p': 0.99, 'min_keep': 9000},
                                  {'min_p': 0.5, 'min_keep': 700}, {'typical_p': 0.2,
                                                                    'min_keep': 6000}] * 3):
        spread = (0.1, 1, 4)[i // 10]
        row = random.normal(0, spread, len(pieces)).astype(np.float32)
        if i % 2:
            row = np.round(row * 4) / 4  # many equal ones
        cases.append({'settings': OFF | settings, 'seed': i, 'history': [],
                      'rows': [[float(v) for v in row]]})
    for case, out in zip(cases, run(tmp_path, cases, pieces), strict=True):
        (ids, p), = predict(case, out['steps'])
        got = out['steps'][0]
        n = len(ids)
        assert abs(len(got['ids']) - n) <= max(1, n // 1000), case['settings']
        same = min(n, len(got['ids'])) - 2
        if 'typical_p' not in case['settings']:
            assert got['ids'][:same] == ids[:same].tolist(), case['settings']
        assert np.allclose(np.exp(got['logprobs'][:same]), p[:same], rtol=2e-3, atol=1e-7)


def test_errors_name_the_field(tmp_path):
    for settings, words in [({'dry_multiplier': 1, 'dry_sequence_breakers': ['x' * 41]},
                             'dry_sequence_breakers: '),
                            ({'logit_bias': {'16': 1}}, 'logit_bias: entry 0: token 16 '),
                            ({'logit_bias': {'?': 1}}, 'logit_bias: entry 0: the text has no')]:
        out = run(tmp_path, [{'settings': settings, 'seed': 0, 'history': [], 'rows': []}])[0]
        assert out['error'].startswith(words), out
