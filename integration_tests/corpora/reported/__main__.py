"""Measure the programs: ``python -m integration_tests.corpora.reported [--json FILE] [NAME ...]``.

Each side of a program runs in a process of its own. The graphs are those of a series of 10 calls;
the time is the least of several rounds of steady calls with a backend that returns the graph as it
is.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import time
import warnings
from typing import Any

import torch

from integration_tests.corpora.reported.programs import PROGRAMS

CALLS, ROUNDS, PER_ROUND = 10, 30, 20


def measure(name: str, side: str) -> dict[str, Any]:
    """Run one side of one program in this process. Returns graphs, seconds per call, or the
    error."""
    import stator

    warnings.simplefilter("ignore")
    graphs = 0

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        return gm.forward

    fn, calls = PROGRAMS[name]()
    compilers: dict[str, Any] = {
        "eager": lambda f, backend: f,
        "torch": torch.compile,
        "stator": stator.compile,
    }
    compiled = compilers[side](fn, backend=backend)
    for args in itertools.islice(calls, CALLS):
        compiled(*args)
    in_series = graphs

    best = float("inf")
    for _ in range(ROUNDS):
        arguments = list(itertools.islice(calls, PER_ROUND))
        start = time.process_time()
        for args in arguments:
            compiled(*args)
        best = min(best, (time.process_time() - start) / PER_ROUND)
    return {"graphs": in_series, "seconds": best}


def in_process(name: str, side: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "integration_tests.corpora.reported", "--side", side, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def shown(rows: dict[str, dict[str, Any]]) -> str:
    """One line of the table: graphs of both, and how a steady call compares."""
    ours, theirs = rows["stator"], rows["torch"]
    if "error" in ours or "error" in theirs:
        return f"torch {theirs} | stator {ours}"
    ratio = ours["seconds"] / theirs["seconds"]
    worse = "MORE" if 0 < theirs["graphs"] < ours["graphs"] else "    "
    slower = "SLOW" if ratio > 1.2 else "    "
    counts = f"{theirs['graphs']:3} / {ours['graphs']:3}"
    return f"{counts}  {ratio:5.2f}  {ours['seconds'] * 1e6:8.1f} us  {worse} {slower}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m integration_tests.corpora.reported")
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--side", choices=["eager", "torch", "stator"])
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measure(given.names[0], given.side)))
        return
    table = {}
    for name in given.names:
        table[name] = {side: in_process(name, side) for side in ("torch", "stator")}
        print(f"{name:55} {shown(table[name])}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
