# SPDX-License-Identifier: Apache-2.0
"""JSON schemas, regular expressions and GBNF as grammars, through tests/unit/grammar_walk: the JSON
Schema Test Suite, tool schemas, and random writers whose texts the jsonschema package checks.

A schema that is refused proves nothing and is skipped, but how many are is bounded. Of the others,
with objects as open as the standard has them: no invalid instance may be accepted; valid ones are,
except where docs/structured.md says that less is written (NARROWER)."""
import itertools
import json
import os
import pathlib
import random
import re
import resource
import subprocess

import jsonschema
import pytest

import fetch_test_data

ROOT = pathlib.Path(__file__).resolve().parents[2]

WALK = ROOT / os.environ.get('BUILD_DIR', 'build') / 'tests/unit/grammar_walk'
SUITE = pathlib.Path(fetch_test_data.data_dir(fetch_test_data.SUITE))


def walk(lines):
    """What grammar_walk answers to each."""
    text = ''.join(json.dumps(line) + '\n' for line in lines)
    p = subprocess.run([WALK], input=text, capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr[-2000:]
    out = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(out) == len(lines)
    return out


def valid(schema, value):
    """As the jsonschema package has it; patterns that Python cannot read say nothing."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    try:
        return jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value)
    except re.error:
        return True


def orders(value, most=24):
    """The value with its members in other orders: the schema's is one of them."""
    if isinstance(value, dict):
        found = []
        for keys in itertools.islice(itertools.permutations(value), most):
            parts = [orders(value[k], 3) for k in keys]
            for combination in itertools.islice(itertools.product(*parts), 4):
                found.append(dict(zip(keys, combination)))
        return found
    if isinstance(value, list):
        return [list(c) for c in itertools.islice(
            itertools.product(*(orders(v, 3) for v in value)), 9)]
    return [value]


def written(value):
    return [json.dumps(v, ensure_ascii=False) for v in orders(value)]


def check_random(schema, texts, what=''):
    """Each is JSON that validates."""
    for text in texts:
        assert text != 'DEAD END', (what, schema)
        if text is not None:
            assert valid(schema, json.loads(text)), (what, schema, text)


# ---- the test suite --------------------------------------------------------------------------

def suite_groups():
    if not SUITE.is_dir():
        if os.environ.get('REQUIRE_TEST_DATA') == '1':
            raise AssertionError(f'{SUITE} is not there (scripts/fetch-test-data)')
        return []
    return [(path.stem, group) for path in sorted(SUITE.glob('*.json'))
            for group in json.loads(path.read_text())]


# Valid instances that are not written: 1.0 for an integer, numbers past the digits, escapes in
# names and patterns, formats' rarer forms.
NARROWER = 36


def test_suite():
    groups = suite_groups()
    if not groups:
        pytest.skip(f'{SUITE} is not there (scripts/fetch-test-data)')
    lines, texts = [], []
    for _, group in groups:
        per_test = [written(test['data']) for test in group['tests']]
        texts.append(per_test)
        lines.append({'schema': group['schema'], 'open': True,
                      'texts': [t for one in per_test for t in one],
                      'random': 20, 'seed': len(lines), 'most': 2000})
    refused, narrower, seen = [], [], 0
    for (name, group), per_test, line, answer in zip(groups, texts, lines, walk(lines)):
        what = f'{name}: {group["description"]}'
        if 'error' in answer:
            refused.append(f'{what}: {answer["where"]}: {answer["error"]}')
            continue
        accepts = iter(answer['accepts'])
        for test, forms in zip(group['tests'], per_test):
            got = any([next(accepts) for _ in forms])
            assert not got or test['valid'] or 'format' in name, (what, test)
            seen += test['valid']
            if test['valid'] and not got:
                narrower.append((what, test['description'], test['data']))
        check_random(group['schema'], answer['random'], what)
    print('\n'.join(refused))
    print('\n'.join(map(str, narrower)))
    print(len(groups), 'schemas,', len(refused), 'refused,', seen, 'valid instances,',
          len(narrower), 'not written')
    assert len(refused) < 0.5 * len(groups)
    assert len(narrower) <= NARROWER


# ---- random schemas --------------------------------------------------------------------------

NAMES = ['a', 'b', 'kind', 'x y', 'é"', '<']
WORDS = ['', 'a', 'ab', 'x<y', 'é', '"q"', 'line\n', 'abc', '12']
PATTERNS = ['^[a-c]{1,3}$', 'b', '^(ab|cd)*$', '^\\d+$', '[^a]$']


def random_schema(rng, depth, defs):
    """A schema of the keywords that are read, small; often one that is refused or impossible."""
    kinds = ['string', 'integer', 'number', 'boolean', 'null', 'enum', 'const', 'any', 'types']
    if depth:
        kinds += ['object', 'object', 'array', 'array', 'anyOf', 'oneOf', 'allOf', 'ref']
    kind = rng.choice(kinds)
    out = {}
    sub = lambda: random_schema(rng, depth - 1, defs)
    if kind == 'string':
        out['type'] = 'string'
        if rng.random() < .3:
            out['minLength'] = rng.randrange(3)
        if rng.random() < .4:
            out['maxLength'] = rng.randrange(5)
        if rng.random() < .3:
            out['pattern'] = rng.choice(PATTERNS)
    elif kind in ('integer', 'number'):
        out['type'] = kind
        low = rng.randrange(-20, 20)
        if rng.random() < .4:
            out[rng.choice(['minimum', 'exclusiveMinimum'])] = rng.choice([low, low + .5])
        if rng.random() < .4:
            out[rng.choice(['maximum', 'exclusiveMaximum'])] = low + rng.randrange(12)
        if kind == 'integer' and rng.random() < .2:
            out['multipleOf'] = rng.randrange(1, 6)
    elif kind == 'enum':
        out['enum'] = [random_value(rng, 1) for _ in range(rng.randrange(1, 4))]
    elif kind == 'const':
        out['const'] = random_value(rng, 1)
    elif kind == 'types':
        out['type'] = rng.sample(['string', 'integer', 'boolean', 'null', 'array', 'object'], 2)
    elif kind == 'object':
        out['type'] = 'object'
        out['properties'] = {n: sub() for n in rng.sample(NAMES, rng.randrange(4))}
        out['required'] = [n for n in out['properties'] if rng.random() < .5]
        if rng.random() < .5:
            out['additionalProperties'] = rng.choice([False, True, sub()])
        if rng.random() < .2:
            out['minProperties'] = rng.randrange(2)
    elif kind == 'array':
        out['type'] = 'array'
        if rng.random() < .7:
            out['items'] = rng.choice([sub(), sub(), False])
        if rng.random() < .3:
            out['prefixItems'] = [sub() for _ in range(rng.randrange(1, 3))]
        if rng.random() < .4:
            out['minItems'] = rng.randrange(3)
        if rng.random() < .6:
            out['maxItems'] = rng.randrange(4)
    elif kind in ('anyOf', 'oneOf', 'allOf'):
        out[kind] = [sub() for _ in range(rng.randrange(1, 4))]
        if rng.random() < .3:
            out.update(random_schema(rng, 0, defs))
    elif kind == 'ref':
        out['$ref'] = '#/$defs/' + rng.choice(defs)
    elif kind in ('boolean', 'null'):
        out['type'] = kind
    return out


def random_value(rng, depth):
    kind = rng.randrange(7 if depth else 5)
    if kind == 0:
        return rng.choice(WORDS)
    if kind == 1:
        return rng.randrange(-25, 25)
    if kind == 2:
        return rng.choice([.5, -1.25, 3.0, 1e3, 0.1])
    if kind < 5:
        return rng.choice([True, False, None])
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {n: random_value(rng, depth - 1) for n in rng.sample(NAMES, rng.randrange(3))}


def altered(rng, value):
    """The value with one thing in it changed."""
    if isinstance(value, dict) and value and rng.random() < .8:
        out, name = dict(value), rng.choice(list(value))
        if rng.random() < .3:
            del out[name]
        else:
            out[name] = altered(rng, out[name])
        return out
    if isinstance(value, list) and value and rng.random() < .8:
        out, i = list(value), rng.randrange(len(value))
        if rng.random() < .3:
            del out[i]
        else:
            out[i] = altered(rng, out[i])
        return out
    if isinstance(value, str) and rng.random() < .6:
        return value[1:] if rng.random() < .5 else value + rng.choice(WORDS)
    if type(value) in (int, float) and rng.random() < .6:
        return value + rng.choice([-10, -1, 1, 10, .5])
    return random_value(rng, 2)


@pytest.mark.parametrize('seed', range(8))
def test_random_schemas(seed):
    """What is written is valid; what jsonschema rejects is not written: random values, and written
    ones with something changed."""
    rng = random.Random(seed)
    schemas = []
    for _ in range(250):
        defs = ['one', 'two']
        schema = random_schema(rng, 3, defs)
        schema['$defs'] = {n: random_schema(rng, 2, defs) for n in defs}
        schemas.append(schema)
    lines = [{'schema': s, 'open': bool(i % 2), 'random': 12, 'seed': i, 'most': 1500}
             for i, s in enumerate(schemas)]
    taken = written_texts = tried = 0
    second = []
    for schema, line, answer in zip(schemas, lines, walk(lines)):
        if 'error' in answer:
            continue
        taken += 1
        # A text of nothing at all: no value is valid.
        texts = [t for t in answer['random'] if t is not None]
        if set(texts) == {'DEAD END'}:
            continue
        written_texts += len(texts)
        check_random(schema, texts, seed)
        values = [random_value(rng, 2) for _ in range(10)]
        values += [altered(rng, json.loads(t)) for t in texts for _ in range(4)]
        second.append((line, [v for v in values if not valid(schema, v)]))
    lines = [{**line, 'random': 0, 'texts': [json.dumps(v, ensure_ascii=False) for v in bad]}
             for line, bad in second]
    for (line, bad), answer in zip(second, walk(lines)):
        for value, accepted in zip(bad, answer['accepts']):
            tried += 1
            assert not accepted, (line['schema'], value)
    assert taken > 100 and written_texts > 800 and tried > 2000, (taken, written_texts, tried)


# ---- schemas that are meant to be too much -----------------------------------------------------

def nested(n, keyword):
    out = {'type': 'integer'}
    for _ in range(n):
        out = {keyword: [out]} if keyword != 'properties' else {'properties': {'a': out}}
    return out


def doubling(n, keyword):
    """Each definition has two references to the next."""
    defs = {f'd{i}': {keyword: [{'$ref': f'#/$defs/d{i + 1}'}, {'$ref': f'#/$defs/d{i + 1}'}]}
            for i in range(n)}
    return {'$ref': '#/$defs/d0', '$defs': {**defs, f'd{n}': {'type': 'string'}}}


def crossed(n, ways, keyword='anyOf'):
    return {'allOf': [{keyword: [{'properties': {f'p{i}': {'const': k}}, 'required': [f'p{i}']}
                                 for k in range(ways)]} for i in range(n)]}


HOSTILE = {
    'deep properties': nested(190, 'properties'), 'deep anyOf': nested(190, 'anyOf'),
    'deep allOf': nested(190, 'allOf'), 'huge enum': {'enum': [f'v{i}' for i in range(200000)]},
    'huge alternatives': {'anyOf': [{'const': i} for i in range(30000)]},
    'many properties': {'properties': {f'p{i}': {} for i in range(20000)}},
    'one of many': {'oneOf': [{'properties': {'k': {'const': i}}} for i in range(2000)]},
    'anyOf doubled': doubling(40, 'anyOf'), 'allOf doubled': doubling(40, 'allOf'),
    'oneOf doubled': doubling(40, 'oneOf'), 'crossed anyOf': crossed(20, 6),
    'crossed oneOf': crossed(12, 5, 'oneOf'),
    'long pattern': {'type': 'string', 'pattern': '^' + '(a|b|cd)?' * 5000 + '$'},
    'counted pattern': {'type': 'string', 'pattern': '^((a{0,500}){0,500}){0,500}$'},
    'ambiguous pattern': {'type': 'string', 'pattern': '(a|a|aa)*(a*)*$'},
    'long strings': {'type': 'string', 'minLength': 100000, 'maxLength': 1000000},
    'long lists': {'items': {'items': {'maxItems': 100000}, 'minItems': 9999}, 'minItems': 9999},
    'refers to itself': {'$ref': '#'}, 'two that refer': {
        '$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': '#/$defs/a'}}, '$ref': '#/$defs/a'},
    'recursive anyOf': {'anyOf': [{'$ref': '#'}, {'type': 'null'}]},
    'recursive product': {'type': 'object', 'properties': {f'p{i}': {'allOf': [
        {'$ref': '#'}, {'required': [f'p{i}']}]} for i in range(12)}},
    'names': {'properties': {'n' * 3000: {}}, 'additionalProperties': True},
    'digits': {'type': 'number', 'minimum': -1e300, 'maximum': 1e300},
    'multiples': {'type': 'integer', 'multipleOf': 127, 'minimum': 0},
}


@pytest.mark.parametrize('name', HOSTILE)
def test_hostile_schemas(name):
    """Within 2 GiB and a minute of one core a grammar, or an error that says why."""
    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    line = json.dumps({'schema': HOSTILE[name], 'random': 2, 'seed': 1, 'most': 2000})
    p = subprocess.run([WALK], input=line + '\n', capture_output=True, text=True, timeout=500,
                       preexec_fn=limits)
    assert p.returncode == 0, (name, p.returncode, p.stderr[-500:])
    answer = json.loads(p.stdout)
    assert answer.get('error') or 'accepts' in answer, answer
    assert 'out of memory' not in answer.get('error', ''), answer
    print(name, answer.get('where'), answer.get('error'))
