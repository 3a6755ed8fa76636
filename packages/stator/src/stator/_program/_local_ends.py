"""Locals of a continuation whose end the program can observe, and that die when its frames release
them.

An entry holds its arguments to its end, plain Python releases a local at once:

    reference = weakref.ref(box)    # a break; `box` is an argument of what follows
    box = [box]                     # released, but held by the list
    box = None                      # the list dies, and the box with it
    reference()                     # None

An entry that relies on the end of a local being unobservable has its place in its `LocalEnds`, and
each call finds out anew: by a check that is generated for states like the first one, which compares
classes and reference counts, and where that does not hold by looking at what the locals refer to.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import CellType, MethodType

import attrs
from stator_bytecode import FlatState
from stator_guards import identity, load_source
from stator_variables import (
    dying_with,
    has_observable_end,
    hold_plain_values,
    is_end_observable,
    release_check_source,
)

_numbers = itertools.count()

WHILE_TRACED = 2
"""The references to each value of a state while it is traced: by the runner, and by name."""


_CARRIERS = frozenset(map(identity, (tuple, CellType, MethodType)))
"""Classes, by identity, of what holds an object besides: as the `__exit__` of a `with`
statement."""


@attrs.define(eq=False)
class LocalEnds:
    """The locals of a continuation whose end an entry takes for unobservable."""

    places: tuple[int, ...] = ()
    source: str = ""
    _check: Callable[[FlatState], bool] | None = attrs.field(default=None, init=False)

    @classmethod
    def of(
        cls,
        places: tuple[int, ...],
        parameters: Sequence[str],
        state: Sequence[object],
        name: str,
    ) -> LocalEnds:
        """Return these `places`, with a check for states like this one."""
        made = cls(places)
        if places and (written := release_check_source(state, parameters, places)) is not None:
            made.source, objects = written
            filename = f"<stator ends {next(_numbers)}: {name}>"
            loaded = load_source(made.source, filename, objects, made)
            made._check = loaded["releases_plain_values"]
        return made

    def are_observed(self, state: FlatState) -> bool:
        """Return whether the end of one of the locals is observable in this state, which is all
        that refers to them on behalf of the caller."""
        if not self.places or (self._check is not None and self._check(state)):
            return False
        return bool(observed_ends(state, self.places))


def observed_ends(state: FlatState, places: Sequence[int], holders: int = 1) -> tuple[int, ...]:
    """Return those of `places` in the state of a continuation where an object is whose end is
    observable, and that nothing but the state refers to, which does so `holders` times."""
    if hold_plain_values(map(state.__getitem__, places), holders):
        return ()
    others = _others(len(state), tuple(places))
    kept = set(map(identity, map(state.__getitem__, others)))  # to the end
    if hold_plain_values(map(state.__getitem__, places), holders, kept):
        return ()

    count = _references(state, holders)
    if _die_unobserved({identity(state[place]): state[place] for place in places}, count):
        return ()

    for place in {
        identity(value): place
        for place, value in enumerate(state)
        if identity(type(value)) in _CARRIERS
    }.values():
        if sys.getrefcount(state[place]) <= count[identity(state[place])] + 1:
            count = Counter(count) + Counter(map(identity, gc.get_referents(state[place])))
    return tuple(place for place in places if _is_observed(state, place, count))


@functools.cache
def _others(size: int, places: tuple[int, ...]) -> list[int]:
    return [place for place in range(size) if place not in places]


def _references(state: FlatState, holders: int) -> dict[int, int]:
    """Return how often a state refers to each of its values."""
    numbers = [*map(identity, state)]
    count = dict.fromkeys(numbers, holders)
    return count if len(count) == len(numbers) else Counter(numbers * holders)


def _die_unobserved(values: dict[int, object], count: dict[int, int]) -> bool:
    """Return whether that is sure of all of them, and what dies with them; what others hold as well
    lives on."""
    dying = dying_with(values, count)
    return dying is not None and not is_end_observable(dying)


def _is_observed(state: FlatState, place: int, count: dict[int, int]) -> bool:
    is_last = sys.getrefcount(state[place]) <= count[identity(state[place])] + 1
    return is_last and has_observable_end(state[place])
