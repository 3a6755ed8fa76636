"""itertools as plain Python: each function checks its arguments at once, as C does, and gives a generator.

A StopIteration from a callback ends the iterator, as in C; in a generator of Python's it would be a RuntimeError.
What has been asked for its iterator is stepped by `next`: a `for` would ask again, and a class of the program's notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_NOTHING: Any = object()


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    if type(start) is not int and isinstance(start, int) and isinstance(step, int) and step == 1:
        start = int.__pos__(start)  # C counts machine words then
    while True:
        yield start
        start = start + step


def cycle(iterable: Any, /) -> Iterator[Any]:
    return _cycle(iter(iterable))


def _cycle(it: Any) -> Iterator[Any]:
    saved = []
    while (item := next(it, _NOTHING)) is not _NOTHING:
        saved.append(item)
        yield item
    while saved:
        for item in saved:
            yield item


def repeat(object: Any, times: Any = _NOTHING) -> Iterator[Any]:
    if times is _NOTHING:
        while True:
            yield object
    while times > 0:
        times -= 1
        yield object


def chain(*iterables: Any) -> Iterator[Any]:
    return chain_from_iterable(iterables)


def chain_from_iterable(iterable: Any, /) -> Iterator[Any]:
    return (item for part in iterable for item in part)


def islice(iterable: Any, *bounds: Any) -> Iterator[Any]:
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    start = 0 if start is None else start
    step = 1 if step is None else step
    return _islice(iter(iterable), start, stop, step)


def _islice(it: Any, start: Any, stop: Any, step: Any) -> Iterator[Any]:
    at = 0
    wanted = start
    while stop is None or at < stop:
        try:
            item = next(it)
        except StopIteration:
            return
        if at == wanted:
            wanted += step
            at += 1
            yield item
        else:
            at += 1


def takewhile(predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate: Callable[[Any], Any], it: Any) -> Iterator[Any]:
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            good = predicate(item)
        except StopIteration:
            return
        if not good:
            return
        yield item


def dropwhile(predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate: Callable[[Any], Any], it: Any) -> Iterator[Any]:
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            drops = predicate(item)
        except StopIteration:
            return
        if not drops:
            yield item
            break
    while (item := next(it, _NOTHING)) is not _NOTHING:
        yield item


def filterfalse(predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return _filterfalse(predicate, iter(iterable))


def _filterfalse(predicate: Any, it: Any) -> Iterator[Any]:
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            good = item if predicate is None or predicate is bool else predicate(item)
        except StopIteration:
            return
        if not good:
            yield item


def starmap(function: Any, iterable: Any, /) -> Iterator[Any]:
    return _starmap(function, iter(iterable))


def _starmap(function: Callable[..., Any], it: Any) -> Iterator[Any]:
    while (args := next(it, _NOTHING)) is not _NOTHING:
        try:
            value = function(*args)
        except StopIteration:
            return
        yield value


def compress(data: Any, selectors: Any) -> Iterator[Any]:
    return (item for item, chosen in zip(data, selectors) if chosen)


def pairwise(iterable: Any, /) -> Iterator[Any]:
    return _pairwise(iter(iterable))


def _pairwise(it: Any) -> Iterator[Any]:
    if (before := next(it, _NOTHING)) is not _NOTHING:
        while (item := next(it, _NOTHING)) is not _NOTHING:
            yield before, item
            before = item


def accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> Iterator[Any]:
    return _accumulate(iter(iterable), func, initial)


def _accumulate(it: Any, func: Any, total: Any) -> Iterator[Any]:
    if total is None:
        try:
            total = next(it)
        except StopIteration:
            return
    yield total
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            total = total + item if func is None else func(total, item)
        except StopIteration:
            return
        yield total


def zip_longest(*iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    return _zip_longest([iter(iterable) for iterable in iterables], fillvalue)


def _zip_longest(iterators: list[Any], fillvalue: Any) -> Iterator[Any]:
    active = len(iterators)
    running = [True] * active
    while active:
        row = []
        for i, it in enumerate(iterators):
            value = next(it, _NOTHING) if running[i] else _NOTHING
            if value is _NOTHING:
                if running[i]:
                    running[i] = False
                    active -= 1
                    if not active:
                        return
                value = fillvalue
            row.append(value)
        yield tuple(row)


def batched(iterable: Any, n: Any, *, strict: Any = False) -> Iterator[Any]:
    if n < 1:
        raise ValueError("n must be at least one")
    return _batched(iter(iterable), n, strict)


def _batched(it: Any, n: int, strict: Any) -> Iterator[Any]:
    while True:
        batch: list[Any] = []
        while len(batch) < n and (item := next(it, _NOTHING)) is not _NOTHING:
            batch.append(item)
        if not batch:
            return
        if strict and len(batch) != n:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)


def groupby(iterable: Any, key: Any = None) -> Iterator[Any]:
    return _groupby(iter(iterable), key)


def _groupby(it: Any, key: Any) -> Iterator[Any]:
    state = [_NOTHING, _NOTHING, None]  # the item that was read ahead, its key, the group that may go on

    def read() -> bool:
        item = next(it, _NOTHING)
        if item is _NOTHING:
            return False
        item_key = item if key is None else key(item)
        state[0], state[1] = item, item_key
        return True

    def group(mark: Any, wanted: Any) -> Iterator[Any]:
        while state[2] is mark and (state[0] is not _NOTHING or read()):
            if not (wanted is state[1] or wanted == state[1]):
                return
            item = state[0]
            state[0] = state[1] = _NOTHING
            yield item

    target = _NOTHING
    while True:
        state[2] = None
        while state[1] is _NOTHING or (target is not _NOTHING and (target is state[1] or target == state[1])):
            if not read():
                return
        target = state[1]
        mark = [None]
        state[2] = mark
        yield target, group(mark, target)


def tee(iterable: Any, n: Any = 2, /) -> tuple[Any, ...]:
    if n == 0:
        return ()
    it = iter(iter(iterable))  # which C does twice
    shared: list[Any] = []
    return tuple([_teed(it, shared) for _ in range(n)])


def _teed(it: Any, shared: list[Any]) -> Iterator[Any]:
    at = 0
    while True:
        if at == len(shared):
            item = next(it, _NOTHING)
            if item is _NOTHING:
                return
            shared.append(item)
        at += 1
        yield shared[at - 1]


def each(rows: list[Any]) -> Iterator[Any]:
    yield from rows
