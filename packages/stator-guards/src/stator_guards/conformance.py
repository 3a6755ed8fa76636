"""Tests for every guard compiler: derive from `GuardCompilerKit` and `WatchKit`, and override
`compile_guards`.

Each case is a set of guards with a state in which they hold, a change that breaks exactly one fact
they rely on, and an unrelated change. Needs pytest (the extra `conformance`); nothing
imports this module.
"""

import gc
import linecache
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from stator_bytecode.conformance import Conformance

from stator_guards import (
    AttrSource,
    CapturedSource,
    DictItemSource,
    Equals,
    Guard,
    GuardSet,
    Is,
    IsNone,
    ItemSource,
    ParameterSource,
    Source,
    Truth,
    TypeIs,
)
from stator_guards._guard_cases import A, B, Case, OtherThing, Thing, attribute_of, cases
from stator_guards._mutations import Mutation, mutations
from stator_guards.errors import InvalidUse

__all__ = ["Case", "CompileGuards", "Conformance", "GuardCompilerKit"]
__all__ += ["Mutation", "Scene", "WatchKit", "cases", "mutations"]

CompileGuards = Callable[[Sequence[Guard], Sequence[str]], GuardSet]


class GuardCompilerKit(Conformance):
    """Tests of `compile_guards(guards, parameters)`."""

    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        raise NotImplementedError("override with the guard compiler under test")

    @pytest.fixture(params=sorted(cases()))
    def case(self, request: pytest.FixtureRequest) -> Case:
        return cases()[request.param]

    def test_guards_hold_where_they_were_made(
        self, compile_guards: CompileGuards, case: Case
    ) -> None:
        guard_set = compile_guards(case.guards, ["a", "b"])
        assert guard_set.check(*case.state)
        assert guard_set.mirror(*case.state)
        assert guard_set.explain(*case.state) == []

    def test_a_broken_fact_misses_and_is_explained(
        self, compile_guards: CompileGuards, case: Case
    ) -> None:
        guard_set = compile_guards(case.guards, ["a", "b"])
        assert guard_set.check(*case.state)
        case.break_fact(case.state)
        assert not guard_set.check(*case.state)
        assert not guard_set.mirror(*case.state)
        (failure,) = guard_set.explain(*case.state)
        assert failure.guard in case.guards
        assert all((failure.needed, failure.found, failure.fix))
        assert failure.needed != failure.found

    def test_an_unrelated_change_hits(self, compile_guards: CompileGuards, case: Case) -> None:
        guard_set = compile_guards(case.guards, ["a", "b"])
        case.change_else(case.state)
        assert guard_set.check(*case.state)
        assert guard_set.mirror(*case.state)

    def test_a_broken_fact_misses_after_many_hits(
        self, compile_guards: CompileGuards, case: Case
    ) -> None:
        guard_set = compile_guards(case.guards, ["a", "b"])
        for _ in range(6):
            assert guard_set.check(*case.state)
        case.change_else(case.state)
        assert guard_set.check(*case.state)
        case.break_fact(case.state)
        assert not guard_set.check(*case.state)

    def test_an_unreadable_state_is_a_miss(self, compile_guards: CompileGuards) -> None:
        guards = [
            Guard(DictItemSource(AttrSource(A, "x"), "y"), Equals(1)),
            Guard(ItemSource(B, 3), IsNone()),
        ]
        guard_set = compile_guards(guards, ["a", "b"])
        for state in [(1, 2), (Thing(x={}), []), (Thing(x=3), None), (Thing(x={"y": 1}), {})]:
            assert not guard_set.check(*state)
            assert not guard_set.mirror(*state)
            assert guard_set.explain(*state)

    def test_a_dead_object_matches_nothing(self, compile_guards: CompileGuards) -> None:
        thing: Thing | None = Thing()
        guard_set = compile_guards([Guard(A, Is(thing))], ["a"])
        assert guard_set.check(thing)
        assert not guard_set.is_gone
        thing = None
        gc.collect()
        others = [Thing() for _ in range(100)]
        assert not any(map(guard_set.check, [*others, None]))
        assert not any(map(guard_set.mirror, [*others, None]))
        assert guard_set.is_gone
        assert guard_set.explain(None)

    def test_parents_are_tested_before_what_is_read_from_them(
        self, compile_guards: CompileGuards
    ) -> None:
        class Exploding:
            @property
            def x(self) -> int:
                raise AssertionError("read although the type guard failed")

        guards = [Guard(AttrSource(A, "x"), Equals(1)), Guard(A, TypeIs(Thing))]
        assert not compile_guards(guards, ["a"]).check(Exploding())

    def test_no_guards_always_hold(self, compile_guards: CompileGuards) -> None:
        assert compile_guards([], []).check()
        assert compile_guards([], ["a"]).check(1)

    def test_the_source_is_what_debuggers_show(self, compile_guards: CompileGuards) -> None:
        guard_set = compile_guards([Guard(A, Equals(1))], ["a"])
        compile(guard_set.source, "source", "exec")
        assert "".join(linecache.getlines(guard_set.filename)) == guard_set.source

    def test_names_never_clash(self, compile_guards: CompileGuards) -> None:
        names = ["type", "len", "check", "id", "Thing", "class_"]
        guards = [Guard(ParameterSource(name), TypeIs(Thing)) for name in names]
        guards += [
            Guard(attribute_of(ParameterSource(name), "class"), Equals((1, 2))) for name in names
        ]
        attribute = {"class": (1, 2)}  # which is a keyword of Python
        things = [Thing(**attribute) for _ in names]
        guard_set = compile_guards(guards, names)
        assert guard_set.check(*things)
        things[2].__dict__["class"] = (1, 3)
        assert not guard_set.check(*things)

    def test_parameters_must_be_names(self, compile_guards: CompileGuards) -> None:
        with pytest.raises(InvalidUse):
            compile_guards([], ["not a name"])

    def test_watched_structure_is_seen_to_change(self, compile_guards: CompileGuards) -> None:
        root = Thing(parts={str(i): Thing(flag=True, hooks={}) for i in range(10)})
        guards = []
        for key in root.__dict__["parts"]:
            part = DictItemSource(attribute_of(A, "parts"), key)
            guards += [Guard(part, TypeIs(Thing)), Guard(attribute_of(part, "flag"), Equals(True))]
            guards.append(Guard(attribute_of(part, "hooks"), Truth(False)))
        guard_set = compile_guards(guards, ["a"])
        assert all(guard_set.check(root) for _ in range(6))
        for change, undo in _structure_changes(root):
            change()
            assert not guard_set.check(root)
            assert guard_set.explain(root)
            undo()
            assert all(guard_set.check(root) for _ in range(3))


def _structure_changes(root: Any) -> list[tuple[Callable[[], object], Callable[[], object]]]:
    part, parts, flags = root.parts["3"], root.parts, root.parts["3"].__dict__

    return [
        (lambda: setattr(part, "flag", 1), lambda: setattr(part, "flag", True)),
        (lambda: part.hooks.update(a=1), part.hooks.clear),
        (
            lambda: setattr(part, "__class__", OtherThing),
            lambda: setattr(part, "__class__", Thing),
        ),
        (
            lambda: setattr(part, "__dict__", {**flags, "flag": 0}),
            lambda: setattr(part, "__dict__", flags),
        ),
        (lambda: parts.update({"3": Thing(flag=0, hooks={})}), lambda: parts.update({"3": part})),
        (lambda: setattr(root, "parts", {}), lambda: setattr(root, "parts", parts)),
        (lambda: part.__dict__.pop("flag"), lambda: part.__dict__.update(flag=True)),
    ]


@attrs.define(eq=False)
class Scene:
    """A mutation whose subject hangs off a large object, with the predicate over both."""

    mutation: Mutation
    root: Any
    subject: Any
    guard_set: GuardSet
    state: tuple[object, ...]


class WatchKit(Conformance):
    """Tests of `compile_guards(guards, parameters)` that remembers what it has read: every change
    must be detected."""

    MUTATIONS: ClassVar = mutations()

    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        raise NotImplementedError("override with the guard compiler under test")

    @pytest.fixture(params=["parameter", "captured"])
    def starts_at(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(params=sorted(MUTATIONS))
    def scene(
        self, request: pytest.FixtureRequest, compile_guards: CompileGuards, starts_at: str
    ) -> Scene:
        mutation: Mutation = self.MUTATIONS[request.param]
        subject = mutation.make()
        root, is_captured = _large(subject), starts_at == "captured"
        source = CapturedSource("root", root) if is_captured else A
        guards = [
            *_guards_on_parts(source),
            *mutation.guards(attribute_of(source, "subject"), subject),
        ]
        guard_set = compile_guards(guards, [] if is_captured else ["a"])
        state = () if is_captured else (root,)
        assert all(guard_set.check(*state) for _ in range(4))
        return Scene(mutation, root, subject, guard_set, state)

    def test_the_next_call_detects_a_mutation(self, scene: Scene) -> None:
        scene.mutation.change(scene.subject)
        assert not scene.guard_set.check(*scene.state)
        assert scene.guard_set.explain(*scene.state)
        scene.mutation.undo(scene.subject)
        assert scene.guard_set.check(*scene.state)

    def test_a_mutation_by_another_thread_is_detected(self, scene: Scene) -> None:
        for step, holds in ((scene.mutation.change, False), (scene.mutation.undo, True)):
            thread = threading.Thread(target=step, args=(scene.subject,))
            thread.start()
            thread.join()
            assert scene.guard_set.check(*scene.state) is holds

    def test_mutations_are_detected_again_and_again(self, scene: Scene) -> None:
        for _ in range(25):
            scene.mutation.change(scene.subject)
            assert not scene.guard_set.check(*scene.state)
            scene.mutation.undo(scene.subject)
            assert scene.guard_set.check(*scene.state)

    def test_a_mutation_between_changes_that_do_not_matter_is_detected(self, scene: Scene) -> None:
        for i in range(8):
            scene.root.count = i
            assert scene.guard_set.check(*scene.state)
        scene.mutation.change(scene.subject)
        assert not scene.guard_set.check(*scene.state)

    def test_the_dict_of_an_instance_stays_the_same_object(
        self, compile_guards: CompileGuards
    ) -> None:
        root = _large(None)
        dicts = [part.__dict__ for part in root.parts.values()]
        guard_set = compile_guards(_guards_on_parts(A), ["a"])
        assert all(guard_set.check(root) for _ in range(4))
        assert all(
            part.__dict__ is before for part, before in zip(root.parts.values(), dicts, strict=True)
        )

    def test_nothing_is_kept_alive_by_a_watch(self, compile_guards: CompileGuards) -> None:
        roots = [_large(None) for _ in range(3)]
        guard_set = compile_guards(_guards_on_parts(A), ["a"])
        assert all(map(guard_set.check, roots * 3))
        alive = [weakref.ref(root) for root in roots]
        parts = [weakref.ref(root.parts["0"]) for root in roots]
        roots.clear()
        gc.collect()
        assert [ref() for ref in (*alive, *parts)] == [None] * 6
        assert guard_set.check(_large(None))

    def test_many_threads_see_no_stale_answer(self, compile_guards: CompileGuards) -> None:
        guard_set = compile_guards(_guards_on_parts(A), ["a"])
        stale: list[int] = []

        def check_own() -> None:
            root = _large(None)
            for i in range(100):
                root.parts["4"].flag = i % 2 == 0
                if guard_set.check(root) is not (i % 2 == 0):
                    stale.append(i)

        threads = [threading.Thread(target=check_own) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stale == []


def _large(subject: object) -> Any:
    """An object with enough parts to be worth a watch."""
    parts = {str(i): Thing(flag=True, hooks={}) for i in range(16)}
    return Thing(parts=parts, subject=subject)


def _guards_on_parts(source: Source) -> list[Guard]:
    guards = [Guard(source, TypeIs(Thing))]
    for i in range(16):
        part = DictItemSource(attribute_of(source, "parts"), str(i))
        guards += [Guard(part, TypeIs(Thing)), Guard(attribute_of(part, "flag"), Equals(True))]
        guards.append(Guard(attribute_of(part, "hooks"), Truth(False)))
    return guards
