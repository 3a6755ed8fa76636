"""`nested_compile_region` over layers that are alike: traced once, one body, and what plain Python
gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator_subgraphs import OutputGraph
from torch import Tensor, nn
from torch.compiler import nested_compile_region

from integration_tests.support.oracle import assert_same

COUNT = 6


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale, self.names = nn.Linear(3, 3), 2.0, ["a"]
        self.register_buffer("shift", torch.ones(3))
        self.shift: Tensor

    @nested_compile_region
    def forward(self, x: Tensor, *more: Any) -> Any:
        y = self.inner(x) * self.scale + self.shift * len(self.names)
        return y if self.training else y.sin(), [x, None, 3]


class Other(Layer):
    def extra(self) -> int:
        return 5


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(COUNT)])

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x, (before, nothing, three) = layer(x)
        return x, before, nothing, three


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bodies that were traced."""
    seen: list[str] = []
    original = OutputGraph.subgraph

    def subgraph(self: OutputGraph, hint: str) -> Any:
        seen.append(hint)
        return original(self, hint)

    monkeypatch.setattr(OutputGraph, "subgraph", subgraph)
    return seen


def make() -> tuple[Tensor]:
    return (torch.linspace(-1, 1, 6).reshape(2, 3),)


def leaf() -> tuple[Tensor]:
    return (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),)


def check(model: Any, make: Callable[[], Any] = make, **options: Any) -> Any:
    twin = copy.deepcopy(model)
    compiled = stator.compile(twin, fullgraph=True, **{"backend": "eager", **options})
    assert_same(model, compiled, make, owners=(model, twin))
    return compiled


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_layers_that_are_alike_are_traced_once(
    traces: list[str], backend: str, dynamic: bool | None
) -> None:
    model = Stack()
    for layer in model.layers if dynamic else ():  # sizes of buffers are symbols then, each its own
        del layer.shift
        layer.shift = nn.Parameter(torch.ones(3))
    with torch.no_grad():
        (graph,) = check(model, backend=backend, dynamic=dynamic).report.graphs
    assert traces == ["subgraph"]
    assert {name for name, _ in graph.named_modules() if name} == {"subgraph_0"}


@pytest.mark.parametrize("inputs", [make, leaf])
def test_first_layer_is_another_one_where_gradients_begin(traces: list[str], inputs: Any) -> None:
    check(Stack(), inputs)
    assert len(traces) == 2


def another_constant(model: Any) -> None:
    model.layers[3].scale = 7.0


def another_class(model: Any) -> None:
    model.layers[2] = Other()


def another_dtype(model: Any) -> None:
    model.layers[5].shift = torch.ones(3, dtype=torch.float64)


def another_shape(model: Any) -> None:
    model.layers[1].shift = torch.ones(())


def another_mode(model: Any) -> None:
    model.layers[2].eval()


def another_list(model: Any) -> None:
    model.layers[5].names.append("b")


def hook(model: Any) -> None:
    model.layers[3].inner.register_forward_hook(lambda module, args, out: out * 3)


def no_bias(model: Any) -> None:
    model.layers[2].inner.bias = None


def frozen(model: Any) -> None:
    model.layers[3].inner.weight.requires_grad_(False)


def tied(model: Any) -> None:
    model.layers[4].inner.weight = model.layers[1].inner.weight


def tied_buffer(model: Any) -> None:
    model.layers[4].shift = model.layers[2].shift


def twice(model: Any) -> None:
    model.layers[4] = model.layers[0]


def own_forward(model: Any) -> None:
    model.layers[2].forward = lambda x: (x * 2, [x, None, 4])


CHANGES = [
    another_constant,
    another_class,
    another_dtype,
    another_shape,
    another_mode,
    another_list,
    hook,
    no_bias,
    frozen,
    tied,
    tied_buffer,
    twice,
    own_forward,
]


@pytest.mark.parametrize("change", CHANGES)
def test_layer_that_differs_is_what_it_is(change: Callable[[Any], None]) -> None:
    model = Stack()
    change(model)
    check(model)


@pytest.mark.parametrize("change", CHANGES)
def test_layer_that_is_changed_later_is_noticed(change: Callable[[Any], None]) -> None:
    model = Stack()
    compiled = stator.compile(model, backend="eager")
    compiled(*make())
    change(model)
    expected = model(*make())
    torch.testing.assert_close(compiled(*make()), expected, rtol=0, atol=0)


STATE: dict[str, Any] = {"n": 1, "seen": []}
LAYERS = [Layer() for _ in range(4)]


@nested_compile_region
def reads_state(layer: Any, x: Tensor) -> Any:
    return layer.inner(x) * STATE["n"]


@nested_compile_region
def first_of(layer: Any, a: Tensor, b: Tensor, n: Any = 1) -> Any:
    return layer.inner(a) - b * n if a is not b else a * 0


def changing_state(x: Tensor) -> Any:
    for layer in LAYERS:
        x = reads_state(layer, x)
        STATE["n"] += 1
    STATE["n"] = 1
    return x


def arguments_in_other_roles(x: Tensor) -> Any:
    y = x * 2
    found = [first_of(LAYERS[0], x, y), first_of(LAYERS[1], y, y), first_of(LAYERS[2], y, x)]
    found += [
        first_of(LAYERS[3], x, y, n=2),
        first_of(LAYERS[0], x, y, True),
        first_of(LAYERS[1], x, y, -0.0),
    ]
    return found


def other_modes(x: Tensor) -> Any:
    first = first_of(LAYERS[0], x * 1, x)
    with torch.no_grad():
        second = first_of(LAYERS[1], x * 1, x)
    return first, second, second.requires_grad


def closures(x: Tensor) -> Any:
    found = []
    for n in range(3):

        @nested_compile_region
        def block(layer: Any, a: Tensor) -> Any:
            return layer.inner(a) * n  # noqa: B023  # called at once

        found.append(block(LAYERS[n], x))
    return found


def after_a_break(x: Tensor) -> Any:
    found = [first_of(LAYERS[0], x * 1, x)]
    try:
        wrapped = torch.ops.higher_order.wrap(
            lambda a: (first_of(LAYERS[1], a * 3, a), print(end="")), x
        )
    finally:
        found.append(first_of(LAYERS[2], x * 1, x))
    return found, wrapped[0]


@pytest.mark.parametrize(
    "fn", [changing_state, arguments_in_other_roles, other_modes, closures, after_a_break]
)
def test_region_sees_what_it_would_plainly(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, leaf)
    assert_same(fn, compiled, make)
