"""Measure one workload under one compiler, or as it is, in this process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from integration_tests.benchmarks.compiled_share._count import CountingCompiler
from integration_tests.benchmarks.compiled_share._profile import operators_outside, profiled
from integration_tests.benchmarks.real_models._workload import Program, Workload

PLAIN = "plain"
STEADY_CALL = 3


@attrs.frozen
class Counts:
    """Operators of a process.

    The third call runs ``outside`` and ``inside`` of compiled graphs; ``compiled`` were given to
    the compiler in all, in ``graphs``.
    """

    outside: int
    inside: int
    compiled: int
    graphs: int


@attrs.frozen
class Measurement:
    """The operators of a process, all tensors that its calls returned, and a report: the names of
    the operators outside, and what stator says."""

    counts: Counts
    results: list[list[Tensor]]
    report: str


def measure(workload: Workload, side: str) -> Measurement:
    """Run three calls, the last one under the profiler."""
    seed()
    program = workload.make()
    counting = CountingCompiler()
    compiled, run = compile_program(program, side, counting.backend())
    results = []
    with torch.set_grad_enabled(workload.gradients):
        for number in range(STEADY_CALL - 1):
            results.append(leaves_of(call(program, run, number)()))

        counting.run = 0
        result, events = profiled(call(program, run, STEADY_CALL - 1))
        results.append(leaves_of(result))

    outside = Counter(operators_outside(events))
    counts = Counts(outside.total(), counting.run, counting.compiled, counting.graphs)
    report = str(compiled.report) if side == "stator" else ""
    names = ", ".join(f"{number} {name}" for name, number in outside.most_common())
    return Measurement(counts, results, f"{side}, outside: {names}\n{report}")


def compile_program(program: Program, side: str, backend: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the compiled part of a program, and what a user calls."""
    compiled = program.fn if side == PLAIN else COMPILERS[side](program.fn, backend)
    return compiled, program.driver(compiled)


def _by_stator(fn: Callable[..., Any], backend: Any) -> Any:
    import stator

    return stator.compile(fn, backend=backend)


def _by_torch(fn: Callable[..., Any], backend: Any) -> Any:
    return torch.compile(fn, backend=backend)


COMPILERS = {"stator": _by_stator, "torch": _by_torch}


def call(program: Program, run: Callable[..., Any], number: int) -> Callable[[], Any]:
    """Return a call that draws the same random numbers as the same call of any other process."""
    args, kwargs = program.arguments(number)
    seed()
    return lambda: run(*args, **kwargs)


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def leaves_of(result: Any) -> list[Tensor]:
    """Return copies of all tensors in a result, since a later call may write to them."""
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
    return [tensor.detach().clone() for tensor in tensors]


def difference(ours: list[list[Tensor]], plain: list[list[Tensor]]) -> float:
    """Return the largest difference of any result, relative to the largest value beside it.

    Results that differ in number, size or in what is not finite are infinitely different.
    """
    found = 0.0
    for leaves, wanted in zip(ours, plain, strict=True):
        if len(leaves) != len(wanted):
            return float("inf")
        pairs = zip(leaves, wanted, strict=True)
        found = max([found, *(_relative(leaf, right) for leaf, right in pairs)])
    return found


def _relative(ours: Tensor, plain: Tensor) -> float:
    if ours.shape != plain.shape or ours.dtype != plain.dtype:
        return float("inf")
    if torch.equal(ours, plain):
        return 0.0

    finite = plain.isfinite()
    if not torch.equal(finite, ours.isfinite()):
        return float("inf")
    ours, plain = ours[finite].double(), plain[finite].double()
    largest = max(plain.abs().max().item(), 1e-6)
    return (ours - plain).abs().max().item() / largest
