"""`__torch_function__` of subclasses of tensors, of other objects and of modes, interpreted where
torch would call it.

A tracker of such a tensor holds one of a plain tensor over the same memory, and the graph sees only
that. Modes that are entered while tracing (`Overrides.modes`) are called first, and also for plain
tensors. While torch functions are disabled, as they are inside `Tensor.__torch_function__`,
functions of torch take the plain tensor for it.

    y + 1          torch.Tensor.add, (y, 1)     add = y_plain + 1       alias = aten.alias(add)
    the program's  -> __torch_function__ of y   -> the node of the      -> y's class,
                                                   graph                   around alias
"""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, operation, settle
from stator_guards import CapturedSource

from stator_variables._objects import _new_values
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes, _torch_calls
from stator_variables._tensors._override import (
    OVERRIDE,
    among,
    has_override,
    has_probe,
    overloaded,
    override_arguments,
    overriding,
)
from stator_variables._tensors._recorded_functions import is_recorded
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    BuiltinTracker,
    ConstantTracker,
    SubclassTracker,
    TensorTracker,
)

_C: Any = torch._C
BASE = torch._C.TensorBase
_OF_OBJECT = frozenset(
    {"as_subclass", "_make_subclass", "__new__", "__init__", "__hash__", "__setstate__"}
)
"""Functions for which torch calls no `__torch_function__`."""
_DISPATCHING = (
    torch.device,
    torch.result_type,
    torch.can_cast,
    torch.promote_types,
    _C._set_grad_enabled,
)
"""Functions that are no operations, and do call `__torch_function__`."""
_OF_ONE = frozenset(
    "grad grad_fn is_leaf output_nr _base _version _grad retains_grad _backward_hooks".split()
)
"""Attributes of the tensor itself, which the plain one over its memory does not share."""


def call(t: Space, target: object, args: Args, kwargs: Kwargs) -> Result:
    """Call a function of torch for which a mode or a subclass among its arguments has an override.

    MISSING for any other call, and for a function in Python, which is to be interpreted.
    """
    in_python = isinstance(target, types.FunctionType)
    if not _is_of_torch(target):
        return MISSING
    if in_python and not (t.state(Overrides).modes or t.state(Overrides).subclasses):
        return MISSING

    operands = (*args, *kwargs.values())
    found = overriding(operands)  # those that were not looked at yet, too
    if has_override(t, found):
        if in_python:  # and dispatches itself
            return MISSING
        if (dispatched := override_arguments(t, target, args, kwargs)) is not None:
            public, named, given = dispatched
            first = overloaded(t, found) if has_probe(named) else args[: len(named)]
            return dispatch(
                t, _as_tracker(t, public), first, args, None if given is None else kwargs
            )

    subclasses = [vt for vt in found if is_a(vt, SubclassTracker)]
    if not subclasses or (
        in_python and not all(_torch_calls.is_operand(as_plain(vt)) for vt in operands)
    ):
        return MISSING
    return plainly(t, target, subclasses, args, kwargs)


def _is_of_torch(target: object) -> bool:
    if getattr(target, "__name__", "") in _OF_OBJECT:
        return False
    # the metaclass of a class may define what is read of it
    is_method = not isinstance(target, type) and getattr(target, "__objclass__", None) is BASE
    return is_method or is_recorded(target) or any(target is each for each in _DISPATCHING)


# -- without an override ---------------------------------------------------------------------------
def plainly(t: Space, target: Any, found: Sequence[Any], args: Args, kwargs: Kwargs) -> Any:
    """The call with plain tensors. What gives one of them back, gives the subclass."""
    before = [_look(vt) for vt in found]
    plain = [as_plain(vt) for vt in args]
    result = t.call(
        BuiltinTracker(target), plain, {key: as_plain(vt) for key, vt in kwargs.items()}
    )
    if before != [_look(vt) for vt in found]:
        raise t.unsupported(
            "tensor-subclass", f"{target.__name__}, which changes the shape of an existing subclass"
        )
    return next((vt for vt in found if vt.tensor is result), result)


def _look(vt: SubclassTracker) -> object:
    """Return the geometry of an existing tensor, which a call must not change; None for a new
    one."""
    if vt.source is None:
        return None
    example = vt.tensor.example
    return repr((example.size(), example.stride(), example.storage_offset()))


def as_plain(vt: VariableTracker) -> Any:
    if is_a(vt, SubclassTracker):
        return vt.tensor
    if is_a(vt, SequenceTracker) and among(vt.items):
        return type(vt)([as_plain(item) for item in vt.items], vt.cls)
    return vt


def get_field(t: Space, raw: Any, vt: VariableTracker, name: str) -> Result:
    """An attribute that C keeps."""
    if has_override(t, among([vt])):
        return dispatch(t, _as_tracker(t, raw.__get__), [vt], [vt], None)
    found = MISSING if name in _OF_ONE else _tensor_attributes.read(t, as_plain(vt), name)
    if found is MISSING:
        raise t.unsupported(
            "tensor-attribute", f"the attribute {name} of a tensor of class {vt.cls.__qualname__}"
        )
    return found


# -- with an override ------------------------------------------------------------------------------
def _as_tracker(t: Space, function: Any) -> VariableTracker:
    return t.wrap(function, CapturedSource(function.__name__, function))


def with_overrides(t: Space, call: Callable[[], Any], **state: object) -> OperationSteps:
    """Run a call with other overrides, and return its result."""
    before = {name: getattr(t.state(Overrides), name) for name in state}
    t.journal.assign(t.state(Overrides), **state)
    try:
        result = yield from settle(call())
        if any(getattr(t.state(Overrides), name) != value for name, value in state.items()):
            raise t.unsupported(
                "mode-value", "a mode for functions of torch that stays entered or left"
            )
        return result
    finally:
        t.journal.assign(t.state(Overrides), **before)


@operation
def dispatch(
    t: Space, public: VariableTracker, dispatched: Sequence[Any], args: Args, kwargs: Kwargs | None
) -> OperationSteps:
    """`__torch_function__` of the innermost mode, then of each in turn; C has no keywords where
    there are none. A break in one is a break at the call, so it costs one."""
    classes = TupleTracker([t.class_of(vt) for vt in dispatched])
    named = [] if kwargs is None else [_new_values.new_dict(kwargs)]
    given = [public, classes, TupleTracker(args), *named]
    modes = t.state(Overrides).modes
    for vt in (*modes[-1:], *dispatched):
        if modes and is_a(vt, TensorTracker):
            raise t.unsupported(
                "operator-error", "a function of torch that dispatches to a mode repeatedly"
            )

        method = yield from settle(t.get_attribute(vt, OVERRIDE))
        active = modes[:-1] if vt in modes else modes
        result = yield from with_overrides(
            t,
            partial(t.call, method, given),
            depth=t.state(Overrides).depth + 1,
            modes=active,
        )
        if not (is_a(result, ConstantTracker) and result.value is NotImplemented):
            return result

    raise t.unsupported(
        "operator-error", "a function of torch that no class among its arguments implements"
    )


def has_own_dispatch(cls: Any) -> bool:
    return cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def around(t: Space, plain: TensorTracker, cls: type) -> SubclassTracker:
    """A new tensor of a subclass, by a plain one over its memory."""
    if has_own_dispatch(plain.cls) or has_own_dispatch(cls):
        raise t.unsupported(
            "tensor-subclass",
            f"a {plain.cls.__qualname__} that is to be of class {cls.__qualname__}",
        )
    made = SubclassTracker(plain, cls)
    new_namespace(made)
    t.state(Overrides).subclasses = True
    return made
