# SPDX-License-Identifier: Apache-2.0
"""OpenAI's responses, through its own client, over the fake engine and a real model."""
import openai
import pytest

PATH = '/v1/responses'
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = [{'type': 'function', 'name': 'weather', 'parameters': {
    'type': 'object', 'properties': {'city': {'type': 'string'}}}}]


def client_of(server):
    return openai.OpenAI(base_url=server.url + '/v1', api_key='none', max_retries=0)


def ask(server, asked, **fields):
    return client_of(server).responses.create(model='any', input=asked, **fields)


def test_a_response(fake):
    reply = ask(fake, 'hello', metadata={'a': 'b'}, temperature=0.5)
    assert (reply.object, reply.status, reply.model) == ('response', 'completed', 'fake')
    assert reply.output_text == 'hello' and [o.type for o in reply.output] == ['message']
    assert (reply.metadata, reply.temperature) == ({'a': 'b'}, 0.5)
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (5, 5, 10)
    assert usage.input_tokens_details.cached_tokens == 0 and reply.timings['predicted_n'] == 5
    cut = ask(fake, 'hello', max_output_tokens=2)
    assert (cut.output_text, cut.status) == ('he', 'incomplete')
    assert cut.incomplete_details.reason == 'max_output_tokens'
    items = [{'role': 'user', 'content': [{'type': 'input_text', 'text': 'hi'}]}]
    assert ask(fake, items).output_text == 'hi'


@pytest.mark.parametrize('text, kinds', [
    ('hello', ['message']), ('think', ['reasoning', 'message']), (CALL, ['function_call']),
    ('Hm. ' + CALL + CALL, ['message', 'function_call', 'function_call'])])
def test_streamed_equals_whole(fake, text, kinds):
    whole = ask(fake, text, tools=TOOLS)
    assert [o.type for o in whole.output] == kinds
    events = list(ask(fake, text, tools=TOOLS, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert [e.type for e in events[:2]] == ['response.created', 'response.in_progress']
    assert events[-1].type == 'response.completed'
    done = events[-1].response
    assert done.output_text == whole.output_text and done.usage == whole.usage
    for a, b in zip(whole.output, done.output, strict=True):
        for field in 'name', 'arguments', 'status', 'content':
            assert getattr(a, field, None) == getattr(b, field, None)
    order = [e.type.removeprefix('response.') for e in events[2:-1]]
    order = [t for i, t in enumerate(order) if not i or t != order[i - 1]]
    text_of = {'message': 'output_text', 'reasoning': 'reasoning_text'}
    want = []
    for kind in kinds:
        if kind == 'function_call':
            want += ['output_item.added', 'function_call_arguments.delta',
                     'function_call_arguments.done', 'output_item.done']
        else:
            want += ['output_item.added', 'content_part.added', text_of[kind] + '.delta',
                     text_of[kind] + '.done', 'content_part.done', 'output_item.done']
    assert order == want
    opened = [e for e in events if e.type == 'response.output_item.added']
    assert [e.output_index for e in opened] == list(range(len(kinds)))
    assert [e.item.id for e in opened] == [o.id for o in done.output]
    for event in events:
        if event.type == 'response.function_call_arguments.done':
            assert event.arguments == '{"city": "Paris"}'


def test_the_client_puts_streams_together(fake):
    with client_of(fake).responses.stream(model='any', input='think') as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text == 'answer'


def test_conversations_go_on(fake):
    first = ask(fake, 'one', instructions='never kept')
    second = ask(fake, 'two', previous_response_id=first.id)
    assert second.previous_response_id == first.id and second.output_text == 'two'
    streamed = list(ask(fake, 'x', stream=True))[-1].response
    assert ask(fake, 'y', previous_response_id=streamed.id).output_text == 'y'
    gone = ask(fake, 'z', store=False)
    for wrong in gone.id, 'resp_none':
        with pytest.raises(openai.BadRequestError, match='previous_response_id'):
            ask(fake, 'x', previous_response_id=wrong)


def test_what_is_kept_is_bounded(start_fake):
    server = start_fake().wait_ready()
    first = ask(server, 'one').id
    second = ask(server, 'two').id
    for _ in range(1023):
        assert server.ask('POST', PATH, {'input': 'x'}).status == 200
    assert server.ask('POST', PATH, {'input': 'x', 'previous_response_id': first}).status == 400
    assert server.ask('POST', PATH, {'input': 'x', 'previous_response_id': second}).status == 200


def user(part):
    return [{'role': 'user', 'content': [part]}]


BAD = {
    'input': [None, 1, {}], 'input[0]': [['x']], 'input[0].type': [[{'type': 'x'}], [{'type': 1}]],
    'input[0].role': [[{'content': 'x'}]], 'input[0].content': [[{'role': 'user', 'content': 1}]],
    'input[0].content[0].type': [user({'type': 'input_image', 'image_url': 'x'}), user({})],
    'input[0].content[0].text': [user({'type': 'input_text'})],
    'input[0].call_id': [[{'type': 'function_call', 'name': 'x', 'arguments': '{}'}],
                         [{'type': 'function_call_output', 'output': 'x'}]],
    'instructions': [1], 'max_output_tokens': ['x', 0], 'temperature': ['x'], 'stream': [1],
    'store': ['x'], 'background': [True], 'truncation': ['auto'], 'top_logprobs': [2],
    'conversation': ['x'], 'previous_response_id': [1, 'x'], 'tools': ['x'],
    'tools[0].type': [[{'type': 'web_search'}]], 'tools[0].name': [[{'type': 'function'}]],
    'text': ['x'], 'text.format': [{'format': {'type': 'x'}}],
    'text.format.schema': [{'format': {'type': 'json_schema', 'name': 'x'}}],
    'reasoning': ['x'], 'parallel_tool_calls': ['x'],
}


@pytest.mark.parametrize('field', BAD)
def test_bad_values_are_refused_by_name(fake, field):
    for value in BAD[field]:
        for stream in False, True:
            body = {'input': 'x', 'stream': stream, field.split('[')[0].split('.')[0]: value}
            reply = fake.ask('POST', PATH, body)
            assert reply.status == 400, value
            assert reply.json['error']['param'] == field, (value, reply.json)


def test_an_engine_that_fails(fake):
    with pytest.raises(openai.InternalServerError, match='the fake failed'):
        ask(fake, 'fail')
    with pytest.raises(openai.APIError, match='the fake failed'):
        list(ask(fake, 'fail', stream=True))


def test_real(real):
    """A call and its result, with the conversation kept by the server."""
    fields = dict(temperature=0, max_output_tokens=60, tools=[
        {'type': 'function', 'name': 'get_weather', 'description': 'Get the weather of a city',
         'parameters': {'type': 'object', 'properties': {'city': {'type': 'string'}},
                        'required': ['city']}}])
    first = ask(real, 'What is the weather in Paris?', **fields)
    call, = first.output
    assert (call.name, call.arguments) == ('get_weather', '{"city": "Paris"}')
    result = [{'type': 'function_call_output', 'call_id': call.call_id, 'output': 'sunny, 21 C'}]
    second = ask(real, result, previous_response_id=first.id, **fields)
    assert second.usage.input_tokens_details.cached_tokens > first.usage.input_tokens - 10
    schema = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city'],
              'additionalProperties': False}
    made = ask(real, 'Name a city.', temperature=0, max_output_tokens=30, text={'format': {
        'type': 'json_schema', 'name': 'city', 'schema': schema, 'strict': True}})
    assert made.output_text.startswith('{')
