"""Calls of cached functions, which the entry makes after its graph.

A call that was made ahead, while tracing or by a guard, is left out by the next entry.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
from stator_guards import (
    CallSource,
    CapturedSource,
)

from stator_variables._emitter import Emitter
from stator_variables._trace._capture_state import CaptureState, Phase
from stator_variables._tracker import (
    Kwargs,
)


class _Ahead(threading.local):
    """The calls of this thread that were made before the entry that replaces them ran."""

    def __init__(self) -> None:
        self.made: Counter[tuple[int, int]] = Counter()
        # the last one a guard made, in vain
        self.failed: tuple[tuple[int, int], BaseException] | None = None

    def make(self, cached: Any, args: tuple[Any, ...], kwargs: Kwargs) -> Any:
        number = _number_of(cached, args, kwargs)
        failed = self.failed
        self.failed = None
        if failed is not None and failed[0] == number:
            raise RaisedAhead(number) from failed[1]
        try:
            result = cached(*args, **kwargs)
        except Exception as error:
            raise RaisedAhead(number) from error
        self.made[number] += 1
        return result


class RaisedAhead(Exception):
    """A call made ahead raised: natively it does so again, in its place."""


ahead = _Ahead()


def _number_of(cached: object, args: tuple[Any, ...], kwargs: Kwargs) -> tuple[int, int]:
    return id(cached), hash((args, tuple(kwargs.items())))


def count(cached: Any, *args: object, **kwargs: object) -> None:
    """The call of an entry, if it was not made already."""
    number = _number_of(cached, args, kwargs) if ahead.made else (0, 0)
    if number not in ahead.made:
        cached(*args, **kwargs)
    else:
        ahead.made -= Counter([number])  # which leaves out what is not there any more


Given = tuple[tuple[Any, ...], dict[str, Any]]


def count_all(cached: Any, calls: Sequence[Given]) -> None:
    """The calls of an entry to one cached function."""
    if ahead.made:
        for args, kwargs in calls:
            count(cached, *args, **kwargs)
    else:
        for args, kwargs in calls:
            cached(*args, **kwargs)


@attrs.define(eq=False)
class CachedCall:
    """A call for the entry to make. `made`: it was made while tracing, which counts as that of the
    first run."""

    cached: Any
    args: list[Any]
    kwargs: Kwargs
    lookup: CallSource  # what the cache holds for it
    made: bool = False
    is_read: bool = False  # by the entry, where the cache holds it

    def make(self, values: Sequence[Any]) -> Any:
        self.made = True
        lookup: Any = self.lookup.fn
        return make_ahead(lookup.args[0], self.cached.real, values)

    def constants(self) -> list[Any] | None:
        """Return the arguments, the named ones last, if they are the same in each call."""
        _, *arguments = self.lookup.arguments
        if all(type(source) is CapturedSource and not source.held.weak for source in arguments):
            return [source.evaluate({}) for source in arguments]
        return None

    def given(self) -> Given | None:
        """Return the arguments, positional and named, if they are the same in each call."""
        values = self.constants()
        return None if values is None else _given([*self.kwargs], values)


def make_ahead(names: Sequence[str], cached: object, values: Sequence[Any]) -> object:
    return ahead.make(cached, *_given(names, values))


def result_number(names: Sequence[str], cached: object, values: Sequence[Any]) -> tuple[int, int]:
    return _number_of(cached, *_given(names, values))


def _given(names: Sequence[str], values: Sequence[Any]) -> Given:
    first = len(values) - len(names)
    return tuple(values[:first]), dict(zip(names, values[first:], strict=True))


# -- the calls of an entry -------------------------------------------------------------------------


@attrs.define(eq=False)
class CachedCalls(CaptureState):
    """Calls of functions with a cache: the entry makes them after the graph."""

    phase: ClassVar[Phase] = Phase.AFTER_CHANGES
    may_repeat: ClassVar[bool] = True  # all of them are hits

    calls: list[CachedCall] = attrs.Factory(list)
    # while such a call is tried: what others gave inside
    trial: dict[Any, Any] | None = None

    def moment(self) -> tuple[Any, ...] | None:
        return (len(self.calls),) if self.trial is None else None

    def has_begun(self) -> bool:
        return any(call.made for call in self.calls)

    def emit(self, e: Emitter) -> None:
        """Write the calls: in one line for a cached function whose arguments are all constants.

        They are hits, so the order among calls of different functions shows nowhere.
        """
        calls: dict[int, list[CachedCall]] = {}
        for made in self.calls:
            calls.setdefault(id(made.cached.real), []).append(made)

        for alike in calls.values():
            given = [made.given() for made in alike]
            if all(given):
                counted = e.capture(count_all), e.capture(tuple(given), "calls")
                e.lines.append(f"{counted[0]}({e.expr(alike[0].cached)}, {counted[1]})")
                continue

            for made in alike:
                e.lines.append(e.call(count, [made.cached, *made.args], made.kwargs))
