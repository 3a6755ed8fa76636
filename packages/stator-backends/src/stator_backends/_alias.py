"""Sharing of memory between inputs: an assumption that compiled graphs make without checking it.

A graph that writes to an input is compiled for the memory layout of the example inputs: what
overlaps, and at which offset of which base. torch records such an assumption for symbolic sizes
only; with static ones a later call with other overlaps gives a wrong result. Here it becomes a
guard whatever the sizes: `AliasLayout`, the outcome of one function, `layout_of`, at compile time,
which must be the same at run time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import torch
from attrs import frozen
from torch import Tensor
from torch._C._dynamo.guards import compute_overlapping_tensors
from torch._guards import DuplicateInputs, GuardEnvExpr, Source, StorageOverlap
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .errors import BackendError

StorageLayout: TypeAlias = tuple[tuple[Any, ...], ...]


class InputGuard(Protocol):
    """A condition over the flat inputs of the graph that has to hold at each call."""

    def holds(self, inputs: Sequence[Any]) -> bool: ...


@frozen
class SameInput:
    """Two positions were given one tensor."""

    first: int
    second: int

    def holds(self, inputs: Sequence[Any]) -> bool:
        return inputs[self.first] is inputs[self.second]


@frozen
class Overlap:
    """Among these inputs, which share one storage, exactly those at `overlapping` overlap another
    one."""

    overlapping: frozenset[int]
    separate: frozenset[int]

    def holds(self, inputs: Sequence[Any]) -> bool:
        return overlapping(inputs, sorted(self.overlapping | self.separate)) == self.overlapping


@frozen(eq=False)
class FrozenInputs:
    """The inputs at these positions are the tensors whose values the compiled code contains."""

    tensors: dict[int, Tensor]

    def holds(self, inputs: Sequence[Any]) -> bool:
        return all(inputs[position] is tensor for position, tensor in self.tensors.items())


@frozen
class AliasLayout:
    """The tensors at `positions` share memory among them as they did when the graph was
    compiled."""

    positions: tuple[int, ...]
    layout: StorageLayout

    @classmethod
    def of(cls, inputs: Sequence[object]) -> AliasLayout:
        positions = tuple(position for position, value in enumerate(inputs) if has_storage(value))
        return cls(positions, layout_of(inputs, positions))

    def holds(self, inputs: Sequence[Any]) -> bool:
        return layout_of(inputs, self.positions) == self.layout


def overlapping(inputs: Sequence[Any], members: Sequence[int]) -> frozenset[int]:
    found = compute_overlapping_tensors([inputs[position] for position in members], symbolic=False)
    return frozenset(members[index] for index in found)


def layout_of(inputs: Sequence[Any], positions: Sequence[int]) -> StorageLayout:
    """One item per storage that several inputs share; empty, after one quick pass, where nothing is
    shared."""
    sharing: defaultdict[int, list[int]] = defaultdict(list)
    for position in positions:
        sharing[inputs[position].untyped_storage()._cdata].append(position)
    return tuple(_group(inputs, members) for members in sharing.values() if len(members) > 1)


def _group(inputs: Sequence[Any], members: list[int]) -> tuple[Any, ...]:
    nbytes = inputs[members[0]].untyped_storage().nbytes()
    places = tuple(
        (position, inputs[position].storage_offset(), *_base(inputs, position, members))
        for position in members
    )
    return nbytes, overlapping(inputs, members), places


def _base(inputs: Sequence[Any], position: int, members: list[int]) -> tuple[Any, ...]:
    """Return the identity of the tensor that this one is a view of, on which compiled code works.

    Bases are distinguished by the other inputs that are views of them.
    """
    if (base := inputs[position]._base) is None:
        return (None,)
    relatives = tuple(
        other for other in members if inputs[other] is base or inputs[other]._base is base
    )
    return relatives, tuple(base.shape), base.stride(), base.storage_offset()


def has_storage(value: object) -> bool:
    if (
        not isinstance(value, Tensor)
        or value.layout is not torch.strided
        or is_traceable_wrapper_subclass(value)
    ):
        # the parts of sparse and wrapper tensors are compared where they are unwrapped
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(value)


def is_leaf(tensor: Tensor) -> bool:
    """Return True for a leaf; False if torch raises, as it does for a view whose base was written
    to in another mode."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False


def writes_to_inputs(examples: Iterable[object]) -> bool:
    """Return True if the trace wrote to one of its placeholders.

    A fresh fake tensor has version 0, and each write adds one.
    """
    return any(was_written(value) for value in examples if isinstance(value, FakeTensor))


def was_written(value: torch.Tensor) -> bool:
    # an inference tensor keeps no count: it may have been
    return value.is_inference() or value._version > 0


def from_torch(name: str, guard: GuardEnvExpr, positions: dict[Source, int]) -> InputGuard:
    """Translate a guard of AOTAutograd, which is over sources, to one over positions."""
    try:
        match guard:
            case DuplicateInputs(input_source_a=first, input_source_b=second):
                return SameInput(positions[first], positions[second])
            case StorageOverlap(overlapping_sources=meeting, non_overlapping_sources=apart):
                meet, part = (
                    frozenset(positions[source] for source in group) for group in (meeting, apart)
                )
                return Overlap(meet, part)
    # a tensor that the graph module holds: nothing about it can be checked at a call
    except KeyError as error:
        raise BackendError(
            name, f"it relies on {error.args[0].name}, which is no input of the graph"
        ) from error
    raise BackendError(name, f"it added a guard of unknown kind {guard!r}")
