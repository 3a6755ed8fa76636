"""Stacks of equal blocks, and of almost equal ones: one differs, from the start or from some call
on."""

import gc
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest
import stator
import torch
import torch.nn.functional as F
from stator_backends import CountingBackend
from torch import Tensor, nn

SIZE, DEPTH = 8, 4


class Block(nn.Module):
    """The usual parts of a block, and one attribute of each kind that code branches on."""

    def __init__(self, index: int = 0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(SIZE)
        self.up = nn.Linear(SIZE, 2 * SIZE)
        self.down = nn.Linear(2 * SIZE, SIZE)
        self.dropout = nn.Dropout(0.0)
        self.offset = nn.Buffer(torch.full((SIZE,), 0.5))
        self.scale = 1.0
        self.activation: Callable[[Tensor], Tensor] = F.gelu
        self.settings = {"residual": True}
        self.skip: nn.Module | None = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = self.activation(self.up(self.norm(x + self.offset)))
        out = self.dropout(self.down(hidden)) * self.scale
        if mask is not None:
            out = out * mask
        if self.skip is not None:
            x = self.skip(x)
        result: Tensor = x + out if self.settings["residual"] else out
        return result


class Stack(nn.Module):
    def __init__(self, block: Callable[[int], nn.Module] = Block, depth: int = DEPTH) -> None:
        super().__init__()
        self.first = nn.Linear(SIZE, SIZE)
        self.layers = nn.ModuleList(map(block, range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x


def freeze(layers: Any, index: int) -> None:
    layers[index].up.weight.requires_grad_(False)


def freeze_all(layers: Any, index: int) -> None:
    layers[index].requires_grad_(False)


def set_eval(layers: Any, index: int) -> None:
    layers[index].eval()


def set_eval_of_dropout(layers: Any, index: int) -> None:
    layers[index].dropout.eval()


def set_dropout(layers: Any, index: int) -> None:
    layers[index].dropout.p = 0.5


def double_with_casts(layers: Any, index: int) -> None:
    layers[index] = nn.Sequential(Cast(torch.float64), layers[index].double(), Cast(torch.float32))


def bfloat_with_casts(layers: Any, index: int) -> None:
    inner = layers[index].bfloat16()
    layers[index] = nn.Sequential(Cast(torch.bfloat16), inner, Cast(torch.float32))


class Cast(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)


def tie_to_neighbour(layers: Any, index: int) -> None:
    layers[index].up.weight = layers[index - 1].up.weight


def tie_inside(layers: Any, index: int) -> None:
    layers[index].down.weight = nn.Parameter(layers[index].up.weight.detach().t().clone())
    layers[index].norm.bias = layers[index].norm.weight


def share_block(layers: Any, index: int) -> None:
    layers[index] = layers[index - 1]


def share_buffer(layers: Any, index: int) -> None:
    layers[index].offset = layers[index - 1].offset


def buffer_is_weight(layers: Any, index: int) -> None:
    layers[index].offset = layers[index].norm.weight.detach()


def add_hook(layers: Any, index: int) -> None:
    layers[index].register_forward_hook(lambda module, given, out: out * 1.5)


def add_hook_inside(layers: Any, index: int) -> None:
    layers[index].up.register_forward_pre_hook(lambda module, given: (given[0] + 1.0,))


def add_backward_hook(layers: Any, index: int) -> None:
    layers[index].down.register_full_backward_hook(lambda module, given, out: (given[0] * 2.0,))


def add_hook_of_gradient(layers: Any, index: int) -> None:
    layers[index].up.weight.register_hook(lambda grad: grad * 3.0)


def scale(layers: Any, index: int) -> None:
    layers[index].scale = 0.5


def scale_by_int(layers: Any, index: int) -> None:
    layers[index].scale = 2


def other_activation(layers: Any, index: int) -> None:
    layers[index].activation = F.relu


def other_setting(layers: Any, index: int) -> None:
    layers[index].settings["residual"] = False


def new_settings(layers: Any, index: int) -> None:
    layers[index].settings = {"residual": 0, "more": 1}


def add_skip(layers: Any, index: int) -> None:
    layers[index].skip = nn.Linear(SIZE, SIZE)


def no_bias(layers: Any, index: int) -> None:
    layers[index].down.bias = None


def wider(layers: Any, index: int) -> None:
    layers[index].up = nn.Linear(SIZE, 3 * SIZE)
    layers[index].down = nn.Linear(3 * SIZE, SIZE)


def other_norm(layers: Any, index: int) -> None:
    layers[index].norm = nn.RMSNorm(SIZE)


def other_epsilon(layers: Any, index: int) -> None:
    layers[index].norm.eps = 0.1


def own_forward(layers: Any, index: int) -> None:
    layers[index].forward = lambda x: x * 2.0


def other_strides(layers: Any, index: int) -> None:
    weight = layers[index].up.weight
    layers[index].up.weight = nn.Parameter(weight.detach().t().contiguous().t())


def expanded_buffer(layers: Any, index: int) -> None:
    layers[index].offset = torch.ones(1).expand(SIZE)


def parameter_to_buffer(layers: Any, index: int) -> None:
    weight = layers[index].norm.weight.detach()
    del layers[index].norm.weight
    layers[index].norm.register_buffer("weight", weight)


DIFFERENCES = [
    *(freeze, freeze_all, set_eval, set_eval_of_dropout, set_dropout, double_with_casts),
    *(bfloat_with_casts, tie_to_neighbour, tie_inside, share_block, share_buffer),
    *(buffer_is_weight, add_hook, add_hook_inside, add_backward_hook, add_hook_of_gradient),
    *(scale, scale_by_int, other_activation, other_setting, new_settings, add_skip, no_bias),
    *(wider, other_norm, other_epsilon, own_forward, other_strides, expanded_buffer),
    parameter_to_buffer,
]


def steps(model: nn.Module, call: Any, change: Callable[[Any], None] | None) -> list[Any]:
    """Three training steps, with a change of the model before the second, and a call without
    gradients."""
    found: list[Any] = []
    for step in range(3):
        if step == 1 and change is not None:
            change(model)
        torch.manual_seed(step)
        x = torch.randn(2 + step // 2, SIZE)
        out = call(x)
        model.zero_grad()
        out.sin().sum().backward()
        found += [out.detach(), torch.rand(1)]
        found += [p.grad if p.grad is None else p.grad.clone() for p in model.parameters()]
    with torch.no_grad():
        found.append(call(torch.ones(2, SIZE)))
    return [*found, *(buffer.clone() for buffer in model.buffers())]


def assert_as_plain(
    start: Callable[[Any], None] | None, change: Callable[[Any], None] | None
) -> None:
    models = [made(start) for _ in range(2)]
    compiled = stator.compile(models[1], backend="eager")
    expected, found = steps(models[0], models[0], change), steps(models[1], compiled, change)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)


def made(start: Callable[[Any], None] | None) -> Stack:
    torch.manual_seed(7)
    model = Stack()
    if start is not None:
        start(model)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("index", range(DEPTH))
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_one_block_that_differs_is_as_in_python(difference: Any, index: int) -> None:
    assert_as_plain(lambda model: difference(model.layers, index), None)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(DEPTH))
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_one_block_that_differs_from_the_second_call_on(difference: Any, index: int) -> None:
    assert_as_plain(None, lambda model: difference(model.layers, index))


def instructions(call: Callable[[], object]) -> int:
    """Count the instructions that are interpreted in a call."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_qualname == "SymbolicDomain.at"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def interpreted(block: Callable[[int], nn.Module], depth: int) -> int:
    model = Stack(block, depth)
    compiled = stator.compile(model, backend="eager", options={"recompile_limit": depth + 8})
    return instructions(lambda: compiled(torch.ones(2, SIZE)))


def test_equal_blocks_are_interpreted_once() -> None:
    one, two, many = (interpreted(Block, depth) for depth in (1, 2, 4))
    assert many - two < 2 * 0.25 * one
    assert two < 1.5 * one


class Views(nn.Module):
    """Gives views: of its argument, of a parameter, of hidden memory, and several of one tensor."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, SIZE))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = (x @ self.weight.t()).view(-1)
        return x.t(), x.detach(), self.weight.t(), hidden, hidden[1:], *(x * 2).chunk(2, dim=-1)


@pytest.mark.parametrize("written", range(7))
def test_memory_that_results_share_is_written_to(written: int) -> None:
    def program(layers: nn.ModuleList, x: Tensor) -> list[tuple[Tensor, ...]]:
        found = [layer(x + index) for index, layer in enumerate(layers)]
        found[1][written].add_(1.0)
        found[2][written].mul_(2.0)
        return [*found, layers[0](found[1][1])]

    with torch.no_grad():
        models = [nn.ModuleList(map(Views, range(3))) for _ in range(2)]
        expected = program(models[0], torch.ones(2, SIZE))
        found = stator.compile(program, backend="eager")(models[1], torch.ones(2, SIZE))
    for one, other in zip(sum(found, ()), sum(expected, ()), strict=True):
        assert torch.equal(one, other)
        assert one._is_view() == other._is_view()
    assert all(map(torch.equal, models[1].parameters(), models[0].parameters()))


class Counting(nn.Module):
    """Has effects that the next call reads."""

    count = 0

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self.log: list[int] = []

    def forward(self, x: Tensor, shared: dict[str, Any]) -> Tensor:
        shared["sum"] = shared.get("sum", 0) + 1
        Counting.count += 1
        self.log.append(self.index)
        result: Tensor = x * shared["sum"] + Counting.count
        return result


def test_effects_of_each_call_are_kept() -> None:
    def program(layers: nn.ModuleList, x: Tensor) -> tuple[Tensor, dict[str, Any]]:
        shared: dict[str, Any] = {}
        for layer in layers:
            x = layer(x, shared)
        return x, shared

    results = []
    for run in (program, stator.compile(program, backend="eager")):
        Counting.count = 0
        layers = nn.ModuleList(map(Counting, range(4)))
        out, shared = run(layers, torch.ones(2))
        results.append((out.tolist(), shared, Counting.count, [layer.log for layer in layers]))
    assert results[0] == results[1]


class Reading(nn.Module):
    """Reads what the program changes between the calls."""

    def __init__(self, state: dict[str, float]) -> None:
        super().__init__()
        self.state = state

    def forward(self, x: Tensor) -> Tensor:
        return x * self.state["scale"] + SETTINGS["offset"]


SETTINGS = {"offset": 0.0}


@pytest.mark.parametrize("changed", ["own", "shared", "global", "new"])
def test_a_change_between_two_calls_is_seen(changed: str) -> None:
    def program(layers: nn.ModuleList, x: Tensor) -> Tensor:
        made = {"scale": 1.0}
        for index, layer in enumerate(layers):
            if changed == "own" or (changed == "shared" and index == 2):
                layer.state["scale"] += 1.0  # type: ignore[operator, index]
            if changed == "new":
                layer.state, made["scale"] = made, made["scale"] * 2.0  # type: ignore[assignment]
            SETTINGS["offset"] += changed == "global"
            x = layer(x)
        return x

    results = []
    for run in (program, stator.compile(program, backend="eager")):
        SETTINGS["offset"] = 0.0
        shared = {"scale": 1.0}
        states = [shared if changed == "shared" else {"scale": 1.0} for _ in range(5)]
        layers = nn.ModuleList(map(Reading, states))
        results += [run(layers, torch.ones(2)), run(layers, torch.ones(2))]
    assert torch.equal(results[0], results[2])
    assert torch.equal(results[1], results[3])


def test_dropout_draws_as_in_python() -> None:
    def block(index: int) -> nn.Module:
        return nn.Sequential(nn.Linear(SIZE, SIZE), nn.Dropout(0.5))

    torch.manual_seed(3)
    model = Stack(block)
    compiled, x = stator.compile(model, backend="eager"), torch.ones(2, SIZE)
    torch.manual_seed(5)
    expected = [model(x), model(x), torch.rand(2)]
    torch.manual_seed(5)
    found = [compiled(x), compiled(x), torch.rand(2)]
    assert all(map(torch.equal, found, expected))


def test_modules_of_nodes_are_those_of_each_call() -> None:
    paths: list[str] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        for node in module.graph.find_nodes(op="call_function", target=F.gelu):
            paths.extend(path for path, _ in node.meta["nn_module_stack"].values())
        return module

    stator.compile(Stack(), backend=backend)(torch.ones(2, SIZE))
    layers = [path for path in paths if "layers" in path]
    assert [path.rpartition(".")[2] for path in layers] == [str(i) for i in range(DEPTH)]


def test_equal_blocks_may_be_interpreted_each() -> None:
    compiled = stator.compile(Stack(Block, 3), backend="eager", options={"regions": "off"})
    x = torch.ones(2, SIZE)
    assert instructions(lambda: compiled(x)) > 1.5 * interpreted(Block, 3)


class Configured(nn.Module):
    def __init__(self, shared: list[float]) -> None:
        super().__init__()
        self.inner = nn.Linear(SIZE, SIZE)
        self.shared = shared

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.inner(x)) * self.shared[0]


class ConfiguredStack(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.shared = [factor]
        self.layers = nn.ModuleList(Configured(self.shared) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.shared[0]
        for layer in self.layers:
            x = layer(x)
        return x


def test_entry_serves_models_whose_blocks_share_another_object() -> None:
    counting = CountingBackend()
    compiled: Any = stator.compile(lambda model, x: model(x), backend=counting)
    x = torch.ones(2, SIZE)
    first, second = ConfiguredStack(2.0), ConfiguredStack(2.0)
    for model in (first, second):
        assert torch.equal(compiled(model, x), model(x))
    assert len(counting.graphs) == 1

    setattr(second.layers[2], "shared", [3.0])
    assert torch.equal(compiled(second, x), second(x))
    assert len(counting.graphs) == 2


def test_what_equal_calls_keep_is_released_with_the_trace() -> None:
    """Without the garbage collector: nothing of a trace is kept by a cycle."""
    made: list[weakref.ref[object]] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_qualname == "EqualCalls.begun":
            made.append(weakref.ref(frame.f_locals["self"]))

    compiled = stator.compile(Stack(depth=3), backend="eager")
    gc.disable()
    sys.setprofile(profile)
    try:
        compiled(torch.ones(2, SIZE))
        sys.setprofile(None)
        alive = [each() is not None for each in made]
    finally:
        sys.setprofile(None)
        gc.enable()
    assert alive
    assert not any(alive)


REPORTED = {
    "eval": (set_eval_of_dropout, "layers.2 was not: dropout.training is"),
    "frozen": (freeze, "layers.2 was not: up.weight is one with requires_grad False"),
    "scale": (lambda layers, i: setattr(layers[i], "scale", 2.0), "layers.2 was not: scale is 2.0"),
    "hook": (
        lambda layers, i: layers[i].register_forward_hook(lambda *args: None),
        "layers.2 was not: _forward_hooks is",
    ),
}


@pytest.mark.parametrize(("change", "line"), REPORTED.values(), ids=REPORTED)
def test_the_report_names_the_block_that_differs_and_how(change: Any, line: str) -> None:
    model = Stack()
    change(model.layers, 2)
    compiled: Any = stator.compile(model, backend="eager")
    with torch.no_grad():
        compiled(torch.randn(2, SIZE))
    text = str(compiled.report)
    assert "calls of Block that were recorded like an earlier one: 2" in text
    assert line in text


def test_the_report_of_equal_blocks_has_no_differences() -> None:
    compiled: Any = stator.compile(Stack(), backend="eager")
    with torch.no_grad():
        compiled(torch.randn(2, SIZE))
    [*lines] = compiled.report.entries[0].equal_calls
    assert lines == ["calls of Block that were recorded like an earlier one: 3"]


def test_a_reason_names_the_block_that_has_changed() -> None:
    model: Any = Stack()
    compiled: Any = stator.compile(model, backend="eager")
    for _ in range(2):
        with torch.no_grad():
            compiled(torch.randn(2, SIZE))
        model.layers[3].dropout.eval()
    assert "layers" in compiled.report.recompiles[0].source
    assert "['3']" in compiled.report.recompiles[0].source
