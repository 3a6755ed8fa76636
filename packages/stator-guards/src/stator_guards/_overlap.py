"""Facts about tensors that share memory: whether the byte ranges they span in one storage meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch

from stator_guards._kind import Kind
from stator_guards._source import Renderer, Source, State


def extent(tensor: torch.Tensor) -> tuple[int, int, int]:
    """The storage of a strided tensor, and the first and one past the last byte it spans there."""
    size = tensor.element_size()
    storage = tensor.untyped_storage()._cdata
    if not tensor.numel():
        return storage, 0, 0
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.storage_offset() * size
    return storage, int(start), int(start + (last + 1) * size)


def overlaps(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the spans of two tensors meet. Interleaved views count as overlapping."""
    storage_a, start_a, stop_a = extent(a)
    storage_b, start_b, stop_b = extent(b)
    return storage_a == storage_b and start_a < stop_b and start_b < stop_a


def overlaps_any(tensor: torch.Tensor, *others: torch.Tensor) -> bool:
    return any(overlaps(tensor, other) for other in others)


def overlaps_all(tensor: torch.Tensor, *others: torch.Tensor) -> bool:
    return all(overlaps(tensor, other) for other in others)


def _text(value: str, others: Sequence[Source], render: Renderer) -> str:
    return ", ".join([value, *map(render.value, others)])


@attrs.frozen
class NoOverlap(Kind):
    """The tensor spans no memory that any of the other tensors spans."""

    tensors: tuple[Source, ...]

    rank = 70
    fix = "clone one of the overlapping tensors"

    @property
    def others(self) -> tuple[Source, ...]:
        return self.tensors

    def test(self, value: str, render: Renderer) -> str:
        return f"not {render.capture(overlaps_any, 'overlaps_any')}({_text(value, self.tensors, render)})"

    def holds(self, value: Any, state: State) -> bool:
        return not overlaps_any(value, *(source.evaluate(state) for source in self.tensors))

    @property
    def needed(self) -> str:
        return f"apart in memory from {', '.join(map(str, self.tensors))}"

    def found(self, value: Any, state: State) -> str:
        met = [str(source) for source in self.tensors if overlaps(value, source.evaluate(state))]
        return f"overlapping {', '.join(met)}"


@attrs.frozen
class Overlap(Kind):
    """The tensor spans memory that each of the other tensors spans too."""

    tensors: tuple[Source, ...]

    rank = 70
    fix = "pass views of one tensor always, or never"

    @property
    def others(self) -> tuple[Source, ...]:
        return self.tensors

    def test(self, value: str, render: Renderer) -> str:
        return f"{render.capture(overlaps_all, 'overlaps_all')}({_text(value, self.tensors, render)})"

    def holds(self, value: Any, state: State) -> bool:
        return overlaps_all(value, *(source.evaluate(state) for source in self.tensors))

    @property
    def needed(self) -> str:
        return f"overlapping {', '.join(map(str, self.tensors))}"

    def found(self, value: Any, state: State) -> str:
        apart = [str(source) for source in self.tensors if not overlaps(value, source.evaluate(state))]
        return f"apart from {', '.join(apart)}"
