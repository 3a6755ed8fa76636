"""Iterators of itertools that have started, as real ones: what each was up to is in the frame of the app-level function
behind it (`_applevel._itertools`), suspended where it gave its last item. C keeps the same things in fields.

A new one is made of what is left. What C cannot be told, it reads again from a `chain` that it is moved along.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import attrs
from stator_bytecode import GeneratorStatus

from stator_variables import _kinds as k
from stator_variables._builtin._iterators import again, is_pooled
from stator_variables._emit._emitter import Emitter, StillRunning
from stator_variables._runtime import advanced, finished

NUMBERS = (int, float, complex, bool)


def has_started(vt: k.IteratorTracker) -> bool:
    return vt.kind == "application" and not is_pooled(vt) and vt.parts[0].state.status is not GeneratorStatus.CREATED


def write(e: Emitter, vt: k.IteratorTracker) -> str:
    """An expression for a real one. Raises Unsupported for `groupby`, which nobody but C can put together."""
    state = vt.parts[0].state
    if state.status is GeneratorStatus.RUNNING:
        raise StillRunning(state, e.refuse(vt))
    if state.status is GeneratorStatus.CLOSED:
        return _ended(e, vt)
    if (kind := _KINDS.get(vt.cls)) is None:
        raise e.refuse(vt)
    return kind(_Started(e, vt, state.frame))


def _ended(e: Emitter, vt: k.IteratorTracker) -> str:
    empty = f"{e.capture(vt.cls, vt.cls.__name__)}({_OF_NOTHING.get(vt.cls, 'None, ()')})"
    return f"{e.capture(finished, 'finished')}({empty})"


_OF_NOTHING: dict[type, str] = {itertools.repeat: "None, 0", itertools.islice: "(), 0", itertools.compress: "(), ()"}
_OF_NOTHING |= dict.fromkeys((itertools.chain, itertools.cycle, itertools.pairwise, itertools.accumulate), "()")
_OF_NOTHING |= dict.fromkeys((itertools.zip_longest, itertools.groupby), "()")


@attrs.frozen
class _Started:
    e: Emitter
    vt: k.IteratorTracker
    frame: Any

    def of(self, name: str) -> Any:
        return self.frame.slots[self.frame.code.slots.index(name)]

    def text(self, name: str) -> str:
        return str(self.e.expr(self.of(name)))

    def iterator(self, vt: Any) -> str:
        return again(self.e, [vt])[0]

    def made(self, *arguments: str, of: Any = None) -> str:
        return f"{self._named(of or self.vt.cls)}({', '.join(arguments)})"

    def before(self, items: str, rest: Any) -> str:
        return self.made(items, self.iterator(rest), of=itertools.chain)

    def moved_on(self, text: str, steps: int | str) -> str:
        return f"{self.e.capture(advanced, 'advanced')}({text}, {steps})"

    def _named(self, of: Any) -> str:
        return str(self.e.capture(of, of.__name__))


def _count(s: _Started) -> str:
    if s.of("start").cls not in NUMBERS or s.of("step").cls not in NUMBERS:
        raise s.e.refuse(s.vt)
    return s.made(f"{s.text('start')} + {s.text('step')}", s.text("step"))


def _cycle(s: _Started) -> str:
    saved = s.of("saved")
    if s.frame.stack:  # it goes through what it saved
        return s.moved_on(s.made(s.text("saved")), s.frame.stack[-1].position)
    return s.moved_on(s.made(s.before(s.text("saved"), s.of("it"))), len(saved.items))


def _repeat(s: _Started) -> str:
    times = s.of("times")
    ever = times.cls is not int
    return s.made(s.text("object"), *([] if ever else [s.text("times")]))


def _chain(s: _Started) -> str:
    parts = s.before(f"({s.iterator(s.frame.stack[-1])},)", s.of("it"))
    return f"{s.e.capture(itertools.chain.from_iterable, 'from_iterable')}({parts})"


def _islice(s: _Started) -> str:
    at, stop = s.text("at"), s.of("stop")
    end = "None" if stop.cls is type(None) else f"{s.e.expr(stop)} - {at}"
    return s.made(s.iterator(s.of("it")), f"{s.text('wanted')} - {at}", end, s.text("step"))


def _dropwhile(s: _Started) -> str:
    kept = s.before("(True,)", s.of("it"))
    return s.moved_on(s.made(s.e.capture(operator.not_, "not_"), kept), 1)


def _compress(s: _Started) -> str:
    return s.made(s.iterator(s.of("data")), s.iterator(s.of("selectors")))


def _pairwise(s: _Started) -> str:
    last = s.text("item")
    return s.moved_on(s.made(s.before(f"({last}, {last})", s.of("it"))), 1)


def _accumulate(s: _Started) -> str:
    return s.moved_on(s.made(s.before(f"({s.text('total')},)", s.of("iterable")), s.text("func")), 1)


def _zip_longest(s: _Started) -> str:
    pairs = zip(s.of("iterators").items, s.of("running").items, strict=True)
    texts = [s.iterator(it) if running.constant() else "()" for it, running in pairs]
    return s.made(*texts, f"fillvalue={s.text('fillvalue')}")


def _applied(name: str) -> Callable[[_Started], str]:
    return lambda s: s.made(s.text(name), s.iterator(s.of("it")))


def _batched(s: _Started) -> str:
    strict = [] if s.of("strict").value is False else [f"strict={s.text('strict')}"]  # which 3.12 does not know
    return s.made(s.iterator(s.of("iterable")), s.text("n"), *strict)


_KINDS: dict[type, Callable[[_Started], str]] = {
    itertools.count: _count,
    itertools.cycle: _cycle,
    itertools.repeat: _repeat,
    itertools.chain: _chain,
    itertools.islice: _islice,
    itertools.takewhile: _applied("predicate"),
    itertools.dropwhile: _dropwhile,
    itertools.filterfalse: _applied("predicate"),
    itertools.starmap: _applied("function"),
    itertools.compress: _compress,
    itertools.pairwise: _pairwise,
    itertools.accumulate: _accumulate,
    itertools.zip_longest: _zip_longest,
}
if (batched := getattr(itertools, "batched", None)) is not None:  # since 3.12
    _KINDS[batched] = _batched
    _OF_NOTHING[batched] = "(), 1"
