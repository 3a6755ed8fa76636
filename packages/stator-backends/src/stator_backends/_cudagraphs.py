"""The backend `cudagraphs`: AOTAutograd, and recordings of the graphs on a GPU.

    stator.compile(f, backend="cudagraphs")

Graphs that cannot be recorded run operator by operator; `cudagraphs.rejected` counts the reasons.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import torch
from torch._guards import TracingContext
from torch.fx import GraphModule

from ._backend import BackendSpec, BoxedRun, Compiled
from ._cuda_graphs._cuda import CudaDevice
from ._cuda_graphs._rejection import reason_not_to_record
from ._cuda_graphs._tree import RecordableGraph, RecordingTree
from ._eager import AotEager, run_boxed
from ._step import current_step

CUDA_GRAPHS = BackendSpec("cudagraphs")
_numbers = itertools.count()


_trees: dict[int, RecordingTree] = {}


def tree_of(index: int) -> RecordingTree:
    """Return the tree of one device; made when it is first needed."""
    if index not in _trees:
        _trees[index] = RecordingTree(CudaDevice(index), current_step)
    return _trees[index]


@attrs.define(eq=False)
class CudaGraphs:
    """The backend. `rejected` counts, by reason, the graphs that are not recorded."""

    rejected: Counter[str] = attrs.Factory(Counter)
    spec: BackendSpec = CUDA_GRAPHS
    uses_steps: bool = True

    def __call__(self, gm: GraphModule, example_inputs: Sequence[object]) -> Compiled:
        lasting: set[str] = set()
        compilers = partial(self._compiled, lasting, False), partial(self._compiled, lasting, True)
        return AotEager(self.spec, compilers=compilers)(gm, example_inputs)

    def reset(self) -> None:
        """Discard all recordings; results that are alive keep their values."""
        for tree in _trees.values():
            tree.reset()

    def _compiled(
        self,
        lasting: set[str],
        is_backward: bool,
        gm: GraphModule,
        inputs: Sequence[Any],
    ) -> BoxedRun:
        """Compile one graph. `lasting` are the names of parameters, set by the forward graph."""
        names = [node.name for node in gm.graph.find_nodes(op="placeholder")]
        if not is_backward:
            lasting.update(names[at] for at in _static())
        static = frozenset(at for at, name in enumerate(names) if name in lasting)
        reason = reason_not_to_record(gm, inputs, static)
        run: BoxedRun = run_boxed(gm, inputs)
        if reason:
            self.rejected[reason] += 1
            return run
        function = RecordableGraph(next(_numbers), run, static)
        index = next(one.device.index for one in inputs if isinstance(one, torch.Tensor))
        call = partial(_call, function, index or 0)
        # how AOTAutograd recognises the calling convention
        call._boxed_call = True  # type: ignore[attr-defined]
        return call


def _call(function: RecordableGraph, index: int, inputs: list[Any]) -> Sequence[Any]:
    return tree_of(index).call(function, inputs)


def _static() -> frozenset[int]:
    """Return the positions of the parameters and buffers of the graph that AOTAutograd compiles."""
    context = TracingContext.try_get()
    facts: Any = None if context is None else context.fw_metadata
    return frozenset() if facts is None else frozenset(facts.static_input_indices)


cudagraphs = CudaGraphs()
