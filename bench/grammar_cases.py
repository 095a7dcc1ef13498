#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas as applications send them, each with texts that they allow: for bench_grammar and
grammar_peers.py. Prints them as JSON."""
import json
import random

WORDS = ('the of and to in is that it was for on are as with they be at one have this from or had '
         'by hot but some what there we can out other were all your when up use word how said an '
         'each she which do their time if will way about many then them would write like so these '
         'her long make thing see him two has look more day could go come did sound no most number '
         'who over know water than call first people may down side been now find').split()
UNUSUAL = ['naïve café', '東京都の天気', 'Привет, мир', '🙂🚀', 'a "quoted" word',
           'C:\\path\\to', 'x\ny', '<div class="a">', 'SELECT * FROM t;',
           'https://example.com/?q=1&r=2', '— dash —']


def words(rng, n):
    parts = [rng.choice(UNUSUAL) if rng.random() < 0.07 else rng.choice(WORDS) for _ in range(n)]
    return ' '.join(parts)


def string(**more):
    return {'type': 'string', **more}


def record(properties, **more):
    return {'type': 'object', 'properties': properties, 'required': list(properties),
            'additionalProperties': False, **more}


SCHEMAS = {
    'weather_tool': record({
        'name': {'const': 'get_weather'},
        'arguments': record({'location': string(), 'unit': {'enum': ['celsius', 'fahrenheit']},
                             'days': {'type': 'integer'}})}),
    'person': record({'name': string(), 'age': {'type': 'integer'}, 'email': string(),
                      'tags': {'type': 'array', 'items': string()},
                      'address': record({'street': string(), 'city': string(),
                                         'zip': string()})}),
    'summary': record({'title': string(), 'summary': string(), 'sentiment':
                       {'enum': ['positive', 'negative', 'neutral']},
                       'score': {'type': 'number'}}),
    'limits': record({'id': string(maxLength=40), 'text': string(minLength=1, maxLength=500),
                      'items': {'type': 'array', 'items': string(maxLength=100),
                                'maxItems': 10}}),
    'steps': record({'steps': {'type': 'array', 'items': record({'explanation': string(),
                                                                 'output': string()})},
                     'final_answer': string()}),
    'tree': {'$ref': '#/$defs/node', '$defs': {'node': record({
        'value': string(), 'children': {'type': 'array', 'items': {'$ref': '#/$defs/node'}}})}},
    'shape': {'anyOf': [record({'kind': {'const': 'circle'}, 'radius': {'type': 'number'}}),
                        record({'kind': {'const': 'square'}, 'side': {'type': 'number'}}),
                        record({'kind': {'const': 'label'}, 'text': string()})]},
    'any_json': {'type': 'object'},
}


def value_of(schema, rng, root, depth=0):
    if '$ref' in schema:
        schema = root['$defs'][schema['$ref'].split('/')[-1]]
    if 'anyOf' in schema:
        return value_of(rng.choice(schema['anyOf']), rng, root, depth)
    if 'const' in schema:
        return schema['const']
    if 'enum' in schema:
        return rng.choice(schema['enum'])
    kind = schema['type']
    if kind == 'string':
        text = words(rng, rng.randint(3, 30 if schema.get('maxLength', 500) >= 500 else 8))
        return text[:schema.get('maxLength', 10000)]
    if kind == 'integer':
        return rng.randint(-5, 5000)
    if kind == 'number':
        return round(rng.uniform(-100, 100), 3)
    if kind == 'array':
        n = rng.randint(0, 2) if depth > 3 else rng.randint(1, 4)
        n = 0 if depth > 5 else n
        return [value_of(schema['items'], rng, root, depth + 1) for _ in range(n)]
    if 'properties' not in schema:
        return {'a': [1, 2.5, None, {'b': words(rng, 12)}], 'text': words(rng, 20), 'ok': True}
    return {k: value_of(v, rng, root, depth + 1) for k, v in schema['properties'].items()}


def cases(texts=8, seed=7):
    out = []
    for name, schema in SCHEMAS.items():
        rng = random.Random(f'{seed} {name}')
        rows = [json.dumps(value_of(schema, rng, schema), ensure_ascii=False) for _ in range(texts)]
        out.append({'name': name, 'schema': schema, 'texts': rows})
    return out


if __name__ == '__main__':
    print(json.dumps(cases(), ensure_ascii=False, indent=1))
