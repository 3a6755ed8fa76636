"""`ndarray.resize` of an array that was made in the region: its tensor is replaced by one of the
new size.

NumPy refuses where the array does not own its memory, and where others refer to it. Both are
decided here; an array from outside, or one of which it is not certain, is resized natively.
"""

import math
import operator
from typing import Any

import torch
from stator_bytecode import Result

from stator_variables._lifetime._reachability import reachable, reaches
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ArrayTracker,
    ConstantTracker,
    SliceTracker,
    TensorTracker,
)


def resize(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    vt, *given = args
    sizes = _sizes_of(given)
    is_new = is_a(vt, ArrayTracker) and vt.source is None and not vt.flipped
    if sizes is None or kwargs.keys() - {"refcheck"} or not is_new:
        raise t.unsupported("numpy", "the resizing of an array from outside")
    checks = kwargs.get("refcheck", ConstantTracker(True)).constant()
    example = vt.tensor.example
    count, before = math.prod(sizes), operator.index(example.numel())

    if not example.is_contiguous() or (
        count != before and not _is_alone(t, vt, checks is not False)
    ):
        vt.needs_own_memory = True  # no matter where the break takes the program: NumPy decides
        raise t.unsupported("numpy", "the resizing of an array that others may refer to")
    resized = vt.tensor if count == before else _with_count(t, vt.tensor, count, before)
    shape = [ConstantTracker(size) for size in sizes]
    t.write(vt, tensor=_torch_calls.record(t, "reshape", [resized, *shape]))
    return NONE


def _sizes_of(given: Args) -> list[int] | None:
    parts = given[0].items if len(given) == 1 and is_a(given[0], TupleTracker) else given
    sizes = [part.constant() for part in parts]
    return sizes if all(type(size) is int and size >= 0 for size in sizes) else None


def _is_alone(t: Space, vt: ArrayTracker, is_checked: bool) -> bool:
    """Return whether the array owns its memory, no other one shares it, and one variable refers to
    it."""
    storage = vt.tensor.example.untyped_storage()._cdata
    arrays = (ArrayTracker, TensorTracker)
    for other in reachable([*t.machine.frames]):
        is_other = isinstance(other, arrays) and other not in (vt, vt.tensor)
        if is_other and _example_of(other).untyped_storage()._cdata == storage:
            return False
    slots = [value for frame in t.machine.frames for value in frame.slots]
    others = [value for value in slots if value is not vt]
    held_once = len(slots) - len(others) <= 1 and not reaches(others, vt, t.heap.changed)
    return vt.owns_memory and (held_once or not is_checked)


def _example_of(vt: Any) -> Any:
    return (vt.tensor if is_a(vt, ArrayTracker) else vt).example


def _with_count(t: Space, tensor: VariableTracker, count: int, before: int) -> Result:
    """The first items, or all of them and zeros."""
    flat = _torch_calls.record(t, "reshape", [tensor, ConstantTracker(-1)])
    if count < before:
        kept = SliceTracker((NONE, ConstantTracker(count), NONE))
        part = _torch_calls.record(t, operator.getitem, [flat, kept])
        return _torch_calls.record(t, "clone", [part])
    zeros = _torch_calls.record(t, "new_zeros", [flat, ConstantTracker(count - before)])
    return _torch_calls.record(t, torch.cat, [TupleTracker([flat, zeros])])
