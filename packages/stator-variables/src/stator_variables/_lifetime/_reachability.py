"""References between trackers, and reachability."""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

from stator_bytecode import Frame, GeneratorState, frame_values

from stator_variables._tracker import VariableTracker
from stator_variables._trackers import (
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    TensorTracker,
)

_LEAVES = (ConstantTracker, TensorTracker, ClassTracker, BuiltinTracker)
_PLAIN = frozenset((*_LEAVES, str, bool, type, NoneType))
"""Classes of what holds nothing; most of what there is."""


def reaches(
    holders: Iterable[Any],
    target: Any,
    changed: Container[int] | None = None,
    *,
    otherwise: Callable[[], bool] = lambda: False,
) -> bool:
    """Return True if `target`, a tracker or the state of a generator, is one of `holders` or held
    by them; the last is searched first.

    Existing objects can hold something new only if they are among `changed`, by identity. Before a
    long container is searched, `otherwise` decides if that can be skipped.
    """
    for part in walk(holders, lambda part: news(part, changed)):
        if part is target:
            return True
        if is_long(part) and otherwise():
            return False
    return False


def held_by_changed(changed: dict[int, Any]) -> set[int]:
    """The identities of existing objects that were changed, and of all new ones that they lead
    to."""
    return {id(part) for part in walk(changed.values(), lambda part: news(part, changed))}


def reached(holders: Iterable[Any], targets: Iterable[Any], changed: Container[int]) -> set[int]:
    """The identities of those of `targets` that they hold, or are."""
    return set(paths(holders, targets, changed))


def paths(
    holders: Iterable[Any], targets: Iterable[Any], changed: Container[int]
) -> dict[int, list[Any]]:
    """Return the path to each of `targets` that is reachable, by its identity: one of `holders`
    first, the target last.

    The last referent of an object is searched first, up to where all are found.
    """
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
    """Return True if each of these still holds the next, and the first, by identity, is one of
    `roots`."""
    links = itertools.pairwise(path)
    return id(path[0]) in roots and all(
        any(part is b for part in _held(a, changed)) for a, b in links
    )


def is_near(holders: Iterable[Any], target: object, apart_from: VariableTracker) -> bool:
    """Return True if `target` is held by `holders` without `apart_from` and long containers: False
    may be wrong."""

    def near(parts: Iterable[Any]) -> list[Any]:
        return [part for part in parts if part is not apart_from and not is_long(part)]

    return any(part is target for part in walk(near(holders), lambda part: near(news(part, None))))


def walk(roots: Iterable[Any], held_by: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Everything that these lead to, each once; the last of what one holds is gone through
    first."""
    waiting, seen = list(roots), dict[int, Any]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen[id(part)] = part
            yield part
            waiting += held_by(part)


def is_long(part: Any) -> bool:
    """Return True for a long container, which is slow to search."""
    return type(part) in (list, tuple, dict) and len(part) > 100


def news(part: Any, changed: Container[int] | None) -> list[Any]:
    return [held for held in _held(part, changed) if type(held) not in _PLAIN]


def _held(part: Any, changed: Container[int] | None) -> Iterable[Any]:
    if not issubclass(type(part), VariableTracker):
        return _members(part)
    if part.source is None or (changed is not None and id(part) in changed):
        return part.traverse()  # type: ignore[no-any-return]
    return () if changed is None else (part.namespace,)


def _members(part: Any) -> Sequence[Any]:
    """Return what a field of a tracker holds, if that is no tracker itself."""
    if type(part) in (list, tuple):
        return part  # type: ignore[no-any-return]
    if type(part) is dict:
        return list(part.values())
    return frame_values([part.frame]) if type(part) is GeneratorState else ()


def may_hold(value: Any) -> bool:
    """Return True for a tracker that may hold something new that is not held by all others like
    it."""
    return getattr(type(value), "may_hold", False)


def is_new_leaf(value: Any) -> bool:
    """Return True if the end of a value is unobservable: it is new, and holds nothing."""
    return type(value) in _LEAVES and value.source is None


def reachable(roots: Sequence[Any]) -> Iterator[Any]:
    """Every tracker that these lead to, each once, roughly in the order of reading; what nobody
    looked at yet leads nowhere. Frames among `roots` lead to the values of their slots and stacks.
    """
    found = walk(reversed([*map(_values_of_frame, roots)]), _components)
    return (value for value in found if issubclass(type(value), VariableTracker))


def _values_of_frame(root: object) -> object:
    return (root.slots, root.stack) if type(root) is Frame else root


def _components(part: Any) -> list[Any]:
    """The last first."""
    is_tracker = issubclass(type(part), VariableTracker)
    return [*reversed(part.components() if is_tracker else _members(part))]
