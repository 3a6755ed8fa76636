"""Watches: guards on what rarely changes are verified by memory words, and re-read only when one of
these has changed.

The life of a predicate: it is *evaluated* until it first holds, which is in the call that made the
entry. From then on it is *watched*: generated code looks up the binding of each root object, reads
all words of the binding in one pass, compares them with what they were, and tests what is left. A
difference *renews* the binding of that root. What changes again and again is made *loose*: its
group is planned anew without it. docs/explanation/watches.md has all of this.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from attrs import Factory, define, frozen

from stator_guards._binding import Unwatched, Watch
from stator_guards._cells import Cells
from stator_guards._equal_roots import expanded
from stator_guards._guard import CANNOT_READ, Guard
from stator_guards._loads import Loads
from stator_guards._memory import ObjectLayout, reader
from stator_guards._part_source import AttrSource, DictItemSource, InstanceDictSource
from stator_guards._plan import (
    PASSING_ROOT_GUARDS,
    WORTH_A_GROUP,
    Group,
    Plan,
    Situation,
    loosen,
    make_plan,
    replace,
)
from stator_guards._source import Source, State
from stator_guards._walk import Walk
from stator_guards._writer import ordered

CHANGES_TO_BE_LOOSE = 3
ROOTS_TO_BE_LOOSE = 3
"""The number of successive new root objects, each after the death of earlier ones, that are taken
for short-lived ones."""
LIVING_ROOTS_TO_BE_LOOSE = 100
"""The same, if none of them dies: many objects may share an entry, as the equal blocks of a model
do."""
SOON = 1.0
MOST_PLANS = 12


def is_worth_watching(guards: Iterable[Guard]) -> bool:
    """Return whether enough guards read through containers for words to be faster."""
    through = (DictItemSource, InstanceDictSource, AttrSource)
    return sum(isinstance(guard.source, through) for guard in guards) >= WORTH_A_GROUP


@frozen(eq=False)
class _Left:
    """A group, what remains of it, and the ids of the facts that have left."""

    before: Group
    now: Group
    facts: frozenset[int]


@define(eq=False)
class Watching:
    """The watches of one predicate."""

    walk: Walk
    guards: Sequence[Guard]
    layout: ObjectLayout
    install: Callable[[Watching, Plan | None], None]
    """Called with a new plan; None when nothing is watched."""
    is_lasting: Callable[[object], bool]
    loads: list[Loads] = Factory(list)
    plan: Plan | None = None
    watches: dict[Group, Watch] = Factory(dict)
    plans: int = 0
    loose: frozenset[Source | None] = frozenset()
    changes: dict[object, tuple[int, float]] = Factory(dict)
    lock: Any = Factory(threading.Lock)

    def first(self, *state: object) -> bool:
        """The predicate until it holds."""
        named = self.walk.state(state)
        steps = self.walk.steps
        read = steps.read(named)
        if read is None:
            return False
        values = {source: read[place] for source, place in steps.places.items()}
        self._alone(lambda: self._make_plan(named, values))
        return True

    def _alone(self, step: Callable[[], None]) -> None:
        """Do `step` unless a thread does one already: it is only a matter of speed."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            step()
        except CANNOT_READ:
            pass  # another thread changed the state since it was checked; a later call tries again
        finally:
            self.lock.release()

    # -- plans -------------------------------------------------------------------------------------
    def _make_plan(self, state: State, values: dict[Source, Any]) -> None:
        if self.plan is None:
            self.plans += 1
            situation = Situation(state, values, self.layout, self.loose, self.is_lasting)
            if self.plans < MOST_PLANS:
                self._follow(*make_plan(self.guards, situation), values)
            else:  # reading what guards relate fails in between
                self.install(self, None)
            self.walk.release()

    def _follow(
        self,
        plan: Plan,
        cells: dict[Group, Cells],
        values: dict[Source, Any],
        left: _Left | None = None,
    ) -> None:
        """Install the predicate of a plan; bindings of groups that it keeps stay, without what has
        left one of them."""
        old = self.watches
        self.plan, self.guards = plan, plan.guards
        self.watches = {group: self._watch(group) for group in plan.groups}
        for loads in self.loads:
            loads.served = None

        self._serve(plan)
        self.install(self, plan if plan.groups else None)
        for group, watch in self.watches.items():
            if group in old:
                watch.adopt(old[group], frozenset())
            elif left is not None and group is left.now:
                watch.adopt(old[left.before], left.facts)
            else:
                self._keep(watch, cells[group], values)
        for watch in old.values():
            # code that still refers to them finds nothing, and nothing is kept alive
            watch.bindings.clear()

    def _watch(self, group: Group) -> Watch:
        owner = weakref.ref(self)

        def on_change(watch: Watch, changed: Sequence[Source], state: State) -> None:
            # weakly: what guards refer to is to die with their set
            if (watching := owner()) is not None:
                watching._on_change(watch, changed, state)

        return Watch(group, self.layout, reader(group.words), self.walk.parameters, on_change)

    def _keep(self, watch: Watch, cells: Cells, values: dict[Source, Any]) -> None:
        group = watch.group
        root = None if group.root is None else values[group.root]
        with suppress(Unwatched):  # where another thread changed something meanwhile
            watch.keep(root, cells, {source: values[source] for source in group.pinned})

    def _serve(self, plan: Plan) -> None:
        """Hand over what is pinned below one root, or below captured objects, and parts of that."""
        for loads in self.loads:
            pinned = [plan.pinned_above(source) for source in loads.sources]
            groups = {plan.group_of.get(source) for source in pinned}
            group = groups.pop()
            if group is not None and not groups:
                loads.served = self.watches[group].server(loads, pinned)

    # -- changes -----------------------------------------------------------------------------------
    def _on_change(self, watch: Watch, changed: Sequence[Source], state: State) -> None:
        """Count what changed, and plan the group anew when it changes again and again."""
        group = watch.group
        loose: set[Source | None] = {
            source for source in changed if self._is_churning(source, CHANGES_TO_BE_LOOSE)
        }
        if not changed and group.root is not None and self._is_passing(watch):
            if group.count <= PASSING_ROOT_GUARDS:
                loose.add(group.root)
            else:
                watch.passing = True
        roots = {source for guard in group.equal for source in guard.sources}
        is_loose = bool(loose)
        loose -= roots  # what changes in them is known when their facts are single ones
        if is_loose or watch.failed >= CHANGES_TO_BE_LOOSE:
            self._alone(lambda: self._revise(watch, loose, state))

    def _is_passing(self, watch: Watch) -> bool:
        """Return whether each of the last root objects was new, and followed by another one."""
        root = ("root", watch.group.root)
        few = self._is_churning(root, ROOTS_TO_BE_LOOSE) and watch.died >= ROOTS_TO_BE_LOOSE - 1
        return few or self.changes[root][0] >= LIVING_ROOTS_TO_BE_LOOSE

    def _is_churning(self, what: object, limit: int) -> bool:
        """Count a change; return whether there were `limit` of them, each soon after the one
        before."""
        count, last = self.changes.get(what, (0, 0.0))
        now = time.monotonic()
        count = count + 1 if now - last < SOON else 1
        self.changes[what] = (count, now)
        return count >= limit

    def _revise(self, watch: Watch, loose: set[Source | None], state: State) -> None:
        group, plan = watch.group, self.plan
        if self.watches.get(group) is not watch or plan is None:
            return  # another thread did
        self.plans += 1
        if self.plans >= MOST_PLANS:
            loose.add(group.root)
        self.loose |= loose
        self.changes.clear()
        if group.equal:
            self._write_out(group)
            loose = set()

        bound = next(iter([*watch.bindings.values()]), None)
        if group.root in loose or not loose or bound is None:
            self._replace(plan, group, state)
        else:
            made, now, facts = loosen(plan, group, self.guards, loose, bound.pinned)
            now.words = sum(
                not facts.issuperset(map(id, standing)) for standing in bound.words.facts
            )
            self._follow(made, {}, {}, _Left(group, now, facts))

    def _write_out(self, group: Group) -> None:
        """Take the facts about several objects alike as single ones, of which some change."""
        equal = [*group.equal]
        group.equal = {}
        group.covered = [*expanded(group.covered)]
        kept = [guard for guard in self.guards if guard not in equal]
        self.guards = ordered([*kept, *expanded(equal)])
        group.forget_steps()

    def _replace(self, plan: Plan, group: Group, state: State) -> None:
        values = group.values(state, None if group.root is None else group.root.evaluate(state))
        if values is not None:
            group.pinned = [source for source in values if source is not group.root]
            situation = Situation(state, values, self.layout, self.loose, self.is_lasting)
            self._follow(*replace(plan, group, self.guards, situation), values)
