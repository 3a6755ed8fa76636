"""The capability table of a backend: which properties of eager execution it keeps, in how many
graphs.

    print(capability_table(backend))
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from ._alias import has_storage
from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._compare import gradients
from ._conformance_graph import OPERATORS, ConformanceGraph, conformance_graphs
from ._eager import graph_function
from ._graph_facts import memory_of
from ._lower import lower
from ._tolerance import DEFAULT_TOLERANCE, Tolerance
from .errors import BackendError
from .testing import HandBuilt

PROPERTIES = {
    "compiles": "every graph is compiled and runs",
    "values": "values and kinds of results",
    "dtypes": "dtypes of results",
    "strides": "strides of results",
    "aliasing": "memory that results share with inputs and with each other",
    "repeats": "results are one tensor where they are in the program, and only there",
    "writes": "writes to inputs",
    "other writes": "inputs that the graph does not write to stay",
    "versions": "version counters of inputs",
    "history": "results that require gradients",
    "gradients": "gradients of inputs",
    "sizes": "other sizes in later calls",
    "earlier results": "results of earlier calls stay",
}
CALLS = 3


@frozen
class ConformanceFault:
    """A property that was not kept in one graph."""

    property: str
    graph: str
    detail: str


@frozen
class CapabilityTable:
    """The faults of one backend, and the number of graphs that were run and that it excludes."""

    spec: BackendSpec
    faults: tuple[ConformanceFault, ...]
    graphs: int
    excluded: int

    @property
    def lost(self) -> tuple[str, ...]:
        """The properties that are not kept in every graph."""
        found = {fault.property for fault in self.faults}
        return tuple(name for name in PROPERTIES if name in found)

    def __str__(self) -> str:
        head = f"{self.spec.name}: {self.graphs} graphs, {self.excluded} excluded by its spec"
        return "\n".join([head, *map(self._row, PROPERTIES)])

    def _row(self, name: str) -> str:
        faults = [fault for fault in self.faults if fault.property == name]
        if not faults:
            return f"  kept  {name:15} {PROPERTIES[name]}"
        count = len({fault.graph for fault in faults})
        example = f"{faults[0].graph}: {' '.join(faults[0].detail.split())[:160]}"
        return f"  LOST  {name:15} {PROPERTIES[name]}: not in {count} graphs, as in {example}"


def capability_table(
    backend: Backend,
    tolerance: Tolerance = DEFAULT_TOLERANCE,
    operators: Sequence[str] = tuple(OPERATORS),
) -> CapabilityTable:
    """Run the graphs with these operators eagerly and through a backend, in several calls each."""
    spec = spec_of(backend)
    faults: list[ConformanceFault] = []
    graphs = excluded = 0
    for graph in conformance_graphs(operators):
        if (graph.requires_grad and not spec.training) or (
            graph.dynamic and not spec.symbolic_shapes
        ):
            excluded += 1
            continue
        graphs += 1
        faults += _faults_of(graph, backend, tolerance)
    return CapabilityTable(spec, tuple(faults), graphs, excluded)


def _faults_of(
    graph: ConformanceGraph, backend: Backend, tolerance: Tolerance
) -> Iterator[ConformanceFault]:
    built = graph.built()
    expected = _observations(graph, built, graph_function(built.gm))

    try:
        lowered = lower(
            built.gm,
            built.inputs,
            backend,
            fake_mode=built.fake_mode,
            contexts=built.contexts,
        )
        found = _observations(graph, built, lowered.callable)
    except Exception as error:  # code of another project: each error is a fault of it
        is_late = graph.dynamic and not isinstance(error, BackendError)
        kind = "sizes" if is_late else "compiles"
        yield ConformanceFault(kind, graph.name, f"{type(error).__name__}: {error}")
        return

    for key, value in expected.items():
        actual = found.get(key)
        if isinstance(actual, Tensor) and isinstance(value, Tensor):
            actual = actual.to(value.dtype)  # a property of its own
        difference = tolerance.difference(actual, value)
        if difference is not None:
            yield ConformanceFault(_property(graph, key, value), graph.name, difference)


def _property(graph: ConformanceGraph, key: tuple[str, int, int], expected: object) -> str:
    """Return the property that a differing observation belongs to."""
    name, call, _ = key
    if name == "written":
        return "other writes" if expected is None else "writes"
    return "sizes" if name == "values" and graph.dynamic and call else name


def _observations(
    graph: ConformanceGraph, built: HandBuilt, function: Compiled
) -> dict[tuple[str, int, int], Any]:
    """Return what a caller observes in several calls, by property, call and position."""
    found: dict[tuple[str, int, int], Any] = {}
    results: list[list[Any]] = []
    for call in range(CALLS):
        tensors = graph.tensors(call)
        given = built.arguments(*tensors)
        before = [(tensor.detach().clone(), tensor._version) for tensor in tensors]
        outputs = list(function(*given))
        found.update(_of_outputs(outputs, tensors, call))
        found.update(_of_inputs(graph, tensors, before, call))
        for where, value in gradients(outputs, list(tensors)):
            found["gradients", call, int(where.split()[-1])] = value
        results.append([*outputs, *map(_snapshot, outputs)])

    for call, kept in enumerate(results):
        half = len(kept) // 2
        for at in range(half):
            found["earlier results", call, at] = _is_equal(kept[at], kept[half + at])
    return found


def _of_outputs(
    outputs: Sequence[Any], inputs: Sequence[Tensor], call: int
) -> Iterator[tuple[tuple[str, int, int], Any]]:
    """Yield the observations of the results of one call."""
    everything = [*inputs, *outputs]
    memory = [memory_of(value) if has_storage(value) else id(value) for value in everything]
    for at, value in enumerate(outputs):
        first = next(i for i, other in enumerate(everything) if other is value)
        yield ("repeats", call, at), first
        if not isinstance(value, Tensor):
            yield ("values", call, at), value
            continue
        yield ("values", call, at), value.detach().contiguous()
        yield ("dtypes", call, at), str(value.dtype)
        yield ("strides", call, at), value.stride()
        yield ("history", call, at), (value.requires_grad, value.grad_fn is None)
        yield ("aliasing", call, at), memory.index(memory[len(inputs) + at])


def _of_inputs(
    graph: ConformanceGraph, inputs: Sequence[Tensor], before: Sequence[Any], call: int
) -> Iterator[tuple[tuple[str, int, int], Any]]:
    """Yield the observations of the inputs after one call."""
    for at, (tensor, (value, version)) in enumerate(zip(inputs, before, strict=True)):
        now = tensor.detach().clone()
        yield ("written", call, at), None if torch.equal(now, value) else now
        # compilers count the writes of a graph that gives gradients as one
        counted = tensor._version - version
        yield ("versions", call, at), bool(counted) if graph.requires_grad else counted


def _snapshot(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _is_equal(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, Tensor) else one == other
