"""Examples of operators that are recorded again, made from the properties of those of the first
call: for inputs that are alike, nothing else determines them where there is no history.

    first call            again
    hidden ── view ── y   a new tensor like `hidden`, and the same view of it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from attrs import Factory, define
from stator_variables import GraphValue
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.fx import Node

from stator_subgraphs._mutation import storage_of
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import tensors_in

_creation_meta: Any = torch._C._autograd._get_creation_meta
_OF_SEVERAL: Any = torch._C._autograd.CreationMeta.MULTI_OUTPUT_NODE
Copied = dict[Node, Tensor | None]
"""The nodes whose examples can be copied: the base of a view, None for memory of its own."""


def copied_nodes(inputs: list[GraphValue], nodes: Mapping[Node, GraphValue]) -> Copied:
    """Return the nodes whose examples are determined by those of the inputs."""
    tensors = [one for value in inputs for one in tensors_in(value.example)]
    known, storages = {*map(id, tensors)}, {*map(storage_of, tensors)}
    copied: Copied = {}
    for node, traced in nodes.items():
        example = traced.example
        given = tensors_in(example)
        if _is_plain(example):
            base = example._base
            owner = example if base is None else base
            if id(owner) in known or _owns_new_memory(owner, storages):
                copied[node] = base
                known |= {id(owner), id(example)}
        storages.update(map(storage_of, given))
        known.update(map(id, given))
    return copied


def _is_plain(example: Any) -> bool:
    return (
        type(example) is FakeTensor
        and example.layout is torch.strided
        and not (example.requires_grad or example.is_inference())
        and not (example.is_conj() or example.is_neg())
        and not (example._is_view() and _creation_meta(example) == _OF_SEVERAL)
        and example.constant is None
    )


def _owns_new_memory(owner: Any, storages: set[int]) -> bool:
    offset = owner.storage_offset()
    is_whole = type(offset) is int and offset == 0
    return is_whole and _is_plain(owner) and storage_of(owner) not in storages


@define(eq=False)
class ExampleCopies:
    """The examples of one call that is recorded again, by those of the first one."""

    state: GraphState
    copied: Copied
    known: dict[int, Any] = Factory(dict)

    def note(self, first: GraphValue, again: GraphValue) -> None:
        """Note the value that represents that of the first call."""
        pairs = zip(tensors_in(first.example), tensors_in(again.example), strict=True)
        self.known.update((id(one), other) for one, other in pairs)

    def example_of(self, node: Node, example: Any) -> Any:
        """Return a copy of the example of a node; None where the operator has to run."""
        if node not in self.copied:
            return None
        if (base := self.copied[node]) is None:
            return self._like(example)
        if (owner := self.known.get(id(base))) is None:
            owner = self.known[id(base)] = self._like(base)
        with self.state.mode, self.state.env.suppress_guards():
            size, stride = example.shape, example.stride()
            return torch.as_strided(owner, size, stride, example.storage_offset())

    def _like(self, example: Any) -> FakeTensor:
        """Return a fake with the same properties, in memory of its own."""
        mode = self.state.mode
        with in_kernel_invocation_manager(mode), self.state.env.suppress_guards():
            empty = torch.empty_strided(
                example.shape, example.stride(), dtype=example.dtype, device="meta"
            )
        return FakeTensor(mode, empty, example.device)
