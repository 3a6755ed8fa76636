"""What handlers give back: a call of our own Python in place of C, a settled bool, None, a folded constant."""

from typing import Any

from stator_bytecode import after
from stator_guards import CapturedSource

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._model import _calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING


def app_level(t: Tracing, function: Any, args: Args, kwargs: Kwargs) -> Any:
    """Call a Python function of ours in place of a C one."""
    return _calls.call(t, wrap(t, function, CapturedSource(function.__qualname__, function)), args, kwargs)


def as_constant(result: Any) -> Any:
    return after(result, k.ConstantTracker)


def then(result: Any, value: Any = k.NONE) -> Any:
    """`value`, once `result` is there."""
    return after(result, lambda _: value)


def folded(t: Tracing, function: Any, args: Args, kwargs: Kwargs) -> Any:
    found = _calls.fold(t, function, args, kwargs)
    if found is MISSING:
        raise t.unsupported("builtin", f"{function.__name__}() of values that are not known while tracing")
    return found
