"""What is made of a class that the region makes refers to that very class: aliases, unions,
members, objects of it."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import types
import typing
import weakref

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same

PROGRAMS = {}
T = typing.TypeVar("T")


def program(fn):
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def aliases_of_builtin_classes(x):
    class C: ...

    made = (
        list[C],
        dict[str, list[C]],
        type[C],
        tuple[C, ...],
        collections.deque[C],
        collections.defaultdict[str, C],
    )
    origin = made[1].__args__[1].__args__[0]
    return [C in alias.__args__ for alias in made], origin is C, str(made[0]), x + 1


@program
def aliases_of_typing(x):
    class C: ...

    marked = typing.Annotated[C, 1]
    called = (
        typing.Callable[[C], int],
        collections.abc.Callable[[C], int],
        typing.Optional[C],  # noqa: UP045
        typing.Union[C, int],  # noqa: UP007
    )
    return marked.__origin__ is C, [C in alias.__args__ for alias in called], x + 1


@program
def unions(x):
    class C: ...

    both = C | None
    return both.__args__[0] is C, isinstance(C(), both), isinstance(None, int | C), x + 1


@program
def a_class_that_is_subscripted(x):
    class Counts(collections.Counter, typing.Generic[T]): ...

    class Items(list): ...

    class Pair(tuple[T, T]): ...

    found = []
    for cls in (Counts, Items, Pair):
        made = cls[int]()
        found.append(
            (type(made) is cls, made.__orig_class__ == cls[int], cls[int].__origin__ is cls)
        )
    return found, x + 1


@program
def classes_of_typing_are_bases(x):
    class Table(typing.Dict[T, T]): ...  # noqa: UP006

    class Pair(typing.Tuple[T, T]): ...  # noqa: UP006

    one, two = Table[int](), Pair[int]()
    return type(one) is Table, type(two) is Pair, one.__orig_class__ == Table[int], x + 1


@program
def members_of_an_enumeration(x):
    class E(enum.Enum):
        A = 1

    return list[E].__args__[0] is E, typing.Literal[E.A].__args__[0] is E.A, x + 1


@program
def variables_and_hints(x):
    class C: ...

    def fn(a: C, b: list[C]) -> C:
        return a

    fn.__annotations__ = {"a": C, "b": list[C]}
    bound, new = typing.TypeVar("V", bound=C), typing.NewType("N", C)
    hints = typing.get_type_hints(fn)
    return (
        bound.__bound__ is C,
        new.__supertype__ is C,
        hints["a"] is C,
        hints["b"].__args__[0] is C,
        x + 1,
    )


@program
def fields_of_a_dataclass(x):
    class C: ...

    made = dataclasses.make_dataclass("D", [("f", list[C]), ("g", C)])
    return made.__annotations__["f"].__args__[0] is C, made(1, 2).g, x + 1


@program
def what_holds_a_class(x):
    class C: ...

    space, part = types.SimpleNamespace(c=C), functools.partial(C)
    view, ref, words = types.MappingProxyType({"c": C}), weakref.ref(C), frozenset([C])
    stator.graph_break()
    return (
        space.c is C,
        type(part()) is C,
        part.func is C,
        view["c"] is C,
        ref() is C,
        C in words,
        x + 1,
    )


@program
def a_function_for_a_class(x):
    class C: ...

    @functools.singledispatch
    def named(value):
        return "any"

    named.register(C, lambda value: "C")
    return named(C()), named(1), x + 1


@pytest.mark.parametrize("fn", PROGRAMS.values(), ids=list(PROGRAMS))
def test_it_refers_to_the_class_of_the_call(fn):
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), 3)


def given_away(x):
    class C: ...

    return C, list[C], x + 1


def test_alias_that_is_returned_is_of_the_class_that_is_returned():
    compiled = stator.compile(given_away, backend="eager")
    for _ in range(3):
        cls, alias, _ = compiled(torch.ones(2))
        assert alias.__args__ == (cls,)


def name_given_twice(x):
    try:

        class E(enum.Enum):
            A = 1
            A = 2
    except TypeError as error:
        return str(error), x
    return E, x


def name_deleted(x):
    class E(enum.Enum):
        A = 1
        b = 2
        del b

    return [*E.__members__], x


def no_enumeration_twice(x):
    class C:
        a = 1
        a = 2

    return C.a, x


def made_by_another_new(x):
    class Mine(collections.deque): ...

    class Items(list): ...

    first, second = Mine([1]), Items([1])
    Mine.__new__ = Items.__new__ = lambda cls, *rest: [42]
    stator.graph_break()
    return type(first).__name__, type(second).__name__, [*first], [*second], Mine(), Items(), x


@pytest.mark.parametrize(
    "fn", [name_given_twice, name_deleted, no_enumeration_twice, made_by_another_new]
)
def test_class_body_means_what_it_says(fn):
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), 3)
