"""What the nodes of a graph say about the program, also when the graph is traced again."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import stator
import torch
from stator_bytecode import HandlerTable
from stator_subgraphs import OPERATORS
from stator_variables import Space, from_traced
from torch import nn

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same
from integration_tests.transforms.operator_matrix import OPERATORS as RUNS
from integration_tests.transforms.operator_matrix import bare, inputs

KEPT = ("nn_module_stack", "source_fn_stack", "stack_trace", "custom")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.out = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        z = y.sin() * y.shape[0]
        made: torch.Tensor = self.out(z) + torch.cat([y, y]).chunk(2)[1]
        return made


def captured(subject: Any, *args: Any, **options: Any) -> torch.fx.GraphModule:
    backend = Counting()
    stator.compile(subject, backend=backend, fullgraph=True, **options)(*args)
    assert backend.count == 1
    return backend.graphs[0]


def described(graph: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    nodes = [node for node in graph.graph.nodes if node.op.startswith("call_")]
    return [(node.target, *(node.meta.get(field) for field in KEPT)) for node in nodes]


def inputs_of(graph: torch.fx.GraphModule, *args: Any) -> list[Any]:
    """Values for the placeholders: `args` first, then tensors of the sizes that the graph was made
    with."""
    examples = [node.meta["example_value"] for node in graph.graph.find_nodes(op="placeholder")]
    return [*args, *(torch.randn(tuple(example.shape)) for example in examples[len(args) :])]


def test_nodes_say_lines_and_modules() -> None:
    graph = captured(Block(), torch.ones(2, 4))
    rows = described(graph)
    paths = [[path for path, _ in row[1].values()] for row in rows if row[0] is torch._C._nn.linear]
    assert paths == [["self", "self.layers", "self.layers.0"], ["self", "self.out"]]
    assert all("in Block.forward" in row[3] for row in rows)
    assert all(row[2] for row in rows)


def test_printed_graph_shows_the_lines_of_the_user() -> None:
    graph, printed = captured(Block(), torch.ones(2, 4)), io.StringIO()
    with contextlib.redirect_stdout(printed):
        graph.print_readable()
    assert "test_graph_metadata.py" in printed.getvalue()
    assert "code: z = y.sin() * y.shape[0]" in printed.getvalue()


def test_metadata_survives_several_rounds_of_tracing() -> None:
    first = captured(Block(), torch.ones(2, 4))
    graph = first
    for _ in range(3):
        graph = captured(graph, *inputs_of(graph, torch.ones(2, 4)))
        assert described(graph) == described(first)


@pytest.mark.parametrize("operator", RUNS)
def test_metadata_of_operators_and_their_bodies_survives_several_rounds(operator: str) -> None:
    given = dict(zip("xy", inputs(operator), strict=True))
    first = graph = captured(bare(operator, "closure over tensor"), *given.values())
    assert all(source and line for _, _, source, line, _ in with_bodies(first))
    # in the order of their use
    args = [given[node.name] for node in first.graph.find_nodes(op="placeholder")]
    for _ in range(3):
        graph = captured(graph, *args)
        assert with_bodies(graph) == with_bodies(first)


def with_bodies(graph: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    bodies = [child for child in graph.children() if isinstance(child, torch.fx.GraphModule)]
    return described(graph) + [row for body in bodies for row in with_bodies(body)]


def test_metadata_is_not_shared_between_nodes() -> None:
    first = captured(Block(), torch.ones(2, 4))
    again = captured(first, *inputs_of(first, torch.ones(2, 4)))
    for node in again.graph.nodes:
        node.meta.get("nn_module_stack", {}).clear()
    assert all(row[1] for row in described(first))


def test_graph_with_symbols_is_traced_again() -> None:
    graph = captured(lambda x: (x * x.shape[0]).reshape(-1), torch.ones(3, 4), dynamic=True)
    again = captured(graph, 3, 4, torch.ones(3, 4), dynamic=True)
    assert [row for row in described(again) if row[0] != "size"] == [
        row for row in described(graph) if row[0] != "size"
    ]


def test_graph_of_fx_is_traced_inside_a_function() -> None:
    traced = torch.fx.symbolic_trace(Block())
    for node in traced.graph.nodes:
        node.meta["custom"] = {"name": node.name}
    graph = captured(lambda x: traced(x) * 2, torch.ones(2, 4))
    names = [
        node.meta.get("custom", {}).get("name")
        for node in graph.graph.nodes
        if node.op.startswith("call_")
    ]
    assert names[0] == "layers_0"
    assert names[-1] is None


def test_graph_module_runs_as_it_did() -> None:
    traced = torch.fx.symbolic_trace(Block())
    compiled = stator.compile(lambda x: traced(x) * 2, backend="eager")
    assert_same(lambda x: traced(x) * 2, compiled, lambda: (torch.ones(2, 4),), gradients=False)


def placed_nowhere(x: torch.Tensor) -> torch.Tensor:
    return -x


planted: HandlerTable[Any, Any] = HandlerTable("faults")


@planted.handles(placed_nowhere)
def without_line(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    traced = t.graph.call(torch.neg, (args[0].traced,), {})
    del traced.node.meta["stack_trace"]
    return from_traced(t, traced)


@pytest.mark.parametrize("in_body", [False, True])
@pytest.mark.parametrize("name", ["check", "STATOR_CHECK"])
def test_faulty_graph_is_found(name: str, in_body: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x: torch.Tensor) -> Any:
        return (
            torch.ops.higher_order.wrap(lambda a: placed_nowhere(a) * 2, x)
            if in_body
            else placed_nowhere(x) + 1
        )

    monkeypatch.setenv("STATOR_CHECK", "1" if name == "STATOR_CHECK" else "0")
    options = {} if name == "STATOR_CHECK" else {"check": True}
    stack = stator.Stack(operators=lambda: OPERATORS.merged_with(planted))
    compiled = stator.compile(fn, backend="eager", options=options, stack=stack)
    with pytest.raises(
        stator.InternalError,
        match="wrap_body_0: neg has no line" if in_body else "neg has no line",
    ):
        compiled(torch.ones(2))
