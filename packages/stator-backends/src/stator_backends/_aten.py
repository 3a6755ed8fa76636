"""The graphs of ATen operators that AOTAutograd makes of one captured graph."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from ._compare import compare, recording_first_call
from ._eager import AotEager, aot_eager, aot_eager_decomp_partition, run_boxed

AtenGraph = tuple[GraphModule, list[Any]]


def aten_graphs(
    gm: GraphModule, inputs: Sequence[Any], decomposed: bool = False
) -> list[AtenGraph]:
    """Run a graph under AOTAutograd; return the graphs that a compiler would be given, with the
    inputs of their first calls.

    `decomposed`: with the decompositions and the partition of Inductor.
    """
    found: list[AtenGraph] = []
    compiler = partial(_recorded, found)
    base: AotEager = aot_eager_decomp_partition if decomposed else aot_eager
    compare(gm, inputs, attrs.evolve(base, compilers=(compiler, compiler)))
    return found


def _recorded(
    found: list[AtenGraph], gm: GraphModule, inputs: Sequence[Any]
) -> Callable[[list[Any]], Any]:
    """Compile the forward or the backward graph, and record it at its first call."""
    kept, run = copy.deepcopy(gm), run_boxed(gm, inputs)

    def record(given: list[Any]) -> None:
        values = [v.detach() if isinstance(v, torch.Tensor) else v for v in given]
        found.append((kept, values))

    call = recording_first_call(lambda *args: run([*args]), record)

    def boxed(args: list[Any]) -> Any:
        return call(*args)

    # how AOTAutograd recognises the calling convention
    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
