"""Several paths to one tensor, which a break carries.

    y = y0                       # the first round of a loop
    while error(y) > limit:      # a break, which carries `y` and `y0`
        y = step(y)
    return y, y0

A continuation that reads one of them relies on nothing about the others: it goes on as well where
they are other tensors, as in the second round. So each path has a tracker of its own until one is
read; where a second one is, the trace is made again with one tracker for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import define
from stator_guards import Source
from torch import Tensor

from stator_variables._objects._wrap import wrap
from stator_variables._space import Space
from stator_variables._trace._capture_state import Notes
from stator_variables._tracker import VariableTracker, pending


@define(eq=False)
class CarriedPaths(Notes):
    """The paths that the break before has carried."""

    are_read_twice: bool = False
    """One tensor was read by two of them: the trace is made again."""


def wrap_paths(t: Space, values: Sequence[object], sources: Sequence[Source]) -> list[Any]:
    """Return trackers of what a break carries."""
    seen = Counter(id(value) for value in values if type(value) is Tensor)
    return [
        _path(t, value, source) if _is_apart(t, value, seen) else wrap(t, value, source)
        for value, source in zip(values, sources, strict=True)
    ]


def _is_apart(t: Space, value: object, seen: Counter[int]) -> bool:
    is_known = id(value) in t.heap.trackers
    return seen[id(value)] > 1 and not is_known and not t.policy.joins_paths


def _path(t: Space, value: object, source: Source) -> VariableTracker:
    """Return a tracker of one path, which becomes that of the tensor if it is read first."""

    def read() -> VariableTracker:
        if id(value) in t.heap.trackers:
            t.state(CarriedPaths).are_read_twice = True
            raise t.unsupported("reconstruction", "a tensor that a break carries twice")
        t.heap.trackers[id(value)] = t.heap.by_source[source] = path
        t.heap.alive.append(value)
        return t.build(value, source)

    path = pending(source, value, read)
    return path
