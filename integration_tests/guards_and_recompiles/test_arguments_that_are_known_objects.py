"""An argument that is, in one call, an object that the entry knows by itself: the namespace, or a
mark of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

LEVEL = 1
MARK = object()


def written_global(x: Tensor, names: dict[str, Any]) -> Any:
    global LEVEL
    LEVEL = names["LEVEL"] + 1
    return names["LEVEL"], x + 1


def read_through(x: Tensor, names: dict[str, Any]) -> Any:
    names["LEVEL"] += 1
    return LEVEL, x + 1


def added_after_a_break(x: Tensor, names: dict[str, Any]) -> Any:
    def numbers() -> Iterator[int]:
        for i in range(names["LEVEL"]):
            stator.graph_break()
            yield i

    return (
        sum(numbers()),
        any(i > 2 for i in numbers()),
        [*zip(numbers(), numbers(), strict=True)],
        x + 1,
    )


def marked(x: Tensor, names: dict[str, Any]) -> Any:
    return names["mark"] is MARK, x + 1


def outcomes(run: Callable[..., Any]) -> list[Any]:
    global LEVEL
    found, LEVEL = [], 2
    givens: list[dict[str, Any]] = [
        dict(globals(), mark=MARK),
        globals(),
        dict(globals(), mark=object()),
        globals(),
        {"LEVEL": 4},
    ]
    for given in givens:
        LEVEL = 2
        given.setdefault("mark", MARK)
        found.append((str(run(torch.ones(1), given)), LEVEL))
    return found


@pytest.mark.parametrize("run", [written_global, read_through, added_after_a_break, marked])
def test_the_object_is_told_from_others(run: Callable[..., Any]) -> None:
    expected = outcomes(run)
    compiled = stator.compile(run, backend="eager")
    assert [outcomes(compiled), outcomes(compiled)] == [expected, expected]
