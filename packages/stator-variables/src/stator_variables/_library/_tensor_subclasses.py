"""Functions about tensor subclasses and `__torch_function__`: see `_tensors/_subclasses.py`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables._objects import _number
from stator_variables._objects._lookup import is_subtype
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._space import Space
from stator_variables._tensors import _new_leaves, _torch_calls
from stator_variables._tensors._override import (
    has_override,
    operands,
    overloaded,
    overriding,
    tensors,
)
from stator_variables._tensors._subclasses import (
    BASE,
    around,
    as_plain,
    dispatch,
    has_own_dispatch,
    with_overrides,
)
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    NOT_IMPLEMENTED,
    ClassTracker,
    ConstantTracker,
    FunctionTracker,
    NewClassTracker,
    ObjectTracker,
    SubclassTracker,
    TensorTracker,
    is_none,
)

_C: Any = torch._C
handlers = FunctionTable("tensor subclass")


@handlers.handles(vars(type(BASE.shape))["__get__"])
def get(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`torch.Tensor.shape.__get__(x)`"""
    raw = args[0].real
    if not (is_a(args[1], TensorTracker | SubclassTracker) and raw.__objclass__ is BASE):
        raise t.unsupported("bad-arguments", "a call of __get__ that it does not accept")
    return t.get_attribute(args[1], raw.__name__)


@handlers.handles(torch.overrides.handle_torch_function)
def hand_on(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Implement the helper that functions of torch in Python call after they found an override."""
    public, relevant, *rest = args
    given = operands(relevant.items)
    return dispatch(t, public, [] if t.state(Overrides).off else overloaded(t, given), rest, kwargs)


@handlers.handles_each(
    {_C._has_torch_function: 0, _C._has_torch_function_unary: 1, _C._has_torch_function_variadic: 1}
)
def has_torch_function(t: Space, args: Args, kwargs: Kwargs, of: int) -> ConstantTracker:
    return ConstantTracker(has_override(t, overriding(args if of else args[0].items)))


@handlers.handles(_C._is_torch_function_enabled)
def is_enabled(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return ConstantTracker(not t.state(Overrides).off)


@handlers.handles_each(
    {_C._is_torch_function_mode_enabled: bool, _C._len_torch_function_stack: int}
)
def count_modes(t: Space, args: Args, kwargs: Kwargs, of: type) -> VariableTracker:
    return ConstantTracker(of(len(t.state(Overrides).modes) + _C._len_torch_function_stack()))


@handlers.handles(_C._get_function_stack_at)
def mode_at(t: Space, args: Args, kwargs: Kwargs) -> Result:
    where = args[0].constant()
    if where not in range(len(t.state(Overrides).modes)) or _C._len_torch_function_stack():
        raise t.unsupported("mode-value", "a mode that was entered elsewhere")
    return t.state(Overrides).modes[where]


# -- torch's default override ----------------------------------------------------------------------
_KEPT = frozenset({"_base", "grad", "_grad"})
"""Attributes that are given as they are (`get_default_nowrap_functions`)."""


@handlers.handles(torch.Tensor.__torch_function__.__func__)  # type: ignore[attr-defined]
def default(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`torch.Tensor.__torch_function__`: the function on plain tensors; those that it gives become
    of the class."""
    given = {**dict(zip(("cls", "func", "types", "args", "kwargs"), args, strict=False)), **kwargs}
    of, dispatched = given.get("cls", NONE), given.get("types")
    classes = dispatched.items if is_a(dispatched, SequenceTracker) else [NONE]
    if "func" not in given or not all(is_a(each, ClassTracker) for each in (of, *classes)):
        raise t.unsupported("bad-arguments", "a call of __torch_function__ that it does not accept")
    cls = of.value
    if not all(is_subtype(cls, each.value) for each in classes):
        return NOT_IMPLEMENTED
    return _converted(t, given["func"], cls, given.get("args"), given.get("kwargs"))


@operation
def _converted(
    t: Space, public: VariableTracker, cls: type, args: Any = None, kwargs: Any = None
) -> OperationSteps:
    result = yield from settle(
        disabled(t, [public, None, *([] if args is None else [args]), kwargs], {})
    )
    is_kept = is_a(public, MethodTracker) and getattr(public.receiver.real, "__name__", "") in _KEPT
    known = [] if args is None else tensors((*args.items, *_keywords(t, kwargs).values()))
    return (
        result
        if is_kept
        else _of_class(t, result, cls, None if is_a(public, FunctionTracker) else known)
    )


@handlers.handles(_C._disabled_torch_function_impl)
@operation
def disabled(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """`func(*args, **kwargs)` with torch functions disabled."""
    public, _, given, named = [*args, TupleTracker([]), None][:4] if len(args) < 4 else args
    return (
        yield from with_overrides(
            t, partial(t.call, public, list(given.items), _keywords(t, named)), off=True
        )
    )


_Disabling = _C.DisableTorchFunctionSubclass


@handlers.handles(_Disabling)
def disabling(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    _refuse_outside(t)
    return ObjectTracker(_Disabling)


def _refuse_outside(t: Space) -> None:
    if not t.state(Overrides).depth:  # a break inside would have to enter it for real
        raise t.unsupported("mode-value", "torch functions disabled by hand, outside of any")


@handlers.handles(_Disabling.__enter__)
def disable(t: Space, args: Args, kwargs: Kwargs) -> None:
    _refuse_outside(t)
    t.journal.assign(args[0], members={None: t.state(Overrides).off})
    t.journal.assign(t.state(Overrides), off=True)


@handlers.handles(_Disabling.__exit__)
def enable(t: Space, args: Args, kwargs: Kwargs) -> None:
    if None not in args[0].members:
        raise t.unsupported(
            "mode-value", "torch functions enabled again that were disabled elsewhere"
        )
    t.journal.assign(t.state(Overrides), off=args[0].members[None])


def _keywords(t: Space, named: VariableTracker | None) -> dict[str, Any]:
    if named is None or is_none(named):
        return {}
    return {key.constant(): value for key, value in t.items(named)}


def _of_class(t: Space, result: VariableTracker, cls: type, known: Sequence[Any] | None) -> Any:
    """`known` are the tensors that a function of C was given: what else it gives, nobody holds."""
    if is_a(result, TensorTracker | SubclassTracker) and not is_subtype(result.cls, cls):
        is_new = (
            known is not None
            and type(result) is TensorTracker
            and all(result is not vt for vt in known)
        )
        return around(t, result, cls) if is_new else as_class(t, result, cls)
    if is_a(result, SequenceTracker):
        return type(result)([_of_class(t, item, cls, known) for item in result.items], result.cls)
    return result


def as_class(t: Space, vt: VariableTracker, cls: Any) -> VariableTracker:
    """`tensor.as_subclass(cls)`: another tensor over the memory."""
    if has_own_dispatch(cls) or has_own_dispatch(vt.cls) or issubclass(cls, torch.nn.Parameter):
        raise t.unsupported("tensor-subclass", f"a tensor made to be of class {cls.__qualname__}")
    plain = _torch_calls.record_without_modes(t, torch.ops.aten.alias.default, [as_plain(vt)], {})
    return plain if cls is torch.Tensor else around(t, plain, cls)


@handlers.handles(BASE.as_subclass)
def as_subclass(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    if (
        kwargs
        or len(args) != 2
        or not is_a(args[1], ClassTracker)
        or is_a(args[1], NewClassTracker)
    ):
        raise t.unsupported(
            "bad-arguments", "as_subclass() of no class, or of one that is made here"
        )
    return as_class(t, args[0], args[1].value)


@handlers.handles(torch.Tensor._make_subclass)
def make_subclass(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Return the same without a history. With gradients it is a leaf, as a `Parameter` may be."""
    cls = args[0].value
    requires_grad = args[2].constant() if len(args) > 2 else False
    is_parameter = cls is torch.nn.Parameter and is_a(args[1], TensorTracker)
    if (
        kwargs
        or len(args) > 3
        or (requires_grad is not False and not is_parameter)
        or is_a(args[0], NewClassTracker)
        or (issubclass(cls, torch.nn.Parameter) and not is_parameter)
    ):
        detail = f"a call of torch.Tensor._make_subclass for a {cls.__qualname__}"
        raise t.unsupported("builtin", detail)

    data = _torch_calls.record_without_modes(t, "detach", [as_plain(args[1])], {})
    if is_parameter:
        shape = tuple(_fixed_size(t, data, dim) for dim in range(data.example.dim()))
        return _new_leaves.make(t, cls, data.traced, shape, bool(requires_grad))
    return as_class(t, data, cls)


def _fixed_size(t: Space, data: VariableTracker, dim: int) -> Any:
    """A size as a constant: those of parameters seldom vary."""
    size = _torch_calls.read_metadata(t, torch.Tensor.size, [data, ConstantTracker(dim)], {})
    return size.value if is_a(size, ConstantTracker) else _number.specialised(t, size)
