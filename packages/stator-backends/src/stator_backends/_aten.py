"""The graphs of ATen operators that AOTAutograd makes of one captured graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import torch

from ._compare import compare, copies
from ._eager import AotEager, aot_eager, aot_eager_decomp_partition, run_boxed


@attrs.frozen(eq=False)
class AtenGraph:
    """The forward or the backward graph, and the inputs of its first call."""

    part: str
    gm: torch.fx.GraphModule
    inputs: tuple[Any, ...]


def aten_graphs(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], decomposed: bool = False
) -> list[AtenGraph]:
    """Run a graph under AOTAutograd and return the graphs that a compiler would be given.

    `decomposed`: with the decompositions and the partition of Inductor.
    """
    found: list[AtenGraph] = []
    compilers = partial(_recorded, found, "forward"), partial(_recorded, found, "backward")
    base: AotEager = aot_eager_decomp_partition if decomposed else aot_eager
    compare(gm, inputs, attrs.evolve(base, compilers=compilers))
    return found


def _recorded(
    found: list[AtenGraph], part: str, gm: torch.fx.GraphModule, inputs: Sequence[Any]
) -> Callable[[list[Any]], Any]:
    """Compile one part, and record it at its first call."""
    kept = [copy.deepcopy(gm)]
    run = run_boxed(gm, inputs)

    def call(args: list[Any]) -> Any:
        for graph in _taken(kept):
            given = tuple(_detached(copies(args)))
            found.append(AtenGraph(part, graph, given))
        return run(args)

    # how AOTAutograd recognises the calling convention
    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _taken(kept: list[torch.fx.GraphModule]) -> list[torch.fx.GraphModule]:
    taken = list(kept)
    kept.clear()
    return taken


def _detached(values: Sequence[Any]) -> Iterator[Any]:
    yield from (v.detach() if isinstance(v, torch.Tensor) else v for v in values)
