"""itertools as plain Python: the fields of its iterators, and how each finds its next item
(`Modules/itertoolsmodule.c`).

Each class is made of iterators, for C takes the iterators of its arguments at once. They are
stepped by `next`: a `for` would call `__iter__` again, which a class of the program can observe. An
exhausted iterator, or one that raised, is stepped again unless a field prevents it.
"""

from __future__ import annotations

import operator
from typing import Any

__app_level__ = True

_NOTHING: Any = object()


class _Iterator:
    def __iter__(self) -> object:
        return self


class count(_Iterator):
    def __init__(self, start: Any = 0, step: Any = 1) -> None:
        if (
            type(start) is not int
            and isinstance(start, int)
            and isinstance(step, int)
            and step == 1
        ):
            start = int.__pos__(start)  # C counts machine words then
        self.value, self.step = start, step

    def __next__(self) -> object:
        value = self.value
        self.value = value + self.step
        return value


class cycle(_Iterator):
    def __init__(self, it: Any, /) -> None:
        self.it, self.saved, self.index = it, [], 0  # type: ignore[var-annotated]

    def __next__(self) -> object:
        if self.it is not None:
            if (item := next(self.it, _NOTHING)) is not _NOTHING:
                self.saved.append(item)
                return item
            self.it = None
        if not self.saved:
            raise StopIteration
        item = self.saved[self.index]
        self.index = (self.index + 1) % len(self.saved)
        return item


class repeat(_Iterator):
    def __init__(self, object: object, times: Any = None) -> None:
        self.object = object
        self.times: Any = None if times is None else operator.index(times)

    def __next__(self) -> object:
        if self.times is not None:
            if self.times <= 0:
                raise StopIteration
            self.times -= 1
        return self.object


class chain(_Iterator):
    """The iterator `chain` over an iterator of iterables."""

    def __init__(self, source: object, /) -> None:
        self.source: Any = source
        self.active: Any = None

    def __next__(self) -> object:
        while self.source is not None:
            if self.active is None:
                self.active = self._following()
            if (item := next(self.active, _NOTHING)) is not _NOTHING:
                return item
            self.active = None
        raise StopIteration

    def _following(self) -> object:
        source = self.source
        self.source = None  # for good, when this fails
        following = iter(next(source))
        self.source = source
        return following


class islice(_Iterator):
    def __init__(self, it: Any, /, *bounds: Any) -> None:
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.it, self.at, self.stop = it, 0, stop
        self.wanted, self.step = 0 if start is None else start, 1 if step is None else step

    def __next__(self) -> object:
        it = self.it
        self.it = None  # for good, when one of these ends or fails
        if it is None:
            raise StopIteration
        while self.at < self.wanted:
            next(it)
            self.at += 1
        if self.stop is not None and self.at >= self.stop:
            raise StopIteration

        item = next(it)
        self.at += 1
        self.wanted += self.step
        if self.stop is not None and self.wanted > self.stop:
            self.wanted = self.stop
        self.it = it
        return item


class takewhile(_Iterator):
    def __init__(self, predicate: Any, it: Any, /) -> None:
        self.predicate, self.it, self.stops = predicate, it, False

    def __next__(self) -> object:
        if self.stops:
            raise StopIteration
        item = next(self.it)
        if self.predicate(item):
            return item
        self.stops = True
        raise StopIteration


class dropwhile(_Iterator):
    def __init__(self, predicate: Any, it: Any, /) -> None:
        self.predicate, self.it, self.starts = predicate, it, False

    def __next__(self) -> object:
        while True:
            item = next(self.it)
            if self.starts:
                return item
            if not self.predicate(item):
                self.starts = True
                return item


class filterfalse(_Iterator):
    def __init__(self, predicate: Any, it: Any, /) -> None:
        self.predicate, self.it = predicate, it

    def __next__(self) -> object:
        while True:
            item = next(self.it)
            if not (
                item if self.predicate is None or self.predicate is bool else self.predicate(item)
            ):
                return item


class starmap(_Iterator):
    def __init__(self, function: Any, it: Any, /) -> None:
        self.function, self.it = function, it

    def __next__(self) -> object:
        args = next(self.it)
        if type(args) is not tuple:
            args = tuple(args)
        return self.function(*args)


class compress(_Iterator):
    def __init__(self, data: Any, selectors: Any) -> None:
        self.data, self.selectors = data, selectors

    def __next__(self) -> object:
        while True:
            item = next(self.data)
            if next(self.selectors):
                return item


class pairwise(_Iterator):
    def __init__(self, it: Any, /) -> None:
        self.it, self.old = it, _NOTHING

    def __next__(self) -> object:
        if self.it is None:
            raise StopIteration
        if self.old is _NOTHING:
            self.old = self._step()
            if self.it is None:  # by a nested step of itself
                self.old = _NOTHING
                raise StopIteration
        old = self.old
        self.old = new = self._step()
        return old, new

    def _step(self) -> object:
        try:
            return next(self.it)
        except BaseException:  # raised again: as in C, the iterator is exhausted from then on
            self.it, self.old = None, _NOTHING
            raise


class accumulate(_Iterator):
    def __init__(self, iterable: Any, func: Any = None, *, initial: object = None) -> None:
        self.it, self.func, self.initial, self.total = iterable, func, initial, _NOTHING

    def __next__(self) -> object:
        if self.initial is not None:
            self.total, self.initial = self.initial, None
            return self.total
        item = next(self.it)
        if self.total is _NOTHING:
            self.total = item
        else:
            self.total = self.total + item if self.func is None else self.func(self.total, item)
        return self.total


class zip_longest(_Iterator):
    def __init__(self, *iterators: Any, fillvalue: object = None) -> None:
        self.iterators, self.fillvalue, self.active = [*iterators], fillvalue, len(iterators)

    def __next__(self) -> object:
        if not self.active:
            raise StopIteration
        active = self.active
        self.active = 0  # for good, when one of these fails
        row = []

        for i in range(len(self.iterators)):
            value = self.fillvalue
            if (
                self.iterators[i] is not None
                and (value := next(self.iterators[i], _NOTHING)) is _NOTHING
            ):
                active -= 1
                if not active:
                    raise StopIteration
                self.iterators[i] = None
                value = self.fillvalue
            row.append(value)

        self.active = active
        return tuple(row)


class batched(_Iterator):
    def __init__(self, iterable: Any, n: Any, *, strict: object = False) -> None:
        self.it, self.n, self.strict = iterable, n, strict

    def __next__(self) -> object:
        it = self.it
        self.it = None  # for good, when it ends or fails
        batch: list[Any] = []
        while (
            it is not None and len(batch) < self.n and (item := next(it, _NOTHING)) is not _NOTHING
        ):
            batch.append(item)
        if not batch:
            raise StopIteration
        if self.strict and len(batch) < self.n:
            raise ValueError("batched(): incomplete batch")
        self.it = it
        return tuple(batch)


class groupby(_Iterator):
    def __init__(self, iterable: Any, key: Any = None) -> None:
        self.it, self.keyfunc = iterable, key
        self.value = self.key = self.target = _NOTHING
        self.group: object = None  # a mark of the one that may go on

    def __next__(self) -> object:
        self.group = None
        while self.key is _NOTHING or self._is_of_target():
            self._step()
        self.target, self.group = self.key, [None]
        return self.key, group_of(self)

    def _is_of_target(self) -> object:
        return self.target is not _NOTHING and (self.target is self.key or self.target == self.key)

    def _step(self) -> None:
        value = next(self.it)
        key = value if self.keyfunc is None else self.keyfunc(value)
        self.value, self.key = value, key


class _grouper(_Iterator):
    def __init__(self, parent: groupby) -> None:
        self.parent, self.target, self.mark = parent, parent.target, parent.group

    def __next__(self) -> object:
        parent = self.parent
        if parent.group is not self.mark:
            raise StopIteration
        if parent.value is _NOTHING:
            parent._step()
        if not (self.target is parent.key or self.target == parent.key):
            raise StopIteration
        value = parent.value
        if value is _NOTHING:  # the comparison took it
            raise StopIteration
        parent.value = parent.key = _NOTHING
        return value


def group_of(parent: groupby) -> object:
    """Return the iterator over a group; in a region it is of C's class."""
    return _grouper(parent)


class Shared:
    """The items shared by the iterators of one `tee`."""

    def __init__(self, it: Any) -> None:
        self.it, self.items, self.runs = it, [], False  # type: ignore[var-annotated]

    def read(self) -> None:
        if self.runs:
            raise RuntimeError("cannot re-enter the tee iterator")
        self.runs = True
        try:
            self.items.append(next(self.it))
        finally:
            self.runs = False


class _tee(_Iterator):
    def __init__(self, shared: Shared) -> None:
        self.shared, self.at = shared, 0

    def __next__(self) -> object:
        items = self.shared.items
        if self.at == len(items):
            self.shared.read()
        self.at += 1
        return items[self.at - 1]
