"""After a rollback that took back writes: fakes that still have them are made again, from the
inputs on.

A write cannot be undone on a fake (its gradient history is in C++). So every value that shares
storage with a written one, and all that was computed from it, is propagated again along the graph
that is left. `GraphValue.example` is renewed in place.
"""

from functools import partial
from typing import Any

import attrs
import torch
from stator_variables import GraphValue
from torch._subclasses.fake_tensor import FakeTensorConverter
from torch.fx import Node

from stator_subgraphs._fake import MODE_CALLS, run
from stator_subgraphs._input import Inputs
from stator_subgraphs._mutation import storage_of
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import rebuild, tensors_in
from stator_subgraphs._tracer import SubgraphTracer


def refresh(state: GraphState, inputs: Inputs) -> None:
    """Renew what `state.stale` reaches. Rare, so it need not be fast; it must leave no trace of
    what was taken back."""
    stale = state.stale
    state.stale = []
    # The converter would hand out the written fake again for the same real tensor.
    state.mode.fake_tensor_converter = FakeTensorConverter()
    state.leave_modes()
    renewal = Renewal(
        state, inputs, {id(tensor) for tensor in stale}, {storage_of(tensor) for tensor in stale}
    )
    with state.env.ignore_fresh_unbacked_symbols():
        for tracer in state.tracers():
            renewal.walk(tracer)
    for tracer in state.tracers():
        renewal.follow_writes(tracer)


@attrs.define(eq=False)
class Renewal:
    state: GraphState
    inputs: Inputs
    tensors: set[int]
    storages: set[int]
    renewed: set[Node] = attrs.Factory(set)
    replaced: dict[int, tuple[Any, Any]] = attrs.Factory(dict)
    """Fakes and those in their place, by the ids of the former, which are kept alive."""

    def walk(self, tracer: SubgraphTracer) -> None:
        outer = {inner.node: node for node, inner in tracer.lifted.items()}
        for node in tracer.graph.nodes:
            if (traced := tracer.values.get(node)) is None:
                continue
            if node.op == "call_function" and node.target in MODE_CALLS:
                self._mode_call(tracer, traced)
            elif node in outer:
                self._lifted(tracer, traced, outer[node])
            elif self._is_stale(traced) or any(
                source in self.renewed for source in node.all_input_nodes
            ):
                self._renew(traced, self._again(tracer, traced))

    def _is_stale(self, traced: GraphValue) -> bool:
        tensors = tensors_in(traced.example)
        return any(
            id(tensor) in self.tensors or storage_of(tensor) in self.storages for tensor in tensors
        )

    def _renew(self, traced: GraphValue, example: object) -> None:
        pairs = zip(tensors_in(traced.example), tensors_in(example), strict=True)
        self.replaced.update((id(old), (old, new)) for old, new in pairs)
        object.__setattr__(traced, "example", example)  # trackers hold this very object
        traced.node.meta["example_value"] = example
        self.renewed.add(traced.node)

    def follow_writes(self, tracer: SubgraphTracer) -> None:
        """Let the records of writes be about the new fakes."""
        moved = {storage_of(old): storage_of(new) for old, new in self.replaced.values()}
        if not moved:
            return
        facts = tracer.facts
        for node in facts.effects:
            if "writes" in node.meta:
                written = node.meta["writes"]
                node.meta["writes"] = frozenset(moved.get(each, each) for each in written)
        facts.written[:] = [self.replaced.get(id(one), (one, one))[1] for one in facts.written]

    def _lifted(self, tracer: SubgraphTracer, traced: GraphValue, outer: Node) -> None:
        if outer in self.renewed and tracer.parent is not None:
            self._renew(traced, tracer.parent.values[outer].example)

    def _mode_call(self, tracer: SubgraphTracer, traced: GraphValue) -> None:
        """Every mode was left; entering them again in order puts each operator under the modes it
        had."""
        node = traced.node
        mode = MODE_CALLS[node.target]
        args = self._arguments(tracer, node.args)
        before = mode.look(*args)
        example = run(self.state.mode, node.target, args, self._arguments(tracer, node.kwargs))
        self.state.mode_undo.append(partial(mode.undo, before, args, example))
        self._renew(traced, example)

    def _again(self, tracer: SubgraphTracer, traced: GraphValue) -> Any:
        node = traced.node
        if node.op == "placeholder":
            return self._input(tracer, traced)
        if node.op == "get_attr":
            return self.state.mode.from_tensor(
                self.state.held[str(node.target)], static_shapes=True
            )
        if "unbacked_bindings" in node.meta:
            return blank_like(traced.example, tracer.facts.births.get(node))
        if node in tracer.called:
            return self._body(tracer.called[node])
        args, kwargs = self._arguments(tracer, node.args), self._arguments(tracer, node.kwargs)
        return run(self.state.mode, node.target, args, kwargs)

    def _body(self, tracer: SubgraphTracer) -> Any:
        """A body that was left: trackers hold the values of its nodes, so those are renewed."""
        self.walk(tracer)
        return self._arguments(tracer, tracer.graph.output_node().args[0])

    def _input(self, tracer: SubgraphTracer, traced: GraphValue) -> Any:
        births = tracer.facts.births
        if tracer.parent is not None or traced.node in births:  # no real one is at hand
            return blank_like(traced.example, births.get(traced.node))
        record = self.inputs.record_of(traced.node)
        assert record.context is not None
        return self.inputs.fake(record.origin, record.real, record.context, record.static)

    def _arguments(self, tracer: SubgraphTracer, structure: object) -> Any:
        def leaf(item: object) -> Any:
            return tracer.values[item].example if isinstance(item, Node) else item

        return rebuild(structure if not isinstance(structure, dict) else dict(structure), leaf)


def blank_like(example: object, shape: tuple[Any, Any] | None) -> Any:
    """A new fake with the shape `example` was born with, for one that cannot be computed again
    without new symbols."""
    if not isinstance(example, torch.Tensor) or shape is None:
        return example
    with example.fake_mode:  # type: ignore[attr-defined]  # every example is a fake
        return torch.empty_strided(*shape, dtype=example.dtype, device=example.device)
