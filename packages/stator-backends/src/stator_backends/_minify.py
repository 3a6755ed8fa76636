"""Reduction of a graph to the few operators that show a fault of a backend.

    reduced = minify(gm, inputs, backend, FaultCheck(accuracy="strict"), after="aot")
    reduced.fault, reduced.gm, reduced.inputs

The search is torch's own `fx_minifier`: it cuts the end off, and replaces parts by their values.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from ._aten import aten_graphs
from ._backend import Backend, spec_of
from ._compare import copies
from ._counting import count_ops
from ._fault import ORDINARY_CHECK, Fault, FaultCheck
from ._fault_search import find_fault
from ._graph_facts import GraphSnapshot
from .errors import NoFault

MINIFY_AFTER = ("capture", "aot", "backend")


@attrs.frozen(eq=False)
class Minified:
    """The smallest graph found, with inputs that show the fault."""

    gm: GraphModule
    inputs: tuple[Any, ...]
    fault: Fault
    check: FaultCheck

    @property
    def ops(self) -> int:
        return count_ops(self.gm)


def minify(
    gm: GraphModule,
    inputs: Sequence[Any],
    backend: Backend,
    check: FaultCheck = ORDINARY_CHECK,
    after: str = "capture",
) -> Minified:
    """Reduce a graph while the backend has the same fault on it; raises NoFault without one.

    `after`: reduce the graph as it was captured; the ATen graphs that AOTAutograd makes of it
    ("aot"); or these with Inductor's decompositions, given to the compiler itself ("backend").
    """
    for graph, given in _candidates(gm, _concrete(inputs), after):
        checked = attrs.evolve(check, direct=after == "backend")
        fault = find_fault(graph, given, backend, checked)
        if fault is not None:
            return _reduced(graph, given, backend, checked, fault)
    raise NoFault(spec_of(backend).name, check.accuracy, after)


def _candidates(
    gm: GraphModule, inputs: Sequence[Any], after: str
) -> list[tuple[GraphModule, Sequence[Any]]]:
    if after not in MINIFY_AFTER:
        raise ValueError(f"after={after!r} is none of {', '.join(MINIFY_AFTER)}")
    plain = without_metadata(gm)
    if after == "capture":
        return [(plain, inputs)]
    found = aten_graphs(plain, inputs, decomposed=after == "backend")
    return [(without_metadata(graph), given) for graph, given in found]


def without_metadata(gm: GraphModule) -> GraphModule:
    """Return a copy of a graph without what its trace recorded: reduced graphs have other
    inputs."""
    return GraphModule(gm, GraphSnapshot.of(gm).graph())


def _concrete(inputs: Sequence[Any]) -> list[Any]:
    """Replace symbols by their example numbers."""
    symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return [value.node.hint if isinstance(value, symbols) else value for value in inputs]


def _reduced(
    gm: GraphModule,
    inputs: Sequence[Any],
    backend: Backend,
    check: FaultCheck,
    fault: Fault,
) -> Minified:
    from torch._functorch.fx_minifier import minifier  # needed by few programs

    def fails(candidate: GraphModule, given: Sequence[Any]) -> bool:
        found = find_fault(candidate, given, backend, check)
        return found is not None and found.signature == fault.signature

    # it reports each step on both streams
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        smallest, given = minifier(gm, copies(inputs), fails, lambda gm, inputs: None)
    kept = find_fault(smallest, given, backend, check)
    return Minified(without_metadata(smallest), tuple(given), kept or fault, check)
