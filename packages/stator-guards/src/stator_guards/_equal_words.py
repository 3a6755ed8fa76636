"""The words of memory that equal facts about several objects stand on.

For one of the objects it is worked out which words prove which fact; those of the others lie in the
same places of their parts (`RootTemplate`). All words of an object prove one `RootFact`: a change
of one has the facts about that object checked again, and about no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import Factory, define, frozen

from stator_guards._cells import Cells, Words
from stator_guards._equal_roots import EACH, EqualRoots
from stator_guards._guard import Guard
from stator_guards._memory import WORD, ObjectLayout, reader
from stator_guards._part_source import PartSource
from stator_guards._recording import holds_on, is_same, stays
from stator_guards._root_template import BoundWords, OtherStructure, RootTemplate, template_of
from stator_guards._source import Source, State


@frozen(eq=False)
class RootFact:
    """The facts about one of the roots of a guard."""

    guard: Guard
    index: int

    @property
    def root(self) -> Source:
        return roots_of(self.guard).roots[self.index]


def roots_of(guard: Guard) -> EqualRoots:
    assert isinstance(guard.kind, EqualRoots)
    return guard.kind


@define(eq=False, slots=False)
class EqualWords:
    """The words of the roots of one guard."""

    guard: Guard
    layout: ObjectLayout
    proven: list[list[tuple[Source, int]]] = Factory(list)
    """The sources that the words prove besides, for each root, with the places of their values
    among the parts that are read of it."""
    template: RootTemplate | None = None

    @property
    def roots(self) -> tuple[Source, ...]:
        return roots_of(self.guard).roots

    @property
    def count(self) -> int:
        """The number of facts."""
        return len(self.roots) * len(roots_of(self.guard).facts.guards)

    @property
    def sources(self) -> Iterator[Source]:
        """The sources that the words prove besides."""
        return (source for of_root in self.proven for source, _ in of_root)

    def prove(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield those of the sources that are parts of roots which the facts read, parents
        first."""
        parts = self._parts()
        places = {root: (index, 1) for index, root in enumerate(self.roots)}
        self.proven = [[] for _ in self.roots]
        for source in sources:
            if isinstance(source, PartSource) and source.whole in places:
                index, above = places[source.whole]
                place = parts.get((above, *_part(source)))
                if place is not None:
                    places[source] = index, place
                    self.proven[index].append((source, place))
                    yield source

    @cached_property
    def tensors(self) -> set[Source]:
        """The tensors among those sources, whose words are recorded."""
        facts = roots_of(self.guard).facts
        places = {facts.steps.places[guard.source] for guard in facts.tensors if guard.source}
        return {source for of_root in self.proven for source, place in of_root if place in places}

    def _parts(self) -> dict[Hashable, int]:
        """The places of parts, by the place of the whole and the part."""
        places = roots_of(self.guard).facts.steps.places
        return {
            (places[source.whole], *_part(source)): place
            for source, place in places.items()
            if isinstance(source, PartSource)
        }

    def record(self, values: Mapping[Source, Any], state: State, cells: Cells) -> bool:
        """Record the words of all roots; False if there are facts that words do not prove.

        A class may have other words than in the template by now, which is then made anew.
        """
        for template in (self.template, None):
            self.template = template or self._made(values, state)
            if self.template is None:
                return False
            try:
                found = [self._bound(values[root], state) for root in self.roots]
            except OtherStructure:
                continue
            return self._is_recorded(found, values, cells)
        return False

    def still_hold(
        self, fact: RootFact, values: Mapping[Source, Any], state: State, words: Words, now: bytes
    ) -> bool:
        """Check the facts about one root again, of which `now` are the words. Raises OtherStructure
        where they stand on other words."""
        found = self._bound(values[fact.root], state)
        if found is None:
            return False
        held, known = memoryview(found.expected).cast("Q"), memoryview(now).cast("Q")
        for address, index in found.words.indices.items():
            place = words.indices.get(address)
            if place is None or known[place] != held[index]:
                raise OtherStructure
        targets = found.words.targets.items()
        if any(words.targets.get(address) is not target for address, target in targets):
            raise OtherStructure
        if not self._are_proven(found, fact.index, values):
            raise OtherStructure
        return True

    def _made(self, values: Mapping[Source, Any], state: State) -> RootTemplate | None:
        """Work out the words of the first root; None if there are facts that no words prove."""
        facts, root = roots_of(self.guard).facts, values[self.roots[0]]
        read = facts.steps.read(state, root)
        if read is None:
            return None
        here = {source: read[place] for source, place in facts.steps.places.items()}
        parts = [source for source in here if source is not EACH]

        cells = Cells(self.layout)
        if not all(stays(source, here, cells) for source in parts):
            return None
        guards = [*facts.guards, *facts.tensors]
        if not all(holds_on(guard, here, state, cells) for guard in guards):
            return None
        expected = b"".join([value.to_bytes(WORD, "little") for value in cells.words.values()])
        words = Words.of(cells, root)
        return template_of(facts.steps, self.layout, words, expected, here, root)

    def _bound(self, root: object, state: State) -> BoundWords | None:
        assert self.template is not None
        return self.template.bind(root, state, reader(len(self.template.words)), keeps_root=True)

    def _is_recorded(
        self, found: Sequence[BoundWords | None], values: Mapping[Source, Any], cells: Cells
    ) -> bool:
        bound = [each for each in found if each is not None]
        if len(bound) != len(found):
            return False
        for index, each in enumerate(bound):
            if not self._are_proven(each, index, values):
                return False
            if not cells.are_known(each.words.indices, each.expected):
                return False  # another thread changed something meanwhile
        for index, each in enumerate(bound):
            cells.add_all(RootFact(self.guard, index), each.words, each.expected)
        return True

    def _are_proven(self, found: BoundWords, index: int, values: Mapping[Source, Any]) -> bool:
        """Return True if the sources among the parts of a root have the values that they had."""
        return all(
            is_same(found.values[place], values[source]) for source, place in self.proven[index]
        )


def _part(source: PartSource) -> tuple[Hashable, ...]:
    """Return what part of its whole a source is."""
    return type(source), *source.identity[1:]
