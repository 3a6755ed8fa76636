"""Programs with higher-order operators and the graphs they give, as text.

``python -m integration_tests.corpora.golden`` writes the graphs anew. A file of `cases/` has
several programs, divided by lines of `=`: a function `program`, a line of `-`, and how its graph
and the bodies in it are printed. Each line of a program stands above the nodes it is due to. A
person reads the diff.
"""

from __future__ import annotations

import itertools
import linecache
import operator
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import attrs
import stator
import torch
from stator_subgraphs import check_graph
from torch import fx
from torch.utils._dtype_abbrs import dtype_abbrs

from integration_tests.corpora.golden import scope

FILES = sorted((pathlib.Path(__file__).parent / "cases").glob("*.txt"))
RULE, DIVIDER = "=" * 40 + "\n", "-" * 40 + "\n"


def cases(path: pathlib.Path) -> list[tuple[str, str]]:
    """Programs, each with its printout."""
    parts = [part.partition(DIVIDER) for part in path.read_text().split(RULE)]
    return [(program, printed) for program, _, printed in parts]


def printout(program: str, path: pathlib.Path) -> str:
    """The graphs that a program gives, one after the other."""
    name = str(path)
    return "".join(line for graph in graphs(program, name) for line in Printer(graph, name).lines())


def graphs(program: str, name: str) -> list[fx.GraphModule]:
    linecache.cache[name] = (
        len(program),
        None,
        program.splitlines(keepends=True),
        name,
    )  # nodes name their lines
    namespace = {**vars(scope), "__name__": "case"}
    exec(compile(program, name, "exec"), namespace)
    given = scope.given_to(namespace["program"])
    torch.manual_seed(0)
    compiled = stator.compile(
        namespace["program"], backend="eager", dynamic=given.dynamic, fullgraph=True
    )
    with torch.set_grad_enabled(given.gradients):
        compiled(*given.tensors())
    assert not compiled.report.failures
    found = compiled.report.graphs
    assert not [fault for graph in found for fault in check_graph(graph)]
    return list(found)


@attrs.define
class Printer:
    """One graph with its bodies; symbols are numbered as they come up, since their names say
    nothing."""

    graph: fx.GraphModule
    file: str  # of the program
    symbols: dict[str, str] = attrs.field(factory=dict)

    def lines(self) -> Iterator[str]:
        for line in self.module_lines("graph", self.graph):
            yield re.sub(r"\bs\d+\b", self._renamed, line)

    def _renamed(self, match: re.Match[str]) -> str:
        return self.symbols.setdefault(match[0], f"s{len(self.symbols)}")

    def module_lines(self, name: str, module: fx.GraphModule) -> Iterator[str]:
        inputs = ", ".join(typed(node) for node in module.graph.nodes if node.op == "placeholder")
        yield f"{name}({inputs}):\n"
        calls = [
            node
            for node in module.graph.nodes
            if node.op in ("call_function", "call_method", "output")
        ]
        for place, nodes in itertools.groupby(calls, self.line_of):
            yield f"    # {place}\n" if place else ""
            yield from map(node_line, nodes)
        for child, body in module.named_children():
            if isinstance(body, fx.GraphModule):
                yield from self.module_lines(child, body)

    def line_of(self, node: fx.Node) -> str:
        """The innermost line of the program that a node is due to."""
        stack = str(node.meta.get("stack_trace", "")).split("  File ")
        mine = [frame for frame in stack if frame.startswith(f'"{self.file}"')]
        return mine[-1].split("\n")[1].strip() if mine else ""


def node_line(node: fx.Node) -> str:
    if node.op == "output":
        return f"    return {argument(node.args[0])}\n"
    args = [argument(arg) for arg in node.args] + [
        f"{name}={argument(arg)}" for name, arg in node.kwargs.items()
    ]
    if node.target is operator.getitem:
        return f"    {typed(node)} = {args[0]}[{args[1]}]\n"
    name = f".{node.target}" if node.op == "call_method" else callable_name(node.target)
    return f"    {typed(node)} = {name}({', '.join(args)})\n"


def callable_name(target: Any) -> str:
    return str(getattr(target, "__name__", target))


def argument(value: Any) -> str:
    if isinstance(value, fx.Node):
        return str(value.target) if value.op == "get_attr" else value.name
    if isinstance(value, list | tuple):
        inner = ", ".join(map(argument, value))
        return (
            f"[{inner}]"
            if isinstance(value, list)
            else f"({inner},)"
            if len(value) == 1
            else f"({inner})"
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {argument(item)}" for key, item in value.items()) + "}"
    return repr(value)


def typed(node: fx.Node) -> str:
    """`name: f32[2, 3]`; nothing is said of results that are no tensors, whose parts follow."""
    example = node.meta.get("example_value")
    if isinstance(example, torch.Tensor):
        return f"{node.name}: {dtype_abbrs[example.dtype]}[{', '.join(map(str, example.shape))}]"
    symbolic = isinstance(example, torch.SymInt | torch.SymFloat | torch.SymBool)
    return f"{node.name}: {example}" if symbolic and str(example) != node.name else node.name
