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
from stator_guards import Source
from stator_variables import Dim, GraphValue, TraceLocation, is_drawn
from torch.fx import Node

from stator._disk_cache._archive import Differs
from stator._disk_cache._fingerprint import NotCached

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph, OutputGraph

_KEPT = frozenset(
    "stack_trace nn_module_stack began caught catches_operators has_except handled custom".split()
)
"""The metadata that is written: where the program was."""
_MADE_AGAIN = frozenset(("example_value", "writes", "source_fn_stack", "tensor_dict"))
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


@attrs.frozen(eq=False)
class GraphCalls:
    """All nodes of a graph in order: the sources of its inputs, its calls, and its outputs."""

    inputs: tuple[Source, ...]
    calls: tuple[GraphCall, ...]
    outputs: tuple[int, ...]
    keeps_history: bool

    @classmethod
    def of(cls, captured: CapturedGraph, outputs: Sequence[GraphValue]) -> GraphCalls:
        """Raises NotCached for a graph that cannot be recorded from its nodes."""
        for item in captured.inputs:
            if item.kind != "tensor" or is_drawn(item.source) or _is_symbolic(item.example):
                raise NotCached("sizes or numbers that are symbols, or drawn at random")
        if captured.keeps_history:
            raise NotCached("a graph whose history is read")
        held = _held(captured)
        nodes = [node for node in captured.graph.nodes if node.op != "output"]
        positions = {node: position for position, node in enumerate(nodes)}
        calls = tuple(_call_of(node, positions, held) for node in nodes if node.op != "placeholder")
        sources = tuple(item.source for item in captured.inputs)
        given = tuple(positions[traced.node] for traced in outputs)
        return cls(sources, calls, given, captured.keeps_history)

    def record(
        self,
        graph: OutputGraph,
        read: Callable[[Source], Any],
        dims: Callable[[Source, torch.Tensor], Sequence[Dim]],
    ) -> list[GraphValue]:
        """Record the calls into an empty graph; return its outputs. Raises Differs where the sizes
        of an input are symbols by now, and Unsupported."""
        values: list[GraphValue] = []
        for source in self.inputs:
            tensor = read(source)
            sizes = dims(source, tensor)
            if any(dim.kind != "static" or dim.stride for dim in sizes):
                raise Differs(f"the sizes of {source} have changed before")
            values.append(graph.tensor_input(source, tensor, sizes, source.name))
        for call in self.calls:
            values.append(_recorded(graph, call, values))
        return [values[position] for position in self.outputs]


def _is_symbolic(example: Any) -> bool:
    return not isinstance(example, torch.Tensor) or getattr(
        example, "_has_symbolic_sizes_strides", False
    )


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
    made.node.meta.update(call.meta)
    return made


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
