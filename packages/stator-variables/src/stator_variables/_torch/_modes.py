"""Global modes that code may read and set while it is traced: grad mode, autocast, default dtype, determinism.

A mode that is set is really set, and the setter becomes a node, so that fake tensors and the graph come out right.
The journal puts it back on a rollback, and the end of the trace does; the entry sets the final value when it runs.
What is read is guarded by the entry's one global-state guard.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable, after
from stator_guards import CallSource, Truth
from torch.autograd.profiler import record_function
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from stator_variables import _kinds as k
from stator_variables._applevel._methods import initialise_range
from stator_variables._builtin._method_table import app_level, then
from stator_variables._model import _calls, _dictionary
from stator_variables._model._raising import as_program_error
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("global mode")


@attrs.frozen
class Setting:
    """One mode: `read(*key)` gives its value, `write(*key, value)` sets it; `key` is the device type of autocast's."""

    read: Callable[..., Any]
    write: Callable[..., Any]
    text: str
    key: tuple[Any, ...] = ()
    is_node: bool = attrs.field(
        default=True, eq=False
    )  # False: the mode comes from what an operator's body runs in

    @property
    def now(self) -> Any:
        return self.read(*self.key)

    def set(self, value: Any) -> None:
        self.write(*self.key, value)

    def statement(self, value: Any, capture: Callable[[Any, str], str]) -> str:
        parts = [
            *map(repr, self.key),
            repr(value) if isinstance(value, bool | int) else capture(value, "mode"),
        ]
        return f"{capture(self.write, self.text)}({', '.join(parts)})"


def restore(t: Tracing) -> None:
    """Put the modes back as they were when tracing started."""
    while t.inference.entered:
        t.inference.entered.pop().leave()
    for setting, before in reversed(t.modes.items()):
        if setting.now != before:
            setting.set(before)


def effects(
    t: Tracing, capture: Callable[[Any, str], str], are_set: frozenset[Setting]
) -> list[str]:
    """Statements that set the modes whose value differs from the start, but those that are set already."""
    values = {setting: setting.now for setting in t.modes if setting not in are_set}
    return [
        setting.statement(value, capture)
        for setting, value in values.items()
        if value != t.modes[setting]
    ]


def put(t: Tracing, setting: Setting, value: Any, inference: bool | None = None) -> None:
    """Set a mode, as a node of the graph and for real. In inference mode (by default: as it is) nothing gets gradients,
    whatever their mode; to the graph it is that mode."""
    before = setting.now
    t.modes.setdefault(setting, before)
    if setting.is_node:
        off = setting == GRAD and (
            torch.is_inference_mode_enabled() if inference is None else inference
        )
        arguments = [k.ConstantTracker(part) for part in (*setting.key, False if off else value)]
        _torch_calls.record_unheard(t, setting.write, arguments, {})
    setting.set(value)
    t.journal.record(lambda: setting.set(before))


_KERNELS: dict[Callable[..., Any], Callable[..., Any]] = {  # which attention may use
    getattr(torch._C, f"_get_{name}_sdp_enabled"): getattr(torch._C, f"_set_sdp_use_{name}")
    for name in ("cudnn", "flash", "mem_efficient", "math", "overrideable")
}
_READERS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch._C._set_grad_enabled: torch.is_grad_enabled,
    torch.set_autocast_enabled: torch.is_autocast_enabled,
    torch.set_autocast_dtype: torch.get_autocast_dtype,
    torch.set_autocast_cache_enabled: torch.is_autocast_cache_enabled,
    **{write: read for read, write in _KERNELS.items()},
}
"""Of each setter `set(*key, value)` the getter."""


@handlers.handles_each([*_READERS])
def write(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> None:
    values = [arg.constant() for arg in _torch_calls.decided(t, (*args, *kwargs.values()))]
    if any(value is MISSING for value in values):
        raise t.unsupported(
            "mode-value", f"{of.__name__}() with a value that is not known while tracing"
        )
    _refuse_bad(t, of, values)
    put(t, Setting(_READERS[of], of, of.__name__, tuple(values[:-1])), values[-1])


def _refuse_bad(t: Tracing, of: Any, values: list[Any]) -> None:
    """What C says of arguments that it does not take, it says to the program."""
    try:
        before = _READERS[of](*values[:-1])
    except (TypeError, RuntimeError):
        raise t.unsupported(
            "bad-arguments", f"a call of {of.__name__} that it does not accept"
        ) from None
    try:
        of(*values)
    except (TypeError, RuntimeError) as error:
        raise as_program_error(t, error) from None
    of(*values[:-1], before)


@handlers.handles_each([*_KERNELS])
def ask(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> Any:
    if Setting(of, _KERNELS[of], _KERNELS[of].__name__) not in t.modes:  # it is the caller's
        t.guard(CallSource(of), Truth(of()))
    return k.ConstantTracker(of())


_GRAD_OF_A_BODY = Setting(
    torch.is_grad_enabled, torch._C._set_grad_enabled, "_set_grad_enabled", is_node=False
)


@contextlib.contextmanager
def grad_mode(t: Tracing, enabled: bool) -> Iterator[None]:
    """Grad mode as an operator has it around its body. What fails inside takes it back with all else."""
    before = torch.is_grad_enabled()
    if enabled != before:
        put(t, _GRAD_OF_A_BODY, enabled)
    yield
    if enabled != before:
        put(t, _GRAD_OF_A_BODY, before)


GRAD = Setting(torch.is_grad_enabled, torch._C._set_grad_enabled, "_set_grad_enabled")


# -- the depth of nested autocast contexts ----------------------------------------------------------------------------
def _nesting() -> int:
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


def _set_nesting(depth: int) -> None:
    while _nesting() < depth:
        torch.autocast_increment_nesting()
    while _nesting() > depth:
        torch.autocast_decrement_nesting()


NESTING = Setting(_nesting, _set_nesting, "set_autocast_nesting", is_node=False)


@handlers.handles_each({torch.autocast_increment_nesting: 1, torch.autocast_decrement_nesting: -1})
def change_nesting(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: int) -> Any:
    put(t, NESTING, _nesting() + of)
    return k.ConstantTracker(_nesting())


@handlers.handles(torch.clear_autocast_cache)
def clear_cache(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> None:
    """The cache only spares casts; the casts of the graph are its own."""
    _torch_calls.record_unheard(t, torch.clear_autocast_cache, [], {})


# -- the one function mode that is understood: numbers index as tensors do --------------------------------------------
def _set_depth(depth: int) -> None:
    while _torch_calls.depth_of_indexing() < depth:
        torch._C._push_on_torch_function_stack(_torch_calls.indexing_mode()())
    while _torch_calls.depth_of_indexing() > depth:
        torch._C._pop_torch_function_stack()


INDEXING = Setting(
    _torch_calls.depth_of_indexing, _set_depth, "set_depth_of_indexing", is_node=False
)


@handlers.handles(torch._C._push_on_torch_function_stack)
def push_mode(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> None:
    if args[0].cls is _torch_calls.indexing_mode():
        put(t, INDEXING, INDEXING.now + 1)
    elif (
        INDEXING.now
        or torch._C._is_torch_function_all_disabled()
        or not issubclass(args[0].cls, TorchFunctionMode)
    ):
        raise t.unsupported(
            "mode-value", f"a {args[0].cls.__qualname__} for every function of torch"
        )
    else:
        t.journal.assign(t.overrides, modes=(*t.overrides.modes, args[0]))


@handlers.handles(torch._C._pop_torch_function_stack)
def pop_mode(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What it gives for that of indexing is looked at by nobody: the mode that is left knows itself."""
    if not (INDEXING.now or t.overrides.modes):
        raise t.unsupported("mode-value", "a mode that was entered elsewhere")
    if INDEXING.now:
        put(t, INDEXING, INDEXING.now - 1)
        return k.NONE
    *outer, left = t.overrides.modes
    t.journal.assign(t.overrides, modes=tuple(outer))
    return left


@handlers.handles(torch.device.__enter__)
def enter_device(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """C pushes the mode without its `__enter__`, which would put it below the others."""
    made = _calls.construct(t, k.ClassTracker(DeviceContext), args, {})
    return then(after(made, lambda mode: push_mode(t, [mode], {})), args[0])


@handlers.handles(torch.device.__exit__)
def leave_device(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> None:
    pop_mode(t, [], {})


# -- reading ----------------------------------------------------------------------------------------------------------
_PUBLIC = """is_grad_enabled is_inference_mode_enabled is_autocast_enabled is_autocast_cache_enabled get_autocast_dtype
get_autocast_gpu_dtype get_autocast_cpu_dtype is_autocast_cpu_enabled get_default_dtype is_anomaly_enabled
are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled"""
_PRIVATE = """_is_autocast_available _is_any_autocast_enabled _get_deterministic_algorithms
_is_torch_function_all_disabled"""


@handlers.handles_each(
    [
        *(getattr(torch, name) for name in _PUBLIC.split()),
        *(getattr(torch._C, name) for name in _PRIVATE.split()),
    ]
)
def read(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> Any:
    """What the entry guards as a whole."""
    values = [arg.constant() for arg in args]
    if any(value is MISSING for value in values) or kwargs:
        raise t.unsupported(
            "mode-value", f"{of.__name__}() of a value that is not known while tracing"
        )
    return _calls.folded(t, of, *values)


# -- profiler ranges --------------------------------------------------------------------------------------------------
_profiler_enabled: Any = torch._C._autograd._profiler_enabled
_ENDS = "run_callbacks_on_exit"


@handlers.handles(_profiler_enabled)
def profiler_enabled(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    t.guard(CallSource(_profiler_enabled), Truth(_profiler_enabled()))
    return k.ConstantTracker(_profiler_enabled())


@handlers.handles(record_function.__init__)
def make_range(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return app_level(t, initialise_range, args, kwargs)


@handlers.handles(record_function.__enter__)
def enter_range(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Nobody sees a range while no profiler runs. Should it be left natively, after a break, it has nothing to end."""
    if profiler_enabled(t, [], {}).value or args[0].namespace is None:
        return MISSING
    _dictionary.set_name(t, args[0].namespace, _ENDS, k.ConstantTracker(False))
    return args[0]


@handlers.handles(record_function.__exit__)
def leave_range(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    ends = _dictionary.lookup(t, args[0].namespace, _ENDS)
    return MISSING if ends is MISSING or ends.constant() is not False else k.NONE
