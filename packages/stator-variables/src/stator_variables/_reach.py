"""What refers to what, as far as trackers know."""

from collections.abc import Iterable
from typing import Any

from stator_bytecode import GeneratorState

from stator_variables._kinds import BuiltinTracker, ClassTracker, ConstantTracker, FunctionTracker, TensorTracker
from stator_variables._tracker import VariableTracker

_OF_OBJECTS = ("real", "value")
"""Fields of trackers that hold what existed before: no tracker is in there."""


def reaches(holders: Iterable[Any], target: Any, existing: bool = False) -> bool:
    """Whether `target`, a tracker or the state of a generator, is one of `holders` or held by them; the last is asked
    first. What existing objects hold is looked at only if `existing` says so."""
    waiting, seen = list(holders), set[int]()
    while waiting:
        part = waiting.pop()
        if part is target:
            return True
        if id(part) not in seen:
            seen.add(id(part))
            waiting += _held(part, existing)
    return False


def _held(part: Any, existing: bool) -> Iterable[Any]:
    if type(part) in (list, tuple):
        return list(part)
    if type(part) is dict:
        return list(part.values())
    if type(part) is GeneratorState:
        return (*part.frame.slots, *part.frame.stack)
    if issubclass(type(part), VariableTracker) and (existing or part.source is None):
        return [value for name, value in vars(part).items() if name not in _OF_OBJECTS]
    return ()


def may_hold(value: Any) -> bool:
    """Whether a value may hold something new that is not held by all others like it."""
    return issubclass(type(value), VariableTracker) and not isinstance(value, _LEAVES)


_LEAVES = (ConstantTracker, TensorTracker, FunctionTracker, ClassTracker, BuiltinTracker)
