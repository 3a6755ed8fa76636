"""Translation of sources to torch and back: `ShapeEnv` and AOTAutograd require a torch `Source` for
each input.

A `TorchSource` carries a source of stator and renders as its name. torch derives sources from it
(the size of a tensor, the base of a view) out of classes that belong to Dynamo; those are
recognised by their shape, never imported.
"""

import functools
from typing import Any

import torch
from stator_bytecode.errors import InternalError
from stator_guards import AttrSource, CallSource, GradientSource, SizeSource, Source
from torch._guards import GuardSource, dataclass_with_cached_hash
from torch._guards import Source as AnyTorchSource

SIZE_KINDS = {"SIZE": "size", "STRIDE": "stride", "STORAGE_OFFSET": "storage_offset"}


@dataclass_with_cached_hash(frozen=True)
class NamedSource(AnyTorchSource):
    """The remainder of a source in AOTAutograd's cache, which pickles sources into its keys and its
    entries."""

    text: str

    @property
    def _name_template(self) -> str:
        return self.text

    @functools.cached_property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


@dataclass_with_cached_hash(frozen=True)
class TorchSource(AnyTorchSource):
    """A source of stator as a torch source. Its pickle is its name, as the source may hold objects
    of the user."""

    source: Source

    # the decorator sets `__reduce__`
    def __reduce_ex__(self, protocol: object) -> tuple[type[NamedSource], tuple[str]]:
        return NamedSource, (self._name_template,)

    @property
    def _name_template(self) -> str:
        return self.source.name

    @functools.cached_property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


@dataclass_with_cached_hash(frozen=True)
class WrappedFloatSource(TorchSource):
    """A float that enters the graph as a tensor without dimensions; `source` is that of the
    float."""

    @property
    def _name_template(self) -> str:
        return f"as_tensor({self.source.name})"


def ours(torch_source: Any) -> Source:
    """The source of ours that a torch source, given or derived, represents."""
    if isinstance(torch_source, TorchSource):
        return torch_source.source
    kind = type(torch_source).__name__
    if kind == "TensorPropertySource":
        return _size(ours(torch_source.base), torch_source)

    if kind == "CallMethodItemSource":
        base = torch_source.base
        return (
            base.source
            if isinstance(base, WrappedFloatSource)
            else CallSource(torch.Tensor.item, ours(base))
        )
    if kind == "AttrSource":
        whole, name = ours(torch_source.base), torch_source.member
        return GradientSource(whole) if name == "grad" else AttrSource(whole, name)
    raise InternalError(f"torch derived a source of an unknown kind, {kind}: {torch_source.name}")


def _size(whole: Source, torch_source: Any) -> Source:
    kind: Any = SIZE_KINDS[torch_source.prop.name]
    return SizeSource(whole, kind, torch_source.idx or 0)
