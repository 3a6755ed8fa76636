"""Which guards of a set can be watched instead of read: decided once, on a state in which they all hold.

A *root* is a value that is read on every call (a parameter, usually) and can be referred to weakly; or there is none,
and chains start at objects the predicate captures. What hangs off a root is *pinned* when memory words prove it
unchanged, or when one identity test per call does (`inline`: a step out of something that changes often). All guards
on pinned values that the words prove too are *covered*: while the words are as they were, those guards hold. The rest
stays to be tested.
"""

import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from stator_guards._cells import Cells
from stator_guards._kind import CANNOT_READ, Guard
from stator_guards._memory import Layout
from stator_guards._part import PartSource
from stator_guards._source import CapturedSource, Source, State, parents_first

WORTH_A_GROUP = 6
WORTH_AN_INLINE_TEST = 3


@attrs.define(eq=False)
class Group:
    """Everything watched from one root; `root` is None for what hangs off captured objects."""

    root: Source | None
    cells: Cells
    pinned: list[Source] = attrs.field(factory=list)
    inline: dict[PartSource, None] = attrs.field(factory=dict)
    covered: list[Guard] = attrs.field(factory=list)


@attrs.define(eq=False)
class Plan:
    groups: list[Group]
    group_of: dict[Source, Group]
    residual: list[Guard]


def make_plan(guards: Sequence[Guard], state: State, layout: Layout, loose: frozenset[Source]) -> Plan:
    """Plan for guards that hold now. What starts at or comes out of `loose` sources changes too often to be watched."""
    while True:
        plan = _Planner(guards, state, layout, loose).plan()
        small = {group.root for group in plan.groups if len(group.covered) < WORTH_A_GROUP}
        if not small:
            return plan
        loose |= {source for source in small if source is not None}
        if None in small:
            held = plan.group_of.items()
            loose |= {source for source, group in held if group.root is None and isinstance(source, CapturedSource)}


class _Planner:
    def __init__(self, guards: Sequence[Guard], state: State, layout: Layout, loose: frozenset[Source]) -> None:
        self._guards = guards
        self._state = state
        self._layout = layout
        self._loose = loose
        self._values: dict[Source, Any] = {}
        self._group_of: dict[Source, Group] = {}
        self._groups: dict[Source | None, Group] = {}
        self._below = _below(guards)

    def plan(self) -> Plan:
        for source in parents_first(source for guard in self._guards for source in guard.sources):
            self._values[source] = read(source, self._values, self._state)
            self._pin(source)
        residual = [guard for guard in self._guards if not self._covers(guard)]
        return Plan(list(self._groups.values()), self._group_of, residual)

    def _covers(self, guard: Guard) -> bool:
        groups = {self._group_of.get(source) for source in guard.sources}
        group = groups.pop() if len(groups) == 1 else None
        if group is None or guard.source in self._loose or guard.source is None:
            return False
        covered = _watched(group.cells, guard.source, lambda cells: guard.kind.watch(self._values[guard.source], cells))
        if covered:
            group.covered.append(guard)
        return covered

    def _pin(self, source: Source) -> None:
        value = self._values[source]
        above = self._group_of.get(source.whole) if isinstance(source, PartSource) else None
        starts = isinstance(source, CapturedSource) and source not in self._loose
        if starts and source.watch(None, value, Cells(self._layout)):
            self._join(self._group(None, None), source)
        elif above is not None and isinstance(source, PartSource) and self._stays_in(above, source):
            self._join(above, source)
        elif self._below[source] >= WORTH_A_GROUP and source not in self._loose and can_be_root(value):
            self._join(self._group(source, value), source)

    def _stays_in(self, group: Group, source: PartSource) -> bool:
        """Whether the words of the group prove a part of something in it unchanged, or one test per call may."""
        whole, value = self._values[source.whole], self._values[source]
        loose = source.whole in self._loose
        if not loose and _watched(group.cells, source.whole, lambda cells: source.watch(whole, value, cells)):
            return True
        if is_inline := self._is_worth_a_test(source):
            group.inline[source] = None
        return is_inline

    def _is_worth_a_test(self, source: PartSource) -> bool:
        again = source.read(self._values[source.whole])
        worth = self._below[source] >= WORTH_AN_INLINE_TEST and source not in self._loose
        return worth and again is self._values[source]

    def _group(self, root: Source | None, value: object) -> Group:
        if root not in self._groups:
            self._groups[root] = Group(root, Cells(self._layout, root=value))
        return self._groups[root]

    def _join(self, group: Group, source: Source) -> None:
        self._group_of[source] = group
        if source is not group.root:
            group.pinned.append(source)


def _watched(cells: Cells, origin: Source, watch: Any) -> bool:
    mark = cells.mark()
    cells.origin = origin
    watched = bool(watch(cells))
    if not watched:
        cells.rollback(mark)
    return watched


def _below(guards: Iterable[Guard]) -> Counter[Source]:
    """How many guards depend on each source."""
    count = Counter(source for guard in guards for source in guard.sources)
    for source in reversed(parents_first(list(count))):
        for child in source.children:
            count[child] += count[source]
    return count


def read(source: Source, values: dict[Source, Any], state: State) -> Any:
    """The value of a source whose base was read already."""
    return source.read(values[source.whole]) if isinstance(source, PartSource) else source.evaluate(state)


def can_be_root(value: object) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True


def gather(group: Group, root: object) -> tuple[Cells, dict[Source, Any]] | None:
    """The words and values of a group for one root object; None when its facts cannot be watched there."""
    cells = Cells(group.cells.layout, root=root)
    values: dict[Source, Any] = {} if group.root is None else {group.root: root}
    try:
        watched = all(_gather(source, group, cells, values) for source in group.pinned)
    except CANNOT_READ:
        return None
    for guard in group.covered if watched else ():
        cells.origin = guard.source
        watched = watched and guard.source is not None and guard.kind.watch(values[guard.source], cells)
    cells.held = [obj for obj in cells.held if obj is not root]
    return (cells, values) if watched else None


def _gather(source: Source, group: Group, cells: Cells, values: dict[Source, Any]) -> bool:
    value = values[source] = read(source, values, {})
    cells.held.append(value)
    cells.origin = source.base
    whole = None if source.base is None else values[source.base]
    return source in group.inline or source.watch(whole, value, cells)
