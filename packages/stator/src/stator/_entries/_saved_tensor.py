"""Copies of the tensors that a graph writes to: contents, shape, and place in the autograd graph.

Made before the graph runs, and only where the program may catch what the graph raises after a write
(`RollbackPlan` in `_recovery.py`): the program then continues with the tensors, in the state that
they had before the graph ran.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch
from stator_variables import UNTOLD, history_of
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

_UNKNOWN = -1
_set_versions: Any = torch._C._autograd._unsafe_set_version_counter


def version(tensor: torch.Tensor) -> int:
    """Return the version counter, which views share with their base; inference tensors have
    none."""
    return _UNKNOWN if tensor.is_inference() else tensor._version


@attrs.frozen(eq=False)
class SavedTensor:
    """One tensor before the graph ran. Tensors over one storage share its copy."""

    tensor: torch.Tensor
    content: torch.UntypedStorage | None  # a wrapper subclass has none of its own
    geometry: tuple[Any, ...]
    requires_grad: bool
    grad_fn: Any
    history: torch.Tensor | None  # a copy whose history is that of the tensor
    version: int

    @property
    def can_be_restored(self) -> bool:
        """False for a storage that was resized, and for a view that was a leaf and has a history
        now."""
        same_size = (
            self.content is None or self.tensor.untyped_storage().nbytes() == self.content.nbytes()
        )
        return same_size and (
            self._has_its_history() or self.history is not None or not self.tensor._is_view()
        )

    def restore(self) -> None:
        if self.content is not None:
            self.tensor.untyped_storage().copy_(self.content)
        if self.geometry != _geometry(self.tensor):
            with torch.no_grad():
                self.tensor.as_strided_(*self.geometry)
        if not self._has_its_history():
            self._follow()
        if self.version != _UNKNOWN:
            _set_versions((self.tensor,), (self.version,))

    def _has_its_history(self) -> bool:
        """True also where autograd refuses to give a view's history: it follows from the
        version."""
        now = history_of(self.tensor)
        same = now is self.grad_fn or UNTOLD in (now, self.grad_fn)
        return same and self.tensor.requires_grad == self.requires_grad

    def _follow(self) -> None:
        """Give the tensor its former history in place of the one that an in-place operator
        added."""
        if not self.tensor._is_view():
            self.tensor.detach_().requires_grad_(self.requires_grad and self.history is None)
        if self.history is not None:
            with torch.enable_grad():
                self.tensor.copy_(self.history)


def save(tensors: Sequence[torch.Tensor]) -> tuple[SavedTensor, ...]:
    """Copy the storages of those of the tensors that are strided, or hold strided ones."""
    strided = [part for t in tensors for part in _with_parts(t) if t.layout is torch.strided]
    plain = [tensor for tensor in strided if not is_traceable_wrapper_subclass(tensor)]
    storages = {
        storage._cdata: storage for storage in (tensor.untyped_storage() for tensor in plain)
    }
    contents: dict[int, Any] = {key: storage.clone() for key, storage in storages.items()}  # type: ignore[no-untyped-call]
    return tuple(
        _saved(tensor, contents.get(tensor.untyped_storage()._cdata)) for tensor in strided
    )


def _with_parts(tensor: Any) -> Iterator[torch.Tensor]:
    """Yield a tensor and the tensors inside of it, which are restored after it."""
    yield tensor
    for name in tensor.__tensor_flatten__()[0] if is_traceable_wrapper_subclass(tensor) else ():
        yield from _with_parts(getattr(tensor, name))


def _saved(tensor: torch.Tensor, content: torch.UntypedStorage | None) -> SavedTensor:
    grad_fn = history_of(tensor)
    with torch.enable_grad():
        history = tensor.clone() if isinstance(grad_fn, torch.autograd.graph.Node) else None
    return SavedTensor(
        tensor, content, _geometry(tensor), tensor.requires_grad, grad_fn, history, version(tensor)
    )


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.size(), tensor.stride(), tensor.storage_offset()
