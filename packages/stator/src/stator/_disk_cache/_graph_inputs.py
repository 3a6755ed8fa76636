"""The inputs of a graph as data: where their values come from, which of their sizes are symbols.

x       "tensor", its dimensions                    a placeholder for each symbol, and one for x
k       "number" or "float"                         a placeholder
drawn0  what the entry draws before the graph       a placeholder, made like an empty tensor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_guards import SizeSource, Source
from stator_variables import Dim, GraphValue, Policy, is_entry_value

from stator._disk_cache._archive import Differs
from stator._disk_cache._fingerprint import NotCached

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph, GraphInput, OutputGraph

Read = Callable[[Source], Any]


@attrs.frozen
class EntryTensor:
    """A contiguous tensor that a call of the entry gives."""

    sizes: tuple[int, ...]
    dtype: torch.dtype
    device: str

    @classmethod
    def of(cls, tensor: torch.Tensor) -> EntryTensor:
        """Raises NotCached for other tensors."""
        is_plain = not _is_symbolic(tensor) and tensor.is_contiguous() and not tensor.requires_grad
        if not is_plain or tensor.layout is not torch.strided:
            raise NotCached("a tensor that is drawn, with symbolic sizes or strides of its own")
        return cls(tuple(tensor.shape), tensor.dtype, str(tensor.device))


@attrs.frozen(eq=False)
class KeptInput:
    """One placeholder. `dims` are those of a tensor; `computed` is what the entry computes."""

    source: Source
    kind: str
    dims: tuple[Dim, ...] = ()
    computed: EntryTensor | str | None = None

    @classmethod
    def of(cls, item: GraphInput, dims: Sequence[Dim]) -> KeptInput:
        """Raises NotCached for an input that cannot be made again from its source."""
        if item.kind == "object":
            raise NotCached("a graph with an object as an input")
        if not is_entry_value(item.source):
            return cls(item.source, item.kind, tuple(dims))
        if item.kind == "tensor":
            return cls(item.source, item.kind, (), EntryTensor.of(item.example))
        return cls(item.source, item.kind, (), "float" if item.kind == "float" else "int")

    @property
    def is_symbolic(self) -> bool:
        is_read = self.kind != "tensor" and self.computed is None
        return is_read or any(_is_symbol(dim) for dim in self.dims)


def _is_symbol(dim: Dim) -> bool:
    return dim.kind != "static" or dim.stride


def _is_symbolic(example: Any) -> bool:
    return not isinstance(example, torch.Tensor) or bool(
        getattr(example, "_has_symbolic_sizes_strides", False)
    )


def kept_inputs(captured: CapturedGraph, policy: Policy) -> tuple[KeptInput, ...]:
    """Return the inputs of a graph. `policy` repeats the decisions of the trace."""
    made: list[KeptInput] = []
    for item in captured.inputs:
        dims: Sequence[Dim] = ()
        if item.kind == "tensor" and not is_entry_value(item.source) and _is_symbolic(item.example):
            dims = policy.dims(item.source, item.example)
            if not any(map(_is_symbol, dims)):
                raise NotCached(f"the sizes of {item.source} are symbols of another tensor")
        made.append(KeptInput.of(item, dims))
    return tuple(made)


def decisions(policy: Policy, inputs: Sequence[KeptInput]) -> Policy:
    """Return a policy that decides as was decided for these inputs. Raises Differs where a call of
    this process requires other symbols."""
    kept_dims = {each.source: [*each.dims] for each in inputs if each.dims}
    numbers = {each.source for each in inputs if each.kind != "tensor"}

    def dims(source: Source, tensor: torch.Tensor) -> list[Dim]:
        required, kept = policy.dims(source, tensor), kept_dims.get(source)
        kept = [Dim()] * tensor.dim() if kept is None else kept
        if len(kept) != len(required):
            raise Differs(f"{source} has another number of dimensions")
        for one, other in zip(required, kept, strict=True):
            if one != other and (one != Dim() or other.strict):
                raise Differs(f"the sizes of {source} have changed before")
        return kept

    def is_symbolic(source: Source, value: object, at_once: bool) -> bool:
        policy.number_is_symbolic(source, value, at_once)  # which notes the value
        return source in numbers

    return attrs.evolve(policy, dims=dims, number_is_symbolic=is_symbolic)


def repeated(policy: Policy, inputs: Sequence[KeptInput]) -> Policy:
    """Return a policy that decides as was decided for these inputs, whatever they are by now: for a
    trace up to an operator that raised, which may have another layout before it."""
    kept_dims = {each.source: [*each.dims] for each in inputs if each.dims}
    numbers = {each.source for each in inputs if each.kind != "tensor"}

    def dims(source: Source, tensor: torch.Tensor) -> list[Dim]:
        return kept_dims.get(source) or [Dim()] * tensor.dim()

    def is_symbolic(source: Source, value: object, at_once: bool) -> bool:
        return source in numbers

    return attrs.evolve(policy, dims=dims, number_is_symbolic=is_symbolic)


def record_inputs(
    graph: OutputGraph, inputs: Sequence[KeptInput], read: Read, policy: Policy
) -> list[GraphValue]:
    """Make the placeholders; return the value of each input, of a float that of the number. Raises
    Differs and Unsupported."""
    made: dict[int, GraphValue] = {}
    for number, each in enumerate(inputs):
        if each.kind == "tensor" or each.computed is not None:
            made[number] = _recorded(graph, each, read, policy)
    for number, each in enumerate(inputs):
        if number not in made:
            made[number] = _number(graph, each, read, policy)
    return [made[number] for number in range(len(inputs))]


def _recorded(graph: OutputGraph, each: KeptInput, read: Read, policy: Policy) -> GraphValue:
    if isinstance(computed := each.computed, EntryTensor):
        named: dict[str, Any] = {"dtype": computed.dtype, "device": torch.device(computed.device)}
        return graph.entry_tensor(each.source, torch.empty, (computed.sizes,), named)
    if each.computed is not None:
        return graph.entry_number(each.source, float if each.computed == "float" else int)
    tensor = read(each.source)
    sizes = policy.dims(each.source, tensor)
    return graph.tensor_input(each.source, tensor, sizes, each.source.name)


def _number(graph: OutputGraph, each: KeptInput, read: Read, policy: Policy) -> GraphValue:
    """Return a number: a size that a tensor has brought, or one that is read for itself."""
    if (bound := graph.bound_number(each.source)) is not None:
        return bound
    if type(each.source) is SizeSource:
        raise Differs(f"{each.source} is the size of another tensor, too")
    value = read(each.source)
    policy.number_is_symbolic(each.source, value, False)  # which notes the value
    return graph.number_input(each.source, value, each.source.name)
