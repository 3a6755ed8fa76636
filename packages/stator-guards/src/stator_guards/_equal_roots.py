"""The same facts about several objects, such as the blocks of a stack: one guard in place of a copy
of each fact for each object.

    for each in (layers['1'], layers['2'], layers['3']):
        if not (type(each) is Block): return False
        each_dict = read_plainly(each, '__dict__')
        if not (each_dict['training'] is False): return False

`EqualFacts` are about parts of the source `EACH`; `EqualRoots` has the sources that this stands
for. `expanded` gives the copies again, for those who look at single facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from attrs import define, evolve, frozen

from stator_guards._guard import CANNOT_READ, Guard, Kind
from stator_guards._source import ParameterSource, Source, State
from stator_guards._walk import Steps
from stator_guards._writer import ordered

EACH = ParameterSource("each")
"""The source of one of the objects in facts about all of them."""


def moved_source(source: Any, moved: dict[Any, Source]) -> Source:
    """Return the same part of what replaces a parameter; parts that are shared stay shared.

    `moved` has the sources by the names of parameters, and what was moved before by its id.
    """
    if isinstance(source, ParameterSource):
        return moved[source.parameter]
    if (found := moved.get(id(source))) is None:
        found = moved[id(source)] = evolve(source, whole=moved_source(source.whole, moved))
    return found


@define(eq=False, slots=False)
class EqualFacts:
    """Facts about parts of `EACH`, each about one source.

    `tensors` are guards about further parts. For each object there are guards of its own about
    these, since no two of the tensors may be one; the same words prove them.
    """

    guards: Sequence[Guard]
    tensors: Sequence[Guard] = ()

    @classmethod
    def of(cls, guards: Iterable[Guard], tensors: Sequence[Guard] = ()) -> EqualFacts:
        return cls(ordered(guards), tensors)

    @cached_property
    def steps(self) -> Steps:
        """The object is at place 1."""
        return Steps.of([*self.guards, *self.tensors], (EACH,))

    def hold(self, root: object, state: State) -> bool:
        return self.steps.read(state, root) is not None

    def about(self, root: Source) -> Iterator[Guard]:
        """Yield the facts about one object."""
        moved: dict[Any, Source] = {EACH.parameter: root}
        for guard in self.guards:
            yield evolve(guard, source=moved_source(guard.source, moved))


@frozen(eq=False)
class EqualRoots(Kind):
    """The facts hold of each of the roots; the guard is on the first of them."""

    facts: EqualFacts
    roots: tuple[Source, ...]

    rank = 10
    needs = "one of {0.count} objects with equal parts"
    fix = "keep the objects alike"

    @classmethod
    def guard(cls, facts: EqualFacts, roots: Iterable[Source]) -> Guard:
        sources = tuple(roots)
        return Guard(sources[0], cls(facts, sources), facts.guards[0].where)

    @property
    def count(self) -> int:
        return len(self.roots)

    @property
    def others(self) -> tuple[Source, ...]:
        return self.roots[1:]

    @property
    def is_gone(self) -> bool:
        return any(guard.kind.is_gone for guard in self.facts.guards)

    @property
    def loop(self) -> tuple[Source, Sequence[Source], Sequence[Guard]]:
        return EACH, self.roots, self.facts.guards

    def holds(self, value: object, state: State) -> bool:
        return all(self.facts.hold(root.evaluate(state), state) for root in self.roots)

    def failing(self, state: State) -> Iterator[Guard]:
        """Yield the facts that do not hold, about each root."""
        for root in self.roots:
            try:
                inner = {**state, EACH.parameter: root.evaluate(state)}
            except CANNOT_READ:
                yield from self.facts.about(root)
                continue
            failing = [guard for guard in self.facts.guards if not guard.holds(inner)]
            yield from EqualFacts(failing).about(root)


def expanded(guards: Iterable[Guard]) -> Iterator[Guard]:
    """Yield the guards with a copy of each fact for each root."""
    for guard in guards:
        if isinstance(guard.kind, EqualRoots):
            for root in guard.kind.roots:
                yield from guard.kind.facts.about(root)
        else:
            yield guard
