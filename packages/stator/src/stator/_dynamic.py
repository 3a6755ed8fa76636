"""Which sizes and numbers are symbolic: static at first, symbolic once they were seen to change."""

from __future__ import annotations

from typing import Any

import attrs
import torch
from stator_guards import Source
from stator_variables import Dim, Policy


@attrs.define(eq=False)
class Shapes:
    """What was seen of one target's inputs. `dynamic`: True makes all symbolic at once, False none ever."""

    dynamic: bool | None
    sizes: dict[Source, tuple[int | None, ...]] = attrs.field(factory=dict)  # None: a dimension that changed
    numbers: dict[Source, Any] = attrs.field(factory=dict)  # CHANGED once two values were seen

    def policy(self, state: tuple[Any, ...]) -> Policy:
        return Policy(dims=self.dims, number_is_symbolic=self.number_is_symbolic)

    def dims(self, source: Source, tensor: torch.Tensor) -> list[Dim]:
        marks = _marks(tensor)
        if isinstance(tensor, torch.nn.Parameter):
            return [marks.get(i, Dim()) for i in range(tensor.dim())]
        known = self._seen(source, tuple(tensor.shape))
        return [marks.get(i, self._dim(size, known[i])) for i, size in enumerate(tensor.shape)]

    def _seen(self, source: Source, now: tuple[int, ...]) -> tuple[int | None, ...]:
        before = self.sizes.get(source, now)
        if len(before) != len(now):
            before = now
        merged = tuple(a if a == b else None for a, b in zip(before, now, strict=True))
        self.sizes[source] = merged
        return merged

    def _dim(self, size: int, known: int | None) -> Dim:
        changed = known is None and self.dynamic is not False
        return Dim("dynamic") if (changed or self.dynamic is True) and size not in (0, 1) else Dim()

    def number_is_symbolic(self, source: Source, value: Any) -> bool:
        """An int anywhere: arguments, and what objects and globals count. Constants do not change, so they stay what they
        are."""
        if self.dynamic is False or type(value) is not int:
            return False  # floats stay constants: compilers specialise on them behind our back
        before = self.numbers.setdefault(source, value)
        if before is not CHANGED and (type(before) is not type(value) or before != value):
            self.numbers[source] = before = CHANGED
        return before is CHANGED and value not in (0, 1)


CHANGED = object()


def _marks(tensor: torch.Tensor) -> dict[int, Dim]:
    """Dimensions that the user marked with torch's own functions, which leave attributes on the tensor."""
    found: dict[int, Dim] = {}
    for index in getattr(tensor, "_dynamo_weak_dynamic_indices", ()):
        found[index] = Dim("dynamic")
    ranges = {r.dim: r for r in getattr(tensor, "_dynamo_dynamic_range", ())}
    for index in getattr(tensor, "_dynamo_dynamic_indices", ()):
        bounds = ranges.get(index)
        low = bounds.min if bounds is not None else None
        high = bounds.max if bounds is not None else None
        found[index] = Dim("dynamic", low, high, strict=True)
    for index in getattr(tensor, "_dynamo_unbacked_indices", ()):
        found[index] = Dim("unbacked")
    for index in getattr(tensor, "_dynamo_static_indices", ()):
        found[index] = Dim()
    return found
