"""Dispatch among the entries of one key: a table over the fact that distinguishes most of them,
instead of a scan.

A *discriminant* of a guard is a pair: a function from the guarded value to a case, and the case in
which alone the guard can hold. `TypeIs(int)` on `x` gives `(type_case, id(int))`. Entries whose
discriminants for one source and one function differ exclude each other, so reading that source once
selects the few entries whose guards are then checked.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import attrs

from stator_guards._guard import CANNOT_READ, CaseFunction, Guard, Kind, Undecided
from stator_guards._part_source import DictItemSource, ItemSource, PartSource
from stator_guards._source import ParameterSource, Source

MOST_PARTS = 3
Feature = tuple[Source, CaseFunction]
Discriminants = dict[Feature, Hashable]

_CONTAINERS: dict[type[Source], tuple[type, ...]] = {
    ItemSource: (list, tuple),
    DictItemSource: (dict,),
}


def discriminants(guards: Iterable[Guard]) -> Discriminants:
    """The features of a set of guards, each with the only case in which the set can hold."""
    found: Discriminants = {}
    for guard in guards:
        source = guard.source
        if (
            source is not None
            and type(guard.kind).discriminants is not Kind.discriminants
            and _is_near(source)
        ):
            for case, key in guard.kind.discriminants():
                found.setdefault((source, case), key)
    return found


def _is_near(source: Source) -> bool:
    """Return whether a source is a parameter or an item of one, which is read without running user
    code."""
    for _ in range(MOST_PARTS):
        if type(source) is ParameterSource:
            return True
        if not isinstance(source, PartSource) or type(source) not in _CONTAINERS:
            return False
        source = source.whole
    return False


def _reader(source: Source, parameters: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    parts: list[PartSource] = []
    while isinstance(source, PartSource):
        parts.append(source)
        source = source.whole
    assert isinstance(source, ParameterSource)
    place = parameters.index(source.parameter)
    return _item_reader(place, parts[::-1]) if parts else itemgetter(place)


def _item_reader(place: int, parts: Sequence[PartSource]) -> Callable[[Sequence[Any]], Any]:
    def read(state: Sequence[object]) -> object:
        value = state[place]
        for part in parts:
            if type(value) not in _CONTAINERS[type(part)]:
                raise Undecided  # a class may look items up in its own way
            value = part.read(value)
        return value

    return read


@attrs.frozen(eq=False)
class Decision:
    """A decision over one feature; its outcomes are entries, or decisions over further features."""

    everything: tuple[Any, ...]
    read: Callable[[Sequence[Any]], Any]
    case: CaseFunction
    table: dict[Hashable, Any]
    others: Any
    """The outcome in all cases that the table does not list: entries without a guard on the
    feature."""

    def candidates(self, state: Sequence[Any]) -> tuple[Any, ...]:
        """All entries whose guards may hold for a state."""
        try:
            outcome = self.table.get(self.case(self.read(state)), self.others)
        except (Undecided, *CANNOT_READ):
            return self.everything
        return outcome if type(outcome) is tuple else outcome.candidates(state)


def decide(entries: Sequence[tuple[Any, Discriminants]], parameters: Sequence[str]) -> object:
    """A decision among entries; the entries themselves, where no feature excludes any."""
    everything = tuple(entry for entry, _ in entries)
    feature = _best(entries) if len(entries) > 1 else None
    if feature is None:
        return everything

    others: list[tuple[Any, Discriminants]] = []
    cases: defaultdict[Hashable, list[tuple[Any, Discriminants]]] = defaultdict(list)
    for each in entries:
        if feature in each[1]:
            cases[each[1][feature]].append(each)
        else:
            others.append(each)
    table = {key: decide([*listed, *others], parameters) for key, listed in cases.items()}
    source, case = feature
    return Decision(
        everything, _reader(source, parameters), case, table, decide(others, parameters)
    )


def _best(entries: Sequence[tuple[Any, Discriminants]]) -> Feature | None:
    """The feature that leaves the fewest candidates in its worst case."""
    sizes: defaultdict[Feature, Counter[Hashable]] = defaultdict(Counter)
    for _, facts in entries:
        for feature, key in facts.items():
            sizes[feature][key] += 1

    def most_candidates(feature: Feature) -> int:
        listed = sizes[feature]
        return max(listed.values()) + len(entries) - listed.total()

    best = min(sizes, key=most_candidates, default=None)
    return best if best is not None and most_candidates(best) < len(entries) else None
