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
_ROUNDS = 30
_SECONDS = 2.0


@attrs.frozen
class Times:
    """CPU seconds of the first calls, until nothing compiles any more, with the import of the
    compiler and what C++ compilers take, and of a steady call; and the most bytes of tensors that
    are alive at once in a steady call."""

    first: float
    steady: float
    memory: int


def measure_times(workload: Workload, side: str) -> Times:
    """Call once, a few times more, and then in rounds of which the quickest counts."""
    seed()
    program = workload.make()
    start = _cpu()
    _, run = compile_program(program, side, "inductor")
    with torch.set_grad_enabled(workload.gradients):
        # the first one alone may be a call for which stator compiles nothing
        for number in range(_WARM_CALLS):
            call(program, run, number)()
        first = _cpu() - start

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
