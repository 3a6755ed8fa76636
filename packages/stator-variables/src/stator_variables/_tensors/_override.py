"""The arguments of a function of torch whose classes override functions of torch, and what torch
passes to an override, which torch itself determines: it is called with a *probe* in the place of
such an argument.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from stator_guards import Is, TypeIs
from torch.overrides import TorchFunctionMode

from stator_variables._objects._lookup import is_subtype, type_lookup
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    ClassTracker,
    NumberTracker,
    ObjectTracker,
    SliceTracker,
    SubclassTracker,
    TensorTracker,
)

_C: Any = torch._C
OVERRIDE = "__torch_function__"


def among(vts: Sequence[Any]) -> list[Any]:
    """The subclasses among arguments, also in lists, in order."""
    return [vt for vt in tensors(vts) if is_a(vt, SubclassTracker)]


def overriding(vts: Sequence[Any]) -> list[Any]:
    """The arguments, also in lists, whose classes torch looks through for an override: subclasses
    of tensors, and objects that are no tensors."""
    return [vt for vt in operands(vts) if not is_a(vt, TensorTracker)]


def tensors(vts: Sequence[Any]) -> list[Any]:
    return [vt for vt in operands(vts) if not is_a(vt, ObjectTracker)]


def operands(vts: Sequence[Any]) -> list[Any]:
    found = []
    for vt in vts:
        if is_a(vt, SubclassTracker | TensorTracker) or _is_like_tensor(vt):
            found.append(vt)
        elif is_a(vt, SequenceTracker):
            found += operands(vt.items)
    return found


def _is_like_tensor(vt: VariableTracker) -> bool:
    """Return True for an object of a class with an override that is no tensor."""
    return is_a(vt, ObjectTracker) and any(OVERRIDE in vars(cls) for cls in vt.cls.__mro__)


def overloaded(t: Space, found: Sequence[Any]) -> list[Any]:
    """Return the arguments whose override runs, one of each class, in torch's order: a subclass
    before the class above it."""
    dispatched: list[Any] = []
    for vt in found:
        raw, source = type_lookup(t, vt.cls, OVERRIDE)
        t.guard(source, Is(raw) if raw is _C._disabled_torch_function_impl else TypeIs(type(raw)))
        if raw is not _C._disabled_torch_function_impl and all(
            vt.cls is not other.cls for other in dispatched
        ):
            places = (at for at, other in enumerate(dispatched) if is_subtype(vt.cls, other.cls))
            dispatched.insert(next(places, len(dispatched)), vt)
    return dispatched


def has_override(t: Space, found: Sequence[Any]) -> bool:
    """Return True if code of the program overrides functions of torch for these arguments."""
    return bool(
        t.state(Overrides).modes or (found and not t.state(Overrides).off and overloaded(t, found))
    )


# -- what torch passes ---------------------------------------------------------------------------
class _Consulted(Exception):
    """The interception of an override: the function, the classes, and the keywords that torch
    passes."""


class _Probe(torch.Tensor):
    """Placeholder of a subclass."""


class _Like:
    """Placeholder of an object that is no tensor. Its override is never called: there is a mode."""

    __torch_function__: Any = classmethod(print)


def has_probe(classes: Sequence[type]) -> bool:
    return _Probe in classes or _Like in classes


class _ProbeMode(TorchFunctionMode):
    def __torch_function__(
        self, func: object, types: object, args: object = (), kwargs: object = None
    ) -> Any:
        raise _Consulted(func, types, kwargs)


def override_arguments(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Any:
    """Return the arguments that torch passes to an override, or None if it calls none.

    A plain tensor is named if there is no other.
    """
    given, named = (
        [_dummy(t, vt) for vt in args],
        {key: _dummy(t, vt) for key, vt in kwargs.items()},
    )
    spread = (
        t.instruction is not None and t.instruction.op == "CALL_FUNCTION_EX" and t.instruction.arg
    )
    try:
        with (
            _ProbeMode(),
            _C.DisableTorchFunctionSubclass() if t.state(Overrides).off else nullcontext(),
        ):
            # some distinguish an empty dict from none
            target(*given, **named) if named or spread else target(*given)
    except _Consulted as dispatched:
        is_named = has_probe(dispatched.args[1])
        return dispatched.args if t.state(Overrides).modes or is_named else None
    except Exception as error:
        raise _torch_calls.operator_error(t, error) from None
    return None


def _dummy(t: Space, vt: VariableTracker) -> object:
    """Return a value that the argument parser of torch treats like the argument."""
    if is_a(vt, SubclassTracker | TensorTracker):
        made = torch.empty(0)
        return (
            made.as_subclass(_Probe) if is_a(vt, SubclassTracker) and overloaded(t, [vt]) else made
        )
    if is_a(vt, SequenceTracker):
        items = [_dummy(t, item) for item in vt.items]
        return items if issubclass(vt.cls, list) else tuple(items)
    if is_a(vt, NumberTracker):
        return vt.cls(1)
    if is_a(vt, SliceTracker):
        return slice(None)
    if _is_like_tensor(vt) and overloaded(t, [vt]):
        return _Like()
    return vt.value if is_a(vt, ClassTracker) else vt.constant()
