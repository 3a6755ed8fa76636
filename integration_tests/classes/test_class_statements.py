"""Classes made inside the region are those of plain Python: all that can be read of them, a fresh
one on each call."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.corpora.behaviours import Marked, arguments, catalogue, load
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

MODULE = "classes_inside"
PROGRAMS: dict[str, Marked] = {
    title: marked for title, marked in catalogue()[MODULE].items() if not marked.breaks
}


def classes_in(value: Any) -> Iterator[type]:
    """The local classes of a result, each once."""
    if isinstance(value, type):
        if "<locals>" in value.__qualname__ or value.__name__ == "Made":
            yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from classes_in(part)


def look(value: Any) -> Any:
    """What a program can read of an attribute of a class, as plain data."""
    if isinstance(value, types.FunctionType):
        cells = [look(cell.cell_contents) for cell in value.__closure__ or ()]
        written = [
            *(value.__defaults__ or ()),
            *(value.__kwdefaults__ or ()),
            value.__doc__,
            *vars(value),
        ]
        names = value.__code__.co_freevars, [*value.__annotations__]
        return "function", value.__qualname__, value.__module__, names, cells, [*map(look, written)]
    if isinstance(value, property):
        return "property", *map(look, (value.fget, value.fset, value.fdel, value.__doc__))
    if isinstance(value, classmethod | staticmethod):
        return type(value).__name__, look(value.__func__)
    if isinstance(value, enum.Enum):
        return "member", value.name, value.value
    if isinstance(value, type):
        return "class", value.__qualname__, value.__module__
    return (
        repr(value)
        if isinstance(value, int | str | float | tuple | type(None))
        else type(value).__qualname__
    )


def looked_at(cls: type) -> Any:
    names = {
        name: look(value) for name, value in vars(cls).items() if not name.startswith("__static")
    }
    bases = [base.__qualname__ for base in (*cls.__bases__, *cls.__mro__)]
    return (
        list(names),
        names,
        bases,
        type(cls).__qualname__,
        sorted(getattr(cls, "__abstractmethods__", ())),
    )


@pytest.mark.parametrize("title", PROGRAMS)
def test_class_made_inside_is_like_that_of_plain_python(title: str) -> None:
    ours, theirs = load(MODULE).PROGRAMS[title].fn, load(MODULE).PROGRAMS[title].fn
    expected = [looked_at(cls) for cls in classes_in(ours(*arguments(1)))]
    compiled = stator.compile(theirs, backend="eager", fullgraph=True)
    assert [looked_at(cls) for cls in classes_in(compiled(*arguments(1)))] == expected


def test_each_call_makes_its_own_class_bound_to_its_own_cells() -> None:
    def make(x: Tensor) -> Any:
        class Inside:
            def value(self) -> Tensor:
                return x

            def own(self) -> type:
                return __class__  # type: ignore[name-defined,no-any-return]

        return Inside, Inside()

    counting = Counting()
    compiled = stator.compile(lambda x: (make(x), x + 1)[0], backend=counting, fullgraph=True)
    x, y = torch.ones(2), torch.zeros(2)
    (first, one), (second, two) = compiled(x), compiled(y)
    assert first is not second
    assert (type(one), type(two)) == (first, second)
    assert (one.own(), two.own()) == (first, second)
    assert one.value() is x
    assert two.value() is y
    assert counting.count == 1


class Base:
    """Knows its subclasses."""


def test_what_stands_for_a_class_while_tracing_is_no_subclass_afterwards() -> None:
    def make(x: Tensor) -> Any:
        class Inside(Base):
            pass

        return Inside, x + 1

    gc.collect()
    made = stator.compile(make, backend="eager", fullgraph=True)(torch.ones(2))[0]
    assert Base.__subclasses__() == [made]


def entries(fn: Callable[..., Any]) -> int:
    compiled = stator.compile(fn, backend="eager")
    compiled(torch.ones(2))
    count: int = compiled.report.entry_count
    return count


class Outside:
    a: int


def broken_body(x: Tensor) -> Any:
    class Inside:
        y = x + 1
        stator.graph_break()
        z = y * 2

    return Inside.z + 1


def a_function_as_metaclass(x: Tensor) -> Any:
    class Inside(metaclass=lambda name, bases, names: names["value"]):  # type: ignore[metaclass]
        value = 3

    return x * Inside  # type: ignore[operator]


def an_enum_with_code(x: Tensor) -> Any:
    class Inside(enum.Enum):
        A = 1

        def __init__(self, value: int) -> None:
            self.half = value / 2

    return x * Inside.A.half


def a_decorator_of_a_class_from_outside(x: Tensor) -> Any:
    return dataclasses.dataclass(Outside)(1).a, x + 1  # type: ignore[call-arg]


def a_cached_method(x: Tensor) -> Any:
    class Inside:
        @functools.cache  # noqa: B019
        def value(self) -> int:
            return 3

    return x + 1, Inside


@pytest.mark.parametrize(
    "fn",
    [
        broken_body,
        a_function_as_metaclass,
        an_enum_with_code,
        a_decorator_of_a_class_from_outside,
        a_cached_method,
    ],
)
def test_class_statement_that_cannot_be_captured_costs_one_break(fn: Callable[..., Any]) -> None:
    assert entries(fn) == 2


def test_a_generator_held_by_an_instance_goes_on_after_a_break() -> None:
    def run(x: Tensor) -> Any:
        class Feed:
            def __init__(self) -> None:
                self.items = (x * i for i in range(3))

        feed = Feed()
        first = next(feed.items)
        stator.graph_break()
        return first, next(feed.items), type(feed) is Feed, isinstance(feed, Feed)

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2),))


def test_the_text_of_a_dataclass_about_a_tensor_is_that_of_plain_python() -> None:
    def run(x: Tensor) -> Any:
        @dataclasses.dataclass
        class Inside:
            value: Any = x

        return Inside.__doc__, Inside().value + 1

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2),))


class Naming(type):
    """Refuses one name, and notes what it made."""

    def __new__(cls, name: str, bases: Any, attributes: Any) -> Any:
        made = super().__new__(cls, name, bases, {**attributes, "seen": name})
        if name == "Bad":
            raise RuntimeWarning(name)
        return made

    def __init__(cls, name: str, bases: Any, attributes: Any) -> None:
        super().__init__(name, bases, attributes)
        cls.named = [name]


class Named(metaclass=Naming):
    pass


def made_by_type(name: str) -> Any:
    try:
        made: Any = type(name, (Named,), {"x": 1})
    except RuntimeWarning as error:
        return error.args
    try:
        Naming(5)  # type: ignore[call-arg, arg-type]
    except TypeError as error:
        return made.seen, made.named, type(made), made.x, error.args
    return None


@pytest.mark.parametrize("options", [{}, {"break_everywhere": True}])
def test_type_leaves_it_to_the_metaclass_of_the_bases(options: dict[str, Any]) -> None:
    compiled = stator.compile(made_by_type, backend="eager", options=options)
    for name in ("First", "Bad", "Second"):
        assert compiled(name) == made_by_type(name)


@functools.singledispatch
def shown(value: Any, depth: int = 2) -> str:
    return "?"


@shown.register(list)
def shown_list(value: Any, depth: int = 3) -> str:
    stator.graph_break()
    return f"{len(value)} at {depth}"


def dispatched(x: Tensor) -> Any:
    class Extra(list[int]):
        pass

    return x + 1, shown(Extra([4, 5])), shown.dispatch(Extra) is shown_list


def test_a_single_dispatch_function_is_asked_for_a_class_made_inside() -> None:
    compiled = stator.compile(dispatched, backend="eager")
    assert_same(dispatched, compiled, lambda: (torch.ones(2),))
    shown_list.__defaults__ = (7,)
    assert_same(dispatched, compiled, lambda: (torch.ones(2),))


@pytest.mark.parametrize("base", [list, dict, set, collections.deque, collections.OrderedDict])
@pytest.mark.parametrize("is_sub", [False, True])
def test_a_dataclass_refuses_what_cannot_be_hashed_as_a_default(base: Any, is_sub: bool) -> None:
    """Found by CPython's own test, once nothing broke before it."""

    def program(x: Tensor) -> Any:
        class Below(base): ...  # type: ignore[misc]

        value = Below() if is_sub else base()
        try:

            @dataclasses.dataclass
            class Point:
                kept: object = value

        except ValueError as error:
            return x + 1, str(error)
        return x + 2, Point().kept is value

    assert_same(program, stator.compile(program, backend="eager"), lambda: (torch.ones(2),))
