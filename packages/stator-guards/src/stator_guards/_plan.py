"""Decides which guards of a set are watched instead of read: once, on a state in which they all
hold.

A *root* is a value that is read on every call (a parameter, usually) and can be referred to weakly;
or there is none, and chains start at objects the predicate captures. What hangs off a root is
*pinned* when memory words prove it unchanged, or when one identity test per call does (`inline`: a
step out of something that changes often). All guards on pinned values that the words prove too are
*covered*: while the words are as they were, those guards hold. The rest, the *residual*, stays to
be tested.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import Factory, define, frozen

from stator_guards._cells import Cells
from stator_guards._equal_roots import EqualRoots, expanded
from stator_guards._equal_words import EqualWords
from stator_guards._guard import Guard
from stator_guards._memory import ObjectLayout
from stator_guards._part_source import PartSource
from stator_guards._recording import holds_on, read, stays
from stator_guards._source import CapturedSource, Source, State, parents_first
from stator_guards._walk import Steps
from stator_guards._writer import ordered

WORTH_A_GROUP = 6
WORTH_AN_INLINE_TEST = 3
ROOT_WORDS, ROOT_GUARDS, FLAT_ROOT_GUARDS = 12, 32, 128
"""A root is worth its words when much hangs off it. Testing what is small costs little more, and
nothing at all when the next call passes a new object: plain objects and containers with many
attributes often are."""
PASSING_ROOT_GUARDS = 500
"""The same of an object that the next call is likely to replace, a cache or a batch. Beyond it,
guards on objects that were replaced are evaluated: compiling them would take longer than many
calls."""


@define(eq=False)
class Group:
    """Everything watched from one root; `root` is None for what hangs off captured objects."""

    root: Source | None
    pinned: list[Source] = Factory(list)
    inline: dict[PartSource, None] = Factory(dict)
    covered: list[Guard] = Factory(list)
    equal: dict[Guard, EqualWords] = Factory(dict)
    """The covered guards that are about several objects alike."""
    words: int = 0
    _steps: Steps | None = None
    _single_steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        """The covered guards with all pinned values; the root is at place 1."""
        if self._steps is None:
            known = () if self.root is None else (self.root,)
            self._steps = Steps.of(self.covered, known, self.pinned)
        return self._steps

    @property
    def single_steps(self) -> Steps:
        """The same with each fact about several objects once for each, so that all parts are
        read."""
        if not self.equal:
            return self.steps
        if self._single_steps is None:
            known = () if self.root is None else (self.root,)
            self._single_steps = Steps.of(expanded(self.covered), known, self.pinned)
        return self._single_steps

    def forget_steps(self) -> None:
        """Work the steps out again, for other guards."""
        self._steps = None
        self._single_steps = None

    def values(self, state: State, root: object) -> dict[Source, Any] | None:
        """The pinned values below a root object, if all covered guards hold there."""
        known = () if self.root is None else (root,)
        read = self.steps.read(state, *known)
        return (
            None
            if read is None
            else {source: read[place] for source, place in self.steps.places.items()}
        )

    def cells(
        self, layout: ObjectLayout, values: Mapping[Source, Any], state: State
    ) -> Cells | None:
        """The words that the group stands on there; None when some of its facts cannot be
        watched."""
        cells = Cells(layout)
        proven = {source for words in self.equal.values() for source in words.sources}
        proven.update(self.inline)
        if not all(source in proven or stays(source, values, cells) for source in self.pinned):
            return None
        if not all(words.record(values, state, cells) for words in self.equal.values()):
            return None
        if not all(self.holds_on(guard, values, state, cells) for guard in self.covered):
            return None
        return cells

    def holds_on(
        self, guard: Guard, values: Mapping[Source, Any], state: State, cells: Cells
    ) -> bool:
        """Record the words of a guard that are not those of equal facts, and check it again."""
        if guard in self.equal:
            return True
        if self._is_proven(guard):
            return guard.kind.holds(values[guard.source], state)  # type: ignore[index]
        return holds_on(guard, values, state, cells)

    def _is_proven(self, guard: Guard) -> bool:
        """Return True for a guard on a tensor whose words prove equal facts."""
        return guard.kind.batched and any(
            guard.source in words.tensors for words in self.equal.values()
        )

    @property
    def count(self) -> int:
        """The number of covered facts."""
        return len(self.covered) + sum(words.count for words in self.equal.values())

    @property
    def is_worth_it(self) -> bool:
        guards = self.count
        if self.root is None:
            return guards >= WORTH_A_GROUP
        return guards >= FLAT_ROOT_GUARDS or (guards >= ROOT_GUARDS and self.words >= ROOT_WORDS)


@define(eq=False)
class Plan:
    guards: Sequence[Guard]
    """All guards; those about several objects alike as one each, where words prove them."""
    groups: list[Group]
    group_of: dict[Source, Group]
    residual: list[Guard]
    below: Counter[Source]
    """The number of guards that depend on each source."""

    def pinned_above(self, source: Source) -> Source:
        """Return the pinned source that a source is, or is a part of; without one, the start of its
        chain."""
        while isinstance(source, PartSource):
            group = self.group_of.get(source)
            if group is not None and source is not group.root:
                break
            source = source.whole
        return source


@frozen(eq=False)
class Situation:
    """A state in which all guards hold, with the values of their sources."""

    state: State
    values: dict[Source, Any]
    """Parents first."""
    layout: ObjectLayout
    loose: frozenset[Source | None]
    """Sources that change too often to be watched, or come out of one that does; None: captured
    objects."""
    is_lasting: Callable[[object], bool]
    """Return whether the next calls are likely to be given an object again."""


def make_plan(guards: Sequence[Guard], situation: Situation) -> tuple[Plan, dict[Group, Cells]]:
    """Plan for guards that hold now; also give the words of each group."""
    values = situation.values
    for source in parents_first(other for guard in guards for other in guard.kind.others):
        if source not in values:
            values[source] = read(source, values, situation.state)
    below = _below(guards, [*values])
    planner = _Planner(guards, situation, below, {})
    cells = planner.plan([*values])
    return _plan(planner.written_out(guards), planner.groups, planner.group_of, below), cells


def replace(
    plan: Plan, group: Group, guards: Sequence[Guard], situation: Situation
) -> tuple[Plan, dict[Group, Cells]]:
    """Plan one group anew for the values it has now; the others stay as they are."""
    above = [] if group.root is None else [group.root]
    kept = {source: other for source, other in plan.group_of.items() if other is not group}
    planner = _Planner(group.covered, situation, plan.below, kept)
    cells = planner.plan([*above, *group.pinned])
    groups = [*(other for other in plan.groups if other is not group), *planner.groups]
    return _plan(planner.written_out(guards), groups, planner.group_of, plan.below), cells


def loosen(
    plan: Plan,
    group: Group,
    guards: Sequence[Guard],
    loose: Collection[Source | None],
    values: Mapping[Source, Any],
) -> tuple[Plan, Group, frozenset[int]]:
    """Take out of a group what stands on containers that change too often; also give the ids of
    those facts."""
    made = Group(group.root, inline=dict(group.inline))
    out: set[Source] = set()
    removed: set[int] = set()

    for source in group.pinned:
        if isinstance(source, PartSource) and _leaves(source, made, loose, out):
            removed.add(id(source))
            tested = source not in loose and source.whole not in out and source not in made.inline
            is_worth = tested and plan.below[source] >= WORTH_AN_INLINE_TEST
            if not is_worth or type(values[source]) is MappingProxyType:
                made.inline.pop(source, None)
                out.add(source)
                continue
            made.inline[source] = None

        made.pinned.append(source)

    for guard in group.covered:
        if guard.source in loose or not out.isdisjoint(guard.sources):
            removed.add(id(guard))
        else:
            made.covered.append(guard)

    moved = {
        source: made if other is group else other
        for source, other in plan.group_of.items()
        if source not in out
    }
    groups = [made if other is group else other for other in plan.groups]
    return _plan(guards, groups, moved, plan.below), made, frozenset(removed)


def _leaves(
    source: PartSource, group: Group, loose: Collection[Source | None], out: set[Source]
) -> bool:
    """Return whether what proves a source unchanged is gone: its whole, its own identity, or the
    word of its whole."""
    if source.whole in out:
        return True
    return source in loose if source in group.inline else source.whole in loose


def _plan(
    guards: Sequence[Guard],
    groups: list[Group],
    group_of: dict[Source, Group],
    below: Counter[Source],
) -> Plan:
    covered = {id(guard): guard for group in groups for guard in group.covered}
    rest = [guard for guard in guards if id(guard) not in covered]
    return Plan(guards, groups, group_of, [*rest, *_left([*covered.values()], rest)], below)


class _Planner:
    def __init__(
        self,
        guards: Sequence[Guard],
        situation: Situation,
        below: Counter[Source],
        kept: dict[Source, Group],
    ) -> None:
        self._guards = [*guards]
        self._now = situation
        self._values = situation.values
        self._below = below
        self.groups: list[Group] = []
        self.group_of: dict[Source, Group] = dict(kept)
        self._cells: dict[Group, Cells] = {}
        self._captured: Group | None = None
        self._unwatched: list[Guard] = []
        """The guards about several objects that words do not prove of all at once."""

    def plan(self, sources: Iterable[Source]) -> dict[Group, Cells]:
        equal = [guard for guard in self._guards if isinstance(guard.kind, EqualRoots)]
        parts = _parts_of(equal, sources)
        self._pin_all(source for source in sources if source not in parts)
        for guard in equal:
            self._watch_equal(guard, parts)
        self._write_out()
        self._pin_all(parts if not self._unwatched else [*self._values])
        for guard in self._guards:
            self._cover(guard)
        for group in [*self._cells]:
            group.words = len(self._cells[group].words)
            if not group.is_worth_it:
                self._drop(group)
        return self._cells

    def _pin_all(self, sources: Iterable[Source]) -> None:
        for source in sources:
            if source not in self.group_of:
                self._pin(source)

    def _watch_equal(self, guard: Guard, parts: Iterable[Source]) -> None:
        """Watch the facts about several objects alike, and what else is read of these."""
        groups = {self.group_of.get(source) for source in guard.sources}
        group = groups.pop()
        if groups or group is None or group not in self._cells or group.root in guard.sources:
            self._unwatched.append(guard)
            return
        words = EqualWords(guard, self._now.layout)
        proven = [*words.prove(source for source in parts if source not in self.group_of)]
        if not words.record(self._values, self._now.state, self._cells[group]):
            self._unwatched.append(guard)
            return
        group.equal[guard] = words
        group.covered.append(guard)
        for source in proven:
            self._join(group, source)

    def _write_out(self) -> None:
        """Go on with single facts in place of those that are not watched at once."""
        if not self._unwatched:
            return
        self._guards = self.written_out(self._guards)
        for source in parents_first(guard.source for guard in self._guards if guard.source):
            if source not in self._values:
                self._values[source] = read(source, self._values, self._now.state)
        self._below = _below(self._guards, [*self._values])

    def written_out(self, guards: Sequence[Guard]) -> list[Guard]:
        """Return the guards with single facts in place of those that are not watched at once."""
        if not self._unwatched:
            return [*guards]
        kept = [guard for guard in guards if guard not in self._unwatched]
        return ordered([*kept, *expanded(self._unwatched)])

    def _cover(self, guard: Guard) -> None:
        if isinstance(guard.kind, EqualRoots):
            return  # these have their words by now
        source = guard.source
        group = None if source is None or source in self._now.loose else self.group_of.get(source)
        if group not in self._cells or group is None:
            return
        others = guard.kind.others
        if others and any(self.group_of.get(other) is not group for other in others):
            return
        if group.holds_on(guard, self._values, self._now.state, self._cells[group]):
            group.covered.append(guard)

    def _pin(self, source: Source) -> None:
        if isinstance(source, PartSource):
            above = self.group_of.get(source.whole)
            if above in self._cells and above is not None and self._stays_in(above, source):
                self._join(above, source)
                return
        elif (
            isinstance(source, CapturedSource)
            and None not in self._now.loose
            and not source.held.weak
        ):
            self._captured = self._captured or self._new_group(None)
            self._join(self._captured, source)
            return

        value = self._values[source]
        least = ROOT_GUARDS if self._now.is_lasting(value) else PASSING_ROOT_GUARDS
        if self._below[source] >= least and source not in self._now.loose and can_be_root(value):
            self.group_of[source] = self._new_group(source)

    def _stays_in(self, group: Group, source: PartSource) -> bool:
        """Return whether the words of the group prove a part of something in it unchanged, or one
        test per call may."""
        if source.whole not in self._now.loose and stays(source, self._values, self._cells[group]):
            return True
        if is_inline := self._is_worth_a_test(source):
            group.inline[source] = None
        return is_inline

    def _is_worth_a_test(self, source: PartSource) -> bool:
        if self._below[source] < WORTH_AN_INLINE_TEST or source in self._now.loose:
            return False
        return source.read(self._values[source.whole]) is self._values[source]

    def _new_group(self, root: Source | None) -> Group:
        group = Group(root)
        self.groups.append(group)
        self._cells[group] = Cells(self._now.layout)
        return group

    def _join(self, group: Group, source: Source) -> None:
        self.group_of[source] = group
        group.pinned.append(source)

    def _drop(self, group: Group) -> None:
        self.groups.remove(group)
        del self._cells[group]
        self.group_of = {
            source: other for source, other in self.group_of.items() if other is not group
        }


def _parts_of(guards: Iterable[Guard], sources: Iterable[Source]) -> dict[Source, None]:
    """Return those of the sources, parents first, that are parts of what these guards are about."""
    roots = {source for guard in guards for source in guard.sources}
    found: dict[Source, None] = {}
    for source in sources if roots else ():
        if isinstance(source, PartSource) and (source.whole in roots or source.whole in found):
            found[source] = None
    return found


def _left(covered: Sequence[Guard], rest: Sequence[Guard]) -> list[Guard]:
    """Return what the checks of batched kinds implied for the guards that are covered now."""
    found: list[Guard] = []
    for kind in dict.fromkeys(type(guard.kind) for guard in covered):
        if kind.batched:
            found += kind.left([guard for guard in covered if type(guard.kind) is kind], rest)
    return found


def _below(guards: Iterable[Guard], sources: Iterable[Source]) -> Counter[Source]:
    """Count the guards that depend on each source."""
    count = Counter(guard.source for guard in guards if guard.source is not None)
    count.update(other for guard in guards for other in guard.kind.others)
    for source in reversed([*sources]):
        if number := count.get(source, 0):
            for child in source.children:
                count[child] += number
    return count


def can_be_root(value: object) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True
