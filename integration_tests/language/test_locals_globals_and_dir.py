"""`locals`, `globals`, `vars`, `dir` and the `__dict__` of classes, read in the region."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

PROGRAMS: dict[str, Callable[..., Any]] = {}
SCALE = 3


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


class Base:
    width = 2
    label: str = "base"

    def apply(self, x: Tensor) -> Tensor:
        return x * self.width

    @staticmethod
    def doubled(x: Tensor) -> Tensor:
        return x * 2


class Derived(Base):
    __slots__ = ("extra",)
    depth = 4


class Meta(type):
    def __dir__(cls) -> list[str]:
        return ["z", "a", "z"]


class Named(metaclass=Meta):
    def __dir__(self) -> tuple[str, ...]:
        return ("b", "a")


class Left(Base):
    left = 1


class Right(Base):
    right = 1


class Both(Left, Right):
    def __init__(self) -> None:
        self.own = 1


@program
def items_of_a_class(x: Tensor) -> Any:
    names = Base.__dict__
    return (
        names["apply"](Base(), x),
        names["doubled"].__func__(x),
        names.get("missing"),
        type(names),
    )


@program
def names_of_a_class(x: Tensor) -> Any:
    found = [name for name in Base.__dict__ if not name.startswith("__")]
    return x + len(found), found, "width" in Derived.__dict__, len(vars(Derived))


@program
def values_of_a_class(x: Tensor) -> Any:
    kept = {name: value for name, value in vars(Base).items() if isinstance(value, int)}
    return x * kept["width"], kept, dict(vars(Derived))["depth"]


@program
def annotations_along_the_bases(x: Tensor) -> Any:
    name = "__annotations__"
    return x, [list(cls.__dict__.get(name, {})) for cls in Derived.__mro__]


@program
def a_missing_item_of_a_class(x: Tensor) -> Any:
    try:
        return Base.__dict__["missing"]
    except KeyError as error:
        return x, str(error)


@program
def a_view_is_read_only(x: Tensor) -> Any:
    names: Any = Base.__dict__
    try:
        names["width"] = 3
    except TypeError as error:
        return x, str(error)
    return x


@program
def a_class_made_here(x: Tensor) -> Any:
    class Made(Base):
        more = 5

    public = [name for name in dir(Made) if not name.startswith("_")]
    return x * Made.__dict__["more"], public, "width" in vars(Made)


@program
def names_of_objects(x: Tensor) -> Any:
    both = Both()
    return x, dir(both), dir(Both), both.__dir__(), dir(3), dir(None), dir(Derived())


@program
def names_by_a_method_of_the_class(x: Tensor) -> Any:
    return x, dir(Named()), dir(Named)


@program
def names_of_a_tensor(x: Tensor) -> Any:
    return x + ("sin" in dir(x))


@program
def local_names_in_order(x: Tensor) -> Any:
    b = 1
    a = [x]
    if b > 5:
        never = 1
    first = dict(locals())
    del b
    return x, list(first), sorted(locals()), first["a"] is a, dir()


@program
def local_names_of_closures(x: Tensor) -> Any:
    outer = 2

    def inner(y: Tensor) -> Any:
        seen = locals()
        return y * outer, sorted(seen), seen["outer"]

    return inner(x), sorted(locals())


@program
def local_names_of_a_generator(x: Tensor) -> Any:
    def numbers(count: int) -> Any:
        for number in range(count):
            yield number, sorted(vars())

    return x, list(numbers(2))


@program
def local_names_of_a_class_body(x: Tensor) -> Any:
    class Made:
        first = 1
        locals()["second"] = 2

    return x * Made.first, Made.second  # type: ignore[attr-defined]


@program
def a_template_of_local_names(x: Tensor) -> Any:
    width, depth = 2, 3
    return x, "{width}x{depth}".format(**locals()), "{width:03d}".format_map(vars())


@program
def local_names_are_written_to(x: Tensor) -> Any:
    a = 1
    names = locals()
    names["a"], names["new"] = 5, 6
    return x + a, names["new"], locals()["a"]


@program
def global_names(x: Tensor) -> Any:
    return x * globals()["SCALE"], "PROGRAMS" in globals(), globals() is globals()


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_are_those_of_plain_python(name: str) -> None:
    fn = PROGRAMS[name]
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.ones(2),), 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_are_those_of_plain_python_with_a_break_at_each_call(name: str) -> None:
    fn = PROGRAMS[name]
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": True})
    assert_same(fn, compiled, lambda: (torch.ones(2),), 2)


def test_each_call_reads_the_class_as_it_is() -> None:
    class Changing:
        scale = 2

    def read(x: Tensor) -> Any:
        names = [name for name in dir(Changing) if not name.startswith("_")]
        return x * Changing.__dict__["scale"], names, "more" in Changing.__dict__

    counting = Counting()
    compiled = stator.compile(read, backend=counting, fullgraph=True)

    def check() -> None:
        wanted, found = read(torch.ones(2)), compiled(torch.ones(2))
        assert torch.equal(wanted[0], found[0])
        assert wanted[1:] == found[1:]

    check()
    Changing.scale = 3
    check()
    Changing.more = 1  # type: ignore[attr-defined]
    check()
    del Changing.more  # type: ignore[attr-defined]
    check()
    assert counting.count == 3


def test_what_the_region_sets_is_seen_in_the_dict_of_the_class() -> None:
    class Written:
        scale = 2

    def write(x: Tensor, value: int) -> Any:
        before = Written.__dict__["scale"]
        Written.scale = value
        return x * before, Written.__dict__["scale"]

    compiled = stator.compile(write, backend="eager")
    for value in (5, 7, 7):
        before = Written.scale
        scaled, after = compiled(torch.ones(2), value)
        assert torch.equal(scaled, torch.ones(2) * before)
        assert after == Written.scale == value


def test_names_of_an_object_follow_the_object() -> None:
    def names(x: Tensor, thing: Any) -> Any:
        return x, [name for name in dir(thing) if not name.startswith("_")]

    compiled = stator.compile(names, backend="eager", fullgraph=True)
    thing = types.SimpleNamespace(b=1)
    for name in ("c", "a", "b"):
        setattr(thing, name, 1)
        assert compiled(torch.ones(2), thing)[1] == sorted(vars(thing))


def test_a_module_lists_its_names_by_its_own_function() -> None:
    module = types.ModuleType("made")
    module.shown = 1  # type: ignore[attr-defined]

    def names(x: Tensor) -> Any:
        return x, [name for name in dir(module) if not name.startswith("__")]

    compiled = stator.compile(names, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2))[1] == ["shown"]
    module.__dir__ = lambda: ["z", "y"]  # type: ignore[method-assign]
    assert compiled(torch.ones(2))[1] == ["y", "z"]


@pytest.mark.parametrize("kept", [sys.version_info < (3, 13)])
def test_local_names_are_one_dict_before_3_13(kept: bool) -> None:
    def read(x: Tensor) -> Any:
        names = locals()
        return x, names is locals(), names is vars()

    compiled = stator.compile(read, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2))[1:] == (kept, kept)


def test_a_module_without_a_dict_of_names_is_refused_as_by_c() -> None:
    class Odd(types.ModuleType):
        __dict__ = 8  # type: ignore[assignment]

    odd = Odd("odd")

    def names(x: Tensor) -> Any:
        try:
            return x, dir(odd)
        except TypeError as error:
            return x, str(error)

    compiled = stator.compile(names, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(2))[1] == names(torch.ones(2))[1]
