"""Tests for every guard compiler: derive from `GuardCompilerKit` and `WatchKit`, and override
`compile_guards`.

Each case is a set of guards with a state in which they hold, a change that breaks exactly one fact
they rely on, and a change they do not care about. Needs pytest (the extra `conformance`); nothing
imports this module.
"""

import gc
import linecache
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from stator_bytecode.conformance import Conformance

from stator_guards import (
    AttrAbsent,
    AttrSource,
    CallSource,
    CapturedSource,
    CellSource,
    Custom,
    DictItemSource,
    DistinctObject,
    Equals,
    FunctionPartSource,
    Guard,
    GuardSet,
    InstanceDictSource,
    Is,
    IsNone,
    IsNotNone,
    ItemSource,
    KeyAbsent,
    KeyPresent,
    KeysAre,
    KeySource,
    Length,
    LongerThan,
    ParameterSource,
    SameObject,
    ShapeExpression,
    SlotSource,
    Source,
    Truth,
    TypeIs,
    TypeSource,
)
from stator_guards._mutations import Mutation, mutations
from stator_guards.errors import InvalidUse

__all__ = ["Case", "CompileGuards", "Conformance", "GuardCompilerKit"]
__all__ += ["Mutation", "Scene", "WatchKit", "cases", "mutations"]

CompileGuards = Callable[[Sequence[Guard], Sequence[str]], GuardSet]


class _Thing:
    """An ordinary object with a class attribute; cases hang whatever they need on it."""

    kind = "thing"

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


class _OtherThing(_Thing):
    """Another class with the same layout, so that `__class__` can be assigned."""


class _Slotted:
    """An object whose attribute lives in a slot."""

    __slots__ = ("value",)


def _make_function(default: int = 1, *, keyword: int = 2) -> Any:
    captured = [default]

    def fn(a: object, b: object = default, *, c: object = keyword) -> object:
        return (a, b, c, captured)

    return fn


@attrs.define(eq=False)
class Case:
    """Guards on parameters `a` and `b`, a state where they hold, and two changes of that state."""

    guards: list[Guard]
    state: list[Any]
    break_fact: Callable[[list[Any]], object]
    change_else: Callable[[list[Any]], object]


_A, _B = ParameterSource("a"), ParameterSource("b")


def _attribute(source: Source, name: str) -> Source:
    """The source of an instance attribute."""
    return DictItemSource(InstanceDictSource(source), name)


def _part_of(source: Source, part: Any) -> Source:
    """The first of the closure's cells, or of the defaults, of a function."""
    return ItemSource(FunctionPartSource(source, part), 0)


def _sets(name: str, value: object) -> Callable[[Any], None]:
    return lambda a: setattr(a, name, value)


def _updates(**attributes: object) -> Callable[[Any], None]:
    return lambda a: a.__dict__.update(attributes)


def _set(index: int, value: object) -> Callable[[list[Any]], None]:
    return lambda state: state.__setitem__(index, value)


def _on(index: int, change: Callable[[Any], object]) -> Callable[[list[Any]], object]:
    return lambda state: change(state[index])


def _case(source: Source, kind: Any, a: Any, broken: object, other: object = None) -> Case:
    """A guard whose fact is broken by `broken`: a change of `a`, or `a`'s new value. `other` must
    not matter."""
    break_fact = _on(0, broken) if callable(broken) else _set(0, broken)
    change_else = (
        _set(1, "other") if other is None else _on(0, other) if callable(other) else _set(0, other)
    )
    return Case([Guard(source, kind)], [a, "b"], break_fact, change_else)


def cases() -> dict[str, Callable[[], Case]]:
    """Each kind and each source, made afresh on every call of the value."""
    return {**_value_cases(), **_container_cases(), **_source_cases(), **_relation_cases()}


def _value_cases() -> dict[str, Callable[[], Case]]:
    thing = _Thing()
    return {
        "type": lambda: _case(_A, TypeIs(_Thing), _Thing(), _OtherThing(), _Thing()),
        "class assigned": lambda: _case(
            _A, TypeIs(_Thing), _Thing(), _sets("__class__", _OtherThing), _sets("x", 1)
        ),
        "bool is no int": lambda: _case(_A, TypeIs(int), 1, True, 2),
        "identity": lambda: _case(_A, Is(thing), thing, _Thing(), _sets("x", 1)),
        "none": lambda: _case(_A, IsNone(), None, 0),
        "not none": lambda: _case(_A, IsNotNone(), 0, None, False),
        "int": lambda: _case(_A, Equals(1), 1, 2),
        "one and True": lambda: _case(_A, Equals(1), 1, True),
        "one and 1.0": lambda: _case(_A, Equals(1), 1, 1.0),
        "zero": lambda: _case(_A, Equals(0.0), 0.0, -0.0),
        "nan": lambda: _case(_A, Equals(float("nan")), float("nan"), 1.0),
        "negative nan": lambda: _case(_A, Equals(float("nan")), float("nan"), -float("nan")),
        "complex zero": lambda: _case(_A, Equals(complex(0.0, -0.0)), complex(0.0, -0.0), 0j),
        "text": lambda: _case(_A, Equals("a"), "a", "b", "".join(["a"])),
        "bytes": lambda: _case(_A, Equals(b"a"), b"a", "a"),
        "ellipsis": lambda: _case(_A, Equals(...), ..., None),
        "slice": lambda: _case(_A, Equals(slice(1, None)), slice(1, None), slice(True, None)),
        "range": lambda: _case(_A, Equals(range(0, 3, 2)), range(0, 3, 2), range(0, 4, 2)),
        "nested tuple": lambda: _case(
            _A, Equals((1, (0.0, "x"))), (1, (0.0, "x")), (1, (-0.0, "x"))
        ),
        "long tuple": lambda: _case(_A, Equals((1,) * 20), (1,) * 20, (True,) + (1,) * 19),
        "frozenset": lambda: _case(
            _A, Equals(frozenset({1, "x"})), frozenset({1, "x"}), frozenset({True, "x"})
        ),
        "true": lambda: _case(_A, Truth(True), [1], [], [2]),
        "false": lambda: _case(_A, Truth(False), {}, lambda a: a.update(x=1)),
    }


def _container_cases() -> dict[str, Callable[[], Case]]:
    def ordered() -> OrderedDict[str, int]:
        return OrderedDict(x=1, y=2)

    return {
        "list length": lambda: _case(
            _A, Length(2), [1, 2], lambda a: a.append(3), lambda a: a.reverse()
        ),
        "list no longer": lambda: _case(
            _A, LongerThan(1), [1, 2], lambda a: a.clear(), lambda a: a.append(3)
        ),
        "dict length": lambda: _case(
            _A, Length(1), {"x": 1}, lambda a: a.clear(), lambda a: a.update(x=2)
        ),
        "keys": lambda: _case(
            _A, KeysAre(("x", "y")), {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 3, "y": 4}
        ),
        "key types": lambda: _case(_A, KeysAre((1,)), {1: "x"}, {True: "x"}, {1: "y"}),
        "float keys": lambda: _case(_A, KeysAre((0.0,)), {0.0: "x"}, {-0.0: "x"}, {0.0: "y"}),
        "class keys": lambda: _case(
            _A, KeysAre((_Thing,)), {_Thing: 1}, {_OtherThing: 1}, {_Thing: 2}
        ),
        "no keys": lambda: _case(_A, KeysAre(()), {}, {"x": 1}),
        "moved key": lambda: _case(
            _A,
            KeysAre(("x", "y")),
            ordered(),
            lambda a: a.move_to_end("x"),
            lambda a: a.update(x=5),
        ),
        "key absent": lambda: _case(
            _A, KeyAbsent("x"), {}, lambda a: a.update(x=1), lambda a: a.update(y=1)
        ),
        "key present": lambda: _case(
            _A, KeyPresent("x"), {"x": 1}, lambda a: a.pop("x"), lambda a: a.update(x=2)
        ),
        "attribute absent": lambda: _case(
            _A, AttrAbsent("x"), _Thing(), _sets("x", 1), _sets("y", 1)
        ),
    }


def _source_cases() -> dict[str, Callable[[], Case]]:
    return {
        "attribute": lambda: _case(
            AttrSource(_A, "x"), Equals(1), _Thing(x=1), _sets("x", 2), _sets("y", 2)
        ),
        "attribute deleted": lambda: _case(
            AttrSource(_A, "x"), Equals(1), _Thing(x=1), lambda a: delattr(a, "x"), _sets("y", 2)
        ),
        "class attribute shadowed": lambda: _case(
            AttrSource(_A, "kind"), Equals("thing"), _Thing(), _sets("kind", "mine")
        ),
        "instance dict": lambda: _case(
            _attribute(_A, "x"), Equals(1), _Thing(x=1), _updates(x=2), _updates(y=2)
        ),
        "instance dict replaced": lambda: _case(
            _attribute(_A, "x"), Equals(1), _Thing(x=1), _sets("__dict__", {"x": 3})
        ),
        "item": lambda: _case(
            ItemSource(_A, 1), Equals(5), [4, 5], lambda a: a.pop(0), lambda a: a.append(1)
        ),
        "item gone": lambda: _case(ItemSource(_A, 1), Equals(5), [4, 5], lambda a: a.pop()),
        "dict item": lambda: _case(
            DictItemSource(_A, (1, "x")), Equals(5), {(1, "x"): 5}, {(1, "x"): 6}
        ),
        "type": lambda: _case(TypeSource(_A), Is(_Thing), _Thing(), _OtherThing(), _Thing()),
        "cell": lambda: _case(
            ItemSource(CellSource(_part_of(_A, "closure")), 0),
            Equals(1),
            _make_function(),
            lambda fn: fn.__closure__[0].cell_contents.insert(0, 7),
            lambda fn: fn.__closure__[0].cell_contents.append(7),
        ),
        "default": lambda: _case(
            _part_of(_A, "defaults"), Equals(1), _make_function(), _sets("__defaults__", (9,))
        ),
        "keyword default": lambda: _case(
            DictItemSource(FunctionPartSource(_A, "kwdefaults"), "c"),
            Equals(2),
            _make_function(),
            lambda fn: fn.__kwdefaults__.update(c=9),
        ),
        "code": _code_case,
        "slot": _slot_case,
        "key": lambda: _case(
            KeySource(_A, 1), Equals("y"), {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"z": 0, "y": 2}
        ),
        "call": lambda: _case(
            CallSource(len, _A), Equals(2), [1, 2], lambda a: a.pop(), lambda a: a.reverse()
        ),
        "captured": _captured_case,
    }


def _code_case() -> Case:
    fn, other = _make_function(), _make_function()
    changed = fn.__code__.replace(co_name="changed")
    return _case(
        FunctionPartSource(_A, "code"), Is(fn.__code__), fn, _sets("__code__", changed), other
    )


def _slot_case() -> Case:
    slotted = _Slotted()
    slotted.value = 1  # type: ignore[attr-defined]
    return _case(SlotSource(_A, _Slotted, "value"), Equals(1), slotted, _sets("value", 2))


def _captured_case() -> Case:
    module = {"x": 1, "y": 1}
    guard = Guard(DictItemSource(CapturedSource("module", module), "x"), Equals(1))
    return Case([guard], [0, 0], lambda state: module.update(x=2), lambda state: module.update(y=2))


def _relation_cases() -> dict[str, Callable[[], Case]]:
    thing = _Thing()
    sizes = {"n": CallSource(len, _A), "m": CallSource(len, _B)}
    shape = ShapeExpression("n + m == total", sizes, {"total": 3})
    return {
        "same object": lambda: Case(
            [Guard(_A, SameObject(_B))], [thing, thing], _set(1, _Thing()), _on(0, repr)
        ),
        "two objects": lambda: Case(
            [Guard(_A, DistinctObject(_B))], [thing, 1], _set(1, thing), _set(1, 2)
        ),
        "shape": lambda: Case([Guard(None, shape)], [[1], [1, 2]], _set(1, [1]), _set(1, [3, 4])),
        "custom": lambda: _case(_A, Custom("{fn}({value})", callable), len, 1, print),
    }


class GuardCompilerKit(Conformance):
    """Tests of `compile_guards(guards, parameters)`."""

    CASES: ClassVar = cases()

    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        raise NotImplementedError("override with the guard compiler under test")

    @pytest.fixture(params=sorted(CASES))
    def case(self, request: pytest.FixtureRequest) -> Case:
        made: Case = self.CASES[request.param]()
        return made

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
            Guard(DictItemSource(AttrSource(_A, "x"), "y"), Equals(1)),
            Guard(ItemSource(_B, 3), IsNone()),
        ]
        guard_set = compile_guards(guards, ["a", "b"])
        for state in [(1, 2), (_Thing(x={}), []), (_Thing(x=3), None), (_Thing(x={"y": 1}), {})]:
            assert not guard_set.check(*state)
            assert not guard_set.mirror(*state)
            assert guard_set.explain(*state)

    def test_a_dead_object_matches_nothing(self, compile_guards: CompileGuards) -> None:
        thing: _Thing | None = _Thing()
        guard_set = compile_guards([Guard(_A, Is(thing))], ["a"])
        assert guard_set.check(thing)
        assert not guard_set.is_gone
        thing = None
        gc.collect()
        others = [_Thing() for _ in range(100)]
        assert not any(guard_set.check(other) for other in [*others, None])
        assert not any(guard_set.mirror(other) for other in [*others, None])
        assert guard_set.is_gone
        assert guard_set.explain(None)

    def test_parents_are_tested_before_what_is_read_from_them(
        self, compile_guards: CompileGuards
    ) -> None:
        class Exploding:
            @property
            def x(self) -> int:
                raise AssertionError("read although the type guard failed")

        guards = [Guard(AttrSource(_A, "x"), Equals(1)), Guard(_A, TypeIs(_Thing))]
        assert not compile_guards(guards, ["a"]).check(Exploding())

    def test_no_guards_always_hold(self, compile_guards: CompileGuards) -> None:
        assert compile_guards([], []).check()
        assert compile_guards([], ["a"]).check(1)

    def test_the_source_is_what_debuggers_show(self, compile_guards: CompileGuards) -> None:
        guard_set = compile_guards([Guard(_A, Equals(1))], ["a"])
        compile(guard_set.source, "source", "exec")
        assert "".join(linecache.getlines(guard_set.filename)) == guard_set.source

    def test_names_never_clash(self, compile_guards: CompileGuards) -> None:
        names = ["type", "len", "check", "id", "Thing", "class_"]
        guards = [Guard(ParameterSource(name), TypeIs(_Thing)) for name in names]
        guards += [
            Guard(_attribute(ParameterSource(name), "class"), Equals((1, 2))) for name in names
        ]
        things = [_Thing(**{"class": (1, 2)}) for _ in names]
        guard_set = compile_guards(guards, names)
        assert guard_set.check(*things)
        things[2].__dict__["class"] = (1, 3)
        assert not guard_set.check(*things)

    def test_parameters_must_be_names(self, compile_guards: CompileGuards) -> None:
        with pytest.raises(InvalidUse):
            compile_guards([], ["not a name"])

    def test_watched_structure_is_seen_to_change(self, compile_guards: CompileGuards) -> None:
        root = _Thing(parts={str(i): _Thing(flag=True, hooks={}) for i in range(10)})
        guards = []
        for key in root.__dict__["parts"]:
            part = DictItemSource(_attribute(_A, "parts"), key)
            guards += [Guard(part, TypeIs(_Thing)), Guard(_attribute(part, "flag"), Equals(True))]
            guards.append(Guard(_attribute(part, "hooks"), Truth(False)))
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
            lambda: setattr(part, "__class__", _OtherThing),
            lambda: setattr(part, "__class__", _Thing),
        ),
        (
            lambda: setattr(part, "__dict__", {**flags, "flag": 0}),
            lambda: setattr(part, "__dict__", flags),
        ),
        (lambda: parts.update({"3": _Thing(flag=0, hooks={})}), lambda: parts.update({"3": part})),
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
        source = CapturedSource("root", root) if is_captured else _A
        guards = [
            *_guards_on_parts(source),
            *mutation.guards(_attribute(source, "subject"), subject),
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
        guard_set = compile_guards(_guards_on_parts(_A), ["a"])
        assert all(guard_set.check(root) for _ in range(4))
        assert all(
            part.__dict__ is before for part, before in zip(root.parts.values(), dicts, strict=True)
        )

    def test_nothing_is_kept_alive_by_a_watch(self, compile_guards: CompileGuards) -> None:
        roots = [_large(None) for _ in range(3)]
        guard_set = compile_guards(_guards_on_parts(_A), ["a"])
        assert all(guard_set.check(root) for root in roots * 3)
        alive = [weakref.ref(root) for root in roots]
        parts = [weakref.ref(root.parts["0"]) for root in roots]
        roots.clear()
        gc.collect()
        assert [ref() for ref in (*alive, *parts)] == [None] * 6
        assert guard_set.check(_large(None))

    def test_many_threads_see_no_stale_answer(self, compile_guards: CompileGuards) -> None:
        guard_set = compile_guards(_guards_on_parts(_A), ["a"])
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
    parts = {str(i): _Thing(flag=True, hooks={}) for i in range(16)}
    return _Thing(parts=parts, subject=subject)


def _guards_on_parts(source: Source) -> list[Guard]:
    guards = [Guard(source, TypeIs(_Thing))]
    for i in range(16):
        part = DictItemSource(_attribute(source, "parts"), str(i))
        guards += [Guard(part, TypeIs(_Thing)), Guard(_attribute(part, "flag"), Equals(True))]
        guards.append(Guard(_attribute(part, "hooks"), Truth(False)))
    return guards
