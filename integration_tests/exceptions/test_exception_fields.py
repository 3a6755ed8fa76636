"""What Python keeps on an exception (traceback, context, cause) is set as C sets it: no class is
asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

LOG: list[Any] = []


class Watching(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        LOG.append(("set", name))
        super().__setattr__(name, value)

    def __getattribute__(self, name: str) -> Any:
        LOG.append(("get", name))
        return super().__getattribute__(name)

    def with_traceback(self, tb: Any) -> Any:
        LOG.append("with_traceback")
        return super().with_traceback(tb)


class Closed(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} is not to be set")


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


KINDS: dict[str, Callable[[], Exception]] = {
    "watching": Watching,
    "closed": Closed,
    "frozen": lambda: Frozen(3),
}


def raised(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    cut()
    raise make()


def caught(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    try:
        raise make()
    except Exception as error:
        cut()
        return type(error), error.args, error.__context__, x + 1


def while_handling(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    try:
        raise KeyError(1)
    except KeyError as first:
        try:
            cut()
            raise make()
        except Exception as second:
            return second.__context__ is first, second.__cause__, x + 1


def from_another(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    try:
        raise make() from ValueError(2)
    except Exception as error:
        cut()
        return type(error.__cause__), error.__suppress_context__, x + 1


def raised_on(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    try:
        raise make()
    finally:
        cut()


def thrown_in(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    def steps() -> Any:
        try:
            yield x
        except Exception as error:
            cut()
            yield type(error), error.args

    going = steps()
    next(going)
    return going.throw(make()), x + 1


def left_by(x: Tensor, make: Callable[[], Exception], cut: Callable[[], Any]) -> Any:
    class Manager:
        def __enter__(self) -> None: ...
        def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
            cut()
            return kind is type(error)

    with Manager():
        raise make()
    return x + 1


PROGRAMS = [raised, caught, while_handling, from_another, raised_on, thrown_in, left_by]
CUTS: dict[str, Callable[[], Any]] = {"in one": lambda: None, "with a break": stator.graph_break}


def outcome(run: Callable[..., Any], kind: str, cut: str) -> Any:
    LOG.clear()
    try:
        result = run(torch.ones(2), KINDS[kind], CUTS[cut])
    except Exception as error:
        result = type(error), error.args, type(error.__context__), error.__traceback__ is not None
    return str(result), list(LOG)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: str(run.__name__))
def test_no_class_is_asked(run: Callable[..., Any], kind: str, cut: str) -> None:
    compiled = stator.compile(run, backend="eager")
    for _ in range(2):
        assert outcome(compiled, kind, cut) == outcome(run, kind, cut)
