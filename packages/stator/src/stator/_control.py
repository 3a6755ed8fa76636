"""Functions for use in the user's code: `graph_break`, `disable`, `is_compiling`; and `reset`."""

import functools
import inspect
import os
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

import torch

from stator._compiled_autograd import release_compiled
from stator._module import put_in_place
from stator.errors import InvalidUse

T = TypeVar("T")
DISABLED = "_stator_disable"


def graph_break() -> None:
    """Break the graph here. Does nothing when the code runs plainly."""


graph_break._stator_graph_break = True  # type: ignore[attr-defined]


@overload
def disable(subject: None = None) -> Callable[[T], T]: ...


@overload
def disable(subject: T) -> T: ...


def disable(subject: Any = None) -> Any:
    """Let a function run without being compiled; compiled code that calls it breaks there. Usable
    as a decorator.

    A class: the calls of its instances. A module: its own calls; it stays the object it is.
    """
    if subject is None:
        return disable
    if isinstance(subject, staticmethod | classmethod):
        return type(subject)(disable(subject.__func__))
    if isinstance(subject, type):
        return _disabled_class(subject)
    if isinstance(subject, torch.nn.Module):
        put_in_place(subject, _plainly(type(subject)._call_impl))
        return subject
    if isinstance(subject, types.MethodType):
        return types.MethodType(_plainly(subject.__func__), subject.__self__)
    if not callable(subject):
        raise InvalidUse(
            f"cannot disable {subject!r}: it is not callable",
            "pass a function, a class or a module",
        )
    return _plainly(subject)


def _plainly(fn: Callable[..., Any]) -> Any:
    @functools.wraps(fn, updated=())
    def plainly(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    plainly.__dict__.update(getattr(fn, "__dict__", {}))
    setattr(plainly, DISABLED, True)
    return plainly


def _disabled_class(cls: type) -> type:
    if (name := call_name(cls)) is None:
        raise InvalidUse(
            f"cannot disable {cls.__qualname__}: its instances cannot be called",
            "disable its methods",
        )
    setattr(cls, name, _plainly(getattr(cls, name)))
    return cls


def python_call(cls: type) -> Any:
    """The `__call__` of instances, when it is written in Python."""
    call = inspect.getattr_static(cls, "__call__", None)
    return call if isinstance(call, types.FunctionType) else None


def call_name(cls: type) -> str | None:
    """Return the attribute of a class to replace so that calls of its instances run something else.

    For a module it is `_call_impl`, which runs hooks and `forward`.
    """
    call = python_call(cls)
    return (
        None if call is None else "_call_impl" if call is torch.nn.Module.__call__ else "__call__"
    )


def is_disabled(fn: Any) -> bool:
    """Return True if `fn` is marked as not to be compiled, by stator or by torch.

    Runs no code of the program: a `__getattr__` may do anything.
    """
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    marks = (inspect.getattr_static(fn, name, False) for name in (DISABLED, "_torchdynamo_disable"))
    return any(mark is True for mark in marks)


def is_compiling() -> bool:
    """Return True if this code is being captured, by stator or by torch.compile; False if it runs
    eagerly."""
    return bool(torch.compiler.is_compiling())


REGIONS: weakref.WeakSet[Any] = weakref.WeakSet()


def _release_in_child() -> None:
    for region in list(REGIONS):
        region.release_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


def reset() -> None:
    """Forget everything that was compiled; compiled functions compile again on their next call."""
    for region in list(REGIONS):
        region.reset()
    release_compiled()
