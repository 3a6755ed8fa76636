"""`warnings.warn` in compiled code: no break, and as often, in the order and with the lines of
plain Python."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from integration_tests.support.counting import Counting

X = torch.arange(3.0)
Given = list[tuple[str, str, str, int]]


class Custom(UserWarning):
    pass


def deeper(x: Tensor, level: int) -> Tensor:
    warnings.warn("deeper", DeprecationWarning, level)
    return x + 1


def at_several_levels(x: Tensor) -> Tensor:
    for level in (0, 1, 2, 3):
        x = deeper(x, level)
        warnings.warn(f"level {level}", category=Custom, stacklevel=level)
    return x


def of_a_generator(x: Tensor) -> Tensor:
    def steps() -> Iterator[int]:
        for i in range(3):
            warnings.warn("step", stacklevel=i + 1)
            yield i

    return x + sum(steps())


def while_handling(x: Tensor) -> Tensor:
    try:
        raise ValueError("no")
    except ValueError as error:
        warnings.warn("handled", RuntimeWarning, stacklevel=1)
        return x * len(str(error))


def behind_a_break(x: Tensor) -> Tensor:
    y = x * 2
    stator.graph_break()
    warnings.warn("behind", stacklevel=2)
    return deeper(y, 3)


def without_operators(x: Tensor) -> int:
    warnings.warn("nothing to do", UserWarning, 1)
    return 3


def with_an_object(x: Tensor) -> Tensor:
    warnings.warn(Custom("an object"), stacklevel=2)
    return x + 1


def of_unknown_text(x: Tensor) -> Tensor:
    warnings.warn(f"sum {x.sum()}", stacklevel=2)
    return x + 1


def of_a_new_class(x: Tensor) -> Tensor:
    class New(Warning):
        pass

    warnings.warn("new", New, stacklevel=1)
    return x + 1


def in_a_body(x: Tensor) -> Any:
    return checkpoint(deeper, x, 1, use_reentrant=False)


CAPTURED = [at_several_levels, of_a_generator, without_operators]
BROKEN = [
    behind_a_break,
    while_handling,
    with_an_object,
    of_unknown_text,
    of_a_new_class,
    in_a_body,
]


def given(fn: Callable[..., Any], *args: Any, action: Any = "always") -> tuple[Any, Given]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        result = fn(*args)
    return result, [
        (str(each.message), each.category.__name__, each.filename, each.lineno) for each in caught
    ]


@pytest.mark.parametrize("fn", [*CAPTURED, *BROKEN])
def test_warnings_are_those_of_plain_python(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        found, expected = given(compiled, X), given(fn, X)
        assert found[1] == expected[1]
        torch.testing.assert_close(found[0], expected[0])


@pytest.mark.parametrize("fn", CAPTURED)
def test_a_warning_does_not_break_the_graph(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    given(compiled, X)
    given(compiled, X)
    assert compiled.report.compile_count == 1


def test_a_warning_is_shown_once_with_the_default_filter() -> None:
    def fn(x: Tensor) -> Tensor:
        for _ in range(3):
            warnings.warn("once", stacklevel=1)
        return x + 1

    def calls(run: Callable[..., Any]) -> None:
        for _ in range(3):
            run(X)

    backend = Counting()
    assert len(given(calls, stator.compile(fn, backend=backend), action="default")[1]) == 1
    assert len(given(calls, fn, action="default")[1]) == 1
    assert len(backend.graphs) == 1


def test_a_warning_that_a_filter_raises_is_raised_in_its_place() -> None:
    def fn(x: Tensor, log: list[str]) -> Tensor:
        log.append("before")
        x.add_(1)
        warnings.warn("raised", Custom, stacklevel=1)
        log.append("after")
        return x.mul_(2)

    compiled = stator.compile(fn, backend="eager")
    for action in ("ignore", "error", "ignore"):
        outcomes: list[Any] = []
        for run in (fn, compiled):
            x, error = X.clone(), None
            log: list[str] = []
            try:
                given(run, x, log, action=action)
            except Custom as raised:
                error = str(raised)
            outcomes.append((x.tolist(), log, error))
        assert outcomes[0] == outcomes[1]


def test_a_hook_of_the_program_sees_what_was_done_before() -> None:
    state = {"count": 0}
    seen: list[int] = []

    def fn(x: Tensor) -> Tensor:
        state["count"] += 1
        warnings.warn("look", stacklevel=1)
        state["count"] += 10
        return x + 1

    compiled = stator.compile(fn, backend="eager")
    given(compiled, X)
    for expected in (12, 23):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *args, **kwargs: seen.append(state["count"])
            compiled(X)
        assert seen.pop() == expected


def test_a_list_of_warnings_is_read_after_them() -> None:
    def counted(x: Tensor) -> tuple[Tensor, int, int]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("one", stacklevel=1)
            first = len(caught)
            warnings.warn("two", stacklevel=1)
        return x * 2, first, len(caught)

    kept: list[list[Any]] = []

    def found(x: Tensor) -> tuple[Tensor, int]:
        y = x * 2
        warnings.warn("found", stacklevel=1)
        return y, len(kept[0])

    compiled = [stator.compile(fn, backend="eager") for fn in (counted, found)]
    for _ in range(3):
        assert compiled[0](X)[1:] == (1, 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kept[:] = [caught]
            assert compiled[1](X)[1] == 1


def test_warnings_ahead_of_an_operator_that_raises_are_given_once() -> None:
    def fn(x: Tensor, i: Tensor) -> Tensor:
        warnings.warn("first", stacklevel=1)
        y = x[i]
        warnings.warn("second", stacklevel=1)
        return y * 2

    compiled = stator.compile(fn, backend="eager")
    places = [torch.tensor([0]), torch.tensor([9]), torch.tensor([1])]
    for i in places:
        assert given(attempted, compiled, i) == given(attempted, fn, i)


def attempted(run: Callable[..., Any], i: Tensor) -> Any:
    try:
        return run(X.clone(), i).tolist()
    except IndexError as error:
        return str(error)


SCRIPT = """
import warnings, torch, stator
warnings.simplefilter("always")
def inner(x):
    warnings.warn("inner", stacklevel=2)
    return x + 1
def fn(x):
    warnings.warn("outer", stacklevel=2)
    return inner(x) * 2
run = stator.compile(fn, backend="eager", fullgraph=True) if {compiled} else fn
for _ in range(2):
    run(torch.ones(2))
"""


def test_output_is_that_of_plain_python() -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT.format(compiled=compiled)],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        for compiled in (False, True)
    ]
    assert "outer" in texts[0]
    assert texts[0] == texts[1]
