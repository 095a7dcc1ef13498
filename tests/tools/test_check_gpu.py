# SPDX-License-Identifier: Apache-2.0
"""Budgets of CUDA kernels: what is over one is named; the file names the kernels that there are."""
import re

import check_gpu

BUDGET = {('90a', 'rows'): (40, 0, 128), ('90a', 'map'): (32, 0, 0)}


def faults(**used):
    return check_gpu.compare({('90a', name): numbers for name, numbers in used.items()}, BUDGET,
                             ['90a'])[1]


def test_budgets_are_held():
    assert faults(rows=(40, 0, 128), map=(8, 0, 0)) == []
    assert faults(rows=(41, 4, 129), map=(8, 0, 0)) == [
        '90a rows: 41 registers, the budget is 40', '90a rows: 4 bytes spilled, the budget is 0',
        '90a rows: 129 bytes of shared memory, the budget is 128']
    assert 'has no budget' in faults(rows=(1, 0, 0), map=(1, 0, 0), new=(1, 0, 0))[0]
    assert faults(rows=(1, 0, 0)) == ['90a map: the budget names no such kernel']


def test_other_architectures_have_none():
    assert check_gpu.compare({('80', 'rows'): (99, 9, 9)}, BUDGET, ['80']) == (set(), [])


def test_every_kernel_of_the_list_has_a_budget():
    named = {name for _, name in check_gpu.read_budget()}
    kernels = re.findall(r'^KERNEL\((\w+)\)', (check_gpu.KERNELS / 'kernels.def').read_text(), re.M)
    formats = re.findall(r'^FORMAT\((\w+)\)', (check_gpu.KERNELS / 'mma.def').read_text(), re.M)
    assert kernels and formats
    assert named >= set(kernels)
    assert named >= {f'mma_{size}_{name}' for size in ('8', '32', '64', 'many') for name in formats}
