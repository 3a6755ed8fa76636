"""Words of memory that hold a tensor's metadata: sizes, strides, data type, device, keys,
requires_grad, storage; and that it has no gradient and no hooks.

A parameter keeps its metadata for the whole of training, and a native check of 150 parameters takes
longer than everything else that a call verifies. These words are compared instead, with those of
dicts and classes, in one pass.

    tensor (PyObject)  +16 -> TensorImpl  +16 storage  +24 -> AutogradMeta  +40 grad
                       +24 hooks                                            +48 grad_fn
                       +32 hooks after accumulation                         +128 requires_grad
                                          +56 number of dimensions, sizes, strides
                                          +160 data type, device   +168 keys

Offsets are those of `c10/core/TensorImpl.h` and `torch/csrc/autograd/variable.h`; each is verified
on live tensors before it is used. An AutogradMeta is never exchanged while its tensor lives
(`TensorImpl::set_autograd_meta` is called for new tensors and to add a missing one), and a
TensorImpl is held as long as its words are read, since `torch.utils.swap_tensors` gives the tensor
another one.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from stator_guards._cells import Cells
from stator_guards._memory import word
from stator_guards._part_source import PartSource

_DIMENSIONS = 5
"""Sizes and strides of more dimensions lie elsewhere."""
_WORD = 8


@attrs.frozen
class TensorLayout:
    """Byte offsets: of `implementation` and hooks from the address of a tensor, of the others from
    that of its TensorImpl."""

    implementation: int = 16
    hooks: int = 24
    accumulation_hooks: int = 32
    storage: int = 16
    autograd: int = 24
    dimensions: int = 56
    sizes: int = 64
    strides: int = 104
    type_and_device: int = 160
    keys: int = 168
    gradient: int = 40
    grad_fn: int = 48
    requires_grad: int = 128
    """The offsets from the address of an AutogradMeta."""

    def of(self, tensor: Tensor) -> list[int]:
        """The addresses of all words that the metadata of a strided tensor stands on."""
        count, base = tensor.dim(), tensor._cdata
        offsets = [self.storage, self.autograd, self.dimensions, self.type_and_device, self.keys]
        offsets += range(self.sizes, self.sizes + _WORD * count, _WORD)
        offsets += range(self.strides, self.strides + _WORD * count, _WORD)

        found = [id(tensor) + self.implementation, *(base + offset for offset in offsets)]
        if autograd := word(base + self.autograd):
            found.append(autograd + self.requires_grad)
        return found

    def of_autograd(self, tensor: Tensor, offset: int) -> list[int]:
        """The addresses of all words that a part of the AutogradMeta of a tensor stands on."""
        meta = tensor._cdata + self.autograd
        found = [id(tensor) + self.implementation, meta]
        if autograd := word(meta):
            found.append(autograd + offset)
        return found


def can_be_watched(tensor: Any) -> bool:
    """Return whether words prove the metadata: of strided tensors with plain storage and few
    dimensions.

    Where modules convert their parameters by `torch.utils.swap_tensors`, none are: that refuses a
    TensorImpl which something else holds.
    """
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and not torch.__future__.get_swap_module_params_on_conversion()
        and tensor.layout is torch.strided
        and tensor.dim() <= _DIMENSIONS
        and tensor_layout() is not None
    )


def addresses_of(tensor: Tensor) -> list[int]:
    """Return the addresses of the words of a tensor that can be watched."""
    layout = tensor_layout()
    assert layout is not None
    return layout.of(tensor)


def history_words(tensor: Any, cells: Cells) -> bool:
    """Record the words that prove that a tensor has the history that it has now."""
    return _autograd_words(tensor, "grad_fn", cells) and not tensor._is_view()


def unhooked_words(tensor: Any, cells: Cells) -> bool:
    """Record the words that prove that a leaf has no hooks: it never had any, as what once held
    them may hold others."""
    layout = tensor_layout()
    if layout is None or not history_words(tensor, cells):
        return False
    addresses = [id(tensor) + layout.hooks, id(tensor) + layout.accumulation_hooks]
    for address in addresses:
        cells.add(address, tensor)
    return not any(cells.words[address] for address in addresses)


def _autograd_words(tensor: Any, part: str, cells: Cells) -> bool:
    layout = tensor_layout()
    if layout is None or not can_be_watched(tensor):
        return False
    for address in layout.of_autograd(tensor, getattr(layout, part)):
        cells.add(address, implementation_of(tensor))
    return True


@attrs.frozen(eq=False)
class GradientSource(PartSource):
    """`whole.grad` of a tensor. Words prove that there is none; one is another tensor after each
    backward, so it is read."""

    text = "{0}.grad"
    tag = "grad"

    def read(self, whole: Any) -> Any:
        return whole.grad

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return value is None and _autograd_words(whole, "gradient", cells)


def implementation_of(tensor: Tensor) -> object:
    """Hold the TensorImpl of a tensor, and the tensor, whatever TensorImpl that refers to later.

    A list of C++ does; a Python list, or a future, would refer to the tensor alone.
    """
    return implementations_of([tensor])[0]


def implementations_of(tensors: Sequence[Tensor]) -> list[object]:
    """Hold the TensorImpl of each tensor, and the tensor, by an object of its own.

    A slice of a list is another list. It costs an eighth of a new one, whose type torch works out.
    """
    script_list: Any = getattr(torch._C, "ScriptList")
    held = script_list([*tensors])
    return [(tensor, held[i : i + 1]) for i, tensor in enumerate(tensors)]


@functools.cache
def tensor_layout() -> TensorLayout | None:
    """The layout of this torch, None where it fails the trial."""
    found = TensorLayout()
    return found if _is_confirmed(found) else None


def _is_confirmed(found: TensorLayout) -> bool:
    """Check that each word holds what it should, and changes with it."""
    tensor = torch.empty(3, 5).t().requires_grad_()
    base = tensor._cdata
    if (
        ctypes.sizeof(ctypes.c_void_p) != _WORD
        or Tensor.__basicsize__ < found.accumulation_hooks + _WORD
    ):
        return False
    if word(id(tensor) + found.implementation) != base:
        return False

    expected = {
        found.storage: tensor.untyped_storage()._cdata,
        found.dimensions: 2,
        found.sizes: 5,
        found.sizes + _WORD: 3,
        found.strides: 1,
        found.strides + _WORD: 5,
    }
    if any(word(base + offset) != value for offset, value in expected.items()):
        return False

    if word(base + found.keys) != torch._C._dispatch_keys(tensor).raw_repr():
        return False
    if (autograd := word(base + found.autograd)) == 0 or word(autograd + found.grad_fn) != 0:
        return False
    return all(_changes(found, name, change) for name, change in _trials().items())


TensorChange = Callable[[Tensor], object]


def _trials() -> dict[str, TensorChange]:
    """Return a change of a tensor for each word that it must show in."""

    def set_data(tensor: Tensor) -> None:
        tensor.data = torch.empty(5, 3, dtype=torch.float16)

    @torch.enable_grad()
    def set_history(tensor: Tensor) -> None:
        # saves no tensor, which hooks of the program would be given
        tensor.requires_grad_(False).add_(torch.ones((), requires_grad=True))

    return {
        "grad_fn": set_history,
        "gradient": lambda tensor: setattr(tensor, "grad", torch.empty(5, 3)),
        "hooks": lambda tensor: setattr(tensor, "_backward_hooks", {}),
        "accumulation_hooks": lambda tensor: setattr(tensor, "_post_accumulate_grad_hooks", {}),
        "requires_grad": lambda tensor: tensor.requires_grad_(False),
        "type_and_device": set_data,
        "storage": set_data,
        "strides": lambda tensor: tensor.detach_().t_(),
        # not `torch.utils.swap_tensors`, which writes to the class
        "implementation": lambda tensor: torch._C._swap_tensor_impl(tensor, torch.empty(2)),
    }


def _changes(found: TensorLayout, name: str, change: TensorChange) -> bool:
    """Return whether a word of a new tensor changes with what it holds."""
    tensor = torch.empty(5, 3).requires_grad_()
    held = implementation_of(tensor)
    address = _address(tensor, found, name)
    before = word(address)
    with torch.no_grad():
        change(tensor)
    changed = word(address) != before
    del held
    return changed


def _address(tensor: Tensor, found: TensorLayout, name: str) -> int:
    offset: int = getattr(found, name)
    if name in ("implementation", "hooks", "accumulation_hooks"):
        return id(tensor) + offset
    if name in ("gradient", "grad_fn", "requires_grad"):
        return word(tensor._cdata + found.autograd) + offset
    return tensor._cdata + offset
