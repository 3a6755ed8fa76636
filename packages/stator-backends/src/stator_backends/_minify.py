"""Reduction of a graph to the few operators that show a fault of a backend.

    reduced = minify(gm, inputs, backend, FaultCheck(accuracy="strict"), after="aot")
    reduced.fault, reduced.gm, reduced.inputs

The search is torch's own `fx_minifier`: it cuts the end off, and replaces parts by their values.
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
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
from ._graph_facts import placeholders, without_metadata
from ._repro import with_fresh_sizes
from ._symbolic_sizes import bind_symbols, has_symbols, record_examples
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
    Symbolic sizes stay if the fault does not show with their example numbers.
    """
    checked = attrs.evolve(check, direct=after == "backend")
    for graph, given in _candidates(gm, _concrete(inputs), after):
        fault = _fault(graph, given, backend, checked)
        if fault is not None:
            return _reduced(graph, given, backend, checked, fault)
    raise NoFault(spec_of(backend).name, check.accuracy, after)


def _fault(
    gm: GraphModule, inputs: Sequence[Any], backend: Backend, check: FaultCheck
) -> Fault | None:
    return find_fault(*_fresh(gm, inputs), backend, check)


def _fresh(gm: GraphModule, inputs: Sequence[Any]) -> tuple[GraphModule, Sequence[Any]]:
    """Return a copy of a graph, in which its symbols, if there are any, are inputs and new."""
    if not has_symbols(gm):
        return without_metadata(gm), inputs
    inputs = bind_symbols(gm, inputs)
    return with_fresh_sizes(gm, inputs), inputs


def _candidates(
    gm: GraphModule, inputs: Sequence[Any], after: str
) -> Iterator[tuple[GraphModule, Sequence[Any]]]:
    if after not in MINIFY_AFTER:
        raise ValueError(f"after={after!r} is none of {', '.join(MINIFY_AFTER)}")
    yield from _after(without_metadata(gm), inputs, after)
    if has_symbols(gm) and after != "backend":  # that compiler is given numbers
        yield from _after(_with_examples(without_metadata(gm), gm, inputs), inputs, after)


def _after(
    gm: GraphModule, inputs: Sequence[Any], after: str
) -> Iterator[tuple[GraphModule, Sequence[Any]]]:
    if after == "capture":
        yield gm, inputs
        return
    for graph, given in aten_graphs(gm, inputs, decomposed=after == "backend"):
        plain = without_metadata(graph)
        yield (_with_examples(plain, graph, given) if has_symbols(gm) else plain), given


def _with_examples(plain: GraphModule, original: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """Give each node an example value with the symbols of the original's placeholders, as a node
    may become a placeholder."""
    for node, old in zip(placeholders(plain), placeholders(original), strict=True):
        node.meta["example_value"] = old.meta.get("example_value", old.meta.get("val"))
    plain = with_fresh_sizes(plain, inputs)
    record_examples(plain, inputs)
    return plain


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
        found = _fault(candidate, given, backend, check)
        return found is not None and found.signature == fault.signature

    # it reports each step on both streams
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        smallest, given = minifier(gm, copies(inputs), fails, lambda gm, inputs: None)
    plain, given = _fresh(smallest, given)
    kept = find_fault(plain, given, backend, check)
    return Minified(plain, tuple(given), kept or fault, check)
