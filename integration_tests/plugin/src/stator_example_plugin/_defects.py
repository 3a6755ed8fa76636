"""Two backends to try the conformance kit on: one keeps everything, the other has ten defects.

Each defect shows on graphs with one operator only, so that none hides another one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

Run = Callable[..., Sequence[Any]]
DEFECTS: dict[str, Callable[[Run, Sequence[Any]], Run]] = {}
"""By the property that is lost, as the capability table names it."""


def interpreted(graph: fx.GraphModule, inputs: Sequence[Any]) -> Run:
    """Run the graph node by node: the good backend."""
    return lambda *given: fx.Interpreter(graph).run(*given)


def defective(graph: fx.GraphModule, inputs: Sequence[Any]) -> Run:
    """Run the graph with the defect that belongs to its operator."""
    run = interpreted(graph, inputs)
    targets = [node.target for node in graph.graph.nodes]
    for target, name in _WHERE.items():
        if target in targets:
            return DEFECTS[name](run, inputs)
    return run


_WHERE: dict[Any, str] = {
    torch.sin: "aliasing",
    torch.nn.functional.relu: "writes",
    operator.mul: "sizes",
    torch.matmul: "other writes",
    torch.sum: "repeats",
    torch.softmax: "earlier results",
    torch.cat: "history",
    "to": "dtypes",
    torch.flip: "strides",
    torch.cumsum: "versions",
}


def _defect(name: str) -> Callable[[Callable[..., Run]], Callable[..., Run]]:
    def register(function: Callable[..., Run]) -> Callable[..., Run]:
        DEFECTS[name] = function
        return function

    return register


def _changed(run: Run, change: Callable[[Tensor], Tensor]) -> Run:
    """Return a function that changes the tensors among its results, equal ones alike."""

    def call(*given: Any) -> Sequence[Any]:
        results = run(*given)
        made = {id(one): change(one) for one in results if isinstance(one, Tensor)}
        return [made.get(id(one), one) for one in results]

    return call


@_defect("aliasing")
def copies_views_of_inputs(run: Run, inputs: Sequence[Any]) -> Run:
    return _changed(run, lambda one: one.clone() if one._is_view() else one)


@_defect("writes")
def writes_to_copies(run: Run, inputs: Sequence[Any]) -> Run:
    return lambda *given: run(*[one.clone() if isinstance(one, Tensor) else one for one in given])


@_defect("sizes")
def remembers_the_first_sizes(run: Run, inputs: Sequence[Any]) -> Run:
    first: list[int] = []

    def call(*given: Any) -> Sequence[Any]:
        sizes = [one for one in given if isinstance(one, int)]
        first.extend(sizes[len(first) :])
        replaced = iter(first)
        return run(*[next(replaced) if isinstance(one, int) else one for one in given])

    return call


@_defect("other writes")
def uses_inputs_as_scratch_memory(run: Run, inputs: Sequence[Any]) -> Run:
    def call(*given: Any) -> Sequence[Any]:
        results = run(*given)
        for one in given:
            if isinstance(one, Tensor):
                one.data.zero_()
        return results

    return call


@_defect("repeats")
def gives_equal_results_once(run: Run, inputs: Sequence[Any]) -> Run:
    def call(*given: Any) -> Sequence[Any]:
        results: list[Any] = []
        for one in run(*given):
            tensors = [other for other in results if isinstance(other, Tensor)]
            equal = (
                other for other in tensors if isinstance(one, Tensor) and _is_equal(one, other)
            )
            results.append(next(equal, one))
        return results

    return call


def _is_equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


@_defect("earlier results")
def reuses_its_memory(run: Run, inputs: Sequence[Any]) -> Run:
    buffers: dict[Any, Tensor] = {}

    def call(*given: Any) -> Sequence[Any]:
        results = list(run(*given))
        for at, one in enumerate(results):
            is_new = isinstance(one, Tensor) and not any(one is other for other in given)
            if is_new and not one.requires_grad and not one._is_view():
                results[at] = buffers.setdefault((at, one.shape), one).copy_(one)
        return results

    return call


@_defect("history")
def detaches_results(run: Run, inputs: Sequence[Any]) -> Run:
    return _changed(run, lambda one: one.detach() if one.grad_fn is not None else one)


@_defect("dtypes")
def computes_in_single_precision(run: Run, inputs: Sequence[Any]) -> Run:
    return _changed(run, lambda one: one.float() if one.dtype == torch.float64 else one)


@_defect("strides")
def transposes_the_layout(run: Run, inputs: Sequence[Any]) -> Run:
    def transposed(one: Tensor) -> Tensor:
        is_input = one.is_leaf and one.requires_grad
        return one if one._is_view() or is_input else one.t().contiguous().t()

    return _changed(run, transposed)


@_defect("versions")
def hides_its_writes(run: Run, inputs: Sequence[Any]) -> Run:
    def call(*given: Any) -> Sequence[Any]:
        versions = [(one, one._version) for one in given if isinstance(one, Tensor)]
        results = run(*given)
        for one, version in versions:
            torch._C._autograd._unsafe_set_version_counter((one,), (version,))
        return results

    return call
