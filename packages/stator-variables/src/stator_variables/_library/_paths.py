"""Paths without a file system: `os.fspath`, and what `pathlib` computes of a path alone.

A path never changes, so it is a constant, and what its class computes of constants is computed while tracing. Paths
that are made here are made again by each call: the program may compare them by identity.
"""

import os
import pathlib
import types
from collections.abc import Iterator
from typing import Any

from stator_bytecode import HandlerTable, after

from stator_variables._build import PATHS
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._model import _attributes, _calls
from stator_variables._model._raising import complain
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("path")
_SPECIAL = frozenset(
    "__str__ __fspath__ __bytes__ __repr__ __eq__ __hash__ __lt__ __le__ __gt__ __ge__ __truediv__ __rtruediv__".split()
)


def _computed() -> Iterator[Any]:
    """The methods and getters of `PurePath` that give texts, numbers and paths."""
    for name, raw in vars(pathlib.PurePath).items():
        function = raw.fget if isinstance(raw, property) else raw
        is_named = name in _SPECIAL or not name.startswith("_")
        if is_named and name != "parents" and type(function) is types.FunctionType:
            yield function


@handlers.handles_each((*_computed(), pathlib.Path, pathlib.PurePath, *PATHS))
def compute(t: Tracing, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """Call it of constants; MISSING where one is not, and it is interpreted."""
    values = [vt.constant() for vt in args]
    named = {name: vt.constant() for name, vt in kwargs.items()}
    given = [*values, *named.values()]
    if not all(type(value) in (*PATHS, str, bool, type(None)) for value in given):
        return MISSING
    return _calls.as_given(_calls.folded(t, of, *values, **named), *args)


@handlers.handles(os.fspath)
def text_of_path(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    """`PyOS_FSPath`."""
    (vt,) = (*args, *kwargs.values())
    if issubclass(vt.cls, str | bytes):
        return vt
    if (method := _attributes.special(t, vt, "__fspath__")) is MISSING:
        complain(t, TypeError, "expected str, bytes or os.PathLike object, not ", vt.cls)
    return after(_calls.call(t, method, [], {}), lambda found: _checked(t, vt.cls, found))


def _checked(t: Tracing, cls: type, found: Any) -> Any:
    if not issubclass(found.cls, str | bytes):
        end = ".__fspath__() to return str or bytes, not "
        complain(t, TypeError, "expected ", cls, end, found.cls)
    return found
