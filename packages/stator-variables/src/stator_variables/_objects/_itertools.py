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
from collections.abc import Callable, Iterator
from typing import Any

from stator_variables._applevel._itertools import _NOTHING
from stator_variables._emitter import Emitter
from stator_variables._runtime._support import (
    advanced,
    finished,
    past_group,
    preceded,
    regrouped,
    teed,
    unasked,
)
from stator_variables._tracker import VariableTracker, is_pending, real_of


def write(e: Emitter, vt: Any) -> str:
    """An expression for a real one."""
    fields = vt.parts[0].namespace.entries
    if vt.cls is itertools._grouper:  # type: ignore[attr-defined]
        return _group(e, fields)
    if vt.cls is itertools.groupby:
        return _shared(e, vt.parts[0], groupby)
    if vt.cls is itertools._tee:  # type: ignore[attr-defined]
        first = _shared(e, fields["shared"][1], first_of_tee)
        return f"{e.capture(advanced)}({e.capture(copy.copy)}({first}), {e.expr(fields['at'][1])})"
    if (make := _MAKERS.get(vt.cls)) is None:
        raise e.refuse(vt)
    return _called(e, make, fields)


def _called(e: Emitter, make: Callable[..., Any], fields: dict[str, tuple[Any, Any]]) -> str:
    given = {name: fields[name][1] for name in inspect.signature(make).parameters}
    texts = [
        f"{name}={_said(e, name, vt)}" for name, vt in given.items() if real_of(vt) is not _NOTHING
    ]
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


def made_real(cls: type, worker: object) -> Any:
    """A real one; the object that does its work where there is none."""
    fields = vars(worker)
    if (make := _MAKERS.get(cls)) is None or fields.get("target", _NOTHING) is not _NOTHING:
        return worker
    return make(**{name: fields[name] for name in inspect.signature(make).parameters})


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
