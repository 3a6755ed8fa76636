"""Parameters of a compiled module are swapped by torch as those of the plain one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)).eval()


@pytest.fixture
def swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


CONVERSIONS: dict[str, Callable[[nn.Module], Any]] = {
    "double": lambda module: module.double(),
    "to": lambda module: module.to(torch.float64),
    "to_empty": lambda module: (
        module.to_empty(device="cpu"),
        [nn.init.ones_(each) for each in module.state_dict().values()],
    ),
    "load_state_dict": lambda module: module.load_state_dict(
        {name: torch.ones_like(value) for name, value in module.state_dict().items()}
    ),
}


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("calls", [1, 8])
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_a_module_is_converted_between_calls(
    convert: Callable[[nn.Module], Any], calls: int, trained: bool
) -> None:
    plain = model().requires_grad_(trained)
    module = model().requires_grad_(trained)
    module.load_state_dict(plain.state_dict())
    compiled = stator.compile(module, backend="eager")
    x = torch.rand(2, 4)
    for _ in range(calls):
        assert torch.equal(compiled(x), plain(x))

    kept = [*module.parameters()]
    convert(plain)
    convert(module)

    assert [*map(id, module.parameters())] == [*map(id, kept)]
    x = x.to(kept[0].dtype)
    for _ in range(3):
        assert torch.equal(compiled(x), plain(x))


@pytest.mark.parametrize("ended", [True, False])
def test_tensors_are_swapped_after_a_call(ended: bool) -> None:
    module = nn.Linear(2, 2)
    other = nn.Parameter(torch.zeros(2, 2))
    compiled = stator.compile(module, backend="eager")
    compiled(torch.ones(1, 2))
    if ended:
        for _ in range(8):
            compiled(torch.ones(1, 2))
        del compiled

    torch.utils.swap_tensors(module.weight, other)  # type: ignore[no-untyped-call]

    assert not module.weight.any()
    called = module if ended else compiled
    assert torch.equal(called(torch.ones(1, 2)), module.bias[None])


def test_guards_are_no_weak_references_of_the_program() -> None:
    weight = nn.Parameter(torch.ones(2))

    def fn(x: Tensor, p: Tensor) -> Tensor:
        y = x * p * weight
        return y + 1 if weakref.getweakrefcount(p) == 0 else y

    compiled = stator.compile(fn, backend="eager")
    other = nn.Parameter(torch.ones(2))
    for _ in range(4):
        for p in (weight, other):
            assert torch.equal(compiled(torch.ones(2), p), torch.full((2,), 2.0))
            assert weakref.getweakrefcount(p) == 0
    held = weakref.ref(other)
    assert torch.equal(compiled(torch.ones(2), other), torch.ones(2))
    assert held() is other
