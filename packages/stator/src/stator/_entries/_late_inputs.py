"""Inputs that an entry writes to behind its graph (`LateWrite`): a graph that raises has not
changed them.

Where the program goes on at the operator that raised, the writes before it are made then: the
graph's function has the values among its locals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import torch
from stator_backends import LateWrite
from stator_guards import Source
from torch.autograd.graph import increment_version

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

    from stator._entries._graph_effects import GraphEffects
    from stator._entries._resumption import NodeFailure


@attrs.frozen
class LateInputs:
    """The inputs that one graph leaves to its entry, each with its source."""

    writes: tuple[tuple[LateWrite, Source], ...] = ()
    positions: frozenset[int] = frozenset()
    """Their positions among the inputs that are tensors."""

    @classmethod
    def of(cls, late: Sequence[LateWrite], captured: CapturedGraph) -> LateInputs:
        inputs = captured.inputs
        tensors = [position for position, item in enumerate(inputs) if item.kind == "tensor"]
        writes = tuple((write, inputs[write.position].source) for write in late)
        return cls(writes, frozenset(tensors.index(write.position) for write in late))

    def left_to_graph(self, effects: GraphEffects) -> GraphEffects:
        """Return the effects of the graph without these writes."""
        if not self.positions:
            return effects
        written = tuple(each for each in effects.written if each not in self.positions)
        return attrs.evolve(effects, written=written)

    def applied(self, failure: NodeFailure, state: Mapping[str, object]) -> NodeFailure:
        """Make the writes that a graph had come to when it raised; return the failure with the
        inputs in place of their new values."""
        values = dict(failure.values)
        for write, source in self.writes:
            new = values.get(write.node_name)
            if new is None:
                continue
            tensor = source.evaluate(state)
            with torch._C._AutoDispatchBelowADInplaceOrView():
                tensor.copy_(new)
            increment_version([tensor] * new._version)
            values |= {name: tensor for name, value in values.items() if value is new}
        return attrs.evolve(failure, values=values)
