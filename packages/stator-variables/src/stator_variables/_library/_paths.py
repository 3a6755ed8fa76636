"""Paths without a file system: `os.fspath`, and what `pathlib` computes of a path alone.

A path never changes, so it is a constant, and what its class computes of constants is computed
while tracing. Paths that are made here are made again by each call: the program may compare them by
identity.
"""

import os
import pathlib
import types
from collections.abc import Iterator
from typing import Any

from stator_bytecode import Result, after

from stator_variables._objects import _new_values
from stator_variables._objects._list import ListTracker
from stator_variables._objects._program_error import complain
from stator_variables._protocols import _folding
from stator_variables._pure import PATHS
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    made_of,
)

handlers = FunctionTable("path")
_SPECIAL = frozenset(
    """__str__ __fspath__ __bytes__ __repr__ __eq__ __hash__ __lt__ __le__ __gt__ __ge__ __truediv__
__rtruediv__ _from_parsed_parts _from_parsed_string""".split()
)


def _computed() -> Iterator[Any]:
    """The methods and getters of `PurePath` that give texts, numbers and paths."""
    for name in dir(pathlib.PurePath):
        raw = plain_lookup(pathlib.PurePath, name)
        function = raw.fget if isinstance(raw, property) else raw
        is_named = name in _SPECIAL or not name.startswith("_")
        if is_named and name != "parents" and type(function) is types.FunctionType:
            yield function


@handlers.handles_each((*_computed(), pathlib.Path, pathlib.PurePath, *PATHS))
def compute(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """Call it of constants; MISSING where one is not, and it is interpreted."""
    values = [_known(vt) for vt in args]
    named = {name: _known(vt) for name, vt in kwargs.items()}
    if any(value is MISSING for value in (*values, *named.values())):
        return MISSING
    return _folding.as_given(_new_values.computed(t, of, *values, **named), *args)


def _known(vt: VariableTracker) -> Any:
    """The value of a path, a text or a flag, or of a list of such."""
    if is_a(vt, ListTracker) and vt.cls is list:
        return made_of(list, map(_known, vt.items))
    value = vt.constant()
    return value if type(value) in (*PATHS, str, bool, type(None)) else MISSING


@handlers.handles(os.fspath)
def text_of_path(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`PyOS_FSPath`."""
    (vt,) = (*args, *kwargs.values())
    if issubclass(vt.cls, str | bytes):
        return vt
    if (method := t.special(vt, "__fspath__")) is MISSING:
        complain(t, TypeError, "expected str, bytes or os.PathLike object, not ", vt.cls)
    return after(t.call(method, []), lambda found: _checked(t, vt.cls, found))


def _checked(t: Space, cls: type, found: VariableTracker) -> VariableTracker:
    if not issubclass(found.cls, str | bytes):
        end = ".__fspath__() to return str or bytes, not "
        complain(t, TypeError, "expected ", cls, end, found.cls)
    return found
