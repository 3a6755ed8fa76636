"""Guards for what a backend relies on besides the facts of the trace: the memory of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AliasLayout, FrozenInputs
from stator_guards import CallSource, CapturedSource, DistinctStorages, Guard, Is, Source, Truth
from stator_variables import is_entry_value

from stator.errors import SourceSpan

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


def layout_guards(
    conditions: Iterable[Any], captured: CapturedGraph, where: SourceSpan
) -> Iterator[Guard]:
    """Yield the conditions of a backend; a float becomes a tensor of its own in each call, which
    shares nothing."""
    for guard in conditions:
        if isinstance(guard, AliasLayout):
            given = [p for p in guard.positions if captured.inputs[p].kind != "float"]
            if len(given) < 2:
                continue
            guard = attrs.evolve(guard, positions=tuple(given))
        if isinstance(guard, FrozenInputs):
            for position, tensor in guard.tensors.items():
                yield Guard(captured.inputs[position].source, Is(tensor), where)
            continue
        yield _layout_guard(guard, captured, where)


def _layout_guard(guard: Any, captured: CapturedGraph, where: SourceSpan) -> Guard:
    """A condition of the backend over the flat inputs of the graph."""
    sources: list[Source] = [_checked(item.source) for item in captured.inputs]
    if isinstance(guard, AliasLayout) and not guard.layout and len(guard.positions) > 1:
        first, *others = (sources[position] for position in guard.positions)
        return Guard(first, DistinctStorages(tuple(others), first), where)
    holds = CallSource(lambda *inputs: guard.holds(inputs), *sources)
    return Guard(holds, Truth(True), where)


def _checked(source: Source) -> Source:
    """Return where a guard reads an input; a drawn one shares memory with no other, like the tensor
    in its place."""
    return CapturedSource("drawn", torch.empty(0)) if is_entry_value(source) else source
