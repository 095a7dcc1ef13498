# SPDX-License-Identifier: Apache-2.0
"""tool_choice over HTTP: which spellings are taken and how bad ones are refused, random weights
behind the whole server as a writer that knows nothing, and a real model."""
import json
import pathlib

import jsonschema
import pytest

from harness import BUILD, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / 'tests/golden/tiny.gguf'
CITY = {'type': 'object', 'required': ['city', 'days'], 'properties': {
    'city': {'type': 'string', 'maxLength': 12}, 'days': {'type': 'integer', 'minimum': 1,
                                                          'maximum': 14},
    'unit': {'enum': ['C', 'F']}}, 'additionalProperties': False}
TOOLS = [{'type': 'function', 'function': {'name': 'weather', 'parameters': CITY}},
         {'type': 'function', 'function': {'name': 'now'}}]
STRICT = [{'type': 'function', 'function': {**t['function'], 'strict': True}} for t in TOOLS]
NAMED = {'type': 'function', 'function': {'name': 'weather'}}


def tools(schema):
    return [TOOLS[1], {'type': 'function', 'function': {'name': 'x', 'parameters': schema}}]


@pytest.mark.parametrize('choice', [
    'auto', 'none', 'required', 'any', NAMED, {'type': 'function', 'name': 'weather'},
    {'type': 'tool', 'name': 'now'}, {'type': 'any'}, {'type': 'auto'},
    {'type': 'any', 'disable_parallel_tool_use': True}])
def test_taken(fake, choice):
    assert fake.chat('x', tools=TOOLS, tool_choice=choice).status == 200


@pytest.mark.parametrize('fields, where, said', [
    ({'tool_choice': 'required'}, 'tool_choice', 'no "tools"'),
    ({'tool_choice': NAMED, 'tools': TOOLS[1:]}, 'tool_choice', 'called "weather"'),
    ({'tool_choice': {'type': 'any', 'disable_parallel_tool_use': 1}, 'tools': TOOLS},
     'tool_choice.disable_parallel_tool_use', 'true or false'),
    ({'tool_choice': 'required', 'tools': tools({'properties': {'a': {'not': {}}}})},
     'tools[1].function.parameters#/properties/a/not', 'not supported'),
    ({'tool_choice': 'required', 'tools': tools({'type': 5})},
     'tools[1].function.parameters#/type', ''),
    ({'tool_choice': 'required', 'tools': [{'type': 'function', 'function': {'name': 'a b'}}]},
     'tools[0].function.name', 'must be letters'),
    ({'tool_choice': 'required', 'tools': TOOLS, 'response_format': {'type': 'json_object'}},
     'tool_choice', 'excludes response_format')])
def test_refused(fake, fields, where, said):
    reply = fake.chat('x', **fields)
    assert reply.status == 400, reply.body
    assert reply.json['error']['param'] == where and said in reply.json['error']['message']


def check(message, names):
    for call in message.get('tool_calls', []):
        assert call['function']['name'] in names
        if call['function']['name'] == 'weather':
            jsonschema.validate(json.loads(call['function']['arguments']), CITY)
        else:
            assert json.loads(call['function']['arguments']) == {}


@pytest.mark.parametrize('name', ['hermes', 'qwen3-coder', 'llama3', 'mistral', 'lfm2', 'gemma4'])
def test_random_weights_write_calls(name):
    """Whole where it ends; what was cut is returned as it is."""
    server = Server(BUILD / 'src/cli/1bit', 'serve', '-m', TINY, '-p', '0', '--chat-template',
                    'chatml', '--tool-format', name).wait_ready()
    whole = cut = 0
    try:
        for seed in range(8):
            choice = 'required' if seed % 2 else NAMED
            most = 12 if seed == 7 else 400
            reply = server.chat('x', tools=TOOLS, tool_choice=choice, seed=seed, temperature=3,
                                top_k=0, top_p=1, min_p=0, max_tokens=most,
                                parallel_tool_calls=False)
            assert reply.status == 200, reply.body
            answer = reply.json['choices'][0]
            if answer['finish_reason'] == 'length':
                cut += 1
                continue
            whole += 1
            assert answer['finish_reason'] == 'tool_calls', answer
            assert len(answer['message']['tool_calls']) == 1 and not answer['message']['content']
            check(answer['message'], ['weather'] if choice is NAMED else ['weather', 'now'])
    finally:
        assert server.stop() == 0, server.lines
    assert whole >= 2 and cut, (whole, cut)


def test_a_model_must_call(real):
    """Where it would not by itself; whole and as a stream."""
    for stream in False, True:
        reply = real.chat('Hello! How are you?', tools=TOOLS, tool_choice=NAMED, temperature=0,
                          max_tokens=100, stream=stream)
        assert reply.status == 200, reply.body
        if stream:
            deltas = [e['choices'][0]['delta'] for e in reply.events if e['choices']]
            parts = [p for d in deltas for p in d.get('tool_calls', [])]
            call = {'function': {'name': parts[0]['function']['name'], 'arguments': ''.join(
                p['function']['arguments'] for p in parts)}}
            check({'tool_calls': [call]}, ['weather'])
        else:
            answer = reply.json['choices'][0]
            assert answer['finish_reason'] == 'tool_calls' and answer['message']['tool_calls']
            check(answer['message'], ['weather'])


def test_a_model_may_call(real):
    """Strict tools leave it free to answer in words."""
    words = real.chat('Say hello.', tools=STRICT, temperature=0, max_tokens=20).json['choices'][0]
    assert words['message']['content'] and 'tool_calls' not in words['message']
    asked = real.chat('What will the weather in Paris be for 3 days? Use the tool.', tools=STRICT,
                      temperature=0, max_tokens=100).json['choices'][0]
    assert asked['finish_reason'] == 'tool_calls'
    check(asked['message'], ['weather'])
