"""What an AttributeError says of its object and the name: that depends on who asked, and on
whom."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same


class Descriptor:
    def __get__(self, instance: Any, owner: Any) -> Any:
        stator.graph_break()
        raise AttributeError("of a descriptor")


class Slotted:
    __slots__ = ("foo",)


class WithoutGetter:
    foo = property()


class Raising:
    @property
    def foo(self) -> Any:
        stator.graph_break()
        raise AttributeError("of a property")


class Described:
    foo = Descriptor()


class Asked:
    def __getattr__(self, name: str) -> Any:
        stator.graph_break()
        raise AttributeError(name)


class AskedAlways:
    foo = property()

    def __getattribute__(self, name: str) -> Any:
        stator.graph_break()
        return object.__getattribute__(self, name)


class Naming:
    @property
    def foo(self) -> Any:
        raise AttributeError("named", name="other", obj=3)


class Plain:
    pass


class Meta(type):
    @property
    def foo(cls) -> Any:
        raise AttributeError("of a metaclass")


class OfMeta(metaclass=Meta):
    pass


MADE: list[Callable[[], Any]] = [
    *(
        Slotted,
        WithoutGetter,
        Raising,
        Described,
        Asked,
        AskedAlways,
        Naming,
        Plain,
        nn.Module,
        types.SimpleNamespace,
    ),
    *(lambda: OfMeta, lambda: torch, lambda: 3, lambda: Slotted, lambda: iter([])),
]


def calls(obj: Any) -> Any:
    return obj.foo()


def reads(obj: Any) -> Any:
    return obj.foo


def calls_with_a_break_between(obj: Any) -> Any:
    return obj.foo(stator.graph_break)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("use", [calls, reads, calls_with_a_break_between])
@pytest.mark.parametrize("make", MADE)
def test_what_an_attribute_error_says(
    make: Callable[[], Any], use: Callable[[Any], Any], broken: bool
) -> None:
    def run(x: Tensor) -> Any:
        if broken:
            stator.graph_break()
        try:
            use(make())
        except AttributeError as error:
            return x + 1, str(error), error.name, type(error.obj)

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2),))


def in_a_context(obj: Any) -> None:
    @contextlib.contextmanager
    def after() -> Iterator[None]:
        yield
        obj.foo()

    with after():
        pass


def of_a_generator(obj: Any) -> Any:
    def items() -> Iterator[Any]:
        yield obj
        yield obj

    generator: Any = items()
    next(generator)
    return generator.foo()


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("use", [in_a_context, of_a_generator])
@pytest.mark.parametrize("make", [Slotted, Raising, Plain, lambda: ()])
def test_an_attribute_error_beside_what_is_carried(
    make: Callable[[], Any], use: Callable[[Any], Any], handled: bool
) -> None:
    def run(x: Tensor) -> Any:
        try:
            use(make())
        except AttributeError as error:
            if not handled:
                raise
            return x + 1, str(error), error.name, type(error.obj)

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2),))


def writes(obj: Any) -> None:
    obj.foo = 1


def deletes(obj: Any) -> None:
    del obj.foo


def writes_by_object(obj: Any) -> None:
    object.__setattr__(obj, "foo", 1)


class Filled:
    __slots__ = ()

    def foo(self) -> None: ...


class Written:
    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Deleted:
    __slots__ = ()

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)


@pytest.mark.parametrize("use", [writes, deletes, writes_by_object])
@pytest.mark.parametrize(
    "make", [object, Filled, Written, Deleted, Slotted, Plain, lambda: 3, lambda: (), lambda: []]
)
def test_what_an_attribute_error_of_a_write_says(
    make: Callable[[], Any], use: Callable[[Any], Any]
) -> None:
    def run(x: Tensor) -> Any:
        obj = make()
        try:
            use(obj)
        except AttributeError as error:
            text = str(error)
        else:
            return x + 1
        try:
            use(obj)
        except AttributeError as error:
            return x + 1, text, error.name, type(error.obj)

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2),))


@pytest.mark.parametrize("name", ["__module__", "__qualname__", "__name__"])
@pytest.mark.parametrize("inside", [False, True])
def test_what_is_said_of_an_empty_slot_names_the_class_as_it_is_now(
    name: str, inside: bool
) -> None:
    class Renamed:
        __slots__ = ("foo",)

    made = Renamed()

    def run(x: Tensor) -> Any:
        obj: Any = Renamed() if inside else made
        try:
            return x + obj.foo
        except AttributeError as error:
            return x + 1, str(error)

    compiled = stator.compile(run, backend="eager")
    for value in ("one", "two", "builtins", "__main__"):
        setattr(Renamed, name, value)
        assert_same(run, compiled, lambda: (torch.ones(2),), calls=1)
