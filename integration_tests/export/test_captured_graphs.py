"""Graphs that were captured before, by stator or by torch, are captured again whole."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as map_rows
from torch.export import Dim, ExportedProgram
from torch.nn.attention.flex_attention import flex_attention
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from integration_tests.export import comparison
from integration_tests.export.programs import PROGRAMS
from integration_tests.support.oracle import assert_same


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 3


@torch.compiler.nested_compile_region
def region(x: Tensor) -> Tensor:
    return x.sin() + 1


def branches(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


def repeated(x: Tensor) -> Any:
    loop: Any = while_loop
    return loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))


def attended(x: Tensor) -> Any:
    bias = x.sum()
    heads = x.repeat(128, 6)[:128, :16].reshape(1, 1, 128, 16)
    return flex_attention(heads, heads, heads, score_mod=lambda s, b, h, i, j: s + (i - j) * bias)


def pulled(x: Tensor) -> Any:
    transform: Any = torch.func.vjp
    value, pull = transform(lambda y: (y.sin(), y * 2), x)
    return value, pull((x, x))


def pushed(x: Tensor) -> Any:
    return torch.func.jvp(lambda y: y.sin() * x, (x,), (torch.ones_like(x),))


def per_sample(x: Tensor) -> Any:
    weight = x[0] + 1
    return torch.func.vmap(torch.func.grad(lambda row: ((row * weight) ** 2).sum()))(x)


def with_value(x: Tensor) -> Any:
    def loss(y: Tensor) -> Any:
        return (y**2).sum(), (y + 1, y.cos())

    return torch.func.grad_and_value(loss, has_aux=True)(x)


def scaled(x: Tensor) -> Any:
    return (x.sin() * x.sum()).sum(0)


def loss(x: Tensor) -> Any:
    return (x.cos() ** 2).sum()


def across(x: Tensor) -> Any:
    """Jacobians of two arguments, one with an auxiliary result."""
    both = torch.func.jacrev(lambda y, w: y.sin() @ w, argnums=(0, 1))(x, x.t().exp())
    return both, torch.func.jacrev(lambda y: (y * y.sum(), y.cos()), has_aux=True)(x)


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "tag_activation_checkpoint": lambda x: checkpoint(
        lambda y: (y.sin() * y).cos(), x, use_reentrant=False
    ),
    "invoke_subgraph": lambda x: region(x) + region(x * 2),
    "autograd_function_apply": lambda x: Sine.apply(x) * 2,  # type: ignore[no-untyped-call]
    "flex_attention": attended,
    "cond": branches,
    "while_loop": repeated,
    "scan": lambda x: scan(lambda c, y: (c + y, c * y), x[0], x, dim=0),
    "associative_scan": lambda x: associative_scan(
        lambda a, b: a + b, x, 0, combine_mode="generic"
    ),
    "map": lambda x: map_rows(lambda y: y.sin(), x),  # type: ignore[arg-type, misc]
    "grad": lambda x: torch.func.grad(lambda y: (y**2).sum())(x) * 2,
    "vmap": lambda x: torch.func.vmap(lambda y: y.sum() * x)(x),
    "vjp": pulled,
    "jvp": pushed,
    "vmap of grad": per_sample,
    "grad with auxiliary results": with_value,
    "jacfwd": torch.func.jacfwd(scaled),
    "jacrev": torch.func.jacrev(scaled),
    "jacrev of two arguments": across,
    "hessian": torch.func.hessian(loss),
}
TRAINED = ("tag_activation_checkpoint", "autograd_function_apply", "grad", "vmap", "cond")


def graph_of_stator(fn: Callable[[Tensor], Any], x: Tensor) -> torch.fx.GraphModule:
    captured = stator.capture(fn, (x,))
    assert [spec.source for spec in captured.inputs] == ["x"]
    return captured.graph


def graph_of_torch(fn: Callable[[Tensor], Any], x: Tensor) -> torch.fx.GraphModule:
    graphs = []

    def keep(graph: torch.fx.GraphModule, examples: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(fn, backend=keep, fullgraph=True)(x)
    (graph,) = graphs
    return graph


def argument(name: str) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(4, 3, requires_grad=name in TRAINED)


@pytest.mark.parametrize("source", [graph_of_stator, graph_of_torch])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operator_is_captured_again(name: str, source: Any) -> None:
    graph, x = source(FUNCTIONS[name], argument(name)), argument(name)
    again = stator.compile(graph, fullgraph=True, backend="eager")
    leaves = zip(*(pytree.tree_leaves(run(x)) for run in (again, FUNCTIONS[name])), strict=True)
    for found, expected in leaves:
        torch.testing.assert_close(found, expected)
        if expected.requires_grad:
            grads = [torch.autograd.grad(out.sum(), x)[0] for out in (found, expected)]
            torch.testing.assert_close(*grads)


def linearized(x: Tensor) -> Any:
    scale = x + 1
    value, push = torch.func.linearize(lambda y: (y.sin() * scale).sum(0), x)
    return value, push(x.cos())


def recomputed(x: Tensor) -> Any:
    scale = x.detach() + 1
    made = checkpoint(lambda y, n: ((y * scale).cos() ** n, y + 1), x, 3, use_reentrant=True)
    return made[0] * 2, made[1]


@pytest.mark.parametrize(
    ("program", "name"), [(linearized, "jvp"), (recomputed, "tag_activation_checkpoint")]
)
def test_operator_that_torch_does_not_capture_is_captured_again(
    program: Callable[[Tensor], Any], name: str
) -> None:
    """A linear map is captured without gradients, and a reentrant checkpoint with."""
    graph = graph_of_stator(program, argument(name))

    def again(x: Tensor) -> Any:
        return graph(x)

    compiled = stator.compile(again, fullgraph=True, backend="eager")
    assert_same(program, compiled, lambda: (argument(name),))


@pytest.mark.parametrize("name", ["layers", "buffer mutation", "nested containers", "cond"])
@pytest.mark.parametrize("export", [stator.export, torch.export.export])
def test_exported_module_is_captured_whole(name: str, export: Any) -> None:
    program = PROGRAMS[name]
    args, kwargs = program.args(), program.kwargs()
    made = comparison.exported(export, program).program
    assert made is not None
    results = []
    for compiles in (False, True):
        run = copy.deepcopy(made).module()
        called: Any = stator.compile(run, fullgraph=True, backend="eager") if compiles else run
        results.append((called(*args, **kwargs), called(*args, **kwargs), dict(run.state_dict())))
    comparison.assert_equal_trees(*results)


def test_guards_of_exported_modules_are_checked() -> None:
    made = stator.export(
        PROGRAMS["layers"].make(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: Dim.DYNAMIC}}
    )
    compiled: Any = stator.compile(made.module(), backend="eager")
    assert compiled(torch.ones(5, 3)).shape == (5, 4)
    with pytest.raises(AssertionError, match="Guard failed"):
        compiled(torch.ones(5, 2))


class Quantized(nn.Module):
    """The form of a linear layer that pt2e quantization gives."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        weight = torch.randint(-127, 127, (4, 3), dtype=torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scales", torch.rand(4) / 100)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: Tensor) -> Any:
        ops = torch.ops.quantized_decomposed
        limits = -128, 127, torch.int8
        given = ops.quantize_per_tensor.default(x, 0.05, 3, *limits)
        weight = ops.dequantize_per_channel.default(
            self.weight, self.scales, self.zeros, 0, *limits
        )
        return nn.functional.linear(
            ops.dequantize_per_tensor.default(given, 0.05, 3, *limits), weight
        )


def test_quantized_graph_is_captured_whole() -> None:
    import torch.ao.quantization.fx._decomposed

    x = torch.randn(5, 3)
    made: Any = torch.export.export(Quantized(), (x,), strict=False).module()
    graph = stator.capture(made, (x,)).graph
    targets = [str(node.target) for node in graph.graph.nodes]
    assert "quantized_decomposed.quantize_per_tensor.default" in targets
    compiled = stator.compile(made, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), made(x))


# -- metadata --------------------------------------------------------------------------------------
class Annotated(nn.Module):
    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Any:
        self.calls.add_(1)
        with torch.fx.traceback.annotate({"stage": 1}):
            y = self.block(x)
            with torch.fx.traceback.annotate({"part": "inner"}):
                y = y.sin()
        return self.block(y), x.shape[0]


KEPT = ("nn_module_stack", "stack_trace", "source_fn_stack", "custom")


def described(program: ExportedProgram) -> list[Any]:
    return [
        (node.name, str(node.target), str(node.meta.get("val")), *map(node.meta.get, KEPT))
        for node in program.graph.nodes
    ]


def test_three_rounds_give_the_same_graph_and_metadata() -> None:
    x, shapes = torch.randn(4, 3), {"x": {0: Dim.DYNAMIC}}
    program = stator.export(Annotated(), (x,), dynamic_shapes=shapes)
    first = described(program)
    for _ in range(3):
        module = program.module()
        program = stator.export(module, (x,), dynamic_shapes=shapes)
        assert described(program) == first
        assert stator.capture(module, (x,), dynamic_shapes=shapes).graph is not None


def test_annotations_are_those_of_torch() -> None:
    x = torch.randn(4, 3)
    ours, theirs = (
        [
            (node.name, node.meta.get("custom"))
            for node in export(Annotated(), (x,)).graph.nodes
            if node.op == "call_function"
        ]
        for export in (stator.export, lambda *a: torch.export.export(*a, strict=True))
    )
    assert ours == theirs


def test_captured_graph_keeps_metadata_of_an_exported_one() -> None:
    program = stator.export(Annotated(), (torch.randn(4, 3),))
    graph = stator.capture(program.module(), (torch.randn(4, 3),)).graph
    wanted = {
        str(node.target): [node.meta.get(name) for name in KEPT]
        for node in program.graph.nodes
        if node.op == "call_function"
    }
    found = {
        str(node.target): [node.meta.get(name) for name in KEPT]
        for node in graph.graph.nodes
        if node.op == "call_function" and str(node.target) in wanted
    }
    assert found == wanted


def test_parameter_with_the_name_of_the_captured_function() -> None:
    def fn(function_: Tensor, function: Tensor) -> Tensor:
        return function_ * 2 + function

    captured = stator.capture(fn, (torch.ones(3), torch.zeros(3)))
    assert [spec.source for spec in captured.inputs] == ["function_", "function"]
    assert torch.equal(captured.graph(torch.ones(3), torch.ones(3))[0], torch.full((3,), 3.0))
    assert "function_: user input function_" in repr(captured)
    assert "mul = function_ * 2" in repr(captured)
