"""Handlers of the functions of the operator module, and `functools.partial`."""

from __future__ import annotations

import functools
import operator
from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._build import new_namespace
from stator_variables._builtin._results import as_constant, then
from stator_variables._model import _containers, _iteration, _operators
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

Args = list[Any]
Kwargs = dict[str, Any]
handlers: HandlerTable[Any, Any] = HandlerTable("builtin")


@handlers.handles(functools.partial)
def make_partial(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    function, *rest = args
    if isinstance(function, k.PartialTracker) and function.cls is functools.partial and not _has_fields(function):
        function, rest, kwargs = function.function, [*function.args, *rest], {**function.kwargs, **kwargs}
    made = k.PartialTracker(functools.partial, function, rest, kwargs)
    new_namespace(made)
    return made


def _has_fields(vt: Any) -> bool:
    """A partial object that was given attributes is not taken apart."""
    if vt.real is not MISSING and functools.partial.__reduce__(vt.real)[2][3] is not None:
        return True
    return bool(vt.namespace is not None and vt.namespace.entries)


def _operator_handlers() -> None:
    binary = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
    binary |= {"matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
    in_place = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift".split()
    binary |= {f"i{name.rstrip('_')}": f"{binary[name]}=" for name in in_place}
    for name, symbol in binary.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.binary(t, s, a[0], a[1]))
    for name, symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.compare(t, s, a[0], a[1]))
    for name, symbol in {"neg": "-", "pos": "+", "invert": "~"}.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.unary(t, s, a[0]))
    _register_operator(operator.getitem, lambda t, a: _iteration.get_item(t, a[0], a[1]))
    _register_operator(operator.setitem, lambda t, a: then(_containers.set_item(t, *a)))
    _register_operator(operator.delitem, lambda t, a: then(_containers.delete_item(t, *a)))
    _register_operator(operator.is_, lambda t, a: _operators.identical(t, a[0], a[1], False))
    _register_operator(operator.is_not, lambda t, a: _operators.identical(t, a[0], a[1], True))
    _register_operator(operator.not_, lambda t, a: _operators._negated(t, a[0]))
    _register_operator(operator.truth, lambda t, a: as_constant(t, _operators.truth(t, a[0])))
    _register_operator(operator.contains, lambda t, a: _operators.contains(t, a[0], a[1], False))
    _register_operator(operator.index, lambda t, a: _containers.as_index(t, a[0]))


def _register_operator(function: Any, run: Any) -> None:
    handlers.handles(function)(lambda t, args, kwargs: run(t, args))


_operator_handlers()
