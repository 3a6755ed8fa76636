"""Facts about tensors that share memory: whether the byte ranges they span in one storage meet."""

from typing import Any, ClassVar

import attrs
import torch

from stator_guards._relation import Together
from stator_guards._source import State


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


@attrs.frozen
class _Meeting(Together):
    """A fact about the memory of a tensor and of others."""

    rank = 70
    words: ClassVar[tuple[str, str]]
    """What has to be, and what is where it is not."""

    @property
    def needed(self) -> str:
        return f"{self.words[0]} {self.named}"

    def found(self, value: Any, state: State) -> str:
        wrong = [str(other) for other in self.values if overlaps(value, other.evaluate(state)) is not self.wanted]
        return f"{self.words[1]} {', '.join(wrong)}"


@attrs.frozen
class NoOverlap(_Meeting):
    """The tensor spans no memory that any of the other tensors spans."""

    fix = "clone one of the overlapping tensors"
    words = ("apart in memory from", "overlapping")
    check = staticmethod(overlaps_any)
    wanted = False


@attrs.frozen
class Overlap(_Meeting):
    """The tensor spans memory that each of the other tensors spans too."""

    fix = "pass views of one tensor always, or never"
    words = ("overlapping", "apart from")
    check = staticmethod(overlaps_all)
