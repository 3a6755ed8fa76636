"""Cases for conformance kits of guard compilers: guards, a state in which they hold, a change that
breaks exactly one fact they rely on, and a change that breaks none."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import attrs

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


class Thing:
    """An ordinary object with a class attribute; cases hang whatever they need on it."""

    kind = "thing"

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


class OtherThing(Thing):
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


A, B = ParameterSource("a"), ParameterSource("b")


def attribute_of(source: Source, name: str) -> Source:
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


Cases = dict[str, Case]


def _case(source: Source, kind: Any, a: Any, broken: object, other: object = None) -> Case:
    """A guard whose fact is broken by `broken`: a change of `a`, or `a`'s new value. `other` must
    not matter."""
    break_fact = _on(0, broken) if callable(broken) else _set(0, broken)
    change_else = (
        _set(1, "other") if other is None else _on(0, other) if callable(other) else _set(0, other)
    )
    return Case([Guard(source, kind)], [a, "b"], break_fact, change_else)


def cases() -> dict[str, Case]:
    """Return a case for each kind and each source, with new objects."""
    return {
        **_value_cases(),
        **_container_cases(),
        **_source_cases(),
        **_function_cases(),
        **_relation_cases(),
    }


def _value_cases() -> Cases:
    thing = Thing()

    return {
        "type": _case(A, TypeIs(Thing), Thing(), OtherThing(), Thing()),
        "class assigned": _case(
            A, TypeIs(Thing), Thing(), _sets("__class__", OtherThing), _sets("x", 1)
        ),
        "bool is no int": _case(A, TypeIs(int), 1, True, 2),
        "identity": _case(A, Is(thing), thing, Thing(), _sets("x", 1)),
        "none": _case(A, IsNone(), None, 0),
        "not none": _case(A, IsNotNone(), 0, None, False),
        "int": _case(A, Equals(1), 1, 2),
        "one and True": _case(A, Equals(1), 1, True),
        "one and 1.0": _case(A, Equals(1), 1, 1.0),
        "zero": _case(A, Equals(0.0), 0.0, -0.0),
        "nan": _case(A, Equals(float("nan")), float("nan"), 1.0),
        "negative nan": _case(A, Equals(float("nan")), float("nan"), -float("nan")),
        "complex zero": _case(A, Equals(complex(0.0, -0.0)), complex(0.0, -0.0), 0j),
        "text": _case(A, Equals("a"), "a", "b", "".join(["a"])),
        "bytes": _case(A, Equals(b"a"), b"a", "a"),
        "ellipsis": _case(A, Equals(...), ..., None),
        "slice": _case(A, Equals(slice(1, None)), slice(1, None), slice(True, None)),
        "range": _case(A, Equals(range(0, 3, 2)), range(0, 3, 2), range(0, 4, 2)),
        "nested tuple": _case(A, Equals((1, (0.0, "x"))), (1, (0.0, "x")), (1, (-0.0, "x"))),
        "long tuple": _case(A, Equals((1,) * 20), (1,) * 20, (True,) + (1,) * 19),
        "frozenset": _case(
            A, Equals(frozenset({1, "x"})), frozenset({1, "x"}), frozenset({True, "x"})
        ),
        "true": _case(A, Truth(True), [1], [], [2]),
        "false": _case(A, Truth(False), {}, lambda a: a.update(x=1)),
    }


def _container_cases() -> Cases:
    def ordered() -> OrderedDict[str, int]:
        return OrderedDict(x=1, y=2)

    return {
        "list length": _case(A, Length(2), [1, 2], lambda a: a.append(3), lambda a: a.reverse()),
        "list no longer": _case(
            A, LongerThan(1), [1, 2], lambda a: a.clear(), lambda a: a.append(3)
        ),
        "dict length": _case(A, Length(1), {"x": 1}, lambda a: a.clear(), lambda a: a.update(x=2)),
        "keys": _case(A, KeysAre(("x", "y")), {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 3, "y": 4}),
        "key types": _case(A, KeysAre((1,)), {1: "x"}, {True: "x"}, {1: "y"}),
        "float keys": _case(A, KeysAre((0.0,)), {0.0: "x"}, {-0.0: "x"}, {0.0: "y"}),
        "class keys": _case(A, KeysAre((Thing,)), {Thing: 1}, {OtherThing: 1}, {Thing: 2}),
        "no keys": _case(A, KeysAre(()), {}, {"x": 1}),
        "moved key": _case(
            A,
            KeysAre(("x", "y")),
            ordered(),
            lambda a: a.move_to_end("x"),
            lambda a: a.update(x=5),
        ),
        "key absent": _case(
            A, KeyAbsent("x"), {}, lambda a: a.update(x=1), lambda a: a.update(y=1)
        ),
        "key present": _case(
            A, KeyPresent("x"), {"x": 1}, lambda a: a.pop("x"), lambda a: a.update(x=2)
        ),
        "attribute absent": _case(A, AttrAbsent("x"), Thing(), _sets("x", 1), _sets("y", 1)),
    }


def _source_cases() -> Cases:
    return {
        "attribute": _case(AttrSource(A, "x"), Equals(1), Thing(x=1), _sets("x", 2), _sets("y", 2)),
        "attribute deleted": _case(
            AttrSource(A, "x"), Equals(1), Thing(x=1), lambda a: delattr(a, "x"), _sets("y", 2)
        ),
        "class attribute shadowed": _case(
            AttrSource(A, "kind"), Equals("thing"), Thing(), _sets("kind", "mine")
        ),
        "instance dict": _case(
            attribute_of(A, "x"), Equals(1), Thing(x=1), _updates(x=2), _updates(y=2)
        ),
        "instance dict replaced": _case(
            attribute_of(A, "x"), Equals(1), Thing(x=1), _sets("__dict__", {"x": 3})
        ),
        "item": _case(
            ItemSource(A, 1), Equals(5), [4, 5], lambda a: a.pop(0), lambda a: a.append(1)
        ),
        "item gone": _case(ItemSource(A, 1), Equals(5), [4, 5], lambda a: a.pop()),
        "dict item": _case(DictItemSource(A, (1, "x")), Equals(5), {(1, "x"): 5}, {(1, "x"): 6}),
        "type": _case(TypeSource(A), Is(Thing), Thing(), OtherThing(), Thing()),
        "key": _case(
            KeySource(A, 1), Equals("y"), {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"z": 0, "y": 2}
        ),
        "call": _case(
            CallSource(len, A), Equals(2), [1, 2], lambda a: a.pop(), lambda a: a.reverse()
        ),
        "slot": _slot_case(),
        "captured": _captured_case(),
    }


def _function_cases() -> Cases:
    return {
        "cell": _case(
            ItemSource(CellSource(_part_of(A, "closure")), 0),
            Equals(1),
            _make_function(),
            lambda fn: fn.__closure__[0].cell_contents.insert(0, 7),
            lambda fn: fn.__closure__[0].cell_contents.append(7),
        ),
        "default": _case(
            _part_of(A, "defaults"), Equals(1), _make_function(), _sets("__defaults__", (9,))
        ),
        "keyword default": _case(
            DictItemSource(FunctionPartSource(A, "kwdefaults"), "c"),
            Equals(2),
            _make_function(),
            lambda fn: fn.__kwdefaults__.update(c=9),
        ),
        "code": _code_case(),
    }


def _code_case() -> Case:
    fn, other = _make_function(), _make_function()
    changed = fn.__code__.replace(co_name="changed")
    return _case(
        FunctionPartSource(A, "code"), Is(fn.__code__), fn, _sets("__code__", changed), other
    )


def _slot_case() -> Case:
    slotted = _Slotted()
    slotted.value = 1  # type: ignore[attr-defined]
    return _case(SlotSource(A, _Slotted, "value"), Equals(1), slotted, _sets("value", 2))


def _captured_case() -> Case:
    module = {"x": 1, "y": 1}
    guard = Guard(DictItemSource(CapturedSource("module", module), "x"), Equals(1))
    return Case([guard], [0, 0], lambda state: module.update(x=2), lambda state: module.update(y=2))


def _relation_cases() -> Cases:
    thing = Thing()
    sizes = {"n": CallSource(len, A), "m": CallSource(len, B)}
    shape = ShapeExpression("n + m == total", sizes, {"total": 3})
    return {
        "same object": Case(
            [Guard(A, SameObject(B))], [thing, thing], _set(1, Thing()), _on(0, repr)
        ),
        "two objects": Case([Guard(A, DistinctObject(B))], [thing, 1], _set(1, thing), _set(1, 2)),
        "shape": Case([Guard(None, shape)], [[1], [1, 2]], _set(1, [1]), _set(1, [3, 4])),
        "custom": _case(A, Custom("{fn}({value})", callable), len, 1, print),
    }
