"""The bindings of one group: for each root object the words that prove its facts, and the values
pinned below it.

A call compares the words of its root's binding. Where one differs, `Watch.renew` checks only the
facts that stand on it; for a root object without a binding, or when more than a leaf has changed,
it checks all facts of this group. Other groups are not concerned.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from attrs import Factory, define

from stator_guards._cells import Cells, Words
from stator_guards._equal_words import RootFact
from stator_guards._guard import CANNOT_READ, Guard
from stator_guards._loads import Loads
from stator_guards._memory import WORD, ObjectLayout, WordReader
from stator_guards._part_source import PartSource
from stator_guards._plan import Group, can_be_root
from stator_guards._recording import holds_on, is_same, read, stays
from stator_guards._root_template import OtherStructure, RootTemplate, template_of
from stator_guards._source import ParameterSource, Source, State

KEPT_ROOTS = 128
_STRETCH = 32 * WORD
MOST_MISMATCHES = 3
"""Root objects of other structure after which no template is used."""


@define(eq=False)
class Binding:
    """The words of one root object as they were when all guards held, and the values that generated
    code takes."""

    words: Words
    places: Any
    expected: bytes
    values: tuple[object, ...]
    batches: tuple[tuple[object, ...], ...]
    loads: tuple[tuple[object, ...], ...]
    kept: tuple[object, ...]
    """Values of functions of pinned values."""
    pinned: dict[Source, Any]
    """All pinned values, without the root: it must not be kept alive."""
    root: Any = None


class Unwatched(Exception):
    """The facts of a group hold for a root object, but no words prove them."""


class Restructured(Exception):
    """More than leaves has changed: the facts of the group stand on other words now."""


@define(eq=False, slots=False)
class Watch:
    """The bindings of one group by the id of the root, forgotten with it; captured objects have one
    binding."""

    group: Group
    layout: ObjectLayout
    reader: WordReader
    parameters: tuple[str, ...]
    on_change: Callable[[Watch, Sequence[Source], State], None]
    """Called after a renewal, with the containers that changed (none: the root is new) and the
    state."""
    bindings: dict[int, Binding] = Factory(dict)
    exports: list[Source] = Factory(list)
    batches: list[tuple[Source, ...]] = Factory(list)
    loads: list[tuple[Source, ...]] = Factory(list)
    kept: list[tuple[Callable[..., object], tuple[Source, ...]]] = Factory(list)
    died: int = 0
    """The number of root objects that died while they had a binding."""
    failed: int = 0
    """The number of root objects that could not be bound."""
    passing: bool = False
    """True if a root object is bound only when it is seen twice in a row, since most are soon
    replaced."""
    template: RootTemplate | None = None
    """The words of one root object, from which those of others are found."""
    mismatches: int = 0
    """The number of root objects that had other words than the template gave."""
    _seen: Any = None

    def key(self, root: object) -> int:
        return 0 if self.group.root is None else id(root)

    def renew(self, root: object, values: Sequence[object]) -> Binding | None:
        """A binding for `root` as it is now; None when a guard of the group does not hold."""
        state = dict(zip(self.parameters, values, strict=True))
        key = self.key(root)
        old = self.bindings.get(key)
        changed: list[Source] = []

        try:
            if old is not None:
                now = self.reader.read(old.places)
                differing = _differing(now, old.expected)
                found = self._patched(old, now, differing, root, state)
                changed = [] if found is None else self._changed(old, differing, root, state)
            elif self._passes(root):
                return self._transient(root, state)
            else:
                found = self.bind(root, state)
        except Unwatched:
            self.failed += 1
            self.bindings.pop(key, None)
            found = self._transient(root, state)

        if found is not None and (changed or old is None):  # otherwise another thread was faster
            self.on_change(self, changed, state)
        return found

    def _changed(
        self, binding: Binding, differing: Sequence[int], root: object, state: State
    ) -> list[Source]:
        """The containers whose words are no longer what they were, and the inline sources with
        another value."""
        origins = [_origin(binding.words.facts[i][0]) for i in differing]
        try:
            other = self._changed_inline(binding, root, state)
        except CANNOT_READ:
            other = []
        return [*filter(None, origins), *other]

    def _changed_inline(self, binding: Binding, root: object, state: State) -> list[Source]:
        """The inline sources with another value than the binding has."""
        values = self._with_root(binding.pinned, root) if self.group.inline else {}
        return [
            source
            for source in self.group.inline
            if read(source, values, state) is not values[source]
        ]

    def _is_current(self, binding: Binding, root: object) -> bool:
        """Return True if nothing that a call compares has changed since the binding was made."""
        if self.reader.read(binding.places) != binding.expected:
            return False
        try:
            return not self._changed_inline(binding, root, {})
        except CANNOT_READ:
            return False

    def _passes(self, root: object) -> bool:
        """Return whether a new root object is not worth a binding yet, because others are soon
        replaced."""
        if not self.passing:
            return False
        again = self._seen is not None and self._seen() is root
        self._seen = weakref.ref(root) if can_be_root(root) else None
        return not again

    def _with_root(self, pinned: dict[Source, Any], root: object) -> dict[Source, Any]:
        return pinned if self.group.root is None else {**pinned, self.group.root: root}

    # -- all facts of the group --------------------------------------------------------------------
    def bind(self, root: object, state: State) -> Binding | None:
        """Check all facts, record their words and keep the binding. Raises Unwatched."""
        template = self._template_for(root)
        if template is None:
            return self._worked_out(root, state)
        try:
            return self._bound_like(template, root, state)
        except OtherStructure:
            self.template = None
            self.mismatches += 1
            return self._worked_out(root, state)

    def _template_for(self, root: object) -> RootTemplate | None:
        """The template of another root object, made when a second one is bound."""
        if self.group.root is None or self.mismatches >= MOST_MISMATCHES or not can_be_root(root):
            return None
        if self.template is None:
            for binding in reversed([*self.bindings.values()]):
                other = None if binding.root is None else binding.root()
                if other is not None and other is not root and self._is_current(binding, other):
                    self.template = self._made_template(binding, other)
                    break
        return self.template

    def _made_template(self, binding: Binding, root: object) -> RootTemplate | None:
        """Make a template of all words, those of equal facts among them."""
        steps = self.group.single_steps
        try:
            read = steps.values({}, root)
        except CANNOT_READ:
            return None
        made = template_of(
            steps,
            self.layout,
            binding.words,
            binding.expected,
            dict(zip(steps.places, read[1:], strict=True)),
            root,
        )
        self.mismatches += made is None
        return made

    def _bound_like(self, template: RootTemplate, root: object, state: State) -> Binding | None:
        found = template.bind(root, state, self.reader)
        if found is None:
            return None
        places = template.steps.places
        values = {source: found.values[places[source]] for source in self.group.steps.places}
        values.pop(self.group.root, None)  # type: ignore[arg-type]
        binding = self._binding(found.words, found.places, found.expected, values)
        self._store(root, binding)
        return binding

    def _worked_out(self, root: object, state: State) -> Binding | None:
        """Find the words of each fact."""
        values = self.group.values(state, root)
        if values is None:
            return None
        try:
            cells = (
                self.group.cells(self.layout, values, state)
                if root is None or can_be_root(root)
                else None
            )
        except CANNOT_READ:
            cells = None  # another thread changed something meanwhile
        if cells is None:
            raise Unwatched
        return self.keep(root, cells, values)

    def keep(self, root: object, cells: Cells, values: dict[Source, Any]) -> Binding:
        """Keep a binding of facts that were checked while `cells` recorded their words. Raises
        Unwatched."""
        places = self.reader.places_of([*cells.words])
        expected = self.reader.read(places)
        if expected != b"".join(value.to_bytes(WORD, "little") for value in cells.words.values()):
            raise Unwatched  # another thread changed something meanwhile
        values.pop(self.group.root, None)  # type: ignore[arg-type]
        binding = self._binding(Words.of(cells, root), places, expected, values)
        self._store(root, binding)
        return binding

    def _binding(
        self, words: Words, places: object, expected: bytes, values: dict[Source, Any]
    ) -> Binding:
        return Binding(
            words,
            places,
            expected,
            tuple([values[source] for source in self.exports]),
            tuple([tuple([values[source] for source in batch]) for batch in self.batches]),
            tuple([tuple([values[source] for source in sources]) for sources in self.loads]),
            tuple([fn(*[values[source] for source in sources]) for fn, sources in self.kept]),
            values,
        )

    def _transient(self, root: object, state: State) -> Binding | None:
        """The values of a root object for this call only."""
        values = self.group.values(state, root)
        if values is None:
            return None
        values.pop(self.group.root, None)  # type: ignore[arg-type]
        return self._binding(Words({}, [], {}, {}), None, b"", values)

    def _store(self, root: object, binding: Binding) -> None:
        key, bindings = self.key(root), self.bindings
        if key:
            binding.root = weakref.ref(root, self._forgetter(key))
        bindings.pop(key, None)
        bindings[key] = binding
        for oldest in [*bindings][:-KEPT_ROOTS]:
            bindings.pop(oldest, None)

    def _forgetter(self, key: int) -> Callable[[Any], None]:
        """Drop a root object before its address can belong to another one."""
        owner = weakref.ref(self)

        def forget(_: object) -> None:
            if (watch := owner()) is not None and watch.bindings.pop(key, None) is not None:
                watch.died += 1

        return forget

    def adopt(self, other: Watch, removed: frozenset[int]) -> None:
        """Take over the bindings of the group that this one was made from, without the facts with
        these ids.

        Those that are not current are left out: the call that is under way may take values from
        here, but compares words with the bindings of `other`.
        """
        for binding in [*other.bindings.values()]:
            root = None if binding.root is None else binding.root()
            is_alive = binding.root is None or root is not None
            if is_alive and other._is_current(binding, root):
                self._store(root, self._taken_over(binding, removed))

    def _taken_over(self, old: Binding, removed: frozenset[int]) -> Binding:
        words, expected, values = old.words, old.expected, old.pinned
        if removed:
            words = words.without(removed)
            places = [old.words.indices[address] * WORD for address in words.indices]
            expected = b"".join([expected[place : place + WORD] for place in places])
            values = {source: values[source] for source in self.group.pinned}
        return self._binding(words, self.reader.places_of([*words.indices]), expected, values)

    # -- what stands on changed words --------------------------------------------------------------
    def _patched(
        self, old: Binding, now: bytes, differing: Sequence[int], root: object, state: State
    ) -> Binding | None:
        """Check what stands on changed words and keep the rest, which `now` proves; otherwise check
        everything.

        `now` was read before anything is checked, so a later change makes another difference.
        """
        values = dict(self._with_root(old.pinned, root))
        facts = {fact: None for i in differing for fact in old.words.facts[i]}
        try:
            if not self._check_again([*facts], old, now, values, state):
                return None
        except (Restructured, OtherStructure, *CANNOT_READ):
            return self.bind(root, state)
        values.pop(self.group.root, None)  # type: ignore[arg-type]
        made = self._binding(old.words, old.places, now, values)
        self._store(root, made)
        return made

    def _check_again(
        self,
        facts: Sequence[object],
        old: Binding,
        now: bytes,
        values: dict[Source, Any],
        state: State,
    ) -> bool:
        """Read sources again into `values` and check guards. Raises Restructured, and
        OtherStructure."""
        sources = [
            fact for fact in facts if isinstance(fact, Source) and fact not in self.group.inline
        ]
        guards = [fact for fact in facts if isinstance(fact, Guard)]
        of_roots = [fact for fact in facts if isinstance(fact, RootFact)]
        # wholes first: a part of one that was replaced is not read
        for source in sorted([*sources, *self.group.inline], key=self._is_leaf):
            if self._is_replaced(source, old, values, state):
                about = self._guards_on.get(source, [])
                alone = [guard.kind for guard in about if not guard.kind.others]
                if not all(kind.holds(values[source], state) for kind in alone):
                    return False
                guards += about

        for guard in guards:
            if not guard.kind.holds(values[guard.source], state):  # type: ignore[index]
                return False

        for fact in of_roots:
            equal = self.group.equal[fact.guard]
            if not equal.still_hold(fact, values, state, old.words, now):
                return False

        cells = Cells(self.layout)
        watched = all(stays(source, values, cells) for source in sources)
        if not watched or not all(holds_on(guard, values, state, cells) for guard in guards):
            raise Restructured
        if not old.words.matches(cells, now):
            raise Restructured
        return True

    def _is_replaced(
        self, source: Source, old: Binding, values: dict[Source, Any], state: State
    ) -> bool:
        """Read a source again; return whether its value is another object."""
        before = values[source]
        values[source] = read(source, values, state)
        if is_same(values[source], before):
            return False
        # words may hold None, for another source
        if not self._is_leaf(source) or (before is not None and old.words.holds(before)):
            raise Restructured
        return True

    def _is_leaf(self, source: Source) -> bool:
        return source not in self._wholes

    @cached_property
    def _wholes(self) -> set[Source]:
        """The sources that others are a part of."""
        return {source.whole for source in self.group.pinned if isinstance(source, PartSource)}

    @cached_property
    def _guards_on(self) -> dict[Source, list[Guard]]:
        """The covered guards by the sources that they are about."""
        found: dict[Source, list[Guard]] = {}
        for guard in self.group.covered:
            for source in guard.sources:
                found.setdefault(source, []).append(guard)
        return found

    # -- values for the entry ----------------------------------------------------------------------
    def server(
        self, loads: Loads, pinned: Sequence[Source]
    ) -> Callable[..., tuple[object, ...] | None]:
        """Give the values for the root in a state, as they were when the words were last
        compared.

        `pinned`: for each source what is pinned of it, itself or something that it is a part of.
        """
        bindings, place, root = self.bindings, len(self.loads), self.group.root
        self.loads.append(tuple(dict.fromkeys(pinned)))
        if tuple(pinned) != loads.sources or not isinstance(root, ParameterSource | None):
            return loads.serving(self.loads[place], bindings, place, root)

        parameter = None if root is None else loads.parameters.index(root.parameter)

        def served(*state: object) -> tuple[object, ...] | None:
            binding = bindings.get(0 if parameter is None else id(state[parameter]))
            return None if binding is None else binding.loads[place]

        return served


def _differing(now: bytes, before: bytes) -> list[int]:
    """The indices of the words that differ."""
    found: list[int] = []
    for start in range(0, len(now), _STRETCH):
        one, other = now[start : start + _STRETCH], before[start : start + _STRETCH]
        if one != other:
            pairs = zip(memoryview(one).cast("Q"), memoryview(other).cast("Q"), strict=True)
            found += [i for i, (new, old) in enumerate(pairs, start // WORD) if new != old]
    return found


def _origin(fact: object) -> Source | None:
    """The container to blame for a change of the word that a fact stands on."""
    if isinstance(fact, RootFact):
        return fact.root
    return (
        fact.source if isinstance(fact, Guard) else fact.base if isinstance(fact, Source) else None
    )
