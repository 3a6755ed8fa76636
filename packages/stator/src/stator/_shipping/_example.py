"""Examples of calls, whose sizes may be ranges, and the calls that are made of them.

A range stands for several calls, after which one entry serves all sizes of it: two with different
sizes, so that the size is a symbol, and one for each of 0 and 1, which have entries of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import torch

from stator.errors import InvalidUse

SizeRange: TypeAlias = tuple[int, int]
_SMALLEST_SYMBOL = 2
"""The smallest size that has no entry of its own."""


@attrs.frozen
class ExampleTensor:
    """A tensor of which precompilation needs the properties alone.

    A size is a number, a pair of the least and the largest, or a `torch.export.Dim`; equal names
    are equal sizes. Floating-point tensors are filled with ones, others with zeros.
    """

    shape: Sequence[Any]
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    requires_grad: bool = False

    def tensor(self, sizes: Mapping[object, int]) -> torch.Tensor:
        """Return the tensor for sizes by the keys of ranges."""
        found = [sizes.get(key, size) for key, size in self.keyed()]
        make = torch.ones if self.dtype.is_floating_point else torch.zeros
        made = make(found, dtype=self.dtype, device=self.device)
        return made.requires_grad_(self.requires_grad)

    def keyed(self) -> Iterator[tuple[object, Any]]:
        """Yield each size with its key: the name of a range, or the place of one without a name."""
        for number, size in enumerate(self.shape):
            name = getattr(size, "__name__", None)
            yield (id(self), number) if name is None else name, size


@attrs.frozen
class Example:
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def of(cls, given: Any) -> Example:
        """Take a tuple of arguments, a mapping of keywords, or one argument."""
        if isinstance(given, Example):
            return given
        if isinstance(given, Mapping):
            return cls((), dict(given))
        return cls(given if isinstance(given, tuple) else (given,), {})

    def calls(self) -> Iterator[Example]:
        """Yield the calls with tensors in place of what describes them."""
        ranges = dict(_ranges((self.args, self.kwargs)))
        for sizes in _choices(ranges):
            args, kwargs = _filled((self.args, self.kwargs), sizes)
            yield Example(args, kwargs)


def _ranges(value: Any) -> Iterator[tuple[object, SizeRange]]:
    if isinstance(value, ExampleTensor):
        for key, size in value.keyed():
            if not isinstance(size, int):
                yield key, _bounds(size)
    elif isinstance(value, Mapping):
        yield from _ranges([*value.values()])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _ranges(item)


def _bounds(size: Any) -> SizeRange:
    """Return the least and the largest size of a range. Raises InvalidUse."""
    named = getattr(size, "min", None), getattr(size, "max", None)
    low, high = named if hasattr(size, "__name__") else size
    if type(low) is not int or type(high) is not int or not 0 <= low <= high:
        raise InvalidUse(
            f"{size!r} is no range of sizes", "pass (least, largest), or Dim(name, min=, max=)"
        )
    return low, high


def _choices(ranges: Mapping[object, SizeRange]) -> Iterator[dict[object, int]]:
    """Yield sizes for calls after which each size in a range has an entry."""
    if not ranges:
        yield {}
        return
    count = len(ranges)
    for turn in range(2):  # in one call, sizes of different ranges are different, too
        yield {
            key: _within(bounds, turn * count + number)
            for number, (key, bounds) in enumerate(ranges.items())
        }

    usual = {key: _within(bounds, 0) for key, bounds in ranges.items()}
    for special in range(_SMALLEST_SYMBOL):
        having = [key for key, (low, high) in ranges.items() if low <= special <= high]
        yield from ({**usual, key: special} for key in having)
        if len(having) > 1:
            yield {**usual, **dict.fromkeys(having, special)}


def _within(bounds: SizeRange, number: int) -> int:
    """Return one of the sizes that are symbols, another one for each number if there are enough."""
    low, high = max(bounds[0], _SMALLEST_SYMBOL), bounds[1]
    return low + number % (high - low + 1) if high >= low else high


def _filled(value: Any, sizes: Mapping[object, int]) -> Any:
    if isinstance(value, ExampleTensor):
        return value.tensor(sizes)
    if isinstance(value, Mapping):
        return {key: _filled(item, sizes) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_filled(item, sizes) for item in value)
    return value


# -- from JSON -------------------------------------------------------------------------------------
_KEYS = {"shape", "dtype", "device", "requires_grad"}


def examples_of(data: Any) -> list[Example]:
    """Return the examples of a JSON document. Raises InvalidUse."""
    calls = data.get("calls") if isinstance(data, dict) else data
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidUse("the document has no list of calls", 'write {"calls": [{"args": [...]}]}')
    found = []
    for call in calls:
        if unknown := call.keys() - {"args", "kwargs"}:
            raise InvalidUse(f"a call has no {min(unknown)!r}", "write args and kwargs")
        args, kwargs = _described(call.get("args", [])), _described(call.get("kwargs", {}))
        found.append(Example(tuple(args), kwargs))
    return found


def _described(value: Any) -> Any:
    """Return a value of JSON with tensors where it describes some."""
    if isinstance(value, list):
        return [*map(_described, value)]
    if not isinstance(value, dict):
        return value
    if "shape" not in value:
        return {key: _described(item) for key, item in value.items()}

    if unknown := value.keys() - _KEYS:
        raise InvalidUse(f"a tensor has no {min(unknown)!r}", f"write {', '.join(sorted(_KEYS))}")
    dtype = getattr(torch, value.get("dtype", "float32"), None)
    if not isinstance(dtype, torch.dtype):
        raise InvalidUse(f"there is no dtype {value['dtype']!r}", "write float32, int64 and so on")
    facts = {key: value[key] for key in ("device", "requires_grad") if key in value}
    return ExampleTensor([*map(_size, value["shape"])], dtype, **facts)


def _size(value: Any) -> Any:
    if not isinstance(value, dict):
        return value if isinstance(value, int) else tuple(value)
    return torch.export.Dim(value["name"], min=value["min"], max=value["max"])
