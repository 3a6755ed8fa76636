"""Handlers of the builtin functions on values: reductions, lengths, iteration, numbers, text."""

from __future__ import annotations

import builtins
import functools
import operator
from typing import Any

import torch
from stator_bytecode import HandlerTable, operation, settle

from stator_variables import _kinds as k
from stator_variables._applevel import _reductions, _tensors
from stator_variables._builtin._iterator_functions import has_total_order
from stator_variables._builtin._results import app_level, as_constant, folded
from stator_variables._builtin._strings import convert
from stator_variables._model import _attributes, _calls, _containers, _operators
from stator_variables._model._lookup import defines
from stator_variables._model._raising import throw
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

Args = list[Any]
Kwargs = dict[str, Any]
handlers: HandlerTable[Any, Any] = HandlerTable("builtin")


def _replace(real: Any, function: Any) -> None:
    @handlers.handles(real)
    def run(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        args = [_in_any_order(real, args[0], kwargs), *args[1:]] if len(args) == 1 else args
        folded = _calls.fold(t, real, args, kwargs)
        if folded is MISSING and real in _IN_GRAPH and len(args) > 1 and not kwargs and _are_ints(args):
            return functools.reduce(lambda a, b: _torch_calls.record(t, _IN_GRAPH[real], [a, b], {}), args)
        return app_level(t, function, args, kwargs) if folded is MISSING else folded


_IN_GRAPH = {min: torch.sym_min, max: torch.sym_max}


def _are_ints(vts: Args) -> bool:
    """With other numbers among them, the class of the result would depend on the values."""
    return all(isinstance(vt, k.NumberTracker | k.ConstantTracker) and vt.cls is int for vt in vts)


def _in_any_order(real: Any, iterable: Any, kwargs: Kwargs) -> Any:
    """A set of strings or ints as a tuple, for functions that give the same whatever the order is."""
    if isinstance(iterable, k.SetTracker) and not kwargs and has_total_order(iterable):
        values = list(iterable.entries.values())
        if real is not sum or all(item.cls is int for item in values):
            return k.TupleTracker(values, tuple)
    return iterable


for _reduction in ("all", "any", "sum", "min", "max"):
    _replace(getattr(builtins, _reduction), getattr(_reductions, _reduction))
_replace(functools.reduce, _reductions.reduce)


@handlers.handles(len)
def handle_len(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _containers.length(t, args[0])


@handlers.handles(bool)
def handle_bool(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not args:
        return k.ConstantTracker(False)
    if isinstance(args[0], k.NumberTracker) and args[0].cls is bool:
        return args[0]
    if isinstance(args[0], k.NumberTracker):
        return _torch_calls.record(t, operator.ne, [args[0], k.ConstantTracker(0)], {})
    if isinstance(args[0], k.TensorTracker) and t.policy.capture_data:
        return handle_bool(t, [_torch_calls.record(t, "item", args, {})], {})
    return as_constant(t, _operators.truth(t, args[0]))


@handlers.handles(torch.Tensor.tolist)
def tensor_to_list(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not t.policy.capture_data:  # one break, not one for each number
        raise t.unsupported("data-access", "the values of a tensor as a list", "pass capture_data=True in the options")
    return app_level(t, _tensors.tolist, args, kwargs)


def _number(t: Tracing, cls: type, method: str, args: Args, kwargs: Kwargs) -> Any:
    folded = _calls.fold(t, cls, args, kwargs)
    if folded is not MISSING:
        return folded
    if len(args) != 1 or kwargs:
        raise t.unsupported("bad-arguments", f"{cls.__name__}() with a base that is not known while tracing")
    vt = args[0]
    if isinstance(vt, k.NumberTracker):
        return vt if vt.cls is cls else _torch_calls.record(t, getattr(torch, f"sym_{cls.__name__}"), [vt], {})
    if isinstance(vt, k.TensorTracker):
        return _number(t, cls, method, [_torch_calls.record(t, "item", [vt], {})], {})
    bound = _attributes.special(t, vt, method)
    if bound is MISSING and cls is int and defines(t, vt.cls, "__index__"):
        return _containers.as_index(t, vt)
    if bound is MISSING and defines(t, vt.cls, "__index__", "__trunc__"):
        raise t.unsupported("number-object", f"{cls.__name__}() of a {vt.cls.__name__}, which has no {method}")
    if bound is MISSING:
        what = "a string or a real number" if cls is float else "a string, a bytes-like object or a real number"
        throw(TypeError, f"{cls.__name__}() argument must be {what}, not '{vt.cls.__name__}'")
    return _exactly(t, cls, _calls.call(t, bound, [], {}))


@operation
def _exactly(t: Tracing, cls: type, result: Any) -> Any:
    """What `__int__` or `__float__` gave; of anything but an int or a float C warns, or complains."""
    found = yield from settle(result)
    if found.cls is not cls:
        raise t.unsupported("bad-arguments", f"{cls.__name__}() of an object that gives a {found.cls.__name__}")
    return found


@handlers.handles(int)
def handle_int(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _number(t, int, "__int__", args, kwargs)


@handlers.handles(float)
def handle_float(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _number(t, float, "__float__", args, kwargs)


@handlers.handles(str)
def handle_str(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return convert(t, args[0], "s") if len(args) == 1 and not kwargs else folded(t, str, args, kwargs)


@handlers.handles(repr)
def handle_repr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return convert(t, args[0], "r")


@handlers.handles(abs)
def handle_abs(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if isinstance(args[0], k.TensorTracker | k.NumberTracker):
        return _torch_calls.record(t, operator.abs, args, {})
    return _by_dunder(t, abs, "__abs__", args)


def _by_dunder(t: Tracing, function: Any, name: str, args: Args) -> Any:
    folded = _calls.fold(t, function, args, {})
    if folded is not MISSING:
        return folded
    bound = _attributes.special(t, args[0], name)
    if bound is MISSING:
        throw(TypeError, f"bad operand type for {function.__name__}(): '{args[0].cls.__name__}'")
    return _calls.call(t, bound, args[1:], {})
