"""Messages about recompilations name what the program wrote, and no function or parameter of
ours."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

# Functions that guards call, and names of values on the operand stack.
INTERNAL = re.compile(
    r"\b(stack\d+|f\d+_\w+|then\d+|o\d+_part\d+|\w+_of|ahead|operands|share_nothing|are_apart"
    r"|value_under|keys_in_order|exhausts_unobserved|behind_proxy|living|referent)\b"
)


def reasons(fn: Callable[..., Any], *calls: tuple[Any, ...]) -> list[str]:
    """Return why the compiled function was compiled again, over calls with these arguments."""
    compiled = stator.compile(fn, backend="eager")
    for arguments in calls:
        compiled(*arguments)
    return [
        text.partition(",")[0]
        for text in str(compiled.report).splitlines()
        if text.startswith("compiled again: ")
    ]


X = torch.ones(2)


def loop_with_a_break(x: Tensor, xs: list[Tensor]) -> Tensor:
    for each in xs:
        x = x + each
        print(end="")
        x = x * 2
    return x


def nested_loops_with_a_break(x: Tensor, table: dict[str, list[Tensor]]) -> Tensor:
    for name, row in table.items():
        for each in row[:]:
            x = x + each
            print(end=name[:0])
            x = x * 2
    return x


def enumerated(x: Tensor, xs: list[Tensor]) -> Tensor:
    for i, each in enumerate(xs):
        x = x + each * i
        print(end="")
    return x


def zipped(x: Tensor, xs: list[Tensor], ys: list[Tensor]) -> Tensor:
    for one, other in zip(xs, ys, strict=False):
        x = x + one * other
        print(end="")
    return x


def reversed_(x: Tensor, xs: list[Tensor]) -> Tensor:
    for each in reversed(xs):
        x = x + each
        print(end="")
    return x


def queue(x: Tensor, xs: collections.deque[int]) -> Tensor:
    return x + xs[0]


def members(x: Tensor, xs: set[int]) -> Tensor:
    return x * sum(xs)


def callee(x: Tensor, factor: int) -> Tensor:
    print(end="")
    return x * factor


def caller(x: Tensor, factor: str) -> Tensor:
    y = callee(x, len(factor)) + 1
    return y + (2 if factor == "a" else 3)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "a loop": (loop_with_a_break, [(X, [X] * n) for n in (3, 2, 1)]),
    "nested loops": (nested_loops_with_a_break, [(X, {"a": [X] * n}) for n in (3, 2, 1)]),
    "enumerate": (enumerated, [(X, [X] * n) for n in (3, 2, 1)]),
    "zip": (zipped, [(X, [X] * n, [X] * 3) for n in (3, 2, 1)]),
    "reversed": (reversed_, [(X, [X] * n) for n in (3, 2, 1)]),
    "a deque": (queue, [(X, collections.deque([n])) for n in (1, 1.5)]),
    "a set": (members, [(X, {1, 2}), (X, {3, 4, 5})]),
    "a caller of a frame that broke": (caller, [(X, name) for name in ("a", "b", "cd")]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_reasons_have_no_internal_names(name: str) -> None:
    fn, calls = PROGRAMS[name]
    found = reasons(fn, *calls)
    assert found
    assert [text for text in found if INTERNAL.search(text)] == []


def test_loop_that_became_shorter_is_named_by_its_iterable() -> None:
    found = reasons(loop_with_a_break, (X, [X] * 3), (X, [X] * 2))
    assert "compiled again: what is left of the loop over xs was of more than 0 items" in found


def test_loop_over_an_expression_is_named_by_it() -> None:
    found = reasons(enumerated, (X, [X] * 3), (X, [X] * 2))
    assert any("the loop over enumerate(xs)" in text for text in found)


LIMIT = 1


def reads_a_global(x: Tensor) -> Tensor:
    return x * LIMIT


def test_global_is_named_as_the_program_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = stator.compile(reads_a_global, backend="eager")
    compiled(X)
    monkeypatch.setitem(reads_a_global.__globals__, "LIMIT", 2)
    compiled(X)
    assert "compiled again: LIMIT was 1, is now 2" in str(compiled.report)
