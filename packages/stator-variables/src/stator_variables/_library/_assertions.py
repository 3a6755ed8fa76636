"""Assertions of torch about tensors and sizes, as checks: see `_tensors/_assertion.py`."""

import operator

import torch
from stator_bytecode import Result

from stator_variables._handler_keys import BRANCH_ON_DATA
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._assertion import FAILED, check, expected_truth
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a
from stator_variables._trackers import NONE, ConstantTracker, NumberTracker, TensorTracker

handlers = FunctionTable("assertion")


@handlers.handles(BRANCH_ON_DATA)
def branch(t: Space, args: Args, kwargs: Kwargs) -> bool | None:
    """Return the truth of a value without which the program raises, once the graph checks it."""
    expected = expected_truth(t)
    if expected is None or not check(t, args[0], expected):
        return None
    return expected


# -- torch's own checks ----------------------------------------------------------------------------
@handlers.handles(
    torch._check,
    torch._check_value,
    torch._check_index,
    torch._check_type,
    torch._check_not_implemented,
)
def check_condition(t: Space, args: Args, kwargs: Kwargs) -> None:
    """The message is for the program's own run, and so is a check that fails already."""
    condition = args[0] if args else kwargs.get("cond")
    if is_a(condition, NumberTracker):
        check(t, condition, True)
    elif not is_a(condition, ConstantTracker) or condition.value is not True:
        raise t.unsupported("operator-error", "a check that fails, or that torch refuses")


@handlers.handles(torch._assert_async)
def check_later(t: Space, args: Args, kwargs: Kwargs) -> Result:
    message = [ConstantTracker(FAILED)] if len(args) + len(kwargs) == 1 else []
    return _torch_calls.record(t, torch._assert_async, [*args, *message], kwargs)


@handlers.handles(torch._check_is_size)
def check_is_size(t: Space, args: Args, kwargs: Kwargs) -> Result:
    number = args[0] if args else kwargs.get("i", MISSING)
    if number is MISSING:
        return MISSING
    if not is_a(number, NumberTracker):
        check_condition(t, [t.fold(operator.ge, [number, ConstantTracker(0)], {})], {})
    limit = {"max": kwargs["max"]} if "max" in kwargs else {}
    return _torch_calls.record(t, torch._check_is_size, [number], limit)


@handlers.handles(torch._check_tensor_all, torch._assert)
def check_tensor(t: Space, args: Args, kwargs: Kwargs) -> Result:
    condition = args[0] if args else kwargs.get("cond", kwargs.get("condition"))
    if t.state(Overrides).modes:  # which its own code calls
        return MISSING
    if not is_a(condition, TensorTracker):
        return check_condition(t, [condition], {})
    if not check(t, _torch_calls.record(t, "all", [condition]), True):
        raise t.unsupported(
            "data-dependent-branch", "a check of the values of a tensor on another device"
        )
    return NONE
