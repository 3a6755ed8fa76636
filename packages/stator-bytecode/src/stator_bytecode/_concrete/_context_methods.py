"""The methods of a context manager, and the errors where one is missing.

Until CPython 3.13 the instruction of `with` looks for `__enter__` first. Since 3.14 one looks for
`__exit__`, then another for `__enter__`, and the errors name the class in full.
"""

from typing import Any

_UNSUPPORTED = "'{}' object does not support the context manager protocol"
_MISSED = _UNSUPPORTED + " (missed {} method)"
_ASYNCHRONOUS = (
    " but it supports the asynchronous context manager protocol. Did you mean to use 'async with'?"
)


def methods_enter_first(manager: Any) -> tuple[Any, Any]:
    """Return `__enter__` and `__exit__`, bound."""
    kind = type(manager).__name__
    if (enter := _special(manager, "__enter__")) is None:
        raise TypeError(_UNSUPPORTED.format(kind))
    if (leave := _special(manager, "__exit__")) is None:
        raise TypeError(_MISSED.format(kind, "__exit__"))
    return enter, leave


def methods_exit_first(manager: Any) -> tuple[Any, Any]:
    """Return `__enter__` and `__exit__`, bound."""
    leave = _found(manager, "__exit__")
    return _found(manager, "__enter__"), leave


def _found(manager: Any, name: str) -> Any:
    if (method := _special(manager, name)) is not None:
        return method
    cls = type(manager)
    is_short = cls.__module__ in ("builtins", "__main__")
    kind = cls.__qualname__ if is_short else f"{cls.__module__}.{cls.__qualname__}"
    is_asynchronous = hasattr(cls, "__aenter__") and hasattr(cls, "__aexit__")
    raise TypeError(_MISSED.format(kind, name) + (_ASYNCHRONOUS if is_asynchronous else ""))


def _special(value: Any, name: str) -> Any:
    """A special method, looked up on the type and bound; None when there is none."""
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            found = cls.__dict__[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, value, type(value))
    return None
