"""Calls that alternate among arguments of many kinds: the entry is found without testing all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch.overrides import TorchFunctionMode

X = torch.arange(3.0)


class Derived(torch.Tensor):
    pass


class Mode(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class Defaulting(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 7


VALUES: tuple[Any, ...] = (
    *(X, X.double(), X.half(), X.long(), X.bool(), X.to(torch.complex64)),
    *(X.clone().requires_grad_(), X.view(1, 3), X.as_subclass(Derived), torch.nn.Parameter(X)),
    *(3, 4.5),
)


def by_kind(x: Any) -> Any:
    return x * 2 if isinstance(x, torch.Tensor) else x + 1


def test_tensors_and_numbers_take_turns_with_and_without_a_mode() -> None:
    compiled = stator.compile(by_kind, backend="eager", options={"recompile_limit": 30})
    for is_inside in (False, True, False):
        for value in (*VALUES, *VALUES):
            if is_inside:
                with Mode():
                    assert repr(compiled(value)) == repr(by_kind(value))
            else:
                assert repr(compiled(value)) == repr(by_kind(value))


@pytest.mark.parametrize("key", ["k", "absent"])
def test_key_that_is_there_in_some_calls(key: str) -> None:
    def fn(x: torch.Tensor, items: dict[str, int]) -> torch.Tensor:
        return x * items[key]

    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        for items in (Defaulting(k=2), Defaulting(), Defaulting(k=3), {"k": 2, "absent": 1}):
            assert torch.equal(compiled(X, items), fn(X, items))
