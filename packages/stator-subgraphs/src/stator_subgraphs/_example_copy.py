"""Examples of operators that are recorded again, made from those of the first call: for inputs that
are alike, these determine them.

    first call                    again
    hidden ── linear ── up        a tensor like `up`
           ── view ── y           a new tensor like `hidden`, and the same view of it

Where gradients are recorded, the copies have a history of their own, that of `CopiedHistory`. It
represents no operators, so `OutputGraph.complete_histories` runs these before anything reads more
of a history than that there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode.errors import InternalError
from stator_variables import UNTOLD, GraphValue, history_of
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.fx import Node

from stator_subgraphs._mutation import storage_of
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import rebuild, tensors_in

_creation_meta: Any = torch._C._autograd._get_creation_meta
_OF_SEVERAL: Any = torch._C._autograd.CreationMeta.MULTI_OUTPUT_NODE


@define(eq=False)
class Copied:
    """The nodes whose examples can be copied, in their order."""

    numbers: set[Node] = Factory(set)
    """Nodes without tensors in their examples: these serve again."""
    inner: set[Node] = Factory(set)
    """Nodes whose memory only the call can reach. Their examples may share memory with those of the
    first call, where nobody compiles the graph."""
    bases: dict[Node, Tensor | None] = Factory(dict)
    """The base of a view, None for memory of its own."""


def copied_nodes(
    inputs: list[GraphValue],
    nodes: Mapping[Node, GraphValue],
    results: Set[Node],
    written: Set[int],
    *,
    shares: bool,
) -> Copied:
    """Return the nodes whose examples are determined by those of the inputs. None in memory that
    was `written` to is: it may have got another shape, or a history."""
    copied = Copied()
    outside = {*_storages(inputs), *_storages(nodes[node] for node in results)}
    taken = [one for value in inputs for one in tensors_in(value.example)]
    known, storages = {*map(id, taken)}, {*map(storage_of, taken)}

    for node, traced in nodes.items():
        example, given = traced.example, tensors_in(traced.example)

        if "writes" in node.meta or not written.isdisjoint(map(storage_of, given)):
            pass
        elif not given:
            copied.numbers.add(node)
        elif shares and all(map(_is_plain, given)) and outside.isdisjoint(map(storage_of, given)):
            copied.inner.add(node)
        elif _is_plain(example) and not _is_of_several(example):
            base = example._base
            owner = example if base is None else base

            is_known = id(owner) in known or _owns_new_memory(owner, storages)
            if is_known and not (example.requires_grad and base is not None):
                copied.bases[node] = base
                known |= {id(owner), id(example)}

        storages.update(map(storage_of, given))
        known.update(map(id, given))
    return copied


def _storages(values: Iterable[GraphValue]) -> Iterator[int]:
    for value in values:
        yield from map(storage_of, tensors_in(value.example))


def _is_plain(example: Any) -> bool:
    return (
        type(example) is FakeTensor
        and example.layout is torch.strided
        and not example.is_inference()
        and not (example.is_conj() or example.is_neg())
        and example.constant is None
        and not (example.requires_grad and history_of(example) in (None, UNTOLD))
    )


def _is_of_several(example: Any) -> bool:
    """Return True for one of several views that an operator gives: it refuses writes."""
    return example._is_view() and bool(_creation_meta(example) == _OF_SEVERAL)


def _owns_new_memory(owner: Any, storages: set[int]) -> bool:
    offset = owner.storage_offset()
    is_whole = type(offset) is int and offset == 0
    return is_whole and _is_plain(owner) and storage_of(owner) not in storages


class CopiedHistory(torch.autograd.Function):
    """The history of examples that are copies; `start` is a leaf that no program has."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, examples: list[Tensor]) -> Any:
        return tuple(examples)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise InternalError("a copied history was differentiated")


@define(eq=False)
class ExampleCopies:
    """The examples of one call that is recorded again, by those of the first one."""

    state: GraphState
    copied: Copied
    known: dict[int, Any] = Factory(dict)
    """The examples again, by the ids of those of the first call."""

    def note(self, first: GraphValue, again: GraphValue) -> None:
        """Note the value that represents that of the first call."""
        pairs = zip(tensors_in(first.example), tensors_in(again.example), strict=True)
        self.known.update((id(one), other) for one, other in pairs)

    def make(self, nodes: Mapping[Node, GraphValue]) -> None:
        """Make the examples that need no other one."""
        inner = [nodes[node].example for node in self.copied.inner]
        shared = _distinct(one for example in inner for one in tensors_in(example))
        owners = (nodes[node].example for node, base in self.copied.bases.items() if base is None)
        unknown = (one for one in _distinct(owners) if id(one) not in self.known)
        owning = [one for one in unknown if not self._is_differentiated(one)]
        made = [*self._sharing(shared), *map(self._like, owning)]
        firsts = [*shared, *owning]
        self.known.update(zip(map(id, firsts), self._with_history(firsts, made), strict=True))

    def example_of(self, node: Node, example: Any) -> Any:
        """Return the example of a node; None where the operator has to run."""
        if node in self.copied.numbers:
            return example
        if node in self.copied.inner:
            return rebuild(example, self._known)
        if node not in self.copied.bases or self._is_differentiated(example):
            return None
        if (base := self.copied.bases[node]) is None:
            return self.known[id(example)]
        if (owner := self.known.get(id(base))) is None:
            owner = self.known[id(base)] = self._like(base)
        with self.state.mode, self.state.env.suppress_guards():
            size, stride = example.shape, example.stride()
            return torch.as_strided(owner, size, stride, example.storage_offset())

    def _known(self, leaf: Any) -> Any:
        return self.known[id(leaf)] if isinstance(leaf, Tensor) else leaf

    def _is_differentiated(self, example: Tensor) -> bool:
        """Return True where histories have to be complete: the trace has differentiated before."""
        return self.state.is_differentiated and example.requires_grad

    def _with_history(self, firsts: list[Tensor], made: list[Tensor]) -> Iterator[Tensor]:
        """Yield the new examples, those with a history where the first ones have one."""
        trained = [new for first, new in zip(firsts, made, strict=True) if first.requires_grad]
        if trained:
            with self.state.mode, torch.enable_grad():
                start = torch.empty(0, requires_grad=True)
                trained = [*CopiedHistory.apply(start, trained)]  # type: ignore[no-untyped-call]
            self.state.copies += trained
        following = iter(trained)
        for first, new in zip(firsts, made, strict=True):
            yield next(following) if first.requires_grad else new

    def _sharing(self, examples: list[Any]) -> list[Tensor]:
        """Return fakes with the same properties over the same memory."""
        mode = self.state.mode
        with in_kernel_invocation_manager(mode):
            inner = [example.detach() for example in examples]
        pairs = zip(inner, examples, strict=True)
        return [FakeTensor(mode, meta, example.device) for meta, example in pairs]

    def _like(self, example: Any) -> FakeTensor:
        """Return a fake with the same properties, in memory of its own."""
        mode = self.state.mode
        with in_kernel_invocation_manager(mode), self.state.env.suppress_guards():
            empty = torch.empty_strided(
                example.shape, example.stride(), dtype=example.dtype, device="meta"
            )
        return FakeTensor(mode, empty, example.device)


def _distinct(tensors: Iterable[Any]) -> list[Any]:
    return [*{id(tensor): tensor for tensor in tensors}.values()]
