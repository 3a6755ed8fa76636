"""Every way to change a dict, an instance, a class, a module, a function or a cell, which watches
must detect.

Each mutation has a subject with guards that hold, a change after which one of them fails, and its
undoing.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import attrs

from stator_guards._container import AttrAbsent, KeyAbsent, KeysAre
from stator_guards._guard import Guard
from stator_guards._part_source import (
    AttrSource,
    CellSource,
    DictItemSource,
    FunctionPartSource,
    InstanceDictSource,
    ItemSource,
    TypeSource,
)
from stator_guards._source import Source
from stator_guards._value import Equals, Is, IsNone, TypeIs

Change = Callable[[Any], object]
Changes = dict[str, Change]


@attrs.frozen
class Mutation:
    make: Callable[[], Any]
    guards: Callable[[Source, Any], list[Guard]]
    change: Change
    undo: Change


Mutations = dict[str, Mutation]


def mutations() -> dict[str, Mutation]:
    """All of them by name."""
    return {
        **_of_dicts(),
        **_of_instances(),
        **_of_classes(),
        **_of_modules(),
        **_of_functions(),
        **_of_cells(),
    }


# -- dicts -----------------------------------------------------------------------------------------
def _of_dicts() -> Mutations:
    def guards(source: Source, subject: object) -> list[Guard]:
        return [Guard(DictItemSource(source, "x"), Equals(1)), Guard(source, KeysAre(("x", "y")))]

    changes: Changes = {
        "item set": lambda d: d.__setitem__("x", 2),
        "item deleted": lambda d: d.__delitem__("x"),
        "update": lambda d: d.update(x=2),
        "in-place or": lambda d: d.__ior__({"x": 2}),
        "pop": lambda d: d.pop("y"),
        "popitem": lambda d: d.popitem(),
        "clear": lambda d: d.clear(),
        "setdefault": lambda d: d.setdefault("z", 1),
        "unsafe key": lambda d: d.__setitem__(object(), 1),
    }

    def undo(subject: dict[object, int]) -> None:
        subject.clear()
        subject.update(x=1, y=2)

    return {
        f"dict {name}": Mutation(lambda: {"x": 1, "y": 2}, guards, change, undo)
        for name, change in changes.items()
    }


# -- instances -------------------------------------------------------------------------------------
class PlainObject:
    def __init__(self, count: int = 1) -> None:
        self.x = 1
        for i in range(count - 1):
            setattr(self, f"a{i}", i)


class Other(PlainObject):
    """Another class with the same layout, so that `__class__` can be assigned."""


class Refusing(PlainObject):
    """A class that no engine may write through: it has its own way to set attributes."""

    def __init__(self) -> None:
        self.__dict__["x"] = 1

    def __setattr__(self, name: str, value: object) -> None:
        raise AssertionError(f"{name} was set")


def store(subject: Any, value: object) -> None:
    """A store instruction, which specializes itself after a few calls."""
    subject.x = value


def _specialized(make: Callable[[], Any]) -> Change:
    def change(subject: object) -> None:
        for _ in range(40):
            store(make(), 2)
        store(subject, 2)

    return change


_INSTANCE_CHANGES: Changes = {
    "attribute set": lambda o: setattr(o, "x", 2),
    "attribute set past its class": lambda o: object.__setattr__(o, "x", 2),
    "attribute deleted": lambda o: delattr(o, "x"),
    "attribute added": lambda o: setattr(o, "z", 2),
    "awaited attribute added": lambda o: setattr(o, "extra", 2),
    "dict item set": lambda o: o.__dict__.__setitem__("x", 2),
    "dict updated": lambda o: o.__dict__.update(x=2),
    "dict replaced": lambda o: setattr(o, "__dict__", {"x": 2}),
    "dict deleted": lambda o: delattr(o, "__dict__"),
    "class assigned": lambda o: setattr(o, "__class__", Other),
}


def _of_instances() -> Mutations:
    def guards(source: Source, subject: object) -> list[Guard]:
        attributes = InstanceDictSource(source)
        fixed = [Guard(source, TypeIs(type(subject))), Guard(source, AttrAbsent("extra"))]
        return [
            *fixed,
            Guard(DictItemSource(attributes, "x"), Equals(1)),
            Guard(attributes, KeyAbsent("z")),
        ]

    def undo(subject: object) -> None:
        object.__setattr__(
            subject, "__class__", Refusing if isinstance(subject, Refusing) else PlainObject
        )
        attributes = subject.__dict__
        attributes.clear()
        attributes["x"] = 1

    found = {
        f"instance {name}": Mutation(PlainObject, guards, change, undo)
        for name, change in _INSTANCE_CHANGES.items()
    }
    for count in (1, 10, 29, 31, 40):
        made = _maker(count)
        stored = Mutation(made, guards, _specialized(made), undo)
        found[f"instance specialized store, {count} attributes"] = stored
    past = _INSTANCE_CHANGES["attribute set past its class"]
    return {**found, "instance that refuses to be set": Mutation(Refusing, guards, past, undo)}


def _maker(count: int) -> Callable[[], PlainObject]:
    return lambda: PlainObject(count)


# -- classes ---------------------------------------------------------------------------------------
def _family() -> Any:
    class Base:
        kind = "base"

        def method(self) -> None: ...

    class Derived(Base): ...

    made: Any = Derived()
    made.base = Base
    return made


def _class_guards(source: Source, subject: Any) -> list[Guard]:
    method = Guard(AttrSource(TypeSource(source), "method"), Is(type(subject).method))
    kind = Guard(AttrSource(source, "kind"), Equals("base"))
    return [Guard(source, TypeIs(type(subject))), kind, method]


def _shadow(subject: object) -> None:
    setattr(type(subject), "kind", property(lambda self: "property"))


def _rebase(subject: object) -> None:
    class Another:
        kind = "another"

        def method(self) -> None: ...

    class Between(Another): ...

    type(subject).__bases__ = (Between,)


def _undo_rebase(subject: Any) -> None:
    type(subject).__bases__ = (subject.base,)


def _of_classes() -> Mutations:
    def mutation(change: Change, undo: Change) -> Mutation:
        return Mutation(_family, _class_guards, change, undo)

    def remove(name: str) -> Change:
        return lambda subject: delattr(type(subject), name)

    return {
        "class attribute set": mutation(
            lambda o: setattr(type(o), "kind", "derived"), remove("kind")
        ),
        "class attribute set on a base": mutation(
            lambda o: setattr(o.base, "kind", "other"), lambda o: setattr(o.base, "kind", "base")
        ),
        "class attribute shadowed by a property": mutation(_shadow, remove("kind")),
        "method replaced": mutation(lambda o: setattr(type(o), "method", len), remove("method")),
        "lookup replaced": mutation(
            lambda o: setattr(type(o), "__getattribute__", lambda self, name: "user"),
            remove("__getattribute__"),
        ),
        "bases assigned": mutation(_rebase, _undo_rebase),
    }


# -- modules, functions, cells ---------------------------------------------------------------------
def _module() -> ModuleType:
    module = ModuleType("made")
    exec("x = 1\ndef rebind(value):\n    global x\n    x = value\n", module.__dict__)
    return module


def _of_modules() -> Mutations:
    def guards(source: Source, subject: object) -> list[Guard]:
        attributes = InstanceDictSource(source)
        return [
            Guard(DictItemSource(attributes, "x"), Equals(1)),
            Guard(attributes, KeyAbsent("z")),
        ]

    def undo(subject: Any) -> None:
        subject.x = 1
        vars(subject).pop("z", None)

    def stored(subject: Any) -> None:
        for _ in range(40):
            subject.rebind(2)

    changes: Changes = {
        "attribute set": lambda m: setattr(m, "x", 2),
        "attribute deleted": lambda m: delattr(m, "x"),
        "attribute added": lambda m: setattr(m, "z", 2),
        "global stored": stored,
    }
    return {
        f"module {name}": Mutation(_module, guards, change, undo)
        for name, change in changes.items()
    }


def _function() -> Any:
    def fn(a: int = 1, *, b: int = 2) -> tuple[int, int]:
        return a, b

    return fn


def _of_functions() -> Mutations:
    def guards(source: Source, subject: Any) -> list[Guard]:
        code = Guard(FunctionPartSource(source, "code"), Is(subject.__code__))
        default = Guard(ItemSource(FunctionPartSource(source, "defaults"), 0), Equals(1))
        keyword = DictItemSource(FunctionPartSource(source, "kwdefaults"), "b")
        return [code, default, Guard(keyword, Equals(2))]

    code = _function().__code__

    def undo(subject: Any) -> None:
        subject.__code__, subject.__defaults__, subject.__kwdefaults__ = code, (1,), {"b": 2}

    changes: Changes = {
        "code": lambda fn: setattr(fn, "__code__", code.replace(co_name="changed")),
        "defaults": lambda fn: setattr(fn, "__defaults__", (2,)),
        "defaults removed": lambda fn: setattr(fn, "__defaults__", None),
        "keyword defaults": lambda fn: setattr(fn, "__kwdefaults__", {"b": 3}),
        "keyword default": lambda fn: fn.__kwdefaults__.update(b=3),
    }
    found = {
        f"function {name}": Mutation(_function, guards, change, undo)
        for name, change in changes.items()
    }

    bare = Mutation(
        lambda: lambda a: a,
        lambda source, subject: [Guard(FunctionPartSource(source, "defaults"), IsNone())],
        lambda fn: setattr(fn, "__defaults__", (1,)),
        lambda fn: setattr(fn, "__defaults__", None),
    )
    return {**found, "function defaults added": bare}


def _closure() -> Any:
    x = 1

    def read() -> int:
        return x

    def write(value: int) -> None:
        nonlocal x
        x = value

    setattr(read, "write", write)
    return read


def _of_cells() -> Mutations:
    def guards(source: Source, subject: object) -> list[Guard]:
        return [Guard(CellSource(ItemSource(FunctionPartSource(source, "closure"), 0)), Equals(1))]

    def stored(subject: Any) -> None:
        for _ in range(40):
            subject.write(2)

    changes: Changes = {
        "contents set": lambda fn: setattr(fn.__closure__[0], "cell_contents", 2),
        "emptied": lambda fn: delattr(fn.__closure__[0], "cell_contents"),
        "stored by a closure": stored,
    }
    return {
        f"cell {name}": Mutation(_closure, guards, change, lambda fn: fn.write(1))
        for name, change in changes.items()
    }
