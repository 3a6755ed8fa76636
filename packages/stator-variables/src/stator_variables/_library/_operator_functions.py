"""Handlers of the functions of the operator module, and `functools.partial`."""

import functools
import operator
from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._build import new_namespace
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._builtin._results import as_constant, then
from stator_variables._model import _containers, _iteration, _operators
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

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


def _register(function: Any, run: Any) -> None:
    handlers.handles(function)(lambda t, args, kwargs: run(t, *args))


def _register_symbols(run: Any, functions: dict[str, Any]) -> None:
    for symbol, function in functions.items():
        _register(function, lambda t, *vts, symbol=symbol: run(t, symbol, *vts))


_register_symbols(_operators.binary, {symbol: plain for symbol, (_, plain, _) in _operators.ARITHMETIC.items()})
_register_symbols(_operators.binary, {f"{symbol}=": own for symbol, (_, _, own) in _operators.ARITHMETIC.items()})
_register_symbols(_operators.compare, {symbol: test for symbol, (_, _, test) in _operators.COMPARISONS.items()})
_register_symbols(_operators.unary, {symbol: function for symbol, (_, function) in _operators.UNARY.items()})
_register(operator.getitem, _iteration.get_item)
_register(operator.setitem, lambda t, *vts: then(_containers.set_item(t, *vts)))
_register(operator.delitem, lambda t, *vts: then(_containers.delete_item(t, *vts)))
_register(operator.is_, lambda t, left, right: _operators.identical(t, left, right, False))
_register(operator.is_not, lambda t, left, right: _operators.identical(t, left, right, True))
_register(operator.not_, _operators.negated)
_register(operator.truth, lambda t, vt: as_constant(_operators.truth(t, vt)))
_register(operator.contains, lambda t, container, item: _operators.contains(t, container, item, False))
_register(operator.index, _containers.as_index)
