"""itertools as plain Python: generator functions of iterators, for C asks what it is given for them at once.

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


def cycle(it: Any, /) -> Iterator[Any]:
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
    return chain_from_iterable(iter(iterables))


def chain_from_iterable(it: Any, /) -> Iterator[Any]:
    while (part := next(it, _NOTHING)) is not _NOTHING:
        for item in part:
            yield item


def islice(it: Any, *bounds: Any) -> Iterator[Any]:
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return _islice(it, 0 if start is None else start, stop, 1 if step is None else step)


def _islice(it: Any, wanted: Any, stop: Any, step: Any) -> Iterator[Any]:
    at = 0
    while True:
        try:
            while at < wanted:
                next(it)
                at += 1
            if stop is not None and at >= stop:
                return
            item = next(it)
        except StopIteration:
            return
        at += 1
        wanted = wanted + step if stop is None or wanted + step < stop else stop
        yield item


def takewhile(predicate: Callable[[Any], Any], it: Any, /) -> Iterator[Any]:
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            good = predicate(item)
        except StopIteration:
            return
        if not good:
            return
        yield item


def dropwhile(predicate: Callable[[Any], Any], it: Any, /) -> Iterator[Any]:
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


def filterfalse(predicate: Any, it: Any, /) -> Iterator[Any]:
    while (item := next(it, _NOTHING)) is not _NOTHING:
        try:
            good = item if predicate is None or predicate is bool else predicate(item)
        except StopIteration:
            return
        if not good:
            yield item


def starmap(function: Callable[..., Any], it: Any, /) -> Iterator[Any]:
    while (args := next(it, _NOTHING)) is not _NOTHING:
        try:
            value = function(*args)
        except StopIteration:
            return
        yield value


def compress(data: Any, selectors: Any) -> Iterator[Any]:
    while (item := next(data, _NOTHING)) is not _NOTHING and (chosen := next(selectors, _NOTHING)) is not _NOTHING:
        if chosen:
            yield item


def pairwise(it: Any, /) -> Iterator[Any]:
    if (before := next(it, _NOTHING)) is not _NOTHING:
        while (item := next(it, _NOTHING)) is not _NOTHING:
            yield before, item
            before = item


def accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> Iterator[Any]:
    total = initial
    if total is None:
        try:
            total = next(iterable)
        except StopIteration:
            return
    yield total
    while (item := next(iterable, _NOTHING)) is not _NOTHING:
        try:
            total = total + item if func is None else func(total, item)
        except StopIteration:
            return
        yield total


def zip_longest(*iterators: Any, fillvalue: Any = None) -> Iterator[Any]:
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
    while True:
        batch: list[Any] = []
        while len(batch) < n and (item := next(iterable, _NOTHING)) is not _NOTHING:
            batch.append(item)
        if not batch:
            return
        if strict and len(batch) != n:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)


def groupby(iterable: Any, key: Any = None) -> Iterator[Any]:
    state = [_NOTHING, _NOTHING, None]  # the item that was read ahead, its key, the group that may go on

    def read() -> bool:
        item = next(iterable, _NOTHING)
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
