# SPDX-License-Identifier: Apache-2.0
"""Calls that a grammar writes, in every tool format, through tests/unit/call_walk: a writer that
draws tokens at random among those allowed is read back by the format's parser into calls of the
request's tools, whose arguments the jsonschema package finds valid; cut anywhere, nothing is lost
and nothing fails; what templates write by themselves is allowed too."""
import json
import os
import pathlib
import re
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WALK = ROOT / os.environ.get('BUILD_DIR', 'build') / 'tests/unit/call_walk'
FORMATS = [m[1].replace('_', '-') if m[1] != 'functionary_v3_2' else 'functionary-v3.2'
           for m in re.finditer(r'FORMAT\((\w+)\)',
                                (ROOT / 'src/text/chat_formats.def').read_text())]

WEATHER = {
    'type': 'object', 'required': ['city', 'days'], '$defs': {'unit': {'enum': ['C', 'F <b>']}},
    'properties': {
        'city': {'type': 'string'},
        'days': {'type': 'integer', 'minimum': 1, 'maximum': 14},
        'unit': {'$ref': '#/$defs/unit'},
        'mood': {'type': 'string', 'enum': ['a "b"', 'x\\y', "it's"]},
        'code': {'type': 'string', 'pattern': '^[a-z<]{2,4}$'},
        'note': {'type': 'string', 'maxLength': 6},
        'where': {'type': 'object', 'properties': {'lat': {'type': 'number'},
                                                   'tags': {'type': 'array', 'maxItems': 2,
                                                            'items': {'type': 'string'}},
                                                   'on': {'type': ['boolean', 'null']}},
                  'required': ['tags'], 'additionalProperties': False},
        'any': {},
    }}
TOOLS = [
    {'type': 'function', 'function': {'name': 'get_weather', 'parameters': WEATHER}},
    {'type': 'function', 'function': {'name': 'now'}},
    {'type': 'function', 'function': {'name': 'add-2', 'parameters': {
        'type': 'object', 'properties': {'a': {'type': 'number'}, 'b': {'type': 'boolean'}}}}},
]
SCHEMAS = {t['function']['name']: t['function'].get('parameters', {'maxProperties': 0})
           for t in TOOLS}

# What templates have besides, by which a format's spelling is chosen, and what prompts end with.
TEMPLATES = {'command-r': ['<|START_ACTION|>', ''], 'deepseek': ['```json', ''],
             'dsml': ['function_calls', ''], 'gigachat': ['<|function_call|>', ''],
             'llama3': ['func_name1(', ''], 'mistral': ['[CALL_ID]', '[ARGS]', '']}
PROMPTS = {'functionary-v3.2': '>>>', 'harmony': '<|start|>assistant',
           'solar': '<|begin|>assistant'}
THINK = '<think></think>'
PIECES = ['"', '": ', '",', '}', ']', '},', ']}', '</parameter>', '</', '\n', '\n\n', '<', '|>',
          '<tool', '_call>', 'x<tool_call>', '_call>\n{', 'name', '</tool_call>', '</think>',
          '<think>', '</arg_value>', '</param>', '<|"|>', '<escape>', '```', 'all', '>>>', ')',
          "'", ', ', '[TOOL', '_CALLS]', 'get_weather', 'now', '{"', '[{', '[now', '(', '=']


def source_of(name):
    stem = name.replace('-', '_').replace('.', '_')
    return (ROOT / f'src/text/chat_{stem}.c').read_text()


def markers(name):
    """Texts of the format that look like tokens: its control tokens."""
    source = source_of(name)
    found = re.findall(r'<[|｜/]?[\w▁:|｜]+[|｜]?>|\[[A-Z_/]{4,}\]', source[source.index('.call ='):])
    return sorted(set(found))


def chunks(name, controls):
    """What stands between the %-escapes of the format's texts, so that a random writer comes to
    calls and to their ends."""
    texts = re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', source_of(name))
    joined = [''.join(json.loads(t) for t in re.findall(r'"(?:[^"\\]|\\.)*"', text))
              for text in texts if '.h"' not in text]
    found = {c for text in joined for c in re.split('%.', text) if len(c) > 1}
    return sorted(c for c in found if not any(control in c for control in controls))


def walk(lines):
    text = ''.join(json.dumps(line) + '\n' for line in lines)
    p = subprocess.run([WALK], input=text, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stderr[-2000:]
    out = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(out) == len(lines)
    return out


def lines_of(name, **request):
    """A line for each way the format is spelled, with its markers as text and as tokens."""
    for source in TEMPLATES.get(name, ['']):
        for controls in ([], markers(name)):
            yield {'format': name, 'template': source + THINK, 'prompt': PROMPTS.get(name, ''),
                   'thinks': True, 'request': {'tools': TOOLS, **request}, 'controls': controls,
                   'pieces': PIECES + 2 * chunks(name, controls),
                   'random': 60, 'seed': len(source) + len(controls),
                   'most': 1500}


def check_calls(calls, names, what):
    for call in calls:
        assert call['name'] in names, what
        arguments = json.loads(call['arguments'])
        jsonschema.Draft202012Validator(SCHEMAS[call['name']]).validate(arguments)


def ours(calls):
    return [(c['name'], json.loads(c['arguments'])) for c in calls]


def check(line, answer, names, least, most=None):
    """Returns how many answers were whole, and how many calls they had."""
    whole = calls = 0
    assert 'answers' in answer, (line['format'], answer)
    for one in answer['answers']:
        what = (line['format'], line['template'], one)
        assert not one['dead'], what
        if not one['whole']:
            continue
        whole += 1
        calls += len(one['calls'])
        assert least <= len(one['calls']), what
        assert most is None or len(one['calls']) <= most, what
        check_calls(one['calls'], names, what)
        assert ours(one['calls']) == ours(one['live']['calls']), what
        if least:
            assert one['content'].strip() == '', what
    return whole, calls


@pytest.mark.parametrize('name', FORMATS)
def test_required(name):
    lines = list(lines_of(name, tool_choice='required'))
    for line, answer in zip(lines, walk(lines)):
        whole, calls = check(line, answer, SCHEMAS, 1)
        assert whole >= 20, (name, whole)
        assert line['controls'] or calls > whole or name in ('harmony', 'gigachat'), (whole, calls)


@pytest.mark.parametrize('name', FORMATS)
def test_named(name):
    choice = {'type': 'function', 'function': {'name': 'add-2'}}
    lines = list(lines_of(name, tool_choice=choice, parallel_tool_calls=False))
    for line, answer in zip(lines, walk(lines)):
        whole, _ = check(line, answer, ['add-2'], 1, 1)
        assert whole >= 40, (name, whole)


@pytest.mark.parametrize('name', FORMATS)
def test_auto(name):
    """Text before stays free; calls that come are held to their schemas."""
    tools = [{**t, 'function': {**t['function'], 'strict': True}} for t in TOOLS]
    lines = []
    for line in lines_of(name, tool_choice='auto'):
        line['request']['tools'] = tools
        line['random'] = 150
        lines.append(line)
    found = 0
    for line, answer in zip(lines, walk(lines)):
        whole, calls = check(line, answer, SCHEMAS, 0)
        assert whole >= 40, (name, whole)
        found += calls
    assert found > 0
