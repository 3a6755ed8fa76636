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

from stator_variables._objects import _new_values, _number
from stator_variables._objects._lookup import is_subtype
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tensors import _new_leaves, _tensor_attributes, _torch_calls
from stator_variables._tensors._override import (
    OVERRIDE,
    among,
    has_override,
    has_probe,
    operands,
    overloaded,
    override_arguments,
    overriding,
    tensors,
)
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    NOT_IMPLEMENTED,
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    FunctionTracker,
    NewClassTracker,
    ObjectTracker,
    SubclassTracker,
    TensorTracker,
    is_none,
)

handlers = FunctionTable("tensor subclass")
_C: Any = torch._C
_BASE = torch._C.TensorBase
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
    if in_python and not (t.overrides.modes or t.overrides.subclasses):
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
        in_python and not all(_torch_calls.is_operand(_plain(vt)) for vt in operands)
    ):
        return MISSING
    return plainly(t, target, subclasses, args, kwargs)


def _is_of_torch(target: object) -> bool:
    if getattr(target, "__name__", "") in _OF_OBJECT:
        return False
    # the metaclass of a class may define what is read of it
    is_method = not isinstance(target, type) and getattr(target, "__objclass__", None) is _BASE
    is_recorded = is_method or _torch_calls.is_recorded(target)
    return is_recorded or any(target is each for each in _DISPATCHING)


# -- without an override ---------------------------------------------------------------------------
def plainly(t: Space, target: Any, found: Sequence[Any], args: Args, kwargs: Kwargs) -> Any:
    """The call with plain tensors. What gives one of them back, gives the subclass."""
    before = [_look(vt) for vt in found]
    plain = [_plain(vt) for vt in args]
    result = t.call(BuiltinTracker(target), plain, {key: _plain(vt) for key, vt in kwargs.items()})
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


def _plain(vt: VariableTracker) -> Any:
    if is_a(vt, SubclassTracker):
        return vt.tensor
    if is_a(vt, SequenceTracker) and among(vt.items):
        return type(vt)([_plain(item) for item in vt.items], vt.cls)
    return vt


def get_field(t: Space, raw: Any, vt: VariableTracker, name: str) -> Result:
    """An attribute that C keeps."""
    if has_override(t, among([vt])):
        return dispatch(t, _as_tracker(t, raw.__get__), [vt], [vt], None)
    found = MISSING if name in _OF_ONE else _tensor_attributes.read(t, _plain(vt), name)
    if found is MISSING:
        raise t.unsupported(
            "tensor-attribute", f"the attribute {name} of a tensor of class {vt.cls.__qualname__}"
        )
    return found


@handlers.handles(vars(type(_BASE.shape))["__get__"])
def get(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`torch.Tensor.shape.__get__(x)`"""
    raw = args[0].real
    if not (is_a(args[1], TensorTracker | SubclassTracker) and raw.__objclass__ is _BASE):
        raise t.unsupported("bad-arguments", "a call of __get__ that it does not accept")
    return t.get_attribute(args[1], raw.__name__)


# -- with an override ------------------------------------------------------------------------------
def _as_tracker(t: Space, function: Any) -> VariableTracker:
    return t.wrap(function, CapturedSource(function.__name__, function))


def _with(t: Space, call: Callable[[], Any], **state: object) -> OperationSteps:
    """Run a call with other overrides, and return its result."""
    before = {name: getattr(t.overrides, name) for name in state}
    t.journal.assign(t.overrides, **state)
    try:
        result = yield from settle(call())
        if any(getattr(t.overrides, name) != value for name, value in state.items()):
            raise t.unsupported(
                "mode-value", "a mode for functions of torch that stays entered or left"
            )
        return result
    finally:
        t.journal.assign(t.overrides, **before)


@operation
def dispatch(
    t: Space, public: VariableTracker, dispatched: Sequence[Any], args: Args, kwargs: Kwargs | None
) -> OperationSteps:
    """`__torch_function__` of the innermost mode, then of each in turn; C has no keywords where
    there are none. A break in one is a break at the call, so it costs one."""
    classes = TupleTracker([t.class_of(vt) for vt in dispatched])
    named = [] if kwargs is None else [_new_values.new_dict(kwargs)]
    given = [public, classes, TupleTracker(args), *named]
    modes = t.overrides.modes
    for vt in (*modes[-1:], *dispatched):
        if modes and is_a(vt, TensorTracker):
            raise t.unsupported(
                "operator-error", "a function of torch that dispatches to a mode repeatedly"
            )
        method = yield from settle(t.get_attribute(vt, OVERRIDE))
        active = modes[:-1] if vt in modes else modes
        result = yield from _with(
            t,
            partial(t.call, method, given),
            depth=t.overrides.depth + 1,
            modes=active,
        )
        if not (is_a(result, ConstantTracker) and result.value is NotImplemented):
            return result
    raise t.unsupported(
        "operator-error", "a function of torch that no class among its arguments implements"
    )


@handlers.handles(torch.overrides.handle_torch_function)
def hand_on(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Implement the helper that functions of torch in Python call after they found an override."""
    public, relevant, *rest = args
    given = operands(relevant.items)
    return dispatch(t, public, [] if t.overrides.off else overloaded(t, given), rest, kwargs)


@handlers.handles_each(
    {_C._has_torch_function: 0, _C._has_torch_function_unary: 1, _C._has_torch_function_variadic: 1}
)
def has_torch_function(t: Space, args: Args, kwargs: Kwargs, of: int) -> ConstantTracker:
    return ConstantTracker(has_override(t, overriding(args if of else args[0].items)))


@handlers.handles(_C._is_torch_function_enabled)
def is_enabled(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return ConstantTracker(not t.overrides.off)


@handlers.handles_each(
    {_C._is_torch_function_mode_enabled: bool, _C._len_torch_function_stack: int}
)
def count_modes(t: Space, args: Args, kwargs: Kwargs, of: type) -> VariableTracker:
    return ConstantTracker(of(len(t.overrides.modes) + _C._len_torch_function_stack()))


@handlers.handles(_C._get_function_stack_at)
def mode_at(t: Space, args: Args, kwargs: Kwargs) -> Result:
    where = args[0].constant()
    if where not in range(len(t.overrides.modes)) or _C._len_torch_function_stack():
        raise t.unsupported("mode-value", "a mode that was entered elsewhere")
    return t.overrides.modes[where]


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
        yield from _with(
            t, partial(t.call, public, list(given.items), _keywords(t, named)), off=True
        )
    )


_Disabling = _C.DisableTorchFunctionSubclass


@handlers.handles(_Disabling)
def disabling(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    _refuse_outside(t)
    return ObjectTracker(_Disabling)


def _refuse_outside(t: Space) -> None:
    if not t.overrides.depth:  # a break inside would have to enter it for real
        raise t.unsupported("mode-value", "torch functions disabled by hand, outside of any")


@handlers.handles(_Disabling.__enter__)
def disable(t: Space, args: Args, kwargs: Kwargs) -> None:
    _refuse_outside(t)
    t.journal.assign(args[0], members={None: t.overrides.off})
    t.journal.assign(t.overrides, off=True)


@handlers.handles(_Disabling.__exit__)
def enable(t: Space, args: Args, kwargs: Kwargs) -> None:
    if None not in args[0].members:
        raise t.unsupported(
            "mode-value", "torch functions enabled again that were disabled elsewhere"
        )
    t.journal.assign(t.overrides, off=args[0].members[None])


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
    if _dispatches(cls) or _dispatches(vt.cls) or issubclass(cls, torch.nn.Parameter):
        raise t.unsupported("tensor-subclass", f"a tensor made to be of class {cls.__qualname__}")
    plain = _torch_calls.record_without_modes(t, torch.ops.aten.alias.default, [_plain(vt)], {})
    return plain if cls is torch.Tensor else around(t, plain, cls)


def _dispatches(cls: Any) -> bool:
    return cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def around(t: Space, plain: TensorTracker, cls: type) -> SubclassTracker:
    """A new tensor of a subclass, by a plain one over its memory."""
    if _dispatches(plain.cls) or _dispatches(cls):
        raise t.unsupported(
            "tensor-subclass",
            f"a {plain.cls.__qualname__} that is to be of class {cls.__qualname__}",
        )
    made = SubclassTracker(plain, cls)
    new_namespace(made)
    t.overrides.subclasses = True
    return made


@handlers.handles(_BASE.as_subclass)
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
    data = _torch_calls.record_without_modes(t, "detach", [_plain(args[1])], {})
    if is_parameter:
        shape = tuple(_fixed_size(t, data, dim) for dim in range(data.example.dim()))
        return _new_leaves.make(t, cls, data.traced, shape, bool(requires_grad))
    return as_class(t, data, cls)


def _fixed_size(t: Space, data: VariableTracker, dim: int) -> Any:
    """A size as a constant: those of parameters seldom vary."""
    size = _torch_calls.read_metadata(t, torch.Tensor.size, [data, ConstantTracker(dim)], {})
    return size.value if is_a(size, ConstantTracker) else _number.specialised(t, size)
