"""Freezing: parameters and buffers of a graph become constants of the compiled code.

Inductor folds the tensors that a graph holds, not those that it is given. So the inputs that keep
their address become attributes of a copy of the graph; a guard requires the same objects in later
calls.
"""

import copy
from collections.abc import Sequence
from typing import Any

import attrs
from torch.fx import GraphModule, Node
from torch.nn import Parameter

from ._alias import FrozenInputs
from ._backend import Compiled
from ._graph_facts import example_of, memory_of, memory_written, placeholders


@attrs.frozen(eq=False)
class FrozenGraph:
    """A graph that holds some of its inputs, and those that are left."""

    module: GraphModule
    inputs: list[Any]
    frozen: FrozenInputs

    def around(self, compiled: Compiled) -> Compiled:
        """Return compiled code that can be called with all inputs."""
        held = self.frozen.tensors

        def call(*inputs: Any) -> Sequence[Any]:
            return compiled(*[value for i, value in enumerate(inputs) if i not in held])

        call.input_guards = (self.frozen,)  # type: ignore[attr-defined]
        return call


def freeze(gm: GraphModule, inputs: Sequence[Any]) -> FrozenGraph:
    """Return a copy of a graph that holds the parameters and buffers among its inputs."""
    copied: Any = GraphModule(gm, copy.deepcopy(gm.graph))
    copied.meta = gm.meta
    sources = copied._param_name_to_source = dict(gm._param_name_to_source)  # type: ignore[arg-type]
    written = memory_written(gm)
    first = next(node for node in copied.graph.nodes if node.op != "placeholder")
    frozen: dict[int, Any] = {}

    for position, node in enumerate(placeholders(gm)):
        replaced = copied.graph.find_nodes(op="placeholder")[position - len(frozen)]
        source = replaced._dynamo_source = node._dynamo_source  # type: ignore[attr-defined]
        if not _is_lasting(node) or memory_of(example_of(node)) in written:
            continue

        frozen[position] = inputs[position]
        name = f"frozen_{position}"
        is_parameter = isinstance(inputs[position], Parameter)
        register = copied.register_parameter if is_parameter else copied.register_buffer
        register(name, inputs[position])
        sources[name] = source
        with copied.graph.inserting_before(first):
            held = copied.graph.get_attr(name)
        held.meta = replaced.meta
        replaced.replace_all_uses_with(held)
        copied.graph.erase_node(replaced)

    copied.recompile()
    left = [value for i, value in enumerate(inputs) if i not in frozen]
    return FrozenGraph(copied, left, FrozenInputs(frozen))


def _is_lasting(node: Node) -> bool:
    """Return True for a parameter, a buffer, and a tensor that is marked to keep its address."""
    name = str(node._dynamo_source.name)  # type: ignore[attr-defined]
    return "tensor_dict" in node.meta or "_buffers" in name
