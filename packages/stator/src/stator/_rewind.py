"""Tensors as they were before a graph ran, and how they get so again: contents, shape, and their place in autograd."""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

_UNKNOWN = -1


def version(tensor: torch.Tensor) -> int:
    """Views share the counter of their base. Inference tensors count nothing."""
    return _UNKNOWN if tensor.is_inference() else tensor._version


def is_untouched(noted: Iterable[tuple[torch.Tensor, int]]) -> bool:
    return all(before != _UNKNOWN and before == version(tensor) for tensor, before in noted)


@attrs.frozen(eq=False)
class Saved:
    """One tensor. Those over one storage share its copy: a storage knows nothing of autograd, nor of overlaps."""

    tensor: torch.Tensor
    content: torch.UntypedStorage
    geometry: tuple[Any, ...]
    requires_grad: bool
    grad_fn: Any
    history: torch.Tensor | None  # a copy that autograd follows to where the tensor came from

    @property
    def can_be_restored(self) -> bool:
        """Not with a storage of another size, nor a view that was a leaf and has a history now."""
        same_size = self.tensor.untyped_storage().nbytes() == self.content.nbytes()
        return same_size and (self._has_its_history() or self.history is not None or not self.tensor._is_view())

    def restore(self) -> None:
        self.tensor.untyped_storage().copy_(self.content)
        if self.geometry != _geometry(self.tensor):
            with torch.no_grad():
                self.tensor.as_strided_(*self.geometry)
        if not self._has_its_history():
            self._follow()

    def _has_its_history(self) -> bool:
        return self.tensor.requires_grad == self.requires_grad and _grad_fn(self.tensor) is self.grad_fn

    def _follow(self) -> None:
        """An operator in place is now part of the history of the tensor, which gets its own again, behind a copy."""
        if not self.tensor._is_view():
            self.tensor.detach_().requires_grad_(self.requires_grad and self.history is None)
        if self.history is not None:
            with torch.enable_grad():
                self.tensor.copy_(self.history)


def save(tensors: Sequence[torch.Tensor], limit: int | None) -> tuple[Saved, ...]:
    """Those of the tensors that can be saved; none when their memory is more than `limit` bytes."""
    plain = [t for t in tensors if t.layout is torch.strided and not is_traceable_wrapper_subclass(t)]
    storages = {storage._cdata: storage for storage in (tensor.untyped_storage() for tensor in plain)}
    if limit is not None and sum(storage.nbytes() for storage in storages.values()) > limit:
        return ()
    contents: dict[int, Any] = {key: storage.clone() for key, storage in storages.items()}  # type: ignore[no-untyped-call]
    return tuple(_saved(tensor, contents[tensor.untyped_storage()._cdata]) for tensor in plain)


def _saved(tensor: torch.Tensor, content: torch.UntypedStorage) -> Saved:
    grad_fn = _grad_fn(tensor)
    with torch.enable_grad():
        history = tensor.clone() if isinstance(grad_fn, torch.autograd.graph.Node) else None
    return Saved(tensor, content, _geometry(tensor), tensor.requires_grad, grad_fn, history)


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.size(), tensor.stride(), tensor.storage_offset()


def _grad_fn(tensor: torch.Tensor) -> Any:
    """Autograd refuses to tell that of a view made without gradients whose base was written to with them."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return RuntimeError
