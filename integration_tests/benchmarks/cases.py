"""What is measured. Each case gives a ``Row``: a ratio to torch.compile, one to plain Python where that says something.

The overhead of a call is the time of the compiled call less the time of the bare graph that it runs.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import stator
import torch
from torch import Tensor, nn

from integration_tests.benchmarks.interleaved import best_times
from integration_tests.counting import Counting
from integration_tests.models import ZOO


@attrs.frozen
class Row:
    """One figure: stator's cost as a multiple of torch.compile's and of plain Python's, and what is aimed at."""

    title: str
    to_torch: float | None
    to_plain: float | None
    target: str


def two_tensors(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def deep(width: int = 8, layers: int = 50) -> nn.Sequential:
    return nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())))


def _overhead(title: str, fn: Any, args: tuple[Any, ...], target: str, repeats: int) -> Row:
    """All three run the same graph; stator's and torch.compile's costs around it are compared."""
    ours, theirs = Counting(), Counting()
    torch.compiler.reset()
    ways: dict[str, Callable[[], Any]] = {
        "stator": functools.partial(stator.compile(fn, backend=ours), *args),
        "torch": functools.partial(torch.compile(fn, backend=theirs), *args),
        "plain": functools.partial(fn, *args),
    }
    with torch.no_grad():
        for way in ways.values():
            way()
            way()
        ways |= {"our graph": _bare(ours), "their graph": _bare(theirs)}
        times = best_times(ways, rounds=30, repeats=repeats)
    around = {"stator": times["stator"] - times["our graph"], "torch": times["torch"] - times["their graph"]}
    return Row(title, around["stator"] / around["torch"], times["stator"] / times["plain"], target)


def _bare(counting: Counting) -> Callable[[], Any]:
    """The graph alone, called with real tensors of the recorded shapes."""
    (graph,) = counting.graphs
    examples = [node.meta.get("example_value", node.meta.get("val")) for node in graph.graph.nodes]
    inputs = [e for e, node in zip(examples, graph.graph.nodes, strict=True) if node.op == "placeholder"]
    return functools.partial(graph.forward, *(torch.randn(tuple(each.shape)) for each in inputs))


def call_of_two_tensors() -> Row:
    args = (torch.ones(2), torch.ones(2))
    return _overhead("call overhead, two-tensor function", two_tensors, args, "<= 1/5", 300)


def call_of_deep_module() -> Row:
    return _overhead("call overhead, 50-layer MLP", deep(), (torch.ones(2, 8),), "<= 1/2", 20)


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
        f"cold capture, {title}", times["stator"] / times["torch"], times["stator"] / times["plain"], "<= 1/2, then 1/3"
    )


IMPORT = """
import time, torch
start = time.perf_counter()
{what}
print(time.perf_counter() - start)
"""

MEMORY = """
import torch, torch._dynamo, stator, transformers
from integration_tests.counting import Counting
from integration_tests.models import ZOO
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
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def import_time() -> Row:
    """Beside what the first ``torch.compile`` has to import; the least of five fresh processes each, taken in turn."""
    pairs = [
        (_measured(IMPORT.format(what=f"import {name}")) for name in ("stator", "torch._dynamo")) for _ in range(5)
    ]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    return Row("import after torch (to `import torch._dynamo`)", ours / theirs, None, "at most 0.3 s")


def peak_memory() -> Row:
    """What a cold capture adds to the peak of a process that has made and run the model."""
    pairs = [(_measured(MEMORY.format(compile_=f"{name}.compile")) for name in ("stator", "torch")) for _ in range(2)]
    ours, theirs = (min(peaks) for peaks in zip(*pairs, strict=True))
    return Row("peak memory of a cold capture, 12-layer GPT-2", ours / theirs, None, "<= 1")


def measure() -> Iterator[Row]:
    yield call_of_two_tensors()
    yield call_of_deep_module()
    for title in ("encoder", "bert", "gpt2"):
        yield cold_capture(title)
    yield import_time()
    yield peak_memory()
