"""Modes within modes: inference mode keeps gradients and autocast as they were, and puts them back
when it is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

ENTERED: dict[str, Callable[[], Any]] = {
    "inference": torch.inference_mode,
    "no inference": lambda: torch.inference_mode(False),
    "no gradients": torch.no_grad,
    "gradients": torch.enable_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no autocast": lambda: torch.autocast("cpu", enabled=False),
}
NESTED = [
    *itertools.permutations(ENTERED, 2),
    *itertools.product(list(ENTERED)[:2], ENTERED, list(ENTERED)[2:]),
]


def modes() -> tuple[bool, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
    )


def state(x: Tensor) -> tuple[Any, ...]:
    return x.dtype, x.requires_grad, x.is_inference(), *modes()


def nested(names: tuple[str, ...], cut: Callable[[], Any]) -> Callable[[Tensor], Any]:
    made = [ENTERED[name] for name in names]

    def f(x: Tensor) -> Any:
        seen = []
        with made[0]():
            cut()
            with made[1]():
                with made[-1]():
                    cut()
                    seen.append(state(x @ x))
                seen.append(state(x @ x))
                cut()
            seen.append(state(x * 2))
        return x @ x, seen, modes()

    return f


@pytest.mark.parametrize("cut", [lambda: None, stator.graph_break], ids=["whole", "broken"])
@pytest.mark.parametrize("names", NESTED, ids="-".join)
def test_modes_are_as_plainly_at_each_depth(names: tuple[str, ...], cut: Callable[[], Any]) -> None:
    function = nested(names, cut)
    compiled = stator.compile(function, backend="eager")
    x = torch.ones(3, 3, requires_grad=True)
    expected, seen, after = function(x)
    for _ in range(2):
        y, found, then = compiled(x)
        assert (found, then, modes()) == (seen, after, (True, False, False))
        assert torch.equal(y, expected)


def set_inside(x: Tensor) -> Any:
    with torch.inference_mode():
        torch.set_autocast_enabled("cpu", True)
        y = x @ x
    return y, torch.is_autocast_enabled("cpu")


def set_before_a_break(x: Tensor) -> Any:
    with torch.inference_mode():
        torch.set_autocast_enabled("cpu", True)
        stator.graph_break()
        y = x @ x
    return y, torch.is_autocast_enabled("cpu")


def raised_inside(x: Tensor) -> Any:
    try:
        with (
            torch.inference_mode(False),
            torch.autocast("cpu", dtype=torch.bfloat16),
            torch.no_grad(),
        ):
            stator.graph_break()
            y = x @ x
            raise ValueError(str(y.dtype))
    except ValueError as error:
        return x @ x, str(error)


def some_time_enabled(x: Tensor) -> Any:
    with (
        torch.inference_mode(False),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=len(x) > 3),
    ):
        stator.graph_break()
        y = x @ x
    return y, x @ x


@pytest.mark.parametrize(
    "function", [set_inside, set_before_a_break, raised_inside, some_time_enabled]
)
def test_what_is_set_inside_is_gone_after(function: Callable[[Tensor], Any]) -> None:
    compiled = stator.compile(function, backend="eager")
    for size in (3, 3, 5, 4, 3):
        x = torch.ones(size, size, requires_grad=True)
        expected, *more = function(x)
        found, *others = compiled(x)
        assert (state(found), found.dtype, str(others)) == (
            state(expected),
            expected.dtype,
            str(more),
        )
        assert modes() == (True, False, False)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * 2


@pytest.mark.parametrize("name", ENTERED)
@pytest.mark.parametrize("breaks", [True, False])
def test_modes_after_a_function_of_autograd_are_put_back(name: str, breaks: bool) -> None:
    """Its body runs in modes of its own, which are no nodes of the graph."""
    weight = torch.nn.Parameter(torch.ones(2))

    def fn(x: Tensor) -> Any:
        found = [Twice.apply(weight)]  # type: ignore[no-untyped-call]
        with ENTERED[name]():
            found.append(Twice.apply(weight * x))  # type: ignore[no-untyped-call]
            if breaks:
                stator.graph_break()
        return found, [state(tensor) for tensor in found], modes()

    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        expected, found = fn(torch.ones(2)), compiled(torch.ones(2))
        assert found[1:] == expected[1:]
        assert modes() == (True, False, False)
