"""What `raise`, `raise … from` and `throw` make of classes that give no exception, and of what is
none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class GivesNone(Exception):
    def __new__(cls, *args: Any) -> Any:
        return 3


class GivesAnother(Exception):
    def __new__(cls, *args: Any) -> Any:
        return ValueError("another")


class Wants(Exception):
    def __init__(self, needed: Any) -> None:
        super().__init__(needed)


class Meta(type):
    def __call__(cls, *args: Any) -> Any:
        return 5

    def __repr__(cls) -> str:
        return "a class"


class WithMeta(Exception, metaclass=Meta):
    pass


class Fine(GivesNone):
    def __new__(cls, *args: Any) -> Any:
        return Exception.__new__(cls, *args)


RAISED: dict[str, Any] = {
    "gives none": GivesNone,
    "gives another": GivesAnother,
    "wants": Wants,
    "meta": WithMeta,
    "fine": Fine,
    "number": 3,
    "class": int,
    "none": None,
    "tuple": (ValueError, 3),
    "exception": KeyError("k"),
    "exception class": OSError,
}


def told(error: BaseException) -> Any:
    return type(error), str(error), repr(error.__cause__), type(error.__context__)


def raises(x: Tensor, value: Any) -> Any:
    try:
        raise value
    except Exception as error:
        return x + 1, told(error)


def raises_from(x: Tensor, value: Any) -> Any:
    try:
        raise ValueError("a") from value
    except Exception as error:
        return x + 1, told(error)


def raises_while_handling(x: Tensor, value: Any) -> Any:
    try:
        raise KeyError("k")
    except KeyError:
        try:
            raise value from RAISED["wants"]
        except Exception as error:
            return x + 1, told(error)


def items() -> Generator[int, Any, None]:
    try:
        yield 1
    finally:
        stator.graph_break()


def throws(x: Tensor, value: Any) -> Any:
    it = items()
    next(it)
    try:
        it.throw(value)
    except Exception as error:
        return x + 1, told(error)


def throws_with_a_value(x: Tensor, value: Any) -> Any:
    found = []
    for given in (None, 3, (1, 2), KeyError(1), ValueError("own"), OSError(2, "b")):
        it = items()
        next(it)
        try:
            it.throw(value, given)
        except Exception as error:
            found.append((told(error), error.args))
    return x + 1, found


def throws_with_no_traceback(x: Tensor, value: Any) -> Any:
    it = items()
    next(it)
    try:
        it.throw(value, None, None)
    except Exception as error:
        return x + 1, told(error)


def throws_with_a_traceback(x: Tensor, value: Any) -> Any:
    found = []
    for own in (True, False):
        try:
            raise value
        except Exception as error:
            it = items()
            next(it)
            try:
                it.throw(type(error), error, error.__traceback__ if own else Other().made())
            except Exception as again:
                found.append((again is error, told(again)))
    return x + 1, found


class Other:
    def made(self) -> Any:
        try:
            raise KeyError
        except KeyError as error:
            return error.__traceback__


PROGRAMS = [
    throws_with_a_traceback,
    raises,
    raises_from,
    raises_while_handling,
    throws,
    throws_with_a_value,
    throws_with_no_traceback,
]


@pytest.mark.filterwarnings("ignore:.*signature of throw:DeprecationWarning")
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_raised(program: Callable[..., Any], name: str, broken: bool) -> None:
    value = RAISED[name]

    def run(x: Tensor) -> Any:
        if broken:
            stator.graph_break()
        result = program(x, value)
        return result, program(x, value)

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(3),))


def test_a_class_that_gives_no_exception_breaks_no_graph() -> None:
    def run(x: Tensor) -> Any:
        return raises(x, GivesNone)

    assert_same(run, stator.compile(run, backend="eager", fullgraph=True), lambda: (torch.ones(3),))


class Outside(ValueError):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def refuses(number: int) -> None:
    try:
        if number:
            raise Outside(number)
    except ValueError as error:
        error.add_note("refused")
        raise RuntimeError(f"bad {number}") from error


def appends_and_raises(x: Tensor, number: int, seen: list[Any]) -> Tensor:
    seen.append(number)
    with contextlib.suppress(IndexError):
        refuses(number)
        seen.append(x * 2)
    return x + 1


@pytest.mark.parametrize("number", [0, 1])
def test_what_leaves_one_graph_goes_through_managers_and_handlers_once(number: int) -> None:
    compiled = stator.compile(appends_and_raises, backend="eager", fullgraph=True)
    assert_same(appends_and_raises, compiled, lambda: (torch.ones(3), number, []))


class Parent:
    def without_a_name(*args: Any) -> Any:
        return super().__repr__()  # type: ignore[misc]


def test_super_without_arguments_says_so() -> None:
    def run(x: Tensor) -> Any:
        texts = []
        for asked in (Parent().without_a_name, lambda: super()):  # noqa: PLW0108
            try:
                asked()
            except RuntimeError as error:
                texts.append(str(error))
        return x + 1, texts

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(3),))
