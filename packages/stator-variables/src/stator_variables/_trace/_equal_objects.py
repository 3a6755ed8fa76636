"""Equal facts about several objects, as the blocks of a model: they are one guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import Factory, define
from stator_guards import EqualFacts, EqualRoots, Guard, Source

from stator_variables._trace._capture_state import Notes

FEWEST_ALIKE = 3
"""The number of objects from which on equal facts about them are one guard."""


@define(eq=False)
class EqualObjects(Notes):
    """The objects of which the same facts are guarded."""

    roots: dict[EqualFacts, dict[Source, None]] = Factory(dict)

    def add(self, facts: EqualFacts, root: Source) -> None:
        """Rely on facts of an existing object that are known of others."""
        self.roots.setdefault(facts, {})[root] = None

    def guards(self, fits: Callable[[Source], bool] | None = None) -> Iterator[Guard]:
        """Yield a copy of the guards for each object, or for those that fit."""
        for facts, roots in self.roots.items():
            for root in roots if fits is None else filter(fits, roots):
                yield from facts.about(root)

    def finish(self, t: Any) -> list[Guard]:
        """Return a guard for all objects of the same facts. Where they are few, the guards of each
        are added to the trace instead."""
        joined = []
        for facts, roots in self.roots.items():
            if len(roots) >= FEWEST_ALIKE:
                joined.append(EqualRoots.guard(facts, roots))
                continue
            for guard in (guard for root in roots for guard in facts.about(root)):
                t.guard(guard.source, guard.kind, guard.where)
        return joined
