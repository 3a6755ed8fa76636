"""Iterators of itertools as real ones: what each was up to is in the fields of the app-level object behind it
(`_applevel._itertools`), and a new one is made of what is left. What C cannot be told, it reads once more.

The same is said twice: as text for an entry, and as a call where an iterator that was carried has to be one at once.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from stator_variables import _kinds as k
from stator_variables._applevel._itertools import _NOTHING
from stator_variables._builtin._iterators import again
from stator_variables._emit._emitter import Emitter
from stator_variables._runtime import advanced, finished, past_group, preceded, regrouped, teed, unasked
from stator_variables._tracker import is_pending


def write(e: Emitter, vt: k.IteratorTracker) -> str:
    """An expression for a real one."""
    fields = vt.parts[0].namespace.entries
    if vt.cls is itertools._grouper:  # type: ignore[attr-defined]
        return _group(e, fields)
    if vt.cls is itertools.groupby:
        return _shared(e, vt.parts[0], _grouping)
    if vt.cls is itertools._tee:  # type: ignore[attr-defined]
        first = _shared(e, fields["shared"][1], _first_of_tee)
        return f"{e.capture(advanced, 'advanced')}({e.capture(copy.copy, 'copy')}({first}), {e.expr(fields['at'][1])})"
    if (text := _real(_Written(vt.cls, e, fields))) is None:
        raise e.refuse(vt)
    return str(text)


def _shared(e: Emitter, worker: Any, make: Callable[[Emitter, Any], str]) -> str:
    """What several go on with, made once."""
    if is_pending(worker) or worker.source is not None:
        raise e.refuse(worker)
    return e.expr(worker) if e.has_made(worker) else e.bind(worker, make(e, worker))


def _first_of_tee(e: Emitter, worker: Any) -> str:
    s = _Written(itertools.tee, e, worker.namespace.entries)
    return s.called(s.cls, s.preceded("it", *s.items("items")), 1) + "[0]"


def _grouping(e: Emitter, worker: Any) -> str:
    s = _Written(itertools.groupby, e, worker.namespace.entries)
    made = s.called(s.cls, s.iterator("it"), s.value("keyfunc"))
    if s.known("target") is _NOTHING:
        return made
    last = [] if s.known("key") is _NOTHING else [s.value("key"), s.value("value")]
    return s.called(regrouped, made, s.value("target"), *last)


def _group(e: Emitter, fields: dict[str, tuple[Any, Any]]) -> str:
    parent = fields["parent"][1]
    if parent.namespace.entries["group"][1] is not fields["mark"][1]:
        return f"{e.capture(past_group, 'past_group')}()"
    made = e.capture(itertools._grouper, "_grouper")  # type: ignore[attr-defined]
    return f"{made}({_shared(e, parent, _grouping)}, {e.expr(fields['target'][1])})"


def made_real(cls: type, worker: Any) -> Any:
    """A real one; the object that does its work where there is none."""
    made = _real(_Made(cls, vars(worker)))
    return worker if made is None else made


def _real(s: _Kept) -> Any:
    return None if (kind := _KINDS.get(s.cls)) is None else kind(s)


class _Kept(Protocol):
    """The fields of one, and how a new one is said to be made of them."""

    cls: Any

    def lacks(self, name: str) -> bool:
        return self.known(name) is None or self.known(name) is _NOTHING

    def ended(self, *arguments: Any) -> Any:
        return self.called(finished, self.called(self.cls, *arguments))

    def moved_on(self, iterator: Any, steps: Any) -> Any:
        return self.called(advanced, iterator, steps)

    def preceded(self, name: str, *first: Any) -> Any:
        """What C goes through: first these, then the iterator."""
        return self.called(preceded, self.value(name), *first)

    def known(self, name: str) -> Any: ...
    def value(self, name: str) -> Any: ...
    def items(self, name: str) -> list[Any]: ...
    def iterator(self, name: str) -> Any: ...
    def iterators(self, name: str) -> list[Any]: ...
    def constant(self, value: Any) -> Any: ...
    def function(self, function: Any) -> Any: ...
    def less(self, name: str, other: str) -> Any: ...
    def called(self, function: Any, *arguments: Any, **named: Any) -> Any: ...


@attrs.frozen
class _Written(_Kept):
    cls: Any
    e: Emitter
    fields: dict[str, tuple[Any, Any]]

    def known(self, name: str) -> Any:
        """The value, where it is one that is known; the object, where there is one; else the tracker."""
        vt = self.fields[name][1]
        return vt.value if isinstance(vt, k.ConstantTracker) else vt.real if vt.real is _NOTHING else vt

    def value(self, name: str) -> str:
        return str(self.e.expr(self.fields[name][1]))

    def items(self, name: str) -> list[str]:
        return [self.e.expr(item) for item in self.fields[name][1].items]

    def iterator(self, name: str) -> str:
        return again(self.e, [self.fields[name][1]])[0]

    def iterators(self, name: str) -> list[str]:
        return ["()" if k.is_none(it) else again(self.e, [it])[0] for it in self.fields[name][1].items]

    def constant(self, value: Any) -> str:
        return repr(value)

    def function(self, function: Any) -> str:
        return str(self.e.capture(function, function.__name__))

    def less(self, name: str, other: str) -> str:
        return f"{self.value(name)} - {self.value(other)}"

    def called(self, function: Any, *arguments: Any, **named: Any) -> str:
        texts = [*map(str, arguments), *(f"{name}={text}" for name, text in named.items())]
        return f"{self.function(function)}({', '.join(texts)})"


@attrs.frozen
class _Made(_Kept):
    cls: Any
    fields: dict[str, Any]

    def known(self, name: str) -> Any:
        return self.fields[name]

    def value(self, name: str) -> Any:
        return self.fields[name]

    def items(self, name: str) -> list[Any]:
        return list(self.fields[name])

    def iterator(self, name: str) -> Any:
        return unasked(self.fields[name])

    def iterators(self, name: str) -> list[Any]:
        return [() if it is None else unasked(it) for it in self.fields[name]]

    def constant(self, value: Any) -> Any:
        return value

    def function(self, function: Any) -> Any:
        return function

    def less(self, name: str, other: str) -> Any:
        return self.fields[name] - self.fields[other]

    def called(self, function: Any, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)


def _cycle(s: _Kept) -> Any:
    saved = s.items("saved")
    if not s.lacks("it"):
        made = s.called(s.cls, s.preceded("it", *saved) if saved else s.iterator("it"))
        return s.moved_on(made, len(saved)) if saved else made
    return s.moved_on(s.called(s.cls, s.value("saved")), s.value("index")) if saved else s.ended(s.constant(()))


def _chain(s: _Kept) -> Any:
    if s.lacks("source"):
        return s.ended()
    source = s.iterator("source") if s.lacks("active") else s.preceded("source", s.iterator("active"))
    return s.called(s.cls.from_iterable, source)


def _islice(s: _Kept) -> Any:
    if s.lacks("it"):
        return s.ended(s.constant(()), s.constant(0))
    stop = s.constant(None) if s.lacks("stop") else s.less("stop", "at")
    return s.called(s.cls, s.iterator("it"), s.less("wanted", "at"), stop, s.value("step"))


def _takewhile(s: _Kept) -> Any:
    return s.ended(s.constant(None), s.constant(())) if s.known("stops") else _applied("predicate")(s)


def _dropwhile(s: _Kept) -> Any:
    if not s.known("starts"):
        return _applied("predicate")(s)
    return s.moved_on(s.called(s.cls, s.function(operator.not_), s.preceded("it", s.constant(True))), s.constant(1))


def _pairwise(s: _Kept) -> Any:
    if s.lacks("it"):
        return s.ended(s.constant(()))
    return s.called(s.cls, s.iterator("it") if s.lacks("old") else s.preceded("it", s.value("old")))


def _accumulate(s: _Kept) -> Any:
    if s.known("total") is _NOTHING:
        return s.called(s.cls, s.iterator("it"), s.value("func"), initial=s.value("initial"))
    return s.moved_on(s.called(s.cls, s.preceded("it", s.value("total")), s.value("func")), s.constant(1))


def _zip_longest(s: _Kept) -> Any:
    return (
        s.called(s.cls, *s.iterators("iterators"), fillvalue=s.value("fillvalue")) if s.known("active") else s.ended()
    )


def _batched(s: _Kept) -> Any:
    strict = {"strict": s.value("strict")} if s.known("strict") is not False else {}  # which 3.12 does not know
    if s.lacks("it"):
        return s.ended(s.constant(()), s.constant(1))
    return s.called(s.cls, s.iterator("it"), s.value("n"), **strict)


def _groupby(s: _Kept) -> Any:
    is_new = s.known("target") is _NOTHING
    return s.called(s.cls, s.iterator("it"), s.value("keyfunc")) if is_new else None


def _applied(name: str) -> Callable[[_Kept], Any]:
    return lambda s: s.called(s.cls, s.value(name), s.iterator("it"))


def _repeat(s: _Kept) -> Any:
    times: Sequence[Any] = [] if s.lacks("times") else [s.value("times")]
    return s.called(s.cls, s.value("object"), *times)


_KINDS: dict[Any, Callable[[_Kept], Any]] = {
    itertools.count: lambda s: s.called(s.cls, s.value("value"), s.value("step")),
    itertools.cycle: _cycle,
    itertools.repeat: _repeat,
    itertools.chain: _chain,
    itertools.islice: _islice,
    itertools.takewhile: _takewhile,
    itertools.dropwhile: _dropwhile,
    itertools.filterfalse: _applied("predicate"),
    itertools.starmap: _applied("function"),
    itertools.compress: lambda s: s.called(s.cls, s.iterator("data"), s.iterator("selectors")),
    itertools.pairwise: _pairwise,
    itertools.accumulate: _accumulate,
    itertools.zip_longest: _zip_longest,
    itertools.groupby: _groupby,
    itertools._tee: lambda s: s.called(teed, s.value("shared"), s.value("at")),  # type: ignore[attr-defined]
    getattr(itertools, "batched", None): _batched,  # since 3.12
}
