"""Views of dicts beside views and sets: pairs are looked for without being hashed, and classes are
asked as C does."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

LOG: list[Any] = []


class Loud:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        LOG.append(("equal", self.value))
        return isinstance(other, Loud) and self.value == other.value

    def __hash__(self) -> int:
        LOG.append(("hash", self.value))
        return 1

    def __repr__(self) -> str:
        return f"Loud({self.value})"


class Asked(set):  # type: ignore[type-arg]
    def __len__(self) -> int:
        LOG.append("len")
        return 2

    def __contains__(self, item: object) -> bool:
        LOG.append(("in", item))
        return True


MAKERS: dict[str, Callable[[], Any]] = {
    text: eval(f"lambda: {text}")
    for text in """
{1: Loud(1), 2: Loud(2)}.items()
{1: Loud(1)}.items()
{1: [1]}.items()
{1: [1], 2: [2]}.items()
{}.items()
{1: float("nan")}.items()
{1: 2, 2: 3}.items()
{Loud(1): 1, 2: 3}.keys()
{1: 1, 2: 3}.keys()
{(1, 2): 1, (2, 3): 3}.keys()
{(1, 2), (2, 3)}
frozenset([(1, 2)])
iter([(2, 3)])
[[1], (1, 2)]
3
Asked([1, 2, 3])
{1: 2}.values()
[(1, 2)]
""".strip().splitlines()
}


def compared(x: Tensor, a: Any, b: Any) -> Any:
    found: list[Any] = []
    for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "isdisjoint"):
        for one, other in ((a, b), (b, a)):
            try:
                found.append(getattr(one, name)(other))
            except (AttributeError, TypeError) as error:
                found.append(str(error))
    for one, other in ((a, b), (b, a)):
        with contextlib.suppress(TypeError):
            found += [one == other, one != other, one <= other, one > other]
    return x + 1, found


def combined(x: Tensor, a: Any, b: Any) -> Any:
    found: list[Any] = []
    for name in ("and", "rand", "or", "ror", "xor", "rxor", "sub", "rsub"):
        for one, other in ((a, b), (b, a)):
            try:
                found.append(getattr(one, f"__{name}__")(other))
            except (AttributeError, TypeError) as error:
                found.append(str(error))
    for one, other in ((a, b), (b, a)):
        with contextlib.suppress(TypeError):
            found += [one & other, one | other, one ^ other, one - other]
    return x + 1, found


def made(x: Tensor, run: Any, first: Any, second: Any) -> Any:
    return run(x, first(), second())


@pytest.mark.parametrize("first", MAKERS)
@pytest.mark.parametrize("run", [compared, combined])
@pytest.mark.parametrize("inside", [pytest.param(True, marks=pytest.mark.slow), False])
def test_views_are_as_in_c(first: str, run: Any, inside: bool) -> None:
    fn = made if inside else run
    # both ways round at once
    for second, make in itertools.islice(MAKERS.items(), list(MAKERS).index(first), None):
        if run is combined and "nan" in first + second:
            continue  # its place in a set is that of its address
        compiled = stator.compile(fn, backend="eager", recompile_limit=256)

        def outcome(call: Any, make: Callable[[], Any] = make) -> str:
            values = (run, MAKERS[first], make) if inside else (MAKERS[first](), make())
            LOG.clear()
            return repr((call(torch.ones(1), *values), LOG))

        assert [outcome(compiled) for _ in range(2)] == [outcome(fn)] * 2, second
        assert not compiled.report.missed, second
