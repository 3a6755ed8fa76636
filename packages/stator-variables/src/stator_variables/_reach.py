"""What refers to what, as far as trackers know."""

from collections.abc import Container, Iterable
from types import NoneType
from typing import Any

from stator_bytecode import GeneratorState

from stator_variables._kinds import BuiltinTracker, ClassTracker, ConstantTracker, FunctionTracker, TensorTracker
from stator_variables._tracker import LazyTracker, VariableTracker

_LEAVES = (ConstantTracker, TensorTracker, ClassTracker, BuiltinTracker)
_PLAIN = frozenset((*_LEAVES, LazyTracker, str, bool, type, NoneType))
"""Classes of what holds nothing new; most of what there is."""
_NOT_HELD = ("real", "value", "log", "steps")
"""Fields of trackers for what existed before, in which no tracker is, and for writes, whose values may be gone."""


def reaches(holders: Iterable[Any], target: Any, changed: Container[int] | None = None) -> bool:
    """Whether `target`, a tracker or the state of a generator, is one of `holders` or held by them; the last is asked
    first. Existing objects hold something new where they are among `changed`, by identity; else they are not asked."""
    waiting, seen = list(holders), set[int]()
    while waiting:
        part = waiting.pop()
        if part is target:
            return True
        if id(part) not in seen:
            seen.add(id(part))
            waiting += [held for held in _held(part, changed) if type(held) not in _PLAIN]
    return False


def _held(part: Any, changed: Container[int] | None) -> Iterable[Any]:
    if type(part) in (list, tuple):
        return list(part)
    if type(part) is dict:
        return list(part.values())
    if type(part) is GeneratorState:
        return (*part.frame.slots, *part.frame.stack)
    if not issubclass(type(part), VariableTracker):
        return ()
    if part.source is None or (changed is not None and id(part) in changed):
        return [value for name, value in vars(part).items() if name not in _NOT_HELD]
    return () if changed is None else (part.namespace,)


def may_hold(value: Any) -> bool:
    """Whether a value may hold something new that is not held by all others like it."""
    return issubclass(type(value), VariableTracker) and not isinstance(value, (*_LEAVES, FunctionTracker))
