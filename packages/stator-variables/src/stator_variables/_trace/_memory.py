"""The memory of the tensors that are inputs: sharing follows from their storages, with the
exceptions here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from attrs import Factory, define
from stator_guards import CallSource, Kind, Source, Truth, shown_as
from torch import Tensor

from stator_variables._trace._capture_state import CaptureState


@define(eq=False)
class InputMemory(CaptureState):
    may_repeat: ClassVar[bool] = True

    tensors: dict[Source, Any] = Factory(dict)
    has_arrays: bool = False  # some of them are over memory of NumPy's, whose storages differ
    has_wrappers: bool = False  # some of them are inside others
    copied: dict[int, list[Source]] = Factory(dict)  # deeply, by the memo
    # storages of tensors inside of others, and of these, that are both in the graph
    shown_twice: set[int] = Factory(set)
    jagged: set[int] = Factory(set)
    """The storages that a write to a jagged tensor, or to its values, writes to: the count of its
    versions is in the object."""

    def add(self, source: Source, tensor: Tensor) -> tuple[str, ...] | None:
        """Note an input: None, or why it cannot be one beside the others, and is none."""
        if self.has_arrays and not are_apart(tensor, *self.tensors.values()):
            return (
                "numpy",
                "an array and a tensor, or two arrays, over the same memory",
                "make a copy of one",
            )
        if self.has_wrappers and not share_nothing(tensor, *self.tensors.values()):
            return "tensor-subclass", "a part of a tensor that shares memory with another input"
        self.tensors[source] = tensor
        return None

    def release(self) -> None:
        self.tensors.clear()

    def check_operator(self, t: Any, traced: Any) -> None:
        if self.jagged and not self.jagged.isdisjoint(traced.node.meta.get("writes", ())):
            raise t.unsupported("tensor-subclass", "a write to an existing jagged tensor")

    def moment(self) -> tuple[Any, ...]:
        return self.has_arrays, self.has_wrappers, len(self.copied)

    def facts(self, t: Any) -> Iterator[tuple[Source, Kind]]:
        """Yield that memory is apart: of all inputs of a graph that writes, and of those that were
        copied deeply with one memo."""
        if self.has_arrays and not t.graph.is_pure:
            yield CallSource(are_apart, *self.tensors), Truth(True)
        if self.has_wrappers and not t.graph.is_pure:
            yield CallSource(share_nothing, *self.tensors), Truth(True)
        for sources in self.copied.values():
            if len(sources) > 1:
                yield CallSource(share_nothing, *sources), Truth(True)


@shown_as("whether {all} have memory of their own")
def are_apart(*tensors: Tensor) -> bool:
    """Return True if tensors that have no storage in common are over different memory."""
    # of each storage, for one view of it may lie within another
    spans: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        if tensor.layout is torch.strided and tensor.numel():
            start, stop = _span(tensor)
            known = spans.setdefault(tensor.untyped_storage()._cdata, (start, stop))
            spans[tensor.untyped_storage()._cdata] = min(start, known[0]), max(stop, known[1])
    return all(
        stop <= start for (_, stop), (start, _) in itertools.pairwise(sorted(spans.values()))
    )


@shown_as("whether {all} have memory of their own")
def share_nothing(*tensors: Tensor) -> bool:
    """Return True if each has memory of its own."""
    storages = [
        tensor.untyped_storage()._cdata for tensor in tensors if tensor.layout is torch.strided
    ]
    return len(set(storages)) == len(storages)


def _span(tensor: Tensor) -> tuple[int, int]:
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    start: int = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()
