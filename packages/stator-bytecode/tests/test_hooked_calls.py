"""Code whose callables pass through a function before they are called."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
from stator_bytecode import with_hooked_calls

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def hooked(fn: FunctionType, replaced: Any = None, by: Any = None) -> Any:
    def hook(target: Any) -> Any:
        SEEN.append(getattr(target, "__name__", type(target).__name__))
        return by if target is replaced and by is not None else target

    parts = fn.__name__, fn.__defaults__, fn.__closure__
    made = FunctionType(with_hooked_calls(fn.__code__, hook), fn.__globals__, *parts)
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def pair(a: Any, b: Any = 2, *more: Any, c: Any = 3) -> tuple[Any, ...]:
    return a, b, more, c


class Base:
    def method(self, x: Any) -> Any:
        return x + 1

    @property
    def callee(self) -> Any:
        return pair


class Derived(Base):
    def method(self, x: Any) -> Any:
        return super().method(x) * 2


@contextlib.contextmanager
def managed() -> Iterator[int]:
    yield 5


def decorator(fn: Any) -> Any:
    return fn


def calls(x: int) -> Any:
    return pair(x), pair(x, c=4), pair(*[1, 2], **{"c": 4}), pair(x, b=pair(x) if x else 0)


def methods(x: int) -> Any:
    return Derived().method(x if pair(x) else 2), Base().callee(7), "a b".split()


def comprehensions(x: int) -> Any:
    return (
        [pair(i) for i in range(x)],
        {i: pair(i) for i in range(2) if pair(i)},
        sum(len(pair(i)) for i in range(3)),
    )


def managers(x: int) -> Any:
    with managed() as one, managed():
        return pair(one)


def decorated(x: int) -> Any:
    @decorator
    def inner(z: Any) -> Any:
        return pair(z)

    return inner(x), (lambda q: pair(q))(3), decorator(decorator)(pair)(1, pair(2))


def handled(x: int) -> Any:
    assert pair(x), pair(0)
    try:
        int("x")
    except ValueError as error:
        return str(error)
    finally:
        pair(2)


def loops(x: int) -> Any:
    found = []
    while True:
        for i in range(3):
            if i == 1:
                continue
            found.append(f"{pair(i)}")
        if x.__class__(3):
            return found


@pytest.mark.parametrize(
    "fn", [calls, methods, comprehensions, managers, decorated, handled, loops]
)
def test_results_are_those_of_the_original(fn: Any) -> None:
    assert hooked(fn)(3) == fn(3)
    assert "pair" in SEEN


def test_methods_pass_as_they_are_bound() -> None:
    assert hooked(Derived.method)(Derived(), 3) == 8
    assert SEEN[-1] == "method"


def test_decorated_function_is_no_callable() -> None:
    hooked(decorated)(3)
    assert SEEN.count("inner") == 1


def test_result_of_the_hook_is_called() -> None:
    def other(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    assert hooked(calls, pair, other)(3)[1] == ((3,), {"c": 4})
    assert hooked(comprehensions, pair, other)(1)[0] == [((0,), {})]


def raising(x: Any) -> Any:
    y = 1
    return pair(
        x.missing(y),
    )


def test_traceback_has_the_lines_of_the_original() -> None:
    def places(fn: Any) -> Any:
        with pytest.raises(AttributeError) as caught:
            fn(3)
        found = traceback.extract_tb(caught.value.__traceback__)[1:]
        return [(each.name, each.lineno, each.end_lineno) for each in found]

    assert places(hooked(raising)) == places(raising)
