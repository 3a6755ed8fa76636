"""Equal blocks of a graph are compiled once, and almost equal ones by themselves: the results,
gradients, buffers and draws are those of plain Python."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import stator
import torch
from attrs import evolve
from stator_backends import BackendSpec, aot_eager, spec_of
from torch import Tensor, nn
from torch.fx import GraphModule

COUNT = 5


class Block(nn.Module):
    def __init__(self, width: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(dropout)
        self.scale = 1.0

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(nn.functional.gelu(self.first(self.norm(x))).sin())
        result: Tensor = x + (self.drop(y.tanh()) + 1).cos() * self.scale
        return result


class Normed(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + (self.norm(self.linear(x)).relu().sin() + 1).cos().tanh().exp().sqrt()
        return result


class Deep(nn.Module):
    def __init__(self, make: Callable[[], nn.Module] = Block, count: int = COUNT) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(make() for _ in range(count))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.head(x)
        return result


class Counted:
    """AOTAutograd around the function of the graph; counts the graphs that it compiles."""

    def __init__(self) -> None:
        self.graphs: list[int] = []
        self.spec: BackendSpec = spec_of(aot_eager)

    def __call__(self, gm: GraphModule, inputs: Sequence[Any]) -> Any:
        self.graphs.append(sum(node.op.startswith("call_") for node in gm.graph.nodes))
        return aot_eager(gm, inputs)


def compiled_by(backend: Any, model: nn.Module, regions: str = "always") -> Any:
    return stator.compile(model, backend=backend, options={"regions": regions})


def _step(model: Any, x: Tensor) -> list[Any]:
    model.zero_grad()
    result = model(x)
    result.square().sum().backward()
    gradients = [each.grad for each in model.parameters()]
    return [result.detach(), x.grad, *gradients, *(each.clone() for each in model.buffers())]


def assert_same_steps(model: nn.Module, compiled: Any, between: Any = None) -> None:
    """Compare three steps of a model and of its compiled copy."""
    for number in range(3):
        if between is not None and number == 1:
            between(model)
            between(compiled)
        found = []
        for each in (model, compiled):
            torch.manual_seed(number)
            x = torch.randn(4, 8, requires_grad=True)
            found.append(_step(each, x))
        torch.testing.assert_close(found[1], found[0])


def test_equal_blocks_are_compiled_once() -> None:
    torch.manual_seed(0)
    model, backend = Deep(), Counted()
    compiled = compiled_by(backend, copy.deepcopy(model))
    assert_same_steps(model, compiled)
    operators = len([*compiled.report.graphs[0].graph.nodes])
    assert len(backend.graphs) <= 3  # what is ahead of the blocks, a block, what is behind them
    assert sum(backend.graphs) < operators


@pytest.mark.parametrize("regions", ["off", "auto"])
def test_other_backends_get_the_graph_as_a_whole(regions: str) -> None:
    backend = Counted()
    compiled_by(backend, Deep(), regions)(torch.randn(4, 8))
    assert len(backend.graphs) == 1


@pytest.mark.parametrize("training", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_report_has_the_reason_why_blocks_are_compiled_each(training: bool) -> None:
    backend = Counted()
    backend.spec = evolve(backend.spec, name="inductor")
    model = Deep()
    model.requires_grad_(training)
    compiled = compiled_by(backend, model, "auto")
    compiled(torch.randn(4, 8))
    reason = "a backward pass would get slower" if training else "there are no three of enough"
    assert f"equal blocks are compiled each, as {reason}" in str(compiled.report)


@pytest.mark.parametrize("make", [Block, lambda: Block(dropout=0.5), Normed])
@pytest.mark.parametrize("training", [True, False])
def test_stacks_are_those_of_plain_python(make: Any, training: bool) -> None:
    torch.manual_seed(0)
    model = Deep(make).train(training)
    assert_same_steps(model, compiled_by(Counted(), copy.deepcopy(model)))


def test_each_block_has_its_own_statistics() -> None:
    model, backend = Deep(Normed), Counted()
    compiled = compiled_by(backend, copy.deepcopy(model))
    assert_same_steps(model, compiled)
    assert len(backend.graphs) <= 3


def _one_number(block: Any) -> None:
    block.scale = 0.5


def _dropout(block: Any) -> None:
    block.drop = nn.Dropout(0.3)


def _evaluation(block: Any) -> None:
    block.eval()


def _frozen(block: Any) -> None:
    block.requires_grad_(False)


def _a_frozen_part(block: Any) -> None:
    block.first.requires_grad_(False)


def _a_hook(block: Any) -> None:
    block.register_forward_hook(lambda module, args, result: result * 2)


def _no_bias(block: Any) -> None:
    block.first = nn.Linear(8, 16, bias=False)


def _another_width(block: Any) -> None:
    block.first, block.second = nn.Linear(8, 24), nn.Linear(24, 8)


DIFFERENCES = [
    _one_number,
    _dropout,
    _evaluation,
    _frozen,
    _a_frozen_part,
    _a_hook,
    _no_bias,
    _another_width,
]


@pytest.mark.parametrize("index", [0, COUNT // 2, COUNT - 1])
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_almost_equal_blocks_are_those_of_plain_python(difference: Any, index: int) -> None:
    torch.manual_seed(0)
    model = Deep()
    difference(model.blocks[index])
    assert_same_steps(model, compiled_by(Counted(), copy.deepcopy(model)))


@pytest.mark.parametrize("difference", [_one_number, _frozen, _evaluation, _a_hook])
def test_a_difference_may_appear_later(difference: Any) -> None:
    torch.manual_seed(0)
    model = Deep(lambda: Block(dropout=0.2))

    def change(each: Any) -> None:
        difference(each.blocks[2])

    assert_same_steps(model, compiled_by(Counted(), copy.deepcopy(model)), change)


def test_weights_that_blocks_share_are_one_in_each() -> None:
    torch.manual_seed(0)
    model = Deep()
    blocks: Any = model.blocks
    blocks[1].first.weight = blocks[3].first.weight
    blocks[2].norm.weight = blocks[2].norm.bias
    assert_same_steps(model, compiled_by(Counted(), copy.deepcopy(model)))


def test_all_states_may_be_returned() -> None:
    class States(Deep):
        def forward(self, x: Tensor) -> Any:
            states = []
            for block in self.blocks:
                x = block(x)
                states.append(x.sin())
            return torch.stack(states).sum(0)

    torch.manual_seed(0)
    model = States()
    assert_same_steps(model, compiled_by(Counted(), copy.deepcopy(model)))


def test_a_loop_of_one_module_is_compiled_once() -> None:
    class Repeated(Deep):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(6):
                x = self.blocks[0](x)
            return x

    torch.manual_seed(0)
    model, backend = Repeated(count=1), Counted()
    assert_same_steps(model, compiled_by(backend, copy.deepcopy(model)))
    assert len(backend.graphs) <= 3


def test_sizes_that_are_symbols_are_right() -> None:
    torch.manual_seed(0)
    model = Deep()
    compiled = stator.compile(
        copy.deepcopy(model), backend=Counted(), dynamic=True, options={"regions": "always"}
    )
    for rows in (3, 4, 7):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's import gives one
def test_weights_that_become_constants_are_those_of_each_block() -> None:
    torch.manual_seed(0)
    model = Deep().eval()
    options = {"freezing": True, "regions": "always"}
    compiled: Any = stator.compile(copy.deepcopy(model), options=options)
    x = torch.randn(4, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))
    assert compiled.report.entry_count == 1
    assert not compiled.report.recompiles


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False])
def test_inductor_compiles_large_blocks_once(training: bool) -> None:
    torch.manual_seed(0)
    model = Deep(lambda: nn.Sequential(Block(), Block())).train(training)
    compiled = compiled_by("inductor", copy.deepcopy(model))
    assert_same_steps(model, compiled)
