"""Time one workload under Inductor, in this process, and measure its memory."""

from __future__ import annotations

import gc
import resource
import time
from typing import Any

import attrs
import torch

from integration_tests.benchmarks.compiled_share._measure import call, compile_program, seed
from integration_tests.benchmarks.compiled_share._profile import peak_of_memory, profiled
from integration_tests.benchmarks.real_models._workload import Workload

_WARM_CALLS = 4
_ROUNDS = 30
_SECONDS = 2.0


@attrs.frozen
class Times:
    """CPU seconds of the first call, with C++ compilers, and of a steady one; and by how many bytes
    of tensors a steady call goes beyond those alive before it."""

    first: float
    steady: float
    memory: int


def measure_times(workload: Workload, side: str) -> Times:
    """Call once, a few times more, and then in rounds of which the quickest counts."""
    seed()
    program = workload.make()
    _, run = compile_program(program, side, "inductor")
    with torch.set_grad_enabled(workload.gradients):
        first = _seconds(call(program, run, 0))
        for number in range(1, _WARM_CALLS):
            call(program, run, number)()

        steady = _steady(lambda: call(program, run, _WARM_CALLS))
        # Memory that the second call frees, such as gradients, was made by the first.
        for _ in range(2):
            _, events = profiled(call(program, run, _WARM_CALLS), memory=True)
    return Times(first, steady, peak_of_memory(events))


def _steady(prepare: Any) -> float:
    gc.collect()
    gc.disable()
    try:
        found, used = float("inf"), 0.0
        for _ in range(_ROUNDS):
            seconds = _seconds(prepare())
            found, used = min(found, seconds), used + seconds
            if used > _SECONDS:
                break
        return found
    finally:
        gc.enable()


def _seconds(call: Any) -> float:
    start = _cpu()
    call()
    return _cpu() - start


def _cpu() -> float:
    """Return the CPU time of this process and of those it has waited for, such as C++ compilers."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
