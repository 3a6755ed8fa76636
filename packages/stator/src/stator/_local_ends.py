"""Locals of a continuation whose end the program can observe, and that die when its frames release
them.

An entry holds its arguments to its end, plain Python releases a local at once:

    reference = weakref.ref(box)    # a break; `box` is an argument of what follows
    box = [box]                     # released, but held by the list
    box = None                      # the list dies, and the box with it
    reference()                     # None

An entry that relies on the end of a local being unobservable has its place in `PooledPlace.ending`,
and each call finds out anew: by class alone where the locals are plain values, by their reference
counts where something else holds them.
"""

import functools
import gc
import sys
from collections import Counter
from collections.abc import Sequence
from types import CellType, MethodType

from stator_guards import identity
from stator_variables import (
    are_plain_or_simple,
    dying_with,
    has_observable_end,
    hold_plain_values,
    is_end_observable,
)

WHILE_TRACED = 2
"""The references to each value of a state while it is traced: by `Region.enter`, and by name."""


_CARRIERS = frozenset(map(identity, (tuple, CellType, MethodType)))
"""Classes, by identity, of what holds an object besides: as the `__exit__` of a `with`
statement."""


def observed_ends(
    state: tuple[object, ...], places: Sequence[int], holders: int = 1
) -> tuple[int, ...]:
    """Return those of `places` in the state of a continuation where an object is whose end is
    observable, and that nothing but the state refers to, which does so `holders` times."""
    if not places or are_plain_or_simple(state, places, holders):
        return ()
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


def _references(state: tuple[object, ...], holders: int) -> dict[int, int]:
    """Return how often a state refers to each of its values."""
    numbers = [*map(identity, state)]
    count = dict.fromkeys(numbers, holders)
    return count if len(count) == len(numbers) else Counter(numbers * holders)


def _die_unobserved(values: dict[int, object], count: dict[int, int]) -> bool:
    """Return whether that is sure of all of them, and what dies with them; what others hold as well
    lives on."""
    dying = dying_with(values, count)
    return dying is not None and not is_end_observable(dying)


def _is_observed(state: tuple[object, ...], place: int, count: dict[int, int]) -> bool:
    is_last = sys.getrefcount(state[place]) <= count[identity(state[place])] + 1
    return is_last and has_observable_end(state[place])
