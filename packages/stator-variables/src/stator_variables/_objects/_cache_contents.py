"""Results in the cache of `functools.lru_cache`, read without calling it.

The collector lists the records of a cache; there is no other way to a result that counts and throws
out nothing. It is called while tracing, and by a guard only when the cache has called its function
since the guard held last.
"""

import functools
import gc
import weakref
from collections.abc import Sequence
from typing import Any

from stator_variables._tracker import MISSING

CACHED: Any = functools._lru_cache_wrapper


def peek(names: Sequence[str], typed: bool, cached: object, *values: object) -> Any:
    """Return what a call would find, MISSING where nothing: `names` are those of the last
    values."""
    if type(cached) is not CACHED:
        return MISSING
    if (found := _found.get(cached)) is None:
        found = _found[cached] = FoundResults(cached)
    table, mark = found.contents
    key = key_of_call(names, typed, mark, values)
    if not found.is_bounded:
        return table.get(key, MISSING)
    return found.result(cached, key)


def _result_in_records(cached: object, key: object) -> object:
    """Return the result that a bounded cache has under a key; it is known to have one."""
    held, at = _listed(cached)
    known, wanted = held[1:at:3], hash(key)
    hashes = list(map(hash, known))
    place = hashes.index(wanted)
    while not (known[place] is key or known[place] == key):
        place = hashes.index(wanted, place + 1)
    return held[2 + 3 * place]


def _listed(cached: object) -> tuple[list[Any], int]:
    """Return what a cached function refers to, and where its dict is.

    The collector lists, in this order, each kept call (key, result, the type of the record; where
    their number is bounded), the dict by keys, the function, and the mark between positional and
    named arguments.
    """
    held = gc.get_referents(cached)
    return held, next(
        i
        for i in range(len(held) - 3, 0, -1)
        if type(held[i]) is dict and type(held[i + 2]) is object
    )


def key_of_call(names: Sequence[str], typed: bool, mark: object, values: tuple[Any, ...]) -> object:
    if not typed and not names and len(values) == 1 and type(values[0]) in (int, str):
        return values[0]
    count = len(values) - len(names)
    named = [part for pair in zip(names, values[count:], strict=True) for part in pair]
    return (
        *values[:count],
        *([mark, *named] if names else []),
        *(map(type, values) if typed else []),
    )


class _Guard:
    """Facts about one cached function, for the guards below.

    A bounded cache keeps a record for each call. As long as its dict has the same record under a
    key, and the cache has called its function no more often, the record has the same result: a
    record gets another one only when it is used again for a call that was not kept. An unbounded
    cache has the results themselves in its dict.
    """

    __name__ = "kept"

    def __init__(self, cached: object) -> None:
        held, at = _listed(cached)
        self.contents: list[Any] = [
            held[at],
            held[at + 2],
        ]  # the dict, the mark; nothing once the function has died
        self.cached: Any = weakref.ref(cached, functools.partial(_forget, self.contents))
        self.is_bounded = at > 1
        self.record: Any = MISSING  # of the call that is looked up
        self.misses = -1  # when the guard was found to hold

    def is_unchanged(self, cached: Any, key: object) -> bool:
        """Return whether a bounded cache has what it had when the guard was found to hold."""
        if cached.cache_info().misses != self.misses:
            return False
        return self.contents[0].get(key, self) is self.record

    def note(self, key: object, misses: int) -> None:
        self.record, self.misses = self.contents[0].get(key), misses


class FoundResults(_Guard):
    """Results of a bounded cache that were found before, with their records, by keys.

    They hold as long as the cache has called its function no more often. Those that hold objects
    with an observable end are looked for each time.
    """

    def __init__(self, cached: Any) -> None:
        super().__init__(cached)
        self.is_bounded = cached.cache_info().maxsize is not None
        self.results: dict[Any, tuple[Any, Any]] = {}

    def result(self, cached: Any, key: object) -> Any:
        misses = cached.cache_info().misses
        if misses != self.misses or len(self.results) > _MANY:
            self.results, self.misses = {}, misses
        if (record := self.contents[0].get(key, MISSING)) is MISSING:
            return MISSING

        known, result = self.results.get(key, (MISSING, MISSING))
        if known is not record:
            result = _result_in_records(cached, key)
            if _is_plain(result):
                self.results[key] = record, result
        return result


def _is_plain(value: Any) -> bool:
    """Return True for numbers, texts and containers of such, whose end is not observable."""
    if type(value) is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return type(value) in (int, float, str, bool, type(None))


_MANY = 8
_found: weakref.WeakKeyDictionary[Any, FoundResults] = weakref.WeakKeyDictionary()


def _forget(contents: list[Any], _: object) -> None:
    contents.clear()


class KeptResult(_Guard):
    """A guard: a cached function still has `result` for the arguments that it is called with."""

    def __init__(
        self, signature: tuple[Sequence[str], bool], cached: object, result: object
    ) -> None:
        super().__init__(cached)
        self.signature = signature
        self.result = result

    def __reduce__(self) -> Any:
        return KeptResult, (self.signature, self.cached(), self.result)

    def __call__(self, cached: object, *values: object) -> bool:
        if cached is not self.cached():
            return peek(*self.signature, cached, *values) is self.result
        table, mark = self.contents
        key = key_of_call(*self.signature, mark, values)
        if not self.is_bounded:
            return table.get(key, MISSING) is self.result
        if self.is_unchanged(cached, key):
            return True

        misses = cached.cache_info().misses
        if peek(*self.signature, cached, *values) is not self.result:
            return False
        self.note(key, misses)
        return True


class KeptResults(_Guard):
    """A guard: a cached function still has what it had for calls with constant arguments.

    One for all such calls of a trace. A bounded cache that has the record of the first of them, and
    has called its function no more often, was not emptied and has thrown out none: it has the
    records of the others too.
    """

    def __init__(self, cached: object) -> None:
        super().__init__(cached)
        # by key: the arguments of `peek`, and the result last
        self.calls: dict[Any, tuple[Any, ...]] = {}

    def __reduce__(self) -> Any:
        return _restored, (self.cached(), list(self.calls.values()))

    def add(
        self, signature: tuple[Sequence[str], bool], values: Sequence[Any], result: object
    ) -> None:
        key = key_of_call(*signature, self.contents[1], tuple(values))
        self.calls[key] = (signature, tuple(values), result)
        self.misses = -1

    def __call__(self, cached: object) -> bool:
        if cached is self.cached():
            table, keys = self.contents[0], self.calls
            if not self.is_bounded:
                return all(
                    table.get(key, MISSING) is result for key, (_, _, result) in keys.items()
                )
            if self.is_unchanged(cached, first := next(iter(keys))):
                return True
            misses = cached.cache_info().misses

        holds = all(
            peek(*signature, cached, *values) is result
            for signature, values, result in [*self.calls.values()]
        )
        if holds and cached is self.cached():
            self.note(first, misses)
        return holds


def _restored(cached: object, calls: list[Any]) -> KeptResults:
    kept = KeptResults(cached)
    for call in calls:
        kept.add(*call)
    return kept
