"""Equal blocks where gradients are recorded: the operators of the first one alone run on fakes, and
histories are completed where something reads them."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from stator_backends import CountingBackend
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

SIZE = 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(SIZE)
        self.both = nn.Linear(SIZE, 2 * SIZE)
        self.down = nn.Linear(SIZE, SIZE)

    def forward(self, x: Tensor) -> Tensor:
        rows, size = x.shape
        left, right = self.both(self.norm(x)).chunk(2, dim=-1)
        hidden = F.gelu(left).view(rows, 2, size // 2).transpose(0, 1).reshape(rows, size)
        result: Tensor = x + self.down(hidden * right)
        return result


class Stack(nn.Module):
    def __init__(self, depth: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(SIZE, SIZE)
        self.layers = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x


def made(depth: int = 3) -> Stack:
    torch.manual_seed(3)
    return Stack(depth)


# -- work ------------------------------------------------------------------------------------------
COMPUTING = ("addmm", "linear", "gelu", "native_layer_norm", "mul", "add")


def operators_on_fakes(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> int:
    """Count the operators that compute on fake tensors in a call."""
    count = 0
    original = FakeTensorMode.dispatch

    def dispatch(self: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += operator._schema.name.removeprefix("aten::") in COMPUTING
        return original(self, operator, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(FakeTensorMode, "dispatch", dispatch)
        call()
    return count


def second_capture(
    monkeypatch: pytest.MonkeyPatch, depth: int, change: Callable[[nn.Module], Tensor]
) -> int:
    stator.reset()  # what is learned of sizes
    model = made(depth)
    compiled = stator.compile(model, backend="eager")
    compiled(torch.ones(3, SIZE))
    x = change(model)
    return operators_on_fakes(monkeypatch, lambda: compiled(x))


def other_batch(model: nn.Module) -> Tensor:
    return torch.ones(5, SIZE)


def input_with_gradients(model: nn.Module) -> Tensor:
    return torch.ones(3, SIZE, requires_grad=True)


@pytest.mark.parametrize("change", [other_batch, input_with_gradients])
def test_a_second_capture_runs_the_operators_of_one_block(
    change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    two, many = (second_capture(monkeypatch, depth, change) for depth in (2, 5))
    assert 0 < many == two


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_first_capture_runs_the_operators_of_one_block(
    dynamic: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for depth in (2, 5):
        stator.reset()
        compiled = stator.compile(made(depth), backend="eager", dynamic=dynamic)
        call = partial(compiled, torch.ones(3, SIZE))
        counts.append(operators_on_fakes(monkeypatch, call))
    assert 0 < counts[1] == counts[0]


def test_views_are_counted_as_views_in_each_block() -> None:
    heads = []
    for regions in ("auto", "off"):
        stator.reset()
        compiled = stator.compile(made(3), backend="eager", options={"regions": regions})
        compiled(torch.ones(3, SIZE))
        heads.append(str(compiled.report).partition("\n")[0])
    assert "operations" in heads[0]
    assert heads[0] == heads[1]


# -- histories -------------------------------------------------------------------------------------
def plain_loss(model: nn.Module, x: Tensor) -> Any:
    loss = model(x).sin().sum()
    loss.backward()
    return loss.detach()


def loss_behind_a_write(model: nn.Module, x: Tensor) -> Any:
    out = model(x)
    out.mul_(2.0)
    out[0] = 1.0
    out.sum().backward()
    return out.detach()


def gradient_of_a_result(model: nn.Module, x: Tensor) -> Any:
    first = model(x)
    second = model(first)
    (found,) = torch.autograd.grad(second.square().sum(), [first], retain_graph=True)
    second.sum().backward()
    return found, first.detach()


def write_behind_the_gradient(model: nn.Module, x: Tensor) -> Any:
    out = model(x)
    out.sum().backward()
    with torch.no_grad():
        out.add_(1.0)
        for parameter in model.parameters():
            parameter.sub_(0.1)
    return out.detach()


def blocks_behind_the_gradient(model: nn.Module, x: Tensor) -> Any:
    model(x).sum().backward()
    again = model(x * 2.0)
    again.square().sum().backward()
    return again.detach()


def write_that_is_taken_back(model: nn.Module, x: Tensor) -> Any:
    out = model(x)
    out.add_(1.0)
    out.sum().backward(retain_graph=True)
    out.detach().mul_(3.0)
    print(end="")  # a break
    return out.detach() + 1.0


def frozen_half(model: Any, x: Tensor) -> Any:
    model.layers[1].requires_grad_(False)
    model.layers[2].requires_grad_(False)
    loss = model(x).square().sum()
    loss.backward()
    return loss.detach()


SAMPLE = [loss_behind_a_write, gradient_of_a_result]
MORE = [
    *(plain_loss, write_behind_the_gradient, blocks_behind_the_gradient),
    *(write_that_is_taken_back, frozen_half),
]
STEPS = [*SAMPLE, *(pytest.param(step, marks=pytest.mark.slow) for step in MORE)]


def results(step: Any, model: nn.Module) -> Iterator[Any]:
    for rows in (2, 3):
        model.zero_grad()
        found = step(model, torch.linspace(-1.0, 1.0, rows * SIZE).view(rows, SIZE))
        yield from found if isinstance(found, tuple) else (found,)
        yield from (each.grad for each in model.parameters())
        yield from (each.detach().clone() for each in model.parameters())


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_gradients_in_a_step_reach_the_parameters_of_each_block(step: Any, backend: str) -> None:
    plain = made()
    model = copy.deepcopy(plain)
    compiled = stator.compile(step, backend=backend)
    expected, found = [*results(step, plain)], [*results(compiled, model)]
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("step", [plain_loss, loss_behind_a_write])
def test_a_step_with_equal_blocks_is_one_graph(step: Any) -> None:
    backend = CountingBackend()
    stator.compile(step, backend=backend)(made(), torch.ones(2, SIZE))
    assert len(backend.graphs) == 1


def test_results_of_equal_blocks_have_memory_of_their_own() -> None:
    def program(model: Any, x: Tensor) -> list[Tensor]:
        found = []
        for layer in model.layers:
            x = layer(x)
            found.append(x)
        found[1].mul_(2.0)
        found[2].add_(found[1])
        return found

    plain = made()
    compiled = stator.compile(program, backend="eager")
    for rows in (2, 3):
        x = torch.ones(rows, SIZE)
        for one, other in zip(compiled(plain, x), program(plain, x), strict=True):
            assert torch.equal(one, other)
            assert type(one.grad_fn) is type(other.grad_fn)
