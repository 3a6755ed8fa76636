"""The graph of a trace as the calls that recorded it, to be recorded again in another process.

Recording runs each operator on fake tensors once more: what compilers and effects read of a graph
is then there as after a trace, with the tensors of this process as inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_variables import GraphValue, Policy, TraceLocation
from torch.fx import Node

from stator._disk_cache._fingerprint import NotCached
from stator._disk_cache._graph_inputs import KeptInput, Read, kept_inputs, record_inputs

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph, OutputGraph

_KEPT = frozenset(
    "stack_trace nn_module_stack began caught catches_operators has_except handled custom "
    "apart starts differentiates frees_history warns gives_view".split()
)
"""The metadata that is written: where the program was, and marks of the trace."""
_MADE_AGAIN = frozenset(
    "example_value writes source_fn_stack tensor_dict sets_state unbacked_bindings "
    "program_frames".split()
)
_LARGEST = 1 << 20
"""The bytes of a tensor that a graph holds itself, beyond which no file has it."""


@attrs.frozen
class Reference:
    """The value of an earlier node, by its position."""

    position: int


@attrs.frozen(eq=False)
class HeldTensor:
    """A constant tensor of a graph."""

    data: bytes
    dtype: torch.dtype
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Any) -> HeldTensor:
        """Raises NotCached for what is no small plain tensor."""
        if type(tensor) is not torch.Tensor or tensor.requires_grad or not tensor.is_contiguous():
            raise NotCached("a graph that holds more than plain tensors")
        if tensor.device.type != "cpu" or tensor.numel() * tensor.element_size() > _LARGEST:
            raise NotCached("a graph that holds a large tensor, or one of another device")
        data = tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor
        return cls(bytes(data.tolist()), tensor.dtype, tuple(tensor.shape))

    def tensor(self) -> torch.Tensor:
        if not self.data:
            return torch.empty(self.sizes, dtype=self.dtype)
        flat = torch.frombuffer(bytearray(self.data), dtype=self.dtype)
        return flat.reshape(self.sizes)


@attrs.frozen(eq=False)
class GraphCall:
    """One node that is no input."""

    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    meta: Mapping[str, Any]

    @property
    def number_read(self) -> int | None:
        """The position of the tensor that a call of `item` reads."""
        is_read = self.target == "item" and type(self.args[0]) is Reference
        return self.args[0].position if is_read else None


@attrs.frozen(eq=False)
class GraphCalls:
    """All nodes of a graph in order: the sources of its inputs, its calls, and its outputs."""

    inputs: tuple[KeptInput, ...]
    calls: tuple[GraphCall, ...]
    outputs: tuple[int, ...]
    keeps_history: bool

    @classmethod
    def of(
        cls, captured: CapturedGraph, outputs: Sequence[GraphValue], policy: Policy
    ) -> GraphCalls:
        """Raises NotCached for a graph that cannot be recorded from its nodes. `policy` repeats the
        decisions of the trace."""
        inputs = kept_inputs(captured, policy)
        held = _held(captured)
        nodes = [node for node in captured.graph.nodes if node.op != "output"]
        positions = {node: position for position, node in enumerate(nodes)}
        calls = tuple(_call_of(node, positions, held) for node in nodes if node.op != "placeholder")
        given = tuple(positions[traced.node] for traced in outputs)
        return cls(inputs, calls, given, captured.keeps_history)

    @property
    def is_symbolic(self) -> bool:
        """Return True if calls with other sizes or numbers may share the graph."""
        return any(each.is_symbolic for each in self.inputs)

    def record(self, graph: OutputGraph, read: Read, policy: Policy) -> list[GraphValue]:
        """Record the calls into an empty graph; return its outputs. Raises Differs where the sizes
        of an input are symbols by now, and Unsupported."""
        values = record_inputs(graph, self.inputs, read, policy)
        boxes = {number for number, each in enumerate(self.inputs) if each.kind == "float"}
        for call in self.calls:
            number = call.number_read
            # it is read when the input is made
            values.append(values[number] if number in boxes else _recorded(graph, call, values))
        if self.keeps_history:
            graph.keep_history()
        return [values[position] for position in self.outputs]


def _held(captured: CapturedGraph) -> Mapping[str, HeldTensor]:
    nodes = [node for node in captured.graph.nodes if node.op == "get_attr"]
    return {
        str(node.target): HeldTensor.of(getattr(captured.module, str(node.target)))
        for node in nodes
    }


def _call_of(
    node: Node, positions: Mapping[Node, int], held: Mapping[str, HeldTensor]
) -> GraphCall:
    unknown = [key for key in node.meta if key not in _KEPT and key not in _MADE_AGAIN]
    if unknown:
        raise NotCached(f"a graph with the mark {unknown[0]!r}")
    meta = {key: value for key, value in node.meta.items() if key in _KEPT}
    if "began" not in meta:
        raise NotCached("a graph with checks of what data decides")
    if node.op == "get_attr":
        return GraphCall(node.name, held[str(node.target)], (), {}, meta)
    target: Any = node.target
    if not isinstance(target, str) and not _is_known(target):
        raise NotCached(f"{getattr(target, '__qualname__', target)!s} in the graph")

    args, kwargs = _written(node.args, positions), _written(node.kwargs, positions)
    return GraphCall(node.name, target, args, kwargs, meta)


def _written(value: Any, positions: Mapping[Node, int]) -> Any:
    """Return arguments with references for nodes, in plain containers."""
    if isinstance(value, Node):
        return Reference(positions[value])
    return _rebuilt(value, lambda item: _written(item, positions))


def _rebuilt(value: Any, each: Callable[[Any], Any]) -> Any:
    if type(value) is slice:
        return slice(each(value.start), each(value.stop), each(value.step))
    if isinstance(value, dict):
        return {key: each(item) for key, item in value.items()}
    if isinstance(value, list):
        return [each(item) for item in value]
    if type(value) is tuple:
        return tuple(each(item) for item in value)
    return value


def _is_known(target: object) -> bool:
    """Return True for an operator of torch or Python: what it does follows from their versions."""
    from stator_subgraphs import is_of_torch

    module = getattr(target, "__module__", None)
    return is_of_torch(target) or module in ("builtins", "_operator", "math")


def _recorded(graph: OutputGraph, call: GraphCall, values: Sequence[GraphValue]) -> GraphValue:
    args, kwargs = _read(call.args, values), _read(call.kwargs, values)
    if isinstance(call.target, HeldTensor):
        stem, _, _ = call.name.rpartition("_")
        made = graph.install(stem or call.name, call.target.tensor())
    elif call.target is operator.getitem and isinstance(args[0].example, tuple | list | dict):
        made = graph.project(args[0], args[1])
    else:
        made = graph.call(call.target, args, kwargs)
    _rename(made.node, call.name)
    made.node.meta.update(call.meta)
    if "differentiates" in call.meta:
        graph.free_history(made, (), is_freed="frees_history" in call.meta)
    return made


def _rename(node: Node, name: str) -> None:
    """Give a node the name that it had. Nodes that were dropped leave gaps in the numbers; caches
    of compilers take a graph with other names for another one."""
    node._rename(name)
    if stack := node.meta.get("source_fn_stack"):
        _, target = stack[-1]
        stack[-1] = node.name, target


def _read(value: Any, values: Sequence[GraphValue]) -> Any:
    """Return arguments with values of this graph for references."""
    if type(value) is Reference:
        return values[value.position]
    return _rebuilt(value, lambda item: _read(item, values))


class NoLocation:
    """Stands for the place of the program while nothing is interpreted."""

    def current(self) -> TraceLocation:
        return TraceLocation((), ())

    def module(self, tracker: Any) -> tuple[str, str, type] | None:
        return None
