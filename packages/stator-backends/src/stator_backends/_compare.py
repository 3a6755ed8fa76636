"""Comparison of a backend with the graph run eagerly: outputs, gradients and written inputs."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule

from ._backend import Backend, Compiled
from ._eager import graph_function
from ._graph_facts import placeholders
from ._lower import lower
from ._tolerance import DEFAULT_TOLERANCE, Tolerance


@frozen
class Mismatch:
    """One value that differs: `output 0`, `gradient of input 2`, `input 1 afterwards`."""

    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.detail}"


@frozen
class ComparisonReport:
    """The result of `compare`. `checked` counts the compared values, so that an empty comparison is
    visible."""

    mismatches: tuple[Mismatch, ...]
    checked: int

    @property
    def ok(self) -> bool:
        return not self.mismatches

    def __str__(self) -> str:
        lines = [*map(str, self.mismatches)]
        return "\n".join([f"{self.checked} values compared, {len(lines)} differ", *lines])


def compare(
    gm: GraphModule,
    inputs: Sequence[Any],
    backend: Backend,
    *,
    contexts: Mapping[Tensor, Any] | None = None,
    tolerance: Tolerance = DEFAULT_TOLERANCE,
    direct: bool = False,
) -> ComparisonReport:
    """Run the graph both ways on copies of `inputs`. Copies share no memory, even where the inputs
    do.

    `direct`: a graph of ATen operators goes to the compiler itself, not through `lower`.
    """
    plain_inputs, backend_inputs = copies(inputs), copies(inputs)
    examples = copies(inputs)
    moved = _moved(contexts or {}, inputs, examples)
    graph, fake_mode = copy.deepcopy(gm), _fake_mode(gm)
    if direct:
        compiled = compile_aten(graph, examples, backend)
    else:
        compiled = lower(graph, examples, backend, fake_mode=fake_mode, contexts=moved).callable
    expected = dict(observed(graph_function(gm), plain_inputs))
    actual = dict(observed(compiled, backend_inputs))
    return _report(actual, expected, tolerance)


def compile_aten(gm: GraphModule, inputs: Sequence[Any], backend: Backend) -> Compiled:
    """Compile a graph of ATen operators by the compiler that a backend has after AOTAutograd."""
    compiler = getattr(backend, "compile_aten", backend)
    compiled: Compiled = compiler(gm, inputs)
    return compiled


def _moved(
    contexts: Mapping[Tensor, Any], inputs: Sequence[Any], examples: Sequence[Any]
) -> dict[Tensor, Any]:
    """The contexts of the inputs as contexts of their copies."""
    pairs = zip(inputs, examples, strict=True)
    return {
        copied: contexts[value]
        for value, copied in pairs
        if isinstance(value, Tensor) and value in contexts
    }


def recording_first_call(run: Compiled, record: Callable[[list[Any]], None]) -> Compiled:
    """Wrap a compiled graph: `record` is given copies of the inputs of its first call."""
    pending = [record]

    def call(*inputs: Any) -> Sequence[Any]:
        while pending:
            pending.pop()(copies(inputs))
        return run(*inputs)

    return call


def copies(inputs: Sequence[Any]) -> list[Any]:
    return [_copy(value) if isinstance(value, Tensor) else value for value in inputs]


def _copy(value: Tensor) -> Tensor:
    copied = torch.empty_strided(
        value.shape, value.stride(), dtype=value.dtype, device=value.device
    )
    return copied.copy_(value.detach()).requires_grad_(value.requires_grad)


def _fake_mode(gm: GraphModule) -> FakeTensorMode:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    found = detect_fake_mode([node.meta.get("example_value") for node in placeholders(gm)])
    return FakeTensorMode(shape_env=ShapeEnv()) if found is None else found


def observed(function: Compiled, inputs: list[Any]) -> Iterator[tuple[str, Any]]:
    """Everything a caller could see of one call, named."""
    outputs = function(*_non_leaf(inputs))
    yield from ((f"output {position}", value) for position, value in enumerate(outputs))
    yield from ((f"input {position} afterwards", value) for position, value in enumerate(inputs))
    yield from gradients(outputs, inputs)


def _non_leaf(inputs: list[Any]) -> list[Any]:
    """A leaf that needs a gradient may not be written to: a view with the same memory may."""
    return [
        value.view_as(value) if isinstance(value, Tensor) and value.requires_grad else value
        for value in inputs
    ]


def gradients(outputs: Sequence[Any], inputs: list[Any]) -> Iterator[tuple[str, Any]]:
    roots = [value for value in outputs if isinstance(value, Tensor) and value.requires_grad]
    leaves = {
        at: value
        for at, value in enumerate(inputs)
        if isinstance(value, Tensor) and value.requires_grad
    }
    if not roots or not leaves:
        return
    seeds = [_seed(value) for value in roots]
    found = torch.autograd.grad(roots, list(leaves.values()), seeds, allow_unused=True)
    yield from ((f"gradient of input {at}", value) for at, value in zip(leaves, found, strict=True))


def _seed(value: Tensor) -> Tensor:
    """Return a gradient that differs in each element, so that exchanged elements are detected."""
    steps = torch.linspace(
        0.5, 1.5, max(value.numel(), 1), dtype=torch.float64, device=value.device
    )
    return steps[: value.numel()].reshape(value.shape).to(value.dtype)


def _report(
    actual: dict[str, Any], expected: dict[str, Any], tolerance: Tolerance
) -> ComparisonReport:
    found: list[Mismatch] = []
    for where in {**expected, **actual}:
        if where not in actual or where not in expected:
            found.append(Mismatch(where, "missing" if where in expected else "not expected"))
            continue
        if (difference := tolerance.difference(actual[where], expected[where])) is not None:
            found.append(Mismatch(where, difference))
    return ComparisonReport(tuple(found), len(expected))
