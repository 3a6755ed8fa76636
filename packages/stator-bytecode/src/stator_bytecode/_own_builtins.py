"""The builtins as they were when stator was imported, which its own code needs: a program may replace its own.

Nothing here reads a builtin by name.
"""

import builtins
from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeVar

T = TypeVar("T")

OF_NO_USE = {"print", "input", "breakpoint", "help", "exit", "quit", "copyright", "credits", "license", "_"}
"""Names that no code of ours, nor of what it calls while it traces, relies on."""
OWN_BUILTINS: Any = dict(vars(builtins))
"""The `__builtins__` of generated code, and of modules of ours that run between the program's code."""

_now: dict[str, Any] = vars(builtins)
_used = [name for name in OWN_BUILTINS if name not in OF_NO_USE and not name.startswith("__")]
_used += ["__import__", "__build_class__"]
_values = itemgetter(*_used)
_own_values = _values(OWN_BUILTINS)
_KeyError = KeyError


def builtins_are_replaced() -> bool:
    """Whether the program has put something else in place of a builtin, or removed one."""
    try:
        changed: bool = _values(_now) != _own_values  # the items of tuples are compared by identity first
    except _KeyError:
        return True
    return changed


def with_own_builtins(fn: Callable[[], T]) -> T:
    """What `fn`, which runs nothing of the program, gives while the builtins are their own."""
    if not builtins_are_replaced():
        return fn()
    replaced = _now.copy()
    _now.update(OWN_BUILTINS)
    try:
        return fn()
    finally:
        _now.update(replaced)
        for name in OWN_BUILTINS:
            if name not in replaced:
                del _now[name]
