"""Iterators of itertools as real ones: their state is in the fields of the app-level object
(`_applevel._itertools`), and a new iterator is made of the rest. State that C does not accept is
reached by stepping once more.

A function for each class takes the fields that it needs. An entry calls it, and so does the rebuild
of an iterator that was virtualized over a break, if it has to be real at once.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stator_bytecode import Result

from stator_variables._applevel._itertools import _NOTHING
from stator_variables._emitter import Emitter
from stator_variables._objects._iterators._iterator import IteratorTracker
from stator_variables._runtime._support import (
    advanced,
    finished,
    past_group,
    pooled,
    preceded,
    regrouped,
    teed,
    unasked,
)
from stator_variables._space import Space
from stator_variables._tracker import Split, VariableTracker, is_pending, real_of


class ItertoolsTracker(IteratorTracker, references=("worker",)):
    """An iterator of itertools; steps are those of the app-level object `worker`."""

    is_opaque = True

    def __init__(self, cls: type, worker: VariableTracker) -> None:
        self.cls = cls
        self.worker = worker

    def next(self, t: Space) -> Result:
        return t.next_value(self.worker)

    def rebuild_here(self, e: Emitter) -> str:
        fields = self.worker.namespace.entries
        if self.cls is itertools._grouper:  # type: ignore[attr-defined]
            return _group(e, fields)
        if self.cls is itertools.groupby:
            return _shared(e, self.worker, groupby)
        if self.cls is itertools._tee:  # type: ignore[attr-defined]
            first, at = _shared(e, fields["shared"][1], first_of_tee), e.expr(fields["at"][1])
            return f"{e.capture(advanced)}({e.capture(copy.copy)}({first}), {at})"
        if (make := _MAKERS.get(self.cls)) is None:
            raise e.refuse(self)
        return _called(e, make, fields)

    def split(self) -> Split | None:
        return (self.cls,), [self.worker]

    @staticmethod
    def build(of: type, worker: object) -> object:
        """Make a real one, or give the object that does its work where there is none."""
        fields = vars(worker)
        if (make := _MAKERS.get(of)) is None or fields.get("target", _NOTHING) is not _NOTHING:
            return worker
        return make(**{name: fields[name] for name in inspect.signature(make).parameters})


COMBINATIONS = (
    itertools.product,
    itertools.permutations,
    itertools.combinations,
    itertools.combinations_with_replacement,
)
"""Go through copies of what they were made of: those can be moved on from the start again."""


class CombinationsTracker(IteratorTracker, references=("rows", "arguments")):
    """An iterator that goes on as `rows` does, with what it was made of: the last arguments have
    `names`."""

    is_opaque = True

    def __init__(
        self, cls: type, names: tuple[str, ...], rows: VariableTracker, *arguments: VariableTracker
    ) -> None:
        self.cls = cls
        self.names = names
        self.rows = rows
        self.arguments = arguments

    def next(self, t: Space) -> Result:
        return t.next_value(self.rows)

    def rebuild_here(self, e: Emitter) -> str:
        rows, made = e.expr(self.rows), e.capture(self.cls, self.cls.__name__)
        args, kwargs = _divided(self.names, [*map(e.expr, self.arguments)])
        given = "".join(f"{text}, " for text in args)
        named = ", ".join(f"{name!r}: {text}" for name, text in kwargs.items())
        return f"{e.capture(pooled)}({made}, {rows}, ({given}), {{{named}}})"

    def split(self) -> Split | None:
        return (self.cls, self.names), [self.rows, *self.arguments]

    @staticmethod
    def build(of: type, names: tuple[str, ...], rows: Any, *arguments: object) -> object:
        return pooled(of, rows, *_divided(names, arguments))


def _divided(
    names: Sequence[str], arguments: Sequence[Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments by position and those by name."""
    count = len(arguments) - len(names)
    return arguments[:count], dict(zip(names, arguments[count:], strict=True))


def _called(e: Emitter, make: Callable[..., Any], fields: dict[str, tuple[Any, Any]]) -> str:
    texts = []
    for name in inspect.signature(make).parameters:
        vt = fields[name][1]
        if real_of(vt) is not _NOTHING:
            texts.append(f"{name}={_said(e, name, vt)}")
    return f"{e.capture(make)}({', '.join(texts)})"


def _said(e: Emitter, name: str, vt: Any) -> str:
    """Lists of its own are written out, as they are taken apart at once: one that has a name may be
    filled later."""
    return f"[{e.listed(vt.items)}]" if name in ("saved", "iterators", "items") else e.expr(vt)


def _shared(e: Emitter, worker: VariableTracker, make: Callable[..., Any]) -> str:
    """Return the part that several iterators share, made once."""
    if is_pending(worker) or worker.source is not None:
        raise e.refuse(worker)
    return (
        e.expr(worker)
        if e.has_made(worker)
        else e.bind(worker, _called(e, make, worker.namespace.entries))
    )


def _group(e: Emitter, fields: dict[str, tuple[Any, Any]]) -> str:
    parent = fields["parent"][1]
    if parent.namespace.entries["group"][1] is not fields["mark"][1]:
        return f"{e.capture(past_group)}()"
    made = e.capture(itertools._grouper)  # type: ignore[attr-defined]
    return f"{made}({_shared(e, parent, groupby)}, {e.expr(fields['target'][1])})"


# -- the makers: a field that is left out is _NOTHING ----------------------------------------------
def count(value: Any, step: Any) -> Iterator[Any]:
    return itertools.count(value, step)


def cycle(it: object, saved: list[Any], index: int) -> Iterator[Any]:
    if it is None:
        return advanced(itertools.cycle(saved), index) if saved else finished(itertools.cycle(()))
    return (
        advanced(itertools.cycle(preceded(it, *saved)), len(saved))
        if saved
        else itertools.cycle(unasked(it))
    )


def repeat(object: Any, times: Any) -> Iterator[Any]:
    return itertools.repeat(object) if times is None else itertools.repeat(object, times)


def chain(source: object, active: Any) -> Iterator[Any]:
    if source is None:
        return finished(itertools.chain())
    return itertools.chain.from_iterable(
        unasked(source) if active is None else preceded(source, unasked(active))
    )


def islice(it: object, at: int, stop: Any, wanted: int, step: int) -> Iterator[Any]:
    if it is None:
        return finished(itertools.islice((), 0))
    return itertools.islice(unasked(it), wanted - at, None if stop is None else stop - at, step)


def takewhile(predicate: Any, it: object, stops: bool) -> Iterator[Any]:
    return (
        finished(itertools.takewhile(predicate, ()))
        if stops
        else itertools.takewhile(predicate, unasked(it))
    )


def dropwhile(predicate: Any, it: object, starts: bool) -> Iterator[Any]:
    if not starts:
        return itertools.dropwhile(predicate, unasked(it))
    return advanced(itertools.dropwhile(operator.not_, preceded(it, True)), 1)


def filterfalse(predicate: Any, it: object) -> Iterator[Any]:
    return itertools.filterfalse(predicate, unasked(it))


def starmap(function: Any, it: object) -> Iterator[Any]:
    return itertools.starmap(function, unasked(it))


def compress(data: object, selectors: object) -> Iterator[Any]:
    return itertools.compress(unasked(data), unasked(selectors))


def pairwise(it: object, old: Any = _NOTHING) -> Iterator[Any]:
    if it is None:
        return finished(itertools.pairwise(()))
    return itertools.pairwise(unasked(it) if old is _NOTHING else preceded(it, old))


def accumulate(it: Any, func: Any, initial: Any, total: Any = _NOTHING) -> Iterator[Any]:
    if total is _NOTHING:
        return itertools.accumulate(unasked(it), func, initial=initial)
    return advanced(itertools.accumulate(preceded(it, total), func), 1)


def zip_longest(iterators: list[Any], fillvalue: object, active: int) -> Iterator[Any]:
    if not active:
        return finished(itertools.zip_longest(()))
    return itertools.zip_longest(
        *[() if it is None else unasked(it) for it in iterators], fillvalue=fillvalue
    )


def batched(it: object, n: int, strict: object) -> Iterator[Any]:
    if it is None:
        return finished(itertools.batched((), 1))  # type: ignore[attr-defined]
    named = {} if strict is False else {"strict": strict}  # which 3.12 does not have
    return itertools.batched(unasked(it), n, **named)  # type: ignore[attr-defined,no-any-return]


def groupby(
    it: Any, keyfunc: Any, target: object = _NOTHING, key: Any = _NOTHING, value: object = _NOTHING
) -> Iterator[Any]:
    made: Iterator[Any] = itertools.groupby(unasked(it), keyfunc)
    if target is not _NOTHING:
        made = regrouped(made, target) if key is _NOTHING else regrouped(made, target, key, value)
    return made


def first_of_tee(it: object, items: list[Any]) -> Iterator[Any]:
    return itertools.tee(preceded(it, *items), 1)[0]


_MAKERS: dict[Any, Callable[..., Any]] = {
    itertools.count: count,
    itertools.cycle: cycle,
    itertools.repeat: repeat,
    itertools.chain: chain,
    itertools.islice: islice,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.filterfalse: filterfalse,
    itertools.starmap: starmap,
    itertools.compress: compress,
    itertools.pairwise: pairwise,
    itertools.accumulate: accumulate,
    itertools.zip_longest: zip_longest,
    itertools.groupby: groupby,
    itertools._tee: teed,  # type: ignore[attr-defined]
    getattr(itertools, "batched", None): batched,  # since 3.12
}
