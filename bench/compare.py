#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our speed beside llama.cpp's, in one run: each round measures ours, then the peer's, so that both
see the same machine; medians over the rounds.

    bench/compare.py --peer PATH/llama-bench [-m NAME ...] [-t 1 2] [-p 512] [-n 128] [-r 5]

Names are files of the models folder. The peer is built by the user, outside this tree. Prints
tokens per second and the ratio; --json FILE keeps every round."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
MODELS = pathlib.Path(DATA) / "1bit/models"


def run(command: list[str]) -> object:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def ours(binary: str, model: str, threads: int, prompt: int, decode: int) -> dict[str, float]:
    out = run([binary, "bench", "-m", model, "-t", str(threads), "-p", str(prompt),
               "-n", str(decode), "-r", "1", "--json"])
    return {r["test"]: r["mean"] for r in out["results"]}


def peer(binary: str, model: str, threads: int, prompt: int, decode: int) -> dict[str, float]:
    out = run([binary, "-m", model, "-t", str(threads), "-p", str(prompt), "-n", str(decode),
               "-r", "1", "-o", "json"])
    return {"pp" if r["n_prompt"] else "tg": r["avg_ts"] for r in out}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--peer", required=True, help="llama.cpp's llama-bench")
    p.add_argument("--ours", default=str(ROOT / "build/src/cli/1bit"))
    p.add_argument("-m", nargs="+",
                   default=["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "gemma3-270m"])
    p.add_argument("-t", nargs="+", type=int, default=[1, 2])
    p.add_argument("-p", type=int, default=512)
    p.add_argument("-n", type=int, default=128)
    p.add_argument("-r", type=int, default=5)
    p.add_argument("--json", metavar="FILE")
    a = p.parse_args()

    rows = []
    print(f"{'model':22} {'threads':>7} {'test':>6} {'ours':>9} {'peer':>9} {'ratio':>6}   tok/s, "
          f"median of {a.r}")
    for name in a.m:
        path = str(MODELS / (name + ".gguf"))
        for threads in a.t:
            got: dict[str, dict[str, list[float]]] = {"pp": {"ours": [], "peer": []},
                                                      "tg": {"ours": [], "peer": []}}
            for _ in range(a.r):
                for who, measure, binary in (("ours", ours, a.ours), ("peer", peer, a.peer)):
                    for test, rate in measure(binary, path, threads, a.p, a.n).items():
                        got[test][who].append(rate)
            for test, length in (("pp", a.p), ("tg", a.n)):
                o, q = (statistics.median(got[test][who]) for who in ("ours", "peer"))
                print(f"{name:22} {threads:7} {test + str(length):>6} {o:9.1f} {q:9.1f} "
                      f"{o / q:6.2f}", flush=True)
                rows.append({"model": name, "threads": threads, "test": test, "length": length,
                             **got[test]})
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))


main()
