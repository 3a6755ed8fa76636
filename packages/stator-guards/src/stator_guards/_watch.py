"""Watches: guards on what rarely changes are verified by memory words, and re-read only when one of these has changed.

A predicate starts as a plain *walk* that reads everything. Once it has held twice, a plan is made and a second
function is generated: it looks up the binding of each root object, reads all words of the binding in one pass,
compares them with what they were, and tests what is left. On any difference it walks; if the walk holds, the words
are read afresh. What changes again and again stops being watched.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from stator_guards._kind import CANNOT_READ, Guard
from stator_guards._loads import Loads
from stator_guards._memory import Layout, Reader, reader
from stator_guards._part import AttrSource, DictItemSource, InstanceDictSource
from stator_guards._plan import WORTH_A_GROUP, Group, Plan, can_be_root, gather, make_plan
from stator_guards._source import ParameterSource, Source, State
from stator_guards._walk import Walk

KEPT_ROOTS = 8
CHANGES_TO_BE_LOOSE = 3
ROOTS_TO_BE_LOOSE = 32
SOON = 1.0
HITS_BEFORE_PLANNING = 2
MOST_PLANS = 12


def is_worth_watching(guards: Iterable[Guard]) -> bool:
    """Whether enough guards read through containers for words to be faster."""
    through = (DictItemSource, InstanceDictSource, AttrSource)
    return sum(isinstance(guard.source, through) for guard in guards) >= WORTH_A_GROUP


@attrs.define(eq=False)
class Binding:
    """What one root object's words were when all guards held, and the values the generated code takes from there."""

    places: Any
    expected: bytes
    values: tuple[object, ...]
    batches: tuple[tuple[object, ...], ...]
    loads: tuple[tuple[object, ...], ...]
    inline: tuple[tuple[Source, object], ...]
    origins: tuple[object, ...]
    held: tuple[object, ...]
    root: Any = None


@attrs.define(eq=False)
class Watch:
    """The bindings of one group: a few root objects, forgotten with them; captured objects have one binding."""

    group: Group
    reader: Reader
    bindings: dict[int, Binding] = attrs.field(factory=dict)
    exports: list[Source] = attrs.field(factory=list)
    batches: list[tuple[Source, ...]] = attrs.field(factory=list)
    loads: list[tuple[Source, ...]] = attrs.field(factory=list)

    def root_of(self, state: State) -> Any:
        return None if self.group.root is None else self.group.root.evaluate(state)

    def current(self, state: State) -> Binding | None:
        return self.bindings.get(self.key(self.root_of(state)))

    def key(self, root: object) -> int:
        return 0 if self.group.root is None else id(root)

    def changed(self, binding: Binding, root: object) -> list[object]:
        """The sources whose words or inline values are no longer what they were."""
        now = self.reader.read(binding.places)
        old = binding.expected
        words = [origin for i, origin in enumerate(binding.origins) if now[8 * i : 8 * i + 8] != old[8 * i : 8 * i + 8]]
        if words or not binding.inline:
            return words
        values = {} if (found := gather(self.group, root)) is None else found[1]
        return [source for source, value in binding.inline if values.get(source) is not value]

    def bind(self, state: State, still_holds: Callable[[], bool]) -> bool:
        """Read the words of the root in `state`. Done twice around a walk, so that no change slips in between."""
        root = self.root_of(state)
        found = gather(self.group, root) if root is None or can_be_root(root) else None
        if found is None:
            return False
        cells, values = found
        places = self.reader.places_of(list(cells.origins))
        expected = self.reader.read(places)
        again = gather(self.group, root)
        same = again is not None and list(again[0].origins) == list(cells.origins)
        same = same and again is not None and all(_is_same(again[1][source], old) for source, old in values.items())
        if not (same and still_holds() and self.reader.read(places) == expected):
            return False
        self._keep(root, self._binding(cells, values, places, expected))
        return True

    def _binding(self, cells: Any, values: dict[Source, Any], places: Any, expected: bytes) -> Binding:
        return Binding(
            places,
            expected,
            tuple(values[source] for source in self.exports),
            tuple(tuple(values[source] for source in batch) for batch in self.batches),
            tuple(tuple(values[source] for source in sources) for sources in self.loads),
            tuple((source, values[source]) for source in self.group.inline),
            tuple(cells.origins.values()),
            tuple(cells.held),
        )

    def server(self, loads: Loads, root: ParameterSource) -> Callable[..., tuple[object, ...] | None]:
        """Give the values for the root in a state, as they were when the words were last compared."""
        bindings, place, parameter = self.bindings, len(self.loads), loads.parameters.index(root.parameter)
        self.loads.append(loads.sources)

        def served(*state: object) -> tuple[object, ...] | None:
            binding = bindings.get(id(state[parameter]))
            return None if binding is None else binding.loads[place]

        return served

    def _keep(self, root: Any, binding: Binding) -> None:
        key, bindings = self.key(root), self.bindings
        if key:
            # called before the address can belong to another object
            binding.root = weakref.ref(root, lambda _: bindings.pop(key, None) and None)
        bindings.pop(key, None)
        bindings[key] = binding
        for oldest in [*bindings][:-KEPT_ROOTS]:
            bindings.pop(oldest, None)


def _is_same(new: object, old: object) -> bool:
    """Whether a value is the one it was; the proxy of a class dict is made anew for each who asks."""
    return new is old or (type(new) is MappingProxyType and gc.get_referents(new) == gc.get_referents(old))


@attrs.define(eq=False)
class Watching:
    """The life of one predicate: walk, count, plan, watch, and walk for good when too much keeps changing."""

    walk: Walk
    guards: Sequence[Guard]
    layout: Layout
    install: Callable[[Watching, Plan | None], None]
    loads: list[Loads] = attrs.field(factory=list)
    watches: list[Watch] = attrs.field(factory=list)
    hits: int = 0
    plans: int = 0
    loose: frozenset[Source] = frozenset()
    changes: dict[object, tuple[int, float]] = attrs.field(factory=dict)
    lock: Any = attrs.field(factory=threading.Lock)

    def first(self, *state: object) -> bool:
        """The predicate until a plan is made."""
        holds = self.walk(*state)
        if holds and self.plans == 0:
            self.hits += 1
            if self.hits > HITS_BEFORE_PLANNING:
                self._alone(self._plan, state)
        return holds

    def renew(self, *state: object) -> bool:
        """What a watched predicate does when a word differs: walk, and bind afresh if that holds."""
        if holds := self.walk(*state):
            self._alone(self._renew, state)
            self._let_go_of_stale(state)
        return holds

    def _let_go_of_stale(self, values: Sequence[object]) -> None:
        """Hand nothing over that this walk did not see: what was not bound afresh is of the past."""
        state = self.walk.state(values)
        for watch in self.watches:
            binding = watch.current(state) if watch.loads else None
            if binding is not None and watch.changed(binding, watch.root_of(state)):
                watch.bindings.pop(watch.key(watch.root_of(state)), None)

    def _serve(self, plan: Plan) -> None:
        """Hand over what is pinned below one parameter."""
        watches = {watch.group: watch for watch in self.watches}
        for loads in self.loads:
            groups = [plan.group_of.get(source) for source in loads.sources]
            root = None if (first := groups[0]) is None else first.root
            if first is None or not isinstance(root, ParameterSource) or root in loads.sources:
                continue
            if all(group is first for group in groups):
                loads.served = watches[first].server(loads, root)

    def _alone(self, step: Callable[[Sequence[object]], None], values: Sequence[object]) -> None:
        """Do `step` unless a thread does one already: it is only a matter of speed."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            step(values)
        except CANNOT_READ:
            pass  # another thread changed the state since it was walked; a later call tries again
        finally:
            self.lock.release()

    def _renew(self, values: Sequence[object]) -> None:
        state = self.walk.state(values)
        loose: set[Any] = set()
        failing = False
        for watch in self.watches:
            root, binding = watch.group.root, watch.current(state)
            changed = [] if binding is None else watch.changed(binding, watch.root_of(state))
            loose |= {source for source in changed if self._is_churning(source, CHANGES_TO_BE_LOOSE)}
            if binding is None and root is not None and self._is_churning(("root", root), ROOTS_TO_BE_LOOSE):
                loose.add(root)
            if (binding is None or changed) and not watch.bind(state, lambda: self.walk(*values)):
                failing = failing or self._is_churning(watch, CHANGES_TO_BE_LOOSE)
        if loose or failing:
            self.loose |= loose
            self._plan(values)

    def _is_churning(self, what: object, limit: int) -> bool:
        """Count a change; whether there were `limit` of them, each soon after the one before."""
        count, last = self.changes.get(what, (0, 0.0))
        now = time.monotonic()
        count = count + 1 if now - last < SOON else 1
        self.changes[what] = (count, now)
        return count >= limit

    def _plan(self, values: Sequence[object]) -> None:
        state = self.walk.state(values)
        plan = make_plan(self.guards, state, self.layout, self.loose) if self.plans < MOST_PLANS else None
        self.plans += 1
        for watch in self.watches:
            watch.bindings.clear()  # code that still refers to them finds nothing, and nothing is kept alive
        groups = [] if plan is None else plan.groups
        self.watches = [Watch(group, reader(len(group.cells.origins))) for group in groups]
        self.changes.clear()
        for loads in self.loads:
            loads.served = None
        if plan is not None:
            self._serve(plan)
        self.install(self, plan if self.watches else None)
        for watch in self.watches:
            watch.group.cells.let_go()
            watch.bind(state, lambda: self.walk(*values))
