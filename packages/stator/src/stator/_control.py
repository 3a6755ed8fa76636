"""Functions for use in the user's code: breaks, `disable`, marks of functions; and `reset`."""

import functools
import inspect
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

import torch
from stator_backends import cudagraphs
from stator_variables import (
    ALLOWED,
    DISALLOWED,
    MARKED,
    NONSTRICT,
    SUBSTITUTES,
    has_mark,
    is_recorded,
)

from stator._autograd._compiled_autograd import release_compiled
from stator._capture._uncompiled_operator import forget_warned
from stator._entries._entry_pool import forget_pools, release_pools_in_child
from stator._program._interoperation import ORIGINAL_CALLABLE, leave_to_python
from stator._program._module import put_in_place
from stator._settings._stance import REGIONS
from stator.errors import InvalidUse

T = TypeVar("T")
DISABLED = "_stator_disable"


def graph_break(msg: str = "") -> None:
    """Break the graph here; the report has the message. Does nothing in code that runs eagerly."""


def skip_frame(msg: str = "") -> None:
    """Let the calling function run without being compiled, from now on; what it calls is
    compiled."""


setattr(graph_break, "_stator_graph_break", True)
setattr(skip_frame, "_stator_skip_frame", True)


def leaf_function(fn: Any = None, *, mutates_args: set[str] | None = None) -> Any:
    """Let calls of a function be one node that no compiler looks into, as torch's decorator does.

    A function that gives results of the same shapes has to be registered with the result.
    """
    torch.compiler.list_backends(())  # imports torch._dynamo
    return sys.modules["torch._dynamo.decorators"].leaf_function(fn, mutates_args=mutates_args)


@overload
def disable(
    subject: None = None, recursive: bool = True, *, reason: str | None = None
) -> Callable[[T], T]: ...


@overload
def disable(subject: T, recursive: bool = True, *, reason: str | None = None) -> T: ...


def disable(subject: object = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Let a function run without being compiled; compiled code that calls it breaks there. Usable
    as a decorator. Reports have the reason.

    A class: the calls of its instances. A module: its own calls; it stays the object it is. What a
    disabled function calls runs eagerly, too, unless it is compiled itself; with `recursive=False`
    it is compiled where compiled code calls the disabled function.
    """
    if subject is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(subject, staticmethod | classmethod):
        return type(subject)(disable(subject.__func__, recursive, reason=reason))
    if isinstance(subject, type):
        return _disabled_class(subject, reason, recursive)
    if isinstance(subject, torch.nn.Module):
        put_in_place(subject, _eagerly(type(subject)._call_impl, reason, recursive))
        return subject

    if isinstance(subject, types.MethodType):
        function = _eagerly(subject.__func__, reason, recursive)
        return types.MethodType(function, subject.__self__)
    if not callable(subject):
        raise InvalidUse(
            f"cannot disable {subject!r}: it is not callable",
            "pass a function, a class or a module",
        )
    return _eagerly(subject, reason, recursive)


def _eagerly(fn: Callable[..., Any], reason: str | None, recursive: bool) -> Any:
    @functools.wraps(fn, updated=())
    def eagerly(*args: object, **kwargs: object) -> Any:
        return fn(*args, **kwargs)

    eagerly.__dict__.update(getattr(fn, "__dict__", {}))
    marks = {DISABLED: True, "_torchdynamo_disable": True, "_torchdynamo_disable_msg": reason}
    alone = {"_torchdynamo_disable_recursive": recursive, ORIGINAL_CALLABLE: fn}
    eagerly.__dict__.update(marks | alone)
    leave_to_python(eagerly)
    return eagerly


def _disabled_class(cls: type, reason: str | None, recursive: bool) -> type:
    if (name := call_name(cls)) is None:
        raise InvalidUse(
            f"cannot disable {cls.__qualname__}: its instances cannot be called",
            "disable its methods",
        )
    setattr(cls, name, _eagerly(getattr(cls, name), reason, recursive))
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


def is_disabled(fn: object) -> bool:
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


def is_exporting() -> bool:
    """Return True if this code is being exported by `torch.export`."""
    return bool(torch.compiler.is_exporting())


def allow_in_graph(fn: object) -> Any:
    """Let calls of a function, or of each in a list, be one node of the graph, which is never
    looked into."""
    if isinstance(fn, list | tuple):
        return [allow_in_graph(each) for each in fn]
    MARKED[DISALLOWED].pop(id(fn), None)
    MARKED[ALLOWED][id(fn)] = fn
    return fn


def disallow_in_graph(fn: object) -> Any:
    """Let calls of an operator, or of each in a list, break the graph."""
    if isinstance(fn, list | tuple):
        return [disallow_in_graph(each) for each in fn]
    if not is_recorded(fn) and not has_mark(fn, ALLOWED):
        problem = f"cannot disallow {fn!r} in graphs: it is no operator, so it is in none"
        raise InvalidUse(problem, "use stator.disable")
    MARKED[ALLOWED].pop(id(fn), None)
    MARKED[DISALLOWED][id(fn)] = fn
    return fn


def nonstrict_trace(fn: Callable[..., Any]) -> Any:
    """Make a function whose calls are one node, which compilers look into, but stator does not.

    Its arguments and results are pytrees, modules among them.
    """

    @functools.wraps(fn)
    def opaque(*args: object, **kwargs: object) -> Any:
        return fn(*args, **kwargs)

    MARKED[NONSTRICT][id(opaque)] = opaque
    return opaque


def assume_constant_result(fn: T) -> T:
    """Use the result of one call of a function for all: it is a constant of the graph."""
    setattr(fn, "_dynamo_marked_constant", True)
    return fn


def substitute_in_graph(original: object, **settings: bool) -> Callable[[T], T]:
    """Let the decorated Python function be traced where `original` is called.

    The keywords of torch are accepted: nothing is checked, and constants are folded anyway.
    """

    def substitute(traceable: T) -> T:
        SUBSTITUTES[id(original)] = original, traceable
        return traceable

    return substitute


def _release_in_child() -> None:
    release_pools_in_child()
    for region in list(REGIONS):
        region.release_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


class _Sentinel:
    """A value in a dict that `torch.compiler.reset` clears: it dies then."""


_sentinels: weakref.WeakSet[_Sentinel] = weakref.WeakSet()


def follow_resets_of_torch() -> None:
    """Let `torch.compiler.reset` reset stator, too, from now on, if the program has imported what
    it resets."""
    cleared = getattr(sys.modules.get("torch._dynamo.code_context"), "code_context", None)
    if cleared is None or _sentinels:
        return
    sentinel = _Sentinel()
    cleared.get_context(_reset_with_torch.__code__)[sentinel] = sentinel
    _sentinels.add(sentinel)
    weakref.finalize(sentinel, _reset_with_torch).atexit = False


def _reset_with_torch() -> None:
    reset()
    follow_resets_of_torch()


def reset() -> None:
    """Discard everything that was compiled; compiled functions compile again on their next call."""
    forget_pools()
    forget_warned()
    for region in list(REGIONS):
        region.reset()
    cudagraphs.reset()
    release_compiled()
