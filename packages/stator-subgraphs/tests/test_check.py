"""Each fault of a graph is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from stator_subgraphs import check_graph
from stator_subgraphs.conformance import Driver
from stator_variables import GraphValue
from torch import fx


def finished(driver: Driver) -> fx.GraphModule:
    x = driver.input("x", torch.ones(4), "dynamic")
    module: Any = driver.finish(driver.call(torch.neg, x)).module
    assert isinstance(module, fx.GraphModule)
    return module


def without_example(graph: fx.Graph) -> None:
    for node in graph.nodes:
        node.meta.pop("example_value", None)


def without_type(graph: fx.Graph) -> None:
    for node in graph.nodes:
        node.type = None


def without_line(graph: fx.Graph) -> None:
    for node in graph.nodes:
        node.meta.pop("stack_trace", None)


def without_symbol(graph: fx.Graph) -> None:
    graph.erase_node(next(iter(graph.nodes)))


def late_placeholder(graph: fx.Graph) -> None:
    list(graph.nodes)[-2].append(next(iter(graph.nodes)))


def nested_output(graph: fx.Graph) -> None:
    output = list(graph.nodes)[-1]
    output.args = ((output.args[0],),)


def bare_output(graph: fx.Graph) -> None:
    output = list(graph.nodes)[-1]
    output.args = (output.args[0][0],)


def no_output(graph: fx.Graph) -> None:
    graph.erase_node(list(graph.nodes)[-1])


def use_before(graph: fx.Graph) -> None:
    _, x, neg, _ = graph.nodes
    x.prepend(neg)


def leaked(kind: str) -> Any:
    """A fault: an argument that belongs to the trace."""

    def spoil(graph: fx.Graph) -> None:
        symbol, x, neg, _ = graph.nodes
        example = x.meta["example_value"]
        values = {
            "SymInt": symbol.meta["example_value"],
            "FakeTensor": example,
            "GraphValue": GraphValue(x, example),
            "Proxy": fx.Proxy(x),
        }
        neg.args = (values[kind],)

    return spoil


def other_graph(graph: fx.Graph) -> None:
    """No lint: it stops at the first fault."""
    list(graph.nodes)[-2].args = (fx.Graph().placeholder("elsewhere"),)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (without_example, "has no example"),
        (without_type, "has no type"),
        (without_line, "no line of the program"),
        (without_symbol, "nothing before it binds"),
        (late_placeholder, "comes after an operator"),
        (nested_output, "the output has"),
        (bare_output, "the output is no tuple"),
        (no_output, "is no output"),
        (use_before, "lint"),
        (other_graph, "of another graph"),
        *(
            (leaked(kind), f"has a {kind} of the trace")
            for kind in ("SymInt", "FakeTensor", "GraphValue", "Proxy")
        ),
    ],
)
def test_a_fault_is_told(driver: Driver, spoil: Any, fault: str) -> None:
    module = finished(driver)
    spoil(module.graph)
    assert any(fault in told for told in check_graph(module)), check_graph(module)


def test_faults_of_bodies_are_told(driver: Driver) -> None:
    module = finished(driver)
    module.add_submodule("body", finished_body())
    assert any(told.startswith("body: ") for told in check_graph(module))


def finished_body() -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.placeholder("x"))
    return fx.GraphModule({}, graph)
