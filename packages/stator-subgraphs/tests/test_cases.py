"""Programs and the graphs they give, as text: `cases/*.txt` hold both, divided by a line of
dashes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations
from torch import fx

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
DIVIDER = "-" * 20 + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    program, _, wanted = path.read_text().partition(DIVIDER)
    printed = "".join(printout(traced(program)))
    if request.config.getoption("--update-cases"):
        path.write_text(program + DIVIDER + printed)
    else:
        assert printed == wanted


def traced(program: str) -> Any:
    graph = OutputGraph(FixedLocations(), capture_data=True)
    driver = Driver(graph)
    scope: dict[str, Any] = {"torch": torch, "F": F, "operator": operator, "graph": graph}
    scope |= {
        "input": driver.input,
        "call": driver.call,
        "finish": driver.finish,
        "hops": torch.ops.higher_order,
    }
    with graph.tracing():
        exec(program, scope)
    return scope["captured"]


def printout(captured: Any) -> Iterator[str]:
    yield from graph_lines("graph", captured.module)
    for fact in captured.shape_guards():
        named = ", ".join(f"{name} = {source}" for name, source in fact.expression.sources.items())
        yield f"guard {fact.expression.text}  # {named}\n"


def graph_lines(name: str, module: fx.GraphModule) -> Iterator[str]:
    yield f"{name}:\n"
    for node in module.graph.nodes:
        yield f"  {node.format_node()}\n" if node.op != "output" else f"  return {node.args[0]}\n"
    for child, body in module.named_children():
        if isinstance(body, fx.GraphModule):
            yield from graph_lines(child, body)
