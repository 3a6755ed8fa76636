"""Global modes that code may read and set while it is traced: the rows of `_torch_state`, and a few
of other forms.

`_tensors/_global_mode.py` has what is done when a mode is set.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from stator_bytecode import Result, after
from stator_guards import CallSource, CapturedSource
from torch.autograd.profiler import record_function
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from stator_variables._applevel._methods import initialise_range
from stator_variables._objects import _dict_entries, _new_values
from stator_variables._objects._list import ListTracker
from stator_variables._objects._method_table import app_level, then
from stator_variables._objects._program_error import as_program_error
from stator_variables._objects._wrap import equal_to
from stator_variables._protocols import _calls
from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._tensors import _indexing_mode, _torch_calls, _torch_functions
from stator_variables._tensors import _torch_state as state
from stator_variables._tensors._global_mode import NESTING, GlobalModes, Setting, nesting, put
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    real_of,
)
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker

handlers = FunctionTable("global mode")


# -- the rows of the table -------------------------------------------------------------------------
@handlers.handles_each([*state.SETTERS])
def write(t: Space, args: Args, kwargs: Kwargs, of: Any) -> None:
    row = state.SETTERS[of]
    decided = _torch_calls.decided(t, args)
    values = [_known(t, of, vt) for vt in decided]
    named = {**row.named}
    for name, vt in kwargs.items():
        if name not in row.named:
            values.append(_known(t, of, vt))
        else:
            named[name] = _known(t, of, vt)

    key, given = tuple(values[: row.keys]), (*values[row.keys :], *named.values())
    setting = Setting(row.read, of, of.__name__, key, tuple(row.named))
    value = given[0] if len(given) == 1 else given
    if not _is_accepted(t, setting, value):
        return
    if setting not in t.state(GlobalModes).starts and state.is_guarded(row.read):
        t.guard(CallSource(row.read, *_captured(key)), equal_to(setting.now))
    if value != setting.now or of not in state.INDEPENDENT:
        put(t, setting, value)


def _known(t: Space, of: Any, vt: VariableTracker) -> object:
    """The value of an argument: a constant, or a list of these."""
    value = vt.constant()
    if is_a(vt, ListTracker):
        value = [_known(t, of, item) for item in vt.items]
    if value is MISSING:
        raise t.unsupported(
            "mode-value", f"{of.__name__}() with a value that is not known while tracing"
        )
    return value


def _captured(values: Iterable[Any]) -> list[CapturedSource]:
    return [CapturedSource(repr(value), value) for value in values]


def _is_accepted(t: Space, setting: Setting, value: object) -> bool:
    """Try a setter, and take it back. Gives False where it only warns, as one for a device that is
    not there.

    C reports arguments that it does not take to the program.
    """
    try:
        before = setting.now
    except (TypeError, RuntimeError):
        raise t.unsupported(
            "bad-arguments", f"a call of {setting.text} that it does not accept"
        ) from None

    try:
        with filtered("error", ""):
            setting.set(value)
    except Warning as warning:
        if setting.now != before:
            raise t.unsupported("warning", f"a setter that warns: {warning}") from None
        t.graph.warn(str(warning), type(warning))
        return False
    except (TypeError, RuntimeError) as error:
        raise as_program_error(t, error) from None
    setting.set(before)
    return True


@handlers.handles_each([*state.GUARDED, *state.COVERED, *state.CONSTANT])
def read(t: Space, args: Args, kwargs: Kwargs, of: Any) -> VariableTracker:
    values = [_known(t, of, vt) for vt in args]
    if kwargs:
        raise t.unsupported("mode-value", f"{of.__name__}() with arguments given by name")
    if of not in state.GUARDED:
        return _query(t, of, values)

    source = CallSource(of, *_captured(values))
    if _is_set(t, of, tuple(values)):
        return _new_values.fresh(t, of(*values))
    if not (
        changed := [
            setting for setting in t.state(GlobalModes).starts if state.is_guarded(setting.read)
        ]
    ):
        result = of(*values)
        is_atom = not isinstance(result, list | tuple)
        return t.wrap(result, source) if is_atom else _guarded(t, source, result, result)

    with _as_at_start(t, changed):
        start = of(*values)
    return _guarded(t, source, start, of(*values))


def _is_set(t: Space, of: object, key: tuple[Any, ...]) -> bool:
    """Return True if the result is what the region has set."""
    return any(setting.read is of and setting.key == key for setting in t.state(GlobalModes).starts)


@contextlib.contextmanager
def _as_at_start(t: Space, settings: list[Setting]) -> Iterator[None]:
    """Take settings back for a moment: one may decide what the query of another gives."""
    present = [(setting, setting.now) for setting in settings]
    for setting in reversed(settings):
        setting.set(t.state(GlobalModes).starts[setting])
    yield
    for setting, value in present:
        setting.set(value)


def _guarded(t: Space, source: CallSource, start: object, result: object) -> VariableTracker:
    t.guard(source, equal_to(start))
    return _new_values.fresh(t, result)


def _query(t: Space, of: Any, values: list[Any]) -> VariableTracker:
    """Return the result of a query; a deprecated one warns on each call."""
    try:
        with filtered("error", ""):
            return _new_values.fresh(t, of(*values))
    except Warning as warning:
        t.graph.warn(str(warning), type(warning))
    except (TypeError, RuntimeError) as error:
        raise as_program_error(t, error) from None
    with filtered("ignore", ""):
        return _new_values.fresh(t, of(*values))


@handlers.handles_each([*state.AUTOCAST_DTYPES])
def autocast_dtype(t: Space, args: Args, kwargs: Kwargs, of: Any) -> VariableTracker:
    _query(t, of, [])
    device = ConstantTracker(state.AUTOCAST_DTYPES[of])
    return read(t, [device], {}, torch.get_autocast_dtype)


@handlers.handles(torch._utils.is_compiling)
def deprecated_is_compiling(t: Space, args: Args, kwargs: Kwargs) -> Result:
    _query(t, torch._utils.is_compiling, [])
    return _torch_functions.is_compiling(t, [], {})


@handlers.handles_each(state.FIXED)
def result(t: Space, args: Args, kwargs: Kwargs, of: object) -> ConstantTracker:
    return ConstantTracker(of)


@handlers.handles_each(state.REFUSED)
def refuse(t: Space, args: Args, kwargs: Kwargs, of: str) -> None:
    raise t.unsupported("mode-value", f"a function of torch that {of}")


@handlers.handles_each({torch.autocast_increment_nesting: 1, torch.autocast_decrement_nesting: -1})
def change_nesting(t: Space, args: Args, kwargs: Kwargs, of: int) -> VariableTracker:
    put(t, NESTING, nesting() + of)
    return ConstantTracker(nesting())


@handlers.handles(torch.clear_autocast_cache)
def clear_cache(t: Space, args: Args, kwargs: Kwargs) -> None:
    """The cache only spares casts; the casts of the graph are its own."""
    _torch_calls.record_without_modes(t, torch.clear_autocast_cache, [], {})


# -- the one function mode that is understood: numbers index as tensors do -------------------------
def _set_depth(depth: int) -> None:
    while _indexing_mode.depth_of_indexing() < depth:
        torch._C._push_on_torch_function_stack(_indexing_mode.indexing_mode()())
    while _indexing_mode.depth_of_indexing() > depth:
        torch._C._pop_torch_function_stack()


INDEXING = Setting(
    _indexing_mode.depth_of_indexing, _set_depth, "set_depth_of_indexing", is_node=False
)


@handlers.handles(torch._C._push_on_torch_function_stack)
def push_mode(t: Space, args: Args, kwargs: Kwargs) -> None:
    if args[0].cls is _indexing_mode.indexing_mode():
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
        t.journal.assign(t.state(Overrides), modes=(*t.state(Overrides).modes, args[0]))


@handlers.handles(torch._C._pop_torch_function_stack)
def pop_mode(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return a result that no one reads for the mode of indexing, which keeps its own state."""
    if not (INDEXING.now or t.state(Overrides).modes):
        raise t.unsupported("mode-value", "a mode that was entered elsewhere")
    if INDEXING.now:
        put(t, INDEXING, INDEXING.now - 1)
        return NONE
    *outer, left = t.state(Overrides).modes
    t.journal.assign(t.state(Overrides), modes=tuple(outer))
    return left


@handlers.handles(torch.device.__enter__)
def enter_device(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """C pushes the mode without its `__enter__`, which would put it below the others."""
    made = _calls.construct(t, ClassTracker(DeviceContext), args, {})
    return then(after(made, lambda mode: push_mode(t, [mode], {})), args[0])


@handlers.handles(torch.device.__exit__)
def leave_device(t: Space, args: Args, kwargs: Kwargs) -> None:
    pop_mode(t, [], {})


# -- profiler ranges -------------------------------------------------------------------------------
_profiler_enabled: Any = torch._C._autograd._profiler_enabled
_PROFILERS = (torch.profiler.profile, torch.autograd.profiler.profile)
_ENDS = "run_callbacks_on_exit"


@handlers.handles(record_function.__init__)
def make_range(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return app_level(t, initialise_range, args, kwargs)


@handlers.handles(record_function.__enter__)
def enter_range(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Leave a range out, with a profiler and without: a profile is to show what runs without it.

    Should the range be left natively, after a break, it has nothing to end. A profile that the
    program itself takes is its own to read, and has the range.
    """
    if args[0].namespace is None:
        return MISSING
    if _takes_a_profile(t) and read(t, [], {}, _profiler_enabled).constant():
        return MISSING
    _dict_entries.set_name(t, args[0].namespace, _ENDS, ConstantTracker(False))
    return args[0]


def _takes_a_profile(t: Space) -> bool:
    """Return True if a profiler is the manager of a `with` of the traced frames."""
    on_stacks = (real_of(vt) for frame in t.machine.frames for vt in frame.stack)
    return any(isinstance(getattr(real, "__self__", None), _PROFILERS) for real in on_stacks)


@handlers.handles(record_function.__exit__)
def leave_range(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """End a range that was left out. The next one of the same object is another one."""
    ends = t.lookup(args[0].namespace, _ENDS)
    if ends is MISSING or ends.constant() is not False:
        return MISSING
    _dict_entries.set_name(t, args[0].namespace, _ENDS, ConstantTracker(True))
    return NONE
