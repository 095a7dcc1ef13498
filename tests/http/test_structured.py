# SPDX-License-Identifier: Apache-2.0
"""Answers that keep to a grammar: what requests may ask for and how bad ones are refused, the tiny
model of random weights as a writer that knows nothing, a real model through the openai package."""
import json
import pathlib
import re
import subprocess

import jsonschema
import openai
import pytest

from harness import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / 'tests/golden/tiny.gguf'
PERSON = {
    'type': 'object',
    'properties': {
        'name': {'type': 'string', 'minLength': 1, 'maxLength': 20},
        'age': {'type': 'integer', 'minimum': 0, 'maximum': 120},
        'kind': {'enum': ['cat', 'dog', None]},
        'tags': {'type': 'array', 'items': {'type': 'string', 'pattern': '^[a-z]{2,6}$'},
                 'minItems': 1, 'maxItems': 3},
    },
    'required': ['name', 'age', 'kind', 'tags'], 'additionalProperties': False,
}


def run(*words, model=TINY):
    return subprocess.run([BUILD / 'src/cli/1bit', 'run', '-m', model, *map(str, words)],
                          capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                          encoding='utf-8', errors='replace')


# ---- requests ------------------------------------------------------------------------------------

def form(schema, **more):
    return {'response_format': {'type': 'json_schema',
                                'json_schema': {'name': 'x', 'schema': schema, **more}}}


BAD = [
    (form({'properties': {'a/b': {'not': {}}}}),
     'response_format.json_schema.schema#/properties/a~1b/not', 'not supported'),
    (form({'minimum': 'x'}), 'response_format.json_schema.schema#/minimum', 'must be a number'),
    (form({'nonsense': 1}), 'response_format.json_schema.schema#/nonsense', 'not known'),
    (form({'$ref': '#/$defs/x'}), 'response_format.json_schema.schema#/$ref', 'there is no'),
    (form('x'), 'response_format.json_schema.schema', 'a JSON schema'),
    (form({}, strict=1), 'response_format.json_schema.strict', 'true or false'),
    ({'response_format': {'type': 'json_schema'}}, 'response_format.json_schema', 'an object'),
    ({'response_format': {'type': 'json_schema', 'json_schema': {'name': 'x'}}},
     'response_format.json_schema.schema', 'a JSON schema'),
    ({'json_schema': {'type': 'strin'}}, 'json_schema#/type', 'there is no type "strin"'),
    ({'grammar': 'root ::= "a'}, 'grammar', 'line 1, column 12'),
    ({'guided_regex': 'a(?=b)'}, 'guided_regex', 'lookahead'),
    ({'structured_outputs': {'regex': '('}}, 'structured_outputs.regex', 'not closed'),
    ({'structured_outputs': {'choice': ['a']}}, 'structured_outputs', 'not "choice"'),
    ({'grammar': 'root ::= "a"', 'guided_regex': 'a'}, 'guided_regex', 'excludes grammar'),
]


@pytest.mark.parametrize('fields, where, said', BAD)
def test_bad_forms_are_refused_by_place(fake, fields, where, said):
    for reply in fake.complete('x', **fields), fake.chat('x', **fields):
        assert reply.status == 400, reply.body
        error = reply.json['error']
        assert error['param'] == where and said in error['message'], error


@pytest.mark.parametrize('fields', [
    form(PERSON, strict=True), form(PERSON, strict=None), {'json_schema': PERSON},
    {'response_format': {'type': 'json_object'}}, {'guided_regex': 'a+'},
    {'response_format': {'type': 'json_object', 'schema': PERSON}},
    {'structured_outputs': {'json': PERSON, 'regex': None}},
    {'structured_outputs': {'grammar': 'root ::= "x"'}, 'json_compact': True},
])
def test_good_forms_are_taken(fake, fields):
    for reply in fake.complete('x', **fields), fake.chat('x', **fields):
        assert reply.status == 200, reply.body


# ---- a writer that knows nothing -----------------------------------------------------------------

def test_random_weights_write_what_is_valid():
    for seed in range(12):
        words = ['--json-compact'] if seed % 3 == 0 else []
        result = run('--raw', '-p', 'x', '--temp', 5, '--top-k', 0, '--top-p', 1, '--min-p', 0,
                     '--seed', seed, '--json-schema', json.dumps(PERSON), *words)
        assert result.returncode == 0, result.stderr
        jsonschema.validate(json.loads(result.stdout), PERSON)
        assert not words or not re.search(r'[,:{\[]\s', re.sub(r'"(\\.|[^"\\])*"', '""',
                                                              result.stdout.rstrip('\n')))


def test_the_same_whatever_runs_beside():
    words = ['--raw', '-p', 'x', '--seed', 4, '--temp', 3, '--regex', '[a-z]{5,9} ([0-9]{2}|x){3}']
    texts = {run(*words, '-t', threads).stdout for threads in (1, 2, 2)}
    assert len(texts) == 1
    assert re.fullmatch(r'[a-z]{5,9} ([0-9]{2}|x){3}\n', texts.pop())


def test_ends_when_nothing_may_follow():
    result = run('--raw', '-p', 'x', '--grammar', 'root ::= "yes" | "no"', '-n', 50)
    assert result.stdout in ('yes\n', 'no\n') and result.returncode == 0


@pytest.mark.parametrize('words, said', [
    (['--grammar', 'root ::= x'], '--grammar: rule "x" is not defined'),
    (['--regex', '(a'], '--regex: regular expression, column 1: this group is not closed'),
    (['--json-schema', '{"items": {"not": 1}}'], '--json-schema#/items/not: '),
    (['--json-schema', '{'], '--json-schema: the JSON schema is not JSON'),
    (['--grammar', 'x', '--regex', 'x'], 'exclude each other'),
    (['--json-compact'], '--json-compact is for --json-schema'),
])
def test_bad_options(words, said):
    result = run('--raw', '-p', 'x', *words)
    assert result.returncode == 2 and said in result.stderr and not result.stdout


def test_files(tmp_path):
    (tmp_path / 's.json').write_text(json.dumps({'const': {'a': [1, 2.5]}}))
    (tmp_path / 'g.gbnf').write_text('root ::= "a"{3} # three\n')
    assert json.loads(run('--raw', '-p', 'x', '--json-schema-file', tmp_path / 's.json').stdout) \
        == {'a': [1, 2.5]}
    assert run('--raw', '-p', 'x', '--grammar-file', tmp_path / 'g.gbnf').stdout == 'aaa\n'
    assert run('--raw', '-p', 'x', '--grammar-file', tmp_path / 'none').returncode == 1


# ---- a real model --------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def client(real):
    return openai.OpenAI(base_url=real.url + '/v1', api_key='none', max_retries=0)


def test_response_format(client):
    country = {
        'type': 'object',
        'properties': {
            'name': {'type': 'string'}, 'capital': {'type': 'string'},
            'languages': {'type': 'array', 'items': {'type': 'string'}, 'maxItems': 3},
            'landlocked': {'type': 'boolean'},
        },
        'required': ['name', 'capital', 'languages', 'landlocked'], 'additionalProperties': False,
    }
    answer = client.chat.completions.create(
        model='m', temperature=0, max_tokens=200, response_format={
            'type': 'json_schema',
            'json_schema': {'name': 'country', 'strict': True, 'schema': country}},
        messages=[{'role': 'user', 'content': 'Describe France.'}])
    assert answer.choices[0].finish_reason == 'stop'
    value = json.loads(answer.choices[0].message.content)
    jsonschema.validate(value, country)
    assert value['capital'] == 'Paris'


def test_json_object_and_streams(client):
    answer = client.chat.completions.create(
        model='m', temperature=0, max_tokens=60, response_format={'type': 'json_object'},
        messages=[{'role': 'user', 'content': 'The three primary colors, as {"colors": [...]}.'}])
    if answer.choices[0].finish_reason == 'stop':
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    assert answer.choices[0].message.content.startswith('{')
    parts = client.chat.completions.create(
        model='m', temperature=0, stream=True, extra_body={'guided_regex': '(Yes|No)\\.'},
        messages=[{'role': 'user', 'content': 'Is fire cold?'}])
    text = ''.join(p.choices[0].delta.content or '' for p in parts if p.choices)
    assert text in ('Yes.', 'No.')
