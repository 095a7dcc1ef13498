#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every CUDA kernel and holds its registers, spills and shared memory to a budget.

    tools/check_gpu.py [--archs 80,86,...] [--jobs N] [--write]

Needs nvcc, no GPU. The budgets are src/devices/cuda/kernels/budget.txt, of the architectures that
it names; of others the code is only compiled. --write makes the file of what --archs compile to."""
import argparse
import concurrent.futures
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / 'src/devices/cuda/kernels'
BUDGET = KERNELS / 'budget.txt'
ARCHS = '80,86,89,90a,100,120'
UNIT = 8  # registers are handed out in eights
HEAD = """# SPDX-License-Identifier: Apache-2.0
# budget.txt: what ptxas may give a kernel: registers a thread (rounded up to 8), bytes spilled,
# bytes of static shared memory. tools/check_gpu.py --write makes it.
"""


def compile_one(image, arch):
    """What ptxas says of each kernel of an image: {name: (registers, spilled, shared)}."""
    run = subprocess.run(
        ['nvcc', '-std=c++17', '-O3', '-fmad=false', f'-I{ROOT}/src', f'-arch=sm_{arch}', '-Xptxas',
         '-v', '-cubin', '-o', '/dev/null', str(KERNELS / f'{image}.cu')],
        capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f'{image}.cu for sm_{arch}:\n{run.stderr}')
    used, name = {}, None
    for line in run.stderr.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name, spilled = found[1], 0
        elif found := re.search(r'(\d+) bytes spill stores', line):
            spilled = int(found[1])
        elif name and (found := re.search(r'Used (\d+) registers', line)):
            shared = re.search(r'(\d+) bytes smem', line)
            used[name] = (int(found[1]), spilled, int(shared[1]) if shared else 0)
            name = None
    return arch, used


def read_budget():
    rows = {}
    for line in BUDGET.read_text().splitlines() if BUDGET.exists() else []:
        if line and not line.startswith('#'):
            arch, name, *numbers = line.split()
            rows[arch, name] = tuple(map(int, numbers))
    return rows


def write_budget(used):
    lines = [f'{arch} {name} {math.ceil(registers / UNIT) * UNIT} {spilled} {shared}\n'
             for (arch, name), (registers, spilled, shared) in sorted(used.items())]
    BUDGET.write_text(HEAD + ''.join(lines))


def compare(used, budget, archs):
    held = {arch for arch, _ in budget} & set(archs)
    bad = [f'{arch} {name}: the budget names no such kernel' for arch, name in budget
           if arch in held and (arch, name) not in used]
    for (arch, name), numbers in sorted(used.items()):
        if arch not in held:
            continue
        if (arch, name) not in budget:
            bad.append(f'{arch} {name}: has no budget; --write gives it one')
            continue
        for what, has, may in zip(('registers', 'bytes spilled', 'bytes of shared memory'),
                                  numbers, budget[arch, name]):
            if has > may:
                bad.append(f'{arch} {name}: {has} {what}, the budget is {may}')
    return held, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--archs', default=ARCHS)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    archs = args.archs.split(',')
    images = re.findall(r'^IMAGE\((\w+)\)', (KERNELS / 'images.def').read_text(), re.M)
    used = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for arch, kernels in pool.map(compile_one, images * len(archs),
                                      [a for a in archs for _ in images]):
            used.update({(arch, name): numbers for name, numbers in kernels.items()})
    if args.write:
        write_budget(used)
    held, bad = compare(used, read_budget(), archs)
    print(f'{len(used)} kernels for {", ".join(archs)}; with budgets: {", ".join(sorted(held))}')
    sys.exit('\n'.join(bad) if bad else 0)


if __name__ == '__main__':
    main()
