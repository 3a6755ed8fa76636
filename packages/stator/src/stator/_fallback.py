"""When a compiled graph raises: the program itself runs instead and raises, or handles, the error its own way.

Only possible while nothing visible has changed, or where it can be put back: the random state, modes, and the inputs
that the graph writes to, as far as they were copied before it ran. What comes after a write and may
raise because of values (`_hazard.py`) asks for copies each time. Other graphs that write are copied for on their first
run only: an operator that refuses its inputs whatever they hold does so then. Later errors go through as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState
from stator_bytecode import set_exception_field
from stator_variables import UNTOLD, history_of
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stator._target import Target
from stator.errors import BackendFailed

if TYPE_CHECKING:
    from stator._hazard import Hazards


@attrs.define
class Plainly:
    """Given back by an entry that failed: run `target` natively on `state`."""

    target: Target
    state: tuple[Any, ...]

    def run(self) -> Any:
        """The state is kept neither here nor in this frame: its objects die when the program lets go of them."""
        plain, state = self.target.plain(), list(self.state)
        self.state = ()
        return plain(*state) if (consume := getattr(plain, "consume", None)) is None else consume(state)


@attrs.frozen
class Before:
    """What is compared, and put back, when the graph raises. `inputs` are the tensors it may write to."""

    rng: Any
    inputs: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    saved: tuple[Saved, ...]


FIRST, EVERY = 2**30, 2**25
"""Bytes that are copied at most: when a graph runs for the first time (or has raised before), and each time. Where the
program may catch the error there is no limit: it would go on with what was written twice, or not at all."""


@attrs.define(eq=False)
class Recovery:
    """What it takes to go back to before the graph ran."""

    target: Target
    ambient: AmbientState
    random: bool
    hazards: Hazards
    failures: list[str]  # the last one
    forgives: bool  # a backend that is at fault
    proven: bool = False  # it has run, and never raised

    @property
    def looks_before(self) -> bool:
        return self.random or bool(self.hazards.written)

    def before(self, *inputs: torch.Tensor) -> Before:
        rng = torch.get_rng_state() if self.random else None
        hazards = self.hazards
        if hazards.caught:
            chosen, limit = hazards.written, None
        elif self.proven:
            chosen, limit = hazards.repeated, EVERY
        else:
            chosen, limit = hazards.written, FIRST
        self.proven = True  # `after` says when not
        saved = save([inputs[position] for position in chosen], limit) if chosen else ()
        is_whole = {id(one.tensor) for one in saved}.issuperset(id(inputs[position]) for position in hazards.written)
        return Before(rng, inputs, () if is_whole else tuple(map(version, inputs)), saved)

    def after(self, error: Exception, state: tuple[Any, ...], before: Before | None) -> Plainly:
        """Raises `error` again when something was written that cannot be taken back; or when the backend is at fault,
        and that is not forgiven."""
        self.proven = False
        if isinstance(error, BackendFailed) and not self.forgives:
            raise error
        self.ambient.install()
        with torch.inference_mode(self.ambient.inference):
            if before is not None and not self._put_back(before):
                raise error
        set_exception_field(error, "__traceback__", None)  # its frames hold what the graph made: modes say
        self.failures[:] = [f"{type(error).__name__}: {error}"]
        return Plainly(self.target, state)

    def _put_back(self, before: Before) -> bool:
        if before.versions:
            saved = {id(one.tensor) for one in before.saved}
            others = [pair for pair in zip(before.inputs, before.versions, strict=True) if id(pair[0]) not in saved]
            if self.hazards.silent or not is_untouched(others):
                return False
        if not all(one.can_be_restored for one in before.saved):
            return False
        for one in before.saved:
            one.restore()
        if before.rng is not None:
            torch.set_rng_state(before.rng)
        return True


# Tensors as they were before a graph ran, and how they get so again: contents, shape, and their place in autograd.

_UNKNOWN = -1
_set_versions: Any = torch._C._autograd._unsafe_set_version_counter


def version(tensor: torch.Tensor) -> int:
    """Views share the counter of their base. Inference tensors count nothing."""
    return _UNKNOWN if tensor.is_inference() else tensor._version


def is_untouched(noted: Iterable[tuple[torch.Tensor, int]]) -> bool:
    return all(before != _UNKNOWN and before == version(tensor) for tensor, before in noted)


@attrs.frozen(eq=False)
class Saved:
    """One tensor. Those over one storage share its copy: a storage knows nothing of autograd, nor of overlaps."""

    tensor: torch.Tensor
    content: torch.UntypedStorage | None  # one with others in it has none of its own
    geometry: tuple[Any, ...]
    requires_grad: bool
    grad_fn: Any
    history: torch.Tensor | None  # a copy that autograd follows to where the tensor came from
    version: int

    @property
    def can_be_restored(self) -> bool:
        """Not with a storage of another size, nor a view that was a leaf and has a history now."""
        same_size = self.content is None or self.tensor.untyped_storage().nbytes() == self.content.nbytes()
        return same_size and (self._has_its_history() or self.history is not None or not self.tensor._is_view())

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
        """Or will have it: what is not told of a view is as it was once the version is."""
        now = history_of(self.tensor)
        same = now is self.grad_fn or UNTOLD in (now, self.grad_fn)
        return same and self.tensor.requires_grad == self.requires_grad

    def _follow(self) -> None:
        """An operator in place is now part of the history of the tensor, which gets its own again, behind a copy."""
        if not self.tensor._is_view():
            self.tensor.detach_().requires_grad_(self.requires_grad and self.history is None)
        if self.history is not None:
            with torch.enable_grad():
                self.tensor.copy_(self.history)


def save(tensors: Sequence[torch.Tensor], limit: int | None) -> tuple[Saved, ...]:
    """Those of the tensors that can be saved; none when their memory is more than `limit` bytes."""
    strided = [part for t in tensors for part in _with_parts(t) if t.layout is torch.strided]
    plain = [tensor for tensor in strided if not is_traceable_wrapper_subclass(tensor)]
    storages = {storage._cdata: storage for storage in (tensor.untyped_storage() for tensor in plain)}
    if limit is not None and sum(storage.nbytes() for storage in storages.values()) > limit:
        return ()
    contents: dict[int, Any] = {key: storage.clone() for key, storage in storages.items()}  # type: ignore[no-untyped-call]
    return tuple(_saved(tensor, contents.get(tensor.untyped_storage()._cdata)) for tensor in strided)


def _with_parts(tensor: Any) -> Iterator[torch.Tensor]:
    """And the tensors in it, which are put back last: what is done to the whole is done to them."""
    yield tensor
    for name in tensor.__tensor_flatten__()[0] if is_traceable_wrapper_subclass(tensor) else ():
        yield from _with_parts(getattr(tensor, name))


def _saved(tensor: torch.Tensor, content: torch.UntypedStorage | None) -> Saved:
    grad_fn = history_of(tensor)
    with torch.enable_grad():
        history = tensor.clone() if isinstance(grad_fn, torch.autograd.graph.Node) else None
    return Saved(tensor, content, _geometry(tensor), tensor.requires_grad, grad_fn, history, version(tensor))


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.size(), tensor.stride(), tensor.storage_offset()
