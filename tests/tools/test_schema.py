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
import re
import subprocess

import jsonschema
import pytest

from conftest import ROOT
import fetch_test_data

WALK = ROOT / os.environ.get('BUILD_DIR', 'build') / 'tests/unit/grammar_walk'
SUITE = pathlib.Path(fetch_test_data.data_dir('jsonschema'))


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
NARROWER = 0.08


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
            assert not got or test['valid'], (what, test)
            seen += test['valid']
            if test['valid'] and not got:
                narrower.append((what, test['description'], test['data']))
        check_random(group['schema'], answer['random'], what)
    print('\n'.join(refused))
    print('\n'.join(map(str, narrower)))
    print(len(groups), 'schemas,', len(refused), 'refused,', seen, 'valid instances,',
          len(narrower), 'not written')
    assert len(refused) < 0.5 * len(groups)
    assert len(narrower) < NARROWER * seen
