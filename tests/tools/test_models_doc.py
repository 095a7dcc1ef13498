# SPDX-License-Identifier: Apache-2.0
"""docs/models.md and the census: parsing, and that the committed page has every class."""
import json
import re

import pytest

import census
import make_models_doc as doc

PAGE = doc.PAGE.read_text()
MODELS = census.ROOT / 'src/models'
ROWS = [{'class': 'AForCausalLM', 'model_types': ['a', 'a_old'], 'gguf': 'a', 'family': 'a',
         'wrapper': False, 'features': ['window']},
        {'class': 'BForCausalLM', 'model_types': ['b'], 'gguf': 'own', 'family': 'b',
         'wrapper': False, 'features': []},
        {'class': 'CForConditionalGeneration', 'model_types': ['c'], 'gguf': None, 'family': None,
         'wrapper': True, 'features': []}]
LOG = '''seed 1
ok   models.a.ref.a       96 x 256 logits, 3 chunkings, 16 more tokens; off by 5.0e-05 deviations
ok   models.a.avx2.a      96 x 256 logits, 3 chunkings, 16 more tokens; off by 7.0e-05 deviations
ok   models.a.cpu.b       40 x 256 logits, 3 chunkings, 16 more tokens; off by 6.0e-05 deviations
ok   models.a.cpu.gguf    96 x 256 logits, 3 chunkings, 16 more tokens; off by 1.0e-05 deviations
ok   models.a.cpu.converted   10240 values, largest difference 0
ok   models.a-other.cpu.b 40 x 256 logits, 3 chunkings, 16 more tokens; off by 1.0e-05 deviations
FAIL models.a-other.ref.a: position 3, logit 4 off by 2 deviations
skip models.a.neon.a: this machine has no neon
skip models.z: no recipe for z
ok   models.tiny.avx2.near_ref    21600 values, largest difference 0.55
'''


def listed(name, macro):
    return re.findall(rf'^{macro}\((\w+)(?:, *(\w+))?\)', (MODELS / name).read_text(), flags=re.M)


def page_classes(wrappers):
    table = PAGE[PAGE.index('|---|'):]
    rows = re.findall(r'^\| (\w+) \| [^|]* \| (\w[^|]*) \|', table, flags=re.M)
    return [cls for cls, family in rows if (family == 'wrapper') == wrappers]


# ---- the committed page: `make docs` renews it ---------------------------------------------------

def test_the_page_has_every_model():
    text = '\n'.join(f.read_text() for f in MODELS.glob('*.c'))
    for name, _ in listed('models.def', 'MODEL'):
        block = re.search(rf'^const struct recipe model_{name} =(.*?);$', text, re.M | re.S)
        assert block, name
        cls = re.search(r'"(\w+(?:Decoder|ForCausalLM|ForConditionalGeneration|Model))"',
                        block[1])[1]
        assert cls in page_classes(False), f'{cls} has no row in docs/models.md: make docs'


def test_the_page_has_every_wrapper():
    classes = [cls for _, cls in listed('wrappers.def', 'WRAPPER')]
    assert sorted(page_classes(True)) == sorted(classes), 'make docs'


def test_the_page_has_as_many_rows_as_the_lists():
    assert len(page_classes(False)) == len(listed('models.def', 'MODEL')), 'make docs'


def test_no_miniature_of_the_page_fails():
    assert ': fails' not in PAGE


def test_classes_of_one_type_are_told_by_a_flag(tmp_path):
    rows = census.told([{'class': 'AModel', 'model_types': ['a'], 'when': None, 'wrapper': False},
                        {'class': 'AForCausalLM', 'model_types': ['a'], 'when': 'is_decoder',
                         'wrapper': False}])
    for name, fields in (('one', {'is_decoder': False}), ('two', {'is_decoder': True}),
                         ('three', {'is_decoder': True, 'model_type': 'b'})):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'config.json').write_text(json.dumps({'model_type': 'a'} | fields))
    types = census.golden_types(tmp_path, rows)
    assert types == {'one': ['a'], 'two': ['a, is_decoder'], 'three': ['b']}
    assert census.checked_classes(rows, types) == {'AModel', 'AForCausalLM'}
    del types['two']
    assert census.checked_classes(rows, types) == {'AModel'}


# ---- making it -----------------------------------------------------------------------------------

def test_checks_are_parsed():
    checks = doc.parse_checks(LOG)
    assert doc.describe('a', checks['a']) == '`a`: 136 positions, 7.0e-05, GGUF, converted'
    assert doc.describe('a-other', checks['a-other']) == '`a-other`: fails'
    assert doc.describe('z', checks['z']) == '`z`: not yet, no recipe for z'


def test_refusals_follow_derive():
    text = '''
static const struct plain plain[] = {
    {NULL, "rotary", 1, 1, "no rotary embedding"},
    {0},
};

static ob_status sizes(struct build *b, ob_error *error) {
    return build_plain(b, plain, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain inner[] = {
        {"{arch}.x", "one", 0, 0, "ones"}, {0}};
    ob_status s = sizes(b, error);
    return s == OB_OK ? build_plain(b, inner, error) : s;
}

static ob_status other(struct build *b, ob_error *error) {
    return OB_OK;
}

#define MORE \\
    .derive = sizes, .layer = layer

const struct recipe model_a = {
    .hf_class = "AForCausalLM",
    .derive = derive,
};

const struct recipe model_b = {
    .hf_class = "BForCausalLM",
    MORE,
};

const struct recipe model_c = {
    .hf_class = "CForCausalLM",
    .derive = other,
};
'''
    rotary, one = ('rotary', 'no rotary embedding'), ('one', 'ones')
    found = doc.refusals(text)
    assert sorted(found['AForCausalLM']) == sorted([rotary, one])
    assert found['BForCausalLM'] == [rotary]
    assert 'CForCausalLM' not in found


def test_every_table_of_the_recipes_is_on_the_page():
    found = doc.all_refusals()
    assert ('is_moe', 'a mixture of experts by product keys') in found['DogeForCausalLM']
    said = {row for rows in found.values() for row in rows}
    recipes = [f for f in MODELS.glob('*.c') if 'const struct recipe model_' in f.read_text()]
    for file in recipes:
        for rows in doc.plain_tables(file.read_text()).values():
            assert rows and set(rows) <= said, file


def test_the_page_of_a_small_list():
    coverage = census.Census({'AForCausalLM': 1, 'DForCausalLM': 1}, {'AForCausalLM'}, set())
    goldens = {'a': ['a'], 'a-other': ['a'], 'z': ['z'], 'cc': ['c', 'b']}
    checks = doc.parse_checks(LOG)
    text = doc.page(ROWS, checks, goldens, {'BForCausalLM': [('k', 'v')]}, coverage, '5')
    assert ('| AForCausalLM | a | a | window | `a`: 136 positions, 7.0e-05, GGUF, converted; '
            '`a-other`: fails |  |') in text
    assert '| BForCausalLM | own | b |  | no | `k`: v |' in text
    assert '| CForConditionalGeneration |  | wrapper |  | no |  |' in text
    assert '## Miniatures without a recipe\n`z`' in text
    assert 'Not mapped: DForCausalLM.' in text


# ---- the census ----------------------------------------------------------------------------------

def test_census_counts():
    counts = census.read_dump('{"AForCausalLM": 6, "XForCausalLM": 3, "YForCausalLM": 1}')
    assert counts == census.read_dump(
        '[["AForCausalLM", 4], ["XForCausalLM", 3], ["YForCausalLM", 1], ["AForCausalLM", 2]]')
    text = census.Census(counts, {'AForCausalLM'}, set()).text(1)
    assert 'mapped        1 of 3 classes, 6 of 10 models (60.0%)' in text
    assert 'checked       0 of 3 classes, 0 of 10 models (0.0%)' in text
    assert text.endswith('       3 XForCausalLM\n         and 1 more')


@pytest.mark.parametrize('text', ['3', '[3]', '{"A": -1}', '{"A": true}', '{"A": 1.5}', '[["A"]]',
                                  '', '[["A", 1, 2]]'])
def test_a_bad_dump_is_refused(text):
    with pytest.raises(ValueError):
        census.read_dump(text)


def test_checked_needs_the_language_model():
    checked = census.checked_classes
    assert checked(ROWS, {'x': ['a_old']}) == {'AForCausalLM'}
    assert checked(ROWS, {'x': ['c', 'b']}) == {'CForConditionalGeneration'}
    assert checked(ROWS, {'x': ['c', 'other'], 'y': ['other']}) == set()


def test_the_committed_classes():
    listed = json.loads(census.CLASSES.read_text())
    assert listed['classes'] == sorted(listed['classes'])
    assert 'LlamaForCausalLM' in census.transformers_counts()
    assert f"transformers {listed['transformers']} can load" in PAGE
