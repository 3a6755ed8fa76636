"""Global modes that code may read and set while it is traced: grad mode, autocast, the rest.

A mode that is set is really set, so that fake tensors come out right; the journal puts it back on a rollback, and the
entry sets the final value when it runs. What is read is guarded by the entry's one global-state guard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables import _torch_calls
from stator_variables._raising import throw
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("global mode")


@attrs.frozen
class Mode:
    """How one mode is read and written; `setter` is an expression the entry uses, with the value in braces."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    setter: str


MODES = {
    "grad": Mode(torch.is_grad_enabled, torch._C._set_grad_enabled, "torch._C._set_grad_enabled({})"),
    "autocast_cache": Mode(
        torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, "torch.set_autocast_cache_enabled({})"
    ),
}


def initial(t: Tracing) -> None:
    """Remember the modes as tracing starts."""
    t.modes.update({name: mode.read() for name, mode in MODES.items()})


def restore(t: Tracing) -> None:
    """Put the modes back as they were when tracing started."""
    for name, mode in MODES.items():
        if mode.read() != t.modes[name]:
            mode.write(t.modes[name])


def changed(t: Tracing) -> dict[str, Any]:
    """Modes whose value now differs from the start: name to value."""
    return {name: mode.read() for name, mode in MODES.items() if mode.read() != t.modes[name]}


def set_mode(t: Tracing, name: str, value: Any) -> None:
    mode = MODES[name]
    before = mode.read()
    mode.write(value)
    t.journal.record(lambda: mode.write(before))


@handlers.handles(torch.is_grad_enabled)
def is_grad_enabled(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(torch.is_grad_enabled())


@handlers.handles(torch._C._set_grad_enabled)
def set_grad_enabled(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    value = args[0].constant()
    if value is MISSING:
        raise t.unsupported("mode-value", "setting grad mode to a value that is not known while tracing")
    if value != torch.is_grad_enabled():
        before = torch.is_grad_enabled()
        _torch_calls.record(t, torch._C._set_grad_enabled, [k.ConstantTracker(value)], {})
        torch._C._set_grad_enabled(value)
        t.journal.record(lambda: torch._C._set_grad_enabled(before))
    return k.NONE


def _reader(function: Callable[..., Any]) -> None:
    """A function that reads global state which the entry guards as a whole."""

    @handlers.handles(function)
    def read(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
        values = [arg.constant() for arg in args]
        if any(v is MISSING for v in values) or kwargs:
            throw(TypeError, f"{function.__name__}() takes constants")
        return k.ConstantTracker(function(*values))


for _function in (
    torch.is_inference_mode_enabled,
    torch.is_autocast_enabled,
    torch.is_autocast_cache_enabled,
    torch.get_autocast_dtype,
    torch.get_autocast_gpu_dtype,
    torch.get_autocast_cpu_dtype,
    torch.is_autocast_cpu_enabled,
    torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.is_anomaly_enabled,
    torch._C._is_torch_function_enabled,
    torch._C._is_torch_function_all_disabled,
    torch._C._len_torch_function_stack,
    torch._C._cuda_getDeviceCount if hasattr(torch._C, "_cuda_getDeviceCount") else torch.get_num_threads,
):
    _reader(_function)
