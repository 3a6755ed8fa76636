"""Small values with handlers of their own: slices made by name, added sizes, checks for overridden torch functions."""

from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._model import _calls, _operators
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("value")


@handlers.handles(slice)
def make_slice(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    folded = _calls.fold(t, slice, args, kwargs)
    if folded is not MISSING:
        return folded
    start, stop, step = (k.NONE, args[0], k.NONE) if len(args) == 1 else (*args, k.NONE)[:3]
    return k.SliceTracker((start, stop, step))


_PARTS = ("start", "stop", "step")


@handlers.handles_each({getattr(slice, name): name for name in _PARTS})
def part_of_slice(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: str) -> Any:
    vt = args[0]
    is_known = not isinstance(vt, k.SliceTracker)
    return k.ConstantTracker(getattr(vt.constant(), of)) if is_known else vt.parts[_PARTS.index(of)]


_LIKE_TUPLE = ("__getitem__", "__add__", "__mul__", "__rmul__")


@handlers.handles_each({getattr(torch.Size, name): getattr(tuple, name) for name in _LIKE_TUPLE})
def size_as_tuple(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> Any:
    """`torch.Size` has methods of its own that do what tuple's do, and give sizes where tuple's give tuples."""
    return _calls.call(t, k.BuiltinTracker(of), args, kwargs)


@handlers.handles(torch.Size.__radd__)
def size_radd(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    size, left = args
    if not isinstance(left, k.TupleTracker):
        return k.NOT_IMPLEMENTED
    return k.TupleTracker([*left.items, *size.items], torch.Size)


@handlers.handles(torch.Size.numel)
def size_numel(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    total: Any = k.ConstantTracker(1)
    for item in args[0].items:
        total = _operators.binary(t, "*", total, item)
    return total


@handlers.handles(
    torch._C._has_torch_function, torch._C._has_torch_function_unary, torch._C._has_torch_function_variadic
)
def has_torch_function(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Plain tensors have none; subclasses are not traced yet."""
    return k.ConstantTracker(False)
