"""Iterators of itertools as real ones: what each was up to is in the fields of the app-level object behind it
(`_applevel._itertools`), and a new one is made of what is left. What C cannot be told, it reads once more.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import attrs

from stator_variables import _kinds as k
from stator_variables._applevel._itertools import _NOTHING
from stator_variables._builtin._iterators import again
from stator_variables._emit._emitter import Emitter
from stator_variables._runtime import advanced, finished, preceded


def write(e: Emitter, vt: k.IteratorTracker) -> str:
    """An expression for a real one. Raises Unsupported for a group of `groupby`, and for what `tee` gave: nobody but C
    can put those together."""
    if (kind := _KINDS.get(vt.cls)) is None:
        raise e.refuse(vt)
    return kind(_Kept(e, vt, vt.parts[0].namespace.entries))


@attrs.frozen
class _Kept:
    e: Emitter
    vt: k.IteratorTracker
    fields: dict[str, tuple[Any, Any]]

    def of(self, name: str) -> Any:
        return self.fields[name][1]

    def lacks(self, name: str) -> bool:
        return k.is_none(vt := self.of(name)) or vt.real is _NOTHING

    def text(self, name: str) -> str:
        return str(self.e.expr(self.of(name)))

    def iterator(self, name: str) -> str:
        return again(self.e, [self.of(name)])[0]

    def preceded(self, name: str, *first: str) -> str:
        """What C goes through: first these, then the iterator."""
        return f"{self.e.capture(preceded, 'preceded')}({', '.join([self.text(name), *first])})"

    def made(self, *arguments: str, of: Any = None) -> str:
        of = of or self.vt.cls
        return f"{self.e.capture(of, of.__name__)}({', '.join(arguments)})"

    def moved_on(self, text: str, steps: int | str) -> str:
        return f"{self.e.capture(advanced, 'advanced')}({text}, {steps})"

    def ended(self, *arguments: str) -> str:
        return f"{self.e.capture(finished, 'finished')}({self.made(*arguments)})"


def _cycle(s: _Kept) -> str:
    saved = [s.e.expr(item) for item in s.of("saved").items]
    if not s.lacks("it"):
        return s.moved_on(s.made(s.preceded("it", *saved)), len(saved)) if saved else s.made(s.iterator("it"))
    return s.moved_on(s.made(s.text("saved")), s.text("index")) if saved else s.ended("()")


def _chain(s: _Kept) -> str:
    of = s.vt.cls.from_iterable  # type: ignore[attr-defined]
    if s.lacks("source"):
        return s.ended()
    return s.made(s.iterator("source") if s.lacks("active") else s.preceded("source", s.iterator("active")), of=of)


def _islice(s: _Kept) -> str:
    if s.lacks("it"):
        return s.ended("()", "0")
    stop = "None" if s.lacks("stop") else f"{s.text('stop')} - {s.text('at')}"
    return s.made(s.iterator("it"), f"{s.text('wanted')} - {s.text('at')}", stop, s.text("step"))


def _takewhile(s: _Kept) -> str:
    return s.ended("None", "()") if s.of("stops").value else _applied("predicate")(s)


def _dropwhile(s: _Kept) -> str:
    if not s.of("starts").value:
        return _applied("predicate")(s)
    return s.moved_on(s.made(s.e.capture(operator.not_, "not_"), s.preceded("it", "True")), 1)


def _pairwise(s: _Kept) -> str:
    if s.lacks("it"):
        return s.ended("()")
    return s.made(s.iterator("it") if s.lacks("old") else s.preceded("it", s.text("old")))


def _accumulate(s: _Kept) -> str:
    if s.of("total").real is _NOTHING:
        return s.made(s.iterator("it"), s.text("func"), f"initial={s.text('initial')}")
    return s.moved_on(s.made(s.preceded("it", s.text("total")), s.text("func")), 1)


def _zip_longest(s: _Kept) -> str:
    if s.of("active").value == 0:
        return s.ended()
    its = s.of("iterators").items
    return s.made(*("()" if k.is_none(it) else again(s.e, [it])[0] for it in its), f"fillvalue={s.text('fillvalue')}")


def _batched(s: _Kept) -> str:
    strict = [] if s.of("strict").value is False else [f"strict={s.text('strict')}"]  # which 3.12 does not know
    return s.ended("()", "1") if s.lacks("it") else s.made(s.iterator("it"), s.text("n"), *strict)


def _groupby(s: _Kept) -> str:
    if not s.lacks("key") or not s.lacks("target"):
        raise s.e.refuse(s.vt)
    return s.made(s.iterator("it"), s.text("keyfunc"))


def _applied(name: str) -> Callable[[_Kept], str]:
    return lambda s: s.made(s.text(name), s.iterator("it"))


_KINDS: dict[Any, Callable[[_Kept], str]] = {
    itertools.count: lambda s: s.made(s.text("value"), s.text("step")),
    itertools.cycle: _cycle,
    itertools.repeat: lambda s: s.made(s.text("object"), *([] if s.lacks("times") else [s.text("times")])),
    itertools.chain: _chain,
    itertools.islice: _islice,
    itertools.takewhile: _takewhile,
    itertools.dropwhile: _dropwhile,
    itertools.filterfalse: _applied("predicate"),
    itertools.starmap: _applied("function"),
    itertools.compress: lambda s: s.made(s.iterator("data"), s.iterator("selectors")),
    itertools.pairwise: _pairwise,
    itertools.accumulate: _accumulate,
    itertools.zip_longest: _zip_longest,
    itertools.groupby: _groupby,
    getattr(itertools, "batched", None): _batched,  # since 3.12
}
