"""In-place writes of the bodies of `vmap` and of nested compile regions to tensors from outside."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator.errors import Unsupported
from torch import Tensor
from torch.compiler import nested_compile_region

Program = Callable[[Tensor, Tensor], Any]


def make() -> tuple[Tensor, Tensor]:
    return torch.arange(6.0).reshape(2, 3), torch.ones(3)


def outcome(program: Any) -> str:
    """Return what two calls on the same tensors give, and these tensors."""
    inputs = make()
    return repr(([program(*inputs) for _ in range(2)], inputs))


def check(program: Program, backend: str) -> Any:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    assert outcome(compiled) == outcome(program)
    return compiled


# -- vmap ------------------------------------------------------------------------------------------
def filled(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v: v * w.fill_(3.0))(x), w + 1


def accumulated_in_chunks(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v: (w.add_(1), v * w)[1], chunk_size=1)(x), w + 1


def accumulated_in_a_nested_body(x: Tensor, w: Tensor) -> Any:
    def inner(u: Tensor) -> Tensor:
        return u * w.add_(1).sum()

    return torch.vmap(torch.vmap(inner))(x), w + 1


def initialized_before_use(x: Tensor, w: Tensor) -> Any:
    table = torch.empty(3)

    def body(v: Tensor) -> Tensor:
        table[0] = 1.0
        table[1:] = 2.0
        return v * table

    return torch.vmap(body)(x), table


def initialized_by_name(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v: v * torch.nn.init.constant_(w, 4.0))(x), w * 1


def cleared_itself(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v: (x.zero_(), v + w)[1])(x)


def written_through_a_view(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v: (w[:2].fill_(7.0), v * w)[1])(x), w + 1


def written_as_an_argument(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(lambda v, u: (u.zero_(), v * u)[1], in_dims=(0, None))(x, w), w + 1


class Lazy(torch.nn.Module):
    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.empty(3))
        self.is_ready = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_ready:
            self.table.fill_(2.0)
            self.is_ready = True
        return x * self.table


def initialized_by_a_module(x: Tensor, w: Tensor) -> Any:
    module = Lazy()
    return torch.vmap(module)(x), module.table, module.is_ready


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [
        filled,
        accumulated_in_chunks,
        accumulated_in_a_nested_body,
        initialized_before_use,
        initialized_by_name,
        cleared_itself,
        written_through_a_view,
        written_as_an_argument,
        initialized_by_a_module,
    ],
)
def test_vmap_body_writes_to_a_captured_tensor(program: Program, backend: str) -> None:
    check(program, backend)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x, w: torch.vmap(w.add_)(x), "broadcast shape"),
        (lambda x, w: torch.vmap(lambda v: v * w.uniform_())(x), "random"),
        (lambda x, w: torch.func.grad(lambda v: (w.zero_() * v).sum())(x), "mutate a captured"),
    ],
)
def test_write_that_a_transform_rejects_raises_its_error(program: Program, message: str) -> None:
    compiled = stator.compile(program, backend="eager")
    for call in (program, compiled):
        with pytest.raises(RuntimeError, match=message):
            call(*make())
    with pytest.raises(Unsupported):
        stator.compile(program, backend="eager", fullgraph=True)(*make())


# -- nested compile regions ------------------------------------------------------------------------
class Counted(torch.nn.Module):
    """A region that changes a buffer, called twice."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.ones(3))

    @nested_compile_region
    def step(self, x: Tensor) -> Any:
        self.count.add_(1)
        return x * self.weight + self.count

    def forward(self, x: Tensor) -> Any:
        return self.step(self.step(x))


@nested_compile_region
def increased(a: Tensor, b: Tensor) -> Any:
    a.add_(1)
    return b * 2


@nested_compile_region
def flattened(x: Tensor) -> Tensor:
    return x.view(-1)


@nested_compile_region
def twins(x: Tensor) -> Any:
    y = x + 1
    return y, y.view(-1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_region_changes_a_buffer_without_gradients(backend: str) -> None:
    module = Counted()
    twin = copy.deepcopy(module)
    compiled = stator.compile(twin, backend=backend, fullgraph=True)
    with torch.no_grad():
        for size in (2, 2, 4):
            x = torch.ones(size, 3)
            assert torch.equal(compiled(x), module(x))
            assert torch.equal(twin.count, module.count)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_region_writes_where_no_gradient_depends_on_it(backend: str) -> None:
    check(lambda x, w: (increased(x, w), increased(w, x), x + 1), backend)


def test_region_that_changes_a_buffer_in_training_raises_the_error_of_torch() -> None:
    module = Counted()
    with pytest.raises(Unsupported, match="does not currently support training with in-place"):
        stator.compile(module, backend="eager", fullgraph=True)(torch.ones(2, 3))
    assert module.count.sum() == 0

    twin = copy.deepcopy(module)
    compiled = stator.compile(twin, backend="aot_eager")
    for model in (module, compiled):
        model(torch.ones(2, 3)).sum().backward()
    assert torch.equal(twin.count, module.count)
    assert torch.equal(twin.weight.grad, module.weight.grad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: flattened(x) + 1,
        lambda x, w: twins(x)[0].sum() + twins(x)[1],
    ],
)
def test_region_with_aliased_results_raises_the_error_of_torch(program: Program) -> None:
    with pytest.raises(Unsupported, match="Encountered aliasing during higher order op tracing"):
        stator.compile(program, backend="eager", fullgraph=True)(*make())
    assert outcome(stator.compile(program, backend="aot_eager")) == outcome(program)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_region_that_writes_to_overlapping_operands_is_rejected(backend: str) -> None:
    def program(x: Tensor, w: Tensor) -> Any:
        return increased(x, x.view(-1)), increased(x[0], x), x + 1

    assert outcome(stator.compile(program, backend=backend)) == outcome(program)
    with pytest.raises(Unsupported, match="share memory"):
        stator.compile(program, backend=backend, fullgraph=True)(*make())
