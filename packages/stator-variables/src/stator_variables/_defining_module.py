"""The modules that define functions and classes, by evidence that a program does not share.

`functools.wraps` copies `__module__`, and a module of a program may have the name of one of the
standard library.
"""

import os
import sys
from collections.abc import Callable
from types import FunctionType

_STDLIB = os.path.dirname(os.__file__) + os.sep


def module_of(function: Callable[..., object]) -> str:
    """Return the name of the module whose code a function is; empty for a function of C."""
    return str(getattr(function, "__globals__", {}).get("__name__", ""))


def is_of_stdlib(found: FunctionType | type) -> bool:
    """Return True for a function or a class of the standard library."""
    if isinstance(found, FunctionType):
        namespace = found.__globals__
    else:
        namespace = vars(sys.modules.get(str(found.__module__), os))
    if str(namespace.get("__name__")).partition(".")[0] not in sys.stdlib_module_names:
        return False
    return str(namespace.get("__file__") or _STDLIB).startswith(_STDLIB)
