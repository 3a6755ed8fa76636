"""`grad_fn`, `grad` and `is_leaf` of a tensor from outside that operators of the graph gave a
history, or took it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from integration_tests.support.oracle import Tolerance, assert_same


def history(y: Tensor) -> tuple[Any, ...]:
    return y.grad_fn is None, type(y.grad_fn).__name__, y.is_leaf, y.requires_grad, y.output_nr


def written_to(x: Tensor, y: Tensor) -> Any:
    y.mul_(x)
    return history(y)


def written_through_a_view(x: Tensor, y: Tensor) -> Any:
    y[0].add_(x[0])
    return history(y)


def copied_into(x: Tensor, y: Tensor) -> Any:
    y.copy_(x)
    return history(y), y.grad is None


def detached(x: Tensor, y: Tensor) -> Any:
    y.detach_()
    return history(y), y.grad is None


def asked_for_gradients(x: Tensor, y: Tensor) -> Any:
    y.requires_grad_()
    return history(y), y.grad is None


def asked_without_being_written_to(x: Tensor, y: Tensor) -> Any:
    z = x * y
    return z, history(y)


def asked_after_a_break(x: Tensor, y: Tensor) -> Any:
    y.copy_(x)
    stator.graph_break()
    return history(y)


def an_attribute_of_a_gradient_that_is_none(x: Tensor, y: Tensor) -> Any:
    y.copy_(x.unbind()[-1])
    return y.grad.t()  # type: ignore[union-attr]


def made_a_leaf_and_used(x: Tensor, y: Tensor) -> Any:
    y.detach_()
    z = y * 2
    return z, y.grad_fn, y.grad


def make(kind: str) -> tuple[Tensor, Tensor]:
    x = torch.linspace(1, 2, 4).reshape(2, 2).requires_grad_(kind != "no gradients")
    if kind in ("a leaf", "no gradients"):
        return x, torch.zeros(2, 2)
    y = x * 2
    if kind == "with a gradient":
        y.retain_grad()
        y.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
    return x, y


USES: tuple[Callable[[Tensor, Tensor], Any], ...] = (
    written_to,
    written_through_a_view,
    copied_into,
    detached,
    asked_for_gradients,
    asked_without_being_written_to,
)
USES += (asked_after_a_break, an_attribute_of_a_gradient_that_is_none, made_a_leaf_and_used)


@pytest.mark.parametrize("kind", ["a leaf", "no gradients", "computed", "with a gradient"])
@pytest.mark.parametrize("use", USES, ids=lambda fn: fn.__name__.replace("_", " "))
def test_history_is_that_of_now(use: Callable[[Tensor, Tensor], Any], kind: str) -> None:
    """The inputs are made inside: a copy of a computed tensor would be a leaf."""

    def through(run: Callable[[Tensor, Tensor], Any]) -> Callable[[int], Any]:
        return lambda n: run(*make(kind))

    torch.set_warn_always(True)
    try:
        assert_same(
            through(use), through(stator.compile(use, backend="eager")), lambda: (1,), calls=3
        )
    finally:
        torch.set_warn_always(False)


class Noting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def as_they_are(x: Tensor, net: nn.Module) -> Any:
    assert x.requires_grad_(False) is x
    for p in net.parameters():
        p.requires_grad_().requires_grad_(requires_grad=True)  # type: ignore[call-arg]
    return net(x)


def as_they_are_by_attribute(x: Tensor, net: nn.Module) -> Any:
    x.requires_grad = False
    for p in net.parameters():
        p.requires_grad = True
    return net(x)


def otherwise(x: Tensor, net: nn.Module) -> Any:
    net.requires_grad_(False)
    y = net(x)
    x.requires_grad_(False)
    return y, [p.requires_grad for p in net.parameters()]


def otherwise_by_attribute(x: Tensor, net: nn.Module) -> Any:
    x.requires_grad = True
    return net(x), x.requires_grad


def of_a_tensor_that_is_made_here(x: Tensor, net: nn.Module) -> Any:
    y = (x * 2).requires_grad_()
    return (y * y).sum(), y.is_leaf


def of_integers(x: Tensor, net: nn.Module) -> Any:
    i = x.long()
    try:
        i.requires_grad = True
    except RuntimeError as error:
        return str(error)
    return i.requires_grad_(False)


def seen_by_a_mode(x: Tensor, net: nn.Module) -> Any:
    with Noting() as mode:
        x.requires_grad_(False)
        x.requires_grad = False
    return mode.names


def in_a_transform(x: Tensor, net: nn.Module) -> Any:
    w = torch.ones(4)

    def loss(of: Tensor) -> Tensor:
        x.requires_grad_(False)
        return (of * x).sum()

    try:
        return torch.func.grad(loss)(w)
    except RuntimeError as error:
        return str(error)


Flags = Callable[[Tensor, nn.Module], Any]
FLAGS: dict[Flags, int | None] = {
    as_they_are: 0,
    as_they_are_by_attribute: 0,
    otherwise: 1,
    otherwise_by_attribute: 1,
    of_integers: None,
}
FLAGS |= {of_a_tensor_that_is_made_here: None, seen_by_a_mode: None, in_a_transform: None}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", FLAGS, ids=lambda fn: fn.__name__.replace("_", " "))
def test_a_flag_is_set(fn: Flags, backend: str) -> None:
    compiled: Any = stator.compile(fn, backend=backend)
    sizes = iter([2, 3, 5])
    nets = [nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    ours, theirs = (lambda x: fn(x, nets[0])), (lambda x: compiled(x, nets[1]))
    near = Tolerance(1e-5, 1e-6, strides=False)
    assert_same(
        ours,
        theirs,
        lambda: (torch.ones(next(sizes), 4),),
        tolerance=near,
        owners=(nets[0], nets[1]),
    )
    breaks = {(broke.where.filename, broke.where.line) for broke in compiled.report.breaks}
    assert FLAGS[fn] in (None, len(breaks))
