"""What refers to what, as far as trackers know."""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

from stator_bytecode import Frame, GeneratorState

from stator_variables._kinds import (
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    FunctionTracker,
    TensorTracker,
)
from stator_variables._trace._graph import GraphValue
from stator_variables._tracker import VariableTracker, is_pending

_LEAVES = (ConstantTracker, TensorTracker, ClassTracker, BuiltinTracker)
_PLAIN = frozenset((*_LEAVES, str, bool, type, NoneType))
"""Classes of what holds nothing; most of what there is."""
_NOT_HELD = ("real", "value", "log", "steps", "steps_taken", "before")
"""Fields of trackers for what existed before, in which no tracker is, and for writes, whose values may be gone."""


def reaches(
    holders: Iterable[Any],
    target: Any,
    changed: Container[int] | None = None,
    *,
    otherwise: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether `target`, a tracker or the state of a generator, is one of `holders` or held by them; the last is asked
    first. Existing objects hold something new where they are among `changed`, by identity; else they are not asked.
    Before what is long is gone through, `otherwise` says whether it need not be."""
    for part in walk(holders, lambda part: news(part, changed)):
        if part is target:
            return True
        if is_long(part) and otherwise():
            return False
    return False


def reached(holders: Iterable[Any], targets: Iterable[Any], changed: Container[int]) -> set[int]:
    """The identities of those of `targets` that they hold, or are."""
    return set(paths(holders, targets, changed))


def paths(
    holders: Iterable[Any], targets: Iterable[Any], changed: Container[int]
) -> dict[int, list[Any]]:
    """What leads to each of `targets` that they hold, by its identity: one of `holders` first, itself last. The last
    of what one holds is gone through first, up to where all are found."""
    waiting, found = [(holder, None) for holder in holders], dict[int, tuple[Any, Any]]()
    sought = {id(target): target for target in targets}
    left = set(sought)
    while waiting and left:
        part, holder = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part, holder
            left.discard(id(part))
            waiting += [(held, part) for held in news(part, changed)]
    return {number: _path(target, found) for number, target in sought.items() if number not in left}


def _path(target: Any, found: dict[int, tuple[Any, Any]]) -> list[Any]:
    path, holder = [target], found[id(target)][1]
    while holder is not None:
        path.append(holder)
        holder = found[id(holder)][1]
    return path[::-1]


def leads(path: list[Any], roots: Container[int], changed: Container[int]) -> bool:
    """Whether each of these still holds the next, and the first, by identity, is one of `roots`."""
    links = itertools.pairwise(path)
    return id(path[0]) in roots and all(
        any(part is b for part in _held(a, changed)) for a, b in links
    )


def is_near(holders: Iterable[Any], target: Any, apart_from: Any) -> bool:
    """Whether `target` is held by `holders` without `apart_from` and what is long: False may be wrong."""

    def near(parts: Iterable[Any]) -> list[Any]:
        return [part for part in parts if part is not apart_from and not is_long(part)]

    return any(part is target for part in walk(near(holders), lambda part: near(news(part, None))))


def walk(roots: Iterable[Any], held_by: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Everything that these lead to, each once; the last of what one holds is gone through first."""
    waiting, seen = list(roots), dict[int, Any]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen[id(part)] = part
            yield part
            waiting += held_by(part)


def is_long(part: Any) -> bool:
    """Whether it takes long to go through what it holds."""
    return type(part) in (list, tuple, dict) and len(part) > 100


def news(part: Any, changed: Container[int] | None) -> list[Any]:
    return [held for held in _held(part, changed) if type(held) not in _PLAIN]


def _held(part: Any, changed: Container[int] | None) -> Iterable[Any]:
    if type(part) in (list, tuple):
        return list(part)
    if type(part) is dict:
        return list(part.values())
    if type(part) is GeneratorState:
        return (*part.frame.slots, *part.frame.stack)
    if not issubclass(type(part), VariableTracker):
        return ()
    if getattr(part, "exhausted", False) and not part.kind.startswith("deque"):
        return ()  # it has let go of what it went through
    if part.source is None or (changed is not None and id(part) in changed):
        return [value for name, value in vars(part).items() if name not in _NOT_HELD]
    return () if changed is None else (part.namespace,)


def may_hold(value: Any) -> bool:
    """Whether a value may hold something new that is not held by all others like it."""
    return issubclass(type(value), VariableTracker) and not isinstance(
        value, (*_LEAVES, FunctionTracker)
    )


def is_new_leaf(value: Any) -> bool:
    """Whether nobody can notice its end: it is new, and holds nothing."""
    return type(value) in _LEAVES and value.source is None


def reachable(roots: Sequence[Any]) -> Iterator[Any]:
    """Every tracker that these lead to, each once, roughly in the order of reading; what nobody looked at yet leads
    nowhere."""
    found = walk([root for root in reversed(roots) if not is_pending(root)], _parts)
    return (value for value in found if isinstance(value, VariableTracker))


_NO_PART = ("real", "source", "iterators", "_pending", "_tracker")
"""Fields that lead nowhere, such as the iterators that go through a dict."""


def _parts(value: Any) -> list[Any]:
    """The last first."""
    return [part for part in reversed(_all_parts(value)) if not is_pending(part)]


def _all_parts(value: Any) -> Sequence[Any]:
    if isinstance(value, VariableTracker):
        return [
            part
            for name, part in vars(value).items()
            if name not in _NO_PART and not isinstance(part, GraphValue)
        ]
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, GeneratorState):
        return (value.frame,)
    return (value.slots, value.stack) if isinstance(value, Frame) else ()
