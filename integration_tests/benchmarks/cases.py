"""Costs of compiling and importing, as ratios to torch.compile and, where it helps, to plain
Python.

What a call costs afterwards is measured in ``real_models``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import stator
import torch

from integration_tests.benchmarks.interleaved import best_times
from integration_tests.corpora.models import ZOO
from integration_tests.support.counting import Counting


@attrs.frozen
class Row:
    """One figure: stator's cost as a multiple of torch.compile's and of plain Python's, and what is
    aimed at."""

    title: str
    to_torch: float | None
    to_plain: float | None
    target: str


def cold_capture(title: str) -> Row:
    """From a fresh cache to the end of the first call, with a backend that does nothing."""
    model, call, _ = ZOO[title].make()

    def capture(compile_: Any, reset: Any) -> None:
        reset()
        compile_(model, backend=Counting())(*call.args, **call.kwargs)

    reset_torch: Callable[[], Any] = torch.compiler.reset
    ways: dict[str, Callable[[], Any]] = {
        "stator": lambda: capture(stator.compile, stator.reset),
        "torch": lambda: capture(torch.compile, reset_torch),
        "plain": lambda: model(*call.args, **call.kwargs),
    }
    for way in ways.values():  # the first of each imports half of torch
        way()
    times = best_times(ways, rounds=4)
    return Row(
        f"cold capture, {title}",
        times["stator"] / times["torch"],
        times["stator"] / times["plain"],
        "<= 1/2, then 1/3",
    )


IMPORT = """
import time, torch
start = time.perf_counter()
{what}
print(time.perf_counter() - start)
"""

MEMORY = """
import torch, torch._dynamo, stator, transformers
from integration_tests.support.counting import Counting
from integration_tests.corpora.models import ZOO
model, call, _ = ZOO["gpt2"].make()
model(*call.args, **call.kwargs)
def peak():  # of this process alone: ru_maxrss starts with what the parent had
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0])
before = peak()
compile_ = {compile_}
compile_(model, backend=Counting())(*call.args, **call.kwargs)
print(peak() - before)
"""


def _measured(script: str) -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def import_time() -> Row:
    """Beside what the first ``torch.compile`` has to import; the least of five fresh processes
    each, taken in turn."""
    pairs = [
        (_measured(IMPORT.format(what=f"import {name}")) for name in ("stator", "torch._dynamo"))
        for _ in range(5)
    ]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    return Row(
        "import after torch (to `import torch._dynamo`)", ours / theirs, None, "at most 0.3 s"
    )


def peak_memory() -> Row:
    """What a cold capture adds to the peak of a process that has made and run the model."""
    pairs = [
        (_measured(MEMORY.format(compile_=f"{name}.compile")) for name in ("stator", "torch"))
        for _ in range(2)
    ]
    ours, theirs = (min(peaks) for peaks in zip(*pairs, strict=True))
    return Row("peak memory of a cold capture, 12-layer GPT-2", ours / theirs, None, "<= 1")


BACKWARD = """
import time, torch, stator, torch._dynamo.compiled_autograd as theirs
torch.set_num_threads(1)
def network(depth):
    blocks = [torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()) for _ in range(depth)]
    return torch.nn.Sequential(*blocks)
def backward(net):
    loss = net(torch.ones(4, 16)).sum()
    start = time.perf_counter()
    loss.backward()
    spent = time.perf_counter() - start
    net.zero_grad()
    return spent
warm, net = network(3), network(20)
with {context}:
    backward(warm)  # imports, and what compilers set up once
    first = backward(net)
    print(first if {is_capture} else min(backward(net) for _ in range(500)))
"""

CONTEXTS = (
    "stator.compiled_autograd(backend={backend!r})",
    "theirs._enable(torch.compile(backend={backend!r}))",
)


def backwards(backend: str, is_capture: bool) -> Row:
    """The backward of 20 layers under compiled autograd, beside torch's own; processes
    alternate."""
    scripts = [
        BACKWARD.format(context=context.format(backend=backend), is_capture=is_capture)
        for context in CONTEXTS
    ]
    rounds = [[_measured(script) for script in scripts] for _ in range(2)]
    ours, theirs = (min(times) for times in zip(*rounds, strict=True))
    what = "first" if is_capture else "later"
    return Row(f"compiled autograd, {backend}, {what} backward", ours / theirs, None, "<= 1/2")


def measure() -> Iterator[Row]:
    for title in ("encoder", "bert", "gpt2"):
        yield cold_capture(title)
    yield import_time()
    yield peak_memory()
    for backend in ("eager", "aot_eager", "inductor"):
        yield backwards(backend, True)
        yield backwards(backend, False)
