"""Weak references: their functions and methods."""

import weakref
from typing import Any

import torch
from stator_bytecode import Result, frame_values
from stator_guards import DictItemSource, ParameterSource, Source

from stator_variables import _trackers as k
from stator_variables._lifetime._reachability import reaches
from stator_variables._objects._cell import CellTracker
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._weakrefs import WeakrefTracker
from stator_variables._runtime._finalizers import may_hold_real
from stator_variables._space import Space
from stator_variables._tracker import (
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    real_of,
    source_of,
)

handlers = FunctionTable("weak reference")


@handlers.handles(weakref.ref)
def make(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`weakref.ref(thing, callback)`: without a callback, one reference is enough for all."""
    target, *rest = args
    calls_back = bool(rest) and not k.is_none(rest[0])
    if len(args) > 2 or kwargs or not target.cls.__weakrefoffset__:
        raise t.unsupported("construction", "making a weak reference of another form")
    if target.source is None and (calls_back or not _can_be_followed(target)):
        raise t.unsupported("construction", "making a weak reference to a new object")
    if not rest or k.is_none(rest[0]):
        return t.shared.setdefault((weakref.ref, id(target)), WeakrefTracker(target))
    if type(target.source) is ParameterSource:
        raise t.unsupported(
            "construction", "making a weak reference with a callback to an argument or a local"
        )
    return WeakrefTracker(target, rest[0])


@handlers.handles(weakref.ref.__call__)
def call(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], WeakrefTracker):
        raise t.unsupported("builtin", f"a call of a {args[0].cls.__qualname__}")
    target = args[0].target
    is_new = target.source is None and not k.is_none(target)
    if (is_new and not _is_alive(t, target)) or may_be_gone(t, target):
        raise t.unsupported(
            "weak-reference", "a weak reference to something that nobody here holds any more"
        )
    return target


def _can_be_followed(target: VariableTracker) -> bool:
    """Return True for a new object that no more than the program's references keep alive: autograd
    may keep a tensor with a history."""
    if is_a(target, k.TensorTracker):
        return not target.example.requires_grad
    return is_a(target, k.ObjectTracker | k.FunctionTracker)


def _is_alive(t: Space, target: VariableTracker) -> bool:
    """Return True if the traced code leads to a new object; False may be wrong."""
    holders = [*frame_values(t.machine.frames), *t.lifetimes.changed_holders()]
    return reaches(holders, target, t.heap.changed)


def may_be_gone(t: Space, target: VariableTracker) -> bool:
    """Return True if an object was released while it was traced: no frame has it, and it came as a
    local value, or something that held it has changed since. References to tensors are mostly
    torch's own, to those of modules."""
    if (real := real_of(target)) is None or any(
        _is_held(frame, target) for frame in t.machine.frames
    ):
        return False
    if type(source_of(target)) is ParameterSource:
        return True
    changed = [vt for vt in t.heap.changed.values() if not _keeps(vt, source_of(target))]
    holders = (holder for holder in map(real_of, changed) if holder is not real)
    return not issubclass(type(real), torch.Tensor) and any(
        may_hold_real(holder, real) for holder in holders
    )


def _keeps(vt: VariableTracker, source: Source) -> bool:
    """Return True for a dict of which other keys changed than the one a value was found under."""
    if not isinstance(source, DictItemSource) or not is_a(vt, DictTracker):
        return False
    return vt.source == source.whole and all(hashed != source.key for _, hashed, *_ in vt.log)


def _is_held(frame: Any, target: VariableTracker) -> bool:
    return any(holds(value, target) for value in (*frame.slots, *frame.stack))


def holds(value: VariableTracker, target: VariableTracker) -> bool:
    return value is target or (type(value) is CellTracker and value.content is target)
