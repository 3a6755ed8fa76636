"""Crossing a graph break takes a bounded number of calls of ours: what it costs cannot creep back
unnoticed."""

from __future__ import annotations

import logging
import os
import pathlib
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import attr
import pytest
import stator
import stator_backends
import stator_bytecode
import stator_guards
import stator_subgraphs
import stator_variables
import torch
from torch import Tensor

MOST = 14
"""Python functions of ours that one break may call: guards, entry and graph of the continuation are
four of them."""

_PACKAGES = (
    stator,
    stator_backends,
    stator_subgraphs,
    stator_variables,
    stator_guards,
    stator_bytecode,
    attr,
)
OURS = (
    *(str(pathlib.Path(str(each.__file__)).parent) + os.sep for each in _PACKAGES),
    "<stator",
    "<attrs",
)
"""Where functions of ours come from, generated ones included."""

_LOOKED_AT = ("_local_ends.py", "_holding.py")
"""Questions of who holds an object, which are counted elsewhere."""

quiet = logging.getLogger(f"{__name__}.quiet")
quiet.setLevel(logging.ERROR)
loud = logging.getLogger(f"{__name__}.loud")
loud.setLevel(logging.DEBUG)
loud.propagate = False
loud.addHandler(logging.NullHandler())


class Manager:
    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *raised: Any) -> None: ...


MANAGER = Manager()


def straight_line(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    y = x + 1
    cut()
    return y * 2


def two_calls_deep(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    return one_call_deep(x + 1, cut) * 2


def one_call_deep(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    return straight_line(x + 1, cut) * 2


def twice_in_a_loop(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    for _ in range(10):
        x = x + 1
        cut()
        x = x * 2
        cut()
    return x


def in_try(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    y = x + 1
    try:
        cut()
        y = y * 2
    except ValueError:
        y = y * 3
    return y


def in_with(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    y = x + 1
    with MANAGER:
        cut()
        y = y * 2
    return y * 2


def continuing(x: Tensor, cut: Callable[[], Any]) -> Tensor:
    for number in range(10):
        try:
            if number % 2:
                continue
            x = x + 1
            cut()
        except ValueError:
            continue
        x = x * 2
    return x


def nothing() -> None:
    """Instead of a break."""


LIMITS: dict[Callable[..., Any], int] = {
    straight_line: MOST,
    two_calls_deep: MOST,
    twice_in_a_loop: 20 * MOST,
    in_try: MOST,
    in_with: MOST,
    continuing: 5 * (MOST + 6),  # each continuation goes through two items of the iterator
}


def backend(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    outputs = graph(*inputs)
    return lambda *given: outputs


def calls_of_ours(fn: Callable[..., Any], *args: Any) -> int:
    """Python functions of ours that one call of `fn` runs, once it has been compiled."""
    with torch.no_grad():
        compiled = stator.compile(fn, backend=backend)
        for _ in range(40):  # guards are watched by then
            compiled(*args)
        found: list[str] = []

        def seen(frame: FrameType, event: str, argument: Any) -> None:
            file = frame.f_code.co_filename
            if event == "call" and file.startswith(OURS):
                found.append(file)

        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            compiled(*args)
        finally:
            sys.setprofile(before)
    return len([file for file in found if not any(name in file for name in _LOOKED_AT)])


@pytest.mark.parametrize("fn", LIMITS, ids=lambda fn: fn.__name__)
def test_a_break_takes_few_calls(fn: Callable[..., Any]) -> None:
    x = torch.ones(2)
    assert calls_of_ours(fn, x, stator.graph_break) - calls_of_ours(fn, x, nothing) <= LIMITS[fn]


def timed(x: Tensor) -> Any:
    start = time.perf_counter()
    y = x + 1
    return y * 2, time.perf_counter() - start


def logging_quietly(x: Tensor) -> Tensor:
    y = x + 1
    quiet.debug("value %s", 1)
    return y * 2


def logging_loudly(x: Tensor) -> Tensor:
    y = x + 1
    loud.info("value %s", 1)
    return y * 2


def unbroken(x: Tensor) -> Tensor:
    y = x + 1
    return y * 2


@pytest.mark.parametrize(("fn", "breaks"), [(timed, 2), (logging_quietly, 0), (logging_loudly, 1)])
def test_a_call_of_a_library_takes_one_break_at_most(fn: Callable[..., Any], breaks: int) -> None:
    x = torch.ones(2)
    assert calls_of_ours(fn, x) - calls_of_ours(unbroken, x) <= MOST * breaks
