"""Numbers of NumPy, where it is installed: constants like Python's, of the exact types that NumPy gives.

Arrays are objects that this package knows nothing about; what works on them runs natively.
"""

from __future__ import annotations

from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._library._pure import NUMBERS, NUMPY
from stator_variables._torch import _symbolic
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("number of NumPy")
_REDUCTIONS = "prod sum mean max min amax amin std var median round clip dot ndim size argmax argmin isclose log2"


def _known(t: Tracing, vt: Any) -> Any:
    """A number, or a tuple of them; a shape is one, too."""
    vt = _symbolic.as_constant(t, vt)
    return tuple(item.constant() for item in vt.items) if vt.cls is torch.Size else vt.constant()


def _fold(pure: Any) -> Any:
    def call(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of NumPy on constants that gives a number; one that gives an array is not for here."""
        function, *values = args
        if function.real is MISSING or not pure(function.real):
            raise t.unsupported("builtin", f"a call of numpy.{getattr(function.real, '__name__', '?')}")
        values = [_known(t, vt) for vt in values]
        named = {name: _known(t, vt) for name, vt in kwargs.items()}
        if any(value is MISSING for value in (*values, *named.values())):
            raise t.unsupported("builtin", f"a call of numpy.{function.real.__name__}, on what is not known here")
        try:
            result = function.real(*values, **named)
        except Exception as error:  # natively it raises in its own words, and warns
            raise t.unsupported("builtin", f"numpy.{function.real.__name__}(): {error}") from None
        if type(result) not in (*NUMBERS, int, float, bool):
            raise t.unsupported("builtin", f"numpy.{function.real.__name__}(), which gives an array")
        return k.ConstantTracker(result)

    return call


if NUMBERS:
    _FOLDED = {getattr(NUMPY, name, None) for name in _REDUCTIONS.split()}
    handlers.handles(NUMPY.ufunc.__call__)(_fold(lambda function: True))
    handlers.handles(type(NUMPY.prod).__call__)(_fold(_FOLDED.__contains__))
