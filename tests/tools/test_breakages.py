# SPDX-License-Identifier: Apache-2.0
"""`make mutate` is too slow for every change; that its list still fits the code is checked here."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location('breakages', ROOT / 'tests/mutate/breakages.py')
LIST = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LIST)


@pytest.mark.parametrize('breakage', LIST.BREAKAGES, ids=lambda b: b.name)
def test_text_to_replace_stands_once(breakage):
    assert (ROOT / breakage.file).read_text().count(breakage.old) == 1
    assert breakage.old != breakage.new
