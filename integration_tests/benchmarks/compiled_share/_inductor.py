"""Time one workload under Inductor, in this process, and measure its memory."""

from __future__ import annotations

import gc
import resource
import time
from typing import Any

import attrs
import torch
from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor

from integration_tests.benchmarks.compiled_share._measure import call, compile_program, seed
from integration_tests.benchmarks.compiled_share._profile import peak_of_memory, profiled
from integration_tests.benchmarks.real_models._workload import Workload

_WARM_CALLS = 4
_ROUNDS = 300
_SECONDS = 3.0


@attrs.frozen
class Seconds:
    """Time that something took: of the CPU, and on the wall."""

    cpu: float
    wall: float

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.cpu - other.cpu, self.wall - other.wall)

    def least(self, other: Seconds) -> Seconds:
        """Return the smaller figure of each kind: noise only adds."""
        return Seconds(min(self.cpu, other.cpu), min(self.wall, other.wall))


@attrs.frozen
class Times:
    """Seconds of the first calls, until nothing compiles any more, with the import of the compiler
    and what C++ compilers take, and of a steady call; and the most bytes of tensors that are alive
    at once in a steady call."""

    first: Seconds
    steady: Seconds
    memory: int

    @classmethod
    def of(cls, found: dict[str, Any]) -> Times:
        """Return what ``attrs.asdict`` was made of."""
        return cls(Seconds(**found["first"]), Seconds(**found["steady"]), found["memory"])


def measure_times(workload: Workload, side: str) -> Times:
    """Call once, a few times more, and then in rounds of which the quickest counts."""
    seed()
    program = workload.make()
    start = _now()
    _, run = compile_program(program, side, "inductor")
    with torch.set_grad_enabled(workload.gradients):
        # the first one alone may be a call for which stator compiles nothing
        for number in range(_WARM_CALLS):
            call(program, run, number)()
        first = _now() - start

        steady = _steady(lambda: call(program, run, _WARM_CALLS))
        # Memory that the second call frees, such as gradients, was made by the first.
        for _ in range(2):
            before = _bytes_alive()
            _, events = profiled(call(program, run, _WARM_CALLS), memory=True)
    return Times(first, steady, before + peak_of_memory(events))


def _bytes_alive() -> int:
    """Return the bytes of all tensors of the process, with gradients; fake ones have none."""
    gc.collect()
    tensors = [each for each in gc.get_objects() if type(each) in (torch.Tensor, nn.Parameter)]
    tensors = [each for each in tensors if not is_functorch_wrapped_tensor(each)]
    gradients = [each for each in map(_gradient, tensors) if each is not None]
    storages = {
        each.untyped_storage().data_ptr(): each.untyped_storage().nbytes()
        for each in (*tensors, *gradients)
        if each.layout == torch.strided and each.device.type == "cpu"
    }
    return sum(storages.values())


def _gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of a leaf. Autograd refuses even to say whether some tensors are one."""
    try:
        return tensor.grad if tensor.is_leaf else None
    except RuntimeError:
        return None


def _steady(prepare: Any) -> Seconds:
    gc.collect()
    gc.disable()
    try:
        found, used = Seconds(float("inf"), float("inf")), 0.0
        for _ in range(_ROUNDS):
            seconds = _seconds(prepare())
            found, used = found.least(seconds), used + seconds.wall
            if used > _SECONDS:
                break
        return found
    finally:
        gc.enable()


def _seconds(call: Any) -> Seconds:
    start = _now()
    call()
    return _now() - start


def _now() -> Seconds:
    """Return the time, and the CPU time of this process and of those it has waited for, such as C++
    compilers."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() + children.ru_utime + children.ru_stime
    return Seconds(cpu, time.perf_counter())
