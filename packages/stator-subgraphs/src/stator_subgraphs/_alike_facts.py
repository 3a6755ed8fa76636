"""The facts of a call that is repeated, in the form in which they are guarded: one guard for the
objects of all calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen
from stator_guards import EACH, EqualFacts, Guard, Source, moved_source
from stator_variables import source_of

from stator_subgraphs._operators._reuse import Alias, RegionCall


@frozen(eq=False)
class AlikeFacts:
    """The facts about the objects of a call, in the form in which they are guarded of others."""

    first: dict[str, Source]
    """The sources of the objects in the first call, of which the facts are guarded."""
    of_objects: dict[str, EqualFacts]
    rest: list[Guard]
    """The facts that are guarded one by one."""

    @classmethod
    def of(
        cls,
        call: RegionCall,
        facts: Iterable[Guard],
        aliased: Mapping[Source, Alias],
        tensors: Iterable[Guard],
    ) -> AlikeFacts:
        first: dict[str, Source] = {name: source_of(leaf) for name, leaf in call.objects.items()}
        moved: dict[Any, Source] = dict.fromkeys(first, EACH)
        alone = [fact for fact in facts if fact.source in aliased or fact.kind.turn is not None]
        alike = [fact for fact in facts if fact not in alone]
        guards, metadata = _by_object(alike, moved), _by_object(tensors, moved)
        of_objects = {
            name: EqualFacts.of(about, metadata.get(name, ())) for name, about in guards.items()
        }
        return cls(first, of_objects, alone)


def _by_object(facts: Iterable[Guard], moved: dict[Any, Source]) -> dict[str, list[Guard]]:
    """Return the facts by the object that each is about, as facts about `EACH`."""
    found: dict[str, list[Guard]] = {}
    for fact in facts:
        about = evolve(fact, source=moved_source(fact.source, moved))
        found.setdefault(_start_of(fact.source), []).append(about)
    return found


def _start_of(source: Any) -> str:
    """Return the parameter whose part a source is."""
    *_, start = source.steps()
    return str(start.parameter)
