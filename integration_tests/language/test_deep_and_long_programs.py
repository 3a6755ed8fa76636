"""Programs at the limits: recursion, deep calls, long functions, many arguments."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch import Tensor


def factorial(x: Tensor, n: int) -> Tensor:
    return x if n == 0 else factorial(x * n, n - 1)


def even(x: Tensor, n: int) -> Tensor:
    return x if n == 0 else odd(x + 1, n - 1)


def odd(x: Tensor, n: int) -> Tensor:
    return x * 2 if n == 0 else even(x - 1, n - 1)


def endless(x: Tensor) -> Tensor:
    return endless(x)


@pytest.mark.parametrize("fn", [factorial, even])
def test_recursion_is_one_graph(fn: Any) -> None:
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for n in (3, 4, 5):
        assert torch.equal(compiled(torch.ones(2), n), fn(torch.ones(2), n))


def test_three_hundred_calls_deep() -> None:
    def deep(x: Tensor, n: int) -> Tensor:
        return x + 1 if n == 0 else deep(x, n - 1)

    assert torch.equal(
        stator.compile(deep, backend="eager")(torch.ones(1), 300), torch.full((1,), 2.0)
    )


def test_endless_recursion_ends_as_it_does_plainly() -> None:
    with pytest.raises(RecursionError):
        stator.compile(endless, backend="eager")(torch.ones(1))


def test_a_function_of_ten_thousand_instructions() -> None:
    lines = [f"    y{i % 50} = {i}" for i in range(3000)]
    namespace: dict[str, Any] = {}
    exec("def long(x):\n" + "\n".join(lines) + "\n    return x + y0", namespace)
    long = namespace["long"]
    assert torch.equal(stator.compile(long, backend="eager")(torch.ones(1)), long(torch.ones(1)))


def test_five_hundred_arguments() -> None:
    namespace: dict[str, Any] = {}
    exec(f"def many({', '.join(f'a{i}' for i in range(500))}): return a0 + a499", namespace)
    many = stator.compile(namespace["many"], backend="eager")
    assert torch.equal(many(*[torch.ones(1)] * 500), torch.full((1,), 2.0))
