"""Facts about a tensor's metadata, all tensors of a set checked in one native call.

The native check also refuses one tensor in two places, so tensors that were distinct when the
guards were made must stay so; that is the implied guard `AllDistinct`. Two sources of one
tensor need a `SameObject` guard besides.
"""

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from attrs import field, frozen
from torch import Tensor
from torch.nn import Parameter

from stator_guards._cells import Cells
from stator_guards._guard import CaseFunction, Guard, Kind, Undecided
from stator_guards._relation import AllDistinct, all_distinct, are_disjoint
from stator_guards._source import GuardRenderer, Once, Renderer, Source, State
from stator_guards._tensor_memory import addresses_of, can_be_watched, implementation_of
from stator_guards._value import type_case


def effective_keys(tensor: Tensor) -> int:
    """The dispatch keys a call on this tensor meets: its own, with what the thread adds and takes
    away."""
    keys = torch._C._dispatch_keys(tensor) | torch._C._dispatch_tls_local_include_set()
    return int((keys - torch._C._dispatch_tls_local_exclude_set()).raw_repr())


_PLAIN = (Tensor, Parameter)


def size_case(value: Any) -> Hashable:
    """The sizes of a plain tensor. A subclass or a function mode may define what reading them
    means."""
    if type(value) not in _PLAIN:
        return None
    if torch._C._len_torch_function_stack():
        raise Undecided
    return value.shape  # type: ignore[no-any-return]


def dtype_case(value: Any) -> Hashable:
    """The data type, device and number of dimensions of a plain tensor."""
    if type(value) not in _PLAIN:
        return None
    if torch._C._len_torch_function_stack():
        raise Undecided
    return (value.dtype, value.device, value.requires_grad, value.dim())


def static_strides(tensor: Tensor, dynamic_dims: frozenset[int]) -> tuple[int | None, ...]:
    """The strides, None where they move with the size of a dynamic dimension that lies further
    inside."""
    strides = tensor.stride()
    return tuple(
        None if any(dim != i and strides[dim] <= stride for dim in dynamic_dims) else stride
        for i, stride in enumerate(strides)
    )


@frozen(init=False)
class TensorMatch(Kind):
    """Class, dtype, device, layout, requires_grad, dispatch keys, and the sizes and strides that
    are not dynamic.

    The tensor itself is never kept alive.
    """

    cls: type
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    keys: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    address: int = field(repr=False)
    """The identity of the tensor among those that live while a program is traced. A weak reference
    would be seen: `torch.utils.swap_tensors` refuses such tensors, and programs count them."""

    rank = 30
    merge_key = None
    of_contents = False
    batched = True
    fix = "keep the tensor's metadata, or mark the dimension that changes as dynamic"

    def __init__(
        self,
        tensor: Tensor,
        dynamic_dims: frozenset[int] = frozenset(),
        dynamic_strides: frozenset[int] = frozenset(),
    ) -> None:
        sizes = tuple(
            None if i in dynamic_dims else int(size) for i, size in enumerate(tensor.shape)
        )
        strides = static_strides(tensor, dynamic_dims) if tensor.layout is torch.strided else ()
        if dynamic_strides:
            strides = tuple(
                None if i in dynamic_strides else stride for i, stride in enumerate(strides)
            )

        self.__attrs_init__(
            type(tensor),
            tensor.dtype,
            tensor.device,
            tensor.layout,
            tensor.requires_grad,
            effective_keys(tensor),
            sizes,
            strides,
            id(tensor),
        )

    def matches(self, value: object) -> bool:
        """The same facts as the native check, one by one."""
        return type(value) is self.cls and (self._is_equal(value) or not self._differences(value))

    def _is_equal(self, value: Any) -> bool:
        """Return True without a list of differences where all sizes are static."""
        return (
            value.shape == self.sizes
            and value.dtype is self.dtype
            and value.layout is self.layout
            and value.requires_grad is self.requires_grad
            and value.device == self.device
            and (not self.strides or value.stride() == self.strides)
            and effective_keys(value) == self.keys
        )

    def _differences(self, value: Any) -> list[str]:
        facts = {
            "dtype": (self.dtype, value.dtype),
            "device": (self.device, value.device),
            "layout": (self.layout, value.layout),
            "requires_grad": (self.requires_grad, value.requires_grad),
            "rank": (len(self.sizes), value.dim()),
        }
        found = [f"{name} {new} (was {old})" for name, (old, new) in facts.items() if old != new]
        if not found:
            found = _unequal("size", self.sizes, value.shape)
            found += _unequal("stride", self.strides, value.stride()) if self.strides else []
        if not found and effective_keys(value) != self.keys:
            found = ["other dispatch keys"]
        return found

    def test(self, value: str, render: Renderer) -> str:
        return f"{render.capture(self.matches, 'tensor_matches')}({value})"

    @classmethod
    def test_all(cls, guards: Sequence[Guard], render: GuardRenderer) -> str:
        first = _firsts(guards)
        sources = [guard.source for guard in first if guard.source is not None]
        check = _native_once(first, render.once)
        chosen = set(map(id, first))
        again = [guard for guard in guards if id(guard) not in chosen]
        texts = [
            guard.kind.test(render.value(guard.source), render)
            for guard in again
            if guard.source is not None
        ]
        return " and ".join(
            [f"{render.capture(check, 'tensors_match')}({render.arguments(sources)})", *texts]
        )

    @classmethod
    def implied(cls, guards: Sequence[Guard], once: Once) -> tuple[Guard, ...]:
        first = _firsts(guards)
        _native_once(first, once)
        sources = [guard.source for guard in first if guard.source is not None]
        return _distinct(sources)

    @classmethod
    def left(cls, covered: Sequence[Guard], rest: Sequence[Guard]) -> tuple[Guard, ...]:
        """Test one of the covered tensors natively, for the keys that the thread adds and takes
        away."""
        tensors = _firsts([*covered, *(guard for guard in rest if type(guard.kind) is cls)])
        sources = [guard.source for guard in tensors if guard.source is not None]
        apart = {
            source
            for guard in rest
            if type(guard.kind) is DistinctStorages
            for source in guard.sources
        }
        return (covered[0], *(() if apart.issuperset(sources) else _distinct(sources)))

    def holds(self, value: object, state: State) -> bool:
        return self.matches(value)

    def watch(self, value: Any, cells: Cells) -> bool:
        if not can_be_watched(value) or not cells.type_of(value):
            return False
        holder = implementation_of(value)
        for address in addresses_of(value):
            cells.add(address, holder)
        return True

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        by_type = (type_case, id(self.cls))
        if self.cls not in _PLAIN:
            return (by_type,)
        dtype = (dtype_case, (self.dtype, self.device, self.requires_grad, len(self.sizes)))
        return (by_type, dtype) if None in self.sizes else ((size_case, self.sizes), by_type, dtype)

    @property
    def needed(self) -> str:
        sizes = ", ".join("any" if size is None else str(size) for size in self.sizes)
        grad = ", requires_grad" if self.requires_grad else ""
        return f"a {self.cls.__qualname__} of {self.dtype} on {self.device}, sizes ({sizes}){grad}"

    def found(self, value: object, state: State) -> str:
        if type(value) is not self.cls:
            return f"a {type(value).__qualname__}"
        return "one with " + ", ".join(self._differences(value))


def _distinct(sources: Sequence[Source]) -> tuple[Guard, ...]:
    if len(sources) < 2:
        return ()
    return (Guard(sources[0], AllDistinct(tuple(sources[1:]), sources[0])),)


def _unequal(what: str, old: Sequence[int | None], new: Sequence[int]) -> list[str]:
    pairs = enumerate(zip(old, new, strict=True))
    return [
        f"{what} {is_} in dimension {i} (was {was})"
        for i, (was, is_) in pairs
        if was is not None and was != is_
    ]


def _firsts(guards: Sequence[Guard]) -> list[Guard]:
    """The guards whose tensor no earlier one is about."""
    kinds: list[Any] = [guard.kind for guard in guards]
    first = {kind.address: i for i, kind in reversed([*enumerate(kinds)])}
    return [guards[i] for i in sorted(first.values())]


def _native_once(first: list[Guard], once: Once) -> object:
    return once(("TensorMatch", *map(id, first)), lambda: _native(first))


def _native(guards: Sequence[Guard]) -> object:
    """Return the native check of several tensors; its slow equal where they have no strides, or are
    subclasses."""
    kinds: list[Any] = [guard.kind for guard in guards]
    examples = [_example(kind) for kind in kinds]
    if any(example is None for example in examples):
        return _slow(kinds)
    # both keywords are needed: without them the native constructor reads past its arguments
    return torch._C._dynamo.guards.TensorGuards(
        *examples,
        dynamic_dims_sizes=[[*kind.sizes] for kind in kinds],  # type: ignore[misc]
        dynamic_dims_strides=[[*kind.strides] for kind in kinds],  # type: ignore[misc]
    ).check


def _example(kind: TensorMatch) -> Tensor | None:
    """Return a tensor with the facts that the native check takes from it; None if there is none.

    The tensor itself may have died or changed.
    """
    if kind.layout is not torch.strided or hasattr(kind.cls, "__del__"):
        return None
    with torch._C.DisableTorchFunctionSubclass():
        for inference, is_conjugate in itertools.product((False, True), repeat=2):
            with torch.inference_mode(inference):
                made = _made(kind)
                made = made.conj() if is_conjugate else made
            if type(made) is kind.cls and effective_keys(made) == kind.keys:
                return made
    return None


def _made(kind: TensorMatch) -> Tensor:
    """Return an empty tensor of the class, which none of its code has made."""
    made = torch.empty(0, dtype=kind.dtype, device=kind.device)
    if kind.cls is not Tensor:
        return Tensor._make_subclass(kind.cls, made, kind.requires_grad)
    return made.requires_grad_(kind.requires_grad)


def _slow(kinds: Sequence[TensorMatch]) -> Any:
    def tensors_match(*values: object) -> bool:
        pairs = zip(kinds, values, strict=True)
        return all(kind.matches(value) for kind, value in pairs) and all_distinct(*values)

    return tensors_match


_storage_of: Any = getattr(torch._C, "_storage_address")
"""The address of the storage of a tensor, without an object for the storage: one gets lost with
each gradient."""


def storages(*tensors: Tensor) -> frozenset[int] | None:
    """Return the storages of tensors; None where two share one."""
    found = frozenset(map(_storage_of, tensors))
    return found if len(found) == len(tensors) else None


@frozen
class DistinctStorages(Kind):
    """The tensor and all of `others` have storages of their own: a graph that writes to one relies
    on it."""

    others: tuple[Source, ...]
    first: Source
    """The source of the value itself."""

    rank = 32
    of_contents = False
    finds = "two of these tensors with one storage"
    fix = "pass tensors that share no memory, or always share it in the same way"

    def test(self, value: str, render: GuardRenderer) -> str:
        sources = [self.first, *self.others]
        proven = render.proven(sources, TensorMatch)  # whose words include the storage
        rest = [source for source in sources if source not in {*proven}]
        parts = render.kept(storages, proven)
        if rest:
            parts.append(f"{render.capture(storages, 'storages')}({render.arguments(rest)})")
        return f"{render.capture(are_disjoint, 'are_disjoint')}({', '.join(parts)})"

    def holds(self, value: Any, state: State) -> bool:
        return storages(value, *(source.evaluate(state) for source in self.others)) is not None

    @property
    def needed(self) -> str:
        return f"a tensor that shares no memory with {', '.join(map(str, self.others))}"
